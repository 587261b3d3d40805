"""The RTDE reader: every state once and whole, and a clear end where a port is silent, broken, or something else."""

from __future__ import annotations

import contextlib
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.emulator.handle import Emulator
from simbridge.ur.errors import ConnectionLost, UnsupportedController
from simbridge.ur.rtde import FrameBuffer, Recipe, RtdeConnection, RtdeReader, frame
from tests.ur.hand_made_ports import listening, saying

BY_HAND, E_SERIES, CB3 = "127.0.0.54", "127.0.0.55", "127.0.0.53"
PORT = 30004
ALL = ("timestamp", "actual_q", "runtime_state")
TYPES = {"timestamp": "DOUBLE", "actual_q": "VECTOR6D", "runtime_state": "UINT32"}
Q = (0.1, -0.2, 0.3, -0.4, 0.5, -0.6)


def state(number):
    """The payload of a data package of recipe 1 with all variables."""
    return b"\x01" + struct.pack(">d6dI", number, *Q, 2)


def data(*numbers):
    return b"".join(frame(ord("U"), state(number)) for number in numbers)


class Controller:
    """An RTDE server that answers by the book, except where a test says otherwise.

    Args:
        said: What is answered to a type of request, in place of the usual.
        stream: What is sent after the start.
        types: The variables there are.
        then: Called with the connection after the stream; by default it waits until the client goes.
    """

    def __init__(self, said=None, stream=b"", types=TYPES, then=None):
        self._said, self._stream, self._types, self._then = said or {}, stream, types, then

    def __call__(self, connection):
        with connection.makefile("rb") as requests:
            while head := requests.read(3):
                size, kind = struct.unpack(">HB", head)
                payload, kind = requests.read(size - 3), chr(kind)
                if kind in self._said:
                    connection.sendall(self._said[kind])
                elif kind in "VS":
                    connection.sendall(frame(ord(kind), b"\x01"))
                elif kind == "v":
                    connection.sendall(frame(ord("v"), struct.pack(">4I", 5, 12, 6, 0)))
                elif kind == "O":
                    names = payload[8:].decode().split(",")
                    types = ",".join(self._types.get(name, "NOT_FOUND") for name in names)
                    connection.sendall(frame(ord("O"), b"\x01" + types.encode()))
                if kind == "S":
                    connection.sendall(self._stream)
                    if self._then is not None:
                        self._then(connection)
                        return


@contextlib.contextmanager
def reading(variables=ALL, timeout=2.0, **controller):
    with listening(BY_HAND, PORT, Controller(**controller)), RtdeReader(BY_HAND, variables, timeout=timeout) as reader:
        yield reader


def lost(talk=None, **controller):
    """Why entering ended."""
    server = listening(BY_HAND, PORT, talk or Controller(**controller))
    with server, pytest.raises(ConnectionLost) as ended, RtdeReader(BY_HAND, ALL, timeout=0.4):
        pass
    assert (ended.value.host, ended.value.port) == (BY_HAND, PORT)
    return ended.value.reason


def all_of(reader, count):
    states = []
    while len(states) < count:
        states += reader.wait(1.0)
    return states


# ---- what is read


def test_a_state_comes_with_all_its_values():
    with reading(stream=data(1.5)) as reader:
        assert reader.first() == {"timestamp": 1.5, "actual_q": Q, "runtime_state": 2}
        assert reader.version == (5, 12, 6, 0)
        assert reader.frequency == 500.0


def test_cb3_makes_125_states_a_second_and_another_rate_can_be_asked_for():
    version = {"v": frame(ord("v"), struct.pack(">4I", 3, 15, 8, 0))}
    with reading(said=version) as reader:
        assert reader.frequency == 125.0
    with listening(BY_HAND, PORT, Controller(said=version)), RtdeReader(BY_HAND, ALL, 25.0) as reader:
        assert reader.frequency == 25.0


def test_states_that_come_together_are_given_together_in_their_order():
    with reading(stream=data(1.0, 2.0, 3.0)) as reader:
        assert [s["timestamp"] for s in all_of(reader, 3)] == [1.0, 2.0, 3.0]


def test_waiting_ends_when_nothing_comes():
    with reading() as reader:
        begin = time.monotonic()
        assert reader.wait(0.05) == []
        assert time.monotonic() - begin >= 0.05
        assert reader.wait(0.0) == []


