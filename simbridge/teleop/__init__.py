"""Inputs that people have: SpaceMouse, gamepad, keyboard of a terminal, programs on the network.

    device     device.py: what every input is, one reading at a time, and its errors
    options    options.py: how readings become motions
    inputs     spacemouse.py and gamepad.py (udev_rule.py: the rights to read them); keyboard.py
               (key_decoder.py, key_terminal.py); network.py (network_messages.py,
               datagram_exchange.py, token_file.py)
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
    from simbridge.teleop.device import Device
    from simbridge.teleop.options import TeleopOptions

# The class of every device, by its name.
DEVICES: Mapping[str, str] = {
    "spacemouse": "simbridge.teleop.spacemouse:SpaceMouse",
    "gamepad": "simbridge.teleop.gamepad:Gamepad",
    "keyboard": "simbridge.teleop.keyboard:Keyboard",
    "network": "simbridge.teleop.network:Network",
}


def open_device(name: str, options: TeleopOptions) -> AbstractContextManager[Device]:
    """Return a device, to be entered with `with`.

    Raises:
        UnknownName: There is no device of that name.
        MissingPackage: The package that reads it is not installed.
        DeviceError: The device is not there, or must not be read.
    """
    if name not in DEVICES:
        raise UnknownName("device", name, DEVICES)
    device_class = pkgutil.resolve_name(DEVICES[name])
    device: AbstractContextManager[Device] = device_class.open(options)
    return device
