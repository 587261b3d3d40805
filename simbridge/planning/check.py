"""The plan check: limits that every sample must keep before the arm moves.

Position, velocity, velocity jump, torque against gravity, tool speed and clearance are limits of every plan. The
acceleration is a limit only where setpoints are limited (`on_limits="limit"`): elsewhere the velocity jump bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import LimitExceeded, Quantity, TargetOutOfReach
from simbridge.ik.solver import Solver
from simbridge.planning.limiter import CLOCK_SLOPE, tool_speeds
from simbridge.robot.collision import Clearance, CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import fixed, pose_residual
from simbridge.trajectory.trajectory import Trajectory

# Values planned to a limit may exceed it by rounding.
_SLACK = 1.0 + 1e-6
# How long ago the state was measured that the guard compares a setpoint with, at most, s: real links take 4 to 6 ms.
_SEEN_LATE = 0.006
# Targets farther away than this many times the arm's reach are most likely in another unit.
_UNIT_RATIO = 20.0


@dataclass(frozen=True)
class Peaks:
    """The largest of each quantity over a plan that passed.

    Attributes:
        velocity: Of each joint (n,), rad/s.
        velocity_jump: From one period to the next, of each joint (n,), rad/s.
        acceleration: While moving, of each joint (n,), rad/s^2.
        tool_speed: m/s.
        clearance: The smallest that was measured; None for an arm without shapes.
        command_lead: With feedforward: the largest distance of a command from the arm, rad; None without.
    """

    velocity: Array
    velocity_jump: Array
    acceleration: Array
    tool_speed: float
    clearance: Clearance | None
    command_lead: float | None = None


class Remedies(NamedTuple):
    """What helps against setpoints that are too fast.

    Attributes:
        held: Whether the targets are steps of a sampled source, which a lower speed does not make smaller.
        limited: Whether setpoints are limited already.
        replayed: Whether the setpoints are those of an earlier run or session.
    """

    held: bool = False
    limited: bool = False
    replayed: bool = False

    def advice(self, slower: str, *others: str) -> str:
        """What to do, as a sentence; a lower speed is advised only where it helps."""
        if self.replayed:
            return (
                "These setpoints are replayed as they were; those of a live session jump where its controller paused "
                "or stopped the arm."
            )
        choices = [f"{slower} (--speed-scale)", *others]
        if self.held:
            choices = ["interpolate the target (--hold linear)", "give it more samples"]
        if not self.limited:
            choices.append("let setpoints be limited (--on-limits limit)")
        *first, last = choices
        text = f"{', '.join(first)}, or {last}." if first else f"{last}."
        held = "Each sample is held until the next one, so it is a step at any speed: "
        return held + text if self.held else text


def check_reach(solver: Solver, trajectory: Trajectory, times: Array, targets: Array, start: Array) -> None:
    """Refuse targets that no posture attains: each is solved to a tolerance, starting at the solution before it.

    Args:
        solver: Its `solve_each` decides.
        trajectory: Where the targets come from.
        times: Their instants on it (T,), s.
        targets: Poses (T, 7).
        start: Joint positions (n,) near the first, rad.

    Raises:
        TargetOutOfReach: Names the first, and says so when all are (most likely in another unit).
    """
    poses = np.concatenate([trajectory.poses, targets]) if len(targets) > 1 else targets
    instants = np.concatenate([trajectory.elapsed, times]) if len(targets) > 1 else times
    order = np.argsort(instants, kind="stable")
    # In chunks: a solve that fails takes as long as a hundred that succeed, and only the first failure is reported.
    for begin in range(0, len(order), 64):
        chunk = order[begin : begin + 64]
        q, residuals, converged = solver.solve_each(poses[chunk], start)
        if not np.all(converged):
            first = int(np.argmin(converged))
            _refuse(solver, trajectory, float(instants[chunk[first]]), poses[chunk[first]], residuals[first])
        start = q[-1]


def _refuse(solver: Solver, trajectory: Trajectory, time: float, target: Array, residual: Array) -> None:
    sample = int(trajectory.sample_at(time))
    distance, angle = float(residual[0]), float(residual[1])
    first = f"the first is sample {sample} at {time:.3f} s, which stays {pose_residual(distance, angle)} away"
    few = np.unique(np.linspace(0, len(trajectory.poses) - 1, 25).astype(int))
    _, residuals, attained = solver.solve_each(trajectory.poses[few], solver.robot.home)
    # The first is only just out of reach; the worst shows how far the motion leaves the workspace.
    worst = int(np.argmax(np.where(attained, -1.0, residuals[:, 0])))
    if residuals[worst, 0] > 2.0 * distance and not attained[worst]:
        first += f"; the farthest is sample {few[worst]}, {pose_residual(*residuals[worst])} away"
    far = float(np.linalg.norm(trajectory.poses[:, :3], axis=1).min()) / solver.robot.reach
    if not attained.any():
        slip = (
            "; are these millimetres? Positions are in metres, unless --columns x[mm] says so"
            if far > _UNIT_RATIO
            else ""
        )
        message = (
            f"The plan was refused: every target is out of reach{slip}; {first}. The arm reaches at most "
            f"{solver.robot.reach:.2f} m from its first joint; check units, frame (--frame base for pendant poses) and "
            "TCP."
        )
    else:
        message = (
            f"The plan was refused: targets are out of reach; {first} (the first target is "
            f"{', '.join(fixed(v, 3) for v in target[:3])} m). Move or shrink the trajectory, or choose a longer arm "
            "(--robot)."
        )
    if trajectory.read_as:
        message += f" The file was read as {trajectory.read_as}."
    every = not attained.any()
    raise TargetOutOfReach(message, sample=sample, time=time, distance=distance, angle=angle, every=every)


def check_setpoints(
    robot: Robot,
    setpoints: Array,
    period: float,
    max_tool_speed: float,
    collisions: CollisionModel,
    remedies: Remedies = Remedies(),  # noqa: B008 (immutable)
    max_acceleration: float | None = None,
) -> Peaks:
    """Refuse joint positions (T, n) that exceed a limit.

    The arm is at rest before the first and after the last: this start and stop count as velocity jumps.

    Args:
        robot: Its limits hold.
        setpoints: Joint positions (T, n), rad (m for sliding joints).
        period: Control period, s.
        max_tool_speed: m/s.
        collisions: Of the same arm.
        remedies: Advised in refusals.
        max_acceleration: rad/s^2; None where it is no limit.

    Raises:
        PlanRefused: One of its subclasses names sample, time, joint, value and limit.
    """
    _check_positions(robot, setpoints, period)
    velocity, speeds = np.diff(setpoints, axis=0) / period, tool_speeds(robot, setpoints, period)
    rest = np.zeros((1, robot.n))
    jumps = np.abs(np.diff(np.concatenate([rest, velocity, rest]), axis=0))
    ratios = (np.abs(velocity) / robot.max_velocity).max(initial=0.0), speeds.max(initial=0.0) / max_tool_speed
    enough = 0.95 / max(*ratios, 1e-9)
    # Velocity jumps do not shrink in proportion: where they are too large as well, no number would be right.
    jumpy = jumps.max() * enough > 0.8 * robot.max_velocity_jump
    slower = "Slow it down" if jumpy else f"Slow it down to {enough:.2g} of its speed"
    peak_velocity = _check_velocity(robot, velocity, period, remedies, slower)
    _check_jumps(robot, jumps, period, remedies)
    if max_acceleration is not None:
        _check_acceleration(robot, velocity, period, max_acceleration)
    _check_gravity(robot, setpoints, period)
    speed = _check_tool_speed(speeds, period, max_tool_speed, remedies, slower)
    acceleration = jumps[1:-1].max(axis=0, initial=0.0) / period
    return Peaks(peak_velocity, jumps.max(axis=0), acceleration, speed, collisions.check(setpoints, period))


def check_commands(robot: Robot, commands: Array, period: float) -> None:
    """Refuse commands (T, n), rad, that are not finite or outside of the joint range.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    _check_positions(robot, commands, period)


