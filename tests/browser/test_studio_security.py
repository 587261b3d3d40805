"""What a site that the user visits, and any other client of the studio's port, can do: nothing."""

from __future__ import annotations

import contextlib
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
import viser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import simbridge
from simbridge.bench.measuring import free_port
from simbridge.browser import studio as studio_module
from simbridge.report.guarded_viser import UnguardedServer

VERSION = f"viser-v{viser.__version__}"

# Opens a web socket as the studio's own page does, and says what came of it.
OPEN_SOCKET = """([address, version]) => new Promise((resolve) => {
    const socket = new WebSocket(address, version);
    socket.onmessage = () => resolve("served");
    socket.onerror = () => resolve("refused");
})"""


class Site(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>holiday pictures</h1>")

    def log_message(self, *arguments):
        """Print nothing."""


@pytest.fixture(scope="module")
def opened_studio():
    studio = simbridge.studio(robot="planar3r", port=free_port())
    yield studio
    studio.close()


@pytest.fixture
def site():
    """The address of a site of another origin; browsers take 127.0.0.2 for another host."""
    with ThreadingHTTPServer(("127.0.0.2", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.2:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_page_of_another_origin_gets_no_web_socket_in_a_browser(browser, site, opened_studio):
    location = urlsplit(opened_studio.url)
    page = browser.new_page()
    page.goto(site)

    def result(path):
        return page.evaluate(OPEN_SOCKET, [f"ws://{location.netloc}{path}", VERSION])

    # Neither without the token, nor if it has leaked.
    assert result("/") == "refused"
    assert result(location.path) == "refused"
    assert opened_studio.access.driver is None
    page.close()


def test_the_page_of_the_studio_itself_gets_its_web_socket_in_a_browser(browser, opened_studio):
    location = urlsplit(opened_studio.url)
    page = browser.new_page()
    page.goto(opened_studio.url)

    assert page.evaluate(OPEN_SOCKET, [f"ws://{location.netloc}{location.path}", VERSION]) == "served"
    page.close()


def test_a_client_without_the_token_gets_no_page_and_no_web_socket(opened_studio):
    location = urlsplit(opened_studio.url)
    client = http.client.HTTPConnection(location.hostname, location.port, timeout=10.0)
    with contextlib.closing(client):
        client.request("GET", "/")
        status = client.getresponse().status

    assert status == 403
    with pytest.raises(InvalidStatus):
        connect(f"ws://{location.netloc}/", subprotocols=[VERSION]).close()


def test_a_post_of_a_page_is_no_request(opened_studio):
    location = urlsplit(opened_studio.url)
    client = http.client.HTTPConnection(location.hostname, location.port, timeout=10.0)
    with contextlib.closing(client):
        client.request("POST", location.path, body="set_digital_out(0, True)\n")
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            assert client.getresponse().status >= 400


@pytest.mark.parametrize(("listen", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("0.0.0.0", "0.0.0.0")])
def test_each_start_has_a_token_of_its_own_in_its_address(listen, host):
    setup = studio_module.StudioSetup.of("planar3r", "damped-least-squares", simbridge.Options())
    first = studio_module.Studio(setup, listen=listen, port=free_port())
    second = studio_module.Studio(setup, listen=listen, port=free_port())

    assert first.url.startswith(f"http://{host}:")
    assert urlsplit(first.url).path != urlsplit(second.url).path
    assert len(urlsplit(first.url).path.strip("/")) >= 22


def test_a_studio_that_cannot_be_guarded_is_not_served(monkeypatch):
    def start_unguarded(*arguments):
        raise UnguardedServer("0")

    monkeypatch.setattr(studio_module, "GuardedViserServer", start_unguarded)
    with pytest.raises(UnguardedServer):
        simbridge.studio(robot="planar3r", port=free_port())
