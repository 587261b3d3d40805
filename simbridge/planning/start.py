"""Where a plan begins: on home's branch of the inverse kinematics, or on another one that keeps the path in reach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simbridge.errors import LimitExceeded, NoClosedForm, PlannedCollision, PlanRefused, TargetOutOfReach
from simbridge.ik.closed_form import ClosedForm
from simbridge.ik.solver import TOLERANCE, Solver
from simbridge.planning.check import check_reach
from simbridge.planning.plan import home_flag
from simbridge.robot.chain import TASK_ROWS
from simbridge.robot.kinematics import restart_postures
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import degrees, listed, pose_residual
from simbridge.trajectory.trajectory import Trajectory

# Postures from which other branches are searched where there is no closed form, how many of them are tried, and by how
# much two of them differ, rad.
_SEEDS, _TRIED, _APART = 24, 8, 0.05


def home_start(robot: Robot, trajectory: Trajectory, solver: Solver) -> Array:
    """The first joints of a plan (n,): solved from home, never from the measured arm, so that a plan is the same
    everywhere.

    Raises:
        TargetOutOfReach: There are none within the joint limits.
    """
    solver = solver.reaching
    solution = solver.solve(trajectory.start, robot.home)
    outside = np.flatnonzero((solution.q < robot.position_min) | (solution.q > robot.position_max))
    # `solve` is stricter than the reach check of every target; the tolerance of the latter is enough here, too.
    attained = solution.distance <= TOLERANCE[0] and solution.angle <= TOLERANCE[1]
    if solution.converged or (attained and not len(outside)):
        return solution.q
    # The message of the reach check includes the other targets.
    times = np.zeros(1)
    check_reach(solver, trajectory, times, trajectory.target(times, "linear"), robot.home)
    reason = (
        f"the nearest posture found to the first target stays {pose_residual(solution.distance, solution.angle)} away"
    )
    if attained:
        beyond = listed([f"{robot.joint_names[i]} at {degrees(solution.q[i])} degrees" for i in outside])
        reason = f"the first target can only be attained outside of the joint limits ({beyond})"
    raise TargetOutOfReach(
        f"The plan was refused: {reason}. Move the trajectory, or begin from another posture (--home).",
        sample=0,
        time=0.0,
        distance=solution.distance,
        angle=solution.angle,
    )


def depends_on_start(refusal: PlanRefused, solver: Solver) -> bool:
    """Whether a plan that was refused for this may pass on another branch: it left the joints' ranges, or collided.

    A redundant arm also has other velocities on the way.
    """
    if isinstance(refusal, TargetOutOfReach):
        # Within reach, but outside of the joint limits. What no posture attains was searched from everywhere.
        return refusal.distance <= TOLERANCE[0] and refusal.angle <= TOLERANCE[1]
    if isinstance(refusal, LimitExceeded):
        redundant = solver.robot.n > TASK_ROWS[solver.task]
        return refusal.quantity == "position" or (redundant and refusal.quantity in {"velocity", "velocity jump"})
    return isinstance(refusal, PlannedCollision)


def other_starts(robot: Robot, target: Array, solver: Solver) -> Iterator[Array]:
    """Joint positions (n,) within the limits that attain a target (7,), those nearest to home first, without home's.

    All branches where there is a closed form; else what the solver finds from postures that are always the same.
    """
    home = solver.solve(target, robot.home).q
    try:
        found = list(ClosedForm(robot).branches(target, robot.home))
    except NoClosedForm:
        seeds = restart_postures(robot, _SEEDS)
        seeds = seeds[np.argsort(np.linalg.norm(seeds - robot.home, axis=1), kind="stable")]
        found = [solution.q for solution in (solver.solve(target, seed) for seed in seeds) if solution.converged]
    known = [home]
    for joints in sorted(found, key=lambda q: float(np.linalg.norm(q - robot.home))):
        if len(known) <= _TRIED and all(np.abs(joints - other).max() > _APART for other in known):
            known.append(joints)
            yield joints


def advise_start(refusal: PlanRefused, joints: Array) -> None:
    """Add to a refusal which branch would work, and its flag."""
    refusal.args = (f"{refusal} The branch at {home_flag(joints)} would pass: choose it so, or by --start auto.",)
