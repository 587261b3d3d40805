"""The emulator as its users start it: a process of its own, faults on command, several side by side."""

from __future__ import annotations

import re
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simbridge.emulator.errors import EmulatorError
from simbridge.emulator.handle import Emulator
from simbridge.robot import load_robot

HOST, OTHER, CALIBRATED = "127.0.0.31", "127.0.0.32", "127.0.0.33"
NOMINAL = load_robot("ur10e")


class Rtde:
    """The little of an RTDE client that these tests need."""

    def __init__(self, host: str) -> None:
        self.socket = socket.create_connection((host, 30004), timeout=10.0)
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
        self.ask(79, struct.pack(">d", 500.0) + names.encode())
        self.ask(83)
        kind, package = self.receive()
        assert kind == 85
        return struct.unpack(f">{names.count(',') + 1}d", package[1:])


@pytest.fixture(scope="module")
def shared():
    with Emulator(host=HOST) as controller:
        yield controller


@pytest.fixture
def emulator(shared):
    shared.do("slider", fraction=1.0)
    shared.do("stop_program")
    return shared


def test_it_starts_powered_off_when_asked_and_comes_up_by_command():
    with Emulator("ur10", polyscope="3.15", host=OTHER, running=False) as controller:
        assert controller.state()["robot_mode"] == "POWER_OFF"
        controller.do("power_on_and_release")
        assert controller.wait_for("robot_mode", "RUNNING")["safety_mode"] == "NORMAL"


def test_the_robot_runs_when_the_block_begins(emulator):
    assert emulator.state()["robot_mode"] == "RUNNING"


def test_a_script_runs_and_is_recorded(emulator):
    emulator.do("run_script", source="def f():\nmovej([0.1, -1.5, 1.5, -1.5, -1.5, 0.2], a=5, v=2)\nsleep(60)\nend\n")
    emulator.wait_for("target_q", [0.1, -1.5, 1.5, -1.5, -1.5, 0.2])
    record = emulator.record()
    assert record.target_q[-1] == pytest.approx([0.1, -1.5, 1.5, -1.5, -1.5, 0.2])
    assert (np.diff(record.tick) == 1).all()
    assert np.isnan(record.setpoint[-1]).all()
    emulator.do("stop_program")
    assert emulator.state()["runtime_state"] == "STOPPED"


def test_a_frozen_controller_does_not_tick(emulator):
    emulator.do("freeze", seconds=0.5)
    emulator.state()  # waits until it is over
    assert max(emulator.do("timing")["period"]) >= 0.5


def test_a_dropped_client_is_cut_and_may_come_again(emulator):
    with Rtde(HOST) as client:
        emulator.do("drop", port=30004)
        with pytest.raises(OSError):
            client.ask(118)
    with Rtde(HOST) as client:
        assert struct.unpack(">4I", client.ask(118))[:2] == (5, 12)


def test_a_mute_port_accepts_and_says_nothing(emulator):
    emulator.do("mute", port=29999)
    try:
        with socket.create_connection((HOST, 29999), timeout=0.3) as client, pytest.raises(TimeoutError):
            client.recv(100)
    finally:
        emulator.do("mute", port=29999, muted=False)
    with socket.create_connection((HOST, 29999), timeout=10.0) as client:
        assert client.recv(100).startswith(b"Connected")


def test_a_refusing_port_lets_nobody_in_until_it_is_told_to(emulator):
    emulator.do("refuse", port=30003)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, 30003), timeout=10.0)
    emulator.do("refuse", port=30003, refused=False)
    socket.create_connection((HOST, 30003), timeout=10.0).close()


def test_the_slider_is_followed_by_the_speed_scaling(emulator):
    emulator.do("slider", fraction=0.5)
    emulator.wait_for("speed_scaling", 0.5)
    with Rtde(HOST) as client:
        assert client.doubles("target_speed_fraction") == (0.5,)


