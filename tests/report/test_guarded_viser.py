"""A server of viser's behind a gate, seen by a client that is no browser."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import viser
import websockets.asyncio.client
import websockets.asyncio.server
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from simbridge.report import guarded_viser
from simbridge.report.guarded_viser import GuardedViserServer, UnguardedServer, guarded_handshakes
from simbridge.report.page_gate import PageGate
from tests.patience import PATIENCE
from tests.ports import free_port

VERSION = f"viser-v{viser.__version__}"


@pytest.fixture(scope="module")
def gate():
    return PageGate()


@pytest.fixture(scope="module")
def port(gate):
    server = GuardedViserServer(gate, "127.0.0.1", free_port())
    yield server.get_port()
    server.stop()


def get(port, path, **headers):
    """The status and the body of a page."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(client):
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        return answer.status, answer.read()


def open_socket(port, path, **options):
    return connect(f"ws://127.0.0.1:{port}{path}", subprotocols=[VERSION], max_size=None, **options)


def test_page_is_at_the_token(port, gate):
    for path in (f"/{gate.token}/", f"/{gate.token}", f"/{gate.token}/?darkMode"):
        status, body = get(port, path)

        assert status == 200
        assert b"<title>Viser</title>" in body


def test_web_socket_is_at_the_token(port, gate):
    for origin in (None, f"http://127.0.0.1:{port}"):
        with open_socket(port, f"/{gate.token}", origin=origin) as connection:
            assert connection.recv(timeout=PATIENCE)


@pytest.mark.parametrize("path", ["/", "/index.html", "/guess/", "/guess"])
def test_requests_without_the_token_are_refused(port, path):
    status, body = get(port, path)
    with pytest.raises(InvalidStatus) as refused:
        open_socket(port, path).close()

    assert status == 403
    assert b"Viser" not in body
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}]
)
def test_foreign_host_or_origin_is_refused(port, gate, headers):
    status, _ = get(port, f"/{gate.token}/", **headers)

    assert status == 403


def test_web_socket_of_foreign_origin_is_refused(port, gate):
    with pytest.raises(InvalidStatus) as refused:
        open_socket(port, f"/{gate.token}", origin="http://evil.example").close()

    assert refused.value.response.status_code == 403


def test_unguarded_server_is_an_error(monkeypatch):
    # As if viser had kept a `serve` of its own: the one that is replaced is never called.
    real_serve = websockets.asyncio.server.serve

    @contextlib.contextmanager
    def handshakes_that_are_not_guarded(gate):
        assert websockets.asyncio.server.serve is real_serve
        yield threading.Event()

    monkeypatch.setattr(guarded_viser, "guarded_handshakes", handshakes_that_are_not_guarded)
    port = free_port()
    with pytest.raises(UnguardedServer) as error:
        GuardedViserServer(PageGate(), "127.0.0.1", port)

    assert error.value.version == viser.__version__
    with pytest.raises(ConnectionRefusedError):
        get(port, "/")


def test_foreign_servers_are_not_guarded():
    async def greet(connection):
        await connection.send("good morning")

    async def serve_and_call():
        with guarded_handshakes(PageGate()) as guarded:
            async with websockets.asyncio.server.serve(greet, "127.0.0.1", 0) as server:
                address = server.sockets[0].getsockname()
                async with websockets.asyncio.client.connect(
                    f"ws://127.0.0.1:{address[1]}"
                ) as connection:
                    return guarded.is_set(), await connection.recv()

    with ThreadPoolExecutor(1) as thread:
        guarded, greeting = thread.submit(asyncio.run, serve_and_call()).result()

    assert not guarded
    assert greeting == "good morning"
