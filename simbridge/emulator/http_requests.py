"""HTTP requests as clients send them: a stream of bytes, cut into requests; and answers as bytes.

Only what the clients of a Robot API need: HTTP/1.1, bodies with a Content-Length.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from simbridge.emulator.errors import ProtocolViolation

# Largest request line with its headers, and largest body, bytes.
MAX_HEAD_BYTES = 1 << 14
MAX_BODY_BYTES = 1 << 16

_HEAD_END = b"\r\n\r\n"
_REQUEST_LINE = re.compile(r"([A-Z]{1,16}) (/[^ ]*) HTTP/1\.([01])")


@dataclass(frozen=True)
class HttpRequest:
    """An HTTP request.

    Attributes:
        method: "GET", "PUT", "POST", "DELETE" or another.
        path: Path of the request, without a query.
        headers: Headers of the request, by their names in lower case.
        body: Body of the request.
        is_last: Whether the client wants the connection to end after the answer.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    is_last: bool


class RequestBuffer:
    """Bytes in, complete requests out; no I/O."""

    def __init__(self) -> None:
        self._received = bytearray()

    def receive(self, data: bytes) -> list[HttpRequest]:
        """Return the requests that are now complete.

        Raises:
            ProtocolViolation: What comes is not HTTP/1.1, or too long.
        """
        self._received += data
        requests: list[HttpRequest] = []
        while True:
            request = self._take_request()
            if request is None:
                return requests
            requests.append(request)

    def _take_request(self) -> HttpRequest | None:
        """Remove the first request from the buffer; None while it is not complete."""
        head_end = self._received.find(_HEAD_END)
        if head_end > MAX_HEAD_BYTES or (head_end < 0 and len(self._received) > MAX_HEAD_BYTES):
            raise _violation(f"its headers are longer than {MAX_HEAD_BYTES} bytes")
        if head_end < 0:
            return None

        line, *header_lines = self._received[:head_end].decode("latin-1").split("\r\n")
        request_line = _REQUEST_LINE.fullmatch(line)
        if request_line is None:
            raise _violation("it sent something else than a request of HTTP/1.1")
        headers = {}
        for header_line in header_lines:
            name, _, value = header_line.partition(":")
            headers[name.strip().lower()] = value.strip()

        begin = head_end + len(_HEAD_END)
        end = begin + _body_length(headers)
        if len(self._received) < end:
            return None
        body = bytes(self._received[begin:end])
        del self._received[:end]

        method, target, minor_version = request_line.groups()
        connection = headers.get("connection", "").lower()
        is_last = connection == "close" or (minor_version == "0" and connection != "keep-alive")
        path, _, _ = target.partition("?")
        return HttpRequest(method, path, headers, body, is_last)


def _body_length(headers: dict[str, str]) -> int:
    """Return the number of bytes of a request's body."""
    if "transfer-encoding" in headers:
        raise _violation("it sent a body without a Content-Length")
    text = headers.get("content-length", "0")
    if not text.isascii() or not text.isdigit() or int(text) > MAX_BODY_BYTES:
        raise _violation(f"its Content-Length is {text[:20]!r}, but at most {MAX_BODY_BYTES}")
    return int(text)


def _violation(reason: str) -> ProtocolViolation:
    """Return the error about a client."""
    return ProtocolViolation("Robot API", reason)


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP answer.

    Attributes:
        status: Status of the answer.
        content: An object of JSON; None for no body.
    """

    status: HTTPStatus
    content: dict[str, Any] | None = None

    def encode(self) -> bytes:
        """Return the answer as it is sent."""
        body = b"" if self.content is None else json.dumps(self.content).encode()
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body