def test_taken_registers_are_in_use_until_they_are_given_back(emulator):
    assert emulator.do("take_registers", names=["input_double_register_3"]) == []
    with Rtde(HOST) as client:
        assert client.inputs("input_double_register_3,input_double_register_4") == "IN_USE,DOUBLE"
    emulator.do("release_registers")
    with Rtde(HOST) as client:
        assert client.inputs("input_double_register_3") == "DOUBLE"


def test_registers_that_a_client_has_cannot_be_taken(emulator):
    with Rtde(HOST) as client:
        assert client.inputs("input_int_register_9") == "INT32"
        assert emulator.do("take_registers", names=["input_int_register_9"]) == ["input_int_register_9"]


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
def test_a_command_that_cannot_be_done_is_answered_with_the_reason_and_changes_nothing(
    emulator, command, arguments, named
):
    with pytest.raises(EmulatorError, match=named):
        emulator.do(command, **arguments)
    tick = emulator.state()["tick"]
    assert emulator.record().tick[-1] >= tick
    with Rtde(HOST) as client:
        assert len(client.ask(118)) == 16


@pytest.mark.parametrize("line", [b"no json\n", b"[]\n", b"{}\n", b'{"do": 3}\n', b"\xff\xfe\n"])
def test_what_is_no_command_is_answered_with_an_error(emulator, line):
    with socket.create_connection((HOST, 30020), timeout=10.0) as client:
        client.sendall(line)
        assert client.recv(1000).startswith(b'{"ok": false')


def test_two_run_side_by_side_and_know_nothing_of_each_other(emulator):
    with Emulator("ur10e", polyscope="5.25", host=OTHER) as other:
        other.do("protective_stop")
        assert other.state()["safety_mode"] == "PROTECTIVE_STOP"
        assert emulator.state()["safety_mode"] == "NORMAL"
        with Rtde(OTHER) as client:
            assert struct.unpack(">4I", client.ask(118))[:2] == (5, 25)


def test_a_second_one_on_the_same_address_is_refused_with_the_port(emulator):
    with pytest.raises(EmulatorError, match=f"{HOST}:29999"), Emulator(host=HOST, control_port=30021):
        pass
    command = [sys.executable, "-m", "simbridge", "emulate", "--host", HOST]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60.0)
    assert ended.returncode == 2
    assert f"{HOST}:" in ended.stderr and "Traceback" not in ended.stderr


def test_sigterm_ends_it_cleanly_and_frees_the_ports():
    for _ in range(2):
        with Emulator(host=OTHER, running=False) as controller:
            controller._process.send_signal(signal.SIGTERM)
            assert controller._process.wait(30.0) == 0


def test_a_killed_one_is_gone_at_once():
    with Emulator(host=OTHER, running=False) as controller:
        with Rtde(OTHER) as client:
            with pytest.raises(EmulatorError, match="status 9"):
                controller.do("kill")
            with pytest.raises(OSError):
                client.ask(118)
        assert controller._process.wait(30.0) == 9


def test_the_manual_lists_every_command_and_no_other(emulator):
    manual = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text()
    section = manual.split("## The control socket")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    assert sorted(listed) == emulator.do("commands")


# Calibration


def far() -> dict[str, list[float]]:
    """A UR10e whose joint 3 is tilted by 0.08 degrees against joint 2: their common normal is 440 m away."""
    away = 440.0
    tilt = 0.6127 / away
    return {
        "theta": [0.0, np.pi / 2, -np.pi / 2, 0.0, 0.0, 0.0],
        "a": [0.0, 0.0, -0.57155, 0.0, 0.0, 0.0],
        "d": [0.1807, away * np.cos(tilt), -away, 0.17415, 0.11985, 0.11655],
        "alpha": [np.pi / 2, tilt, 0.0, np.pi / 2, -np.pi / 2, 0.0],
    }


def near() -> dict[str, list[float]]:
    """A UR10e with errors as they come from a factory."""
    return {
        "theta": [1e-4, -2e-3, 1.5e-3, -4e-4, 2e-4, -1e-4],
        "a": [2e-4, -0.6121, -0.5722, 1e-4, -1e-4, 0.0],
        "d": [0.1809, 0.002, -0.0015, 0.1738, 0.1200, 0.1164],
        "alpha": [np.pi / 2 + 5e-4, 3e-4, -2e-4, np.pi / 2 - 4e-4, -np.pi / 2 + 1e-4, 0.0],
    }


