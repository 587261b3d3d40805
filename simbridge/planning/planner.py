"""A scenario becomes a plan: every setpoint solved, limited and checked before anything moves."""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from simbridge.errors import InvalidTrajectory, PlanRefused, TargetOutOfReach
from simbridge.ik.reaching import reaching_solver
from simbridge.ik.solver import Solver
from simbridge.planning.check import (
    Peaks,
    Remedies,
    check_positions,
    check_predicted_distance,
    check_predicted_velocity,
    check_setpoints,
)
from simbridge.planning.feedforward import (
    CORNER_TOLERANCE,
    Feedforward,
    compute_feedforward,
    resample_at_speed,
)
from simbridge.planning.guard import allowed_distance
from simbridge.planning.limiter import limit_setpoints
from simbridge.planning.options import Options, StartChoice
from simbridge.planning.placement import (
    PLACEMENT_IS_A_GUESS,
    AttainableSpace,
    find_placements,
    flag_of,
)
from simbridge.planning.plan import Plan, Start
from simbridge.planning.reach import check_reach, in_another_unit
from simbridge.planning.scenario import Scenario
from simbridge.planning.start import (
    advise_range,
    alternative_starts,
    depends_on_start,
    find_home_start,
    unwind_joint,
)
from simbridge.planning.time_stretch import PERIOD_ROUNDING, TimedSetpoints, stretch_time
from simbridge.robot import pose
from simbridge.robot.collision import CollisionModel, collision_model
from simbridge.robot.kinematics import tool_path
from simbridge.robot.obstacles import CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_ACCELERATION
from simbridge.servo.law import JointMotion
from simbridge.servo.plant import Plant, controller_cycle
from simbridge.trajectory.joint_motion import interpolate_joints
from simbridge.trajectory.trajectory import PENDANT_BASE, Hold, Trajectory

# Control periods in a plan at most: hours of motion, and a few GB of memory.
MAX_SAMPLES = 10_000_000
# Placements of a recording that are planned, to find one that keeps all limits.
MAX_PLANNED_PLACEMENTS = 6

# Whole turns by which the start of a branch is unwound, of all its joints together.
MAX_UNWOUND_TURNS = 6

# What helps where recorded joint positions are outside of the range of a joint.
RECORDED_OUTSIDE = (
    "These joint positions are followed as recorded: choose the arm they were recorded "
    "on (--robot)."
)

# Predicts the joint targets that the servo law makes of setpoints (T, n), rad.
Prediction = Callable[[Array], JointMotion]