def check_predicted_velocity(robot: Robot, velocity: Array, cycle: float, period: float, remedies: Remedies) -> None:
    """Refuse setpoints for which the servo law predicts velocities of the arm past a limit.

    Args:
        robot: Its limits hold.
        velocity: Predicted (N, n), rad/s, one for each cycle of the controller, s.
        cycle: s.
        period: Control period, s: setpoints are that far apart.
        remedies: Advised in a refusal.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    magnitude = np.abs(velocity)
    excess = magnitude > robot.max_velocity * _SLACK
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(magnitude[k, i]), float(robot.max_velocity[i]), robot.joint_names[i]
        what = (
            f"servoj would overshoot: it would move {name} at {value:.3f} rad/s, past its limit of {limit:.3f} rad/s, "
            "which the setpoints keep"
        )
        slower = f"Slow it down to {0.95 / float((magnitude / robot.max_velocity).max()):.2g} of its speed"
        sample = int(k * cycle / period + 1e-6)
        _refuse_limit("velocity", sample, period, value, limit, what, remedies.advice(slower), name)


def check_predicted_distance(
    robot: Robot, setpoints: Array, q: Array, cycle: float, period: float, limits: Array
) -> None:
    """Refuse setpoints (T, n), rad, that get so far ahead of the arm that the guard would stop it.

    Args:
        robot: The arm.
        setpoints: Joint positions (T, n), rad.
        q: What the servo law predicts of them (N, n), rad, at the end of each cycle of the controller, s.
        cycle, period: s.
        limits: How far each setpoint may be from the arm (T, n), rad.

    Raises:
        LimitExceeded: Names sample, time, joint, value and limit.
    """
    ends = np.arange(len(setpoints)) * period - _SEEN_LATE
    seen = np.concatenate([setpoints[:1], q])[np.maximum(np.floor(ends / cycle + 1e-6), 0.0).astype(int)]
    distance = np.abs(setpoints - seen)
    excess = distance > limits
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(distance[k, i]), float(limits[k, i]), robot.joint_names[i]
        what = (
            f"servoj would leave {name} {value:.3f} rad behind its setpoint, and the guard stops it at {limit:.3f} rad"
        )
        remedy = "Slow it down (--speed-scale), or use a higher gain (--servo-gain)."
        _refuse_limit("command lead", k, period, value, limit, what, remedy, name)


def _refuse_limit(
    quantity: Quantity, k: int, period: float, value: float, limit: float, what: str, remedy: str, joint: str | None
) -> NoReturn:
    raise LimitExceeded(
        f"The plan was refused: at sample {k} ({k * period:.3f} s) {what}. {remedy}",
        quantity,
        sample=k,
        time=k * period,
        value=value,
        limit=limit,
        joint=joint,
    )


def _first(excess: NDArray[np.bool_]) -> tuple[int, int]:
    sample = int(np.argmax(excess.any(axis=1)))
    return sample, int(np.argmax(excess[sample]))


def _check_positions(robot: Robot, setpoints: Array, period: float) -> None:
    low, high = setpoints < robot.position_min - 1e-9, setpoints > robot.position_max + 1e-9
    # nan, from a solver, is neither.
    outside = low | high | ~np.isfinite(setpoints)
    if not outside.any():
        return
    k, i = _first(outside)
    limit = float(robot.position_min[i] if low[k, i] else robot.position_max[i])
    value, name = float(setpoints[k, i]), robot.joint_names[i]
    what = (
        f"{name} would be at {value:.3f} rad ({np.degrees(value):.1f} degrees), past its limit of {limit:.3f} rad "
        f"({np.degrees(limit):.1f} degrees)"
    )
    remedy = "Begin from another posture (--home) or move the trajectory."
    _refuse_limit("position", k, period, value, limit, what, remedy, name)


def _check_velocity(robot: Robot, velocity: Array, period: float, remedies: Remedies, slower: str) -> Array:
    magnitude = np.abs(velocity)
    excess = magnitude > robot.max_velocity * _SLACK
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(magnitude[k, i]), float(robot.max_velocity[i]), robot.joint_names[i]
        what = (
            f"{name} would move at {value:.3f} rad/s, past its limit of {limit:.3f} rad/s; the worst of the plan is "
            f"{float((magnitude / robot.max_velocity).max()):.2f} times a limit"
        )
        remedy = remedies.advice(slower, "keep away from singularities")
        _refuse_limit("velocity", k + 1, period, value, limit, what, remedy, name)
    return magnitude.max(axis=0, initial=0.0)


def _check_jumps(robot: Robot, jumps: Array, period: float, remedies: Remedies) -> None:
    excess = jumps > robot.max_velocity_jump * _SLACK
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(jumps[k, i]), robot.max_velocity_jump, robot.joint_names[i]
        what = (
            f"the velocity of {name} would jump by {value:.3f} rad/s within one period; {limit:.3f} rad/s are allowed"
        )
        remedy = remedies.advice("Slow it down", "round the corner", "lower the solver's kp")
        _refuse_limit("velocity jump", k, period, value, limit, what, remedy, name)


def _check_acceleration(robot: Robot, velocity: Array, period: float, max_acceleration: float) -> None:
    # The last period may be cut short by the end of the trajectory: it belongs to the stop, which counts as a jump.
    velocity = velocity[:-1]
    acceleration = np.abs(np.diff(velocity, axis=0)) / period
    # Stretched time passes at a rate that changes: that adds to what the limiter allows.
    speed = np.maximum(np.abs(velocity[1:]), np.abs(velocity[:-1]))
    excess = acceleration > (max_acceleration + CLOCK_SLOPE * speed) * _SLACK
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(acceleration[k, i]), max_acceleration, robot.joint_names[i]
        what = f"{name} would accelerate at {value:.1f} rad/s^2, past the limit of {limit:.1f} rad/s^2"
        _refuse_limit("acceleration", k + 1, period, value, limit, what, "Slow it down (--speed-scale).", name)


def _check_gravity(robot: Robot, setpoints: Array, period: float) -> None:
    model, data = robot.model, robot.model.createData()
    torque = np.abs([pin.computeGeneralizedGravity(model, data, q) for q in setpoints])
    excess = torque > robot.max_effort
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(torque[k, i]), float(robot.max_effort[i]), robot.joint_names[i]
        what = f"{name} would need {value:.0f} N m to hold the posture; it has {limit:.0f} N m"
        remedy = "Reduce the payload (--payload) or keep the arm closer to its base."
        _refuse_limit("torque", k, period, value, limit, what, remedy, name)


def _check_tool_speed(speeds: Array, period: float, limit: float, remedies: Remedies, slower: str) -> float:
    excess = speeds > limit * _SLACK
    if excess.any():
        k = int(np.argmax(excess)) + 1
        value = float(speeds[k - 1])
        what = f"the tool would move at {value:.3f} m/s; {limit:.3f} m/s are allowed"
        remedy = remedies.advice(slower, "allow more (--max-tool-speed)")
        _refuse_limit("tool speed", k, period, value, limit, what, remedy, None)
    return float(speeds.max(initial=0.0))
