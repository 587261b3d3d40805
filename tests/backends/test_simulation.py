"""A simulated arm tracks, shows errors, and is deterministic, with every engine."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.simulation import PHYSICS_STEP
from simbridge.errors import GuardViolation, InvalidParameter, PlanRefused
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.options import Options
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import Scenario
from simbridge.robot import load_robot
from simbridge.robot.cell import Cell
from simbridge.robot.kinematics import tool_path
from simbridge.servo.law import ServojLaw
from simbridge.servo.plant import JOINT_LAG, acceleration_lag_of
from simbridge.trajectory import square
from tests.optional_packages import ENGINES
from tests.properties import variants
from tests.refusals import refuses

pytestmark = pytest.mark.slow

UR10 = load_robot("ur10")


@pytest.fixture(scope="module")
def plan():
    """A plan of a square for the UR10."""
    scenario = Scenario(square(side=0.06, speed=0.1, laps=1))
    result, _ = make_plan(UR10, scenario, ForwardDynamics(UR10))
    return result


@pytest.fixture(scope="module")
def states(plan):
    """The states of the simulated UR10 on the square."""
    return track(plan)


def simulate(robot, servo="ideal", **options):
    """Return a simulation with the default engine, with an ideal servo by default."""
    return backend_class(SIMULATION)(robot, Options(servo=servo, **options))


def track(plan, robot=UR10, **options):
    """Return the states of an arm that has tracked a plan."""
    with simulate(robot, **options) as arm:
        arm.move_to(plan.setpoints[0])
        return list(arm.stream(plan.setpoints))


def column(states, name):
    """A field of all states (T,) or (T, n)."""
    return np.array([getattr(state, name) for state in states])


def tool_positions(plan, states, robot=UR10):
    """Return where the setpoints and the joints put the tool (T, 3), m."""
    commanded = tool_path(robot, plan.setpoints)[:, :3]
    attained = tool_path(robot, column(states, "q"))[:, :3]
    return commanded, attained


def plant_error(plan, states, robot=UR10):
    """Return the distance of the tool from where its setpoints put it (T,), mm."""
    commanded, attained = tool_positions(plan, states, robot)
    return np.linalg.norm(commanded - attained, axis=1) * 1e3


def mean_height_error(plan, states):
    """Return how much too high the tool is in the arm's frame on average, m."""
    commanded, attained = tool_positions(plan, states)
    return (attained[:, 2] - commanded[:, 2]).mean()


def rms(values):
    """Return the root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def gravity_torques(robot, q):
    """Return pinocchio's torques that hold a robot at rest (n,), N m."""
    return pin.computeGeneralizedGravity(robot.model, robot.model.createData(), q)


def with_forearm_inertia(moments):
    """Return a UR10 whose forearm has other principal moments, kg m^2."""
    forearm = UR10.links[2]
    inertia = forearm.inertia.copy()
    inertia.inertia = np.diag(moments)
    links = (*UR10.links[:2], replace(forearm, inertia=inertia), *UR10.links[3:])
    return replace(UR10, links=links)


def free_motion_error(backend, model):
    """Return how far an engine's steps are from semi-implicit Euler with pinocchio's dynamics.

    The arm, which is entered, moves freely under random torques.

    Returns:
        The largest error of an acceleration as a fraction of the largest acceleration.
    """
    random = np.random.default_rng(0)
    data = model.createData()
    errors = []
    for _ in range(10):
        backend._place_joints(random.uniform(-0.5, 0.5, model.nq))
        for _ in range(3):
            q, velocity = backend._measure()
            effort = 0.01 * random.uniform(-1.0, 1.0, model.nq) * backend.robot.max_effort
            backend._step_engine(effort)
            q_after, velocity_after = backend._measure()

            expected = pin.aba(model, data, q, velocity, effort)
            acceleration = (velocity_after - velocity) / PHYSICS_STEP
            mean_velocity = (q_after - q) / PHYSICS_STEP
            errors.append(np.abs(acceleration - expected).max() / np.abs(expected).max())
            assert np.allclose(mean_velocity, velocity_after, rtol=0.0, atol=1e-9)
    return max(errors)


# ---- tracking


@pytest.mark.shares_setup
def test_the_square_is_tracked_to_a_millimetre(plan, states):
    assert plan.period == 0.008
    assert rms(plant_error(plan, states)) <= 1.0


