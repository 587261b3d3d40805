"""A scenario becomes a plan: every setpoint solved, limited and checked before anything moves."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, InvalidTrajectory, PlanRefused
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
from simbridge.planning.scenario import Scenario
from simbridge.planning.start import Start, advise_start, depends_on_start, home_start, other_starts
from simbridge.robot.collision import CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.feedforward import MAX_ACCELERATION
from simbridge.servo.law import JointMotion, VelocityGain
from simbridge.servo.plant import controller_cycle
from simbridge.trajectory.trajectory import Hold, Trajectory

# Control periods in a plan at most: hours of motion, and a few GB of memory.
_MAX_SAMPLES = 10_000_000
# The joint targets that the servo law makes of setpoints (T, n), rad.
Prediction = Callable[[Array], JointMotion]
# Solution and setpoints (T, n), rad, which setpoints were changed (T,), and their instants on the trajectory (T,), s.
_Timed = tuple[Array, Array, NDArray[np.bool_], Array]


@dataclass(frozen=True)
class Plan:
    """Setpoints, one for each control period, with all that is needed to measure how they were tracked.

    Sample k belongs to the instant k * period: target, solution and setpoint alike.

    Attributes:
        checksum: Of the kinematics it was solved with (`Robot.checksum`).
        period: Control period, s.
        trajectory: The sampled path, speed scale applied.
        hold: What the target is between samples.
        given: The samples that the solver is given, as from a low-rate or noisy source; None for the trajectory itself.
        trajectory_times: The instant on the trajectory to which each sample belongs (T,), s; `k * period`, unless time
            was stretched for tool speed.
        solution: The solver's joint positions (T, n), rad.
        setpoints: Joint positions to send (T, n), rad.
        limited: Which setpoints the limiter changed (T,).
        wanted: With feedforward: the joint targets that the commands are computed for (T, n), rad: the setpoints, taken
            ahead by what the arm is late, and smoothed at corners. They belong to a servo's tuning, so they are no part
            of the plan's file.
        start: Where it begins if not on home's branch; None on that.
    """

    checksum: str
    period: float
    trajectory: Trajectory
    hold: Hold
    trajectory_times: Array
    solution: Array
    setpoints: Array
    limited: NDArray[np.bool_]
    given: Trajectory | None = None
    wanted: Array | None = None
    start: Start | None = None

    def __post_init__(self) -> None:
        for array in (self.trajectory_times, self.solution, self.setpoints, self.limited):
            array.setflags(write=False)

    @property
    def samples(self) -> int:
        return len(self.setpoints)

    @property
    def sent(self) -> Array:
        """What a backend is given (T, n), rad: the wanted joints with feedforward, else the setpoints."""
        return self.setpoints if self.wanted is None else self.wanted

    @property
    def duration(self) -> float:
        """From the first sample to the last, s."""
        return (self.samples - 1) * self.period

    @cached_property
    def times(self) -> Array:
        """When each sample is due (T,), s since the start."""
        return np.arange(self.samples, dtype=float) * self.period

    @cached_property
    def targets(self) -> Array:
        """The pose (T, 7) towards which the solver was stepped at each sample."""
        return self.target(self.trajectory_times)

    def target(self, times: Array) -> Array:
        """Poses (K, 7) that the solver is given at instants of the trajectory (K,), s."""
        return (self.given or self.trajectory).target(times, self.hold)

    def reference(self, times: Array) -> Array:
        """The continuous path (K, 7) at instants of the plan's clock (K,), s."""
        return self.trajectory.reference(np.interp(times, self.times, self.trajectory_times))

    def as_arrays(self) -> dict[str, Any]:
        """The plan as named arrays and scalars, for a file; `from_arrays` reads them back bit for bit."""
        given: dict[str, Any] = {}
        if self.given is not None:
            given = {"given_stamps": self.given.times, "given_poses": self.given.poses}
        if self.start is not None:
            given |= {"start": self.start.joints, "start_reason": self.start.reason}
        return {
            "checksum": self.checksum,
            "period": self.period,
            "hold": self.hold,
            "trajectory_source": self.trajectory.source,
            "trajectory_stamps": self.trajectory.times,
            "trajectory_poses": self.trajectory.poses,
            "trajectory_times": self.trajectory_times,
            "solution": self.solution,
            "setpoints": self.setpoints,
            "limited": self.limited,
            **given,
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any]) -> Plan:
        """The plan of such arrays.

        Raises:
            KeyError: An array is missing.
            ValueError: Arrays do not fit each other, or are not finite numbers; names the array.
        """
        setpoints = arrays["setpoints"]
        count, joints = setpoints.shape
        shapes = {"trajectory_times": (count,), "limited": (count,)}
        for name, shape in (shapes | dict.fromkeys(("solution", "setpoints"), (count, joints))).items():
            array = arrays[name]
            if count == 0 or array.shape != shape or array.dtype.kind not in "fb" or not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite numbers of the shape {shape}, and not empty")
        source = str(arrays["trajectory_source"])
        given = None
        if "given_poses" in arrays:
            given = Trajectory(arrays["given_stamps"], arrays["given_poses"], source=source)
        return Plan(
            checksum=str(arrays["checksum"]),
            period=float(arrays["period"]),
            trajectory=Trajectory(arrays["trajectory_stamps"], arrays["trajectory_poses"], source=source),
            hold="zero-order" if str(arrays["hold"]) == "zero-order" else "linear",
            trajectory_times=arrays["trajectory_times"],
            # Equal where nothing was limited: of an hour, 0.1 GB.
            solution=setpoints if np.array_equal(arrays["solution"], setpoints) else arrays["solution"],
            setpoints=setpoints,
            limited=arrays["limited"],
            given=given,
            start=Start(arrays["start"], str(arrays["start_reason"])) if "start" in arrays else None,
        )

    def check_made_for(self, checksum: str, period: float) -> None:
        """Refuse to replay the plan on another arm or at another period.

        Args:
            checksum: Of the arm's kinematics (`Robot.checksum`).
            period: Control period, s.

        Raises:
            InvalidParameter: The plan was made for other kinematics, or for another period.
        """
        if self.checksum != checksum:
            needed = f"made for this robot and TCP (kinematics {checksum[:12]}; --kinematics RUN takes those of a run)"
            raise InvalidParameter("plan", self.checksum[:12], needed)
        if not abs(self.period - period) <= 1e-12:
            raise InvalidParameter("plan's period", f"{self.period} s", f"the run's, {period} s (--period)")


def slow_down_reason(feedforward: bool) -> str:
    """Why a plan takes longer than its trajectory."""
    return f"to respect the {'limits of tool speed and feedforward' if feedforward else 'tool-speed limit'}"


def is_slowed_down(duration: float, trajectory_duration: float, period: float) -> bool:
    """Whether a motion takes noticeably longer than its trajectory: more than rounding to whole periods."""
    return duration - trajectory_duration > max(2.0 * period, 0.01 * trajectory_duration)


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
