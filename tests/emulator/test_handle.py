"""The emulator as users start it: a separate process, faults on command, several side by side."""

from __future__ import annotations

import re
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from simbridge.emulator.arm_options import kinematics_of
from simbridge.emulator.errors import EmulatorError
from simbridge.emulator.handle import Emulator
from simbridge.emulator.settings import STATE
from simbridge.emulator.traffic import read_traffic
from simbridge.robot.calibration import nominal_dh
from simbridge.robot.calibration_difference import ros_difference
from simbridge.robot.load import load_robot
from simbridge.robot.ros_calibration_file import read_ros_calibration
from simbridge.ur.tables import CONTROL, PORT_NAMES, URSIM_CHECKSUM
from tests import ros_calibration
from tests.controllers import loopback
from tests.emulator.fake_controller import write_program
from tests.patience import PATIENCE

HOST = loopback(31)
OTHER = loopback(32)
# The tests share emulators, so they run in one worker.
pytestmark = pytest.mark.shares_setup


class Rtde:
    """A minimal RTDE client."""

    def __init__(self, host: str) -> None:
        self.socket = socket.create_connection((host, 30004), timeout=PATIENCE)
        assert self.ask(86, struct.pack(">H", 2)) == b"\x01"

    def __enter__(self) -> Rtde:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.socket.close()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionResetError("cut")
            data += more
        return data

    def receive(self) -> tuple[int, bytes]:
        size, kind = struct.unpack(">HB", self._read(3))
        return kind, self._read(size - 3)

    def ask(self, kind: int, payload: bytes = b"") -> bytes:
        self.socket.sendall(struct.pack(">HB", 3 + len(payload), kind) + payload)
        answered, answer = self.receive()
        assert answered == kind
        return answer

    def inputs(self, names: str) -> str:
        return self.ask(73, names.encode())[1:].decode()

    def doubles(self, names: str) -> tuple[float, ...]:
        """The values of output variables that are doubles, once."""
        self.ask(79, struct.pack(">d", 125.0) + names.encode())
        self.ask(83)
        kind, package = self.receive()
        assert kind == 85
        return struct.unpack(f">{names.count(',') + 1}d", package[1:])


@pytest.fixture(scope="module")
def shared():
    # It ticks a quarter as often as an e-Series controller.
    with Emulator("ur10", polyscope="3.15", host=HOST, boot_time=0.05) as controller:
        yield controller


@pytest.fixture
def emulator(shared):
    shared.do("slider", fraction=1.0)
    shared.do("stop_program")
    return shared


# SIGTERM in test_sigterm_ends_it_with_status_0, SIGINT in test_arms.py.
@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_with_status_0(number):
    host = loopback(33)
    with Emulator("ur10", polyscope="3.15", host=host, running=False, boot_time=0.05) as controller:
        assert controller.state()["robot_mode"] == "POWER_OFF"
        controller.do("power_on_and_release")
        assert controller.wait_for("robot_mode", "RUNNING")["safety_mode"] == "NORMAL"
        controller._process.send_signal(number)
        assert controller._process.wait(PATIENCE) == 0
    assert used_ports(host) == []


def used_ports(host: str) -> list[int]:
    """The ports of an emulator at which something listens."""
    used = []
    for port in (*PORT_NAMES, CONTROL):
        try:
            socket.create_server((host, port)).close()
        except OSError:
            used.append(port)
    return used


def test_the_robot_is_running_when_the_block_begins(emulator):
    assert emulator.state()["robot_mode"] == "RUNNING"


def test_a_script_runs_and_is_recorded(emulator):
    emulator.do(
        "run_script",
        source="def f():\nmovej([0.1, -1.5, 1.5, -1.5, -1.5, 0.2], a=5, v=2)\nsleep(60)\nend\n",
    )
    emulator.wait_for("target_q", [0.1, -1.5, 1.5, -1.5, -1.5, 0.2])
    record = emulator.record()

    assert record.target_q[-1] == pytest.approx([0.1, -1.5, 1.5, -1.5, -1.5, 0.2])
    assert (np.diff(record.tick) == 1).all()
    assert np.isnan(record.setpoint[-1]).all()

    emulator.do("stop_program")

    assert emulator.state()["runtime_state"] == "STOPPED"


def test_a_frozen_controller_does_not_tick(emulator):
    emulator.do("freeze", seconds=0.5)
    emulator.state()  # waits until it ends

    assert max(emulator.do("timing")["period"]) >= 0.5


def test_a_dropped_client_is_cut_and_can_reconnect(emulator):
    with Rtde(HOST) as client:
        emulator.do("drop", port=30004)
        with pytest.raises(OSError):
            client.ask(118)
    with Rtde(HOST) as client:
        assert struct.unpack(">4I", client.ask(118))[:2] == (3, 15)


def test_a_muted_port_accepts_and_sends_nothing(emulator):
    emulator.do("mute", port=29999)
    try:
        with (
            socket.create_connection((HOST, 29999), timeout=0.3) as client,
            pytest.raises(TimeoutError),
        ):
            client.recv(100)
    finally:
        emulator.do("mute", port=29999, muted=False)
    with socket.create_connection((HOST, 29999), timeout=PATIENCE) as client:
        assert client.recv(100).startswith(b"Connected")


