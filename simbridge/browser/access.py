"""Who may act on the studio: pages that have shown the token, and of them the one that drives."""

from __future__ import annotations

import errno
import hmac
import secrets
import socket

from simbridge.errors import InvalidParameter, SimbridgeError


class PortInUse(SimbridgeError, OSError):
    """The studio's port is in use; address, port: where it was to listen."""

    def __init__(self, address: str, port: int) -> None:
        self.address, self.port = address, port
        super().__init__(f"Port {port} of {address} is in use; choose another with --port, or end what uses it.")


def check_port(address: str, port: int) -> None:
    """Refuses a port on which somebody listens: viser would take the next one without a word.

    Raises:
        PortInUse: It is in use.
        InvalidParameter: It is no address of this computer.
    """
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise PortInUse(address, port) from None
            needed = "an address of this computer and a port"
            raise InvalidParameter("address of the page", f"{address}:{port}", needed) from None


def on_loopback(address: str) -> bool:
    """Whether only this computer reaches an address."""
    return address in ("localhost", "::1") or address.startswith("127.")


class Access:
    """The pages that are open.

    Args:
        token: Whether a page must show the token before it acts.

    Attributes:
        token: The token, to be printed in the terminal; "" where none is needed.
        driver: The page that drives; None while there is none.
        refused: How many events of pages that may not act were ignored.
    """

    def __init__(self, *, token: bool) -> None:
        self.token = secrets.token_urlsafe(9) if token else ""
        self._admitted: set[int] = set()
        self.driver: int | None = None
        self.refused = 0

    def opened(self, page: int) -> None:
        """A page was opened; where no token is needed, the first drives."""
        if not self.token:
            self._admit(page)

    def shows(self, page: int, token: str) -> bool:
        """A page shows a token; returns whether it is the right one."""
        right = hmac.compare_digest(token.strip().encode(), self.token.encode())
        if right:
            self._admit(page)
        return self._counted(right)

    def _admit(self, page: int) -> None:
        self._admitted.add(page)
        self.driver = page if self.driver is None else self.driver

    def _counted(self, allowed: bool) -> bool:
        self.refused += not allowed
        return allowed

    def closed(self, page: int) -> None:
        """A page was closed. If it drove, the next page drives only once it takes control."""
        self._admitted.discard(page)
        self.driver = None if self.driver == page else self.driver

    def admitted(self, page: int) -> bool:
        """Whether a page has shown the token, or needs none."""
        return page in self._admitted

    def takes_control(self, page: int) -> bool:
        """A page takes control; returns whether it may."""
        if page in self._admitted:
            self.driver = page
        return self._counted(page in self._admitted)

    def drives(self, page: int) -> bool:
        """Whether an event of a page counts; one that does not is counted as refused."""
        return self._counted(page == self.driver)
