"""The unmodified ur_rtde with the emulator: what it is told is right, by pinocchio or by the emulator's own record."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from simbridge.emulator.handle import Emulator
from simbridge.robot import load_robot
from simbridge.servoj import ServojModel
from tests.emulator import ur_rtde_session as session

SETUPS = {"5.12": ("ur10e", "127.0.0.21"), "3.15": ("ur10", "127.0.0.22")}
TURN = pin.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))


def frame(pose):
    return pin.SE3(pin.exp3(np.array(pose[3:])), np.array(pose[:3]))


class Seen:
    """What one session saw, what the emulator recorded meanwhile, and the arm's kinematics by pinocchio."""

    def __init__(self, polyscope, directory):
        name, host = SETUPS[polyscope]
        file = directory / f"{polyscope}.json"
        command = [sys.executable, session.__file__, host, polyscope, str(file)]
        with Emulator(name, polyscope=polyscope, host=host) as emulator:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=90)
            self.record = emulator.record()
            self.payload = emulator.state()["payload"]
        assert file.exists(), ended.stdout + ended.stderr
        self.seen = json.loads(file.read_text())
        self.model = load_robot(name).model
        self.period = self.seen["period"]

    def __getitem__(self, key):
        return self.seen[key]

    def tool(self, q, tcp=(0.0,) * 6):
        """The TCP in the pendant's base."""
        data = self.model.createData()
        pin.framesForwardKinematics(self.model, data, np.array(q))
        return TURN * data.oMf[self.model.getFrameId("tool0")] * frame(tcp)

    def away(self, q, pose, tcp=(0.0,) * 6):
        """How far the TCP at q is from a pose, m and rad together."""
        return np.linalg.norm(pin.log6(self.tool(q, tcp).actInv(frame(pose))).vector)

    def between(self, ticks):
        return (self.record.tick >= ticks[0]) & (self.record.tick <= ticks[1])


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    directory = Path(tmp_path_factory.mktemp("ur_rtde"))
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(SETUPS, pool.map(lambda version: Seen(version, directory), SETUPS), strict=True))


@pytest.fixture(params=SETUPS)
def seen(request, sessions):
    return sessions[request.param]


def test_all_four_interfaces_connect(seen):
    assert all(seen["connected"].values())
    assert "RUNNING" in seen["robot_mode"]


def test_a_digital_output_is_set(seen):
    assert seen["outputs"] == 1 << 3


def test_movej_ends_at_its_goal(seen):
    assert seen["moveJ"]["returned"]
    assert np.allclose(seen["moveJ"]["q"], session.START, atol=1e-9)


def test_movel_takes_the_tool_straight_to_its_goal(seen):
    moved = seen["moveL"]
    assert moved["returned"]
    assert seen.away(moved["q"], moved["goal"]) < 1e-7
    assert off_line(seen, moved) < 1e-7


def off_line(seen, moved):
    path = np.array([seen.tool(q).translation for q in seen.record.target_q[seen.between(moved["ticks"])]])
    way = np.array(moved["goal"][:3]) - path[0]
    return np.linalg.norm(np.cross(path - path[0], way / np.linalg.norm(way)), axis=1).max()


def test_speedj_moves_the_joints_at_that_speed(seen):
    speeds = np.diff(seen.record.actual_q[seen.between(seen["speedJ"]["ticks"])], axis=0) / seen.period
    assert len(speeds) and np.allclose(speeds, session.SPEED_J, atol=1e-9)


def test_speedl_moves_the_tool_at_that_speed(seen):
    q = seen.record.actual_q[seen.between(seen["speedL"]["ticks"])]
    first, last = seen.tool(q[0]), seen.tool(q[-1])
    time = (len(q) - 1) * seen.period
    assert np.allclose((last.translation - first.translation) / time, session.SPEED_L[:3], atol=2e-4)
    assert np.allclose(pin.log3(last.rotation @ first.rotation.T) / time, session.SPEED_L[3:], atol=2e-3)


def test_servoj_follows_the_documented_model_exactly(seen):
    record, window = seen.record, np.flatnonzero(seen.between(seen["servoJ"]["ticks"]))
    servoed = window[np.isfinite(record.setpoint[window]).all(axis=1)]
    assert len(servoed) > session.STREAM_SECONDS / seen.period and (np.diff(servoed) == 1).all()
    model = ServojModel(record.target_q[servoed[0] - 1], seen.period, session.LOOKAHEAD, session.GAIN)
    answer = np.array([model.step(setpoint) for setpoint in record.setpoint[servoed]])
    assert np.abs(answer - record.target_q[servoed]).max() < 1e-9


def test_servojs_setpoints_are_those_that_were_sent_in_their_order(seen):
    setpoints = seen.record.setpoint[seen.between(seen["servoJ"]["ticks"])]
    setpoints = setpoints[np.isfinite(setpoints).all(axis=1)]
    gaps = np.linalg.norm(setpoints[:, None] - np.array(seen["servoJ"]["sent"])[None], axis=2)
    assert gaps.min(axis=1).max() == 0.0
    assert (np.diff(gaps.argmin(axis=1)) >= 0).all()
    assert np.allclose(seen["servoJ"]["q"], seen["servoJ"]["sent"][-1], atol=1e-6)


@pytest.mark.parametrize("function", ["servoL"])
def test_servoed_poses_are_reached(seen, function):
    assert seen[function]["stopped"]
    assert seen.away(seen[function]["q"], seen[function]["goal"]) < 1e-6


def test_an_asynchronous_move_reports_its_progress_and_ends_at_its_goal(seen):
    moved = seen["asynchronous"]
    assert not moved["before"]
    assert not np.allclose(moved["during"], moved["goal"], atol=1e-3)
    assert np.allclose(moved["q"], moved["goal"], atol=1e-9)


def test_stopj_slows_the_fastest_joint_at_its_deceleration(seen):
    q = seen.record.target_q[seen.between(seen["stopJ"]["ticks"])]
    slowing = np.abs(np.diff(q, n=2, axis=0)).max(axis=1) / seen.period**2
    assert slowing.max() == pytest.approx(session.STOPJ_DECELERATION, rel=1e-6)
    assert not np.allclose(seen["stopJ"]["q"], session.START, atol=1e-2)
    assert not seen["stopJ"]["running"]


def test_settcp_moves_the_tool_point(seen):
    assert np.allclose(seen["setTcp"]["offset"], session.TCP, atol=1e-12)
    assert seen.away(session.START, seen["setTcp"]["pose"], session.TCP) < 1e-9


def test_forward_kinematics_is_pinocchios(seen):
    assert seen.away(session.START, seen["getForwardKinematics"], session.TCP) < 1e-9


def test_inverse_kinematics_puts_the_tool_point_at_the_goal(seen):
    solved = seen["getInverseKinematics"]
    assert seen.away(solved["q"], solved["goal"], session.TCP) < 1e-7
    assert seen["has_solution"] == [True, False]


def test_posetrans_is_the_product_of_the_frames(seen):
    given = seen["poseTrans"]
    product = frame(given["a"]) * frame(given["b"])
    assert np.linalg.norm(pin.log6(product.actInv(frame(given["pose"]))).vector) < 1e-9


def test_setpayload_is_in_force(seen):
    assert seen["setPayload"] and seen.payload == 2.5
    assert np.allclose(seen["payload"], [2.5, 0.01, -0.02, 0.06])


def test_a_custom_script_function_runs(seen):
    assert seen["custom"] == [4711, 5.0]
