"""A 3Dconnexion SpaceMouse, read through hidapi: what its axes and buttons mean.

A report begins with its number. Translation (1) and rotation (2) are three signed 16-bit numbers
each, lowest byte first, about -350 to 350; newer devices send all six in one report of 13 bytes
(1). Buttons (3) are bits. The device's own axes are x right, y towards the operator, z down; here x
is forward, y left, z up.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simbridge.errors import optional_package
from simbridge.teleop.device import AT_REST, Device, DeviceError, Reading, Request
from simbridge.teleop.options import MAX_BUTTON, TeleopOptions
from simbridge.teleop.udev_rule import explain_missing_rights

VENDOR = 0x256F
# Logitech sold them before, next to ordinary mice: these are their products.
LOGITECH = 0x046D
LOGITECH_PRODUCTS = (
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
# HID usage of a multi-axis controller, which distinguishes a SpaceMouse from a CadMouse; 0 if it
# is unknown.
MULTI_AXIS_USAGE = 8

# Numbers of the reports, and the fewest bytes of each.
TRANSLATION_REPORT = 1
ROTATION_REPORT = 2
BUTTONS_REPORT = 3
THREE_AXES_BYTES = 7
SIX_AXES_BYTES = 13
BUTTONS_BYTES = 2

# Counts at full deflection.
FULL_SCALE = 350.0

# A held cap is never still enough to be silent for so long, s: then its radio link is lost.
MAX_SILENCE_S = 1.0

MAX_REPORT_BYTES = 64
# More are not waiting at a rate of 1 kHz and one reading every 10 ms.
MAX_REPORTS_PER_READING = 256

# Numbers of the buttons, from 1.
DEAD_MAN_BUTTON = 1
ENGAGE_BUTTON = 2

SPACEMOUSE_RULE = "\n".join(
    f'SUBSYSTEM=="{subsystem}", {attribute}=="{vendor}", MODE="0660", TAG+="uaccess"'
    for vendor in ("256f", "046d")
    for subsystem, attribute in (("usb", "ATTR{idVendor}"), ("hidraw", "ATTRS{idVendor}"))
)
SPACEMOUSE_RULE_FILE = "/etc/udev/rules.d/70-simbridge-spacemouse.rules"


@dataclass(frozen=True)
class Cap:
    """The state of a SpaceMouse after the reports until now.

    Attributes:
        translation: Deflection along x (forward), y (left), z (up), -1 to 1.
        rotation: Deflection about the same axes, -1 to 1.
        buttons: A bit for each button that is down, the first button lowest.
    """

    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    buttons: int = 0

    @property
    def axes(self) -> tuple[float, ...]:
        """Deflections along and about the axes (6,), -1 to 1."""
        return (*self.translation, *self.rotation)

    def apply(self, report: bytes) -> Cap:
        """Return the state after one more report.

        A report of another kind, or one that is cut off, changes nothing.
        """
        kind = report[0] if report else 0
        length = len(report)

        if kind == TRANSLATION_REPORT and length >= SIX_AXES_BYTES:
            translation = _deflections(report[1:7])
            return replace(self, translation=translation, rotation=_deflections(report[7:13]))
        if kind == TRANSLATION_REPORT and length >= THREE_AXES_BYTES:
            return replace(self, translation=_deflections(report[1:7]))
        if kind == ROTATION_REPORT and length >= THREE_AXES_BYTES:
            return replace(self, rotation=_deflections(report[1:7]))
        if kind == BUTTONS_REPORT and length >= BUTTONS_BYTES:
            return replace(self, buttons=int.from_bytes(report[1:], "little"))
        return self

    def is_down(self, button: int) -> bool:
        """Return whether a button, counted from 1, is down."""
        return bool(self.buttons >> (button - 1) & 1)


def _deflections(data: bytes) -> tuple[float, float, float]:
    """Return three deflections, x forward, y left, z up, from the 6 bytes of a report."""
    counts = struct.unpack("<3h", data)
    right, back, down = (max(-1.0, min(1.0, count / FULL_SCALE)) for count in counts)
    return -back, -right, -down


class SpaceMouse(Device):
    """A SpaceMouse. Its first button is the dead-man button, its second engages and disengages.

    Args:
        reports: Returns the reports that came in since the last call; raises OSError when the
            device is lost.
        options: The buttons, and the frame that the first screen names.
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
        self._reports = reports
        self._close = close
        self._clock = clock
        dead_man, engage = options.choose_buttons(DEAD_MAN_BUTTON, ENGAGE_BUTTON)
        self._dead_man = dead_man
        self._engage = engage
        self._cap = Cap()
        # When the last report came, s.
        self._last_report = clock()

        self.dead_man = f"button {dead_man}"
        self.guide = (
            f"SpaceMouse, in the axes of {options.frame}:",
            f"  button {engage}      engages; press again to disengage",
            f"  button {dead_man}      hold it to move; when it is released, the arm holds",
            "  the cap       push, pull, lift and turn it the way the tool should move",
            "  Ctrl-C        quits",
        )

    @classmethod
    def open(cls, options: TeleopOptions) -> SpaceMouse:
        """Open the first one that is connected.

        Raises:
            MissingPackage: hidapi is not installed.
            DeviceError: No SpaceMouse is connected, or it must not be read.
        """
        hid = optional_package("hid", "hidapi", purpose="A SpaceMouse", extra="teleop")
        connected = [description for description in hid.enumerate() if _is_spacemouse(description)]
        if not connected:
            reason = "none is connected. Connect one, or its receiver, and start again."
            raise DeviceError(cls.name, reason)

        first = connected[0]
        device = hid.device()
        try:
            device.open_path(first["path"])
        except OSError as error:
            product = first.get("product_string") or "it"
            rights = explain_missing_rights("lines", SPACEMOUSE_RULE_FILE)
            reason = (
                f"{product} is connected but cannot be opened ({error}). If no other program uses "
                f"it, {rights}"
            )
            raise DeviceError(cls.name, reason, SPACEMOUSE_RULE) from error

        device.set_nonblocking(1)
        return cls(lambda: _waiting_reports(device), options, device.close)

    def close(self) -> None:
        self._close()

    def read(self) -> Reading:
        requests: tuple[Request, ...] = ()
        for report in self._reports():
            self._last_report = self._clock()
            cap = self._cap.apply(report)
            # A press that is shorter than a period counts.
            if cap.is_down(self._engage) and not self._cap.is_down(self._engage):
                requests = ("toggle",)
            self._cap = cap

        is_silent = self._clock() - self._last_report > MAX_SILENCE_S
        is_lost = is_silent and self._cap.axes != AT_REST
        return Reading(
            axes=self._cap.axes,
            held=self._cap.is_down(self._dead_man) and not is_lost,
            buttons=self._other_buttons(),
            requests=requests,
        )

    def _other_buttons(self) -> frozenset[str]:
        """Return the numbers of the buttons that are down and mean nothing here."""
        buttons = set()
        for button in range(1, MAX_BUTTON + 1):
            if button not in (self._dead_man, self._engage) and self._cap.is_down(button):
                buttons.add(str(button))
        return frozenset(buttons)


def _is_spacemouse(description: dict[str, Any]) -> bool:
    """Return whether hidapi describes a SpaceMouse."""
    if description["vendor_id"] == LOGITECH:
        return description["product_id"] in LOGITECH_PRODUCTS
    usage = description.get("usage", 0)
    return description["vendor_id"] == VENDOR and usage in (0, MULTI_AXIS_USAGE)


def _waiting_reports(device: Any) -> Sequence[bytes]:
    """Return the reports that wait in a device of hidapi."""
    reports: list[bytes] = []
    while len(reports) < MAX_REPORTS_PER_READING:
        report = device.read(MAX_REPORT_BYTES)
        if not report:
            break
        reports.append(bytes(report))
    return reports
