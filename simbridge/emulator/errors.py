"""What can be wrong with the emulated controller, its clients, and the programs that it runs."""

from __future__ import annotations

import errno
import os

from simbridge.errors import SimbridgeError


class EmulatorError(SimbridgeError, RuntimeError):
    """The emulator could not be started, or could not do what its control socket was asked."""


class EmulatorBroken(SimbridgeError, RuntimeError):
    """The emulated controller has ended because of a mistake of its own. The command line tells it with its traceback.

    Attributes:
        tick: The last tick that it began.
    """

    def __init__(self, tick: int, cause: Exception) -> None:
        self.tick = tick
        self.__cause__ = cause
        super().__init__(
            f"The emulated controller has ended in tick {tick} because of a mistake of its own "
            f"({type(cause).__name__}: {cause}). This is no fault of its clients': please report it, with the lines "
            f"above and what they did before."
        )


class ProtocolViolation(SimbridgeError, ValueError):
    """A client of the emulated controller sent what its protocol does not allow. It is disconnected; nobody else is.

    Attributes:
        protocol: "RTDE", "dashboard" or "script".
        reason: What is wrong, as a sentence.
    """

    def __init__(self, protocol: str, reason: str) -> None:
        self.protocol = protocol
        self.reason = reason
        super().__init__(f"The {protocol} client was disconnected: {reason}.")


class CannotListen(SimbridgeError, OSError):
    """A port of the emulated controller cannot be opened.

    Attributes:
        host: The address.
        port: The port.
        reason: The system's error number (errno.EADDRINUSE, errno.EADDRNOTAVAIL, ...).
    """

    def __init__(self, host: str, port: int, reason: int) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(
            f"The emulated controller cannot listen on {host}:{port}: {os.strerror(reason)} "
            f"({errno.errorcode.get(reason, reason)}). The ports of a controller are fixed: stop the controller or "
            f"URSim that uses them, or give this one another loopback address, such as --host 127.0.0.2."
        )
        self.errno = reason


class ScriptSyntaxError(SimbridgeError, ValueError):
    """A text that is not URScript, or more than the emulated controller takes.

    Attributes:
        line: The line at fault, counted from 1.
        column: The column at fault, counted from 1.
        reason: What is wrong.
    """

    def __init__(self, reason: str, *, line: int, column: int) -> None:
        self.reason = reason
        self.line = line
        self.column = column
        super().__init__(f"The script cannot be run: line {line}, column {column}: {reason}.")


class RuntimeFault(SimbridgeError, RuntimeError):
    """A URScript program that did what cannot be done. The program has ended; the controller goes on.

    Attributes:
        reason: What it did, as a sentence.
        line: The script's line, counted from 1, or 0 until it is known.
    """

    def __init__(self, reason: str, *, line: int = 0) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason)

    def __str__(self) -> str:
        return f"Runtime exception in line {self.line}: {self.reason}" if self.line else self.reason
