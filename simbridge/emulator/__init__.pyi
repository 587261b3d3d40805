from .errors import EmulatorError as EmulatorError
from .handle import Emulator as Emulator
