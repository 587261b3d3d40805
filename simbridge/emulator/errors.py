"""Errors of the emulated controller, of its clients, and of the programs that it runs."""

from __future__ import annotations

import errno
import os

from simbridge.errors import SimbridgeError


class EmulatorError(SimbridgeError, RuntimeError):
    """The emulator could not be started, or could not carry out a command of its control socket."""


class EmulatorBroken(SimbridgeError, RuntimeError):
    """The emulated controller has ended in a tick because of a bug.

    The command line prints the traceback too.

    Attributes:
        tick: The number of the tick.
    """

    def __init__(self, tick: int, cause: Exception) -> None:
        self.tick = tick
        self.__cause__ = cause
        super().__init__(
            f"The emulated controller stopped in tick {tick} because of a bug "
            f"({type(cause).__name__}: {cause}). No client is at fault: please report it, with "
            "the lines above and what the clients did beforehand."
        )


class ProtocolViolation(SimbridgeError, ValueError):
    """A client violated its protocol. It is disconnected; other clients are not.

    Attributes:
        protocol: "RTDE", "dashboard", "script", ...
        reason: A clause.
    """

    def __init__(self, protocol: str, reason: str) -> None:
        self.protocol = protocol
        self.reason = reason
        super().__init__(f"The {protocol} client was disconnected: {reason}.")


class CannotListen(SimbridgeError, OSError):
    """A port of the emulated controller cannot be opened.

    Attributes:
        host: The address of the controller.
        port: The number of the port.
        reason: The system's error number (errno.EADDRINUSE, errno.EADDRNOTAVAIL, ...).
    """

    def __init__(self, host: str, port: int, reason: int) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(
            f"The emulated controller cannot listen on {host}:{port}: {os.strerror(reason)} "
            f"({errno.errorcode.get(reason, reason)}). The ports of a controller are fixed: stop "
            "the controller or URSim that uses them, or give this one another loopback address, "
            "such as --host 127.0.0.2."
        )
        self.errno = reason


class ScriptSyntaxError(SimbridgeError, ValueError):
    """A text that is not URScript, or exceeds a limit of the emulated controller.

    Attributes:
        reason: A clause.
        line: Line of the error, counted from 1.
        column: Column of the error, counted from 1.
        unknown: The function that it calls and that does not exist, or "".
    """

    def __init__(self, reason: str, *, line: int, column: int, unknown: str = "") -> None:
        self.reason = reason
        self.line = line
        self.column = column
        self.unknown = unknown
        super().__init__(f"The script cannot be run: line {line}, column {column}: {reason}.")


class RuntimeFault(SimbridgeError, RuntimeError):
    """A URScript program attempted something invalid. It has ended; the controller continues.

    Attributes:
        reason: A sentence or a clause.
        line: Line of the script, counted from 1; 0 while unknown.
    """

    def __init__(self, reason: str, *, line: int = 0) -> None:
        self.reason = reason
        self.line = line
        super().__init__(reason)

    def __str__(self) -> str:
        if not self.line:
            return self.reason
        return f"Runtime exception in line {self.line}: {self.reason}"


class UnknownNode(SimbridgeError, ValueError):
    """A program of the pendant with a node that the emulated controller does not know.

    Attributes:
        node: The node's tag or label, or what is wrong with the file.
        file: Name of the program's file; "" while unknown.
    """

    def __init__(self, node: str, *, file: str = "") -> None:
        self.node = node
        self.file = file
        subject = file or "The program"
        super().__init__(f"{subject} cannot be run: the emulator does not know the node {node}.")
