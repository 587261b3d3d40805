"""A scenario becomes a plan: every setpoint solved, limited and checked before anything moves."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidTrajectory, PlanRefused
from simbridge.ik.solver import Solver
from simbridge.planning.check import (
    Peaks,
    Remedies,
    check_commands,
    check_predicted_distance,
    check_predicted_velocity,
    check_reach,
    check_setpoints,
)
from simbridge.planning.feedforward import CORNER_TOLERANCE, Feedforward, at_speed, feedforward
from simbridge.planning.guard import allowed_distance
from simbridge.planning.limiter import limited, stretched_times, tool_speeds
from simbridge.planning.options import Options, StartChoice
from simbridge.planning.plan import Plan, Start
from simbridge.planning.scenario import Scenario
from simbridge.planning.start import advise_start, depends_on_start, home_start, other_starts
from simbridge.robot.collision import CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_ACCELERATION
from simbridge.servo.law import JointMotion, VelocityGain
from simbridge.servo.plant import controller_cycle
from simbridge.trajectory.trajectory import Trajectory

# Control periods in a plan at most: hours of motion, and a few GB of memory.
_MAX_SAMPLES = 10_000_000
# The joint targets that the servo law makes of setpoints (T, n), rad.
Prediction = Callable[[Array], JointMotion]
# Solution and setpoints (T, n), rad, which setpoints were changed (T,), and their instants on the trajectory (T,), s.
_Timed = tuple[Array, Array, NDArray[np.bool_], Array]


def make_plan(
    robot: Robot,
    scenario: Scenario,
    solver: Solver,
    options: Options | None = None,
    *,
    replay: Plan | None = None,
    start: StartChoice = "auto",
) -> tuple[Plan, Peaks]:
    """Solve and check a scenario.

    Args:
        robot: The arm.
        scenario: What to track.
        solver: Made for the same arm.
        options: Period, hold, sampling, speed, limits and obstacles; the robot's and the scenario's by default. With a
            sampling the target is held (zero-order) unless `hold` is given: a sampled source does not know its next
            sample.
        replay: An earlier plan for the same kinematics and period, which is only checked.
        start: Where it begins, unless the options say so: "home", or "auto" for another branch where home's is refused.

    Returns:
        The plan, and the peaks that the check found.

    Raises:
        PlanRefused: One of its subclasses names the limit, the sample and the value.
    """
    options = options or Options()
    if options.sampling is not None:
        scenario = replace(scenario, sampling=options.sampling, hold="zero-order")
    try:
        return _planned(robot, scenario, solver, options, replay)
    except PlanRefused as refusal:
        if replay is not None or not depends_on_start(refusal, solver):
            raise
        trajectory = scenario.trajectory if scenario.sampling is None else scenario.sampling.of(scenario.trajectory)
        for joints in other_starts(robot, trajectory.start, solver.reaching):
            with contextlib.suppress(PlanRefused):
                other = Start(joints, str(refusal))
                found = _planned(robot, scenario, solver, options, None, other)
                if (options.start or start) == "auto":
                    warnings.warn(other.words, stacklevel=2)
                    return found
                advise_start(refusal, joints)
                break
        raise


def _planned(
    robot: Robot, scenario: Scenario, solver: Solver, options: Options, replay: Plan | None, start: Start | None = None
) -> tuple[Plan, Peaks]:
    """A plan from one start, or home's branch for None, and its peaks."""
    period = options.period or robot.period
    limiting = (options.on_limits or scenario.on_limits) == "limit"
    max_tool_speed = options.max_tool_speed or robot.max_tool_speed
    plant, cycle = options.plant_model, controller_cycle(robot.period, period)
    predicted: Prediction | None = None
    if options.servo == "servoj":
        predicted = partial(plant.law(cycle).follow, call=period, begin=plant.phase)
    # With feedforward the arm is checked with the commands that it gets then.
    lagging = predicted if options.feedforward == "off" else None
    servo = None if lagging is None else (lagging, plant.law(cycle).velocity_gain(plant.phase))
    plan = replay or _solve(
        robot, scenario, solver, options, period, max_tool_speed if limiting else None, servo, start
    )
    # At a rate of its own, a sampling takes smaller steps on a slower trajectory.
    own = scenario.sampling is None or scenario.sampling.rate is None
    gaps = np.diff((plan.given or plan.trajectory).times)
    held = plan.hold == "zero-order" and own and bool((gaps > period * (1.0 + 1e-9)).any())
    collisions = CollisionModel(robot, options.collision_scene)
    joints, max_acceleration = plan.setpoints, robot.max_acceleration if limiting else None
    lead = None
    if options.feedforward == "on" and predicted is not None:
        tolerance = CORNER_TOLERANCE if options.corner_tolerance is None else options.corner_tolerance
        slow_down = limiting and replay is None
        ahead = feedforward(robot, plan.setpoints, period, plant, tolerance, slow_down=slow_down)
        check_commands(robot, ahead.commands, period)
        plan = replace(_rested(plan, ahead), wanted=ahead.wanted)
        # The arm is checked as the servo law predicts it; the commands may step where it does not.
        joints, max_acceleration = predicted(ahead.commands).q[: plan.samples], MAX_ACCELERATION
        lead = float(np.abs(ahead.commands - joints).max())
    remedies = Remedies(held=held, limited=limiting, replayed=replay is not None)
    peaks = check_setpoints(robot, joints, period, max_tool_speed, collisions, remedies, max_acceleration)
    if lagging is not None:
        motion = lagging(plan.setpoints)
        check_predicted_velocity(robot, motion.qd, cycle, period, remedies)
        velocity = np.diff(plan.setpoints, axis=0, prepend=plan.setpoints[:1]) / period
        allowed = allowed_distance(velocity, plant.lookahead)
        check_predicted_distance(robot, plan.setpoints, motion.q, cycle, period, allowed)
    return plan, replace(peaks, command_lead=lead)