@pytest.mark.shares_setup
def test_an_unmodelled_payload_makes_the_error_visibly_larger(plan, states):
    loaded = track(plan, unmodelled_payload=5.0)

    assert rms(plant_error(plan, loaded)) > 5.0 * rms(plant_error(plan, states))
    # 5 kg pull the tool down: the error is where gravity points.
    assert mean_height_error(plan, loaded) < -1e-3


@pytest.mark.shares_setup
def test_a_payload_that_the_servo_knows_costs_almost_nothing(plan, states):
    known = track(plan, robot=UR10.with_payload(5.0))

    assert rms(plant_error(plan, known)) < 2.0 * rms(plant_error(plan, states))


@pytest.mark.shares_setup
@pytest.mark.parametrize("mounting", variants(["ceiling", "wall"], "wall"))
def test_arms_on_ceiling_and_wall_track_as_well(plan, states, mounting):
    hanging = track(plan, robot=UR10.with_gravity(Cell(mounting=mounting).gravity))

    assert rms(plant_error(plan, hanging)) <= 1.0
    assert rms(plant_error(plan, hanging)) < 1.5 * rms(plant_error(plan, states))
    # The joints hold against another gravity: the same motion was not simulated in the same way.
    effort = column(states, "effort").mean(axis=0)
    hanging_effort = column(hanging, "effort").mean(axis=0)
    assert np.abs(effort - hanging_effort).max() > 20.0


@pytest.mark.shares_setup
def test_a_wrong_mounting_in_the_servos_model_costs_millimetres(plan, states):
    simulation = simulate(UR10)
    simulation._real = UR10.with_gravity([0.0, 0.0, 9.81])

    with simulation as arm:
        arm.move_to(plan.setpoints[0])
        mistaken = list(arm.stream(plan.setpoints))

    assert rms(plant_error(plan, mistaken)) > 20.0 * rms(plant_error(plan, states))
    # The servo compensates a weight in the wrong direction, so the tool is too high in its own
    # frame.
    assert mean_height_error(plan, mistaken) > 2e-3


@pytest.mark.shares_setup
def test_there_is_one_state_per_setpoint_at_its_due_instant(plan, states):
    assert [state.sequence for state in states] == list(range(plan.samples))
    assert np.allclose(np.diff(column(states, "timestamp")), 0.008, atol=1e-12)
    assert np.allclose(column(states, "plan_time"), plan.times, atol=1e-12)
    assert np.array_equal(column(states, "command"), plan.setpoints)


@pytest.mark.shares_setup
def test_two_runs_give_the_same_states_bit_for_bit(plan, states):
    repeated = track(plan)

    for name in ("timestamp", "plan_time", "q", "qd", "effort", "controller_target", "command"):
        assert np.array_equal(column(states, name), column(repeated, name)), name


def test_a_steady_motion_is_followed_without_lead_or_lag():
    """At constant joint velocity, setpoint and measured position belong to the same instant."""
    speed = 0.3
    setpoints = UR10.home + np.outer(np.arange(125) * 0.008 * speed, np.eye(6)[0])

    with simulate(UR10) as arm:
        last = list(arm.stream(setpoints))[-1]

    assert abs(last.q[0] - setpoints[-1, 0]) < 0.0005 * speed


def test_the_e_series_arm_runs_at_its_own_2_ms():
    robot = load_robot("ur10e")
    scenario = Scenario(square(side=0.05, speed=0.2, laps=1))
    plan, _ = make_plan(robot, scenario, ForwardDynamics(robot))

    states = track(plan, robot=robot)

    assert plan.period == 0.002
    assert rms(plant_error(plan, states, robot)) < 1.0


# ---- dynamics


@pytest.mark.shares_setup
def test_a_payload_acts_at_its_centre_of_gravity(plan):
    # Torques at rest are those of two loads: one that the servo knows, away from the TCP, and one
    # that it does not know, at the TCP.
    known = UR10.with_payload(4.0, cog=[0.15, 0.0, 0.05])
    unknown = UR10.with_payload(1.0)

    with simulate(known, unmodelled_payload=1.0) as arm:
        arm.move_to(plan.setpoints[0])
        state = arm.read()

    load = gravity_torques(unknown, state.q) - gravity_torques(UR10, state.q)
    assert np.allclose(state.effort, gravity_torques(known, state.q) + load, atol=0.05)


@pytest.mark.shares_setup
def test_torques_at_rest_are_those_of_gravity(plan):
    # The logged torque is that of the simulation, not the request.
    for payload in (0.0, 4.0):
        with simulate(UR10, unmodelled_payload=payload) as arm:
            arm.move_to(plan.setpoints[0])
            state = arm.read()

        gravity = gravity_torques(UR10.with_payload(payload), state.q)
        assert np.allclose(state.effort, gravity, atol=0.05)


