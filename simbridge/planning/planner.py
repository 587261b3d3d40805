"""A scenario becomes a plan: every setpoint solved, limited and checked before anything moves."""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from simbridge.errors import (
    InvalidTrajectory,
    LimitExceeded,
    NoClosedForm,
    PlannedCollision,
    PlanRefused,
    TargetOutOfReach,
)
from simbridge.ik.closed_form import ClosedForm
from simbridge.ik.reaching import reaching_solver
from simbridge.ik.solver import TOLERANCE, Solver
from simbridge.planning.check import (
    Peaks,
    Remedies,
    check_positions,
    check_predicted_distance,
    check_predicted_velocity,
    check_setpoints,
)
from simbridge.planning.feedforward import CORNER_TOLERANCE, Feedforward, at_speed, feedforward
from simbridge.planning.guard import allowed_distance
from simbridge.planning.inspection import (
    AttainableSpace,
    check_reach,
    flag_of,
    in_another_unit,
    placements,
)
from simbridge.planning.limiter import Timed, limited, stretched
from simbridge.planning.options import Options, StartChoice
from simbridge.planning.plan import Plan, Start, home_flag
from simbridge.planning.scenario import Scenario
from simbridge.robot import pose
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import restart_postures
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_ACCELERATION
from simbridge.servo.law import JointMotion, VelocityGain
from simbridge.servo.plant import controller_cycle
from simbridge.text import degrees, listed, pose_residual
from simbridge.trajectory.trajectory import PENDANT_BASE, Trajectory

