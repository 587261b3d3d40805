"""Damaged and hostile input to every parser.

Each parser returns what it means, or one error of ours, within bounded time and memory.

Each parser gets a valid input with random changes. The short form is part of `make test` and is the
same every time; the long one is part of `make soak`. The emulator's servers and its compiler have
theirs in tests/emulator.
"""

from __future__ import annotations

import gzip
import json
import resource
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from simbridge.emulator.control import Control
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram
from simbridge.emulator.running import RunningController
from simbridge.emulator.state import profile
from simbridge.errors import SimbridgeError
from simbridge.judging import read_log as judging
from simbridge.planning.plan import Plan
from simbridge.planning.scenario import load_scenario
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_directory import RunDirectory
from simbridge.resources import ROBOTS
from simbridge.robot import load_robot
from simbridge.robot.calibration import nominal_dh
from simbridge.robot.calibration_file import write_calibration
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell, write_cell
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.obstacles import Box
from simbridge.servo.plant import load_plant
from simbridge.teleop.datagram_exchange import DatagramExchange
from simbridge.trajectory.bag_writer import write_bag
from simbridge.trajectory.files import read_bag, read_trajectory
from simbridge.trajectory.rtde_recording import read_rtde
from simbridge.trajectory.trajectory import Trajectory
from simbridge.trajectory.writers import write_csv
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.primary import read_arm_description
from simbridge.ur.rtde import RtdeReader, frame
from tests import ros_calibration
from tests.judging.controller_bags import ControllerBag, moving
from tests.teleop.fake_session import FakeSession
from tests.ur.test_primary import CARTESIAN, CONFIGURATION, KINEMATICS, ROBOT_MODE, VERSION, state

pytestmark = pytest.mark.quick

# Time that reading may take, s.
TIME = 20
# Bytes that the process may grow by.
MEMORY = 1 << 30
# Nothing is connected: the sockets are replaced.
HOST = "127.0.0.1"
UR10E = load_robot("ur10e")

# What breaks parsers, besides random bytes.
JUNK = [
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"9" * 5_000,
    b"0x",
    b"[" * 2_000,
    b"{" * 2_000,
    b"a." * 2_000,
    b"\n",
    b"\0",
    b"'",
    b'"""',
    b"''' ",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!python/name:os.system ",
    b"- " * 500,
    b"<a>" * 500,
    b"<!DOCTYPE a>",
    b"\xff" * 4,
    b"\xff" * 8,
    b"\x7f" * 8,
    bytes(8),
    b"\x01\x00",
    b"\xef\xbb\xbf",
    b"../../",
    b"/dev/zero",
    *(struct.pack("<I", size) for size in (1, 2**31, 2**32 - 1)),
]
CHANGES = st.lists(
    st.tuples(
        st.floats(0.0, 1.0), st.integers(0, 40), st.sampled_from(JUNK) | st.binary(max_size=12)
    ),
    max_size=4,
)


def damage(data: bytes, changes: list[tuple[float, int, bytes]], cut: float) -> bytes:
    """Replace parts of data by junk, and cut off its end.

    Args:
        data: The valid input.
        changes: Where each begins, 0 to 1 of the length; how many bytes go; what comes instead.
        cut: The part that is kept, 0 to 1.
    """
    for fraction, length, junk in changes:
        begin = round(fraction * len(data))
        data = data[:begin] + junk + data[begin + length :]
    return data[: round(cut * len(data))]


