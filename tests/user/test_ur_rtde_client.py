"""The unmodified ur_rtde with the emulator.

What it receives is right, by pinocchio or by the emulator's own record.
"""

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
from simbridge.servo.law import ServojLaw
from tests.controllers import EMULATOR_PRIORITY, REALTIME, loopback
from tests.patience import PATIENCE

pytest.importorskip("rtde_control")

from tests.emulator import ur_rtde_session as session

pytestmark = pytest.mark.real_time

SETUPS = {
    "5.12": ("ur10e", loopback(21)),
    "3.15": ("ur10", loopback(22)),
    # Only for the calls that older versions do not have.
    "5.25": ("ur10e", loopback(23)),
}
# All other calls, of a CB3 controller: a second of it is a quarter as many cycles. On an e-Series
# controller test_controller_backend sends a motion through ur_rtde's servoJ.
WHOLE = ["3.15", pytest.param("5.12", marks=pytest.mark.soak)]
TURN = pin.SE3(np.diag([-1.0, -1.0, 1.0]), np.zeros(3))


def frame(pose):
    return pin.SE3(pin.exp3(np.array(pose[3:])), np.array(pose[:3]))


class Seen:
    """The values that a session saw, the emulator's record, and the arm's model in pinocchio."""

    def __init__(self, polyscope, directory):
        name, host = SETUPS[polyscope]
        file = directory / f"{polyscope}.json"
        # Its watchdog ends a client that stalls for a quarter of a second.
        niceness = -15 if REALTIME else 0
        command = [sys.executable, session.__file__, host, polyscope, str(file), str(niceness)]
        with Emulator(
            name,
            polyscope=polyscope,
            host=host,
            realtime_priority=EMULATOR_PRIORITY,
            boot_time=0.05,
        ) as emulator:
            emulator.set(unlock_delay=session.UNLOCK_DELAY)
            ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
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
        """Return the distance of the TCP at q from a pose, m and rad together."""
        return np.linalg.norm(pin.log6(self.tool(q, tcp).actInv(frame(pose))).vector)

    def between(self, ticks):
        return (self.record.tick >= ticks[0]) & (self.record.tick <= ticks[1])


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Two versions at once: most of a session is waiting for the arm."""
    directory = Path(tmp_path_factory.mktemp("ur_rtde"))
    versions = ["3.15", "5.25"]
    with ThreadPoolExecutor(len(versions)) as pool:
        sessions = pool.map(lambda version: Seen(version, directory), versions)
        return dict(zip(versions, sessions, strict=True))


@pytest.fixture(scope="module")
def e_series_session(tmp_path_factory):
    return Seen("5.12", Path(tmp_path_factory.mktemp("ur_rtde")))


def session_of(request):
    """Return the session of a fixture's version; a session that no test needs is not held."""
    if request.param == "5.12":
        return request.getfixturevalue("e_series_session")
    return request.getfixturevalue("sessions")[request.param]


@pytest.fixture(params=WHOLE)
def seen(request):
    return session_of(request)


@pytest.fixture(scope="module")
def newest(sessions):
    return sessions["5.25"]


@pytest.fixture(params=[*WHOLE, "5.25"])
def any_version(request):
    return session_of(request)


def test_all_four_interfaces_connect(seen):
    assert all(seen["connected"].values())
    assert "RUNNING" in seen["robot_mode"]


def test_a_digital_output_is_set(seen):
    assert seen["outputs"] == 1 << 3


def test_movej_ends_at_its_goal(seen):
    assert seen["moveJ"]["returned"]
    assert np.allclose(seen["moveJ"]["q"], session.START, atol=1e-9)


def test_movel_is_straight_to_its_goal(seen):
    moved = seen["moveL"]

    assert moved["returned"]
    assert seen.away(moved["q"], moved["goal"]) < 1e-7
    assert off_line(seen, moved) < 1e-7


def tool_path(seen, moved):
    """Where the tool was in these ticks (K, 3), m."""
    return np.array(
        [seen.tool(q).translation for q in seen.record.target_q[seen.between(moved["ticks"])]]
    )


def off(path, way):
    """Return the largest distance of a path (K, 3) from a line, m.

    The line goes through its first point in the direction of a way (3,).
    """
    return np.linalg.norm(np.cross(path - path[0], way / np.linalg.norm(way)), axis=1).max()


