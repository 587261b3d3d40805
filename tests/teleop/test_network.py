"""The network input, mostly through a real UDP socket on loopback: who drives, what is dropped, what stops the arm."""

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
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.teleop.datagram_exchange import MAX_SILENCE_S, DatagramExchange
from simbridge.teleop.device import DeviceError
from simbridge.teleop.drive import Driver
from simbridge.teleop.network import Network
from simbridge.teleop.network_messages import MAX_DATAGRAM_BYTES, parse
from simbridge.teleop.options import LOOPBACK, TeleopOptions
from tests.teleop.fake_session import Clock, FakeSession

TOKEN = "a token of the user's"
DOCS = Path(__file__).parents[2] / "docs/teleop"
UP = [0.0, 0.0, 0.02, 0.0, 0.0, 0.0]


class Client:
    """A client of a server, in the same thread: what it sends is there at once."""

    def __init__(self, address, name="vision", token=TOKEN):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.socket.settimeout(5.0)
        self.name, self.token, self.seq = name, token, 0

    def send(self, kind, **fields):
        self.seq += 1
        message = {
            "type": kind,
            "client": self.name,
            "seq": self.seq,
            "token": self.token,
            **fields,
        }
        self.socket.send(json.dumps(message).encode())

    def reply(self):
        return json.loads(self.socket.recv(8192))

    def replies(self):
        """All that have come."""
        self.socket.settimeout(0.0)
        found = []
        try:
            while True:
                found.append(self.reply())
        except BlockingIOError:
            return found
        finally:
            self.socket.settimeout(5.0)


class Server:
    """A session with its network input, advanced by hand."""

    def __init__(self, token=TOKEN):
        self.session, self.clock, self.clients = FakeSession(), Clock(), []
        options = TeleopOptions(token=token, port=0)
        self.device = Network.open(options)
        self.device._clock = self.clock
        self.driver = Driver(self.session, self.device, options, clock=self.clock)

    def client(self, *arguments, **more):
        self.clients.append(Client(self.device.address, *arguments, **more))
        return self.clients[-1]

    def tick(self):
        self.driver.tick()

    def ask(self, client, kind, **fields):
        client.replies()
        client.send(kind, **fields)
        self.tick()
        return client.reply()

    def driving(self, *arguments):
        """A client that drives, and the number of its engagement."""
        client = self.client(*arguments)
        return client, self.ask(client, "engage")["engagement"]

    @property
    def dropped(self):
        return dict(self.device.exchange.dropped)

    def close(self):
        with self.device:
            for client in self.clients:
                client.socket.close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


def test_a_client_engages_and_drives(server):
    client, engagement = server.driving()
    reply = server.ask(client, "twist", values=UP, frame="tool", engagement=engagement)
    assert (
        reply["ok"]
        and reply["driver"] == "vision"
        and reply["state"] == "engaged"
        and reply["engagement"] == engagement
    )
    assert reply["tool"] == pytest.approx([0.5, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0])
    (twist,) = server.session.of("twist")
    assert list(twist[1]) == UP and twist[2] == "tool"


def test_each_input_reaches_the_session_once_and_as_it_was_given(server):
    client, engagement = server.driving()
    pose = [0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0]
    client.send("pose", values=pose, relative=True, engagement=engagement)
    client.send("pose", values=pose, engagement=engagement)
    client.send("jog", values=[0.1] * 6, engagement=engagement)
    client.send("joints", values=[0.2] * 6, engagement=engagement)
    for _ in range(3):
        server.tick()
    assert server.session.motions == [
        ("pose", tuple(pose), True), ("pose", tuple(pose), False), ("jog", (0.1,) * 6), ("joints", (0.2,) * 6),
    ]  # fmt: skip