@contextmanager
def bounded() -> Iterator[None]:
    """One error of ours at most, in the time and memory that are allowed."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done within {TIME} s")

    earlier = signal.signal(signal.SIGALRM, late)
    signal.alarm(TIME)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        yield
    except SimbridgeError as error:
        assert str(error)
    except TimeoutError as error:
        assert str(error) != f"not done within {TIME} s"
        raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY


# Files: for each a writer of a valid one, or its text; and its reader.

K = np.arange(20)
MOTION = Trajectory(
    0.1 * K,
    np.column_stack([0.7 + 0.01 * K, *np.tile([0.164, 0.3, 1.0, 0.0, 0.0, 0.0], (20, 1)).T]),
)
RECORDING = "timestamp " + " ".join(f"target_q_{i} actual_q_{i}" for i in range(6)) + "\n"
RECORDING += "".join(
    " ".join(map(str, [0.002 * k, *np.arange(12) / 7.0])) + "\n" for k in range(20)
)
CELL = Cell(
    robot="ur10e",
    payload=1.0,
    tcp=(0.0,) * 6,
    keep_out_boxes=(Box("table", (0.8, 0.0, -0.4), (0.6, 1.2, 0.7)),),
)
DH = nominal_dh(UR10E)


def read_in_run(name: str, read: Callable[[RunDirectory], object]) -> Callable[[Path], object]:
    """A reader of a file in the place of one of a run."""

    def call(path: Path) -> object:
        run = RunDirectory(path.parent)
        setattr(run, name, path)
        return read(run)

    return call


def write_yaml(path: Path) -> None:
    ros_calibration.write(path, ros_calibration.printed(DH.theta, DH.a, DH.d, DH.alpha))


ROWS = [",".join(map(repr, (*row[3:], *row[:3]))) for row in MOTION.poses.tolist()]
MOTIVE = (
    "Format Version,1.23,Rotation Type,Quaternion,Length Units,Meters\n\n"
    f",Type{',Rigid Body' * 7}\n,Name{',Tool' * 7}\n,ID{',1' * 7}\n"
    f",,{'Rotation,' * 4}{'Position,' * 3}\n"
    "Frame,Time (Seconds),X,Y,Z,W,X,Y,Z\n"
) + "".join(f"{k},{0.01 * k!r},{row}\n" for k, row in enumerate(ROWS))
VICON = "Objects\n100\n,,lab:tool\nFrame,Sub Frame,RX,RY,RZ,RW,TX,TY,TZ\n,,,,,,m,m,m\n" + "".join(
    f"{k},0,{row}\n" for k, row in enumerate(ROWS)
)
ECHO = "".join(
    f"1764097182,{k * 10**7},base_link,{','.join(map(repr, row))}\n"
    for k, row in enumerate(MOTION.poses.tolist())
)


def controller_bag() -> ControllerBag:
    """A bag of ROS 1 with all that a trajectory controller and UR's driver publish."""
    motion = moving()
    bag = ControllerBag(ros1=True, generation="desired")
    for time, reference, actual in zip(motion.times, motion.reference, motion.actual, strict=True):
        bag.joint_state(time, actual)
        bag.state(time, reference, actual)
    bag.ros1_goal(0.01, "a", [(0.0, motion.reference[0]), (1.0, motion.reference[-1])])
    bag.ros1_result(0.1, "a", 4, -4)
    bag.value(0.05, "/ur/safety_mode", "ur_dashboard_msgs/msg/SafetyMode", 3)
    return bag


WRITERS: dict[str, Callable[[Path], object]] = {
    "robot.toml": lambda path: path.write_bytes((ROBOTS / "ur10e.toml").read_bytes()),
    "cell.toml": lambda path: write_cell(path, CELL),
    "calibration.toml": lambda path: write_calibration(path, DH, (1, 2, 3, 4, 5, 6)),
    "plant.toml": lambda path: path.write_text(
        "[servoj]\ngain = 300.0\nlookahead_s = 0.1\n[joint_servo]\nlag_s = 0.001\n"
    ),
    "calibration.yaml": write_yaml,
    "arm.urdf": lambda path: path.write_text(
        (Path(__file__).parents[1] / "data/urdf/gripper.urdf").read_text()
    ),
    "poses.csv": lambda path: write_csv(path, MOTION.times, MOTION.poses),
    "recording.csv": lambda path: path.write_text(RECORDING),
    "recording.csv.gz": lambda path: path.write_bytes(gzip.compress(RECORDING.encode())),
    "motive.csv": lambda path: path.write_text(MOTIVE),
    "vicon.csv": lambda path: path.write_text(VICON),
    "echo.csv": lambda path: path.write_text(ECHO),
    "poses.npz": lambda path: np.savez(
        path, t=MOTION.times, position=MOTION.poses[:, :3], xyzw=MOTION.poses[:, 3:]
    ),
    "poses.bag": lambda path: write_bag(path, MOTION),
    "poses.mcap": lambda path: write_bag(path, MOTION),
    "controller.bag": lambda path: controller_bag().write(path),
}
READERS: dict[str, Callable[[Path], object]] = {
    "robot.toml": load_robot,
    "cell.toml": load_cell,
    "calibration.toml": lambda path: with_kinematics(UR10E, path),
    "plant.toml": load_plant,
    "calibration.yaml": lambda path: with_kinematics(UR10E, path),
    "arm.urdf": load_robot,
    "poses.csv": read_trajectory,
    "recording.csv": lambda path: (read_rtde(path), load_scenario(path, UR10E)),
    "recording.csv.gz": read_rtde,
    "motive.csv": read_trajectory,
    "vicon.csv": read_trajectory,
    "echo.csv": read_trajectory,
    "poses.npz": read_trajectory,
    "poses.bag": read_bag,
    "poses.mcap": read_bag,
    "controller.bag": judging.read_log,
    "bag.db3": read_bag,
    "metadata.yaml": lambda path: read_bag(path.parent),
    "log.mcap": read_log,
    "settings.toml": read_in_run("settings_file", lambda run: run.settings()),
    "plan.npz": read_in_run("plan_file", lambda run: run.plan(Plan.from_arrays)),
    "summary.json": read_in_run("summary_file", lambda run: run.summary()),
}


