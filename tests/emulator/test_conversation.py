"""The messages of a connection are described in sentences."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator import primary
from simbridge.emulator.conversation import Conversation
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.rtde import RtdeConnection, frame
from simbridge.emulator.rtde_recipes import RtdeRegistry
from simbridge.emulator.state import ControllerEvent
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
from tests.properties import few_examples


def test_an_rtde_session_is_told():
    connection = RtdeConnection(FakeController("5.12"), RtdeRegistry(FakeController("5.12")))
    conversation = Conversation(RTDE)

    lines = []
    for request in (
        frame(RtdePackage.PROTOCOL_VERSION, b"\x00\x02"),
        frame(RtdePackage.CONTROLLER_VERSION),
        frame(RtdePackage.OUTPUTS, struct.pack(">d", 125.0) + b"timestamp,actual_q"),
        frame(RtdePackage.INPUTS, b"speed_slider_mask,speed_slider_fraction"),
        frame(RtdePackage.START),
        frame(RtdePackage.DATA, b"\x01" + struct.pack(">Id", 1, 0.25)),
    ):
        lines += conversation.received(request)
        lines += conversation.sent(connection.receive(request))
    package = frame(RtdePackage.DATA, b"\x01" + bytes(56))
    lines += conversation.sent(package) + conversation.sent(package)

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


def test_scripts_and_messages_are_told():
    conversation = Conversation(PRIMARY)
    controller = FakeController("5.12")

    assert conversation.received(b"def go():\n  movej([0,0,0,0,0,0])\nend\npower on\n") == [
        "program go of 3 lines",
        "power on",
    ]

    state = primary.robot_state(controller)
    safety_mode = primary.message_of(controller, ControllerEvent("safety mode"))
    sent = [
        primary.version_message(controller),
        state,
        state,
        safety_mode.removeprefix(state),
        primary.message_of(controller, ControllerEvent("safety", "too fast", code=153, argument=2)),
        primary.message_of(controller, ControllerEvent("started", "go")),
        primary.message_of(controller, ControllerEvent("error", "no such name", 3, 4)),
        primary.message_of(controller, ControllerEvent("text", "hello")),
    ]
    lines = conversation.sent(b"".join(sent))

    assert lines[0].startswith("version message")
    assert "URControl" in lines[0]
    assert lines[1].startswith("the first robot state of ")
    assert lines[2:5] == ["safety mode NORMAL", "error C153A2: too fast", "PROGRAM_XXX_STARTED go"]
    assert lines[5] == "runtime exception in line 3, column 4: no such name"
    assert lines[6] == "text message hello"


@pytest.mark.parametrize("count", [1, 200, 2000])
def test_long_recipes_are_understood(count):
    connection = RtdeConnection(FakeController("5.12"), RtdeRegistry(FakeController("5.12")))
    conversation = Conversation(RTDE)
    names = ",".join(["input_int_register_0"] * count).encode()
    for request in (
        frame(RtdePackage.PROTOCOL_VERSION, b"\x00\x02"),
        frame(RtdePackage.INPUTS, names),
    ):
        conversation.received(request)
        conversation.sent(connection.receive(request))
    (line,) = conversation.received(frame(RtdePackage.DATA, b"\x01" + struct.pack(">i", 7) * count))

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
@few_examples(15)
def test_any_bytes_have_sentences(port, chunks):
    conversation = Conversation(port)

    lines = [line for chunk in chunks for line in conversation.received(chunk)]

    assert port in PORT_NAMES
    assert all(isinstance(line, str) for line in lines)


@given(st.lists(st.tuples(st.sampled_from([*RtdePackage, 0]), CONTENTS), max_size=6))
@few_examples(15)
def test_any_rtde_packages_have_sentences(packages):
    connection = RtdeConnection(FakeController("5.12"), RtdeRegistry(FakeController("5.12")))
    conversation = Conversation(RTDE)
    for kind, payload in packages:
        request = frame(kind, payload)
        assert len(conversation.received(request)) == 1
        try:
            answer = connection.receive(request)
        except ProtocolViolation:
            return
        assert all(isinstance(line, str) for line in conversation.sent(answer))
