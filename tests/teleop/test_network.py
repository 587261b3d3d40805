"""The network input through a UDP socket on loopback: who drives, what is dropped, what stops."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from simbridge.errors import SimbridgeError
from simbridge.sessions.causes import LiveCause
from simbridge.teleop.datagram_exchange import MAX_SILENCE_S
from simbridge.teleop.device import DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.network import Network
from simbridge.teleop.options import LOOPBACK, TeleopOptions
from tests.patience import PATIENCE
from tests.teleop.fake_session import Clock, FakeSession

TOKEN = "a token of the user's"
DOCS = Path(__file__).parents[2] / "docs/teleop"
# A velocity of the TCP, m/s and rad/s.
UP = [0.0, 0.0, 0.02, 0.0, 0.0, 0.0]


class Client:
    """A client of a server, in the same thread: what it sends is there at once."""

    def __init__(self, address, name="vision", token=TOKEN):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.socket.settimeout(5.0)
        self.name = name
        self.token = token
        self.seq = 0

    def send(self, kind, **fields):
        """Send a message, with the next number."""
        self.seq += 1
        message = {"type": kind, "client": self.name, "seq": self.seq, "token": self.token}
        self.socket.send(json.dumps(message | fields).encode())

    def reply(self):
        """Wait for the next reply."""
        return json.loads(self.socket.recv(8192))

    def replies(self):
        """Return all that have come."""
        self.socket.settimeout(0.0)
        replies = []
        try:
            while True:
                replies.append(self.reply())
        except BlockingIOError:
            return replies
        finally:
            self.socket.settimeout(5.0)


class Server:
    """A session with its network input, advanced by hand."""

    def __init__(self, token=TOKEN):
        self.session = FakeSession()
        self.clock = Clock()
        self.clients = []
        options = TeleopOptions(token=token, port=0)
        self.device = Network.open(options)
        self.device._clock = self.clock
        self.driver = Driver(self.session, self.device, options, clock=self.clock)

    def client(self, *arguments, **more):
        """Make a client, which is closed with the server."""
        self.clients.append(Client(self.device.address, *arguments, **more))
        return self.clients[-1]

    def tick(self):
        """Act on what has come."""
        self.driver.tick()

    def ask(self, client, kind, **fields):
        """Let a client send a message; returns its reply."""
        client.replies()
        client.send(kind, **fields)
        self.tick()
        return client.reply()

    def driving_client(self, *arguments):
        """Make a client that drives; returns it, and the number of its engagement."""
        client = self.client(*arguments)
        return client, self.ask(client, "engage")["engagement"]

    @property
    def dropped(self):
        return dict(self.device.exchange.dropped)

    @property
    def calls(self):
        """The names of the session's calls."""
        return [call[0] for call in self.session.calls]

    def close(self):
        with self.device:
            for client in self.clients:
                client.socket.close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def test_a_client_engages_and_drives(server):
    client, engagement = server.driving_client()

    reply = server.ask(client, "twist", values=UP, frame="tool", engagement=engagement)

    assert reply["ok"]
    assert reply["driver"] == "vision"
    assert reply["state"] == "engaged"
    assert reply["engagement"] == engagement
    assert reply["tool"] == pytest.approx([0.5, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0])
    (twist,) = server.session.of("twist")
    assert list(twist[1]) == UP
    assert twist[2] == "tool"


def test_each_input_reaches_the_session_once(server):
    client, engagement = server.driving_client()
    pose = [0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]

    client.send("pose", values=pose, relative=True, engagement=engagement)
    client.send("pose", values=pose, engagement=engagement)
    client.send("jog", values=[0.1] * 6, engagement=engagement)
    client.send("joints", values=[0.2] * 6, engagement=engagement)
    for _ in range(3):
        server.tick()

    assert server.session.motions == [
        ("pose", tuple(pose), True),
        ("pose", tuple(pose), False),
        ("jog", (0.1,) * 6),
        ("joints", (0.2,) * 6),
    ]


def test_motions_of_an_earlier_engagement_are_dropped(server):
    """Not even one that is still under way while the arm engages moves it."""
    client, first = server.driving_client()
    server.ask(client, "disengage")

    def engage():
        client.send("twist", values=UP, engagement=first)
        server.session.status.state = "engaged"

    server.session.engage = engage  # type: ignore[method-assign]
    client.send("twist", values=UP, engagement=first)
    client.send("engage")
    client.send("twist", values=UP, engagement=first)
    for _ in range(3):
        server.tick()

    assert server.session.motions == []
    assert server.dropped == {"engagement": 3}
    replies = client.replies()
    assert [reply["ok"] for reply in replies] == [False, True, False, False]

    # The right number makes it move.
    assert server.ask(client, "twist", values=UP, engagement=replies[1]["engagement"])["ok"]
    assert len(server.session.motions) == 1


