"""A gamepad: what its sticks and buttons mean, and the shell that reads them through pygame-ce, without a window."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from glob import glob
from typing import Any

from simbridge.teleop.device import Device, DeviceError, Reading, TeleopOptions, optional_package

NAME = "gamepad"

# Numbers of the axes as Linux reports them for Xbox controllers and most others: left stick, right stick.
_LEFT_X, _LEFT_Y, _RIGHT_X, _RIGHT_Y = 0, 1, 3, 4
# The left shoulder button, counted from 1.
_ROTATE = 5
_DEAD_MAN, _ENGAGE = 6, 8

UDEV_RULE = 'SUBSYSTEM=="input", KERNEL=="event*", ENV{ID_INPUT_JOYSTICK}=="1", MODE="0660", TAG+="uaccess"'
UDEV_FILE = "/etc/udev/rules.d/70-simbridge-gamepad.rules"


@dataclass(frozen=True)
class Pad:
    """A gamepad at one instant: axes, -1 to 1 each, right and down positive, and whether each button is down, as SDL
    numbers them."""

    axes: tuple[float, ...]
    buttons: tuple[bool, ...]

    def axis(self, number: int) -> float:
        """One of them; 0 where the gamepad has fewer."""
        return self.axes[number] if number < len(self.axes) else 0.0

    def is_down(self, button: int) -> bool:
        """Whether a button, counted from 1, is down."""
        return button <= len(self.buttons) and self.buttons[button - 1]


class Gamepad(Device):
    """A gamepad: the right shoulder button is the dead-man button, Start engages and disengages.

    The left stick moves along x and y, the right one along z and about z; with the left shoulder button held, the left
    stick turns about x and y.

    Args:
        pad: Returns the gamepad's present state; raises OSError when it is lost.
        close: Called at the end.
    """

    name = NAME

    def __init__(
        self, pad: Callable[[], Pad], options: TeleopOptions, close: Callable[[], object] = lambda: None
    ) -> None:
        self._pad, self._close = pad, close
        self._dead_man, self._engage = options.buttons(_DEAD_MAN, _ENGAGE)
        self._engage_was_down = True
        self.dead_man = f"button {self._dead_man}"
        self.guide = (
            f"Gamepad, in the axes of {options.frame} (numbers of buttons are those of an Xbox controller):",
            f"  button {self._engage} (Start)            engages; again, it disengages",
            f"  button {self._dead_man} (right shoulder)   hold it to move: without it the arm holds",
            "  left stick                  x (forward, back) and y (left, right)",
            "  right stick                 z (up, down) and about z (left, right)",
            f"  button {_ROTATE} (left shoulder)    with it, the left stick turns about y and x",
            "  Ctrl-C                      ends",
        )

    @classmethod
    def open(cls, options: TeleopOptions) -> Gamepad:
        """The first one that is connected.

        Raises:
            MissingPackage: pygame-ce is not installed.
            DeviceError: There is none, or it must not be read.
        """
        # Read when pygame is imported: no window, no greeting, and Ctrl-C stays ours.
        os.environ.update(
            SDL_VIDEODRIVER="dummy",
            SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS="1",
            SDL_NO_SIGNAL_HANDLERS="1",
            PYGAME_HIDE_SUPPORT_PROMPT="1",
        )
        pygame = optional_package("pygame", "pygame-ce", "A gamepad")
        # Events need a display, though a dummy one.
        pygame.display.init()
        pygame.joystick.init()
        if not pygame.joystick.get_count():
            pygame.quit()
            if not glob("/dev/input/js*"):
                raise DeviceError(NAME, "none is connected. Connect one and start again.")
            reason = (
                f"one is connected, and this user may not read it: put the line above into {UDEV_FILE}, run `sudo "
                "udevadm control --reload`, and connect it again."
            )
            raise DeviceError(NAME, reason, UDEV_RULE)
        joystick = pygame.joystick.Joystick(0)
        return cls(lambda: _state(pygame, joystick), options, pygame.quit)

    def close(self) -> None:
        self._close()

    def read(self) -> Reading:
        pad = self._pad()
        engage = pad.is_down(self._engage)
        pressed, self._engage_was_down = engage and not self._engage_was_down, engage
        forward, left = -pad.axis(_LEFT_Y), -pad.axis(_LEFT_X)
        # As a spirit level tilts: left stick forward lowers the front.
        rotate = pad.is_down(_ROTATE)
        x, y = (0.0, 0.0) if rotate else (forward, left)
        rx, ry = (-left, forward) if rotate else (0.0, 0.0)
        special = (self._dead_man, self._engage, _ROTATE)
        others = (n for n in range(1, len(pad.buttons) + 1) if n not in special and pad.is_down(n))
        return Reading(
            axes=(x, y, -pad.axis(_RIGHT_Y), rx, ry, -pad.axis(_RIGHT_X)),
            held=pad.is_down(self._dead_man),
            buttons=frozenset(map(str, others)),
            requests=("toggle",) if pressed else (),
        )


def _state(pygame: Any, joystick: Any) -> Pad:
    removed = [event for event in pygame.event.get() if event.type == pygame.JOYDEVICEREMOVED]
    if any(event.instance_id == joystick.get_instance_id() for event in removed):
        raise OSError("it was removed")
    try:
        axes = tuple(joystick.get_axis(n) for n in range(joystick.get_numaxes()))
        buttons = tuple(bool(joystick.get_button(n)) for n in range(joystick.get_numbuttons()))
    except pygame.error as error:
        raise OSError(str(error)) from error
    return Pad(axes, buttons)
