"""A program connects to a server, as UR's External Control does.

It reads lines, strings and numbers, with timeouts; or there is no server.
"""

from __future__ import annotations

import math
import socket
import struct
import threading
import time

import pytest

from simbridge.emulator.sockets import SocketFunctions

PERIOD = 0.002

# What a failed read of three numbers returns. pytest.approx, because nan is not equal to itself.
NO_NUMBERS = pytest.approx([0, math.nan, math.nan, math.nan], nan_ok=True)

# A read of each kind, with a timeout of two ticks, and what it returns without a value (UR's script
# manual).
FAILED_READS = [
    ("socket_read_ascii_float", (3, "socket_0", 2 * PERIOD), NO_NUMBERS),
    ("socket_read_binary_integer", (2, "socket_0", 2 * PERIOD), [0, -1, -1]),
    ("socket_read_byte_list", (2, "socket_0", 2 * PERIOD), [0, -1, -1]),
    ("socket_read_line", ("socket_0", 2 * PERIOD), ""),
    ("socket_read_string", ("socket_0", "", "", False, 2 * PERIOD), ""),
]


@pytest.fixture
def peer():
    """A listener, and the functions of a program connected to it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sockets = SocketFunctions(PERIOD)
        assert finished(sockets.socket_open(None, "127.0.0.1", listener.getsockname()[1]))
        connection, _ = listener.accept()
        with connection:
            yield sockets, connection
        sockets.close()


def finished(function, ticks=5000):
    """Run a function to its end, a tick at a time; the wall gets a moment between ticks."""
    for _ in range(ticks):
        try:
            next(function)
        except StopIteration as stop:
            return stop.value
        time.sleep(0.0005)
    raise AssertionError("it did not end")


def test_what_is_sent_arrives(peer):
    sockets, connection = peer

    assert finished(sockets.socket_send_string(None, "get "))
    assert finished(sockets.socket_send_line(None, 42))
    assert finished(sockets.socket_send_byte(None, 255))
    assert finished(sockets.socket_send_int(None, -2))
    assert connection.recv(100) == b"get 42\n\xff" + struct.pack(">i", -2)


def test_lines_and_strings_are_read(peer):
    sockets, connection = peer
    connection.sendall(b"first\r\nsecond\n<a;b>rest")

    assert finished(sockets.socket_read_line(None)) == "first"
    assert finished(sockets.socket_read_line(None)) == "second"
    assert finished(sockets.socket_read_string(None, prefix="<", suffix=">")) == "a;b"
    assert finished(sockets.socket_read_string(None)) == "rest"


def test_escapes_in_prefix_and_suffix_are_interpreted_on_request(peer):
    sockets, connection = peer
    connection.sendall(b"\ta\n")

    assert finished(sockets.socket_read_string(None, "socket_0", "\\t", "\\n", True)) == "a"


def test_numbers_are_read_with_their_count_first(peer):
    sockets, connection = peer
    connection.sendall(struct.pack(">3i", 1, -2, 3) + b"xy" + b"(1.5, -2, 3e2)")

    assert finished(sockets.socket_read_binary_integer(None, 3)) == [3, 1, -2, 3]
    assert finished(sockets.socket_read_byte_list(None, 2)) == [2, 120, 121]
    assert finished(sockets.socket_read_ascii_float(None, 3)) == [3, 1.5, -2.0, 300.0]


def test_misfit_list_counts_as_none(peer):
    sockets, connection = peer
    connection.sendall(b"(1,2)(a,b,c)")

    assert finished(sockets.socket_read_ascii_float(None, 3)) == NO_NUMBERS
    assert finished(sockets.socket_read_ascii_float(None, 3)) == NO_NUMBERS


def test_variables_of_the_peer_are_read_and_set(peer):
    sockets, connection = peer
    connection.sendall(b"speed 7\n")

    assert finished(sockets.socket_get_var(None, "speed")) == 7
    assert finished(sockets.socket_set_var(None, "speed", 8))
    assert connection.recv(100) == b"GET speed\nSET speed 8\n"


def test_a_timeout_counts_ticks_and_returns_nothing(peer):
    sockets, _ = peer
    waiting = sockets.socket_read_line(None, "socket_0", 0.02)
    ticks = 0

    with pytest.raises(StopIteration) as stop:
        while True:
            next(waiting)
            ticks += 1
    assert stop.value.value == ""
    assert ticks == 10


@pytest.mark.parametrize(("function", "arguments", "expected"), FAILED_READS)
def test_a_timeout_returns_the_manuals_value(peer, function, arguments, expected):
    sockets, _ = peer

    assert finished(getattr(sockets, function)(None, *arguments)) == expected


@pytest.mark.parametrize(("function", "arguments", "expected"), FAILED_READS)
def test_without_a_connection_the_value_is_the_same(function, arguments, expected):
    sockets = SocketFunctions(PERIOD)

    assert finished(getattr(sockets, function)(None, *arguments)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [b"", b"other 7\n", b"speed seven\n", b"speed\n", b"speed 1 2\n"]
)
def test_a_variable_without_its_value_is_zero(peer, answer):
    sockets, connection = peer
    connection.sendall(answer)

    assert finished(sockets.socket_get_var(None, "speed")) == 0


def test_a_peer_that_hangs_up_ends_the_waiting(peer):
    sockets, connection = peer
    connection.close()

    assert finished(sockets.socket_read_line(None, "socket_0", 0.0)) == ""
    assert finished(sockets.socket_read_byte_list(None, 2, "socket_0", 0.0)) == [0, -1, -1]
    assert finished(sockets.socket_read_ascii_float(None, 3, "socket_0", 0.0)) == NO_NUMBERS
    assert finished(sockets.socket_get_var(None, "speed")) == 0


def test_a_name_is_resolved_without_delaying_a_tick(monkeypatch):
    resolved = threading.Event()

    def slow(name):
        resolved.wait(5.0)
        return {"robot.example": "127.0.0.1"}[name]

    monkeypatch.setattr(socket, "gethostbyname", slow)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sockets = SocketFunctions(PERIOD)
        opening = sockets.socket_open(None, "robot.example", listener.getsockname()[1])
        begin = time.monotonic()
        for _ in range(10):
            next(opening)
        assert time.monotonic() - begin < 2.0
        resolved.set()
        assert finished(opening) is True
        sockets.close()


@pytest.mark.parametrize("name", ["nowhere.invalid", "a\0b", "\u00fc" * 100, ""])
def test_a_host_that_is_not_found_is_a_failed_connection(monkeypatch, name):
    if name == "nowhere.invalid":
        monkeypatch.setattr(
            socket, "gethostbyname", lambda name: (_ for _ in ()).throw(socket.gaierror(name))
        )

    assert finished(SocketFunctions(PERIOD).socket_open(None, name, 9)) is False


def test_failed_connection_is_false():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    sockets = SocketFunctions(PERIOD)

    assert finished(sockets.socket_open(None, "127.0.0.1", port)) is False
    assert finished(sockets.socket_send_string(None, "x")) is False
    assert finished(sockets.socket_read_line(None)) == ""
