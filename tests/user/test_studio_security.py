"""Neither a site that the user visits nor another client of the studio's port can do anything."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import msgspec
import pytest
import viser
import zstandard
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import simbridge
from simbridge.browser import studio as studio_module
from simbridge.report.guarded_viser import UnguardedServer
from tests.chromium import patient_context
from tests.patience import PATIENCE
from tests.ports import free_port

VERSION = f"viser-v{viser.__version__}"

CAMERA = {
    "wxyz": [1, 0, 0, 0],
    "position": [1, 1, 1],
    "fov": 1.0,
    "near": 0.1,
    "far": 100.0,
    "image_height": 500,
    "image_width": 500,
    "look_at": [0, 0, 0],
    "up_direction": [0, 0, 1],
}

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


def test_another_origin_gets_no_web_socket(browser, site, opened_studio):
    location = urlsplit(opened_studio.url)
    page = patient_context(browser).new_page()
    page.goto(site)

    def open_socket(path):
        return page.evaluate(OPEN_SOCKET, [f"ws://{location.netloc}{path}", VERSION])

    # Neither without the token, nor if it has leaked.
    without_token = open_socket("/")
    with_token = open_socket(location.path)
    page.context.close()

    assert without_token == "refused"
    assert with_token == "refused"
    assert opened_studio.access.driver is None


def test_the_page_itself_gets_its_web_socket(browser, opened_studio):
    location = urlsplit(opened_studio.url)
    page = patient_context(browser).new_page()
    page.goto(opened_studio.url)

    address = f"ws://{location.netloc}{location.path}"
    answer = page.evaluate(OPEN_SOCKET, [address, VERSION])
    page.context.close()

    assert answer == "served"


def test_without_the_token_there_is_nothing(opened_studio):
    location = urlsplit(opened_studio.url)
    client = http.client.HTTPConnection(location.hostname, location.port, timeout=PATIENCE)
    with contextlib.closing(client):
        client.request("GET", "/")
        status = client.getresponse().status

    assert status == 403
    with pytest.raises(InvalidStatus):
        connect(f"ws://{location.netloc}/", subprotocols=[VERSION]).close()


def test_a_post_of_a_page_is_no_request(opened_studio):
    location = urlsplit(opened_studio.url)
    client = http.client.HTTPConnection(location.hostname, location.port, timeout=PATIENCE)
    with contextlib.closing(client):
        client.request("POST", location.path, body="set_digital_out(0, True)\n")
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            assert client.getresponse().status >= 400


class BareClient:
    """A client of a studio's web socket that is no browser, with the token."""

    def __init__(self, url):
        location = urlsplit(url)
        self.socket = connect(
            f"ws://{location.netloc}{location.path}", subprotocols=[VERSION], max_size=None
        )
        self.controls = {}
        self.send("ViewerCameraMessage", **CAMERA)

    def send(self, kind, **fields):
        self.socket.send(msgspec.msgpack.encode({"type": kind, **fields}))

    def find(self, label):
        """The control with a label, once the studio has sent it."""
        while label not in self.controls:
            frame = self.socket.recv(timeout=PATIENCE)
            size = int.from_bytes(frame[8:16], "little")
            content = zstandard.ZstdDecompressor().decompress(
                frame[16 : 16 + size], max_output_size=int.from_bytes(frame[:8], "little")
            )
            for message in msgspec.msgpack.decode(content)["messages"]:
                if "props" in message and "uuid" in message:
                    self.controls[message["props"].get("label")] = message["uuid"]
        return self.controls[label]

    def change(self, label, **properties):
        self.send("GuiUpdateMessage", uuid=self.find(label), updates=properties)


@pytest.fixture
def bare_client(opened_studio):
    client = BareClient(opened_studio.url)
    client.find("dark")
    yield client
    client.socket.close()
    wait_for(lambda: not opened_studio._pages, "the page has left")


def wait_for(reached, event):
    end = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < end, event
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("scenario", "/tmp/evil.py"),
        ("solver", "os:system"),
        ("speed, %", 500),
        ("servo gain", float("nan")),
        ("position, m", [float("nan")] * 3),
        pytest.param("link lengths, m", "1" * 100_000, id="a long text"),
        ("motion", "Exit"),
    ],
)
def test_a_value_that_is_not_offered_is_refused(bare_client, opened_studio, label, value):
    workspace = opened_studio.workspace
    setup = workspace.setup
    scenario = workspace.playback.scenario
    speed = workspace.arms.speed
    goal = workspace.goal.copy()
    refused = opened_studio.access.refused

    bare_client.change(label, value=value)
    wait_for(lambda: opened_studio.access.refused > refused, "the event is refused")

    assert workspace.setup is setup
    assert workspace.playback.scenario == scenario
    assert workspace.arms.speed == speed
    assert workspace.goal == goal


@pytest.mark.parametrize(
    "fields",
    [
        {"position": [float("nan")] * 3, "wxyz": [1.0, 0.0, 0.0, 0.0]},
        {"position": [0.5] * 3, "wxyz": [0.0] * 4},
    ],
)
def test_a_transform_that_is_none_is_refused(bare_client, opened_studio, fields):
    refused = opened_studio.access.refused
    owner = str(opened_studio.access.driver)

    bare_client.send("TransformControlsUpdateMessage", name="/goal", owner=owner, **fields)
    wait_for(lambda: opened_studio.access.refused > refused, "the event is refused")


@pytest.mark.parametrize(
    ("listen", "host"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("0.0.0.0", "0.0.0.0")]
)
def test_each_start_has_another_token(listen, host):
    setup = studio_module.StudioSetup.from_options(
        "planar3r", "damped-least-squares", simbridge.Options()
    )
    first = studio_module.Studio(setup, listen=listen, port=free_port())
    second = studio_module.Studio(setup, listen=listen, port=free_port())

    assert first.url.startswith(f"http://{host}:")
    assert urlsplit(first.url).path != urlsplit(second.url).path
    assert len(urlsplit(first.url).path.strip("/")) >= 22


def test_an_unguarded_studio_is_not_served(monkeypatch):
    def start_unguarded(*arguments):
        raise UnguardedServer("0")

    monkeypatch.setattr(studio_module, "GuardedViserServer", start_unguarded)

    with pytest.raises(UnguardedServer):
        simbridge.studio(robot="planar3r", port=free_port())