def _rested(plan: Plan, ahead: Feedforward) -> Plan:
    """The plan at the speed of its feedforward, its first sample repeated before it, and its last after it."""

    def rested(values: Array) -> Array:
        paced = at_speed(values, ahead.speed) if ahead.speed < 1.0 else values
        return np.pad(paced, ((ahead.before, ahead.after), *((0, 0),) * (values.ndim - 1)), mode="edge")

    return replace(
        plan,
        trajectory_times=rested(plan.trajectory_times),
        solution=rested(plan.solution),
        setpoints=rested(plan.setpoints),
        limited=rested(plan.limited.astype(float)) > 0.0,
    )


def _solve(
    robot: Robot,
    scenario: Scenario,
    solver: Solver,
    options: Options,
    period: float,
    max_tool_speed: float | None,
    servo: tuple[Prediction, VelocityGain] | None,
    start: Start | None,
) -> Plan:
    """A plan that is not checked yet; its setpoints are limited if a tool speed (m/s) is given."""
    trajectory = scenario.trajectory.time_scaled(options.speed_scale)
    hold = options.hold or scenario.hold
    count = _samples(trajectory, period)
    given = trajectory if scenario.sampling is None else scenario.sampling.of(trajectory)
    begin = home_start(robot, given, solver) if start is None else start.joints
    # The last sample may be past the trajectory's end by less than a period: it belongs to the end.
    times = np.minimum(np.arange(count) * period, trajectory.duration)
    targets = given.target(times, hold)
    check_reach(solver.reaching, given, times, targets, begin)
    solution = solver.track(targets, begin)
    setpoints, changed = solution, np.zeros(count, dtype=bool)
    if max_tool_speed is not None:
        solution, setpoints, changed, times = _limited(robot, solution, times, period, max_tool_speed, servo)
    sampled = None if given is trajectory else given
    return Plan(robot.checksum, period, trajectory, hold, times, solution, setpoints, changed, sampled, start=start)


def _limited(
    robot: Robot,
    solution: Array,
    times: Array,
    period: float,
    max_tool_speed: float,
    servo: tuple[Prediction, VelocityGain] | None,
) -> _Timed:
    """Setpoints for which servoj, if any, keeps the velocity limits as well, also if a command comes a cycle late.

    The highest of three velocities is taken: the robot's, that for setpoints that reverse once, and that for any.
    """
    for gain in (1.0,) if servo is None else (1.0, servo[1].reversal, servo[1].any):
        setpoints, changed = limited(robot, solution, period, robot.max_velocity / gain)
        rest = (0, len(setpoints) - len(solution))
        held = np.pad(solution, (rest, (0, 0)), mode="edge")
        found = _stretched(robot, held, setpoints, changed, np.pad(times, rest, mode="edge"), period, max_tool_speed)
        if servo is None:
            break
        late = servo[1].late * np.abs(np.diff(found[1], axis=0)).max(axis=0, initial=0.0) / period
        if (np.abs(servo[0](found[1]).qd).max(axis=0) + late <= robot.max_velocity).all():
            break
    return found


def _samples(trajectory: Trajectory, period: float) -> int:
    periods = trajectory.duration / period
    if periods > _MAX_SAMPLES:
        raise InvalidTrajectory(
            f"it lasts {trajectory.duration:.4g} s, which is {periods:.3g} control periods of {period:g} s; at most "
            f"{_MAX_SAMPLES:.0e} can be planned. Are its times in seconds, and is the speed scale as meant?",
            field="time",
            source=trajectory.source,
        )
    return math.ceil(periods - 1e-9) + 1


def _stretched(
    robot: Robot,
    solution: Array,
    setpoints: Array,
    changed: NDArray[np.bool_],
    times: Array,
    period: float,
    max_tool_speed: float,
) -> _Timed:
    """The same joint path, with its time stretched wherever the tool would be too fast."""
    before = np.arange(len(setpoints), dtype=float) * period
    # Instants of the unstretched motion to which the setpoints belong.
    instants, path = before, setpoints
    for _ in range(10):
        if len(path) < 2 or tool_speeds(robot, path, period).max() <= max_tool_speed:
            break
        due = stretched_times(robot, path, period, max_tool_speed)
        count = int(np.ceil(due[-1] / period - 1e-9)) + 1
        instants = np.interp(np.minimum(np.arange(count) * period, due[-1]), due, instants)
        path = _at(instants, before, setpoints)
    if instants is before:
        return solution, setpoints, changed, times
    changed = np.interp(instants, before, changed.astype(float)) > 0.0
    return _at(instants, before, solution), path, changed, np.interp(instants, before, times)


def _at(instants: Array, times: Array, joints: Array) -> Array:
    return np.stack([np.interp(instants, times, joint) for joint in joints.T], axis=1)