# Control periods in a plan at most: hours of motion, and a few GB of memory.
_MAX_SAMPLES = 10_000_000
# The joint targets that the servo law makes of setpoints (T, n), rad.
Prediction = Callable[[Array], JointMotion]
# Placements of a recording that are planned, to find one that keeps all limits.
_PLACEMENTS = 6
# Postures from which other branches are searched where there is no closed form, how many of them are tried, and by how
# much two of them differ, rad.
_SEEDS, _TRIED, _APART = 24, 8, 0.05


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
        solver: Made for the same arm.
        options: Period, hold, sampling, speed, limits and obstacles; the robot's and the scenario's by default. With a
            sampling the target is held (zero-order) unless `hold` is given: a sampled source does not know its next
            sample.
        replay: An earlier plan for the same kinematics and period, which is only checked.
        start: Where it begins, unless the options say so: "home", or "auto" for another branch where home's is refused.

    Raises:
        PlanRefused: One of its subclasses names the limit, the sample and the value.
    """
    options = options or Options()
    if options.sampling is not None:
        scenario = replace(scenario, sampling=options.sampling, hold="zero-order")
    try:
        return _planned(robot, scenario, solver, options, replay)
    except PlanRefused as refusal:
        if replay is not None or not _depends_on_start(refusal, solver):
            raise
        trajectory = (
            scenario.trajectory
            if scenario.sampling is None
            else scenario.sampling.of(scenario.trajectory)
        )
        for joints in _other_starts(robot, trajectory.start, reaching_solver(solver)):
            with contextlib.suppress(PlanRefused):
                other = Start(joints, str(refusal))
                found = _planned(robot, scenario, solver, options, None, other)
                if (options.start or start) == "auto":
                    warnings.warn(other.words, stacklevel=2)
                    return found
                flag = home_flag(joints)
                refusal.args = (
                    f"{refusal} The branch at {flag} would pass: choose it so, or by --start auto.",
                )
                break
        raise


def plan_or_suggestion(
    robot: Robot,
    scenario: Scenario,
    solver: Solver,
    options: Options,
    *,
    replay: Plan | None = None,
    start: StartChoice = "auto",
) -> tuple[Plan, Peaks]:
    """`make_plan`; where nothing of a file is in reach, its refusal ends with the flag that brings it in reach."""
    try:
        return make_plan(robot, scenario, solver, options, replay=replay, start=start)
    except TargetOutOfReach as error:
        if not (error.every and scenario.trajectory.read_as):
            raise
        if (placement := nearest_placement(robot, scenario, solver, options)) is None:
            raise
        # On a line of its own, to be copied.
        error.args = (f"{error} The nearest placement in reach:\n--transform {flag_of(placement)}",)
        raise


def nearest_placement(
    robot: Robot, scenario: Scenario, solver: Solver, options: Options
) -> Array | None:
    """The smallest rotation about z, and with it the smallest shift found, that bring all of a recording in reach.

    Rotations are multiples of 45 degrees. Of the first few placements the one that passes the whole plan check is
    taken; where the check refuses them all, as for a motion that is too fast, the first. The arguments are those of
    `make_plan`; the scenario is of a file of which nothing is in reach.

    Returns:
        The transform (7,) from the file's frame to base_link, in place of the options' own, with the shift in whole mm;
        None if none was found.
    """
    # An anchored motion begins in reach.
    if options.anchor is not None or in_another_unit(scenario.trajectory, robot):
        return None
    own = np.array(
        options.transform or (PENDANT_BASE if options.frame == "base" else pose.IDENTITY)
    )
    placeable = replace(options, transform=(), frame="base_link")
    space = AttainableSpace(reaching_solver(solver), CollisionModel(robot, options.collision_scene))
    found = None
    for frame in itertools.islice(placements(scenario.trajectory, space), _PLACEMENTS):
        total = pose.compose(frame, own)
        found = total if found is None else found
        moved = replace(scenario, trajectory=scenario.trajectory.transformed(frame))
        with contextlib.suppress(PlanRefused):
            make_plan(robot, moved, solver, placeable)
            return total
    return found


def _planned(
    robot: Robot,
    scenario: Scenario,
    solver: Solver,
    options: Options,
    replay: Plan | None,
    start: Start | None = None,
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
        tolerance = (
            CORNER_TOLERANCE if options.corner_tolerance is None else options.corner_tolerance
        )
        slow_down = limiting and replay is None
        ahead = feedforward(robot, plan.setpoints, period, plant, tolerance, slow_down=slow_down)
        check_positions(robot, ahead.commands, period)
        plan = replace(_rested(plan, ahead), wanted=ahead.wanted)
        # The arm is checked as the servo law predicts it; the commands may step where it does not.
        joints, max_acceleration = predicted(ahead.commands).q[: plan.samples], MAX_ACCELERATION
        lead = float(np.abs(ahead.commands - joints).max())
    remedies = Remedies(held=held, limited=limiting, replayed=replay is not None)
    peaks = check_setpoints(
        robot, joints, period, max_tool_speed, collisions, remedies, max_acceleration
    )
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
        return np.pad(
            paced, ((ahead.before, ahead.after), *((0, 0),) * (values.ndim - 1)), mode="edge"
        )

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
    begin = _home_start(robot, given, solver) if start is None else start.joints
    # The last sample may be past the trajectory's end by less than a period: it belongs to the end.
    times = np.minimum(np.arange(count) * period, trajectory.duration)
    targets = given.target(times, hold)
    check_reach(reaching_solver(solver), given, times, targets, begin)
    solution = solver.track(targets, begin)
    setpoints, changed = solution, np.zeros(count, dtype=bool)
    if max_tool_speed is not None:
        solution, setpoints, changed, times = _limited(
            robot, solution, times, period, max_tool_speed, servo
        )
    sampled = None if given is trajectory else given
    return Plan(
        robot.checksum,
        period,
        trajectory,
        hold,
        times,
        solution,
        setpoints,
        changed,
        sampled,
        start=start,
    )


def _home_start(robot: Robot, trajectory: Trajectory, solver: Solver) -> Array:
    """The first joints of a plan (n,): solved from home, never from the measured arm: everywhere the same plan."""
    solver = reaching_solver(solver)
    solution = solver.solve(trajectory.start, robot.home)
    outside = np.flatnonzero((solution.q < robot.position_min) | (solution.q > robot.position_max))
    # `solve` is stricter than the reach check of every target; the tolerance of the latter is enough here, too.
    attained = solution.distance <= TOLERANCE[0] and solution.angle <= TOLERANCE[1]
    if solution.converged or (attained and not len(outside)):
        return solution.q
    # The message of the reach check includes the other targets.
    times = np.zeros(1)
    check_reach(solver, trajectory, times, trajectory.target(times, "linear"), robot.home)
    away = pose_residual(solution.distance, solution.angle)
    reason = f"the nearest posture found to the first target stays {away} away"
    if attained:
        beyond = listed(
            [f"{robot.joint_names[i]} at {degrees(solution.q[i])} degrees" for i in outside]
        )
        reason = f"the first target can only be attained outside of the joint limits ({beyond})"
    raise TargetOutOfReach(
        f"The plan was refused: {reason}. Move the trajectory, or begin from another posture (--home).",
        sample=0,
        time=0.0,
        distance=solution.distance,
        angle=solution.angle,
    )


def _depends_on_start(refusal: PlanRefused, solver: Solver) -> bool:
    """Whether a plan that was refused for this may pass on another branch: it left the joints' ranges, or collided.

    A redundant arm also has other velocities on the way.
    """
    if isinstance(refusal, TargetOutOfReach):
        # Within reach, but outside of the joint limits. What no posture attains was searched from everywhere.
        return refusal.distance <= TOLERANCE[0] and refusal.angle <= TOLERANCE[1]
    if isinstance(refusal, LimitExceeded):
        redundant = solver.robot.n > TASK_ROWS[solver.task]
        return refusal.quantity == "position" or (
            redundant and refusal.quantity in {"velocity", "velocity jump"}
        )
    return isinstance(refusal, PlannedCollision)


def _other_starts(robot: Robot, target: Array, solver: Solver) -> Iterator[Array]:
    """Joint positions (n,) within the limits that attain a target (7,), those nearest to home first, without home's.

    All branches where there is a closed form; else what the solver finds from postures that are always the same.
    """
    home = solver.solve(target, robot.home).q
    try:
        found = list(ClosedForm(robot).branches(target, robot.home))
    except NoClosedForm:
        seeds = restart_postures(robot, _SEEDS)
        seeds = seeds[np.argsort(np.linalg.norm(seeds - robot.home, axis=1), kind="stable")]
        found = [
            solution.q
            for solution in (solver.solve(target, seed) for seed in seeds)
            if solution.converged
        ]
    known = [home]
    for joints in sorted(found, key=lambda q: float(np.linalg.norm(q - robot.home))):
        if len(known) <= _TRIED and all(np.abs(joints - other).max() > _APART for other in known):
            known.append(joints)
            yield joints


def _limited(
    robot: Robot,
    solution: Array,
    times: Array,
    period: float,
    max_tool_speed: float,
    servo: tuple[Prediction, VelocityGain] | None,
) -> Timed:
    """Setpoints for which servoj, if any, keeps the velocity limits as well, also if a command comes a cycle late.

    The highest of three velocities is taken: the robot's, that for setpoints that reverse once, and that for any.
    """
    for gain in (1.0,) if servo is None else (1.0, servo[1].reversal, servo[1].any):
        setpoints, changed = limited(robot, solution, period, robot.max_velocity / gain)
        rest = (0, len(setpoints) - len(solution))
        held = np.pad(solution, (rest, (0, 0)), mode="edge")
        found = stretched(
            robot,
            held,
            setpoints,
            changed,
            np.pad(times, rest, mode="edge"),
            period,
            max_tool_speed,
        )
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