@pytest.fixture(scope="module")
def valid(tmp_path_factory, line_run) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("valid")
    for name, write in WRITERS.items():
        write(folder / name)
    write_bag(folder / "bag", MOTION)
    inside = [folder / "bag" / name for name in ("bag.db3", "metadata.yaml")]
    files = [
        *(folder / name for name in WRITERS),
        *inside,
        *(path for path in line_run.iterdir() if path.name in READERS),
    ]
    return {path.name: path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, valid) -> Path:
    folder = tmp_path_factory.mktemp("bag")
    (folder / "bag.db3").write_bytes(valid["bag.db3"])
    return folder


def check_file(name: str, folder: Path, data: bytes) -> None:
    path = folder / name
    earlier = path.read_bytes() if path.exists() else None
    path.write_bytes(data)
    with bounded():
        READERS[name](path)
    path.unlink()
    if earlier is not None:
        path.write_bytes(earlier)


# Ports: what the other side sends, and the client.

STATE = frame(ord("U"), b"\x01" + struct.pack(">7dI", 1.0, *[0.1] * 6, 2))
SERVER_STREAMS: dict[str, bytes] = {
    "RTDE": frame(ord("V"), b"\x01")
    + frame(ord("v"), struct.pack(">4I", 5, 12, 6, 0))
    + frame(ord("O"), b"\x01DOUBLE,VECTOR6D,UINT32")
    + frame(ord("S"), b"\x01")
    + STATE * 3,
    "primary": VERSION + state(ROBOT_MODE, CARTESIAN, KINEMATICS, CONFIGURATION) * 3,
    "dashboard": (
        b"Connected: Universal Robots Dashboard Server\nURSoftware 5.12.6\n20201234567\ntrue\n"
        b"STOPPED a\n"
    ),
}


def rtde() -> None:
    with RtdeReader(HOST, ("timestamp", "actual_q", "runtime_state")) as reader:
        while True:
            for package in reader.wait(1.0):
                assert np.isfinite([package["timestamp"], *package["actual_q"]]).all()


def dashboard() -> None:
    with DashboardClient(HOST) as client:
        client.polyscope_version()
        client.serial_number()
        client.is_in_remote_control()
        client.loaded_program()
        client.stop()


CLIENTS: dict[str, Callable[[], object]] = {
    "RTDE": rtde,
    "primary": lambda: read_arm_description(HOST),
    "dashboard": dashboard,
}