@dataclass(frozen=True)
class PlanContext:
    """Everything that a plan is computed from: options, scenario and robot, resolved.

    Attributes:
        robot: The arm.
        scenario: The scenario, with the sampling that the options choose.
        solver: A solver that is made for the same arm.
        start: Beginning of the plan: at what is solved from home; or, with auto, elsewhere if that
            is refused.
        speed_scale: Playback speed; 1 is the trajectory's own.
        hold: The target between two samples.
        period: Control period, s.
        cycle: Cycle of the controller, s.
        plant: The arm behind servoj.
        predict: Predicts the joint targets that servoj computes; None for an ideal servo.
        feeds_forward: Whether commands are sent ahead of the setpoints.
        corner_tolerance: How far the tool's path may be rounded with feedforward, m.
        is_limited: Whether setpoints are limited in velocity, acceleration and tool speed, rather
            than refused.
        max_tool_speed: Largest speed of the TCP, m/s.
        collision_scene: The obstacles that the arm must not touch.
    """

    robot: Robot
    scenario: Scenario
    solver: Solver
    start: StartChoice
    speed_scale: float
    hold: Hold
    period: float
    cycle: float
    plant: Plant
    predict: Prediction | None
    feeds_forward: bool
    corner_tolerance: float
    is_limited: bool
    max_tool_speed: float
    collision_scene: CollisionScene

    @property
    def predict_lag(self) -> Prediction | None:
        """The prediction of the joint targets that servoj computes if setpoints are the commands.

        None for an ideal servo, and with feedforward: the arm is then checked with the commands
        that it gets.
        """
        return None if self.feeds_forward else self.predict


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
        scenario: The trajectory to track, with its settings.
        solver: A solver that is made for the same arm.
        options: Period, hold, sampling, speed, limits and obstacles; the robot's and the scenario's
            by default. With a sampling the target is held (zero-order) unless `hold` is given: a
            sampled source does not know its next sample.
        replay: An earlier plan for the same kinematics and period, which is only checked.
        start: Beginning of the plan, unless the options say so: "home", at what is solved from
            home; or "auto", at other whole turns or on another branch if that is refused.

    Raises:
        PlanRefused: One of its subclasses names the limit, the sample and the value.
    """
    context = _make_context(robot, scenario, solver, options or Options(), start=start)
    try:
        return _plan_branch(context, replay=replay)
    except PlanRefused as refusal:
        is_fixed = replay is not None or scenario.trajectory.joints is not None
        if is_fixed or not depends_on_start(refusal, solver):
            raise

        # Another start may keep what home's does not.
        alternative = _plan_alternative(context, refusal)
        if alternative is None:
            raise
        start_used, plan, peaks = alternative
        if context.start == "auto":
            warnings.warn(start_used.notice, stacklevel=2)
            return plan, peaks

        refusal.args = (f"{refusal.reason} {start_used.offer}",)
        raise


def plan_or_suggest_placement(
    robot: Robot,
    scenario: Scenario,
    solver: Solver,
    options: Options,
    *,
    replay: Plan | None = None,
    start: StartChoice = "auto",
) -> tuple[Plan, Peaks]:
    """Solve and check a scenario; suggest a placement where nothing of a file is in reach.

    As `make_plan`, but such a refusal ends with the flag that brings the motion in reach.
    """
    try:
        return make_plan(robot, scenario, solver, options, replay=replay, start=start)
    except TargetOutOfReach as error:
        if not (error.every and scenario.trajectory.read_as):
            raise
        placement = nearest_placement(robot, scenario, solver, options)
        if placement is None:
            raise
        # On a line of its own, to be copied.
        error.args = (f"{error} {PLACEMENT_IS_A_GUESS}\n--transform {flag_of(placement)}",)
        raise


def nearest_placement(
    robot: Robot, scenario: Scenario, solver: Solver, options: Options
) -> Array | None:
    """Find the smallest rotation about z, and then the smallest shift, that bring a file in reach.

    Rotations are multiples of 45 degrees. Of the first few placements the one that passes the whole
    plan check is chosen; where the check refuses them all, as for a motion that is too fast, the
    first.

    Args:
        robot: The arm.
        scenario: The scenario of a file of which nothing is in reach.
        solver: A solver that is made for the same arm.
        options: Options of the plan; see `make_plan`.

    Returns:
        The transform (7,) from the file's frame to base_link, in place of the options' own, with
        the shift in whole mm; None if there is none.
    """
    # An anchored motion begins in reach, and some files say where their poses are.
    is_placed = options.anchor is not None or scenario.is_placed_by_file
    if is_placed or in_another_unit(scenario.trajectory, robot):
        return None

    # The trajectory is in base_link already, by the options' own transform.
    frame_transform = PENDANT_BASE if options.frame == "base" else pose.IDENTITY
    own_transform = np.array(options.transform or frame_transform)
    placeable = replace(options, transform=(), frame="base_link")

    space = AttainableSpace(reaching_solver(solver), CollisionModel(robot, options.collision_scene))
    placements = find_placements(scenario.trajectory, space)
    first_transform = None
    for placement in itertools.islice(placements, MAX_PLANNED_PLACEMENTS):
        transform = pose.compose(placement, own_transform)
        if first_transform is None:
            first_transform = transform

        # The first placement whose plan passes is the answer.
        with contextlib.suppress(PlanRefused):
            make_plan(robot, scenario.transform(placement), solver, placeable)
            return transform
    return first_transform


def _make_context(
    robot: Robot, scenario: Scenario, solver: Solver, options: Options, *, start: StartChoice
) -> PlanContext:
    """Resolve what options, scenario and robot leave to each other."""
    if options.sampling is not None:
        scenario = replace(scenario, sampling=options.sampling, hold="zero-order")
    period = options.period or robot.period
    cycle = controller_cycle(robot.period, period)
    plant = options.plant_model

    predict: Prediction | None = None
    if options.servo_of(robot) == "servoj":
        predict = partial(plant.law(cycle).follow, call=period, begin=plant.phase)

    corner_tolerance = options.corner_tolerance
    if corner_tolerance is None:
        corner_tolerance = CORNER_TOLERANCE

    return PlanContext(
        robot=robot,
        scenario=scenario,
        solver=solver,
        start=options.start or start,
        speed_scale=options.speed_scale,
        hold=options.hold or scenario.hold,
        period=period,
        cycle=cycle,
        plant=plant,
        predict=predict,
        # An ideal servo has no lag.
        feeds_forward=options.feedforward == "on" and predict is not None,
        corner_tolerance=corner_tolerance,
        is_limited=(options.on_limits or scenario.on_limits) == "limit",
        max_tool_speed=options.max_tool_speed or robot.max_tool_speed,
        collision_scene=options.collision_scene,
    )


def _plan_branch(
    context: PlanContext, *, replay: Plan | None = None, start: Start | None = None
) -> tuple[Plan, Peaks]:
    """Solve, limit, feed forward and check a plan from one start.

    Args:
        context: Everything that the plan is computed from.
        replay: An earlier plan, which is neither solved nor limited again.
        start: Beginning of the plan; by default at what is solved from home.
    """
    if replay is not None:
        plan = replay
    else:
        plan = _solve(context, start)
        if context.is_limited:
            plan = _limit(context, plan)
    range_advice = RECORDED_OUTSIDE
    if context.scenario.trajectory.joints is None:
        range_advice = advise_range(context.robot, plan.solution)
    remedies = Remedies(
        held=_is_held(context, plan),
        limited=context.is_limited,
        replayed=replay is not None,
        range_advice=range_advice,
    )

    commands = None
    if context.feeds_forward:
        # A replayed plan keeps its time.
        can_slow_down = context.is_limited and replay is None
        plan, commands = _feed_forward(context, plan, remedies, can_slow_down=can_slow_down)
    peaks = _check(context, plan, commands, remedies)
    return plan, peaks


def _plan_alternative(
    context: PlanContext, refusal: PlanRefused
) -> tuple[Start, Plan, Peaks] | None:
    """Plan from the first start besides home's whose plan is not refused.

    The posture that is solved from home is tried at other whole turns first; then postures on other
    branches of the inverse kinematics, each of them likewise.

    Args:
        context: Everything that the plan is computed from.
        refusal: Why the plan from home was refused.

    Returns:
        The start, its plan and the peaks; None if every plan is refused.
    """
    first_target = context.scenario.source.start
    solver = reaching_solver(context.solver)
    home_joints = solver.solve(first_target, context.robot.home).q
    home_start = Start(home_joints, reason=refusal.reason, is_other_turn=True)
    alternative = _plan_other_turns(context, home_start, refusal)
    if alternative is not None:
        return alternative

    for joints in alternative_starts(context.robot, first_target, solver):
        start = Start(joints, reason=refusal.reason)
        try:
            plan, peaks = _plan_branch(context, start=start)
            return start, plan, peaks
        except PlanRefused as branch_refusal:
            alternative = _plan_other_turns(context, start, branch_refusal)
        if alternative is not None:
            return alternative
    return None


def _plan_other_turns(
    context: PlanContext, start: Start, refusal: PlanRefused
) -> tuple[Start, Plan, Peaks] | None:
    """Plan from the posture of a start with joints begun whole turns away.

    Each joint that leaves its range is begun one turn away from the limit that it exceeds, until a
    plan passes, or no turn is left in its range.

    Args:
        context: Everything that the plan is computed from.
        start: Beginning of a plan that was refused.
        refusal: Why it was refused.

    Returns:
        The start, its plan and the peaks; None if every plan is refused.
    """
    for _ in range(MAX_UNWOUND_TURNS):
        joints = unwind_joint(context.robot, start.joints, refusal)
        if joints is None:
            return None
        start = replace(start, joints=joints)
        try:
            plan, peaks = _plan_branch(context, start=start)
            return start, plan, peaks
        except PlanRefused as further_refusal:
            refusal = further_refusal
    return None


def _solve(context: PlanContext, start: Start | None) -> Plan:
    """Solve a plan whose setpoints are the solution; it is neither limited nor checked yet.

    Args:
        context: Everything that the plan is computed from.
        start: Beginning of the plan; None: at what is solved from home.
    """
    robot = context.robot
    scenario = context.scenario.scale_speed(context.speed_scale)
    trajectory = scenario.trajectory
    count = _count_samples(trajectory, context.period)
    if trajectory.joints is not None:
        return _follow_recorded_joints(context, trajectory)

    # The samples that the solver gets, and where it begins.
    source = scenario.source
    if start is None:
        first_joints = find_home_start(robot, source, context.solver)
    else:
        first_joints = start.joints

    # The last sample may be past the trajectory's end by less than a period: it belongs to the
    # end.
    times = np.minimum(np.arange(count) * context.period, trajectory.duration)
    targets = source.target(times, context.hold)
    check_reach(reaching_solver(context.solver), source, targets, times=times, start=first_joints)
    context.solver.period = context.period
    solution = context.solver.track(targets, first_joints)

    return Plan(
        checksum=robot.checksum,
        period=context.period,
        trajectory=trajectory,
        hold=context.hold,
        trajectory_times=times,
        solution=solution,
        setpoints=solution,
        limited=np.zeros(count, dtype=bool),
        source_samples=None if source is trajectory else source,
        start=start,
    )


def _follow_recorded_joints(context: PlanContext, trajectory: Trajectory) -> Plan:
    """Return the plan whose setpoints are recorded joint positions; no solver takes part."""
    sampled = sample_recorded_joints(context.robot, trajectory, context.period)
    assert sampled.joints is not None
    return Plan(
        checksum=context.robot.checksum,
        period=context.period,
        trajectory=replace(sampled, joints=None),
        hold=context.hold,
        trajectory_times=sampled.elapsed.copy(),
        solution=sampled.joints,
        setpoints=sampled.joints,
        limited=np.zeros(len(sampled.joints), dtype=bool),
    )


def sample_recorded_joints(robot: Robot, trajectory: Trajectory, period: float) -> Trajectory:
    """Return recorded joint positions, and the poses of the TCP, at the instants of a plan.

    Args:
        robot: The arm.
        trajectory: A trajectory with joint positions, to which the speed scale has been applied.
        period: Control period, s.
    """
    assert trajectory.joints is not None
    count = _count_samples(trajectory, period)
    times = np.minimum(np.arange(count) * period, trajectory.duration)
    joints = interpolate_joints(trajectory.elapsed, trajectory.joints, times)
    return replace(trajectory, times=times, poses=tool_path(robot, joints), joints=joints)


def _count_samples(trajectory: Trajectory, period: float) -> int:
    """Return how many samples a plan has, one a period, s, and one at the end.

    Raises:
        InvalidTrajectory: There are too many.
    """
    periods = trajectory.duration / period
    if periods > MAX_SAMPLES:
        raise InvalidTrajectory(
            f"it lasts {trajectory.duration:.4g} s, which is {periods:.3g} control periods of "
            f"{period:g} s; at most {MAX_SAMPLES:.0e} can be planned. Are its times in seconds, "
            "and is the speed scale as intended?",
            field="time",
            source=trajectory.source,
        )
    return math.ceil(periods - PERIOD_ROUNDING) + 1


def _limit(context: PlanContext, plan: Plan) -> Plan:
    """Limit the setpoints of a plan in velocity, acceleration and tool speed.

    With servoj the arm keeps the velocity limits as well, also if a command comes a cycle late. The
    highest of three limits of the setpoints is used with which it does: the robot's, that for
    setpoints that reverse once, and that for any.
    """
    max_velocity = context.robot.max_velocity

    if context.predict_lag is None:
        motion = _limit_velocity(context, plan, max_velocity)
    else:
        gain = context.plant.law(context.cycle).velocity_gain(context.plant.phase)
        for velocity_gain in (1.0, gain.reversal, gain.of_any_motion):
            motion = _limit_velocity(context, plan, max_velocity / velocity_gain)

            predicted = np.abs(context.predict_lag(motion.setpoints).qd).max(axis=0)
            largest_step = np.abs(np.diff(motion.setpoints, axis=0)).max(axis=0, initial=0.0)
            added_by_late_command = gain.late * largest_step / context.period
            if (predicted + added_by_late_command <= max_velocity).all():
                break

    return replace(
        plan,
        trajectory_times=motion.times,
        solution=motion.solution,
        setpoints=motion.setpoints,
        limited=motion.changed,
    )


def _limit_velocity(context: PlanContext, plan: Plan, max_velocity: Array) -> TimedSetpoints:
    """Limit the setpoints of a plan to velocities (n,), rad/s, and stretch time for the tool's."""
    setpoints, changed = limit_setpoints(context.robot, plan.solution, context.period, max_velocity)

    # The last target is held until the setpoints have attained it.
    rest = (0, len(setpoints) - len(plan.solution))
    motion = TimedSetpoints(
        solution=np.pad(plan.solution, (rest, (0, 0)), mode="edge"),
        setpoints=setpoints,
        changed=changed,
        times=np.pad(plan.trajectory_times, rest, mode="edge"),
    )
    return stretch_time(
        context.robot, motion, context.period, max_tool_speed=context.max_tool_speed
    )


