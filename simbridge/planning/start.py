"""The start of a plan: on home's branch of the inverse kinematics, or on another one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from simbridge.errors import (
    LimitExceeded,
    NoClosedForm,
    PlannedCollision,
    PlanRefused,
    TargetOutOfReach,
)
from simbridge.ik.closed_form import ClosedForm
from simbridge.ik.reaching import reaching_solver
from simbridge.ik.solver import TOLERANCE, Solution, Solver
from simbridge.planning.reach import check_reach
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.pose import Array
from simbridge.robot.postures import restart_postures
from simbridge.robot.robot import Robot
from simbridge.text import degrees, join_words, pose_residual
from simbridge.trajectory.trajectory import Trajectory

# Number of postures from which branches are searched for an arm without a closed form.
SEED_POSTURES = 24
# Largest number of branches that are tried besides home's.
MAX_BRANCHES = 8
# Largest difference of a joint between two postures of the same branch, rad.
BRANCH_DISTANCE = 0.05
# What may help where a joint would leave its range.
MOVE_IT = "Move the trajectory."
# A whole turn of a joint, rad.
TURN = 2.0 * math.pi


def find_home_start(robot: Robot, trajectory: Trajectory, solver: Solver) -> Array:
    """Find the first joint positions of a plan on home's branch.

    They are solved from home, never from the measured arm, so that a file gives the same plan on
    every machine and in every run.

    Args:
        robot: The arm.
        trajectory: The samples that the solver is given, in base_link.
        solver: The solver of the plan.

    Returns:
        Joint positions (n,), rad.

    Raises:
        TargetOutOfReach: The first target cannot be attained within the joint limits.
    """
    solver = reaching_solver(solver)
    solution = solver.solve(trajectory.start, robot.home)

    # `solve` has converged only within a much smaller tolerance than that of the reach check, and
    # only within the joint limits. The tolerance of the reach check is enough here.
    is_attained = _is_within_tolerance(solution.distance, solution.angle)
    is_outside = (solution.q < robot.position_min) | (solution.q > robot.position_max)
    if solution.converged or (is_attained and not is_outside.any()):
        return solution.q

    # If the reach check refuses the target, too, its error says more: whether the rest of the
    # trajectory is out of reach.
    first_target = trajectory.start[np.newaxis]
    check_reach(solver, trajectory, first_target, times=np.zeros(1), start=robot.home)
    # Some posture attains the target, but none was found within the joint limits.
    raise _explain_unattained_start(robot, solution)


def depends_on_start(refusal: PlanRefused, solver: Solver) -> bool:
    """Return whether a plan that was refused may pass on another branch.

    It may if it left the joints' ranges, or collided. If the arm is redundant, it also moves with
    other velocities on another branch.
    """
    if isinstance(refusal, TargetOutOfReach):
        # The reach check tries many starts. If it still found a posture within the tolerance, that
        # posture is outside of the joint limits, and another branch may keep them. If it found
        # none, another branch does not help.
        return _is_within_tolerance(refusal.distance, refusal.angle)

    if isinstance(refusal, LimitExceeded):
        is_redundant = solver.robot.n > TASK_ROWS[solver.task]
        if refusal.quantity in {"velocity", "velocity jump"}:
            return is_redundant
        return refusal.quantity == "position"

    return isinstance(refusal, PlannedCollision)


def alternative_starts(robot: Robot, target: Array, solver: Solver) -> Iterator[Array]:
    """Yield joint positions on other branches than home's, those nearest to home first.

    A closed form gives all branches of an arm. Of an arm without one, the branches are those that
    the solver finds from postures that are always the same.

    Args:
        robot: The arm.
        target: The first target (7,).
        solver: Decides what can be reached (`reaching_solver`).

    Yields:
        Joint positions (n,), rad, within the limits, that attain the target.
    """
    home_start = solver.solve(target, robot.home).q
    try:
        candidates = list(ClosedForm(robot).branches(target, robot.home))
    except NoClosedForm:
        candidates = _search_branches(robot, target, solver)
    candidates.sort(key=lambda q: float(np.linalg.norm(q - robot.home)))

    # Yield one of several candidates on the same branch, and none on that of home.
    starts = [home_start]
    for candidate in candidates:
        distances = [np.abs(candidate - start).max() for start in starts]
        has_own_branch = min(distances) > BRANCH_DISTANCE
        if has_own_branch and len(starts) <= MAX_BRANCHES:
            starts.append(candidate)
            yield candidate


def unwind_joint(robot: Robot, joints: Array, refusal: PlanRefused) -> Array | None:
    """Return joint positions with one joint a whole turn back from the limit that it left.

    Args:
        robot: The arm.
        joints: Joint positions at which a plan began (n,), rad.
        refusal: Why it was refused.

    Returns:
        Joint positions (n,), rad, at which the tool is the same; None if no joint left its range,
        or if the range of that joint has no other turn.
    """
    if not (isinstance(refusal, LimitExceeded) and refusal.quantity == "position"):
        return None
    if refusal.joint not in robot.joint_names:
        return None
    joint = robot.joint_names.index(refusal.joint)
    if robot.prismatic[joint]:
        return None

    unwound = joints.copy()
    unwound[joint] -= np.copysign(TURN, refusal.value - refusal.limit)
    is_within = robot.position_min[joint] <= unwound[joint] <= robot.position_max[joint]
    return unwound if is_within else None


def advise_range(robot: Robot, solution: Array) -> str:
    """Return what helps where a joint of a plan would leave its range, as a sentence.

    From another turn, a joint moves in the same way. So the plan shows whether some turn is in its
    range over the whole motion.

    Args:
        robot: The arm.
        solution: Joint positions of the plan (T, n), rad or m.
    """
    lowest = solution.min(axis=0)
    highest = solution.max(axis=0)
    # How far each joint may be shifted down and up so that it is in its range all the time.
    min_shift = robot.position_min - lowest
    max_shift = robot.position_max - highest

    # Most important is a joint that moves farther than its range is wide.
    excess = np.where(min_shift > max_shift, min_shift - max_shift, 0.0)
    if excess.any():
        joint = int(np.argmax(excess))
        travel = _format_position(robot, joint, highest[joint] - lowest[joint])
        width = robot.position_max[joint] - robot.position_min[joint]
        return (
            f"No start on this branch works: {robot.joint_names[joint]} travels {travel}, but its "
            f"range is only {_format_position(robot, joint, width)} wide. Split the motion, or "
            "let it turn back."
        )

    # Then one that fits its range, but not at a whole turn from here.
    outside = np.flatnonzero((min_shift > 0.0) | (max_shift < 0.0))
    for joint in outside.tolist():
        has_turn = np.floor(max_shift[joint] / TURN) >= np.ceil(min_shift[joint] / TURN)
        if has_turn or robot.prismatic[joint]:
            continue
        travel = _format_position(robot, joint, highest[joint] - lowest[joint])
        first = _format_position(robot, joint, solution[0, joint] + min_shift[joint])
        last = _format_position(robot, joint, solution[0, joint] + max_shift[joint])
        return (
            f"Other whole turns do not help: {robot.joint_names[joint]} travels {travel}, so it "
            f"must start between {first} and {last} to stay in its range. Rotate or move the "
            "trajectory so that it does."
        )
    return MOVE_IT


def _format_position(robot: Robot, joint: int, position: float) -> str:
    """Return a position or distance of a joint with its unit, degrees or m."""
    if robot.prismatic[joint]:
        return f"{position:.3f} m"
    return f"{math.degrees(position):.1f} degrees"


def _search_branches(robot: Robot, target: Array, solver: Solver) -> list[Array]:
    """Return the solutions (n,), rad, from seed postures, those seeds nearest to home first."""
    seeds = restart_postures(robot, SEED_POSTURES)
    distances = np.linalg.norm(seeds - robot.home, axis=1)
    seeds = seeds[np.argsort(distances, kind="stable")]

    solutions = [solver.solve(target, seed) for seed in seeds]
    return [solution.q for solution in solutions if solution.converged]


def _is_within_tolerance(distance: float, angle: float) -> bool:
    """Return whether a posture so far from a target, m and rad, attains it."""
    return distance <= TOLERANCE[0] and angle <= TOLERANCE[1]


def _explain_unattained_start(robot: Robot, solution: Solution) -> TargetOutOfReach:
    """Return the error for the nearest posture to the first target."""
    residual = pose_residual(solution.distance, solution.angle)
    reason = f"the closest reachable pose is {residual} away from the first target"

    if _is_within_tolerance(solution.distance, solution.angle):
        outside = np.flatnonzero(
            (solution.q < robot.position_min) | (solution.q > robot.position_max)
        )
        positions = join_words(
            [f"{robot.joint_names[i]} at {degrees(solution.q[i])} degrees" for i in outside]
        )
        reason = f"the first target can only be reached outside the joint limits ({positions})"

    return TargetOutOfReach(
        f"The plan was refused: {reason}. {MOVE_IT}",
        sample=0,
        time=0.0,
        distance=solution.distance,
        angle=solution.angle,
        remedy=MOVE_IT,
    )
