"""Keeps web pages away from the emulator's ports.

A page of any origin can have a browser send a request to a port of this computer. Its first line is
HTTP's, but its body is whatever the page likes: lines that a dashboard, a script port or the
control socket would carry out. A browser always begins with a request line (or, for https, with a
TLS record), so a connection that begins so is closed before anything of it is carried out.
"""

from __future__ import annotations

import re

from simbridge.emulator.errors import ProtocolViolation

# Longest beginning, bytes, that may still become a request line.
MAX_REQUEST_LINE = 8192

_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
_VERSION = b"HTTP/"
# A TLS record that holds a handshake, of any version.
_TLS = b"\x16\x03"


def is_browser_request(beginning: bytes) -> bool | None:
    """Return whether a client begins with an HTTP request or a TLS handshake.

    Args:
        beginning: All bytes of the connection so far, however many.

    Returns:
        None while more bytes are needed to tell; they then contain no complete line but empty ones.
    """
    if beginning.startswith(_TLS):
        return True
    if _TLS.startswith(beginning):
        return None

    # HTTP servers skip empty lines before a request, and some clients send them.
    line, newline, _ = beginning.lstrip(b"\r\n").partition(b"\n")
    if not line:
        return None

    # GET /index.html HTTP/1.1
    method, _, target_and_version = line.partition(b" ")
    _, _, version = target_and_version.partition(b" ")
    version = version.upper()
    if _METHOD.fullmatch(method) is None:
        return False
    if version.startswith(_VERSION):
        return True

    # The version may still come.
    if newline or not _VERSION.startswith(version):
        return False
    return None


class BrowserGuard:
    """Judges one connection by its beginning.

    Args:
        port: The name of the port, for messages.
    """

    def __init__(self, port: str) -> None:
        self._port = port
        # The bytes that the client has sent; None once it is known not to be a browser.
        self._beginning: bytes | None = b""

    def check(self, data: bytes) -> None:
        """Judge what a client has sent, before it is carried out.

        Incomplete and empty lines may be passed on while it is undecided: no server acts on them.

        Raises:
            ProtocolViolation: The client is a browser, and must be disconnected.
        """
        if self._beginning is None:
            return
        self._beginning += data
        is_browser = is_browser_request(self._beginning)

        if is_browser is False:
            self._beginning = None
        elif is_browser or len(self._beginning) > MAX_REQUEST_LINE:
            reason = (
                "it sent an HTTP request or a TLS handshake, as a web browser does; "
                "nothing of it was carried out"
            )
            raise ProtocolViolation(self._port, reason)