def _feed_forward(
    context: PlanContext, plan: Plan, remedies: Remedies, *, can_slow_down: bool
) -> tuple[Plan, Array]:
    """Compute the commands with which the arm follows the setpoints without lag.

    Args:
        context: Everything that the plan is computed from.
        plan: The plan, without feedforward.
        remedies: Facts that decide what a refusal advises.
        can_slow_down: Whether the whole motion may be slowed down to keep a limit.

    Returns:
        The plan with what is wanted of the arm, and with rest at both ends; and commands (T, n),
        rad.
    """
    ahead = compute_feedforward(
        context.robot,
        plan.setpoints,
        context.period,
        plant=context.plant,
        corner_tolerance=context.corner_tolerance,
        slow_down=can_slow_down,
    )
    check_positions(context.robot, ahead.commands, context.period, remedies)
    return replace(_add_rest(plan, ahead), joint_targets=ahead.joint_targets), ahead.commands


def _add_rest(plan: Plan, ahead: Feedforward) -> Plan:
    """Return the plan at the speed of its feedforward, with its rest at both ends."""

    def pace(values: Array) -> Array:
        paced = resample_at_speed(values, ahead.speed) if ahead.speed < 1.0 else values
        rest = (ahead.before, ahead.after)
        other_axes = ((0, 0),) * (values.ndim - 1)
        return np.pad(paced, (rest, *other_axes), mode="edge")

    return replace(
        plan,
        trajectory_times=pace(plan.trajectory_times),
        solution=pace(plan.solution),
        setpoints=pace(plan.setpoints),
        limited=pace(plan.limited.astype(float)) > 0.0,
    )