def test_what_was_sent_before_the_engagement_never_moves_the_arm_after_it(server):
    """Not even what is still under way while the arm engages, or comes from an earlier engagement."""
    client, first = server.driving()
    server.ask(client, "disengage")
    client.send("twist", values=UP, engagement=first)
    client.send("engage")
    client.send("twist", values=UP, engagement=first)
    server.session.engage = lambda: (  # type: ignore[method-assign]
        client.send("twist", values=UP, engagement=first), setattr(server.session.status, "state", "engaged"),
    )  # fmt: skip
    for _ in range(3):
        server.tick()
    assert server.session.motions == []
    assert server.dropped == {"engagement": 3}
    replies = client.replies()
    assert [reply["ok"] for reply in replies] == [False, True, False, False]
    # The right number makes it move.
    assert server.ask(client, "twist", values=UP, engagement=replies[1]["engagement"])["ok"]
    assert len(server.session.motions) == 1


def test_another_process_numbers_its_engagements_otherwise():
    assert len({DatagramExchange()._last_engagement for _ in range(20)}) == 20


def test_a_second_client_is_refused_by_name(server):
    _, engagement = server.driving()
    second = server.client("joystick")
    for reply in (
        server.ask(second, "engage"), server.ask(second, "twist", values=UP, engagement=engagement),
        server.ask(second, "disengage"), server.ask(second, "button", button="grip", pressed=True),
    ):  # fmt: skip
        assert not reply["ok"] and reply["driver"] == "vision"
        assert reply["error"].startswith("Refused: vision at 127.0.0.1:") and reply[
            "error"
        ].endswith(" drives.")
    assert server.session.of("twist", "disengage", "note") == []
    assert server.dropped == {"driver": 4}
    # To look is free.
    assert server.ask(second, "status")["ok"]


def test_a_second_client_of_the_same_name_is_refused_too(server):
    _, engagement = server.driving()
    assert not server.ask(server.client(), "twist", values=UP, engagement=engagement)["ok"]


@pytest.mark.parametrize("kind", ["of the driver", "of another", "late", "bare"])
def test_a_stop_with_the_token_always_acts_and_ends_the_engagement(server, kind):
    client, engagement = server.driving()
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
    assert [call[0] for call in server.session.calls] == ["engage", "halt", "disengage"]
    assert server.ask(client, "engage")["ok"]


def test_a_stop_reaches_the_arm_before_the_motions_of_the_same_moment(server):
    client, engagement = server.driving()
    client.send("twist", values=UP, engagement=engagement)
    server.client("button-box").send("halt")
    server.tick()
    assert server.session.motions == []


def test_a_stop_while_the_arm_engages_acts_right_after(server):
    client, box = server.client(), server.client("button-box")
    engage = server.session.engage
    server.session.engage = lambda: (box.send("halt"), engage())  # type: ignore[method-assign]
    client.send("engage")
    for _ in range(3):
        server.tick()
    assert [call[0] for call in server.session.calls] == ["engage", "halt", "disengage"]


def test_a_stop_without_the_token_is_nothing(server):
    server.driving()
    assert (
        server.ask(server.client("thief", "guessed token"), "halt")["error"]
        == "The token is wrong."
    )
    assert server.session.of("halt") == []


def test_without_the_token_nothing_is_done_or_said(server):
    thief = server.client("thief", "")
    reply = server.ask(thief, "engage")
    assert reply == {"ok": False, "client": "thief", "seq": 1, "error": "The token is wrong."}
    assert server.session.calls == [] and server.dropped == {"token": 1}


def test_reordered_and_repeated_datagrams_are_dropped_and_counted(server):
    client, engagement = server.driving()
    for seq in (10, 12, 11, 12, 13):
        client.seq = seq - 1
        client.send("twist", values=[0.001 * seq, 0, 0, 0, 0, 0], engagement=engagement)
        server.tick()
    assert [round(1000.0 * call[1][0]) for call in server.session.of("twist")] == [10, 12, 13]
    assert server.dropped == {"order": 2}
    assert "seq 11 came after 12" in client.replies()[2]["error"]


