"""A web page's request to a port of the emulator ends the connection.

Nothing of it is carried out.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator.browser_guard import MAX_REQUEST_LINE, BrowserGuard, is_browser_request
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.handle import Emulator
from simbridge.ur.tables import CONTROL, DASHBOARD, PRIMARY, REALTIME, RTDE, SECONDARY
from tests.controllers import loopback
from tests.patience import PATIENCE

pytestmark = pytest.mark.xdist_group("emulator/test_browser_guard")

METHODS = [
    "GET",
    "POST",
    "PUT",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "DELETE",
    "CONNECT",
    "PRI",
    "get",
    "X-OWN",
]
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n\n"
# What other clients send first.
FIRST_WORDS = [
    b"power on\n",
    b"POLYSCOPEVERSION\n",
    b"load program.urp HTTP\n",
    b"popup a b HTTP/1.1\n",
    b"def f():\n",
    b"sec f():\n",
    b"set speed 0.5\n",
    b"x = 1\n",
    b'{"do": "state"}\n',
    b"\x00\x05V\x00\x02",
    b"\x00\x13O\x40\x7f\x40\x00\x00\x00\x00\x00timestamp",
    b"\npower on\n",
]
# Lines that change the speed slider, power or program of each port, as the body of a request.
BODIES = {
    CONTROL: b'{"do": "slider", "fraction": 0.25}\n',
    DASHBOARD: b"power off\n",
    PRIMARY: b"set speed 0.25\n",
    SECONDARY: b"set speed 0.25\n",
    REALTIME: b"set speed 0.25\n",
    RTDE: b"\x00\x05V\x00\x02",
}


@pytest.mark.parametrize("method", METHODS)
def test_a_request_of_any_method_is_a_browsers(method):
    assert is_browser_request(f"{method} /a?b=c HTTP/1.1\r\n".encode()) is True


@pytest.mark.parametrize("request_line", [b"\r\n\nPOST / HTTP/1.1\r\n", b"POST / http/1.1\r\n"])
def test_a_request_that_servers_would_accept_is_a_browsers(request_line):
    assert is_browser_request(request_line) is True


def test_a_tls_handshake_is_a_browsers():
    assert is_browser_request(HELLO) is True


@pytest.mark.parametrize("words", FIRST_WORDS)
def test_what_other_clients_send_first_is_not(words):
    assert is_browser_request(words) is False


@pytest.mark.parametrize("request_line", [b"POST / HTTP/1.1\r\n", HELLO])
def test_a_beginning_is_undecided_until_it_is_known(request_line):
    verdicts = [
        is_browser_request(request_line[:length]) for length in range(1, len(request_line) + 1)
    ]

    decided = [verdict for verdict in verdicts if verdict is not None]

    assert decided
    assert all(decided)
    assert verdicts[0] is None


@given(st.binary(max_size=200), st.integers(1, 20))
def test_no_complete_line_is_passed_on_before_the_verdict(data, size):
    for end in range(size, len(data) + size, size):
        if is_browser_request(data[:end]) is None:
            assert b"\n" not in data[:end].lstrip(b"\r\n")


def test_a_request_line_without_end_is_not_waited_for():
    guard = BrowserGuard("dashboard")
    guard.check(b"POST /")

    with pytest.raises(ProtocolViolation, match="dashboard"):
        guard.check(b"a" * MAX_REQUEST_LINE)


def test_only_the_beginning_is_judged():
    guard = BrowserGuard("dashboard")
    guard.check(b"robotmode\n")

    guard.check(b"POST / HTTP/1.1\n")


def is_disconnected(host: str, port: int, pieces: list[bytes]) -> bool:
    """Return whether a client that sends these pieces is disconnected."""
    deadline = time.monotonic() + PATIENCE
    with (
        socket.create_connection((host, port), timeout=PATIENCE) as client,
        contextlib.suppress(ConnectionError),
    ):
        for piece in pieces:
            client.sendall(piece)
            time.sleep(0.002)
        while client.recv(65536):
            if time.monotonic() > deadline:
                return False
    return True


@pytest.fixture(scope="module")
def emulator():
    with Emulator("ur10e", host=loopback(62), boot_time=0.05) as controller:
        yield controller


@pytest.mark.slow
@pytest.mark.parametrize("size", [10_000, 3], ids=["whole", "in pieces"])
@pytest.mark.parametrize("port", BODIES)
def test_the_lines_of_a_pages_request_are_not_carried_out(emulator, port, size):
    body = BODIES[port]
    head = f"POST / HTTP/1.1\r\nHost: {emulator.host}:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body

    closed = is_disconnected(
        emulator.host, port, [request[i : i + size] for i in range(0, len(request), size)]
    )

    state = emulator.state()

    assert closed
    assert (state["speed_slider"], state["robot_mode"]) == (1.0, "RUNNING")


def test_the_log_says_why_a_page_was_disconnected(emulator):
    assert is_disconnected(emulator.host, SECONDARY, [b"GET / HTTP/1.1\r\n\r\n"])

    expected = "secondary client was disconnected: it sent an HTTP request"
    deadline = time.monotonic() + PATIENCE
    while expected not in emulator.log and time.monotonic() < deadline:
        time.sleep(0.05)

    assert expected in emulator.log


@pytest.mark.slow
def test_other_clients_are_served_as_before(emulator):
    with socket.create_connection((emulator.host, CONTROL), timeout=PATIENCE) as client:
        client.sendall(b'{"do": "state"}\n')
        answer = json.loads(client.makefile("rb").readline())

    assert answer["ok"]
