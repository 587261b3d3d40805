"""PyBullet as an arm: how it tracks, which errors it shows, and that it is deterministic."""

from __future__ import annotations

import contextlib
import itertools
import math

import numpy as np
import pinocchio as pin
import pytest

from simbridge.backends.pybullet import PHYSICS_STEP, PyBulletBackend
from simbridge.errors import GuardViolation, InvalidParameter, NoDisplay, PlanRefused
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.options import Options
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import Scenario
from simbridge.robot import load_robot
from simbridge.robot.cell import Cell
from simbridge.robot.kinematics import tool_path
from simbridge.running.runner import run
from simbridge.servo.law import ServojLaw
from simbridge.servo.plant import JOINT_LAG
from simbridge.trajectory import square
from tests.refusals import refuses

UR10 = load_robot("ur10")


@pytest.fixture(scope="module")
def plan():
    made, _ = make_plan(UR10, Scenario(square(speed=0.2, laps=1)), ForwardDynamics(UR10))
    return made


def simulation(robot, servo="ideal", **options):
    return PyBulletBackend(robot, Options(servo=servo, **options))


def tracked(plan, robot=UR10, **settings):
    with simulation(robot, **settings) as arm:
        arm.move_to(plan.setpoints[0])
        return list(arm.stream(plan.setpoints))


def plant_error(plan, states):
    """Distance of the tool from where its setpoints put it (T,), mm."""
    attained = tool_path(UR10, np.array([s.q for s in states]))
    return np.linalg.norm(tool_path(UR10, plan.setpoints)[:, :3] - attained[:, :3], axis=1) * 1e3


def rms(values):
    return float(np.sqrt(np.mean(values**2)))


@pytest.fixture(scope="module")
def states(plan):
    return tracked(plan)


def test_the_square_is_tracked_to_a_millimetre_rms_at_the_controllers_own_period(plan, states):
    assert plan.period == 0.008
    assert rms(plant_error(plan, states)) <= 1.0


def test_an_unmodelled_payload_makes_the_error_visibly_larger(plan, states):
    loaded = tracked(plan, unmodelled_payload=5.0)
    assert rms(plant_error(plan, loaded)) > 5.0 * rms(plant_error(plan, states))
    # 5 kg pull the tool down: the error is where gravity points.
    heights = (
        tool_path(UR10, np.array([s.q for s in loaded]))[:, 2]
        - tool_path(UR10, plan.setpoints)[:, 2]
    )
    assert heights.mean() < -1e-3


def test_a_payload_that_the_servo_knows_costs_almost_nothing(plan, states):
    known = tracked(plan, robot=UR10.with_payload(5.0))
    assert rms(plant_error(plan, known)) < 2.0 * rms(plant_error(plan, states))


@pytest.mark.parametrize("mounting", ["ceiling", "wall"])
def test_an_arm_on_the_ceiling_or_wall_tracks_as_well_as_one_on_the_floor(plan, states, mounting):
    hanging = tracked(plan, robot=UR10.with_gravity(Cell(mounting=mounting).gravity))
    assert rms(plant_error(plan, hanging)) <= 1.0
    assert rms(plant_error(plan, hanging)) < 1.5 * rms(plant_error(plan, states))
    # The joints hold against another gravity: the same motion was not simulated in the same way.
    efforts = [np.array([s.effort for s in of]).mean(axis=0) for of in (states, hanging)]
    assert np.abs(efforts[0] - efforts[1]).max() > 20.0


def test_a_wrong_mounting_in_the_servos_model_costs_millimetres(plan, states):
    with simulation(UR10) as arm:
        arm._bullet.setGravity(0.0, 0.0, 9.81, physicsClientId=arm._client)
        arm.move_to(plan.setpoints[0])
        mistaken = list(arm.stream(plan.setpoints))
    assert rms(plant_error(plan, mistaken)) > 20.0 * rms(plant_error(plan, states))
    # The servo compensates a weight in the wrong direction, so the tool is too high in its own frame.
    heights = (
        tool_path(UR10, np.array([s.q for s in mistaken]))[:, 2]
        - tool_path(UR10, plan.setpoints)[:, 2]
    )
    assert heights.mean() > 2e-3