def test_a_state_in_two_halves_is_given_when_it_is_whole():
    whole = data(1.0, 2.0)

    def halves(connection):
        connection.sendall(whole[:100])
        time.sleep(0.1)
        connection.sendall(whole[100:])
        connection.recv(1)

    with reading(then=halves) as reader:
        assert [s["timestamp"] for s in all_of(reader, 2)] == [1.0, 2.0]


def test_a_variable_that_the_software_does_not_have_is_left_out():
    with reading(variables=("timestamp", "payload_inertia", "actual_q", "runtime_state"), stream=data(1.0)) as reader:
        assert reader.variables == ALL
        assert reader.first()["actual_q"] == Q


def test_text_messages_between_the_states_are_passed_over():
    message = frame(ord("M"), b"\x05hello\x03abc\x01")
    with reading(stream=message + data(1.0) + message + data(2.0)) as reader:
        assert [s["timestamp"] for s in all_of(reader, 2)] == [1.0, 2.0]


@pytest.mark.parametrize("kind", "VvOS")
def test_packages_that_come_before_an_answer_are_passed_over(kind):
    answers = {
        "V": b"\x01",
        "v": struct.pack(">4I", 5, 12, 6, 0),
        "O": b"\x01DOUBLE,VECTOR6D,UINT32",
        "S": b"\x01",
    }
    before = frame(ord("U"), b"\x09" + bytes(40)) + frame(ord("M"), b"x")
    with reading(said={kind: before + frame(ord(kind), answers[kind])}, stream=data(7.0)) as reader:
        assert [s["timestamp"] for s in all_of(reader, 1)] == [7.0]


def test_states_that_come_with_the_answer_to_the_start_are_not_lost():
    with reading(said={"S": frame(ord("S"), b"\x01") + data(1.0, 2.0)}, stream=data(3.0)) as reader:
        assert [s["timestamp"] for s in all_of(reader, 3)] == [1.0, 2.0, 3.0]


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=60)), max_size=8), st.integers(1, 40))
def test_packages_come_whole_in_whatever_pieces_the_bytes_come(packages, size):
    stream = b"".join(frame(kind, payload) for kind, payload in packages)
    buffer, found = FrameBuffer(), []
    for begin in range(0, len(stream), size):
        found += buffer.feed(stream[begin : begin + size])
    assert found == packages


def test_every_type_has_its_place():
    types = ["BOOL", "UINT8", "UINT32", "UINT64", "INT32", "DOUBLE", "VECTOR3D", "VECTOR6D", "VECTOR6INT32"]
    payload = struct.pack(">?BIQid3d6d6i", True, 255, 2**32 - 1, 2**64 - 1, -1, 0.5, 1.0, 2.0, 3.0, *Q, *range(-3, 3))
    values = Recipe(types, types).unpack(payload)
    assert list(values.values()) == [
        True, 255, 2**32 - 1, 2**64 - 1, -1, 0.5, (1.0, 2.0, 3.0), Q, tuple(range(-3, 3))
    ]  # fmt: skip


# ---- what is no such server


def test_where_nothing_listens_that_is_said():
    with pytest.raises(ConnectionLost, match="no connection") as ended, RtdeReader(BY_HAND, ALL, timeout=0.2):
        pass
    assert ended.value.port == PORT


@pytest.mark.parametrize("kind", "VvOS")
def test_a_request_without_an_answer_ends_within_the_timeout(kind):
    assert f"no answer to request {kind}" in lost(said={kind: b""})


@pytest.mark.parametrize("kind", "VvOS")
def test_half_an_answer_is_none(kind):
    assert f"no answer to request {kind}" in lost(said={kind: frame(ord(kind), b"\x01" * 8)[:6]})


def test_a_server_that_only_talks_ends_within_the_timeout():
    def chatter(connection):
        with contextlib.suppress(OSError):
            for _ in range(2000):
                connection.sendall(frame(ord("M"), b"x" * 50))
                time.sleep(0.001)

    assert "no answer to request V" in lost(talk=chatter)


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00" * 20,
        b"\x00\x02V",
        b"Connected: Universal Robots Dashboard Server\n",
    ],
)
def test_garbage_is_no_answer(garbage):
    reason = lost(talk=saying(garbage))
    assert "no answer" in reason or "not RTDE" in reason


def test_a_server_that_hangs_up_says_so():
    assert "ended the connection" in lost(talk=lambda connection: connection.recv(100))