def test_a_client_that_is_silent_for_long_can_be_replaced(server):
    first, engagement = server.driving()
    second = server.client("joystick")
    server.clock.now += 0.9 * MAX_SILENCE_S
    assert not server.ask(second, "engage")["ok"]
    server.clock.now += 0.2 * MAX_SILENCE_S
    reply = server.ask(second, "engage")
    assert reply["ok"] and reply["driver"] == "joystick"
    assert [call[0] for call in server.session.calls] == ["engage", "disengage", "engage"]
    assert not server.ask(first, "twist", values=UP, engagement=engagement)["ok"]


def test_however_long_the_arm_takes_to_engage_its_client_drives(server):
    client, second = server.client(), server.client("joystick")
    engage = server.session.engage

    def slowly():
        server.clock.now += 10.0 * MAX_SILENCE_S
        second.send("engage")
        engage()

    server.session.engage = slowly  # type: ignore[method-assign]
    assert server.ask(client, "engage")["driver"] == "vision"
    server.tick()
    assert "Refused: vision" in second.reply()["error"]


def test_an_engagement_that_fails_is_answered_and_leaves_the_place_free(server):
    server.session.refuses = SimbridgeError("The arm is not powered on.")
    reply = server.ask(server.client(), "engage")
    assert (
        not reply["ok"] and reply["error"] == "The arm is not powered on." and reply["driver"] == ""
    )
    server.session.refuses = None
    assert server.ask(server.client("joystick"), "engage")["ok"]


def test_a_session_that_ended_by_itself_ends_the_engagement(server):
    client, engagement = server.driving()
    server.session.status.state = "idle"
    assert server.ask(client, "status")["engagement"] == 0
    server.session.status.state = "engaged"
    assert not server.ask(client, "twist", values=UP, engagement=engagement)["ok"]


def test_what_the_session_refuses_is_answered(server):
    client, engagement = server.driving()
    reply = server.ask(client, "jog", values=[0.1] * 7, engagement=engagement)
    assert not reply["ok"] and "shape (6,)" in reply["error"]
    assert server.dropped == {"value": 1}


def test_buttons_of_a_client_are_noted(server):
    client, _ = server.driving()
    server.ask(client, "button", button="grip", pressed=True)
    server.ask(client, "disengage")
    server.tick()
    assert [call[2] for call in server.session.of("note")] == [
        {"button": "grip", "pressed": True}, {"button": "grip", "pressed": False},
    ]  # fmt: skip


def test_replies_carry_the_causes(server):
    client, _ = server.driving()
    server.session.status.causes, server.session.status.speed_factor = (
        ("joint_velocity wrist_3 0.93",),
        0.4,
    )
    reply = server.ask(client, "status")
    assert reply["causes"] == ["joint_velocity wrist_3 0.93"] and reply["speed_factor"] == 0.4


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"null", b"\xff", b"[" * 2000, b'{"a":' * 400, b"x" * 60000,
        b'{"type":"walk","client":"a","seq":1}',
        b'{"type":"engage","client":"\\u001b[2J","seq":1}', b'{"type":"engage","client":"a","seq":-1}',
        b'{"type":"twist","client":"a","seq":1,"engagement":1,"values":[1,2,3]}',
        b'{"type":"twist","client":"a","seq":1,"engagement":1,"values":[1,2,3,4,5,NaN]}',
        b'{"type":"twist","client":"a","seq":1,"engagement":1,"values":[1,2,3,4,5,1e999]}',
        b'{"type":"twist","client":"a","seq":1,"engagement":1,"values":[1,2,3,4,5,6],"frame":"world"}',
        b'{"type":"twist","client":"a","seq":1,"engagement":1,"values":[1,2,3,4,5,6],"speed":2}',
    ],
    ids=range(15),
)  # fmt: skip
def test_a_bad_datagram_is_answered_and_counted(server, data):
    client = server.client()
    client.socket.send(data)
    server.tick()
    reply = client.reply()
    assert (
        not reply["ok"]
        and reply["error"].startswith("The datagram is ")
        and set(reply) == {"ok", "client", "seq", "error"}
    )
    assert server.dropped == {"malformed": 1}
    assert server.ask(client, "engage")["ok"]