def test_a_payload_away_from_the_tcp_acts_at_its_centre_of_gravity(plan):
    """A load that the servo knows at its true place costs nothing; torques at rest are those of its place."""
    aside = UR10.with_payload(4.0, cog=[0.15, 0.0, 0.05])
    with simulation(aside, unmodelled_payload=1.0) as arm:
        arm.move_to(plan.setpoints[0])
        state = arm.read()
    expected = sum(
        pin.computeGeneralizedGravity(robot.model, robot.model.createData(), state.q) * sign
        for robot, sign in ((aside, 1.0), (UR10.with_payload(1.0), 1.0), (UR10, -1.0))
    )
    assert np.allclose(state.effort, expected, atol=0.05)


def test_torques_at_rest_are_those_of_gravity(plan):
    """The logged torque is that of the simulation, not the request: at rest it equals pinocchio's gravity term."""
    for payload in (0.0, 4.0):
        carrying = UR10.with_payload(payload)
        with simulation(UR10, unmodelled_payload=payload) as arm:
            arm.move_to(plan.setpoints[0])
            state = arm.read()
        gravity = pin.computeGeneralizedGravity(
            carrying.model, carrying.model.createData(), state.q
        )
        assert np.allclose(state.effort, gravity, atol=0.05)


def test_a_torque_beyond_the_limit_saturates():
    """30 kg far out are more than half of the torque limits can hold: no more is given, and the arm sags."""
    from dataclasses import replace

    weak = replace(
        UR10,
        joints=tuple(replace(joint, max_effort=0.5 * joint.max_effort) for joint in UR10.joints),
    )
    stretched = np.array([0.0, -0.3, 0.3, -1.5, -1.57, 0.0])
    with simulation(replace(weak, home=stretched), unmodelled_payload=30.0) as arm:
        peak = np.max([np.abs(s.effort) for s in arm.stream(np.tile(stretched, (10, 1)))], axis=0)
        sagged = arm.read().q
    assert peak[1] == weak.max_effort[1]
    assert (peak <= weak.max_effort).all()
    assert np.abs(sagged - stretched).max() > 0.005


def test_two_runs_give_the_same_states_bit_for_bit(plan, states):
    again = tracked(plan)
    for name in ("timestamp", "plan_time", "q", "qd", "effort", "controller_target", "command"):
        first, second = (np.array([getattr(s, name) for s in run]) for run in (states, again))
        assert np.array_equal(first, second), name


def test_there_is_one_state_per_setpoint_at_its_due_instant(plan, states):
    assert [s.sequence for s in states] == list(range(plan.samples))
    stamps = np.array([s.timestamp for s in states])
    assert np.allclose(np.diff(stamps), 0.008, atol=1e-12)
    assert np.allclose([s.plan_time for s in states], plan.times, atol=1e-12)
    assert np.array_equal(np.array([s.command for s in states]), plan.setpoints)


def test_a_steady_motion_is_followed_without_lead_or_lag():
    """At constant joint velocity, setpoint and measured position belong to the same instant."""
    speed = 0.3
    setpoints = UR10.home + np.outer(np.arange(250) * 0.008 * speed, np.eye(6)[0])
    with simulation(UR10) as arm:
        late = list(arm.stream(setpoints))[-1]
    assert abs(late.q[0] - setpoints[-1, 0]) < 0.0005 * speed