def test_another_version_of_the_protocol_is_unsupported():
    server = listening(BY_HAND, PORT, Controller(said={"V": frame(ord("V"), b"\x00")}))
    with server, pytest.raises(UnsupportedController, match="version 2"), RtdeReader(BY_HAND, ALL):
        pass


@pytest.mark.parametrize("answer", [b"", b"\x05", b"\x00" * 17])
def test_a_malformed_version_is_refused(answer):
    assert "version" in lost(said={"v": frame(ord("v"), answer)})


@pytest.mark.parametrize("answer", [b"", b"\x01", b"\x01DOUBLE", b"\x01DOUBLE,VECTOR6D,PAINTING", b"\x01\xff\xfe"])
def test_types_that_cannot_be_are_refused(answer):
    assert "list of variables" in lost(said={"O": frame(ord("O"), answer)})


def test_a_controller_that_has_none_of_the_variables_is_refused():
    assert "list of variables" in lost(types={})


def test_a_refused_start_is_said():
    assert "refused to start" in lost(said={"S": frame(ord("S"), b"\x00")})


def test_a_state_of_another_length_ends_the_reading():
    with reading(stream=frame(ord("U"), state(1.0)[:-1])) as reader, pytest.raises(ConnectionLost, match="malformed"):
        all_of(reader, 1)


def test_no_state_at_all_is_said_where_one_is_needed():
    with reading(timeout=0.1) as reader, pytest.raises(ConnectionLost, match="no state came"):
        reader.first()


def test_the_end_of_the_connection_is_said_after_the_last_states():
    def hang_up_soon(connection):
        time.sleep(0.1)

    with reading(stream=data(1.0), then=hang_up_soon) as reader:
        assert reader.first()["timestamp"] == 1.0
        with pytest.raises(ConnectionLost, match="ended the connection"):
            reader.wait(5.0)


def test_leaving_ends_the_connection():
    gone = threading.Event()

    def until_gone(connection):
        connection.recv(1)
        gone.set()

    with listening(BY_HAND, PORT, Controller(then=until_gone)):
        with RtdeReader(BY_HAND, ALL):
            pass
        assert gone.wait(5.0)


def test_an_entering_that_fails_ends_the_connection():
    gone = threading.Event()

    def until_gone(connection):
        Controller(said={"S": frame(ord("S"), b"\x00")})(connection)
        gone.set()

    with listening(BY_HAND, PORT, until_gone):
        with pytest.raises(ConnectionLost), RtdeReader(BY_HAND, ALL):
            pass
        assert gone.wait(5.0)


# ---- the emulator


@pytest.fixture(scope="module", params=[("ur10e", "5.12", E_SERIES, 0.002), ("ur10", "3.15", CB3, 0.008)])
def emulated(request):
    robot, polyscope, host, period = request.param
    with Emulator(robot, polyscope=polyscope, host=host):
        yield host, period


def test_every_state_of_the_emulator_comes_once_and_none_is_missing(emulated):
    host, period = emulated
    with RtdeReader(host, ALL) as reader:
        states = all_of(reader, round(1.0 / period))
    ticks = [round(s["timestamp"] / period) for s in states]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))


def test_a_reader_that_looks_away_misses_nothing(emulated):
    host, period = emulated
    with RtdeReader(host, ALL) as reader:
        states = all_of(reader, 1)
        time.sleep(0.5)
        states += all_of(reader, 1)
    ticks = [round(s["timestamp"] / period) for s in states]
    assert len(ticks) > 10
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))


def test_what_the_software_does_not_have_is_left_out_of_the_states(emulated):
    host, _ = emulated
    with RtdeReader(host, ("timestamp", "no_such_variable", "actual_q")) as reader:
        assert reader.variables == ("timestamp", "actual_q")
        assert len(reader.first()["actual_q"]) == 6


def test_an_input_belongs_to_one_client_until_that_leaves(emulated):
    host, _ = emulated
    first, second = RtdeConnection(host), RtdeConnection(host)
    assert first.input_types(["no_such"]) == ["NOT_FOUND"]
    assert first.input_types(["input_int_register_0"]) == ["INT32"]
    assert second.input_types(["input_int_register_0"]) == ["IN_USE"]
    first.close()
    end = time.monotonic() + 5.0
    while second.input_types(["input_int_register_0"]) != ["INT32"]:
        assert time.monotonic() < end
        time.sleep(0.01)
    second.close()
