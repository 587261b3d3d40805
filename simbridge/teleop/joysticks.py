"""SpaceMouse and gamepad: what their axes and buttons mean, and the shells that read them.

A 3Dconnexion SpaceMouse is read through hidapi. A report of it begins with its number. Translation (1) and rotation (2)
are three signed 16-bit numbers each, lowest byte first, about -350 to 350; newer devices send all six in one report of
13 bytes (1). Buttons (3) are bits. The device's own axes are x right, y towards the operator, z down; here x is
forward, y left, z up.

A gamepad is read through pygame-ce, without a window.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from glob import glob
from typing import Any

from simbridge.errors import optional_package
from simbridge.teleop.device import AT_REST, Device, DeviceError, Reading, Request, TeleopOptions

VENDOR = 0x256F
# Logitech sold them before, next to ordinary mice: these are their products.
_LOGITECH = 0x046D
_LOGITECH_PRODUCTS = (
    0xC603,
    0xC605,
    0xC606,
    0xC621,
    0xC623,
    0xC625,
    0xC626,
    0xC627,
    0xC628,
    0xC629,
    0xC62B,
)
# HID usage of a multi-axis controller, which distinguishes a SpaceMouse from a CadMouse; 0 where it is unknown.
_MULTI_AXIS = 8

FULL_SCALE = 350.0
"""Counts at full deflection."""

SILENCE = 1.0
"""A held cap is never still enough to be silent for so long, s: then its radio link is lost."""

_LONGEST_REPORT = 64
# More are not waiting at a rate of 1 kHz and one reading every 10 ms.
_REPORTS_AT_ONCE = 256

SPACEMOUSE_RULE = "\n".join(
    f'SUBSYSTEM=="{subsystem}", {attribute}=="{vendor}", MODE="0660", TAG+="uaccess"'
    for vendor in ("256f", "046d")
    for subsystem, attribute in (("usb", "ATTR{idVendor}"), ("hidraw", "ATTRS{idVendor}"))
)
SPACEMOUSE_RULE_FILE = "/etc/udev/rules.d/70-simbridge-spacemouse.rules"

# Numbers of a gamepad's axes as Linux reports them for Xbox controllers and most others: left stick, right stick.
_LEFT_X, _LEFT_Y, _RIGHT_X, _RIGHT_Y = 0, 1, 3, 4
# The left shoulder button, counted from 1.
_ROTATE = 5
_DEAD_MAN, _ENGAGE = 6, 8

GAMEPAD_RULE = (
    'SUBSYSTEM=="input", KERNEL=="event*", ENV{ID_INPUT_JOYSTICK}=="1", MODE="0660", TAG+="uaccess"'
)
GAMEPAD_RULE_FILE = "/etc/udev/rules.d/70-simbridge-gamepad.rules"


@dataclass(frozen=True)
class Cap:
    """What the reports until now say: deflection in the axes of simbridge, and the bits of the buttons."""

    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    buttons: int = 0

    @property
    def axes(self) -> tuple[float, ...]:
        return (*self.translation, *self.rotation)

    def after(self, report: bytes) -> Cap:
        """The same after one more report; one of another kind, or that is cut off, changes nothing."""
        kind = report[0] if report else 0
        if kind == 1 and len(report) >= 13:
            return replace(self, translation=_axes(report[1:7]), rotation=_axes(report[7:13]))
        if kind == 1 and len(report) >= 7:
            return replace(self, translation=_axes(report[1:7]))
        if kind == 2 and len(report) >= 7:
            return replace(self, rotation=_axes(report[1:7]))
        if kind == 3 and len(report) >= 2:
            return replace(self, buttons=int.from_bytes(report[1:], "little"))
        return self


def _axes(data: bytes) -> tuple[float, float, float]:
    right, back, down = (
        max(-1.0, min(1.0, count / FULL_SCALE)) for count in struct.unpack("<3h", data)
    )
    return -back, -right, -down


class SpaceMouse(Device):
    """A SpaceMouse. Its first button is the dead-man button, its second engages and disengages.

    Args:
        reports: Returns the reports that came in since the last call; raises OSError when the device is lost.
        close: Called at the end.
        clock: Monotonic, s.
    """

    name = "SpaceMouse"

    def __init__(
        self,
        reports: Callable[[], Iterable[bytes]],
        options: TeleopOptions,
        close: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reports, self._close, self._clock = reports, close, clock
        self._dead_man, self._engage = options.buttons(1, 2)
        self._cap, self._heard = Cap(), clock()
        self.dead_man = f"button {self._dead_man}"
        self.guide = (
            f"SpaceMouse, in the axes of {options.frame}:",
            f"  button {self._engage}      engages; again, it disengages",
            f"  button {self._dead_man}      hold it to move: without it the arm holds",
            "  the cap       push, pull, lift and turn it as the tool is to move",
            "  Ctrl-C        ends",
        )

    @classmethod
    def open(cls, options: TeleopOptions) -> SpaceMouse:
        """The first one that is connected.

        Raises:
            MissingPackage: hidapi is not installed.
            DeviceError: There is none, or it must not be read.
        """
        hid = optional_package("hid", "hidapi", "A SpaceMouse", "teleop")
        found = [one for one in hid.enumerate() if _is_spacemouse(one)]
        if not found:
            raise DeviceError(
                cls.name, "none is connected. Connect one, or its receiver, and start again."
            )
        device = hid.device()
        try:
            device.open_path(found[0]["path"])
        except OSError as error:
            reason = (
                f"{found[0].get('product_string') or 'it'} is connected and cannot be opened ({error}). If no other "
                f"program uses it, {_not_allowed('lines', SPACEMOUSE_RULE_FILE)}"
            )
            raise DeviceError(cls.name, reason, SPACEMOUSE_RULE) from error
        device.set_nonblocking(1)
        return cls(lambda: _pending(device), options, device.close)

    def close(self) -> None:
        self._close()

    def read(self) -> Reading:
        requests: tuple[Request, ...] = ()
        for report in self._reports():
            self._heard = self._clock()
            after = self._cap.after(report)
            # A press that is shorter than a period counts.
            if self._is_down(after, self._engage) and not self._is_down(self._cap, self._engage):
                requests = ("toggle",)
            self._cap = after
        silent = self._clock() - self._heard > SILENCE and self._cap.axes != AT_REST
        others = {
            n
            for n in range(1, 65)
            if n not in (self._dead_man, self._engage) and self._is_down(self._cap, n)
        }
        return Reading(
            axes=self._cap.axes,
            held=self._is_down(self._cap, self._dead_man) and not silent,
            buttons=frozenset(map(str, others)),
            requests=requests,
        )

    def _is_down(self, cap: Cap, button: int) -> bool:
        return bool(cap.buttons >> (button - 1) & 1)


def _is_spacemouse(found: dict[str, Any]) -> bool:
    if found["vendor_id"] == _LOGITECH:
        return found["product_id"] in _LOGITECH_PRODUCTS
    return found["vendor_id"] == VENDOR and found.get("usage", 0) in (0, _MULTI_AXIS)


def _pending(device: Any) -> Sequence[bytes]:
    reports: list[bytes] = []
    while len(reports) < _REPORTS_AT_ONCE and (report := device.read(_LONGEST_REPORT)):
        reports.append(bytes(report))
    return reports


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

    name = "gamepad"

    def __init__(
        self,
        pad: Callable[[], Pad],
        options: TeleopOptions,
        close: Callable[[], object] = lambda: None,
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
        pygame = optional_package("pygame", "pygame-ce", "A gamepad", "teleop")
        # Events need a display, though a dummy one.
        pygame.display.init()
        pygame.joystick.init()
        if not pygame.joystick.get_count():
            pygame.quit()
            if not glob("/dev/input/js*"):
                raise DeviceError(cls.name, "none is connected. Connect one and start again.")
            reason = f"one is connected, and {_not_allowed('line', GAMEPAD_RULE_FILE)}"
            raise DeviceError(cls.name, reason, GAMEPAD_RULE)
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


def _not_allowed(above: str, file: str) -> str:
    reload = "run `sudo udevadm control --reload`, and connect it again."
    return f"this user may not read it: put the {above} above into {file}, {reload}"
