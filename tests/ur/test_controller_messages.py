"""The messages of a controller on its primary interface."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ur import controller_messages
from simbridge.ur.controller_messages import ControllerMessages, describe_message, is_refusal
from tests.patience import PATIENCE

HEAD = struct.pack(">Qb", 12_000_000, -2)
EXCEPTION = HEAD + bytes([10]) + struct.pack(">2i", 7, 3) + b"get_inverse_kin: no\nsolution"
KEY = (
    HEAD
    + bytes([7])
    + struct.pack(">2i", 0, 0)
    + bytes([19])
    + b"PROGRAM_XXX_STOPPED"
    + b"simbridge"
)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (EXCEPTION, "the program's error in line 7, column 3: get_inverse_kin: no solution"),
        (KEY, "message PROGRAM_XXX_STOPPED: simbridge"),
        (HEAD + bytes([0]) + b"a text", None),
    ],
)
def test_messages_about_the_program_are_clauses(content, words):
    assert describe_message(content) == words


@pytest.mark.parametrize(
    ("kind", "content", "refused"),
    [
        (20, HEAD + bytes([6]) + struct.pack(">3i", 210, 0, 2), True),
        (20, HEAD + bytes([6]) + struct.pack(">3i", 209, 0, 2), False),
        (20, HEAD + bytes([7]) + struct.pack(">3i", 210, 0, 2), False),
        (16, HEAD + bytes([6]) + struct.pack(">3i", 210, 0, 2), False),
        (20, HEAD + bytes([6]), False),
        (20, b"", False),
    ],
)
def test_the_error_210_refuses_a_script(kind, content, refused):
    assert is_refusal(kind, content) is refused


@given(st.binary(max_size=300))
def test_any_message_is_two_short_lines(content):
    words = describe_message(HEAD[: len(content)] + content)

    assert words is None or len(words) < 500


def test_messages_are_collected_until_the_end(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(controller_messages, "PRIMARY", server.getsockname()[1])
        listening = ControllerMessages("127.0.0.1")
        client, _ = server.accept()
        for kind, content in ((20, KEY), (16, b"a state"), (20, EXCEPTION)):
            client.sendall(struct.pack(">iB", 5 + len(content), kind) + content)
        deadline = time.monotonic() + PATIENCE
        while len(listening._clauses) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)

        assert listening.close() == [describe_message(KEY), describe_message(EXCEPTION)]

        client.close()

    assert "simbridge-messages" not in [thread.name for thread in threading.enumerate()]


def test_a_controller_that_does_not_listen_says_nothing():
    assert ControllerMessages("192.0.2.255").close() == []
