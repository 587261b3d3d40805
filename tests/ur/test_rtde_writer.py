"""The RTDE writer: the bytes that it sends, and what it says when it may not write."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ur import rtde_writer
from simbridge.ur.errors import ConnectionLost, RegistersInUse, UnsupportedController
from simbridge.ur.rtde_writer import InputRecipe, RtdeWriter
from simbridge.ur.survey import claimed_registers
from tests.controllers import loopback
from tests.patience import PATIENCE
from tests.ur.fake_ports import listening

FAKE = loopback(55)
PORT = 30004
OUTPUTS = ("timestamp",)
INPUTS = ("input_int_register_24", "input_double_register_24")
GRANTED = {"input_int_register_24": "INT32", "input_double_register_24": "DOUBLE"}
RECIPE_NUMBER = 7
ANSWERS = {
    "V": b"\x01",
    "v": struct.pack(">4I", 5, 12, 6, 0),
    "O": b"\x01DOUBLE",
    "S": b"\x01",
}


def frame(kind: str, payload: bytes) -> bytes:
    """Return a package by UR's guide: size and type, then the payload; big-endian."""
    return struct.pack(">HB", 3 + len(payload), ord(kind)) + payload


class Controller:
    """An RTDE server that grants or refuses inputs.

    Args:
        refusals: Answers in place of an input's type, for each request of inputs in turn; the last
            one is for all further requests.

    Attributes:
        requests: Type and payload of each request.
        written: Set when inputs have been written.
    """

    def __init__(self, *refusals: Mapping[str, str]) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.written = threading.Event()
        self._refusals = list(refusals) or [{}]

    @property
    def kinds(self) -> str:
        """The types of the requests, in order."""
        return "".join(kind for kind, _ in self.requests)

    def __call__(self, connection):
        with connection.makefile("rb") as stream:
            while head := stream.read(3):
                size, kind_number = struct.unpack(">HB", head)
                kind = chr(kind_number)
                payload = stream.read(size - 3)
                self.requests.append((kind, payload))
                if kind == "I":
                    connection.sendall(frame("I", self._answer_inputs(payload)))
                elif kind == "U":
                    self.written.set()
                else:
                    connection.sendall(frame(kind, ANSWERS[kind]))

    def _answer_inputs(self, payload: bytes) -> bytes:
        refusals = self._refusals.pop(0) if len(self._refusals) > 1 else self._refusals[0]
        names = payload.decode().split(",")
        types = [refusals.get(name, GRANTED[name]) for name in names]
        number = 0 if refusals else RECIPE_NUMBER
        return bytes([number]) + ",".join(types).encode()


def open_writer() -> RtdeWriter:
    return RtdeWriter(FAKE, OUTPUTS, INPUTS, 500.0)


def open_narrow_writer() -> RtdeWriter:
    """Open a writer whose buffer is full after few packages that nobody reads."""
    writer = open_writer()
    writer._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return writer