def off_line(seen, moved):
    path = tool_path(seen, moved)
    return off(path, np.array(moved["goal"][:3]) - path[0])


def test_speedj_keeps_its_joint_speeds(seen):
    q = seen.record.actual_q[seen.between(seen["speedJ"]["ticks"])]

    speeds = np.diff(q, axis=0) / seen.period

    assert len(speeds)
    assert np.allclose(speeds, session.SPEED_J, atol=1e-9)


def test_speedl_keeps_its_tool_speed(seen):
    q = seen.record.actual_q[seen.between(seen["speedL"]["ticks"])]
    first = seen.tool(q[0])
    last = seen.tool(q[-1])
    time = (len(q) - 1) * seen.period

    velocity = (last.translation - first.translation) / time
    angular_velocity = pin.log3(last.rotation @ first.rotation.T) / time

    assert np.allclose(velocity, session.SPEED_L[:3], atol=2e-4)
    assert np.allclose(angular_velocity, session.SPEED_L[3:], atol=2e-3)


def test_servoj_follows_the_servo_law_exactly(seen):
    record = seen.record
    window = np.flatnonzero(seen.between(seen["servoJ"]["ticks"]))
    servoed = window[np.isfinite(record.setpoint[window]).all(axis=1)]

    assert len(servoed) > session.STREAM_SECONDS / seen.period
    assert (np.diff(servoed) == 1).all()

    law = ServojLaw(seen.period, session.GAIN, session.LOOKAHEAD)
    begin = record.target_q[servoed[0] - 1]
    answer = law.follow(record.setpoint[servoed], previous=begin, q=begin).q

    assert np.abs(answer - record.target_q[servoed]).max() < 1e-9


def test_servoj_setpoints_keep_their_order(seen):
    setpoints = seen.record.setpoint[seen.between(seen["servoJ"]["ticks"])]
    setpoints = setpoints[np.isfinite(setpoints).all(axis=1)]
    gaps = np.linalg.norm(setpoints[:, None] - np.array(seen["servoJ"]["sent"])[None], axis=2)

    assert gaps.min(axis=1).max() == 0.0
    assert (np.diff(gaps.argmin(axis=1)) >= 0).all()
    assert np.allclose(seen["servoJ"]["q"], seen["servoJ"]["sent"][-1], atol=1e-6)


def test_servol_reaches_its_pose(seen):
    assert seen["servoL"]["stopped"]
    assert seen.away(seen["servoL"]["q"], seen["servoL"]["goal"]) < 1e-6


def test_servoc_keeps_speed_and_acceleration(seen):
    servoed = seen["servoC"]

    assert servoed["returned"]
    assert seen.away(servoed["q"], servoed["goal"]) < 1e-7

    speeds = np.linalg.norm(np.diff(tool_path(seen, servoed), axis=0), axis=1) / seen.period

    assert speeds.max() == pytest.approx(session.SERVOC_SPEED, rel=1e-4)
    assert np.diff(speeds).max() / seen.period == pytest.approx(
        session.SERVOC_ACCELERATION, rel=1e-3
    )
    assert off_line(seen, servoed) < 1e-7


def test_asynchronous_move_reports_progress(seen):
    moved = seen["asynchronous"]
    before, during, after = moved["progress"]

    assert before < 0
    assert during == 0
    assert after < 0
    assert after != before, "ur_rtde reports the end of an operation by another negative number"
    assert not np.allclose(moved["during"], moved["goal"], atol=1e-3)
    assert np.allclose(moved["q"], moved["goal"], atol=1e-9)


def test_asynchronous_path_counts_waypoints(seen):
    moved = seen["path"]

    assert moved["progress"][:-1] == [0, 1, 2] and moved["progress"][-1] < 0

    q = seen.record.target_q[seen.between(moved["ticks"])]
    passed = [int(np.linalg.norm(q - waypoint, axis=1).argmin()) for waypoint in session.WAYPOINTS]

    assert passed == sorted(passed)
    assert np.allclose(q[passed], session.WAYPOINTS, atol=1e-9)
    assert np.allclose(moved["q"], session.WAYPOINTS[-1], atol=1e-9)