def test_the_dynamics_are_pinocchios():
    """Free fall with zero torque: PyBullet's first acceleration is that of pinocchio's articulated-body algorithm."""
    q = np.array([0.3, -1.0, 1.2, -0.7, 0.9, 0.4])
    with simulation(UR10) as arm:
        b, body, client = arm._bullet, arm._body, arm._client
        for joint in range(6):
            b.resetJointState(body, joint, q[joint], physicsClientId=client)
        b.setJointMotorControlArray(
            body, range(6), b.TORQUE_CONTROL, forces=[0.0] * 6, physicsClientId=client
        )
        b.stepSimulation(physicsClientId=client)
        velocity = np.array(
            [s[1] for s in b.getJointStates(body, range(6), physicsClientId=client)]
        )
    expected = pin.aba(UR10.model, UR10.model.createData(), q, np.zeros(6), np.zeros(6))
    assert np.allclose(velocity / PHYSICS_STEP, expected, rtol=1e-3, atol=1e-3)


def test_the_guard_stops_the_stream_and_recover_allows_the_next():
    far = UR10.home + 1.0
    with simulation(UR10) as arm:
        with pytest.raises(GuardViolation):
            list(arm.stream([UR10.home, far]))
        resting = arm.read().q
        assert np.abs(resting - UR10.home).max() < 1e-3
        with pytest.raises(GuardViolation, match="recover"):
            list(arm.stream([UR10.home]))
        arm.recover()
        assert len(list(arm.stream([arm.read().command] * 3))) == 3


def test_after_a_violation_a_move_is_refused_as_well():
    with simulation(UR10) as arm:
        begin = arm.read().q
        with pytest.raises(GuardViolation):
            list(arm.stream([np.full(6, np.nan)]))

        with pytest.raises(GuardViolation, match="recover"):
            arm.move_to(begin + np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.0]))

        assert np.abs(arm.read().q - begin).max() < 1e-3


def test_a_move_through_the_floor_is_refused(plan):
    with simulation(UR10) as arm:
        begin = arm.read().q
        down = begin + np.array([0.0, 1.2, 0.0, 0.0, 0.0, 0.0])

        with refuses("floor"):
            arm.move_to(down)

        assert np.array_equal(arm.read().q, begin)


def test_closing_the_stream_stops_the_arm(plan):
    with simulation(UR10) as arm:
        arm.move_to(plan.setpoints[0])
        stream = arm.stream(plan.setpoints)
        for _ in range(200):
            next(stream)
        stream.close()
        assert np.abs(arm.read().qd).max() < 1e-4


def test_the_approach_is_checked_before_it_moves():
    with simulation(UR10) as arm:
        before = arm.read().q
        with pytest.raises(PlanRefused):
            arm.move_to(np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0]))
        assert np.array_equal(arm.read().q, before)


@pytest.mark.parametrize("period", [0.0005, 0.0085, 0.0])
def test_a_period_that_is_no_multiple_of_the_physics_step_is_refused(period):
    with pytest.raises(InvalidParameter, match="period"):
        simulation(UR10, period=period)


def test_the_e_series_arm_runs_at_its_own_2_ms():
    robot = load_robot("ur10e")
    made, _ = make_plan(robot, Scenario(square(side=0.1, speed=0.2)), ForwardDynamics(robot))
    states = tracked(made, robot=robot)
    assert made.period == 0.002
    attained = tool_path(robot, np.array([s.q for s in states]))
    error = np.linalg.norm(tool_path(robot, made.setpoints)[:, :3] - attained[:, :3], axis=1)
    assert math.sqrt(np.mean(error**2)) < 1e-3


def test_a_window_without_a_display_is_refused_before_anything_is_written(monkeypatch, tmp_path):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(NoDisplay, match="DISPLAY"):
        run(
            Scenario(square(side=0.05), name="small"),
            out=tmp_path / "run",
            options=Options(gui=True),
        )
    assert not (tmp_path / "run").exists()


