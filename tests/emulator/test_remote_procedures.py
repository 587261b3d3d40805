"""Limits on the answers of a server of remote procedures, and on the time that it takes."""

from __future__ import annotations

import datetime
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from xmlrpc.client import Binary
from xmlrpc.server import SimpleXMLRPCServer

import pytest

from simbridge.emulator import remote_procedures
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.remote_procedures import MAX_ANSWER_BYTES
from tests.emulator.calls import fault_of, run
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

HOST = "127.71.1.1"


@pytest.fixture(autouse=True)
def patient_calls(monkeypatch):
    """Let no call end by its own limit while a test waits for another end of it."""
    monkeypatch.setattr(remote_procedures, "CALL_TIMEOUT_S", 2.0 * PATIENCE)


def until(controller: EmulatedController, condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        controller.tick()
        time.sleep(1e-4)
    assert condition()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (datetime.datetime(2026, 1, 1), "no values of the kind DateTime"),
        (Binary(b"x"), "no values of the kind Binary"),
        ("x" * 100_001, "more than 100000 characters"),
        ([0] * 10_001, "more than 10000 elements"),
        ([[[[0]]]], "nested more than 3 deep"),
    ],
    ids=["date", "bytes", "text", "list", "nested"],
)
def test_what_urscript_does_not_have_ends_the_program(answer, words):
    with SimpleXMLRPCServer((HOST, 0), logRequests=False) as server:
        server.register_function(lambda: answer, "f")
        threading.Thread(target=server.handle_request, daemon=True).start()
        address = f"{HOST}:{server.server_address[1]}"
        controller, messages = fault_of(f'h = rpc_factory("xmlrpc", "{address}")\nx = h.f()\n')
        until(controller, lambda: messages)

    assert words in messages[0][1]


def test_a_large_integer_is_wrapped_to_32_bits(monkeypatch):
    assert remote_procedures.from_remote(2**40 + 5) == 5
    assert remote_procedures.from_remote([2**31]) == (-(2**31),)


def drip(connection: socket.socket) -> None:
    try:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 1000000\r\n\r\n"
        )
        while True:
            connection.sendall(b"<")
            time.sleep(0.01)
    except OSError:
        pass


def calls() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "simbridge-rpc"]


@pytest.mark.parametrize(
    "ended", [False, True], ids=["answers too slowly", "the program is stopped"]
)
def test_an_endless_answer_ends_the_call(monkeypatch, ended):
    if not ended:
        monkeypatch.setattr(remote_procedures, "CALL_TIMEOUT_S", 0.3)
    with socket.create_server((HOST, 0)) as listener:
        threading.Thread(target=lambda: drip(listener.accept()[0]), daemon=True).start()
        source = f'h = rpc_factory("xmlrpc", "{HOST}:{listener.getsockname()[1]}")\nh.f()\n'
        controller, messages = fault_of(source)
        assert calls()
        if ended:
            controller.stop_program()
        else:
            until(controller, lambda: messages)
            assert "no answer within 0.3 s" in messages[0][1]
        until(controller, lambda: not calls())


@pytest.mark.parametrize("url", ["https://127.71.1.1:8000", "ftp://a", "HTTPS://a", "http://[", ""])
def test_only_http_is_taken(url):
    _, messages = fault_of(f'h = rpc_factory("xmlrpc", "{url}")\n')

    assert bool(messages) == bool(url) and all("url must be" in text for _, text, _ in messages)


@pytest.mark.parametrize("name", ["__class__", "_ServerProxy__request", "_x"])
def test_names_of_python_are_not_reachable(name):
    _, messages = fault_of(f'h = rpc_factory("xmlrpc", "127.71.1.1:9")\nh.{name}()\n')

    assert "no remote procedure" in messages[0][1]


def test_a_remote_procedure_gets_and_returns_urscripts_values():
    asked = []
    with SimpleXMLRPCServer(("127.0.0.118", 0), logRequests=False, allow_none=True) as server:
        server.register_function(
            lambda *values: asked.append(values) or {**values[0], "x": 2.5}, "shift"
        )
        server.timeout = 10
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.118:{server.server_address[1]}"
        controller = run(
            f'h = rpc_factory("xmlrpc", "{url}")\n'
            "x = h.shift(p[1, 2, 3, 0, 0, 0], [1, True], struct(a=1))\n"
            "write_output_float_register(0, x[0] + x[1])\nsleep(100)\n",
            1,
        )
        thread.join()
        deadline = time.monotonic() + PATIENCE
        while not controller.state.output_double[0] and time.monotonic() < deadline:
            controller.tick()

    assert controller.state.output_double[0] == 4.5
    assert asked == [
        ({"x": 1.0, "y": 2.0, "z": 3.0, "rx": 0.0, "ry": 0.0, "rz": 0.0}, [1, True], {"a": 1})
    ]


def test_a_long_answer_ends_the_program():
    with SimpleXMLRPCServer(("127.0.0.118", 0), logRequests=False) as server:
        server.register_function(lambda: "x" * (MAX_ANSWER_BYTES + 1), "f")
        server.timeout = 10
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        controller, messages = fault_of(
            f'h = rpc_factory("xmlrpc", "127.0.0.118:{server.server_address[1]}")\nh.f()\n'
        )
        thread.join()
        deadline = time.monotonic() + PATIENCE
        while not messages and time.monotonic() < deadline:
            controller.tick()

    assert f"the answer has more than {MAX_ANSWER_BYTES} bytes" in messages[0][1]


def test_an_unreachable_server_ends_the_program():
    controller, messages = fault_of('h = rpc_factory("xmlrpc", "127.0.0.118:9")\nh.f()\n')
    deadline = time.monotonic() + PATIENCE
    while not messages and time.monotonic() < deadline:
        controller.tick()

    assert "The remote procedure f of http://127.0.0.118:9 failed" in messages[0][1]
