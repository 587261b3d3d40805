"""The RTDE reader: every state once and complete, and a clear error for a silent, broken or wrong
port.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ur.errors import ConnectionLost, ImplausibleState, UnsupportedController
from simbridge.ur.packages import PackageBuffer
from simbridge.ur.rtde import Recipe, RtdeClient, RtdeReader, frame
from tests.controllers import loopback
from tests.patience import PATIENCE
from tests.ur.fake_ports import listening, saying

pytestmark = pytest.mark.slow

FAKE = loopback(54)
PORT = 30004
SILENCE = 1.0
ALL = ("timestamp", "actual_q", "runtime_state")
TYPES = {"timestamp": "DOUBLE", "actual_q": "VECTOR6D", "runtime_state": "UINT32"}
Q = (0.1, -0.2, 0.3, -0.4, 0.5, -0.6)


def state(number):
    """The payload of a data package of recipe 1 with all variables."""
    return b"\x01" + struct.pack(">d6dI", number, *Q, 2)


def data(*numbers):
    return b"".join(frame(ord("U"), state(number)) for number in numbers)


class Controller:
    """An RTDE server that follows the protocol, except where a test says otherwise.

    Args:
        answers: Answers to a type of request, instead of the usual one.
        stream: Sent after the start.
        types: The variables that it has.
        then: Called with the connection after the stream; by default it waits until the client
            leaves.
    """

    def __init__(self, answers=None, stream=b"", types=TYPES, then=None):
        self._answers = answers or {}
        self._stream = stream
        self._types = types
        self._then = then

    def __call__(self, connection):
        with connection.makefile("rb") as requests:
            while head := requests.read(3):
                size, kind = struct.unpack(">HB", head)
                payload = requests.read(size - 3)
                kind = chr(kind)
                if kind in self._answers:
                    connection.sendall(self._answers[kind])
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
def reading(variables=ALL, timeout=PATIENCE, **controller):
    with (
        listening(FAKE, PORT, Controller(**controller)),
        RtdeReader(FAKE, variables, timeout=timeout) as reader,
    ):
        yield reader


def lost(talk=None, timeout=PATIENCE, **controller):
    """Why entering ended."""
    server = listening(FAKE, PORT, talk or Controller(**controller))
    with server, pytest.raises(ConnectionLost) as ended, RtdeReader(FAKE, ALL, timeout=timeout):
        pass
    assert ended.value.host == FAKE
    assert ended.value.port == PORT
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


def test_cb3_sends_125_states_by_default():
    version = {"v": frame(ord("v"), struct.pack(">4I", 3, 15, 8, 0))}
    with reading(answers=version) as reader:
        assert reader.frequency == 125.0
    with listening(FAKE, PORT, Controller(answers=version)), RtdeReader(FAKE, ALL, 25.0) as reader:
        assert reader.frequency == 25.0


def test_states_that_arrive_together_keep_order():
    with reading(stream=data(1.0, 2.0, 3.0)) as reader:
        assert [s["timestamp"] for s in all_of(reader, 3)] == [1.0, 2.0, 3.0]


def test_waiting_ends_when_nothing_arrives():
    with reading() as reader:
        begin = time.monotonic()

        assert reader.wait(0.05) == []
        assert time.monotonic() - begin >= 0.05
        assert reader.wait(0.0) == []


def test_a_halved_state_waits_for_its_rest():
    whole = data(1.0, 2.0)

    def halves(connection):
        connection.sendall(whole[:100])
        time.sleep(0.1)
        connection.sendall(whole[100:])
        connection.recv(1)

    with reading(then=halves) as reader:
        assert [s["timestamp"] for s in all_of(reader, 2)] == [1.0, 2.0]


def test_an_unknown_variable_is_dropped():
    with reading(
        variables=("timestamp", "payload_inertia", "actual_q", "runtime_state"), stream=data(1.0)
    ) as reader:
        assert reader.variables == ALL
        assert reader.first()["actual_q"] == Q


def test_text_messages_between_the_states_are_skipped():
    message = frame(ord("M"), b"\x05hello\x03abc\x01")
    with reading(stream=message + data(1.0) + message + data(2.0)) as reader:
        assert [s["timestamp"] for s in all_of(reader, 2)] == [1.0, 2.0]


@pytest.mark.parametrize("kind", "VvOS")
def test_packages_that_come_before_an_answer_are_skipped(kind):
    answers = {
        "V": b"\x01",
        "v": struct.pack(">4I", 5, 12, 6, 0),
        "O": b"\x01DOUBLE,VECTOR6D,UINT32",
        "S": b"\x01",
    }
    before = frame(ord("U"), b"\x09" + bytes(40)) + frame(ord("M"), b"x")
    with reading(
        answers={kind: before + frame(ord(kind), answers[kind])}, stream=data(7.0)
    ) as reader:
        assert [s["timestamp"] for s in all_of(reader, 1)] == [7.0]


def test_states_after_the_start_are_kept():
    with reading(
        answers={"S": frame(ord("S"), b"\x01") + data(1.0, 2.0)}, stream=data(3.0)
    ) as reader:
        assert [s["timestamp"] for s in all_of(reader, 3)] == [1.0, 2.0, 3.0]


@given(
    st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=60)), max_size=8), st.integers(1, 40)
)
def test_packages_are_complete_however_the_bytes_are_split(packages, size):
    stream = b"".join(frame(kind, payload) for kind, payload in packages)
    buffer = PackageBuffer(struct.Struct(">HB"), 65535)
    received = []
    for begin in range(0, len(stream), size):
        received += buffer.feed(stream[begin : begin + size])

    assert received == packages


def test_every_type_is_unpacked():
    types = [
        "BOOL",
        "UINT8",
        "UINT32",
        "UINT64",
        "INT32",
        "DOUBLE",
        "VECTOR3D",
        "VECTOR6D",
        "VECTOR6INT32",
    ]
    payload = struct.pack(
        ">?BIQid3d6d6i", True, 255, 2**32 - 1, 2**64 - 1, -1, 0.5, 1.0, 2.0, 3.0, *Q, *range(-3, 3)
    )

    values = Recipe(types, types).unpack(payload)

    assert list(values.values()) == [
        True, 255, 2**32 - 1, 2**64 - 1, -1, 0.5, (1.0, 2.0, 3.0), Q, tuple(range(-3, 3))
    ]  # fmt: skip


# ---- wrong servers


def test_a_host_where_nothing_listens_is_reported():
    with (
        pytest.raises(ConnectionLost, match="No connection to") as ended,
        RtdeReader(FAKE, ALL, timeout=0.2),
    ):
        pass

    assert ended.value.port == PORT


@pytest.mark.parametrize("kind", "VvOS")
def test_an_unanswered_request_times_out(kind):
    assert f"no answer to request {kind}" in lost(timeout=SILENCE, answers={kind: b""})


@pytest.mark.parametrize("kind", "VvOS")
def test_half_an_answer_counts_as_none(kind):
    half = frame(ord(kind), b"\x01" * 8)[:6]

    assert f"no answer to request {kind}" in lost(timeout=SILENCE, answers={kind: half})


def test_messages_alone_time_out():
    def chatter(connection):
        with contextlib.suppress(OSError):
            for _ in range(2000):
                connection.sendall(frame(ord("M"), b"x" * 50))
                time.sleep(0.001)

    assert "no answer to request V" in lost(chatter, timeout=SILENCE)


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00" * 20,
        b"\x00\x02V",
        b"Connected: Universal Robots Dashboard Server\n",
    ],
)
def test_garbage_is_not_an_answer(garbage):
    reason = lost(saying(garbage), timeout=SILENCE)

    assert "no answer" in reason or "not RTDE" in reason


def test_a_server_that_closes_the_connection_is_reported():
    assert "closed the connection" in lost(talk=lambda connection: connection.recv(100))


def test_another_version_of_the_protocol_is_unsupported():
    server = listening(FAKE, PORT, Controller(answers={"V": frame(ord("V"), b"\x00")}))

    with server, pytest.raises(UnsupportedController, match="version 2"), RtdeReader(FAKE, ALL):
        pass


@pytest.mark.parametrize("answer", [b"", b"\x05", b"\x00" * 17])
def test_a_malformed_version_is_refused(answer):
    assert "version" in lost(answers={"v": frame(ord("v"), answer)})


@pytest.mark.parametrize(
    "answer", [b"", b"\x01", b"\x01DOUBLE", b"\x01DOUBLE,VECTOR6D,PAINTING", b"\x01\xff\xfe"]
)
def test_invalid_types_are_refused(answer):
    assert "list of variables" in lost(answers={"O": frame(ord("O"), answer)})


def test_no_known_variable_is_refused():
    assert "list of variables" in lost(types={})


def test_a_refused_start_is_reported():
    assert "refused to start" in lost(answers={"S": frame(ord("S"), b"\x00")})


def test_a_state_of_another_length_ends_reading():
    with (
        reading(stream=frame(ord("U"), state(1.0)[:-1])) as reader,
        pytest.raises(ConnectionLost, match="malformed"),
    ):
        all_of(reader, 1)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e300, -1e9])
@pytest.mark.parametrize("field", ["timestamp", "actual_q"])
def test_an_impossible_number_names_its_field(field, number):
    values = [1.0, *Q]
    values[{"timestamp": 0, "actual_q": 4}[field]] = number
    stream = data(1.0) + frame(ord("U"), b"\x01" + struct.pack(">7dI", *values, 2))

    with (
        reading(stream=stream) as reader,
        pytest.raises(ImplausibleState, match="which is not possible for an arm") as raised,
    ):
        all_of(reader, 2)

    assert raised.value.field == field


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("runtime_state", "DOUBLE"),
        ("actual_q", "DOUBLE"),
        ("actual_q", "VECTOR3D"),
        ("timestamp", "BOOL"),
    ],
)
def test_another_type_is_refused(field, kind):
    assert f"it sends {field} as {kind}" in lost(types=TYPES | {field: kind})


def test_no_state_is_an_error():
    with (
        reading(timeout=0.1) as reader,
        pytest.raises(ConnectionLost, match="no state was received"),
    ):
        reader.first()


def test_the_end_follows_the_last_states():
    def hang_up_soon(connection):
        time.sleep(0.1)

    with reading(stream=data(1.0), then=hang_up_soon) as reader:
        assert reader.first()["timestamp"] == 1.0

        with pytest.raises(ConnectionLost, match="closed the connection"):
            reader.wait(PATIENCE)


def test_leaving_ends_the_connection():
    gone = threading.Event()

    def until_gone(connection):
        connection.recv(1)
        gone.set()

    with listening(FAKE, PORT, Controller(then=until_gone)):
        with RtdeReader(FAKE, ALL):
            pass

        assert gone.wait(PATIENCE)


def test_a_failed_start_ends_the_connection():
    gone = threading.Event()

    def until_gone(connection):
        Controller(answers={"S": frame(ord("S"), b"\x00")})(connection)
        gone.set()

    with listening(FAKE, PORT, until_gone):
        with pytest.raises(ConnectionLost), RtdeReader(FAKE, ALL):
            pass

        assert gone.wait(PATIENCE)


# ---- the emulator


@pytest.fixture(params=[("e_series", 0.002), ("cb3", 0.008)])
def emulated(request):
    name, period = request.param
    return request.getfixturevalue(name).host, period


def test_every_emulated_state_comes_once(emulated):
    host, period = emulated
    with RtdeReader(host, ALL) as reader:
        states = all_of(reader, round(0.4 / period))
    ticks = [round(s["timestamp"] / period) for s in states]

    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))


def test_a_slow_reader_misses_nothing(emulated):
    host, period = emulated
    with RtdeReader(host, ALL) as reader:
        states = all_of(reader, 1)
        time.sleep(0.2)
        states += all_of(reader, 1)
    ticks = [round(s["timestamp"] / period) for s in states]

    assert len(ticks) > 10
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))


def test_what_the_software_does_not_have_is_dropped(emulated):
    host, _ = emulated
    with RtdeReader(host, ("timestamp", "no_such_variable", "actual_q")) as reader:
        assert reader.variables == ("timestamp", "actual_q")
        assert len(reader.first()["actual_q"]) == 6


def test_an_input_has_one_client(emulated):
    host, _ = emulated
    first = RtdeClient(host)

    second = RtdeClient(host)

    assert first.input_types(["no_such"]) == ["NOT_FOUND"]
    assert first.input_types(["input_int_register_0"]) == ["INT32"]
    assert second.input_types(["input_int_register_0"]) == ["IN_USE"]

    first.close()
    end = time.monotonic() + PATIENCE
    while second.input_types(["input_int_register_0"]) != ["INT32"]:
        assert time.monotonic() < end
        time.sleep(0.01)
    second.close()