def product(dh: dict[str, list[float]], q: np.ndarray) -> np.ndarray:
    """The flange (4, 4) in the pendant's base: Rz(q + theta) Tz(d) Tx(a) Rx(alpha), joint by joint."""
    frame = np.eye(4)
    for angle, a, d, alpha in zip(q + np.array(dh["theta"]), dh["a"], dh["d"], dh["alpha"], strict=True):
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha), np.sin(alpha)
        frame = frame @ np.array(
            [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        )
    return frame


def checksum(host: str) -> tuple[int, ...]:
    """As the primary interface's kinematics info tells it."""
    with socket.create_connection((host, 30001), timeout=10.0) as connection, connection.makefile("rb") as stream:
        while True:
            size, kind = struct.unpack(">iB", stream.read(5))
            package = stream.read(size - 5)
            while kind == 16 and package:
                length, sub = struct.unpack(">IB", package[:5])
                if sub == 5:
                    return struct.unpack(">6I", package[5:29])
                package = package[length:]


def test_without_a_calibration_the_checksum_says_ursim(emulator):
    assert set(checksum(HOST)) == {0xFFFFFFFF}


@pytest.mark.parametrize("dh", [near(), far()], ids=["near", "far"])
def test_a_calibrated_arm_computes_and_moves_with_its_own_kinematics(dh, tmp_path):
    path = tmp_path / "calibration.toml"
    sums = [1, 2, 3, 4, 5, 6]
    path.write_text(
        "".join(f"{name} = {[float(v) for v in row]}\n" for name, row in dh.items()) + f"checksum = {sums}\n"
    )
    q = np.array([0.3, -1.2, 1.4, -1.7, -1.5, 0.2])
    with Emulator(host=CALIBRATED, calibration=path) as controller:
        assert checksum(CALIBRATED) == tuple(sums)
        writes = "".join(f"write_output_float_register({i}, p[{i}])\n" for i in range(6))
        controller.do(
            "run_script",
            source=f"def f():\np = get_forward_kin({q.tolist()})\n{writes}movej({q.tolist()}, a=5, v=2)\n"
            "write_output_float_register(6, 1)\nsleep(0.1)\n"
            "movel(pose_add(get_target_tcp_pose(), p[0, 0.02, -0.05, 0, 0, 0]), v=0.5)\nend\n",
        )
        controller.wait_for("runtime_state", "STOPPED", timeout=60.0)
        with Rtde(CALIBRATED) as client:
            found = client.doubles(",".join(f"output_double_register_{i}" for i in range(7)))
        record = controller.record()
    expected = product(dh, q)
    assert found[:3] == pytest.approx(expected[:3, 3], abs=1e-9)
    assert found[6] == 1.0
    begun = int(np.flatnonzero((record.target_q == q).all(axis=1))[-1])
    places = np.array([product(dh, joints)[:3, 3] for joints in record.target_q[begun:]]) - expected[:3, 3]
    along = np.array([0.0, 0.02, -0.05]) / np.linalg.norm([0.02, -0.05])
    assert places[-1] == pytest.approx([0.0, 0.02, -0.05], abs=1e-7)
    assert np.linalg.norm(places - np.outer(places @ along, along), axis=1).max() < 1e-6


def test_a_calibration_that_says_ursim_is_refused_with_its_file_and_field(tmp_path):
    path = tmp_path / "calibration.toml"
    rows = "".join(f"{name} = {[float(v) for v in row]}\n" for name, row in near().items())
    path.write_text(f"{rows}checksum = {[0xFFFFFFFF] * 6}\n")
    with (
        pytest.raises(EmulatorError, match=r"calibration\.toml.*checksum"),
        Emulator(host=CALIBRATED, calibration=path),
    ):
        pass