@pytest.mark.parametrize(
    ("function", "deceleration"),
    [
        ("stopJ", session.STOPJ_DECELERATION),
        # The client's script calls stopj for it, unless stopL was asynchronous.
        ("stopL, synchronous", session.STOPL_DECELERATION),
    ],
)
def test_joint_stop_has_its_deceleration(seen, function, deceleration):
    stopped = seen[function]
    q = seen.record.target_q[seen.between(stopped["ticks"])]
    speed = np.abs(np.diff(q, axis=0)).max(axis=1) / seen.period
    slowing = -np.diff(speed) / seen.period
    begin = int(np.flatnonzero(slowing > 0.6 * deceleration)[0])
    end = int(np.flatnonzero(speed)[-1])

    assert end - begin > 10
    # These are mean speeds of each cycle: the first changes by half, the last two by less.
    assert slowing[begin : end - 1] == pytest.approx(deceleration, rel=1e-6)
    assert not np.allclose(stopped["q"], session.WAYPOINTS[-1], atol=1e-2)


def test_stopl_slows_the_tool_straight_on(seen):
    stopped = seen["stopL"]
    path = tool_path(seen, stopped)
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1) / seen.period
    slowing = -np.diff(speed) / seen.period
    begin = int(np.flatnonzero(slowing > 0.6 * session.STOPL_DECELERATION)[0])
    end = int(np.flatnonzero(speed > 1e-9)[-1])

    assert end - begin > 10
    assert slowing[begin : end - 1] == pytest.approx(session.STOPL_DECELERATION, rel=1e-3)
    assert speed[begin] ** 2 / (2.0 * session.STOPL_DECELERATION) == pytest.approx(
        np.linalg.norm(path[-1] - path[begin]), abs=speed[begin] * seen.period
    )
    assert off(path[begin:], path[begin + 1] - path[begin]) < 1e-6

    first, last = (
        seen.tool(seen.record.target_q[seen.record.tick == tick][0]) for tick in stopped["ticks"]
    )

    assert np.linalg.norm(pin.log3(first.rotation.T @ last.rotation)) < 1e-6


def test_settcp_moves_the_tool_point(seen):
    assert np.allclose(seen["setTcp"]["offset"], session.TCP, atol=1e-12)
    assert seen.away(session.START, seen["setTcp"]["pose"], session.TCP) < 1e-9


def test_forward_kinematics_is_pinocchios(seen):
    assert seen.away(session.START, seen["getForwardKinematics"], session.TCP) < 1e-9


def test_inverse_kinematics_reaches_the_goal(seen):
    solved = seen["getInverseKinematics"]

    assert seen.away(solved["q"], solved["goal"], session.TCP) < 1e-7
    assert seen["has_solution"] == [True, False]


def test_posetrans_is_the_product_of_the_frames(seen):
    transformed = seen["poseTrans"]
    product = frame(transformed["a"]) * frame(transformed["b"])

    assert np.linalg.norm(pin.log6(product.actInv(frame(transformed["pose"]))).vector) < 1e-9


def test_setpayload_is_in_force(seen):
    assert seen["setPayload"]
    assert seen.payload == 2.5
    assert np.allclose(seen["payload"], [2.5, 0.01, -0.02, 0.06])


def test_a_custom_script_function_runs(seen):
    assert seen["custom"] == [4711, 5.0]


def servoed_ticks(seen, part):
    """The ticks of a part in which a servoj setpoint was in force."""
    window = seen.between(seen[part]["ticks"])
    return seen.record.tick[window & np.isfinite(seen.record.setpoint).all(axis=1)]


def test_watchdog_ends_a_silent_clients_script(seen):
    watched = seen["setWatchdog"]
    record = seen.record

    assert watched["returned"]

    last_servoed = servoed_ticks(seen, "setWatchdog")[-1]
    heard = record.input_tick[record.input_tick <= last_servoed]
    silence = (last_servoed - heard[-1]) * seen.period
    longest = 1.0 / session.WATCHDOG_FREQUENCY

    assert longest - seen.period < silence + 1e-9
    assert silence - 1e-9 < longest

    q = record.target_q[record.tick == watched["ticks"][1]][0]

    assert np.allclose(q, watched["q"], atol=1e-12)
    # It had moved; not all the way where the computer halted the client for long enough.
    assert q[0] > session.START[0] + 0.01


def test_script_is_uploaded_again_after_watchdog(seen):
    assert not seen["cleared"], "no command comes through to a script that has ended"
    assert not len(servoed_ticks(seen, "after the watchdog"))

    moves_again(seen["after the watchdog"])


