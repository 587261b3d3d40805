"""Moves, blends, speeds and stops of the emulated arm, as UR's script manual describes them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from simbridge.ur.tables import RuntimeState
from tests.emulator.bench import AHEAD, DT, ROBOT, Bench

pytestmark = pytest.mark.slow


@pytest.fixture
def bench() -> Bench:
    return Bench().running()


def places(bench: Bench) -> np.ndarray:
    """The TCP (K, 3), m, at every tick, from where it began."""
    points = np.array([bench.controller.arm.tool(q).translation for q in bench.q])
    return points - points[0]


def speeds(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(np.diff(points, axis=0), axis=1) / DT


def pose(x: float, y: float, z: float = 0.0) -> str:
    return f"pose_add(p0, p[{x}, {y}, {z}, 0, 0, 0])"


CORNER = np.array([0.0, 0.06, 0.0])
ACROSS = np.array([0.06, 0.06, 0.0])


@cache
def places_around_corner(move: str) -> np.ndarray:
    """The TCP (K, 3), m, on its way to ACROSS by two moves with a blend of 20 mm at CORNER."""
    bench = Bench().running()
    bench.load(
        "p0 = get_target_tcp_pose()",
        f"{move}({pose(0, 0.06)}, a=1.0, v=0.1, r=0.02)",
        f"{move}({pose(0.06, 0.06)}, a=1.0, v=0.1)",
    )
    bench.finish()
    return places(bench)


@pytest.mark.shares_setup
@pytest.mark.parametrize("move", ["movel", "movep"])
def test_blend_passes_its_corner_without_stopping(move):
    points = places_around_corner(move)

    assert points[-1] == pytest.approx(ACROSS, abs=1e-8)

    off = np.minimum(np.abs(points[:, 0]), np.abs(points[:, 1] - CORNER[1]))
    corner = np.linalg.norm(points - CORNER, axis=1)

    assert corner[off > 1e-6].max() == pytest.approx(0.02, abs=7e-4)

    inside = speeds(points)[corner[1:] < 0.02]
    # A parabola is slowest at its middle, by the cosine of half the angle; movep keeps its speed.
    slowest = 0.1 if move == "movep" else 0.1 * np.cos(np.pi / 4)

    assert (inside.min(), inside.max()) == (
        pytest.approx(slowest, rel=6e-3),
        pytest.approx(0.1, rel=6e-3),
    )


@pytest.mark.shares_setup
def test_a_parabola_is_evenly_accelerated():
    points = places_around_corner("movel")
    acceleration = np.diff(points, 2, axis=0) / DT**2
    inside = np.linalg.norm(points[1:-1] - CORNER, axis=1) < 0.019

    # From one speed to the other along 2 r, in 2 r / v.
    assert acceleration[inside] == pytest.approx(
        np.tile([0.25, -0.25, 0.0], (inside.sum(), 1)), abs=1e-3
    )


@pytest.mark.shares_setup
def test_an_arc_of_movep_is_a_circle():
    points = places_around_corner("movep")
    inside = np.linalg.norm(points - CORNER, axis=1) < 0.0199

    assert np.linalg.norm(points[inside] - [0.02, 0.04, 0.0], axis=1) == pytest.approx(
        0.02, abs=2e-4
    )


@pytest.mark.parametrize(
    "goal", ["[q[0] + 0.3, q[1] + 0.2, q[2], q[3], q[4], q[5]]", f"{pose(0.05, 0.1, -0.05)}"]
)
def test_blend_from_movej_is_smooth(bench, goal):
    move = "movej" if goal.startswith("[") else "movel"
    bench.load(
        "p0 = get_target_tcp_pose()",
        "movej([q[0] + 0.3, q[1], q[2], q[3], q[4], q[5]], a=1.0, v=0.4, r=0.05)",
        f"{move}({goal}, a=1.0, v=0.4)",
    )
    bench.finish()
    if move == "movej":
        assert bench.q[-1] - ROBOT.home == pytest.approx([0.3, 0.2, 0, 0, 0, 0], abs=1e-12)
    change = np.abs(np.diff(bench.speeds(), axis=0)).max(axis=1)
    # Once it moves it slows down below 0.05 m/s only at its end.
    fast = np.flatnonzero(speeds(places(bench)) > 0.05)

    assert fast[0] < 50 and len(fast) == fast[-1] - fast[0] + 1 and fast[-1] > len(change) - 50
    # rad/s in a tick: 0.002 of the moves (a=1.0); the change of speed in the blend is spread over
    # all of its time.
    assert change.max() < (0.0026 if move == "movej" else 0.0053)


def test_last_radius_ends_at_the_goal(bench):
    bench.load(
        "p0 = get_target_tcp_pose()", f"movel({pose(0, 0.06)}, a=1.0, v=0.1, r=0.02)", "sleep(0.1)"
    )
    bench.finish()

    assert places(bench)[-1] == pytest.approx(CORNER, abs=1e-8)

    bench.load("p0 = get_target_tcp_pose()", f"movel({pose(0.06, 0)}, a=1.0, v=0.1, r=0.02)")
    bench.finish()

    assert places(bench)[-1] == pytest.approx([0.06, 0, 0], abs=1e-8)


def test_an_overlapping_blend_skips_its_waypoint(bench):
    bench.load(
        "p0 = get_target_tcp_pose()",
        f"movel({pose(0, 0.06)}, a=1.0, v=0.1, r=0.02)",
        f"movel({pose(0, 0.09)}, a=1.0, v=0.1, r=0.02)",
        f"movel({pose(0.06, 0.06)}, a=1.0, v=0.1)",
    )
    bench.finish()
    points = places(bench)

    assert "Overlapping blends in a movel" in bench.texts("safety")
    assert points[:, 1].max() < 0.061 and points[-1] == pytest.approx(ACROSS, abs=1e-8)


@pytest.mark.parametrize(
    "more", ["", "movel(pose_add(p0, p[0, 0.03, 0.06, 0, 0, 0]), a=1.0, v=0.1)"]
)
def test_a_move_below_its_radius_is_made(bench, more):
    bench.load("p0 = get_target_tcp_pose()", f"movel({pose(0, 0.03)}, a=1.0, v=0.1, r=0.05)", more)
    bench.finish()

    assert not bench.texts("safety")

    points = places(bench)

    assert points[-1] == pytest.approx([0, 0.03, 0.06 if more else 0], abs=1e-8)
    assert (
        points[:, 1].max() > 0.0225
    )  # the middle of a parabola that begins and ends 15 mm from the corner
    assert np.linalg.norm(np.diff(points, 2, axis=0), axis=1).max() / DT**2 < 1.01


def test_a_blended_wrist_turn_is_made(bench):
    bench.load(
        "movej([q[0], q[1], q[2], q[3], q[4], q[5] + 0.5], a=1.0, v=0.5, r=0.02)", "sleep(0.1)"
    )
    bench.finish()

    assert bench.q[-1] - ROBOT.home == pytest.approx([0, 0, 0, 0, 0, 0.5], abs=1e-12)
    assert not bench.texts("safety")


def test_pose_after_blend_has_near_joints(bench):
    bench.load(
        "movej([q[0], q[1], q[2], q[3], q[4], -2.9], a=5, v=3)",
        "goal = [q[0], q[1], q[2], q[3], q[4], 3.4]",
        "pose = get_forward_kin([q[0], q[1], q[2], q[3], q[4], 3.5])",
        "movej(goal, a=5, v=3, r=0.02)",
        "movej(pose, a=5, v=3)",
    )
    bench.finish()

    assert bench.q[-1][5] == pytest.approx(3.5, abs=1e-7)


def test_paused_blend_resumes(bench):
    lines = (
        "p0 = get_target_tcp_pose()",
        f"movel({pose(0, 0.06)}, a=1.0, v=0.1, r=0.02)",
        f"movel({pose(0.06, 0.06)}, a=1.0, v=0.1)",
    )
    bench.load(*lines)
    bench.tick(0.7)
    bench.controller.pause_program()
    bench.tick(0.5)

    assert bench.at_rest and 0.0 < places(bench)[-1][0] < 0.02

    bench.controller.play_program()
    bench.finish()

    assert places(bench)[-1] == pytest.approx(ACROSS, abs=1e-8)


@pytest.mark.parametrize("mode", [0, 1])
def test_movec_follows_the_circle(bench, mode):
    bench.load(
        "p0 = get_target_tcp_pose()",
        f"movec({pose(0.04, 0.04)}, {pose(0, 0.08)}, a=1.0, v=0.1, mode={mode})",
    )
    bench.finish()
    frames = [bench.controller.arm.tool(q) for q in bench.q]
    turned = np.linalg.norm(pin.log3(frames[-1].rotation @ frames[0].rotation.T))

    assert np.linalg.norm(places(bench) - [0.0, 0.04, 0.0], axis=1) == pytest.approx(0.04, abs=1e-8)
    assert speeds(places(bench)).max() == pytest.approx(0.1, rel=1e-3)
    assert turned == pytest.approx(np.pi if mode else 0.0, abs=1e-6)


def test_acceleration_limits_speed_on_a_circle(bench):
    bench.load(
        "p0 = get_target_tcp_pose()", f"movec({pose(0.05, 0.05)}, {pose(0, 0.1)}, a=1.0, v=1.0)"
    )
    bench.finish()

    assert speeds(places(bench)).max() == pytest.approx(np.sqrt(1.0 * 0.05), rel=1e-3)
    assert places(bench)[-1] == pytest.approx([0, 0.1, 0], abs=1e-8)


def test_movec_blends_into_a_line(bench):
    bench.load(
        "p0 = get_target_tcp_pose()",
        f"movec({pose(0.03, 0.03)}, {pose(0, 0.06)}, a=1.0, v=0.1, r=0.01)",
        f"movel({pose(0, 0.12)}, a=1.0, v=0.1)",
    )
    bench.finish()
    points = places(bench)

    assert points[-1] == pytest.approx([0, 0.12, 0], abs=1e-8)

    near = np.linalg.norm(points[1:] - CORNER, axis=1) < 0.01

    assert speeds(points)[near].min() > 0.05
    assert (
        np.linalg.norm(np.diff(points, 2, axis=0), axis=1).max() / DT < 0.0021
    )  # a=1.0 for 2 ms, and 2 % for the blend


@pytest.mark.parametrize("rotation", [0.05, 0.2])
def test_rotation_has_its_own_acceleration(bench, rotation):
    bench.load(
        f"speedl([0.1, 0, 0, 0, 0, {rotation}], a=0.5, t=1.0, aRot={rotation / 0.4})", "stopl(1.0)"
    )
    bench.tick(0.1)
    frames = [bench.controller.arm.tool(q) for q in (bench.q[0], bench.q[-1])]
    ticks = len(bench.q) - 1
    turned = np.linalg.norm(pin.log3(frames[1].rotation @ frames[0].rotation.T))

    # 0.2 s for the translation, 0.4 s for the rotation: both take the longer.
    assert turned == pytest.approx(0.5 * rotation / 0.4 * (ticks * DT) ** 2, rel=1e-3)
    assert np.linalg.norm(frames[1].translation - frames[0].translation) == pytest.approx(
        0.5 * 0.25 * (ticks * DT) ** 2, rel=1e-3
    )


@pytest.mark.parametrize(
    "call", ["speedj([0.5, 0, 0, 0, 0, 0], 2.0)", "speedl([0.05, 0, 0, 0, 0, 0], a=0.2)"]
)
def test_without_time_a_speed_returns_once_reached(bench, call):
    bench.load(call, "set_flag(0, True)", "sleep(0.1)")
    ticks = next(i for i in range(1000) if bench.tick() or bench.state.flags[0])

    assert ticks * DT == pytest.approx(0.25, abs=2 * DT)

    goal = call[call.index("[") + 1 : call.index(",")]
    reached = (
        bench.state.target_qd[0] if call.startswith("speedj") else bench.state.target_tcp_speed[0]
    )

    assert reached == pytest.approx(float(goal), rel=1e-3)


@pytest.mark.parametrize("scaling", [0.25, 1.0])
def test_attained_speed_returns_next_tick(bench, scaling):
    bench.controller.set_speed_slider(scaling)
    bench.tick(1.0)
    bench.load(
        "speedj([0.5, 0, 0, 0, 0, 0], 2.0)",
        "i = 0",
        "while i < 10:",
        "  speedj([0.5, 0, 0, 0, 0, 0], 2.0)",
        "  i = i + 1",
        "end",
        "set_flag(0, True)",
        "stopj(2)",
    )
    ticks = next(i for i in range(1000) if bench.tick() or bench.state.flags[0])

    assert ticks * DT == pytest.approx(0.25 + 10 * DT, abs=2 * DT)


# The stop of a program


def test_stopped_program_slows_by_an_eightieth(bench):
    bench.load(f"movej({AHEAD}, a=2.0, v=0.5)")
    bench.tick(1.0)
    bench.controller.stop_program()
    bench.q = [bench.state.target_q]
    seen = []
    while bench.state.runtime_state == RuntimeState.STOPPING:
        bench.tick()
        seen.append(bench.state.limiter_scaling)

    assert np.array(seen) == pytest.approx(1.0 - 0.0125 * np.arange(1, 81), abs=1e-9)
    assert bench.speeds()[:, 0] == pytest.approx(0.5 * np.array(seen), abs=1e-9)
    assert bench.state.runtime_state == RuntimeState.STOPPED and bench.at_rest


def test_scaling_is_one_while_playing(bench):
    assert bench.state.limiter_scaling == 0.0

    bench.load("sleep(0.1)")
    bench.tick()

    assert bench.state.limiter_scaling == 1.0

    bench.finish()

    assert bench.state.limiter_scaling == 0.0


def test_the_scaling_falls_at_rest_too(bench):
    bench.load("sleep(10)")
    bench.tick(0.1)
    bench.controller.stop_program()

    assert bench.state.runtime_state == RuntimeState.STOPPED

    bench.tick(0.1)

    assert bench.state.limiter_scaling == pytest.approx(1.0 - 0.1 * 6.25)

    bench.tick(0.1)

    assert bench.state.limiter_scaling == 0.0


def test_replacement_begins_at_rest(bench):
    bench.load(f"movej({AHEAD}, a=2.0, v=0.5)")
    bench.tick(1.0)
    bench.load("write_output_integer_register(0, 7)", "sleep(0.1)")
    bench.tick(0.1)

    assert bench.state.runtime_state == RuntimeState.STOPPING and bench.state.output_int[0] == 0

    bench.tick(0.1)

    assert bench.state.runtime_state == RuntimeState.PLAYING and bench.state.output_int[0] == 7
    assert bench.at_rest


def test_protective_stop_pauses_a_waiting_program(bench):
    bench.load(f"movej({AHEAD}, a=2.0, v=0.5)")
    bench.tick(1.0)
    bench.load("write_output_integer_register(0, 7)", "sleep(1)")
    bench.tick(0.05)
    bench.controller.protective_stop()
    bench.tick(0.2)

    assert bench.state.runtime_state == RuntimeState.PAUSED and bench.state.output_int[0] == 0
