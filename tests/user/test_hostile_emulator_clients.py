"""Hostile clients of the whole emulator.

Each is answered or disconnected, and a well-behaved client misses no tick.

Ticks are counted, not timed: the stream's timestamps are consecutive multiples of the control
period.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.emulator.errors import EmulatorError
from simbridge.emulator.handle import Emulator
from simbridge.emulator.servers import MAX_CLIENTS
from simbridge.ur.tables import CONTROL, DASHBOARD, PRIMARY, REALTIME, RTDE, SECONDARY
from tests.controllers import loopback
from tests.patience import PATIENCE
from tests.properties import variants

HOST = loopback(74)
# The tests share an emulator, so they run in one worker.
pytestmark = pytest.mark.shares_setup
PERIOD = 0.002
ALL_PORTS = (DASHBOARD, PRIMARY, SECONDARY, REALTIME, RTDE)
GREETING = b"Connected: Universal Robots Dashboard Server\n"


def connect(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=PATIENCE)


class Stream:
    """A well-behaved RTDE client that takes every tick's timestamp, in a thread."""

    def __init__(self) -> None:
        self.ticks: list[int] = []
        self._socket = connect(RTDE)
        self._file = self._socket.makefile("rb")
        for kind, payload in (
            (86, b"\x00\x02"),
            (79, struct.pack(">d", 500.0) + b"timestamp"),
            (83, b""),
        ):
            self._socket.sendall(struct.pack(">HB", 3 + len(payload), kind) + payload)
            assert self._package()[0] == kind
        self._grown = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _package(self) -> tuple[int, bytes]:
        size, kind = struct.unpack(">HB", self._file.read(3))
        return kind, self._file.read(size - 3)

    def _run(self) -> None:
        with contextlib.suppress(OSError, struct.error):
            while True:
                (time,) = struct.unpack(">d", self._package()[1][1:])
                with self._grown:
                    self.ticks.append(round(time / PERIOD))
                    self._grown.notify()

    def goes_on(self, count: int = 50) -> None:
        """Wait for more ticks, and check that none was missed since the stream began."""
        with self._grown:
            wanted = len(self.ticks) + count
            assert self._grown.wait_for(lambda: len(self.ticks) >= wanted, timeout=PATIENCE), (
                "the stream has ended"
            )
            ticks = list(self.ticks)
        assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator("ur10e", host=HOST, boot_time=0.05) as controller:
        yield controller


@pytest.fixture
def stream(emulator: Emulator) -> Iterator[Stream]:
    emulator.do("stop_program")
    stream = Stream()
    try:
        stream.goes_on(10)
        yield stream
        stream.goes_on()
    finally:
        stream.close()


def send(port: int, data: bytes) -> socket.socket:
    """A client that has sent this, or as much of it as was read before it was disconnected."""
    client = connect(port)
    with contextlib.suppress(ConnectionError):
        client.sendall(data)
    return client


def dropped(client: socket.socket) -> bool:
    """Wait until the other side has closed; what it sends until then is dropped."""
    with contextlib.suppress(ConnectionError):
        while client.recv(65536):
            pass
    client.close()
    return True


def message_received(watcher: socket.socket, words: bytes) -> bool:
    """Wait until the primary interface has sent this."""
    received = b""
    while words not in received:
        received = received[-200:] + watcher.recv(65536)
    return True


# Frames


FRAMES = {
    RTDE: struct.pack(">HBd", 3 + 8 + 9, 79, 500.0) + b"timestamp",
    DASHBOARD: b"robotmode\n",
    PRIMARY: b"def f():\n  sync()\nend\n",
    SECONDARY: b"sec f():\n  textmsg(1)\nend\n",
    REALTIME: b"def f():\n  sleep(1)\nend\n",
}


@pytest.mark.parametrize("port", ALL_PORTS)
def test_truncated_frames_do_not_disturb_the_stream(stream: Stream, port: int) -> None:
    frame = FRAMES[port]
    for length in range(1, len(frame)):
        client = send(port, frame[:length])
        client.shutdown(socket.SHUT_WR)
        assert dropped(client)


@pytest.mark.parametrize(
    ("port", "data"),
    [
        (RTDE, struct.pack(">HB", 2, 79)),
        (RTDE, struct.pack(">HB", 65535, 255) + bytes(65532)),
        (RTDE, struct.pack(">HBd", 65535, 79, 500.0) + b"x," * 32762),
        (RTDE, struct.pack(">HB", 65535, 73) + b"x," * 32766),
        (DASHBOARD, b"popup " + b"x" * 100_000 + b"\n"),
        (DASHBOARD, b"x" * 100_000),
    ],
    ids=["size-2", "unknown-kind", "many-outputs", "many-inputs", "long-line", "endless-line"],
)
def test_a_client_that_sends_an_oversized_frame_is_disconnected(
    stream: Stream, port: int, data: bytes
) -> None:
    assert dropped(send(port, data))


