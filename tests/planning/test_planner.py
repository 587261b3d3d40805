"""A plan is the same wherever it is made; what cannot be planned is refused by name and sample."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.errors import (
    InvalidParameter,
    InvalidTrajectory,
    LimitExceeded,
    PlanRefused,
    TargetOutOfReach,
)
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.limiter import limit_setpoints
from simbridge.planning.options import Options
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import Scenario
from simbridge.robot import load_robot
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path, tool_speeds
from simbridge.robot.obstacles import CollisionScene
from simbridge.servo.law import ServojLaw
from simbridge.text import millimetres
from simbridge.trajectory import Sampling, Trajectory, square, step
from tests.properties import variants
from tests.refusals import refuses

pytestmark = pytest.mark.slow

ROBOT = load_robot("ur10")
SOLVER = ForwardDynamics(ROBOT)
HOME = ROBOT.home
PERIOD = ROBOT.period
NO_FLOOR = CollisionModel(ROBOT, CollisionScene(floor=None))


def planned(trajectory, robot=ROBOT, solver=SOLVER, on_limits="refuse", **options):
    return make_plan(robot, Scenario(trajectory, on_limits=on_limits), solver, Options(**options))[
        0
    ]


def test_plans_repeat_bit_for_bit():
    first, second = (
        planned(square(side=0.1), solver=ForwardDynamics(load_robot("ur10"))) for _ in range(2)
    )

    for name in ("trajectory_times", "solution", "setpoints", "limited", "targets"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name


def test_a_plan_cannot_be_changed():
    plan = planned(square(side=0.1))
    for array in (plan.trajectory_times, plan.solution, plan.setpoints, plan.limited):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_sample_k_is_due_after_k_periods(through):
    # 0.1 s are twelve and a half periods.
    plan = planned(through([[0.7, 0.164, 0.3], [0.71, 0.164, 0.3]], [5.0, 5.1]))

    assert plan.samples == 14
    assert plan.duration == pytest.approx(13 * PERIOD, rel=1e-12)
    assert plan.times == pytest.approx(np.arange(14) * PERIOD, rel=1e-12)
    assert plan.trajectory_times == pytest.approx([*(np.arange(13) * PERIOD), 0.1], rel=1e-12)
    assert plan.targets[-1, 0] == 0.71
    assert plan.targets[1, 0] == pytest.approx(0.7 + 0.1 * PERIOD, rel=1e-12)


def test_a_plan_begins_nearest_home(through):
    plan = planned(through([[0.7, 0.164, 0.3], [0.72, 0.164, 0.3]], [0.0, 0.2]))
    model = ROBOT.model
    data = ROBOT.model.createData()

    for q, target in zip(plan.setpoints, plan.targets, strict=True):
        pin.framesForwardKinematics(model, data, q)
        attained = data.oMf[model.getFrameId("tool0")]
        assert np.abs(attained.translation - target[:3]).max() < 1e-5
        assert (
            np.abs(pin.log3(attained.rotation.T @ pin.Quaternion(target[3:]).matrix())).max() < 1e-4
        )

    assert np.abs(plan.setpoints[0] - HOME).max() < 0.2


def test_half_the_speed_takes_twice_as_long():
    whole = planned(square(side=0.1))
    half = planned(square(side=0.1), speed_scale=0.5)

    assert half.samples == 2 * whole.samples - 1
    assert half.trajectory.duration == pytest.approx(2.0 * whole.trajectory.duration, rel=1e-12)
    assert half.targets[::2] == pytest.approx(whole.targets, abs=1e-12)


def test_the_first_target_out_of_reach_is_named(through):
    # Tool down, the wrist lies 0.1157 m inside and 0.0922 m above the TCP, and all that is 0.1639 m
    # to the side of the arm's plane: so far the two long links, 0.612 m and 0.5723 m, can stretch
    # from the shoulder at 0.1273 m.
    stretched = np.sqrt((0.612 + 0.5723) ** 2 - (0.3 + 0.0922 - 0.1273) ** 2)
    farthest = np.hypot(stretched + 0.1157, 0.163941)
    speed = 0.1
    y = 0.164
    trajectory = through([[1.2, y, 0.3], [1.4, y, 0.3]], [0.0, 2.0])

    with pytest.raises(TargetOutOfReach) as caught:
        planned(trajectory)

    error = caught.value
    crossing = (np.sqrt(farthest**2 - y**2) - 1.2) / speed

    assert error.sample == 0  # of the trajectory: the one at or before
    assert crossing < error.time <= crossing + PERIOD + 1e-5
    assert 0.0 < error.distance <= speed * (error.time - crossing) + 1e-5
    assert f"{error.time:.3f} s" in str(error)
    assert f"closest reachable pose is {millimetres(error.distance)} mm" in str(error)

    # The first is only just past the edge; how far the motion goes beyond it is reported, too.
    beyond = re.search(r"farthest is sample 1, (\d+\.?\d*) mm", str(error))

    assert beyond is not None
    assert float(beyond[1]) <= 1e3 * (1.4 - farthest) + 60.0


def test_all_targets_missed_suggests_other_units(through):
    with pytest.raises(
        TargetOutOfReach, match="every target is out of reach; are these millimetres"
    ) as caught:
        planned(through([[700.0, 164.0, 300.0], [710.0, 164.0, 300.0]], [0.0, 1.0]))

    assert (caught.value.sample, caught.value.time) == (0, 0.0)

    with pytest.raises(TargetOutOfReach, match="every target is out of reach; the first") as caught:
        planned(through([[2.7, 0.164, 0.3], [2.71, 0.164, 0.3]], [0.0, 1.0]))

    assert "millimetres" not in str(caught.value)


def standing(q):
    """A trajectory that stays where joint positions (6,) put the tool."""
    return Trajectory(
        np.array([0.0, 0.1]), np.repeat(tool_path(ROBOT, np.array(q)[None]), 2, axis=0)
    )


def test_a_nearly_stretched_start_is_planned():
    target = standing([1.371, -0.638, -0.006, -1.892, 2.699, -1.887])
    plan = make_plan(ROBOT, Scenario(target), SOLVER, Options(floor="none"))[0]

    assert np.abs(tool_path(ROBOT, plan.setpoints)[:, :3] - target.poses[0, :3]).max() < 1e-9


def test_a_start_beyond_a_limit_names_the_joint():
    """The first joint's two solutions lie within 0.5 rad of home and of half a turn from it;
    neither is allowed.
    """
    pan = replace(ROBOT.joints[0], position_min=1.0, position_max=2.0)
    robot = replace(ROBOT, joints=(pan, *ROBOT.joints[1:]))
    message = r"outside the joint limits \(.*shoulder_pan_joint at .* degrees"

    with pytest.raises(TargetOutOfReach, match=message) as caught:
        planned(standing(HOME), robot=robot, solver=ForwardDynamics(robot))

    assert caught.value.distance < 1e-9


class Missing(ForwardDynamics):
    """Ends within the joint limits, and so far from its target."""

    def __init__(self, distance):
        super().__init__(ROBOT)
        self.distance = distance

    def solve(self, target, q0=None):
        return replace(super().solve(target, q0), converged=False, distance=self.distance)


def test_the_first_target_has_the_common_tolerance():
    plan = planned(standing(HOME), solver=Missing(0.9e-6))

    assert np.abs(plan.setpoints - HOME).max() < 1e-9


def test_a_missed_start_names_the_distance():
    with pytest.raises(TargetOutOfReach, match=r"is 2\.30 µm and 0.*° away") as caught:
        planned(standing(HOME), solver=Missing(2.3e-6))

    assert "joint limits" not in str(caught.value)


@pytest.mark.parametrize("period", [0.0, -0.008, np.nan, np.inf])
def test_a_period_must_be_positive(period):
    with pytest.raises(InvalidParameter, match="period"):
        planned(square(side=0.1), period=period)


def test_nanoseconds_do_not_fill_memory():
    trajectory = square(side=0.1)

    with pytest.raises(InvalidTrajectory, match=r"control periods.*in seconds"):
        planned(Trajectory(trajectory.times * 1e9, trajectory.poses))
    with pytest.raises(InvalidTrajectory, match="speed scale"):
        planned(trajectory, speed_scale=1e-9)


def test_slowing_down_as_the_message_says_is_enough(through):
    jumpy = replace(ROBOT, max_velocity_jump=100.0)
    trajectory = through([[0.6, 0.164, 0.3], [0.9, 0.164, 0.3]], [0.0, 0.1])
    options = {"robot": jumpy, "solver": ForwardDynamics(jumpy)}

    with refuses("velocity") as caught:
        planned(trajectory, max_tool_speed=10.0, **options)

    scale = float(re.search(r"down to (\S+) times its speed", str(caught.value))[1])

    assert scale < 1.0

    with refuses("tool speed") as caught:
        planned(trajectory, speed_scale=scale, max_tool_speed=0.2, **options)

    scale *= float(re.search(r"down to (\S+) times its speed", str(caught.value))[1])

    assert planned(trajectory, speed_scale=scale, max_tool_speed=0.2, **options).samples > 100


def test_no_useless_speed_is_advised():
    with refuses("velocity") as caught:
        planned(square(speed=0.2), speed_scale=9.0, max_tool_speed=10.0)

    assert "Slow it down (--speed-scale)" in str(caught.value)


@pytest.mark.parametrize("scale", variants([1.0, 0.19, 0.05], 1.0, 0.19))
def test_held_samples_advise_no_lower_speed(through, scale):
    trajectory = through(
        [[0.6, 0.164, 0.3], [0.65, 0.164, 0.3], [0.7, 0.164, 0.3]], [0.0, 0.5, 1.0]
    )

    with pytest.raises(LimitExceeded, match="--hold linear") as caught:
        planned(trajectory, hold="zero-order", speed_scale=scale)

    assert "--speed-scale" not in str(caught.value)

    # A source with a rate of its own takes smaller steps on a slower trajectory.
    with pytest.raises(LimitExceeded, match="--speed-scale"):
        planned(square(0.4, speed=0.2), sampling=Sampling(rate=20.0))

    # A dense source is held, too, and a lower speed does help.
    times = np.arange(0.0, 0.1001, 0.002)
    dense = through(
        np.column_stack([0.6 + 3.0 * times, 0.164 + 0.0 * times, 0.3 + 0.0 * times]), times
    )

    with pytest.raises(LimitExceeded, match="--speed-scale"):
        planned(dense, hold="zero-order")


def test_an_earlier_plan_is_replayed():
    earlier = planned(square(side=0.1))
    scenario = Scenario(square(side=0.1))

    plan, peaks = make_plan(ROBOT, scenario, SOLVER, replay=earlier)

    assert plan is earlier
    assert peaks.tool_speed == pytest.approx(0.2, rel=1e-3)

    with refuses("tool speed"):
        make_plan(ROBOT, scenario, SOLVER, Options(max_tool_speed=0.1), replay=earlier)
    with refuses("floor"):
        make_plan(ROBOT, scenario, SOLVER, Options(floor=0.4), replay=earlier)


def far_step():
    home = tool_path(ROBOT, HOME[None])[0]
    return step(home, offset=(-0.25, -0.75, 0.35), at=0.1, duration=1.0)


def test_an_unlimited_step_is_refused():
    with pytest.raises(PlanRefused):
        planned(far_step(), hold="zero-order")


@pytest.mark.parametrize("speed", [1.0, 0.25])
def test_a_limited_step_arrives(speed):
    plan = planned(far_step(), hold="zero-order", on_limits="limit", max_tool_speed=speed)
    velocity = np.diff(plan.setpoints, axis=0) / PERIOD

    assert (np.abs(velocity) <= ROBOT.max_velocity).all()

    still = np.zeros((1, 6))
    jumps = np.abs(np.diff(np.concatenate([still, velocity, still]), axis=0))

    assert jumps.max() <= ROBOT.max_velocity_jump
    assert tool_speeds(ROBOT, plan.setpoints, PERIOD).max() <= speed
    assert plan.limited.any()
    assert np.array_equal(plan.setpoints[-1], plan.solution[-1])
    assert np.abs(tool_path(ROBOT, plan.setpoints[-1:])[0, :3] - plan.targets[-1, :3]).max() < 1e-6


def test_a_moving_end_is_brought_to_rest(through):
    trajectory = through([[0.6, 0.164, 0.3], [0.9, 0.164, 0.3]], [0.0, 0.3])
    plan = planned(trajectory, on_limits="limit", max_tool_speed=2.0)

    assert plan.duration > 0.3
    assert plan.trajectory_times[-1] == plan.trajectory_times[-2] == 0.3
    assert np.abs(np.diff(plan.setpoints, axis=0)[-1] / PERIOD).max() <= ROBOT.max_velocity_jump
    assert np.abs(tool_path(ROBOT, plan.setpoints[-1:])[0, :3] - [0.9, 0.164, 0.3]).max() < 1e-4


def test_limiting_changes_no_good_plan(through):
    # From rest to rest, a cosine: nothing for the limiter to do.
    t = np.linspace(0.0, 1.0, 101)
    x = 0.7 + 0.05 * (1.0 - np.cos(2.0 * np.pi * t))
    trajectory = through(np.column_stack([x, np.full(101, 0.164), np.full(101, 0.3)]), t)
    free = planned(trajectory)

    held = planned(trajectory, on_limits="limit")

    assert held.setpoints.tobytes() == free.setpoints.tobytes()
    assert not held.limited.any()


def distances_to_polyline(points, corners):
    """Return the distances of points (K, n) from the polyline through corners (T, n)."""
    begin = corners[:-1]
    along = np.diff(corners, axis=0)
    length = np.maximum(np.einsum("tn,tn->t", along, along), 1e-300)
    away = points[:, None] - begin
    share = np.clip(np.einsum("ktn,tn->kt", away, along) / length, 0.0, 1.0)
    return np.linalg.norm(away - share[..., None] * along, axis=2).min(axis=1)


@given(st.floats(0.05, 0.6), st.floats(0.3, 1.2))
@settings(max_examples=8)
def test_stretched_time_keeps_the_joint_path(speed, fast):
    poses = tool_path(ROBOT, np.tile(HOME, (3, 1)))
    poses[:, :3] = [[0.65, 0.164, 0.3], [0.75, 0.164, 0.3], [0.75, 0.264, 0.3]]
    trajectory = Trajectory(np.array([0.0, 0.1, 0.2]) / fast, poses)

    plan = planned(trajectory, on_limits="limit", max_tool_speed=speed)

    assert tool_speeds(ROBOT, plan.setpoints, PERIOD).max() <= speed * (1.0 + 1e-6)

    times = np.minimum(
        np.arange(np.ceil(trajectory.duration / PERIOD - 1e-9) + 1) * PERIOD, trajectory.duration
    )
    solution = SOLVER.track(trajectory.target(times), SOLVER.solve(trajectory.start, HOME).q)

    unstretched, _ = limit_setpoints(ROBOT, solution, PERIOD)

    assert distances_to_polyline(plan.setpoints, unstretched).max() < 1e-12
    assert np.array_equal(plan.setpoints[0], unstretched[0])
    assert np.abs(plan.setpoints[-1] - unstretched[-1]).max() < 1e-12
    assert (np.diff(plan.trajectory_times) >= 0.0).all()
    assert (np.diff(plan.trajectory_times) <= PERIOD * (1.0 + 1e-9)).all()


def spinning(robot, angle=2.5, speed=6.0):
    """The tool turns about its own z by an angle, rad, and after a second back, at rad/s."""
    t = np.arange(0.0, 2.0, 0.01)
    angles = np.minimum(speed * np.minimum(t, 1.0), angle) - np.minimum(
        speed * np.maximum(t - 1.0, 0.0), angle
    )
    turns = [pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, turn), np.zeros(3)) for turn in angles]
    start = pin.XYZQUATToSE3(tool_path(robot, robot.home[None])[0])
    return Trajectory(t, np.array([pin.SE3ToXYZQUAT(start * turn) for turn in turns]))


@pytest.mark.parametrize(
    ("name", "gain"),
    [
        ("ur10", 2000.0),
        ("ur10", 300.0),
        ("ur10", 100.0),
        ("ur10e", 300.0),
        pytest.param("ur10e", 2000.0, marks=pytest.mark.soak),
        pytest.param("ur10e", 100.0, marks=pytest.mark.soak),
    ],
)
def test_a_late_command_keeps_velocity_limits(name, gain):
    robot = load_robot(name)
    scenario = Scenario(spinning(robot), on_limits="limit")
    plan, _ = make_plan(robot, scenario, ForwardDynamics(robot), Options(servo_gain=gain))
    law = ServojLaw(robot.period, gain)
    velocity = np.abs(np.diff(plan.setpoints, axis=0)) / robot.period

    assert velocity.max() > 0.4 * robot.max_velocity[-1]  # neither slower than it has to be

    # Every 56 ms, on either series.
    for late in np.arange(100, len(plan.setpoints), round(0.056 / robot.period)):
        sent = plan.setpoints.copy()
        sent[late] = sent[late - 1]
        assert (np.abs(law.follow(sent).qd) <= robot.max_velocity).all(), late


def test_a_heavy_payload_names_the_joint():
    robot = load_robot("ur10").with_payload(100.0)

    with refuses("torque", match="N m to hold the posture") as caught:
        make_plan(robot, Scenario(square(side=0.1)), ForwardDynamics(robot))

    start = ForwardDynamics(robot).solve(square(side=0.1).start).q
    gravity = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), start)

    assert caught.value.sample == 0
    assert (
        caught.value.joint == robot.joint_names[int(np.argmax(np.abs(gravity) > robot.max_effort))]
    )
    assert caught.value.value == pytest.approx(
        np.abs(gravity[np.abs(gravity) > robot.max_effort][0]), rel=1e-6
    )


def test_a_wall_mounted_arm_has_its_gravity():
    """Standing upright the first axis is vertical, and nothing pulls it; on a wall the whole arm
    does.
    """
    joints = tuple(
        replace(joint, max_effort=330.0 if i else 20.0) for i, joint in enumerate(ROBOT.joints)
    )
    standing = replace(ROBOT, joints=joints)
    scenario = Scenario(square(side=0.1))
    make_plan(standing, scenario, SOLVER)

    with refuses("torque") as caught:
        make_plan(standing.with_gravity([0.0, 9.81, 0.0]), scenario, SOLVER)

    assert caught.value.joint == "shoulder_pan_joint"
    assert caught.value.value > 20.0
