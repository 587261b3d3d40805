"""Inputs that people have: a SpaceMouse, a gamepad, the keyboard of a terminal, and programs on the network.

    device     device.py: what every input is, one reading at a time, its errors and its options
    inputs     joysticks.py (SpaceMouse, gamepad), keyboard.py, network.py
    drive      drive.py: the one loop in which readings become calls of a live session

This module is the registry of the devices. It is quick to import.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from simbridge.errors import UnknownName

if TYPE_CHECKING:  # load NumPy and pinocchio; the command line needs only the names
    from simbridge.teleop.device import Device, TeleopOptions

DEVICES: Mapping[str, str] = {
    "spacemouse": "simbridge.teleop.joysticks:SpaceMouse",
    "gamepad": "simbridge.teleop.joysticks:Gamepad",
    "keyboard": "simbridge.teleop.keyboard:Keyboard",
    "network": "simbridge.teleop.network:Network",
}
"""Every device: its name, and its class."""


def open_device(name: str, options: TeleopOptions) -> AbstractContextManager[Device]:
    """A device, to be entered with `with`.

    Raises:
        UnknownName: There is no device of that name.
        MissingPackage: The package that reads it is not installed.
        DeviceError: It is not there, or must not be read.
    """
    if name not in DEVICES:
        raise UnknownName("device", name, DEVICES)
    opened: AbstractContextManager[Device] = pkgutil.resolve_name(DEVICES[name]).open(options)
    return opened