def test_a_script_over_a_mebibyte_has_its_client_disconnected(stream: Stream) -> None:
    assert dropped(send(SECONDARY, b"def f():\n" + b"x = 1\n" * ((1 << 20) // 6 + 1)))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ALL_PORTS), st.binary(min_size=1, max_size=300)),
        min_size=1,
        max_size=5,
    )
)
def test_random_bytes_on_every_port_do_not_disturb_the_stream(
    long_stream: Stream, attack: list[tuple[int, bytes]]
) -> None:
    clients = [send(port, data) for port, data in attack]
    long_stream.goes_on(5)
    for client in clients:
        client.close()


@pytest.fixture(scope="module")
def long_stream(emulator: Emulator) -> Iterator[Stream]:
    stream = Stream()
    yield stream
    stream.goes_on()
    stream.close()


# Connections


@pytest.mark.parametrize("port", variants(ALL_PORTS, RTDE, DASHBOARD))
def test_half_open_connections_disturb_nobody(stream: Stream, port: int) -> None:
    clients = [send(port, FRAMES[port][:5]) for _ in range(30)]
    stream.goes_on()
    with connect(DASHBOARD) as dashboard:
        assert dashboard.recv(len(GREETING), socket.MSG_WAITALL) == GREETING
    for client in clients:
        # Reset the connection.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()


@pytest.mark.parametrize("port", variants(ALL_PORTS, RTDE, DASHBOARD))
def test_a_crowd_is_limited_to_its_port_and_can_leave(stream: Stream, port: int) -> None:
    crowd = [connect(port) for _ in range(MAX_CLIENTS + 20)]

    assert all(dropped(client) for client in crowd[-20:])

    stream.goes_on(150)
    with connect(DASHBOARD if port != DASHBOARD else PRIMARY) as other:
        assert other.recv(1)
    for client in crowd:
        client.close()


# Programs


def script(name: str, body: str) -> bytes:
    return f"def {name}():\n{body}\nend\n".encode()


def test_endless_loop_leaves_the_stream_undisturbed(emulator: Emulator, stream: Stream) -> None:
    with send(SECONDARY, script("endless", "x = 0\nwhile True:\n  x = x + 1\nend")):
        emulator.wait_for("runtime_state", "PLAYING")
        stream.goes_on(150)
        assert emulator.state()["runtime_state"] == "PLAYING"
    with connect(PRIMARY) as watcher, send(SECONDARY, script("next", '  textmsg("replaced")')):
        assert message_received(watcher, b"replaced")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def f(n):\n  return f(n + 1)\nend\nx = f(0)", b"deep"),
        (
            "thread t():\n  run t()\n  while True:\n    sync()\n  end\nend\nrun t()\nsleep(100)",
            b"threads",
        ),
        ("x = " + "[" * 5000 + "]" * 5000, b"deep"),
        ("if True:\n" * 5000 + "x = 1\n" + "end\n" * 5000, b"deep"),
        ('s = "ab"\nwhile True:\n  s = str_cat(s, s)\nend', b"characters"),
    ],
    ids=["recursion", "threads", "brackets", "blocks", "string"],
)
def test_a_greedy_program_is_ended_and_the_reason_reported(
    stream: Stream, body: str, words: bytes
) -> None:
    with connect(PRIMARY) as watcher, send(SECONDARY, script("greedy", body)):
        assert message_received(watcher, words)


def heavy(name: str) -> bytes:
    """Just under a megabyte, and as expensive to compile as possible."""
    return script(name, "f()" * 330_000)


def test_long_compilation_leaves_the_stream_undisturbed(
    stream: Stream,
) -> None:
    with send(SECONDARY, heavy("f")):
        stream.goes_on(400)
        with connect(PRIMARY) as watcher, send(REALTIME, script("next", '  textmsg("it runs")')):
            assert message_received(watcher, b"it runs")


