from simbridge.emulator.errors import EmulatorError as EmulatorError
from simbridge.emulator.handle import Emulator as Emulator

__all__ = ["Emulator", "EmulatorError"]
