"""The address at which the studio's page is served."""

from __future__ import annotations

import errno
import socket

from simbridge.errors import InvalidParameter, SimbridgeError


class PortInUse(SimbridgeError, OSError):
    """The studio's port is in use.

    Attributes:
        address: Address at which the studio was to listen.
        port: Port at which the studio was to listen.
    """

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        super().__init__(
            f"Port {port} of {address} is in use; choose another with --port, or stop "
            "the program that uses it."
        )


def check_port(address: str, port: int) -> None:
    """Refuse a port on which somebody listens: viser would take the next one without a word.

    Raises:
        PortInUse: The port is in use.
        InvalidParameter: The address is not one of this computer.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise PortInUse(address, port) from None
            needed = "an address of this computer and a port"
            raise InvalidParameter("address of the page", f"{address}:{port}", needed) from None


def is_loopback(address: str) -> bool:
    """Return whether only this computer reaches an address."""
    return address in ("localhost", "::1") or address.startswith("127.")