def test_a_second_client_is_refused_by_name(server):
    _, engagement = server.driving_client()
    second = server.client("joystick")

    replies = [
        server.ask(second, "engage"),
        server.ask(second, "twist", values=UP, engagement=engagement),
        server.ask(second, "disengage"),
        server.ask(second, "button", button="grip", pressed=True),
    ]

    for reply in replies:
        assert not reply["ok"]
        assert reply["driver"] == "vision"
        assert reply["error"].startswith("Refused: vision at 127.0.0.1:")
        assert reply["error"].endswith(" is driving.")
    assert server.session.of("twist", "disengage", "note") == []
    assert server.dropped == {"driver": 4}


def test_a_second_client_may_look(server):
    server.driving_client()

    assert server.ask(server.client("joystick"), "status")["ok"]


def test_a_client_of_the_same_name_is_refused(server):
    _, engagement = server.driving_client()
    second = server.client()

    assert not server.ask(second, "twist", values=UP, engagement=engagement)["ok"]


@pytest.mark.parametrize("kind", ["of the driver", "of another", "late", "bare"])
def test_a_stop_ends_the_engagement(server, kind):
    client, engagement = server.driving_client()
    sender = server.client("button-box") if kind == "of another" else client
    if kind == "late":
        sender.seq = -1

    if kind == "bare":
        sender.socket.send(json.dumps({"type": "halt", "token": TOKEN}).encode())
    else:
        sender.send("halt")
    # What the driver sends on is of no engagement.
    client.seq = 100
    client.send("twist", values=UP, engagement=engagement)
    server.tick()

    assert server.calls == ["engage", "halt", "disengage"]
    assert server.ask(client, "engage")["ok"]


def test_a_stop_comes_before_motions(server):
    client, engagement = server.driving_client()

    client.send("twist", values=UP, engagement=engagement)
    server.client("button-box").send("halt")
    server.tick()

    assert server.session.motions == []


def test_a_stop_while_engaging_acts_afterwards(server):
    client = server.client()
    box = server.client("button-box")
    engage = server.session.engage
    server.session.engage = lambda: (box.send("halt"), engage())  # type: ignore[method-assign]

    client.send("engage")
    for _ in range(3):
        server.tick()

    assert server.calls == ["engage", "halt", "disengage"]


def test_a_stop_needs_the_token(server):
    server.driving_client()
    thief = server.client("thief", "guessed token")

    reply = server.ask(thief, "halt")

    assert reply["error"] == "The token is wrong."
    assert server.session.of("halt") == []


def test_without_the_token_nothing_is_told(server):
    thief = server.client("thief", "")

    reply = server.ask(thief, "engage")

    assert reply == {"ok": False, "client": "thief", "seq": 1, "error": "The token is wrong."}
    assert server.session.calls == []
    assert server.dropped == {"token": 1}


def test_datagrams_out_of_order_are_dropped(server):
    client, engagement = server.driving_client()

    for seq in (10, 12, 11, 12, 13):
        client.seq = seq - 1
        client.send("twist", values=[0.001 * seq, 0, 0, 0, 0, 0], engagement=engagement)
        server.tick()

    speeds = [call[1][0] for call in server.session.of("twist")]
    assert [round(1000.0 * speed) for speed in speeds] == [10, 12, 13]
    assert server.dropped == {"order": 2}
    assert "seq 11 came after 12" in client.replies()[2]["error"]


def test_a_silent_client_can_be_replaced(server):
    first, engagement = server.driving_client()
    second = server.client("joystick")

    server.clock.now += 0.9 * MAX_SILENCE_S
    early = server.ask(second, "engage")
    server.clock.now += 0.2 * MAX_SILENCE_S
    late = server.ask(second, "engage")

    assert not early["ok"]
    assert late["ok"]
    assert late["driver"] == "joystick"
    assert server.calls == ["engage", "disengage", "engage"]
    assert not server.ask(first, "twist", values=UP, engagement=engagement)["ok"]


def test_a_slow_engagement_is_not_replaced(server):
    client = server.client()
    second = server.client("joystick")
    engage = server.session.engage

    def engage_slowly():
        server.clock.now += 10.0 * MAX_SILENCE_S
        second.send("engage")
        engage()

    server.session.engage = engage_slowly  # type: ignore[method-assign]

    reply = server.ask(client, "engage")
    server.tick()

    assert reply["driver"] == "vision"
    assert "Refused: vision" in second.reply()["error"]


def test_a_failed_engagement_leaves_nobody_driving(server):
    server.session.refuses = SimbridgeError("The arm is not powered on.")

    reply = server.ask(server.client(), "engage")

    assert not reply["ok"]
    assert reply["error"] == "The arm is not powered on."
    assert reply["driver"] == ""
    server.session.refuses = None
    assert server.ask(server.client("joystick"), "engage")["ok"]


def test_an_ended_session_ends_the_engagement(server):
    client, engagement = server.driving_client()

    server.session.status.state = "idle"
    status = server.ask(client, "status")
    server.session.status.state = "engaged"
    motion = server.ask(client, "twist", values=UP, engagement=engagement)

    assert status["engagement"] == 0
    assert not motion["ok"]


