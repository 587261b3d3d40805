from simbridge.emulator.handle import Emulator as Emulator

__all__ = ["Emulator"]