def test_a_refusing_port_accepts_nobody_until_switched_back(emulator):
    emulator.do("refuse", port=30003)

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, 30003), timeout=PATIENCE)

    emulator.do("refuse", port=30003, refused=False)
    socket.create_connection((HOST, 30003), timeout=PATIENCE).close()


def test_the_slider_is_followed_by_the_speed_scaling(emulator):
    emulator.do("slider", fraction=0.5)
    emulator.wait_for("speed_scaling", 0.5)
    with Rtde(HOST) as client:
        assert client.doubles("target_speed_fraction") == (0.5,)


def test_claimed_registers_are_in_use_until_they_are_released(emulator):
    assert emulator.do("take_registers", names=["input_double_register_3"]) == []

    with Rtde(HOST) as client:
        assert client.inputs("input_double_register_3,input_double_register_4") == "IN_USE,DOUBLE"
    emulator.do("release_registers")
    with Rtde(HOST) as client:
        assert client.inputs("input_double_register_3") == "DOUBLE"


def test_registers_that_a_client_has_cannot_be_claimed(emulator):
    with Rtde(HOST) as client:
        assert client.inputs("input_int_register_9") == "INT32"
        assert emulator.do("take_registers", names=["input_int_register_9"]) == [
            "input_int_register_9"
        ]


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        ("dance", {}, "dance.*known.*protective_stop"),
        ("_locked", {}, "_locked"),
        ("slider", {}, "fraction"),
        ("slider", {"fraction": "fast"}, "fast"),
        ("slider", {"fraction": float("nan")}, "fraction"),
        ("freeze", {"seconds": -1.0}, "seconds"),
        ("drop", {"port": 80}, "80.*30004"),
        ("take_registers", {"names": ["input_soup"]}, "input_soup"),
    ],
)
def test_invalid_command_changes_nothing(emulator, command, arguments, named):
    with pytest.raises(EmulatorError, match=named):
        emulator.do(command, **arguments)

    tick = emulator.state()["tick"]

    assert emulator.record().tick[-1] >= tick

    with Rtde(HOST) as client:
        assert len(client.ask(118)) == 16


@pytest.mark.parametrize("line", [b"no json\n", b"[]\n", b"{}\n", b'{"do": 3}\n', b"\xff\xfe\n"])
def test_unknown_command_is_answered_with_error(emulator, line):
    with socket.create_connection((HOST, 30020), timeout=PATIENCE) as client:
        client.sendall(line)
        assert client.recv(1000).startswith(b'{"ok": false')


START_POSE = [-0.3, -1.4, 1.2, -1.1, -1.5, 0.2]
SPEED_LIMITS = [2.0, 2.0, 3.0, 3.0, 3.0, 3.1]


class Entered(NamedTuple):
    """An emulator that was entered once, ran a program and was ended by SIGTERM.

    Attributes:
        emulator: The emulator.
        state: Its state on entering.
        pid: Its process.
        log: What it had printed when the program had run.
        status: The exit status of the process.
        used_ports: The ports that were in use when it had ended.
        traffic: The file with its traffic.
        traffic_ports: The ports at which it had traffic.
    """

    emulator: Emulator
    state: dict[str, Any]
    pid: int
    log: str
    status: int
    used_ports: list[int]
    traffic: Path
    traffic_ports: set[int]


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    """See `Entered`."""
    directory = tmp_path_factory.mktemp("entered")
    write_program(directory / "weld.urp", '<Wait type="Sleep"><waitTime>0.1</waitTime></Wait>')
    traffic = directory / "traffic.jsonl"
    emulator = Emulator(
        host=OTHER,
        polyscope="5.25",
        programs=directory,
        start_pose=START_POSE,
        joint_speed_limit=SPEED_LIMITS,
        speed=3.0,
        traffic=traffic,
    )
    with emulator:
        state = emulator.state()
        with socket.create_connection((OTHER, 29999), timeout=PATIENCE) as client:
            client.sendall(b"load weld.urp\nplay\n")
            emulator.wait_for("program", "weld")
        emulator.wait_for("runtime_state", "STOPPED")
        deadline = time.monotonic() + PATIENCE
        while "weld took" not in emulator.log:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        pid = emulator.pid
        log = emulator.log
        emulator._process.send_signal(signal.SIGTERM)
        status = emulator._process.wait(PATIENCE)
    return Entered(
        emulator=emulator,
        state=state,
        pid=pid,
        log=log,
        status=status,
        used_ports=used_ports(OTHER),
        traffic=traffic,
        traffic_ports={exchange.port for exchange in read_traffic(traffic)},
    )


def test_arguments_take_effect_on_entering(entered):
    assert entered.state["target_q"] == START_POSE
    assert entered.state["settings"]["joint_speed_limit"] == SPEED_LIMITS
    assert "weld took" in entered.log
    assert entered.traffic_ports == {29999}