def moves_again(went_on):
    assert went_on["uploaded"]
    assert went_on["moved"]
    assert np.allclose(went_on["q"], session.WAYPOINTS[0], atol=1e-9)


def test_next_script_executes_leftover_servoj(seen):
    left = seen["left behind"]
    ticks = servoed_ticks(seen, "left behind")

    assert (
        len(ticks)
        and (seen.record.setpoint[np.isin(seen.record.tick, ticks)] == left["setpoint"]).all()
    )
    assert np.allclose(left["q"], left["setpoint"], atol=1e-6)


def test_protective_stop_pauses_the_program(seen):
    stopped = seen["protective stop"]

    assert stopped["returned"]  # the script still answers in the cycle in which it stops the arm
    assert stopped["state"][0] == 4
    assert "PAUSED" in stopped["state"][1]
    assert stopped["q"][0] == stopped["q"][1]
    assert not np.allclose(stopped["q"][0], session.WAYPOINTS[-1], atol=1e-2)

    q = seen.record.target_q[seen.between(stopped["ticks"])]
    moving = np.flatnonzero(np.diff(q, axis=0).any(axis=1))

    # Count from the first command after that tick: it is the one that stops the arm.
    inputs = seen.record.input_tick
    commanded = inputs[inputs >= stopped["ticks"][0]][0] - stopped["ticks"][0]
    assert (moving >= commanded).sum() * seen.period < 0.3


def test_early_unlock_is_refused(seen):
    stopped = seen["protective stop"]

    assert stopped["refusals"] and all(
        f"until {session.UNLOCK_DELAY:g}s" in refusal for refusal in stopped["refusals"]
    )
    # The controller's clock may be a few ticks ahead of ours.
    assert stopped["seconds"] >= session.UNLOCK_DELAY - 0.02


def test_script_is_uploaded_again_after_unlock(seen):
    moves_again(seen["after the protective stop"])


def test_script_is_uploaded_again_after_servoc(seen):
    moves_again(seen["after servoC"])


# Calls that are not in every version, or do something else than their name says


@pytest.fixture(params=[pytest.param("5.12", marks=pytest.mark.soak), "5.25"])
def asks_for_contacts(request):
    """A session whose ur_rtde script asks for contacts: those before 5.4 do not."""
    return session_of(request)


def test_move_until_contact_ends_at_the_table(asks_for_contacts):
    seen = asks_for_contacts

    assert seen["moveUntilContact"]["returned"]

    height = seen.tool(seen["moveUntilContact"]["q"]).translation[2]

    # A spring of 20 N/mm; the arm stops at the first 5 N, and returns to where it began.
    assert -5e-4 < height - seen["moveUntilContact"]["table"] < 1e-4


def test_newest_version_gives_jacobian_and_mass(newest):
    matrices = {name: np.array(values) for name, values in newest["matrices"].items()}
    model = newest.model
    q = np.array(session.START)
    data = model.createData()
    tool = model.getFrameId("tool0")
    jacobian = pin.computeFrameJacobian(model, data, q, tool, pin.LOCAL_WORLD_ALIGNED)
    turn = np.kron(np.eye(2), TURN.rotation)

    assert np.allclose(matrices["getJacobian"].reshape(6, 6).T, turn @ jacobian, atol=1e-9)

    mass = np.triu(pin.crba(model, data, q))

    assert np.allclose(np.triu(matrices["getMassMatrix"].reshape(6, 6)), mass, atol=1e-9)
    # At rest.
    assert (
        not matrices["getJacobianTimeDerivative"].any()
        and not matrices["getCoriolisAndCentrifugalTorques"].any()
    )


def test_older_version_has_no_matrices(seen):
    answers = [
        seen["matrices"][name]
        for name in ("getJacobian", "getMassMatrix", "getJacobianTimeDerivative")
    ]

    assert all("unable to get state data" in answer for answer in answers)


def test_zero_direct_torque_moves_nothing(any_version):
    answer, before, after = any_version["directTorque"]

    assert answer == [True]
    assert np.allclose(before, after, atol=1e-9)


def test_forward_kinematics_takes_joints_and_tcp(any_version):
    pose = any_version["getForwardKinematics, TCP"]

    assert any_version.away(session.WAYPOINTS[0], pose, session.TCP) < 1e-9


def test_external_force_keeps_the_connection(any_version):
    assert any_version["setExternalForceTorque"] == [True, True]
