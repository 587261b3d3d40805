"""A client of PolyScope X's Robot API that only reads: HTTP requests, answered with JSON.

Source: the Robot API as UR's client library uses it. UR documents its paths on the controller
itself (/universal-robots/robot-api/docs).
"""

from __future__ import annotations

import http.client
import json
import re
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from simbridge.ur.errors import ConnectionLost
from simbridge.ur.polyscope_x import (
    CONTROL_MODE_SINCE,
    ROBOT_API_DESCRIPTION,
    ROBOT_API_PATH,
    SERIAL_NUMBER_SINCE,
)
from simbridge.ur.tables import REST

# Largest answer, bytes; the description of the API is the longest.
MAX_ANSWER_BYTES = 1 << 24
# Bytes that are read at once.
RECEIVED_BYTES = 1 << 16
# Times that an answer may name another path: some paths have moved from one version to another.
MAX_REDIRECTIONS = 3

# Numbers of a length that no version has are refused; Python reads 4300 digits at most.
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*")

ApiVersion = tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """A question of the Robot API.

    Attributes:
        path: Path of the resource, behind the base path.
        key: The name of the value in the answer.
        fact: What is asked, as messages name it.
        since: The first version of the API that answers it.
        polyscope: The first version of PolyScope X with that API, major and minor.
    """

    path: str
    key: str
    fact: str
    since: ApiVersion
    polyscope: tuple[int, int]


CONTROL_MODE = Question(
    path="/system/v1/controlmode",
    key="mode",
    fact="Local or Remote",
    since=(3, 1, 4),
    polyscope=CONTROL_MODE_SINCE,
)
SERIAL_NUMBER = Question(
    path="/system/v1/information",
    key="serialNumber",
    fact="the serial number",
    since=(5, 0, 107),
    polyscope=SERIAL_NUMBER_SINCE,
)


# The protocol, without I/O


class UnusableAnswer(ValueError):
    """An answer that is not the Robot API's, or refuses the question.

    Attributes:
        reason: What is wrong, as a clause.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def read_api_version(body: bytes) -> ApiVersion:
    """Return the version that the description of the API states.

    Args:
        body: The answer to a request for it.

    Raises:
        UnusableAnswer: The description states no version.
    """
    description = _read_object(body)
    information = description.get("info")
    text = information.get("version") if isinstance(information, dict) else None
    if not isinstance(text, str) or _VERSION.fullmatch(text) is None:
        raise UnusableAnswer("its description of the API states no version")
    return tuple(int(part) for part in text.split("."))


def read_text(body: bytes, key: str) -> str:
    """Return the text that an answer has under a key.

    Raises:
        UnusableAnswer: The answer has no such text.
    """
    text = _read_object(body).get(key)
    if not isinstance(text, str):
        raise UnusableAnswer(f"its answer has no text under {key}")
    return text


def _read_object(body: bytes) -> dict[str, Any]:
    """Return an answer as an object of JSON."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise UnusableAnswer("its answer is not an object of JSON")
    return answer


def redirected_path(location: str, host: str) -> str:
    """Return the path that an answer names instead of the one that was asked for.

    Args:
        location: The header Location.
        host: The controller; other hosts, and other protocols than HTTP, are not followed.

    Raises:
        UnusableAnswer: The answer does not name a path of this controller.
    """
    refusal = UnusableAnswer(f"it redirects to {location[:200]!r}")
    try:
        target = urlsplit(location)
    except ValueError:
        raise refusal from None
    is_here = target.hostname in (None, host) and target.scheme in ("", "http")
    if not is_here or not target.path.startswith("/"):
        raise refusal
    return f"{target.path}?{target.query}" if target.query else target.path


# The connection


