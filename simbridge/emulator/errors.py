"""Errors of the emulated controller, of its clients, and of the programs that it runs."""

from __future__ import annotations

import errno
import os

from simbridge.errors import SimbridgeError


class EmulatorError(SimbridgeError, RuntimeError):
    """The emulator could not be started, or could not carry out a command of its control socket."""


class EmulatorBroken(SimbridgeError, RuntimeError):
    """The emulated controller has ended in a tick because of a bug. The command line prints the traceback too."""

    def __init__(self, tick: int, cause: Exception) -> None:
        self.tick = tick
        self.__cause__ = cause
        super().__init__(
            f"The emulated controller has ended in tick {tick} because of a bug "
            f"({type(cause).__name__}: {cause}). No client is at fault: please report it, with the lines above and "
            f"what the clients did before."
        )


class ProtocolViolation(SimbridgeError, ValueError):
    """A client violated its protocol ("RTDE", "dashboard" or "script"). It is disconnected; other clients are not."""

    def __init__(self, protocol: str, reason: str) -> None:
        self.protocol, self.reason = protocol, reason
        super().__init__(f"The {protocol} client was disconnected: {reason}.")


class CannotListen(SimbridgeError, OSError):
    """A port of the emulated controller cannot be opened.

    Attributes:
        reason: The system's error number (errno.EADDRINUSE, errno.EADDRNOTAVAIL, ...).
    """

    def __init__(self, host: str, port: int, reason: int) -> None:
        self.host, self.port, self.reason = host, port, reason
        super().__init__(
            f"The emulated controller cannot listen on {host}:{port}: {os.strerror(reason)} "
            f"({errno.errorcode.get(reason, reason)}). The ports of a controller are fixed: stop the controller or "
            f"URSim that uses them, or give this one another loopback address, such as --host 127.0.0.2."
        )
        self.errno = reason


class ScriptSyntaxError(SimbridgeError, ValueError):
    """A text that is not URScript, or exceeds a limit of the emulated controller.

    Attributes:
        line, column: Place of the error, counted from 1.
        unknown: The function that it calls and that does not exist, or "".
    """

    def __init__(self, reason: str, *, line: int, column: int, unknown: str = "") -> None:
        self.reason, self.line, self.column, self.unknown = reason, line, column, unknown
        super().__init__(f"The script cannot be run: line {line}, column {column}: {reason}.")


class RuntimeFault(SimbridgeError, RuntimeError):
    """A URScript program attempted something invalid. The program has ended; the controller continues.

    Attributes:
        line: In the script, counted from 1; 0 while unknown.
    """

    def __init__(self, reason: str, *, line: int = 0) -> None:
        self.reason, self.line = reason, line
        super().__init__(reason)

    def __str__(self) -> str:
        return f"Runtime exception in line {self.line}: {self.reason}" if self.line else self.reason


class UnknownNode(SimbridgeError, ValueError):
    """A program of the pendant that the emulated controller cannot run, for it does not know a node of it."""

    def __init__(self, file: str, node: str) -> None:
        self.file, self.node = file, node
        super().__init__(f"{file} cannot be run: the emulator does not know the node {node}.")