def test_a_client_that_has_gone_disturbs_no_one(server):
    gone = server.client("gone")
    gone.send("status")
    gone.socket.close()
    for _ in range(3):
        server.tick()
    assert server.ask(server.client(), "engage")["ok"]


def test_a_flood_leaves_time_for_the_loop(server):
    exchange = server.device.exchange
    for _ in range(5_000):
        exchange.receive(b"x", ("127.0.0.1", 1), 0.0)
    exchange.replies(server.session, "")
    for name in range(1_000):
        exchange.receive(
            json.dumps({"type": "status", "client": f"c{name}", "seq": 1, "token": TOKEN}).encode(),
            "a",
            0.0,
        )
    assert len(exchange._newest) <= 256


def test_without_a_token_only_this_computer_is_listened_to():
    server = Server(token="")
    assert server.device.address[0] == LOOPBACK
    assert server.ask(server.client(token=""), "engage")["ok"]
    assert not server.ask(server.client(token="any"), "engage")["ok"]
    server.close()


def test_a_port_in_use_is_one_sentence(server):
    with pytest.raises(DeviceError, match=r"network: UDP port \d+ of 127\.0\.0\.1 cannot be used"):
        Network.open(TeleopOptions(port=server.device.address[1]))


MESSAGES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "halt",
                "status",
                "engage",
                "disengage",
                "button",
                "pose",
                "twist",
                "jog",
                "joints",
                "a",
            ]
        ),
        "client": st.text(max_size=40) | st.just("vision"),
        "seq": st.integers(-1, 2**60) | st.floats(),
        "engagement": st.integers(0, 2**60) | st.none(),
        "values": st.lists(st.floats() | st.integers(-(10**400), 10**400), max_size=8),
    },
    optional={
        "token": st.text(max_size=8),
        "frame": st.text(max_size=5),
        "relative": st.booleans(),
        "x": st.none(),
    },
)


@given(MESSAGES)
def test_a_datagram_is_a_message_or_refused(fields):
    try:
        message = parse(json.dumps(fields).encode())
    except InvalidParameter:
        return
    assert message.client == fields["client"] and message.seq == fields["seq"]


def test_a_datagram_that_is_too_long_is_refused():
    with pytest.raises(InvalidParameter, match="longer than"):
        parse(b" " * (MAX_DATAGRAM_BYTES + 1))


@pytest.fixture
def served():
    """A server with a loop of its own, on any port, without a token."""
    server = Server(token="")
    server.device._clock = time.monotonic
    ended = threading.Event()
    loop = threading.Thread(
        target=lambda: [(server.tick(), time.sleep(0.005)) for _ in iter(ended.is_set, True)]
    )
    loop.start()
    yield server
    ended.set()
    loop.join()
    server.close()


def moved_up_and_down(server):
    """What a client example does: it engages, and moves up and down, and disengages."""
    end = time.monotonic() + 5.0
    while not server.session.of("disengage") and time.monotonic() < end:
        time.sleep(0.01)
    names = [call[0] for call in server.session.calls]
    assert names[0] == "engage" and names[-1] == "disengage" and set(names[1:-1]) == {"twist"}
    speeds = [call[1][2] for call in server.session.of("twist")]
    assert max(speeds) > 0.0 > min(speeds)


def test_the_client_in_python_drives_and_ends(served, monkeypatch):
    spec = importlib.util.spec_from_file_location("client", DOCS / "client.py")
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    monkeypatch.setattr(client, "SECONDS", 0.3)
    monkeypatch.setattr(client.sys, "argv", ["client.py", "{}:{}".format(*served.device.address)])
    assert client.main() == 0
    moved_up_and_down(served)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_client_in_cpp_drives_and_ends(served, tmp_path):
    source = (DOCS / "client.cpp").read_text().replace("kSeconds = 4.0", "kSeconds = 0.3")
    (tmp_path / "client.cpp").write_text(source)
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", "client", "client.cpp"],
        cwd=tmp_path,
        check=True,
    )
    host, port = served.device.address
    subprocess.run([tmp_path / "client", host, str(port)], check=True, timeout=30)
    moved_up_and_down(served)