def _is_held(context: PlanContext, plan: Plan) -> bool:
    """Return whether targets are steps of a source, which a lower speed does not make smaller."""
    sampling = context.scenario.sampling
    if sampling is not None and sampling.rate is not None:
        # At a rate of its own, a sampling takes smaller steps on a slower trajectory.
        return False

    sample_periods = np.diff((plan.source_samples or plan.trajectory).times)
    is_sparse = bool((sample_periods > context.period * (1.0 + PERIOD_ROUNDING)).any())
    return plan.hold == "zero-order" and is_sparse


def _check(context: PlanContext, plan: Plan, commands: Array | None, remedies: Remedies) -> Peaks:
    """Refuse a plan that exceeds a limit.

    Args:
        context: Everything that the plan is computed from.
        plan: The plan, solved and limited if need be.
        commands: Commands that are sent (T, n), rad, with feedforward.
        remedies: Facts that decide what the refusal advises.

    Raises:
        PlanRefused: One of its subclasses names the limit, the sample and the value.
    """
    joints = plan.setpoints
    max_acceleration = context.robot.max_acceleration if context.is_limited else None
    command_lead = None
    if commands is not None and context.predict is not None:
        # The arm is checked as the servo law predicts it; the commands may step where it does not.
        joints = context.predict(commands).q[: plan.samples]
        max_acceleration = MAX_ACCELERATION
        command_lead = float(np.abs(commands - joints).max())

    peaks = check_setpoints(
        context.robot,
        joints,
        context.period,
        max_tool_speed=context.max_tool_speed,
        collisions=collision_model(context.robot, context.collision_scene),
        remedies=remedies,
        max_acceleration=max_acceleration,
    )

    if context.predict_lag is not None:
        motion = context.predict_lag(plan.setpoints)
        _check_prediction(context, plan, motion, remedies)
    return replace(peaks, command_lead=command_lead)


def _check_prediction(
    context: PlanContext, plan: Plan, motion: JointMotion, remedies: Remedies
) -> None:
    """Refuse setpoints that servoj would overshoot, or leave so far behind that the guard stops it.

    Args:
        context: Everything that the plan is computed from.
        plan: The plan, whose setpoints are sent as they are.
        motion: Motion of the joint targets that the servo law predicts.
        remedies: Facts that decide what the refusal advises.
    """
    check_predicted_velocity(
        context.robot, motion.qd, context.period, cycle=context.cycle, remedies=remedies
    )

    velocity = np.diff(plan.setpoints, axis=0, prepend=plan.setpoints[:1]) / context.period
    allowed = allowed_distance(velocity, context.plant.lookahead)
    check_predicted_distance(
        context.robot,
        plan.setpoints,
        context.period,
        q=motion.q,
        cycle=context.cycle,
        limits=allowed,
    )
