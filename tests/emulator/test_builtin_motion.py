"""URScript's functions that move the arm: speeds, accelerations, ends."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.emulator.arm import EmulatedArm, frame_of
from simbridge.emulator.builtin_motion import BRAKING
from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.program import ScriptProgram, builtin_functions
from simbridge.emulator.state import profile
from simbridge.robot import load_robot
from simbridge.ur.tables import RuntimeState, SafetyMode
from tests.emulator.bench import AHEAD, DT, ROBOT, Bench
from tests.emulator.calls import Thread, finished, run

pytestmark = pytest.mark.slow


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


@pytest.mark.parametrize(
    ("a", "v"), [(2.0, 0.5), (1.0, 2.0), pytest.param(1.4, 1.05, marks=pytest.mark.soak)]
)
def test_movej_is_a_trapezoid(bench, a, v):
    """Its speed and acceleration are those of the call."""
    bench.load(f"movej({AHEAD}, a={a}, v={v})")
    bench.finish()
    peak = min(v, np.sqrt(a * 1.0))
    speeds = bench.speeds()[:, 0]
    moving = np.flatnonzero(speeds)

    assert speeds.max() == pytest.approx(peak, abs=a * DT)
    assert np.abs(np.diff(speeds[moving[0] : moving[-1]])).max() / DT == pytest.approx(a, rel=1e-6)
    assert len(moving) * DT == pytest.approx(1.0 / peak + peak / a, abs=2 * DT)


def test_joints_of_movej_arrive_together(bench):
    goal = ROBOT.home + np.array([0.4, -0.2, 0.1, 0.3, -0.1, 0.7])
    bench.load(f"movej({goal.tolist()})")
    bench.finish()
    bench.tick(0.1)

    assert (bench.state.target_q == goal).all() and (bench.state.actual_q == goal).all()

    gone = (np.array(bench.q) - bench.q[0]) / (goal - ROBOT.home)

    assert np.ptp(gone, axis=1).max() < 1e-12


def test_movej_with_a_time_takes_that_time(bench):
    bench.load(f"movej({AHEAD}, t=2.0)")
    bench.finish()

    assert np.count_nonzero(bench.speeds()[:, 0]) * DT == pytest.approx(2.0, abs=2 * DT)


@pytest.mark.parametrize("arguments", ["t=-1.0", "a=0", "v=-1.0"])
def test_invalid_parameter_ends_the_program(bench, arguments):
    bench.load(f"movej({AHEAD}, {arguments})")
    bench.finish()

    assert arguments[0] in bench.texts("error")
    assert (bench.state.target_q == ROBOT.home).all()


@pytest.mark.parametrize("pace", ["a=20.0, v=10.0", "t=0.2"])
def test_fast_movej_keeps_joint_limits(bench, pace):
    bench.load(f"movej([q[0] + 1.5, q[1] + 1.0, q[2] - 0.5, q[3], q[4], q[5]], {pace})")
    bench.finish()
    used = np.abs(bench.speeds()).max(axis=0) / (ROBOT.max_velocity + 0.2)

    assert used.max() == pytest.approx(1.0, rel=1e-6)
    assert bench.state.safety_mode == SafetyMode.NORMAL
    assert bench.q[-1] == pytest.approx(bench.q[0] + [1.5, 1.0, -0.5, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("move", [f"movej({AHEAD})", "movel(p0)"])
def test_a_move_that_starts_in_motion_brakes_first(bench, move):
    bench.load("p0 = get_target_tcp_pose()", "speedj([-0.8, 0.2, 0, 0, 0, 0.4], 5.0, 0.5)", move)
    bench.finish()
    change = np.abs(np.diff(bench.speeds(), axis=0)).max() / DT

    assert change == pytest.approx(BRAKING, rel=1e-6)


def test_two_moving_threads_end_the_program(bench):
    bench.load(
        "thread t():",
        "while True:",
        f"servoj({AHEAD}, gain=100)",
        "end",
        "end",
        "h = run t()",
        "sleep(0.02)",
        "movej(q)",
    )
    bench.finish()

    assert "Another thread is already controlling the robot" in bench.texts("error")


def test_a_killed_thread_frees_the_arm(bench):
    bench.load(
        "thread t():", f"movej({AHEAD})", "end", "h = run t()", "sleep(0.5)", "kill h", "movej(q)"
    )
    bench.finish()

    assert not bench.texts("error")
    assert bench.q[-1] == pytest.approx(ROBOT.home)


def test_a_running_move_keeps_its_tcp(bench):
    start = bench.controller.arm.tool(ROBOT.home)
    bench.load(
        "p0 = get_target_tcp_pose()",
        "thread t():",
        "sleep(0.3)",
        "set_tcp(p[0, 0, 0.2, 0, 0, 0])",
        "end",
        "h = run t()",
        "movel(pose_add(p0, p[0.01, 0.03, -0.06, 0, 0, 0]), a=1.0, v=0.1)",
    )
    bench.finish()
    flange = [
        bench.controller.arm.tool(q) * frame_of(bench.state.tcp_offset).inverse() for q in bench.q
    ]
    points = np.array([f.translation for f in flange]) - start.translation

    assert bench.state.tcp_offset[2] == 0.2
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() / DT == pytest.approx(
        0.1, rel=1e-4
    )
    assert points[-1] == pytest.approx([0.01, 0.03, -0.06], abs=1e-8)


def test_stopl_slows_the_tool_along_its_line(bench):
    bench.load("speedl([0.1, -0.1, 0.05, 0, 0, 0], 1.0, 0.5)", "stopl(0.5)")
    bench.finish()
    points = np.array([bench.controller.arm.tool(q).translation for q in bench.q])
    speeds = np.linalg.norm(np.diff(points, axis=0), axis=1) / DT
    fastest = int(speeds.argmax())

    assert speeds[fastest] == pytest.approx(0.15, rel=1e-5)

    slowing = np.diff(speeds)[np.diff(speeds) < -1e-5]

    # These are mean speeds: the first and the last change by less.
    assert slowing[1:-1] == pytest.approx(-0.5 * DT, rel=1e-3)

    sideways = np.cross(points - points[0], np.array([0.1, -0.1, 0.05]) / 0.15)

    assert np.linalg.norm(sideways, axis=1).max() < 1e-6


def test_movel_is_straight_and_has_the_given_tool_speed(bench):
    start = bench.controller.arm.tool(ROBOT.home)
    bench.load(
        "p0 = get_target_tcp_pose()",
        "movel(pose_add(p0, p[0.01, 0.03, -0.06, 0, 0, 0]), a=1.0, v=0.1)",
    )
    bench.finish()
    frames = [bench.controller.arm.tool(q) for q in bench.q]
    points = np.array([f.translation for f in frames]) - start.translation
    along = np.array([0.01, 0.03, -0.06]) / np.linalg.norm([0.01, 0.03, -0.06])

    assert np.linalg.norm(points - np.outer(points @ along, along), axis=1).max() < 1e-7
    assert max(np.abs(f.rotation - start.rotation).max() for f in frames) < 1e-7
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() / DT == pytest.approx(
        0.1, rel=1e-4
    )
    assert points[-1] == pytest.approx([0.01, 0.03, -0.06], abs=1e-8)


def test_an_arm_at_rest_costs_no_kinematics(bench, monkeypatch):
    before = bench.state.target_tcp_pose.copy()
    monkeypatch.setattr(EmulatedArm, "pose", None)
    monkeypatch.setattr(EmulatedArm, "jacobian", None)
    bench.tick(1.0)

    assert not (
        bench.state.target_qd.any()
        or bench.state.target_qdd.any()
        or bench.state.target_tcp_speed.any()
    )
    np.testing.assert_array_equal(bench.state.actual_tcp_pose, before)


def test_actual_follows_target_half_a_millisecond_later(bench):
    bench.load(f"movej({AHEAD})")
    bench.tick(0.5)
    before = bench.state.target_q
    bench.tick()
    target = bench.state.target_q

    assert bench.state.actual_q == pytest.approx(
        target - 0.0005 / DT * (target - before), abs=1e-12
    )


def test_a_stopped_programs_arm_rests(bench):
    bench.load(f"movej({AHEAD})")
    bench.tick(0.7)
    before = bench.state.target_qd[0]
    bench.controller.stop_program()
    bench.q = bench.q[-2:]
    bench.tick(0.5)

    assert bench.state.runtime_state == RuntimeState.STOPPED
    assert bench.at_rest

    slowing = bench.speeds()[:, 0]

    assert before > 0.5 and (np.diff(slowing) <= 1e-9).all()
    assert 0.0 < slowing[1] < before


def test_stopj_has_the_given_deceleration(bench):
    bench.load("speedj([0.5, 0, 0, 0, 0, 0], 5.0, 0.5)", "stopj(1.0)")
    bench.finish()
    speeds = bench.speeds()[:, 0]

    assert speeds.max() == pytest.approx(0.5)

    falling = np.diff(speeds)[np.diff(speeds) < -1e-9]

    # These are mean speeds: the first and the last change by half of it.
    assert falling[1:-1] == pytest.approx(-1.0 * DT)
    assert falling[[0, -1]] == pytest.approx(-0.5 * DT)
    assert bench.at_rest


def test_optimovej_goes_where_movej_goes():
    goal = ROBOT.home + 0.1
    arrived = run(f"optimovej({goal.tolist()}, a=1, v=1)\nsleep(1)\n", 400)

    assert np.allclose(arrived.state.target_q, goal)


@pytest.mark.parametrize(("polyscope", "robot"), [("3.15", "ur10"), ("5.12", "ur10e")])
def test_servoj_lasts_one_cycle_by_default(monkeypatch, polyscope, robot):
    controller = EmulatedController(load_robot(robot), profile(polyscope), ScriptProgram)
    durations = []
    monkeypatch.setattr(
        controller, "servo", lambda setpoint, duration, lookahead, gain: durations.append(duration)
    )
    finished(builtin_functions(controller)["servoj"](Thread(), [0.0] * 6))

    assert durations == [controller.period]