class FakeSocket:
    """A socket whose other side sends this, however it is asked, and leaves."""

    def __init__(self, data: bytes) -> None:
        self._remaining = data

    def recv(self, count: int) -> bytes:
        data = self._remaining[: min(count, 100)]
        self._remaining = self._remaining[min(count, 100) :]
        return data

    def __enter__(self) -> FakeSocket:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def check_port(name: str, data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch, bounded():
        patch.setattr(socket, "create_connection", lambda *_, **__: FakeSocket(data))
        CLIENTS[name]()


# The emulator's control socket

COMMANDS = [
    {"do": "slider", "fraction": 0.5},
    {"do": "drop", "port": 30004, "client": 0},
    {"do": "mute", "port": 30001},
    {"do": "delay", "port": 29999, "seconds": 0.1, "jitter": 0.01},
    {"do": "state"},
    {"do": "refuse", "port": 30002},
    {"do": "take_registers", "names": ["input_int_register_0"]},
    {"do": "run_script", "source": "def f():\nend"},
]


@pytest.fixture(scope="module")
def control() -> Control:
    """Not started: no tick, no port."""
    return Control(
        RunningController(EmulatedController(UR10E, profile("5.12"), ScriptProgram), HOST)
    )


def check_command(control: Control, data: bytes) -> None:
    with bounded():
        answer = control.answer(data)
        assert answer.keys() in ({"ok", "value"}, {"ok", "error"})
        json.dumps(answer)


# Datagrams of teleoperation

MESSAGES = [
    {"type": "halt"},
    {"type": "status"},
    {"type": "engage"},
    {"type": "disengage"},
    {"type": "button", "button": "grip", "pressed": True},
    {"type": "jog", "engagement": 1, "values": [0.1] * 6},
    {
        "type": "pose",
        "engagement": 1,
        "values": [0.5, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0],
        "relative": True,
    },
    {"type": "twist", "engagement": 1, "values": [0.1] * 6, "frame": "tool"},
    {"type": "joints", "engagement": 1, "values": [0.1] * 6},
]


def check_datagram(message: dict, changes: list[tuple[float, int, bytes]], cut: float) -> None:
    exchange = DatagramExchange("token of the user")
    session = FakeSession()
    datagram = json.dumps(
        {"client": "a", "seq": 1, "token": "token of the user", **message}
    ).encode()
    with bounded():
        exchange.receive(damage(datagram, changes, cut), (HOST, 1), 0.0)
        reading = exchange.take()
        # A motion would be of no engagement.
        assert reading.commands == ()
        assert set(reading.requests) <= {"engage", "halt", "disengage"}
        ((reply, _),) = exchange.replies(session, "")
        assert isinstance(json.loads(reply)["ok"], bool)
        assert len(reply) < 2_000


SHORT = settings(
    max_examples=15,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
LONG = settings(
    max_examples=1_500,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
CUT = st.just(1.0) | st.floats(0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@SHORT
@given(changes=CHANGES, cut=CUT)
def test_a_damaged_file_is_read_or_refused(valid, folder, name, changes, cut) -> None:
    check_file(name, folder, damage(valid[name], changes, cut))


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
@SHORT
@given(changes=CHANGES, cut=CUT)
def test_a_damaged_stream_is_read_or_lost(name, changes, cut) -> None:
    check_port(name, damage(SERVER_STREAMS[name], changes, cut))


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["do"])
@SHORT
@given(changes=CHANGES, cut=CUT)
def test_a_damaged_command_is_answered(control, command, changes, cut) -> None:
    check_command(control, damage(json.dumps(command).encode(), changes, cut))


@pytest.mark.slow
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
@SHORT
@given(changes=CHANGES, cut=CUT)
def test_a_damaged_datagram_is_answered(message, changes, cut) -> None:
    check_datagram(message, changes, cut)


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
@LONG
@given(changes=CHANGES, cut=CUT)
def test_a_thousandfold_damaged_file_is_handled(valid, folder, name, changes, cut) -> None:
    check_file(name, folder, damage(valid[name], changes, cut))


@pytest.mark.soak
@pytest.mark.parametrize("name", CLIENTS)
@LONG
@given(changes=CHANGES, cut=CUT)
def test_a_thousandfold_damaged_stream_is_handled(name, changes, cut) -> None:
    check_port(name, damage(SERVER_STREAMS[name], changes, cut))


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command["do"])
@LONG
@given(changes=CHANGES, cut=CUT)
def test_a_thousandfold_damaged_command_is_answered(control, command, changes, cut) -> None:
    check_command(control, damage(json.dumps(command).encode(), changes, cut))


@pytest.mark.soak
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
@LONG
@given(changes=CHANGES, cut=CUT)
def test_a_thousandfold_damaged_datagram_is_answered(message, changes, cut) -> None:
    check_datagram(message, changes, cut)