def test_a_torque_beyond_the_limit_saturates():
    # 30 kg far out are more than half of the torque limits can hold: no more is given, and the arm
    # sags.
    joints = tuple(replace(joint, max_effort=0.5 * joint.max_effort) for joint in UR10.joints)
    stretched = np.array([0.0, -0.3, 0.3, -1.5, -1.57, 0.0])
    weak = replace(UR10, joints=joints, home=stretched)

    with simulate(weak, unmodelled_payload=30.0) as arm:
        states = list(arm.stream(np.tile(stretched, (10, 1))))
        sagged = arm.read().q

    peak = np.abs(column(states, "effort")).max(axis=0)
    assert peak[1] == weak.max_effort[1]
    assert (peak <= weak.max_effort).all()
    assert np.abs(sagged - stretched).max() > 0.005


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("payload", [0.0, 2.0])
def test_engines_move_bodies_as_pinocchio_computes(engine, payload):
    arm = UR10.with_gravity([2.0, -3.0, -9.0])
    loaded = arm.with_payload(payload)

    with backend_class(engine)(arm, Options(unmodelled_payload=payload)) as backend:
        error = free_motion_error(backend, loaded.model)

    assert error <= 1e-9


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moments", [(0.02, 0.03, 40.0), (-0.02, 0.03, 0.04)])
def test_impossible_inertia_is_simulated_as_it_is(engine, moments):
    robot = with_forearm_inertia(moments)

    with backend_class(engine)(robot, Options()) as backend:
        error = free_motion_error(backend, robot.model)

    assert error <= 1e-9


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_move_sliding_joints_as_well(engine):
    joints = (replace(UR10.joints[0], kind="prismatic"), *UR10.joints[1:])
    robot = replace(UR10, joints=joints)

    with backend_class(engine)(robot, Options(servo="ideal")) as backend:
        error = free_motion_error(backend, robot.model)

    assert error <= 1e-9


@pytest.mark.parametrize("engine", ENGINES)
def test_a_joint_speed_stays_finite(engine):
    """Torques without a controller, a hundred times the limits, for half a second."""
    with backend_class(engine)(UR10, Options()) as backend:
        for _ in range(500):
            backend._step_engine(100.0 * UR10.max_effort)
        _, speed = backend._measure()

    assert np.abs(speed).max() <= 100.0


# ---- refusals and stops


def test_the_guard_stops_the_stream_and_recover_allows_the_next():
    with simulate(UR10) as arm:
        with pytest.raises(GuardViolation):
            list(arm.stream([UR10.home, UR10.home + 1.0]))
        assert np.abs(arm.read().q - UR10.home).max() < 1e-3

        with pytest.raises(GuardViolation, match="recover"):
            list(arm.stream([UR10.home]))

        arm.recover()
        states = list(arm.stream([arm.read().command] * 3))
        assert len(states) == 3


def test_after_a_violation_a_move_is_refused_as_well():
    with simulate(UR10) as arm:
        begin = arm.read().q
        with pytest.raises(GuardViolation):
            list(arm.stream([np.full(6, np.nan)]))

        with pytest.raises(GuardViolation, match="recover"):
            arm.move_to(begin + np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.0]))

        assert np.abs(arm.read().q - begin).max() < 1e-3


@pytest.mark.shares_setup
def test_a_move_through_the_floor_is_refused(plan):
    with simulate(UR10) as arm:
        begin = arm.read().q
        down = begin + np.array([0.0, 1.2, 0.0, 0.0, 0.0, 0.0])

        with refuses("floor"):
            arm.move_to(down)

        assert np.array_equal(arm.read().q, begin)


def test_the_approach_is_checked_before_it_moves():
    with simulate(UR10) as arm:
        before = arm.read().q

        with pytest.raises(PlanRefused):
            arm.move_to(np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0]))

        assert np.array_equal(arm.read().q, before)


@pytest.mark.shares_setup
def test_closing_the_stream_stops_the_arm(plan):
    with simulate(UR10) as arm:
        arm.move_to(plan.setpoints[0])
        stream = arm.stream(plan.setpoints)
        for _ in range(100):
            next(stream)

        stream.close()

        assert np.abs(arm.read().qd).max() < 1e-4


