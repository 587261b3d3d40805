"""A 3Dconnexion SpaceMouse: its HID reports, and the shell that reads them through hidapi.

A report begins with its number. Translation (1) and rotation (2) are three signed 16-bit numbers each, lowest byte
first, about -350 to 350; newer devices send all six in one report of 13 bytes (1). Buttons (3) are bits. The device's
own axes are x right, y towards the operator, z down; here x is forward, y left, z up.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simbridge.teleop.device import AT_REST, Device, DeviceError, Reading, Request, TeleopOptions, optional_package

NAME = "SpaceMouse"
VENDOR = 0x256F
# Logitech sold them before, next to ordinary mice: these are their products.
_LOGITECH = 0x046D
_LOGITECH_PRODUCTS = (0xC603, 0xC605, 0xC606, 0xC621, 0xC623, 0xC625, 0xC626, 0xC627, 0xC628, 0xC629, 0xC62B)
# HID usage of a multi-axis controller, which distinguishes a SpaceMouse from a CadMouse; 0 where it is unknown.
_MULTI_AXIS = 8

FULL_SCALE = 350.0
"""Counts at full deflection."""

SILENCE = 1.0
"""A held cap is never still enough to be silent for so long, s: then its radio link is lost."""

_LONGEST_REPORT = 64
# More are not waiting at a rate of 1 kHz and one reading every 10 ms.
_REPORTS_AT_ONCE = 256

UDEV_RULE = "\n".join(
    f'SUBSYSTEM=="{subsystem}", {attribute}=="{vendor}", MODE="0660", TAG+="uaccess"'
    for vendor in ("256f", "046d")
    for subsystem, attribute in (("usb", "ATTR{idVendor}"), ("hidraw", "ATTRS{idVendor}"))
)
UDEV_FILE = "/etc/udev/rules.d/70-simbridge-spacemouse.rules"


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
    right, back, down = (max(-1.0, min(1.0, count / FULL_SCALE)) for count in struct.unpack("<3h", data))
    return -back, -right, -down


class SpaceMouse(Device):
    """A SpaceMouse. Its first button is the dead-man button, its second engages and disengages.

    Args:
        reports: Returns the reports that came in since the last call; raises OSError when the device is lost.
        close: Called at the end.
        clock: Monotonic, s.
    """

    name = NAME

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
        hid = optional_package("hid", "hidapi", "A SpaceMouse")
        found = [one for one in hid.enumerate() if _is_spacemouse(one)]
        if not found:
            raise DeviceError(NAME, "none is connected. Connect one, or its receiver, and start again.")
        device = hid.device()
        try:
            device.open_path(found[0]["path"])
        except OSError as error:
            reason = (
                f"{found[0].get('product_string') or 'it'} is connected and cannot be opened ({error}). If no other "
                f"program uses it, this user may not read it: put the lines above into {UDEV_FILE}, run `sudo udevadm "
                "control --reload`, and connect it again."
            )
            raise DeviceError(NAME, reason, UDEV_RULE) from error
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
        others = {n for n in range(1, 65) if n not in (self._dead_man, self._engage) and self._is_down(self._cap, n)}
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