def joint_motion(robot, speed=1.0):
    """Commands for 5 s: every joint swings at up to `speed` rad/s, begun gently, each at its own frequency."""
    times = np.arange(round(5.0 / robot.period)) * robot.period
    frequencies = 0.5 + 0.2 * np.arange(robot.n)
    begin = np.clip(times, 0.0, 1.0)[:, np.newaxis]
    swing = np.minimum(speed / frequencies, 0.6) * np.sin(frequencies * times[:, np.newaxis])
    return robot.home + begin**2 * (3.0 - 2.0 * begin) * swing


@pytest.mark.parametrize(
    ("name", "payload", "left_rad"),
    [
        ("ur10e", 0.0, 0.02e-3),
        ("ur10", 0.0, 0.1e-3),
        ("ur10e", 2.0, 0.25e-3),
        ("ur10", 2.0, 0.25e-3),
    ],
)
def test_the_joints_are_where_their_targets_were_half_a_millisecond_ago(name, payload, left_rad):
    robot = load_robot(name)
    with simulation(robot, servo="servoj", unmodelled_payload=payload) as arm:
        states = list(arm.stream(joint_motion(robot)))
    target, attained = (
        np.array([getattr(s, of) for s in states]) for of in ("controller_target", "q")
    )
    velocity = np.gradient(target, robot.period, axis=0)
    lag = float(((target - attained) * velocity).sum() / (velocity**2).sum())
    # A load that the controller does not know pulls the joints off in proportion to their posture, not their speed.
    assert payload or 0.45e-3 <= lag <= 0.55e-3
    assert rms(target - attained - JOINT_LAG * velocity) <= left_rad


def test_the_targets_follow_the_servo_law(plan):
    law = ServojLaw(plan.period, 1000.0, 0.05)
    states = tracked(plan, servo="servoj", servo_gain=1000.0, servo_lookahead=0.05)
    targets = np.array([s.controller_target for s in states])
    # The arm comes to rest at the first command in single precision.
    np.testing.assert_allclose(targets, law.follow(plan.setpoints).q, rtol=0.0, atol=2e-7)
    assert (np.array([s.command for s in states]) == plan.setpoints).all()


def test_at_a_period_of_several_cycles_the_commands_are_ramps():
    robot = load_robot("ur10e")
    commands = joint_motion(robot)[::4]
    with simulation(robot, period=0.008, servo="servoj") as arm:
        targets = np.array([s.controller_target for s in arm.stream(commands)])
    expected = ServojLaw(0.002).follow(commands, call=0.008).q[3::4]
    np.testing.assert_allclose(targets, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("feedforward", [False, True])
def test_a_stream_that_is_closed_in_motion_brakes_within_the_acceleration_limit(feedforward):
    robot = load_robot("ur10e")
    motion = joint_motion(robot)
    fastest = int(np.argmax(np.abs(np.diff(motion, axis=0)).max(axis=1)))
    with simulation(robot, servo="servoj", feedforward="on" if feedforward else "off") as arm:
        targets, advance = [], arm._advance
        arm._advance = lambda command: (
            advance(command),
            targets.append(arm.read().controller_target),
        )
        with contextlib.closing(arm.stream(motion)) as stream:
            list(itertools.islice(stream, fastest))
        at_rest = arm.read()
    velocity = np.diff(targets, axis=0) / robot.period
    assert np.abs(velocity[fastest - 20 : fastest]).max() > 0.9
    assert np.abs(np.diff(velocity[fastest - 20 :], axis=0) / robot.period).max() <= 40.0
    assert np.abs(at_rest.qd).max() < 1e-6


def test_after_a_stream_that_ended_in_motion_the_next_one_begins_at_rest():
    fast = (
        UR10.home
        + np.cumsum(np.minimum(np.arange(30) * 0.1, 2.0))[:, np.newaxis]
        * UR10.period
        * np.eye(6)[5]
    )
    with simulation(UR10) as arm:
        stream = arm.stream(fast)
        for _ in range(25):
            state = next(stream)
        stream.close()
        assert np.abs(arm.read().qd).max() < 1e-3
        assert len(list(arm.stream([state.command] * 3))) == 3