class RobotApiClient:
    """A connection to a controller's Robot API. A context manager.

    Args:
        host: The controller.
        timeout: Longest time for connecting and for each answer, s.
        port: The port; a controller has 80.

    Attributes:
        version: The version of the API.

    Raises:
        ConnectionLost: Nothing listens, or what answers is not the Robot API.
    """

    def __init__(self, host: str, timeout: float = 2.0, port: int = REST) -> None:
        self._host = host
        self._port = port
        self._timeout = timeout
        self._connection = http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            self.version = self._read_version()
        except ConnectionLost:
            self.close()
            raise

    def __enter__(self) -> RobotApiClient:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def ask(self, question: Question) -> str | None:
        """Return the answer to a question; None if this version of the API has no answer.

        Raises:
            ConnectionLost: No usable answer within the timeout. Another question may be asked.
        """
        if self.version < question.since:
            return None
        try:
            body = self._get(f"{ROBOT_API_PATH}{question.path}")
            return read_text(body, question.key)
        except UnusableAnswer as error:
            raise self._lost(f"{question.path}: {error.reason}") from None
        except ConnectionLost:
            # The next question gets a new connection: on this one the answer may still come.
            self._connection.close()
            raise

    def _read_version(self) -> ApiVersion:
        """Return the version of the API."""
        body = self._get(f"{ROBOT_API_PATH}{ROBOT_API_DESCRIPTION}")
        try:
            return read_api_version(body)
        except UnusableAnswer as error:
            raise self._lost(error.reason) from None

    def _get(self, path: str) -> bytes:
        """Return the answer to a request for a path.

        Raises:
            ConnectionLost: There is no answer, or its status is not 200.
        """
        deadline = time.monotonic() + self._timeout
        for _ in range(MAX_REDIRECTIONS + 1):
            try:
                status, location, body = self._request(path, deadline)
                if status == http.HTTPStatus.OK:
                    return body
                if 300 <= status < 400 and location:
                    path = redirected_path(location, self._host)
                    continue
                raise UnusableAnswer(f"it answered with the HTTP status {status}")
            except UnusableAnswer as error:
                raise self._lost(f"{path}: {error.reason}") from None
        raise self._lost(f"{path}: it redirects again and again")

    def _request(self, path: str, deadline: float) -> tuple[int, str, bytes]:
        """Request a path, and read the answer.

        Args:
            path: The path of the resource, from the root: "/system/v1/controlmode".
            deadline: Instant by which the answer must have come, s (of the monotonic clock).

        Returns:
            The HTTP status, the header Location ("" without one), and the body.
        """
        connection = self._connection
        try:
            connection.request("GET", path, headers={"Accept": "application/json"})
            response = connection.getresponse()
            body = _read_body(response, deadline)
        except TimeoutError:
            reason = f"no answer to {path} was received within {self._timeout:g} s"
            raise self._lost(reason) from None
        except ConnectionRefusedError as error:
            raise self._lost(str(error.strerror), was_connected=False) from None
        # A host name that cannot be encoded raises UnicodeError. So does a redirection whose path
        # is not ASCII.
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise self._lost(f"{path}: {str(error) or type(error).__name__}") from None
        return response.status, response.getheader("Location", ""), body

    def _lost(self, reason: str, *, was_connected: bool = True) -> ConnectionLost:
        """Return the error about this connection; see `ConnectionLost`."""
        return ConnectionLost(self._host, self._port, reason, was_connected=was_connected)


def _read_body(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """Return the body of an answer.

    Args:
        response: The answer, whose headers were read.
        deadline: Instant by which the body must have come, s (of the monotonic clock).

    Raises:
        UnusableAnswer: The body is longer than `MAX_ANSWER_BYTES`.
        TimeoutError: The body has not come in time.
    """
    body = bytearray()
    while True:
        chunk = response.read1(RECEIVED_BYTES)
        if not chunk:
            # This closes the answer, not the connection: another request may follow.
            response.close()
            return bytes(body)
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise UnusableAnswer(f"its answer is longer than {MAX_ANSWER_BYTES} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