def test_a_refusal_of_the_session_is_answered(server):
    client, engagement = server.driving_client()

    reply = server.ask(client, "jog", values=[0.1] * 7, engagement=engagement)

    assert not reply["ok"]
    assert "shape (6,)" in reply["error"]
    assert server.dropped == {"value": 1}


def test_buttons_of_a_client_are_noted(server):
    client, _ = server.driving_client()

    server.ask(client, "button", button="grip", pressed=True)
    server.ask(client, "disengage")
    server.tick()

    assert [call[2] for call in server.session.of("note")] == [
        {"button": "grip", "pressed": True},
        {"button": "grip", "pressed": False},
    ]


def test_replies_carry_the_causes(server):
    client, _ = server.driving_client()
    server.session.status.causes = (LiveCause.of("joint_velocity", "wrist_3_joint", 0.93),)
    server.session.status.speed_factor = 0.4

    reply = server.ask(client, "status")

    assert reply["causes"] == [
        {
            "kind": "joint_velocity",
            "subject": "wrist_3_joint",
            "value": 0.93,
            "unit": "",
            "text": "joint_velocity wrist_3 0.93",
        }
    ]
    assert reply["speed_factor"] == 0.4


def _twist(values, more=b""):
    """A twist as JSON, with more fields."""
    head = b'{"type":"twist","client":"a","seq":1,"engagement":1,"values":'
    return head + values + more + b"}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"null",
        b"\xff",
        b"[" * 2000,
        b'{"a":' * 400,
        b"x" * 60000,
        b'{"type":"walk","client":"a","seq":1}',
        b'{"type":"engage","client":"\\u001b[2J","seq":1}',
        b'{"type":"engage","client":"a","seq":-1}',
        _twist(b"[1,2,3]"),
        _twist(b"[1,2,3,4,5,NaN]"),
        _twist(b"[1,2,3,4,5,1e999]"),
        _twist(b"[1,2,3,4,5,6]", b',"frame":"world"'),
        _twist(b"[1,2,3,4,5,6]", b',"speed":2'),
    ],
    ids=range(15),
)
def test_a_bad_datagram_is_answered(server, data):
    client = server.client()

    client.socket.send(data)
    server.tick()
    reply = client.reply()

    assert not reply["ok"]
    assert reply["error"].startswith("Invalid message: ")
    assert set(reply) == {"ok", "client", "seq", "error"}
    assert server.dropped == {"malformed": 1}
    assert server.ask(client, "engage")["ok"]


def test_a_client_that_has_gone_disturbs_no_one(server):
    gone = server.client("gone")

    gone.send("status")
    gone.socket.close()
    for _ in range(3):
        server.tick()

    assert server.ask(server.client(), "engage")["ok"]


def test_without_a_token_it_listens_on_loopback():
    server = Server(token="")

    assert server.device.address[0] == LOOPBACK
    assert server.ask(server.client(token=""), "engage")["ok"]
    assert not server.ask(server.client(token="any"), "engage")["ok"]
    server.close()


def test_a_port_in_use_is_one_sentence(server):
    port = server.device.address[1]

    with pytest.raises(DeviceError, match=rf"network: UDP port {port} of 127\.0\.0\.1 cannot be"):
        Network.open(TeleopOptions(port=port))


@pytest.fixture
def served():
    """A server with a loop of its own, on any port, without a token."""
    server = Server(token="")
    server.device._clock = time.monotonic
    ended = threading.Event()

    def serve():
        while not ended.is_set():
            server.tick()
            time.sleep(0.005)

    loop = threading.Thread(target=serve)
    loop.start()
    yield server
    ended.set()
    loop.join()
    server.close()


def assert_moved_up_and_down(server):
    """Check what a client example does: it engages, moves up and down, and disengages."""
    end = time.monotonic() + PATIENCE
    while not server.session.of("disengage") and time.monotonic() < end:
        time.sleep(0.01)

    assert server.calls[0] == "engage"
    assert server.calls[-1] == "disengage"
    assert set(server.calls[1:-1]) == {"twist"}
    speeds = [call[1][2] for call in server.session.of("twist")]
    assert max(speeds) > 0.0 > min(speeds)


def test_the_client_in_python_drives(served, monkeypatch):
    spec = importlib.util.spec_from_file_location("client", DOCS / "client.py")
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    host, port = served.device.address
    monkeypatch.setattr(client, "MOTION_S", 0.3)
    monkeypatch.setattr(client.sys, "argv", ["client.py", f"{host}:{port}"])

    status = client.main()

    assert status == 0
    assert_moved_up_and_down(served)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_client_in_cpp_drives(served, tmp_path):
    source = (DOCS / "client.cpp").read_text().replace("kSeconds = 4.0", "kSeconds = 0.3")
    (tmp_path / "client.cpp").write_text(source)
    compiler = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", "client", "client.cpp"]
    subprocess.run(compiler, cwd=tmp_path, check=True)
    host, port = served.device.address

    subprocess.run([tmp_path / "client", host, str(port)], check=True, timeout=PATIENCE)

    assert_moved_up_and_down(served)
