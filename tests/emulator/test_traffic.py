"""What clients and controller exchange, kept in a file and in words."""

from __future__ import annotations

import contextlib
import os
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator import primary
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde import RtdeConnection, frame
from simbridge.emulator.rtde_recipes import RtdeRegistry
from simbridge.emulator.state import Event
from simbridge.emulator.traffic import Conversation, Exchange, Traffic, read_traffic
from simbridge.errors import InputFileError, OutputError
from simbridge.ur.tables import (
    DASHBOARD,
    PORT_NAMES,
    PRIMARY,
    REALTIME,
    RTDE,
    SECONDARY,
    RtdePackage,
)
from tests.emulator.fake_controller import FakeController

EXCHANGES = [
    Exchange(0.5, DASHBOARD, 1, "connected"),
    Exchange(0.502, DASHBOARD, 1, "received", b"play\n"),
    Exchange(0.502, DASHBOARD, 1, "sent", bytes(range(256))),
    Exchange(1.0, DASHBOARD, 1, "disconnected"),
]


def test_what_was_kept_is_read_back(tmp_path):
    with Traffic(tmp_path / "traffic.jsonl", False) as traffic:
        for exchange in EXCHANGES:
            traffic.note(exchange)
    assert list(read_traffic(tmp_path / "traffic.jsonl")) == EXCHANGES
    first = (tmp_path / "traffic.jsonl").read_text().splitlines()[1]
    assert (
        first == '{"clock":0.502,"port":29999,"client":1,"event":"received","bytes":"706c61790a"}'
    )


def test_an_existing_file_is_not_overwritten(tmp_path):
    (tmp_path / "traffic.jsonl").write_text("mine")
    with (
        pytest.raises(OutputError, match=r"traffic\.jsonl"),
        Traffic(tmp_path / "traffic.jsonl", False),
    ):
        pass
    assert (tmp_path / "traffic.jsonl").read_text() == "mine"


def test_a_controller_that_does_not_start_leaves_no_file(tmp_path):
    with pytest.raises(ConnectionError), Traffic(tmp_path / "traffic.jsonl", False):
        raise ConnectionError
    assert not (tmp_path / "traffic.jsonl").exists()


