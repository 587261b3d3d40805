"""Setpoints past a limit are refused by name, sample and number before anything moves."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import (
    GuardViolation,
)
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.check import (
    Remedies,
    check_predicted_distance,
    check_predicted_velocity,
    check_setpoints,
)
from simbridge.planning.guard import Guard, allowed_distance
from simbridge.robot import load_robot
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.robot.obstacles import CollisionScene
from simbridge.servo.law import ServojLaw
from tests.refusals import refuses

ROBOT = load_robot("ur10")
SOLVER = ForwardDynamics(ROBOT)
HOME = ROBOT.home
PERIOD = ROBOT.period
NO_FLOOR = CollisionModel(ROBOT, CollisionScene(floor=None))


def moving(joint, velocities, start=None):
    """Setpoints (T + 1, 6) from home, or from a joint at `start`: it moves at the velocities (T,)
    in rad/s.
    """
    q = np.tile(HOME, (len(velocities) + 1, 1))
    begin = HOME[joint] if start is None else start
    q[:, joint] = begin + np.concatenate([[0.0], np.cumsum(np.asarray(velocities) * PERIOD)])
    return q


def refused(quantity, setpoints, max_tool_speed=10.0, robot=ROBOT, collisions=NO_FLOOR):
    with refuses(quantity) as caught:
        check_setpoints(
            robot, setpoints, PERIOD, max_tool_speed=max_tool_speed, collisions=collisions
        )
    error = caught.value
    assert error.time == pytest.approx(error.sample * PERIOD, abs=1e-12)
    assert f"sample {error.sample} " in str(error)
    assert error.joint is None or error.joint in str(error)
    return error


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_joint_past_its_limit_is_named(side):
    limit = (ROBOT.position_min if side < 0.0 else ROBOT.position_max)[5]
    # 4 mrad a sample from 10 mrad before the limit: the third step is past it.
    error = refused("position", moving(5, [side * 0.5] * 10, start=limit - side * 0.010))

    assert (error.sample, error.joint, error.limit) == (3, "wrist_3_joint", limit)
    assert error.value == pytest.approx(limit + side * 0.002, abs=1e-9)


def test_a_nan_setpoint_is_refused():
    setpoints = moving(0, [0.1] * 5)
    setpoints[4, 3] = np.nan

    error = refused("position", setpoints)

    assert (error.sample, error.joint) == (4, "wrist_1_joint")
    assert np.isnan(error.value)
    assert "wrist_1_joint would be at nan, which is not a valid position" in str(error)


def test_a_joint_too_fast_is_named():
    limit = ROBOT.max_velocity[1]
    error = refused("velocity", moving(1, [0.0, 0.5 * limit, -1.01 * limit, -1.5 * limit]))

    assert (error.sample, error.joint, error.limit) == (3, "shoulder_lift_joint", limit)
    assert error.value == pytest.approx(1.01 * limit, rel=1e-9)
    assert "1.5 times" in str(error)


def test_a_corner_too_sharp_is_named():
    error = refused("velocity jump", moving(4, [0.6] * 5 + [-0.7] * 5))

    assert (error.sample, error.joint, error.limit) == (5, "wrist_2_joint", ROBOT.max_velocity_jump)
    assert error.value == pytest.approx(1.3, rel=1e-9)


def test_start_and_stop_count_as_jumps():
    ramp = np.arange(1, 13) * 0.1
    error = refused("velocity jump", moving(0, ramp[::-1]))

    assert (error.sample, error.value) == (0, pytest.approx(1.2, rel=1e-9))

    error = refused("velocity jump", moving(0, ramp))

    assert (error.sample, error.value) == (len(ramp), pytest.approx(1.2, rel=1e-9))


def test_a_tool_too_fast_is_named():
    radius = float(np.hypot(*tool_path(ROBOT, HOME[None])[0, :2]))  # about the first joint's axis
    speeds = [0.2, 0.4, 0.6, 0.8]

    error = refused("tool speed", moving(0, speeds), max_tool_speed=0.5 * radius)

    assert (error.sample, error.joint, error.limit) == (3, None, 0.5 * radius)
    assert error.value == pytest.approx(
        2.0 * radius * np.sin(0.5 * 0.6 * PERIOD) / PERIOD, rel=1e-9
    )


def first_touch(model, setpoints):
    """The first sample with less than 5 mm of clearance, found by looking at every one."""
    distances = np.array([model.clearance(q).distance for q in setpoints])
    return int(np.argmax(distances < 0.005)), distances


def test_a_path_through_the_floor_is_named():
    model = CollisionModel(ROBOT)
    setpoints = moving(1, [0.8] * 150)
    first, distances = first_touch(model, setpoints)

    error = refused("floor", setpoints, collisions=model)

    assert error.sample == first > 0
    assert error.value == pytest.approx(distances[first], abs=1e-5)
    assert error.bodies[0] in str(error)

    check_setpoints(ROBOT, setpoints, PERIOD, max_tool_speed=10.0, collisions=NO_FLOOR)


def test_a_path_through_the_arm_names_both_links():
    setpoints = moving(2, [0.8] * 190)
    first, distances = first_touch(NO_FLOOR, setpoints)

    error = refused("self", setpoints)

    assert error.sample == first > 0
    assert error.value == pytest.approx(distances[first], abs=1e-5)
    assert all(link in str(error) for link in error.bodies)


def test_peaks_are_those_of_the_motion():
    speeds = [0.3, 0.7, 0.5, 0.4]
    peaks = check_setpoints(
        ROBOT, moving(0, speeds), PERIOD, max_tool_speed=10.0, collisions=NO_FLOOR
    )

    assert peaks.velocity == pytest.approx([0.7, 0.0, 0.0, 0.0, 0.0, 0.0], abs=1e-9)
    assert peaks.velocity_jump == pytest.approx([0.4, 0.0, 0.0, 0.0, 0.0, 0.0], abs=1e-9)

    radius = float(np.hypot(*tool_path(ROBOT, HOME[None])[0, :2]))

    assert peaks.tool_speed == pytest.approx(
        2.0 * radius * np.sin(0.5 * 0.7 * PERIOD) / PERIOD, rel=1e-9
    )


def test_the_clearance_of_a_motion_is_its_smallest():
    """Without the distances that the shape of the arm alone decides."""
    setpoints = moving(0, [0.3, 0.7, 0.5, 0.4])

    clearance = check_setpoints(
        ROBOT, setpoints, PERIOD, max_tool_speed=10.0, collisions=NO_FLOOR
    ).clearance

    reported = " and ".join(clearance.bodies)
    is_reported = [NO_FLOOR.names(pair) == reported for pair in range(NO_FLOOR.pairs)]
    distances = [NO_FLOOR.distances(q)[is_reported].min() for q in setpoints]
    assert clearance.distance == pytest.approx(min(distances), abs=1e-3)


def test_a_plan_of_one_sample_is_a_plan():
    peaks = check_setpoints(ROBOT, HOME[None], PERIOD, max_tool_speed=1.0, collisions=NO_FLOOR)

    assert not peaks.velocity.any()
    assert peaks.tool_speed == 0.0


def test_acceleration_is_a_limit_of_limited_setpoints_only():
    speeds = np.array([0.0, 0.3, 0.6, 0.6, 0.3, 0.0])
    setpoints = moving(0, speeds)

    peaks = check_setpoints(ROBOT, setpoints, PERIOD, max_tool_speed=10.0, collisions=NO_FLOOR)

    assert peaks.acceleration[0] == pytest.approx(0.3 / PERIOD)

    with refuses("acceleration") as caught:
        check_setpoints(
            ROBOT,
            setpoints,
            PERIOD,
            max_tool_speed=10.0,
            collisions=NO_FLOOR,
            max_acceleration=ROBOT.max_acceleration,
        )

    error = caught.value

    assert (error.sample, error.joint, error.limit) == (
        1,
        "shoulder_pan_joint",
        ROBOT.max_acceleration,
    )
    assert error.value == pytest.approx(0.3 / PERIOD)


@pytest.mark.parametrize("limited", [False, True])
def test_a_predicted_velocity_gives_new_advice(limited):
    """Velocities are predicted for each cycle of 2 ms, samples are 8 ms apart."""
    velocity = np.zeros((40, 6))
    velocity[21:, 2] = 2.0 * ROBOT.max_velocity[2]

    with refuses("velocity", match="Slow it down to 0.47 times its speed") as caught:
        check_predicted_velocity(
            ROBOT, velocity, PERIOD, cycle=0.002, remedies=Remedies(limited=limited)
        )

    assert (caught.value.sample, caught.value.time) == (5, pytest.approx(0.04))
    assert ("--on-limits limit" in str(caught.value)) is not limited


def test_a_large_predicted_lead_is_refused():
    robot = load_robot("ur10e")
    # At its lowest gain servoj swings most at 10 rad/s: three times as far as its setpoints.
    t = np.arange(1500) * robot.period
    swing = 0.09 * np.minimum(t / 0.5, 1.0) * np.sin(10.0 * t)
    setpoints = robot.home + swing[:, np.newaxis] * np.eye(6)[5]
    motion = ServojLaw(robot.period, 100.0).follow(setpoints)
    allowed = allowed_distance(
        np.diff(setpoints, axis=0, prepend=setpoints[:1]) / robot.period, 0.03
    )

    with refuses("command lead", match="--servo-gain") as caught:
        check_predicted_distance(
            robot, setpoints, robot.period, q=motion.q, cycle=robot.period, limits=allowed
        )

    error = caught.value

    assert error.joint == "wrist_3_joint"
    assert error.value > error.limit > 0.2
    assert (np.abs(motion.qd) < robot.max_velocity).all()

    guard = Guard(robot, robot.period)
    stopped = None
    guard.reset(robot.home)
    for k, setpoint in enumerate(setpoints):
        try:
            guard.check(setpoint, motion.q[k - 4] if k > 3 else robot.home)
        except GuardViolation as violation:
            stopped = violation, k
            break

    assert stopped is not None
    assert (stopped[0].rule, stopped[1]) == ("distance", error.sample)

    stiff = ServojLaw(robot.period).follow(setpoints)
    check_predicted_distance(robot, setpoints, 0.002, q=stiff.q, cycle=0.002, limits=allowed)