def test_after_a_broken_stream_motion_begins_at_rest():
    speed = np.minimum(np.arange(30) * 0.1, 2.0)
    setpoints = UR10.home + np.cumsum(speed)[:, np.newaxis] * UR10.period * np.eye(6)[5]

    with simulate(UR10) as arm:
        stream = arm.stream(setpoints)
        for _ in range(25):
            state = next(stream)
        stream.close()

        assert np.abs(arm.read().qd).max() < 1e-3
        states = list(arm.stream([state.command] * 3))
        assert len(states) == 3


@pytest.mark.parametrize("period", [0.0005, 0.0085, 0.0])
def test_a_period_between_physics_steps_is_refused(period):
    with pytest.raises(InvalidParameter, match="period"):
        simulate(UR10, period=period)


# ---- servoj


def swing_joints(robot, speed=1.0):
    """Return commands for 5 s, in which every joint swings with a frequency of its own.

    The swing begins gently.

    Args:
        robot: The robot.
        speed: Largest joint speed, rad/s.
    """
    times = np.arange(round(5.0 / robot.period)) * robot.period
    frequencies = 0.5 + 0.2 * np.arange(robot.n)
    begin = np.clip(times, 0.0, 1.0)[:, np.newaxis]
    swing = np.minimum(speed / frequencies, 0.6) * np.sin(frequencies * times[:, np.newaxis])
    return robot.home + begin**2 * (3.0 - 2.0 * begin) * swing


@pytest.mark.parametrize(
    ("name", "payload", "residual"),
    [
        ("ur10e", 0.0, 0.02e-3),
        ("ur10", 0.0, 0.1e-3),
        pytest.param("ur10e", 2.0, 0.25e-3, marks=pytest.mark.soak),
        ("ur10", 2.0, 0.25e-3),
    ],
)
def test_the_joints_trail_their_targets_by_half_a_millisecond(name, payload, residual):
    robot = load_robot(name)

    with simulate(robot, servo="servoj", unmodelled_payload=payload) as arm:
        states = list(arm.stream(swing_joints(robot)))

    target = column(states, "controller_target")
    attained = column(states, "q")
    velocity = np.gradient(target, robot.period, axis=0)
    # Before the e-Series they also trail the acceleration of their targets.
    acceleration = np.gradient(velocity, robot.period, axis=0)
    behind = target - attained - acceleration_lag_of(robot.series) * acceleration
    lag = float((behind * velocity).sum() / (velocity**2).sum())
    # A load that the controller does not know pulls the joints off in proportion to their posture,
    # not their speed.
    if not payload:
        assert 0.45e-3 <= lag <= 0.55e-3
    assert rms(behind - JOINT_LAG * velocity) <= residual


@pytest.mark.shares_setup
def test_the_targets_follow_the_servo_law(plan):
    law = ServojLaw(plan.period, 1000.0, 0.05)

    states = track(plan, servo="servoj", servo_gain=1000.0, servo_lookahead=0.05)

    targets = column(states, "controller_target")
    # The arm comes to rest at the first command in single precision.
    np.testing.assert_allclose(targets, law.follow(plan.setpoints).q, rtol=0.0, atol=2e-7)
    assert (column(states, "command") == plan.setpoints).all()


def test_at_a_period_of_several_cycles_the_commands_are_ramps():
    robot = load_robot("ur10e")
    commands = swing_joints(robot)[::4]

    with simulate(robot, period=0.008, servo="servoj") as arm:
        targets = column(list(arm.stream(commands)), "controller_target")

    expected = ServojLaw(0.002).follow(commands, call=0.008).q[3::4]
    np.testing.assert_allclose(targets, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("feedforward", ["off", "on"])
def test_a_closed_stream_brakes_within_the_acceleration_limit(feedforward):
    robot = load_robot("ur10e")
    motion = swing_joints(robot)
    fastest = int(np.argmax(np.abs(np.diff(motion, axis=0)).max(axis=1)))

    targets = []
    with simulate(robot, servo="servoj", feedforward=feedforward) as arm:
        advance = arm._advance

        def advance_and_record(command):
            advance(command)
            targets.append(arm.read().controller_target)

        arm._advance = advance_and_record
        with contextlib.closing(arm.stream(motion)) as stream:
            list(itertools.islice(stream, fastest))
        at_rest = arm.read()

    velocity = np.diff(targets, axis=0) / robot.period
    acceleration = np.diff(velocity[fastest - 20 :], axis=0) / robot.period
    assert np.abs(velocity[fastest - 20 : fastest]).max() > 0.9
    assert np.abs(acceleration).max() <= 40.0
    assert np.abs(at_rest.qd).max() < 1e-6