def test_a_line_is_in_the_file_before_the_end(tmp_path):
    with Traffic(tmp_path / "traffic.jsonl", False) as traffic:
        traffic.note(EXCHANGES[0])
        deadline = time.monotonic() + 30.0
        while not list(read_traffic(tmp_path / "traffic.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.001)


def test_what_the_disk_cannot_take_is_lost_and_counted(monkeypatch, capfd, tmp_path):
    monkeypatch.setattr("simbridge.emulator.traffic._MAX_QUEUED", 0)
    with Traffic(tmp_path / "traffic.jsonl", False) as traffic:
        traffic.note(EXCHANGES[0])
        assert traffic.lost == 1
    assert capfd.readouterr().err == "1 messages were neither kept nor shown.\n"


@contextlib.contextmanager
def ascii_pipe():
    """Standard output is a pipe that takes ASCII; the end to read from."""
    read, write = os.pipe()
    with (
        open(read) as reader,
        open(write, "w", encoding="ascii") as output,
        contextlib.redirect_stdout(output),
    ):
        yield reader


def test_a_standard_output_that_nobody_reads_holds_up_neither_the_file_nor_the_end(
    monkeypatch, tmp_path
):
    monkeypatch.setattr("simbridge.emulator.traffic._PATIENCE", 0.01)
    with ascii_pipe(), Traffic(tmp_path / "traffic.jsonl", True) as traffic:
        for _ in range(3000):
            traffic.note(EXCHANGES[1])
    assert traffic.not_shown > 0 and traffic.lost == 0
    assert list(read_traffic(tmp_path / "traffic.jsonl")) == [EXCHANGES[1]] * 3000


def test_letters_that_the_terminal_does_not_have_are_escaped():
    with ascii_pipe() as reader:
        with Traffic(None, True) as traffic:
            traffic.note(Exchange(0.5, DASHBOARD, 1, "received", "popup \u00fc\n".encode()))
        assert reader.readline() == "    0.500 127.0.0.1 client 1 -> dashboard: popup \\xfc\n"


def test_a_message_that_has_no_words_is_named_and_the_next_ones_are_shown(
    monkeypatch, capfd, tmp_path
):
    def received(self, data):
        raise KeyError("a mistake")

    monkeypatch.setattr(Conversation, "received", received)
    with Traffic(tmp_path / "traffic.jsonl", True) as traffic:
        for exchange in EXCHANGES:
            traffic.note(exchange)
    lines = capfd.readouterr().out.splitlines()
    assert lines[1].endswith("received 5 bytes without words (KeyError: 'a mistake')")
    assert lines[-1].endswith("disconnected") and not traffic._conversations
    assert list(read_traffic(tmp_path / "traffic.jsonl")) == EXCHANGES


@pytest.mark.parametrize(
    "line", ["{}", "[]", "no", '{"clock":1,"port":1,"client":1,"event":"sent","bytes":"xy"}']
)
def test_a_line_of_something_else_is_named(tmp_path, line):
    with Traffic(tmp_path / "traffic.jsonl", False) as traffic:
        traffic.note(EXCHANGES[0])
    with (tmp_path / "traffic.jsonl").open("a") as file:
        file.write(line)
    with pytest.raises(InputFileError, match="line 2"):
        list(read_traffic(tmp_path / "traffic.jsonl"))


def test_each_message_is_printed_in_words(capfd):
    with Traffic(None, True) as traffic:
        for exchange in (
            *EXCHANGES[:2],
            Exchange(0.504, DASHBOARD, 1, "sent", b"Starting program\n"),
        ):
            traffic.note(exchange)
    assert capfd.readouterr().out.splitlines() == [
        "    0.500 127.0.0.1 client 1 -> dashboard: connected",
        "    0.502 127.0.0.1 client 1 -> dashboard: play",
        "    0.504 127.0.0.1 client 1 <- dashboard: Starting program",
    ]


def test_an_rtde_session_in_words():
    connection = RtdeConnection(FakeController("5.12"), RtdeRegistry(FakeController("5.12")))
    words, lines = Conversation(RTDE), []
    for request in (
        frame(RtdePackage.PROTOCOL_VERSION, b"\x00\x02"),
        frame(RtdePackage.CONTROLLER_VERSION),
        frame(RtdePackage.OUTPUTS, struct.pack(">d", 125.0) + b"timestamp,actual_q"),
        frame(RtdePackage.INPUTS, b"speed_slider_mask,speed_slider_fraction"),
        frame(RtdePackage.START),
        frame(RtdePackage.DATA, b"\x01" + struct.pack(">Id", 1, 0.25)),
    ):
        lines += words.received(request) + words.sent(connection.receive(request))
    package = frame(RtdePackage.DATA, b"\x01" + bytes(56))
    lines += words.sent(package) + words.sent(package)
    assert lines == [
        "asks for version 2 of the protocol",
        "accepted",
        "asks for the controller's version",
        "version 5.12.6.1102099",
        "wants, 125 times a second: timestamp,actual_q",
        "outputs: DOUBLE,VECTOR6D",
        "will write: speed_slider_mask, speed_slider_fraction",
        "input recipe 1: UINT32,DOUBLE",
        "start",
        "accepted",
        "speed_slider_mask = 1, speed_slider_fraction = 0.25",
        "the first data package of 57 bytes",
    ]


def test_scripts_and_messages_in_words():
    words, controller = Conversation(PRIMARY), FakeController("5.12")
    assert words.received(b"def go():\n  movej([0,0,0,0,0,0])\nend\npower on\n") == [
        "program go of 3 lines",
        "power on",
    ]
    sent = [
        primary.version_message(controller),
        primary.robot_state(controller),
        primary.robot_state(controller),
        primary.message_of(controller, Event("safety mode"))[
            len(primary.robot_state(controller)) :
        ],
        primary.message_of(controller, Event("safety", "too fast", code=153, argument=2)),
        primary.message_of(controller, Event("started", "go")),
        primary.message_of(controller, Event("error", "no such name", 3, 4)),
        primary.message_of(controller, Event("text", "hello")),
    ]
    lines = words.sent(b"".join(sent))
    assert lines[0].startswith("version message") and "URControl" in lines[0]
    assert lines[1].startswith("the first robot state of ")
    assert lines[2:5] == ["safety mode NORMAL", "error C153A2: too fast", "PROGRAM_XXX_STARTED go"]
    assert lines[5] == "runtime exception in line 3, column 4: no such name"
    assert lines[6] == "text message hello"


@pytest.mark.parametrize("count", [1, 200, 2000])
def test_recipes_of_any_length_are_understood(count):
    connection = RtdeConnection(FakeController("5.12"), RtdeRegistry(FakeController("5.12")))
    words = Conversation(RTDE)
    names = ",".join(["input_int_register_0"] * count).encode()
    for request in (
        frame(RtdePackage.PROTOCOL_VERSION, b"\x00\x02"),
        frame(RtdePackage.INPUTS, names),
    ):
        words.received(request)
        words.sent(connection.receive(request))
    (line,) = words.received(frame(RtdePackage.DATA, b"\x01" + struct.pack(">i", 7) * count))
    assert line == ", ".join(["input_int_register_0 = 7"] * count)


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"input_int_register_0,",
            b"timestamp,",
            b"input_double_register_1\n",
            "ü".encode(),
            b"def f():\n",
        ]
    ),
)
CONTENTS = st.builds(lambda piece, times: (piece * times)[:65532], PIECES, st.integers(1, 2000))


@given(st.sampled_from([DASHBOARD, PRIMARY, SECONDARY, REALTIME]), st.lists(CONTENTS, max_size=5))
def test_any_bytes_of_a_client_have_words(port, chunks):
    words = Conversation(port)
    lines = [line for chunk in chunks for line in words.received(chunk)]
    assert all(isinstance(line, str) for line in lines) and port in PORT_NAMES


@given(st.lists(st.tuples(st.sampled_from([*RtdePackage, 0]), CONTENTS), max_size=6))
def test_any_packages_of_an_rtde_client_and_their_answers_have_words(packages):
    connection = RtdeConnection(FakeController("5.12"), RtdeRegistry(FakeController("5.12")))
    words = Conversation(RTDE)
    for kind, payload in packages:
        request = frame(kind, payload)
        assert len(words.received(request)) == 1
        try:
            answer = connection.receive(request)
        except ProtocolViolation:
            return
        assert all(isinstance(line, str) for line in words.sent(answer))