def test_sigterm_ends_it_with_status_0(entered):
    assert entered.status == 0
    assert entered.used_ports == []


class EnteredAgain(NamedTuple):
    """An emulator that was entered a second time.

    Attributes:
        emulator: The emulator.
        pid: Its process.
        log: What it had printed on entering.
        target_q: Its target on entering, rad.
    """

    emulator: Emulator
    pid: int
    log: str
    target_q: list[float]


@pytest.fixture(scope="module")
def again(entered):
    """The emulator of `entered` once more; test_two_emulators_run_independently kills it."""
    entered.traffic.unlink()
    with entered.emulator as emulator:
        target_q = emulator.state()["target_q"]
        yield EnteredAgain(emulator, emulator.pid, emulator.log, target_q)


def test_an_emulator_is_entered_again_as_anew(entered, again):
    assert again.pid != entered.pid
    assert "weld took" not in again.log
    assert again.target_q == START_POSE


def test_two_emulators_run_independently(emulator, again):
    other = again.emulator
    other.do("protective_stop")
    assert other.state()["safety_mode"] == "PROTECTIVE_STOP"
    assert emulator.state()["safety_mode"] == "NORMAL"
    with Rtde(OTHER) as client:
        assert struct.unpack(">4I", client.ask(118))[:2] == (5, 25)
        with pytest.raises(EmulatorError, match="status 9"):
            other.do("kill")
        with pytest.raises(OSError):
            client.ask(118)
    assert other._process.wait(PATIENCE) == 9


@pytest.mark.usefixtures("emulator")
def test_used_address_is_refused_with_port(cli):
    answer = cli("emulate", "--host", HOST, "--control-port", 30021)

    assert answer.status == 2
    assert f"{HOST}:29999" in answer.message


def test_the_manual_lists_every_command_and_no_other(emulator):
    manual = (Path(__file__).parents[2] / "docs" / "emulator_reference.md").read_text()
    section = manual.split("## The control socket")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)

    assert sorted(listed) == emulator.do("commands")

    settings = manual.split("## Settings")[1].split("\n## ")[0]

    assert re.findall(r"^\| `(\w+)` \|", settings, flags=re.MULTILINE) == list(
        emulator.state()["settings"]
    )

    parts = manual.split("## Payload, TCP, inputs and outputs")[1].split("\n## ")[0]

    assert re.findall(r"^\| `(\w+)` \|", parts, flags=re.MULTILINE) == list(STATE)


def test_ros_calibration_has_its_checksum(tmp_path):
    table = nominal_dh(load_robot("ur5e"))
    rows = ros_calibration.printed((0.0, 1e-3, 0.0, 0.0, 0.0, 0.0), table.a, table.d, table.alpha)
    file = ros_calibration.write(tmp_path / "my_robot_calibration.yaml", rows)

    # What a calibrated controller has, tests/ur/test_survey.py reads.
    kinematics, checksum = kinematics_of(load_robot("ur5e"), file)

    assert checksum != URSIM_CHECKSUM
    assert max(ros_difference(read_ros_calibration(file), kinematics)) < 1e-9


def test_differences_are_added_to_the_nominal_table(tmp_path):
    nominal = nominal_dh(load_robot("ur5e"))
    file = tmp_path / "calibration.conf"
    file.write_text(
        "[mounting]\ndelta_theta = [0, 1e-3, 0, 0, 0, 0]\ndelta_a = [0, 2e-4, 0, 0, 0, 0]\n"
        "delta_d = [0, 0, 0, 0, 0, 0]\ndelta_alpha = [0, 0, 0, 0, 0, 0]\n"
        "joint_checksum = [0xb4200001, 2, 3, 4, 5, 6]\n"
    )

    table, checksum = kinematics_of(load_robot("ur5e"), file)

    assert checksum == (0xB4200001, 2, 3, 4, 5, 6)
    assert table.theta == (0.0, 1e-3, 0.0, 0.0, 0.0, 0.0)
    assert table.a[1] == pytest.approx(nominal.a[1] + 2e-4, abs=1e-12)


def test_calibration_of_another_model_is_refused(cli, tmp_path):
    table = nominal_dh(load_robot("ur5e"))
    file = ros_calibration.write(
        tmp_path / "arm.yaml", ros_calibration.printed(table.theta, table.a, table.d, table.alpha)
    )
    answer = cli("emulate", "--robot", "ur10e", "--host", OTHER, "--calibration", file)

    assert answer.status == 2 and "It matches a ur5e" in answer.message


def test_ursim_calibration_is_refused(cli, tmp_path):
    path = tmp_path / "calibration.toml"
    text = (Path(__file__).parents[1] / "data" / "ur10e_calibration.toml").read_text()
    path.write_text(re.sub(r"checksum = .*", f"checksum = {[0xFFFFFFFF] * 6}", text))
    answer = cli("emulate", "--robot", "ur10e", "--host", OTHER, "--calibration", path)

    assert answer.status == 2
    assert re.search(r"calibration\.toml.*checksum", answer.message)
