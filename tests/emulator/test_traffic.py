"""The messages between clients and controller are kept in a file, and shown."""

from __future__ import annotations

import contextlib
import os
import threading
import time

import pytest

from simbridge.emulator.conversation import Conversation
from simbridge.emulator.traffic import Exchange, Traffic, read_traffic
from simbridge.errors import InputFileError, OutputError
from simbridge.ur.tables import (
    DASHBOARD,
)
from tests.patience import PATIENCE

EXCHANGES = [
    Exchange(0.5, DASHBOARD, 1, "connected"),
    Exchange(0.502, DASHBOARD, 1, "received", b"play\n"),
    Exchange(0.502, DASHBOARD, 1, "sent", bytes(range(256))),
    Exchange(1.0, DASHBOARD, 1, "disconnected"),
]


def test_what_was_kept_is_read_back(tmp_path):
    path = tmp_path / "traffic.jsonl"

    with Traffic(path, False) as traffic:
        for exchange in EXCHANGES:
            traffic.note(exchange)

    assert list(read_traffic(path)) == EXCHANGES

    second = path.read_text().splitlines()[1]

    assert (
        second == '{"clock":0.502,"port":29999,"client":1,"event":"received","bytes":"706c61790a"}'
    )


def test_an_existing_file_is_not_overwritten(tmp_path):
    path = tmp_path / "traffic.jsonl"
    path.write_text("mine")

    with pytest.raises(OutputError, match=r"traffic\.jsonl"), Traffic(path, False):
        pass

    assert path.read_text() == "mine"


def test_a_controller_that_does_not_start_leaves_no_file(tmp_path):
    path = tmp_path / "traffic.jsonl"

    with pytest.raises(ConnectionError), Traffic(path, False):
        raise ConnectionError

    assert not path.exists()


def test_a_line_is_in_the_file_before_the_end(tmp_path):
    with Traffic(tmp_path / "traffic.jsonl", False) as traffic:
        traffic.note(EXCHANGES[0])
        deadline = time.monotonic() + PATIENCE
        while not list(read_traffic(tmp_path / "traffic.jsonl")):
            assert time.monotonic() < deadline
            time.sleep(0.001)


def test_what_the_disk_cannot_take_is_counted(monkeypatch, capfd, tmp_path):
    monkeypatch.setattr("simbridge.emulator.traffic.MAX_QUEUED", 0)
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


@pytest.mark.slow
def test_an_unread_output_holds_up_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr("simbridge.emulator.traffic.PATIENCE_S", 0.01)
    with ascii_pipe(), Traffic(tmp_path / "traffic.jsonl", True) as traffic:
        for _ in range(3000):
            traffic.note(EXCHANGES[1])

    assert traffic.not_shown > 0
    assert traffic.lost == 0
    assert list(read_traffic(tmp_path / "traffic.jsonl")) == [EXCHANGES[1]] * 3000


def test_letters_unknown_to_the_terminal_are_escaped():
    with ascii_pipe() as reader:
        with Traffic(None, True) as traffic:
            traffic.note(Exchange(0.5, DASHBOARD, 1, "received", "popup \u00fc\n".encode()))
        assert reader.readline() == "    0.500 127.0.0.1 client 1 -> dashboard: popup \\xfc\n"


def test_a_message_without_a_sentence_is_counted(monkeypatch, capfd, tmp_path):
    def received(self, data):
        raise KeyError("a mistake")

    monkeypatch.setattr(Conversation, "received", received)

    with Traffic(tmp_path / "traffic.jsonl", True) as traffic:
        for exchange in EXCHANGES:
            traffic.note(exchange)

    lines = capfd.readouterr().out.splitlines()

    assert lines[1].endswith("received 5 bytes without words (KeyError: 'a mistake')")
    assert lines[-1].endswith("disconnected")
    assert not traffic._conversations
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


def test_each_message_is_printed(capfd):
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


def test_leaving_without_a_file_names_standard_output(monkeypatch):
    reader_is_gone = threading.Event()
    monkeypatch.setattr("simbridge.emulator.traffic.END_TIMEOUT_S", 0.01)
    monkeypatch.setattr(Traffic, "_show_and_keep", lambda *_: reader_is_gone.wait())

    with pytest.raises(OutputError) as caught, Traffic(None, True) as traffic:
        traffic.note(EXCHANGES[0])
    reader_is_gone.set()

    assert str(caught.value.path) == "standard output"