@pytest.mark.soak
def test_memory_stays_bounded(emulator: Emulator, stream: Stream) -> None:
    def resident() -> int:
        status = Path(f"/proc/{emulator.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def repeated(times: int, act: Callable[[], socket.socket]) -> None:
        for _ in range(times):
            act().close()

    before = resident()
    repeated(20, lambda: send(SECONDARY, heavy("f")))
    repeated(20, lambda: send(PRIMARY, script("many", "x = 1")))
    repeated(20, lambda: send(RTDE, struct.pack(">HBd", 65535, 79, 500.0) + b"x" * 65000))
    repeated(200, lambda: send(REALTIME, b"sec s():\n  while True:\n  end\nend\n"))
    stream.goes_on()

    assert resident() - before < 100 * 1024  # kB


# The control socket


# Those of each kind that `make test` tries are named below.
CONTROL_LINES = {
    "no JSON": b"hello",
    "no object": b"[]",
    "no command": b"{}",
    "a number as command": b'{"do": 5}',
    "a list as command": b'{"do": ["state"]}',
    "a private name": b'{"do": "_running"}',
    "brackets": b'{"do": ' + b"[" * 60_000,
    "brackets of a megabyte": b"[" * (1 << 20),
    "a long number": b'{"do": "slider", "fraction": ' + b"9" * 6_000 + b"}",
    "a number too large": b'{"do": "slider", "fraction": 1e999}',
    "bytes": bytes(range(128, 256)),
    "client": b'{"do": "drop", "port": 30004, "client": "all"}',
    "negative client": b'{"do": "drop", "port": 30004, "client": -1}',
    "real client": b'{"do": "drop", "port": 30004, "client": 0.5}',
    "port": b'{"do": "drop", "port": "30004"}',
    "list of ports": b'{"do": "drop", "port": [30004]}',
    "slider": b'{"do": "slider", "fraction": 1e9}',
    "negative slider": b'{"do": "slider", "fraction": -0.1}',
    "delay": b'{"do": "delay", "port": 29999, "seconds": 1e12}',
    "jitter": b'{"do": "delay", "port": 29999, "seconds": 0, "jitter": 1e12}',
    "endless delay": b'{"do": "delay", "port": 29999, "seconds": Infinity}',
    "freeze": b'{"do": "freeze", "seconds": 1e9}',
    "registers": b'{"do": "take_registers", "names": [["a"]]}',
    "registers as text": b'{"do": "take_registers", "names": "input_int_register_0"}',
    "script": b'{"do": "run_script", "source": 5}',
    "another argument": b'{"do": "state", "self": 1}',
    "a number as reason": b'{"do": "protective_stop", "reason": 5}',
    "a text for false": b'{"do": "mute", "port": 29999, "muted": "no"}',
    "a number for true": b'{"do": "refuse", "port": 29999, "refused": 1}',
    "a text for remote control": b'{"do": "remote_control", "on": "no"}',
    "a text as fraction": b'{"do": "slider", "fraction": "0.5"}',
    "true as fraction": b'{"do": "slider", "fraction": true}',
    "a text as time": b'{"do": "delay", "port": 29999, "seconds": "1"}',
    "a number as path": b'{"do": "save_record", "path": 5}',
    "an argument too many": b'{"do": "emergency_stop", "reason": ""}',
}


TRIED_LINES = (
    "no JSON",
    "no object",
    "no command",
    "a list as command",
    "a private name",
    "brackets of a megabyte",
    "a long number",
    "a number too large",
    "bytes",
    "negative client",
    "list of ports",
    "slider",
    "endless delay",
    "freeze",
    "registers",
    "script",
    "another argument",
    "a text for false",
    "true as fraction",
    "a number as path",
    "an argument too many",
)


@pytest.mark.parametrize("line", variants(CONTROL_LINES, *TRIED_LINES))
def test_refused_control_line_changes_nothing(
    emulator: Emulator, stream: Stream, line: str
) -> None:
    with socket.create_connection((HOST, CONTROL), timeout=PATIENCE) as client:
        client.sendall(CONTROL_LINES[line] + b"\n")
        answer = json.loads(client.makefile("rb").readline())

    assert answer["ok"] is False
    assert len(answer["error"]) < 5_000

    with connect(DASHBOARD) as dashboard:
        assert dashboard.recv(len(GREETING), socket.MSG_WAITALL) == GREETING
    state = emulator.state()

    assert (state["speed_slider"], state["safety_mode"]) == (1.0, "NORMAL")


@pytest.mark.parametrize("name", ["record.txt", "exists.npz", "link.npz", "elsewhere"])
def test_record_is_written_to_permitted_directories(
    emulator: Emulator, tmp_path: Path, name: str
) -> None:
    (tmp_path / "exists.npz").write_text("mine")
    (tmp_path / "link.npz").symlink_to("/var/lib/record.npz")
    path = Path("/var/lib/record.npz") if name == "elsewhere" else tmp_path / name

    with pytest.raises(
        EmulatorError,
        match=r"refused save_record: (ValueError: path is .*a new .npz file under|FileEx)",
    ):
        emulator.do("save_record", path=str(path))
    assert (tmp_path / "exists.npz").read_text() == "mine"
    assert not Path("/var/lib/record.npz").exists()

    emulator.do("save_record", path=str(tmp_path / "new.npz"))

    assert (tmp_path / "new.npz").exists()


def test_idle_clients_of_the_control_socket_keep_nobody_out(emulator: Emulator) -> None:
    crowd = [
        socket.create_connection((HOST, CONTROL), timeout=PATIENCE) for _ in range(MAX_CLIENTS + 20)
    ]

    assert emulator.state()["robot_mode"] == "RUNNING"
    assert all(dropped(client) for client in crowd[:20])

    for client in crowd[20:]:
        client.close()
