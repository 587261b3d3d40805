"""What clients and controller exchange, kept in a file and in words."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator import primary
from simbridge.emulator.rtde import Registry, RtdeConnection, frame
from simbridge.emulator.traffic import Exchange, Traffic, read_traffic
from simbridge.emulator.words import Conversation
from simbridge.errors import InputFileError, OutputError
from simbridge.ur.tables import DASHBOARD, PORT_NAMES, PRIMARY, REALTIME, RTDE, SECONDARY, RtdePackage
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
    assert first == '{"clock":0.502,"port":29999,"client":1,"event":"received","bytes":"706c61790a"}'


def test_an_existing_file_is_not_overwritten(tmp_path):
    (tmp_path / "traffic.jsonl").write_text("mine")
    with pytest.raises(OutputError, match=r"traffic\.jsonl"):
        Traffic(tmp_path / "traffic.jsonl", False)


@pytest.mark.parametrize("line", ["{}", "[]", "no", '{"clock":1,"port":1,"client":1,"event":"sent","bytes":"xy"}'])
def test_a_line_of_something_else_is_named(tmp_path, line):
    with Traffic(tmp_path / "traffic.jsonl", False) as traffic:
        traffic.note(EXCHANGES[0])
    with (tmp_path / "traffic.jsonl").open("a") as file:
        file.write(line)
    with pytest.raises(InputFileError, match="line 2"):
        list(read_traffic(tmp_path / "traffic.jsonl"))


def test_each_message_is_printed_in_words(capsys):
    with Traffic(None, True) as traffic:
        for exchange in (*EXCHANGES[:2], Exchange(0.504, DASHBOARD, 1, "sent", b"Starting program\n")):
            traffic.note(exchange)
    assert capsys.readouterr().out.splitlines() == [
        "    0.500 client 1 -> dashboard: connected",
        "    0.502 client 1 -> dashboard: play",
        "    0.504 client 1 <- dashboard: Starting program",
    ]


def test_an_rtde_session_in_words():
    connection = RtdeConnection(FakeController("5.12"), Registry(FakeController("5.12")))
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
        primary.safety_mode_message(controller),
        primary.error_code_message(controller, 153, 2, "too fast"),
        primary.key_message(controller, "PROGRAM_XXX_STARTED", "go"),
        primary.runtime_exception(controller, 3, 4, "no such name"),
        primary.popup_message(controller, "Look"),
        primary.text_message(controller, "hello"),
    ]
    lines = words.sent(b"".join(sent))
    assert lines[0].startswith("version message") and "URControl" in lines[0]
    assert lines[1].startswith("the first robot state of ")
    assert lines[2:5] == ["safety mode NORMAL", "error C153A2: too fast", "PROGRAM_XXX_STARTED go"]
    assert lines[5] == "runtime exception in line 3, column 4: no such name"
    assert lines[6].endswith("Look") and lines[7] == "text message hello"


@given(st.sampled_from([DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE]), st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes_of_a_client_have_words(port, chunks):
    words = Conversation(port)
    lines = [line for chunk in chunks for line in words.received(chunk)]
    assert all(isinstance(line, str) for line in lines) and port in PORT_NAMES
