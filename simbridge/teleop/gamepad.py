"""A gamepad, read through pygame-ce without a window: what its sticks and buttons mean."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from glob import glob
from typing import Any

from simbridge.errors import optional_package
from simbridge.teleop.device import Device, DeviceError, Reading
from simbridge.teleop.options import TeleopOptions
from simbridge.teleop.udev_rule import explain_missing_rights

# Numbers of the axes of both sticks, as Linux reports them for Xbox controllers and most others.
LEFT_X = 0
LEFT_Y = 1
RIGHT_X = 3
RIGHT_Y = 4

# Numbers of the buttons, from 1: the left shoulder, the right shoulder, and Start.
ROTATE_BUTTON = 5
DEAD_MAN_BUTTON = 6
ENGAGE_BUTTON = 8

GAMEPAD_RULE = (
    'SUBSYSTEM=="input", KERNEL=="event*", ENV{ID_INPUT_JOYSTICK}=="1", MODE="0660", TAG+="uaccess"'
)
GAMEPAD_RULE_FILE = "/etc/udev/rules.d/70-simbridge-gamepad.rules"


@dataclass(frozen=True)
class Pad:
    """A gamepad at one instant.

    Attributes:
        axes: Deflections, -1 to 1 each, right and down positive, as SDL numbers them.
        buttons: Whether each button is down, as SDL numbers them.
    """

    axes: tuple[float, ...]
    buttons: tuple[bool, ...]

    def axis(self, number: int) -> float:
        """Return the deflection of an axis; 0 if the gamepad has fewer."""
        return self.axes[number] if number < len(self.axes) else 0.0

    def is_down(self, button: int) -> bool:
        """Return whether a button, counted from 1, is down."""
        return button <= len(self.buttons) and self.buttons[button - 1]


class Gamepad(Device):
    """A gamepad: the right shoulder button is the dead-man button, Start engages and disengages.

    The left stick moves along x and y, the right one along z and about z; with the left shoulder
    button held, the left stick turns about x and y.

    Args:
        pad: Returns the gamepad's present state; raises OSError when it is lost.
        options: The buttons, and the frame that the first screen names.
        close: Called at the end.
    """

    name = "gamepad"

    def __init__(
        self,
        pad: Callable[[], Pad],
        options: TeleopOptions,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        self._pad = pad
        self._close = close
        dead_man, engage = options.choose_buttons(DEAD_MAN_BUTTON, ENGAGE_BUTTON)
        self._dead_man = dead_man
        self._engage = engage
        # Held from the beginning, it engages nothing.
        self._engage_was_down = True

        self.dead_man = f"button {dead_man}"
        self.guide = (
            f"Gamepad, in the axes of {options.frame} (button numbers are those of an Xbox "
            "controller):",
            f"  button {engage} (Start)            engages; press again to disengage",
            f"  button {dead_man} (right shoulder)   hold it to move; when it is "
            "released, the arm holds",
            "  left stick                  x (forward, back) and y (left, right)",
            "  right stick                 z (up, down) and about z (left, right)",
            f"  button {ROTATE_BUTTON} (left shoulder)    while it is held, the left stick "
            "rotates about y and x",
            "  Ctrl-C                      quits",
        )

    @classmethod
    def open(cls, options: TeleopOptions) -> Gamepad:
        """Open the first one that is connected.

        Raises:
            MissingPackage: pygame-ce is not installed.
            DeviceError: No gamepad is connected, or it must not be read.
        """
        # Pygame reads these when it is imported. It then opens no window, prints no greeting, and
        # leaves Ctrl-C to this program.
        os.environ.update(
            SDL_VIDEODRIVER="dummy",
            SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS="1",
            SDL_NO_SIGNAL_HANDLERS="1",
            PYGAME_HIDE_SUPPORT_PROMPT="1",
        )
        pygame = optional_package("pygame", "pygame-ce", purpose="A gamepad", extra="teleop")

        # Events need a display, though a dummy one.
        pygame.display.init()
        pygame.joystick.init()
        if not pygame.joystick.get_count():
            pygame.quit()
            if not glob("/dev/input/js*"):
                raise DeviceError(cls.name, "none is connected. Connect one and start again.")
            rights = explain_missing_rights("line", GAMEPAD_RULE_FILE)
            raise DeviceError(cls.name, f"one is connected, and {rights}", GAMEPAD_RULE)

        joystick = pygame.joystick.Joystick(0)
        return cls(lambda: _read_pad(pygame, joystick), options, pygame.quit)

    def close(self) -> None:
        self._close()

    def read(self) -> Reading:
        pad = self._pad()
        engage_is_down = pad.is_down(self._engage)
        is_pressed = engage_is_down and not self._engage_was_down
        self._engage_was_down = engage_is_down

        forward = -pad.axis(LEFT_Y)
        left = -pad.axis(LEFT_X)
        up = -pad.axis(RIGHT_Y)
        turn = -pad.axis(RIGHT_X)
        if pad.is_down(ROTATE_BUTTON):
            # As a spirit level tilts: left stick forward lowers the front.
            axes = (0.0, 0.0, up, -left, forward, turn)
        else:
            axes = (forward, left, up, 0.0, 0.0, turn)

        return Reading(
            axes=axes,
            held=pad.is_down(self._dead_man),
            buttons=self._other_buttons(pad),
            requests=("toggle",) if is_pressed else (),
        )

    def _other_buttons(self, pad: Pad) -> frozenset[str]:
        """Return the numbers of the buttons that are down and mean nothing here."""
        buttons = set()
        for button in range(1, len(pad.buttons) + 1):
            is_known = button in (self._dead_man, self._engage, ROTATE_BUTTON)
            if pad.is_down(button) and not is_known:
                buttons.add(str(button))
        return frozenset(buttons)


def _read_pad(pygame: Any, joystick: Any) -> Pad:
    """Return the present state of a joystick of pygame.

    Raises:
        OSError: The joystick was removed, or cannot be read.
    """
    for event in pygame.event.get():
        is_removal = event.type == pygame.JOYDEVICEREMOVED
        if is_removal and event.instance_id == joystick.get_instance_id():
            raise OSError("it was removed")

    try:
        axes = [joystick.get_axis(number) for number in range(joystick.get_numaxes())]
        buttons = [bool(joystick.get_button(number)) for number in range(joystick.get_numbuttons())]
    except pygame.error as error:
        raise OSError(str(error)) from error
    return Pad(tuple(axes), tuple(buttons))