def answer_until_start(connection: socket.socket) -> None:
    """Grant all inputs, and start the stream; from then on, little is kept for a late reader."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    answers = {**ANSWERS, "I": bytes([RECIPE_NUMBER]) + b"INT32,DOUBLE"}
    for kind in "VvOIS":
        size, _ = struct.unpack(">HB", connection.recv(3, socket.MSG_WAITALL))
        connection.recv(size - 3, socket.MSG_WAITALL)
        connection.sendall(frame(kind, answers[kind]))


def write_for_ever(writer: RtdeWriter) -> None:
    while True:
        writer.write((11, 0.25))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    """Let inputs be claimed again at once."""
    monkeypatch.setattr(rtde_writer, "RELEASE_TIME_S", 0.0)


def test_a_package_has_the_bytes_of_urs_guide():
    recipe = InputRecipe(7, ["INT32", "DOUBLE"])

    package = recipe.package((11, -0.5))

    # Size, type U, recipe, 11, and -0.5 as IEEE 754.
    assert package == bytes.fromhex("0010 55 07 0000000b bfe0000000000000")


@given(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False))
def test_every_number_arrives_bit_for_bit(command, value):
    package = InputRecipe(1, ["INT32", "DOUBLE"]).package((command, value))

    assert struct.unpack(">HBBid", package) == (len(package), ord("U"), 1, command, value)


@pytest.mark.parametrize("values", [(), (1,), (1, 2.0, 3.0), (2**31, 0.0), (0.5, 0.0)])
def test_values_that_do_not_fit_are_refused(values):
    recipe = InputRecipe(1, ["INT32", "DOUBLE"])

    with pytest.raises(struct.error):
        recipe.package(values)


def test_inputs_are_claimed_before_the_stream_starts():
    controller = Controller()

    with listening(FAKE, PORT, controller), open_writer():
        pass

    assert controller.kinds == "VvOIS"
    assert dict(controller.requests)["I"] == ",".join(INPUTS).encode()


def test_values_are_written_in_one_package():
    controller = Controller()

    with listening(FAKE, PORT, controller), open_writer() as writer:
        writer.write((11, 0.25))
        assert controller.written.wait(PATIENCE)

    assert controller.requests[-1] == ("U", struct.pack(">Bid", RECIPE_NUMBER, 11, 0.25))


def test_inputs_of_another_client_are_named():
    controller = Controller({"input_double_register_24": "IN_USE"})

    with listening(FAKE, PORT, controller), pytest.raises(RegistersInUse) as refusal:
        open_writer()

    assert refusal.value.variables == ("input_double_register_24",)
    assert "Another client" in str(refusal.value)
    assert "S" not in controller.kinds


def test_a_client_that_has_just_left_is_waited_for():
    controller = Controller({"input_double_register_24": "IN_USE"}, {})

    with listening(FAKE, PORT, controller), open_writer():
        pass

    assert controller.kinds == "VvOIIS"


def test_inputs_that_the_version_lacks_are_named():
    controller = Controller(dict.fromkeys(INPUTS, "NOT_FOUND"))

    with listening(FAKE, PORT, controller), pytest.raises(UnsupportedController) as refusal:
        open_writer()

    assert all(name in refusal.value.reason for name in INPUTS)


def test_upper_registers_of_an_old_version_are_refused_before_a_run():
    controller = Controller(dict.fromkeys(INPUTS, "NOT_FOUND"))

    with (
        listening(FAKE, PORT, controller),
        pytest.raises(UnsupportedController, match="--registers lower"),
    ):
        claimed_registers(FAKE, INPUTS)


def test_an_answer_that_is_no_list_of_types_is_refused():
    controller = Controller(dict.fromkeys(INPUTS, "PAINTING"))

    with (
        listening(FAKE, PORT, controller),
        pytest.raises(ConnectionLost, match="list of inputs is recipe 0 of PAINTING,PAINTING"),
    ):
        open_writer()


def test_a_connection_that_takes_nothing_more_is_lost():
    def deaf_after_start(connection):
        """Answer until the start, then read nothing more."""
        answer_until_start(connection)
        # Until the client leaves: it sends no more than the buffers take.
        hung_up = select.poll()
        hung_up.register(connection, select.POLLRDHUP)
        hung_up.poll(1e3 * PATIENCE)

    with (
        listening(FAKE, PORT, deaf_after_start),
        open_narrow_writer() as writer,
        pytest.raises(ConnectionLost, match="takes no more commands"),
    ):
        write_for_ever(writer)


def test_nothing_follows_a_package_that_was_sent_in_part():
    received = bytearray()
    has_failed = threading.Event()
    has_read_all = threading.Event()

    def read_late(connection):
        """Answer until the start, and read what follows only once a write has failed."""
        answer_until_start(connection)
        assert has_failed.wait(PATIENCE)
        while data := connection.recv(1 << 16):
            received.extend(data)
        has_read_all.set()

    with listening(FAKE, PORT, read_late), open_narrow_writer() as writer:
        sent_in_full = 0
        with pytest.raises(ConnectionLost):
            while True:
                writer.write((11, 0.25))
                sent_in_full += 1
        with pytest.raises(ConnectionLost):
            writer.write((255, 0.0))
        has_failed.set()
        assert has_read_all.wait(PATIENCE)

    size = len(frame("U", struct.pack(">Bid", RECIPE_NUMBER, 11, 0.25)))
    assert sent_in_full * size <= len(received) < (sent_in_full + 1) * size


def test_a_closed_connection_is_lost():
    controller = Controller()

    with listening(FAKE, PORT, controller):
        writer = open_writer()
    with pytest.raises(ConnectionLost), writer:
        write_for_ever(writer)
