"""Rules for access to the pages that simbridge serves, and to their web sockets.

A page in a browser is not the only client of a port on this computer. Every site that the user
visits may open a web socket to it, and a site whose name is made to point to 127.0.0.1 may read its
pages, too. Three rules keep them out:

- The path begins with a random token, which is in the address that the program opens and prints,
  and nowhere else.
- The Host header names this computer. A name of the attacker's that points here (DNS rebinding) is
  thereby refused.
- The Origin header, which a browser adds to each web socket, is that of the page itself.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

# 128 random bits: short enough to be typed into a phone.
TOKEN_BYTES = 16

# The name or address of a Host header, an IPv6 address in brackets, and its port.
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^\[\]:@/\s]+)(?::[0-9]{1,5})?")


def new_token() -> str:
    """Return a random token, which may stand in the path of an address."""
    return secrets.token_urlsafe(TOKEN_BYTES)


@dataclass(frozen=True)
class PageGate:
    """The rules of one server.

    Attributes:
        any_host: Whether the server may be called by any name, because it listens beyond this
            computer.
        token: The first part of the path of its address.
    """

    any_host: bool = False
    token: str = field(default_factory=new_token, repr=False)

    def refusal(self, path: str, hosts: Sequence[str], origins: Sequence[str]) -> str:
        """Return the reason why a request is refused, as a sentence; "" if it is not.

        Args:
            path: The path of the request, as it was sent.
            hosts: The values of its Host headers.
            origins: The values of its Origin headers.
        """
        if len(hosts) != 1:
            return "A request must name the host exactly once."
        host = hosts[0].lower()

        if not self.any_host and not names_this_computer(host):
            return "This server is only for this computer: open it as localhost or 127.0.0.1."

        # A browser leaves the header out where it opens a page, and never where it opens a web
        # socket.
        page_origins = (f"http://{host}", f"https://{host}")
        if any(origin.lower() not in page_origins for origin in origins):
            return "Pages from other origins have no access."

        token, _ = split_path(path)
        # Compared in constant time, so that the time of an answer tells nothing of the token.
        if not hmac.compare_digest(token.encode(errors="replace"), self.token.encode()):
            return (
                "Open the complete address that simbridge printed: its path contains the access "
                "token."
            )
        return ""


def names_this_computer(host: str) -> bool:
    """Check that a Host header is a name of the loopback interface, at any port.

    The names are localhost, 127.0.0.0/8 and [::1]. The port is that of the browser's end: over an
    SSH tunnel it is another one.
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match["name"].lower()
    if name in ("localhost", "[::1]"):
        return True
    try:
        return ipaddress.IPv4Address(name).is_loopback
    except ValueError:
        return False


def split_path(path: str) -> tuple[str, str]:
    """Return the first part of a path, without slashes, and the rest of it.

    The rest begins with a slash and keeps the query.
    """
    location, question, query = path.partition("?")
    first, _, rest = location.removeprefix("/").partition("/")
    return first, f"/{rest}{question}{query}"
