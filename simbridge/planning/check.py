"""The plan check: what must hold for every sample before the arm moves at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import LimitExceeded, TargetOutOfReach
from simbridge.ik.solver import Solver
from simbridge.planning.limiter import tool_speeds
from simbridge.robot.collision import Clearance, CollisionModel
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import away
from simbridge.trajectory.trajectory import Trajectory

# Values planned to a limit may pass it by rounding.
_SLACK = 1.0 + 1e-6
# This much farther than the arm is long, and positions are in another unit.
_UNIT_SLIP = 20.0


@dataclass(frozen=True)
class Peaks:
    """The largest of each quantity over a plan that passed.

    Attributes:
        velocity: Of each joint (n,), rad/s.
        velocity_jump: From one period to the next, of each joint (n,), rad/s.
        tool_speed: m/s.
        clearance: The smallest that was measured; None for an arm without shapes.
    """

    velocity: Array
    velocity_jump: Array
    tool_speed: float
    clearance: Clearance | None


def check_reach(solver: Solver, trajectory: Trajectory, times: Array, targets: Array, start: Array) -> None:
    """Refuse targets that no posture attains: each is solved to a tolerance, from the solution of the one before.

    Args:
        solver: Whose `solve_each` judges.
        trajectory: Where the targets come from.
        times: Their instants on it (T,), s.
        targets: Poses (T, 7).
        start: Joint positions (n,) near the first, rad.

    Raises:
        TargetOutOfReach: Names the first, and says when all are (a slip of units, most likely).
    """
    poses = np.concatenate([trajectory.poses, targets]) if len(targets) > 1 else targets
    instants = np.concatenate([trajectory.elapsed, times]) if len(targets) > 1 else times
    order = np.argsort(instants, kind="stable")
    # A chunk at a time: a solve that fails costs a hundred that succeed, and only the first failure is of interest.
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
    first = f"the first is sample {sample} at {time:.3f} s, which stays {away(distance, angle)} away"
    few = np.unique(np.linspace(0, len(trajectory.poses) - 1, 25).astype(int))
    _, residuals, attained = solver.solve_each(trajectory.poses[few], solver.robot.home)
    # The first lies only just past what can be attained; how far the motion leaves that says more.
    worst = int(np.argmax(np.where(attained, -1.0, residuals[:, 0])))
    if residuals[worst, 0] > 2.0 * distance and not attained[worst]:
        first += f", and sample {few[worst]} even {away(*residuals[worst])}"
    far = float(np.linalg.norm(trajectory.poses[:, :3], axis=1).min()) / solver.robot.reach
    if not attained.any():
        slip = "; are these millimetres? Positions are in metres" if far > _UNIT_SLIP else ""
        message = (
            f"The plan was refused: every target is out of reach{slip}; {first}. The arm reaches at most "
            f"{solver.robot.reach:.2f} m from its first joint; check units, frame (--frame base for pendant poses) and "
            "TCP."
        )
    else:
        message = (
            f"The plan was refused: targets are out of reach; {first} (the first target is "
            f"{', '.join(f'{v:.3f}' for v in target[:3])} m). Move or shrink the trajectory, or choose a longer arm "
            "(--robot)."
        )
    raise TargetOutOfReach(message, sample=sample, time=time, distance=distance, angle=angle)


def check_setpoints(
    robot: Robot, setpoints: Array, period: float, max_tool_speed: float, collisions: CollisionModel
) -> Peaks:
    """Refuse joint positions (T, n) that break a limit: position, velocity, velocity jump, tool speed, clearance.

    The arm stands still before the first and after the last: those starts and stops count as jumps.

    Raises:
        PlanRefused: One of its subclasses names sample, time, joint, value and limit.
    """
    _check_positions(robot, setpoints, period)
    velocity = np.diff(setpoints, axis=0) / period
    peak_velocity = _check_velocity(robot, velocity, period)
    still = np.zeros((1, robot.n))
    jumps = np.abs(np.diff(np.concatenate([still, velocity, still]), axis=0))
    _check_jumps(robot, jumps, period)
    _check_gravity(robot, setpoints, period)
    speed = _check_tool_speed(robot, setpoints, period, max_tool_speed)
    return Peaks(peak_velocity, jumps.max(axis=0), speed, collisions.check(setpoints, period))


def _first(excess: NDArray[np.bool_]) -> tuple[int, int]:
    sample = int(np.argmax(excess.any(axis=1)))
    return sample, int(np.argmax(excess[sample]))


def _check_positions(robot: Robot, setpoints: Array, period: float) -> None:
    low, high = setpoints < robot.position_min - 1e-9, setpoints > robot.position_max + 1e-9
    # A solver's nan is neither.
    outside = low | high | ~np.isfinite(setpoints)
    if not outside.any():
        return
    k, i = _first(outside)
    limit = float(robot.position_min[i] if low[k, i] else robot.position_max[i])
    value, name = float(setpoints[k, i]), robot.joint_names[i]
    raise LimitExceeded(
        f"The plan was refused: at sample {k} ({k * period:.3f} s) {name} would be at {value:.3f} rad "
        f"({np.degrees(value):.1f} degrees), past its limit of {limit:.3f} rad ({np.degrees(limit):.1f} degrees). "
        "Begin from another posture (--home) or move the trajectory.",
        quantity="position",
        sample=k,
        time=k * period,
        value=value,
        limit=limit,
        joint=name,
    )


def _check_velocity(robot: Robot, velocity: Array, period: float) -> Array:
    magnitude = np.abs(velocity)
    excess = magnitude > robot.max_velocity * _SLACK
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(magnitude[k, i]), float(robot.max_velocity[i]), robot.joint_names[i]
        worst = float((magnitude / robot.max_velocity).max())
        raise LimitExceeded(
            f"The plan was refused: at sample {k + 1} ({(k + 1) * period:.3f} s) {name} would move at {value:.3f} "
            f"rad/s, past its limit of {limit:.3f} rad/s; the worst of the plan is {worst:.2f} times a limit. Slow it "
            f"down to {0.95 / worst:.2g} of its speed (--speed-scale), keep away from singularities, or let setpoints "
            "be limited (--on-limits limit).",
            quantity="velocity",
            sample=k + 1,
            time=(k + 1) * period,
            value=value,
            limit=limit,
            joint=name,
        )
    return magnitude.max(axis=0, initial=0.0)


def _check_jumps(robot: Robot, jumps: Array, period: float) -> None:
    excess = jumps > robot.max_velocity_jump * _SLACK
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(jumps[k, i]), robot.max_velocity_jump, robot.joint_names[i]
        raise LimitExceeded(
            f"The plan was refused: at sample {k} ({k * period:.3f} s) the velocity of {name} would jump by "
            f"{value:.3f} rad/s within one period; {limit:.3f} rad/s are allowed. Slow it down (--speed-scale), round "
            "the corner, lower the solver's kp, or let setpoints be limited (--on-limits limit).",
            quantity="velocity jump",
            sample=k,
            time=k * period,
            value=value,
            limit=limit,
            joint=name,
        )


def _check_gravity(robot: Robot, setpoints: Array, period: float) -> None:
    model, data = robot.model, robot.model.createData()
    torque = np.abs([pin.computeGeneralizedGravity(model, data, q) for q in setpoints])
    excess = torque > robot.max_effort
    if excess.any():
        k, i = _first(excess)
        value, limit, name = float(torque[k, i]), float(robot.max_effort[i]), robot.joint_names[i]
        raise LimitExceeded(
            f"The plan was refused: at sample {k} ({k * period:.3f} s) {name} would need {value:.0f} N m to stand "
            f"still; it has {limit:.0f} N m. Carry less (--payload) or keep the arm closer to its base.",
            quantity="torque",
            sample=k,
            time=k * period,
            value=value,
            limit=limit,
            joint=name,
        )


def _check_tool_speed(robot: Robot, setpoints: Array, period: float, limit: float) -> float:
    speeds = tool_speeds(robot, setpoints, period)
    if (speeds > limit * _SLACK).any():
        k = int(np.argmax(speeds > limit * _SLACK)) + 1
        value = float(speeds[k - 1])
        raise LimitExceeded(
            f"The plan was refused: at sample {k} ({k * period:.3f} s) the tool would move at {value:.3f} m/s; "
            f"{limit:.3f} m/s are allowed. Slow it down to {0.95 * limit / float(speeds.max()):.2g} of its speed "
            "(--speed-scale), allow more (--max-tool-speed), or let time be stretched (--on-limits limit).",
            quantity="tool speed",
            sample=k,
            time=k * period,
            value=value,
            limit=limit,
        )
    return float(speeds.max(initial=0.0))
