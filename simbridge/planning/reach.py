"""The targets of a trajectory that an arm attains; a plan with any other is refused."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import TargetOutOfReach
from simbridge.ik.faults import is_custom
from simbridge.ik.reaching import reaching_solver
from simbridge.ik.solver import Solver
from simbridge.recent import Recent
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import fixed, pose_residual
from simbridge.trajectory.trajectory import Trajectory

# Largest number of targets that are solved to measure the reach: one out of reach takes as long as
# a hundred others.
MAX_SOLVED = 400
# Number of targets that are solved together, before a plan is refused for the first that is out of
# reach.
TARGETS_PER_CHUNK = 64
# Number of samples that are solved to describe a trajectory that is out of reach.
DESCRIBED_SAMPLES = 25
# Ratio of a sample's distance out of reach to the first one's above which it is named, too.
FARTHER_RATIO = 2.0
# Poses that are all farther away than this many times the arm's reach are most likely in another
# unit.
MAX_PLAUSIBLE_REACHES = 20.0
# Searches that are remembered.
MAX_ATTAINED = 4096

# Whether every target of a search was attained, by a hash of all that decides it. Only searches
# that attained all are here: the points of a sweep that differ in gains need not search again.
_attained: Recent[bool] = Recent(MAX_ATTAINED)


@dataclass(frozen=True)
class Reach:
    """The part of a trajectory that an arm can attain.

    Attributes:
        robot: The arm's name.
        share: Attained fraction of the samples that were solved, 0 to 1.
        solved: Number of samples that were solved: all, or at most MAX_SOLVED, evenly spread over
            the trajectory.
        first_missed: The first sample of those that cannot be attained; None if all can.
        first_missed_s: Instant of this sample since the start, s.
    """

    robot: str
    share: float
    solved: int
    first_missed: int | None
    first_missed_s: float | None


def measure_reach(trajectory: Trajectory, solver: Solver) -> tuple[Reach, NDArray[np.bool_]]:
    """Solve samples of a trajectory, to measure what the solver's arm attains of it.

    Returns:
        The reach; and which samples can be attained (T,), those between two that were solved by the
        nearer one.
    """
    count = len(trajectory.times)
    solved = spread_evenly(count, MAX_SOLVED)
    reliable = reaching_solver(solver)
    _, _, converged = reliable.solve_each(trajectory.poses[solved], solver.robot.home)

    missed = solved[~converged]
    first_missed = int(missed[0]) if len(missed) else None
    first_missed_s = None if first_missed is None else float(trajectory.elapsed[first_missed])
    reach = Reach(
        robot=solver.robot.name,
        share=float(converged.mean()),
        solved=len(solved),
        first_missed=first_missed,
        first_missed_s=first_missed_s,
    )

    nearest = np.searchsorted(0.5 * (solved[1:] + solved[:-1]), np.arange(count))
    return reach, np.asarray(converged[nearest], dtype=bool)


def spread_evenly(count: int, max_count: int) -> NDArray[np.int_]:
    """Return indices (K,) of at most some of many samples, evenly spread, both ends included.

    Args:
        count: Number of samples.
        max_count: Number of indices at most.
    """
    indices = np.linspace(0, count - 1, min(count, max_count)).round().astype(int)
    return np.unique(indices)


def check_reach(
    solver: Solver, trajectory: Trajectory, targets: Array, *, times: Array, start: Array
) -> None:
    """Refuse targets that no posture attains.

    The samples of the trajectory and the targets between them are solved to a tolerance, in the
    order of time, each starting at the solution before it. The same search is made once in a
    process, unless a user's code decides what is attained.

    Args:
        solver: Decides what can be reached (`reaching_solver`).
        trajectory: The trajectory, in base_link.
        targets: Poses (T, 7) in base_link.
        times: Instants of the targets on the trajectory (T,), s.
        start: Joint positions (n,), rad, from which the first target is solved.

    Raises:
        TargetOutOfReach: A target is out of reach; names the first one, and says so if all are,
            most likely because they are in another unit.
    """
    # A single target has no samples around it that the plan would pass.
    poses = targets
    instants = times
    if len(targets) > 1:
        poses = np.concatenate([trajectory.poses, targets])
        instants = np.concatenate([trajectory.elapsed, times])
    order = np.argsort(instants, kind="stable")

    search = _hash_search(solver, poses[order], start)
    if search is not None and _attained.get(search):
        return

    # Solve in chunks: a solve that fails takes as long as a hundred that succeed, and only the
    # first failure is reported.
    for begin in range(0, len(order), TARGETS_PER_CHUNK):
        chunk = order[begin : begin + TARGETS_PER_CHUNK]
        q, residuals, converged = solver.solve_each(poses[chunk], start)
        if not np.all(converged):
            first = int(np.argmin(converged))
            time = float(instants[chunk[first]])
            target = poses[chunk[first]]
            raise _explain_out_of_reach(
                solver, trajectory, time, target=target, residual=residuals[first]
            )
        start = q[-1]
    if search is not None:
        _attained.put(search, True)


def _hash_search(solver: Solver, poses: Array, start: Array) -> bytes | None:
    """Return a hash of all that decides whether poses (T, 7) are attained from a start (n,).

    None where a user's code decides it.
    """
    settings = None if is_custom(solver) else solver.search_settings
    if settings is None:
        return None
    search = hashlib.sha256(solver.robot.fingerprint + repr(settings).encode())
    search.update(poses.tobytes() + start.tobytes())
    return search.digest()


def in_another_unit(trajectory: Trajectory, robot: Robot) -> bool:
    """Return whether positions are most likely not in metres: all are far out of reach."""
    distances = np.linalg.norm(trajectory.poses[:, :3], axis=1)
    return float(distances.min()) > MAX_PLAUSIBLE_REACHES * robot.arm_length


def _explain_out_of_reach(
    solver: Solver, trajectory: Trajectory, time: float, *, target: Array, residual: Array
) -> TargetOutOfReach:
    """Return the error for the first target that is out of reach.

    Args:
        solver: The solver that decided so.
        trajectory: The trajectory, in base_link.
        time: Instant of the target on the trajectory, s.
        target: Pose (7,) in base_link.
        residual: Distance (m) and angle (rad) of the nearest posture's tool from the target (2,).
    """
    sample = int(trajectory.sample_at(time))
    distance = float(residual[0])
    angle = float(residual[1])

    # A few samples show whether anything of the trajectory is in reach.
    described = spread_evenly(len(trajectory.poses), DESCRIBED_SAMPLES)
    _, residuals, attained = solver.solve_each(trajectory.poses[described], solver.robot.home)
    all_missed = not attained.any()

    # The first target may be only just out of reach. The farthest sample, if it is clearly farther,
    # shows how far the motion leaves the workspace.
    misses = f"the first is sample {sample} at {time:.3f} s, whose closest reachable pose is "
    misses += f"{pose_residual(distance, angle)} away"
    farthest = int(np.argmax(np.where(attained, -1.0, residuals[:, 0])))
    if residuals[farthest, 0] > FARTHER_RATIO * distance and not attained[farthest]:
        residual_text = pose_residual(*residuals[farthest])
        misses += f"; the farthest is sample {described[farthest]}, {residual_text} away"

    if all_missed:
        message = _all_out_of_reach(trajectory, solver.robot, misses)
    else:
        position = ", ".join(fixed(coordinate, 3) for coordinate in target[:3])
        message = (
            f"targets are out of reach; {misses} (the first target is {position} m). Move or "
            "shrink the trajectory, or choose a longer arm (--robot)."
        )
    if trajectory.read_as:
        message += f" The file was read as {trajectory.read_as}."

    return TargetOutOfReach(
        f"The plan was refused: {message}",
        sample=sample,
        time=time,
        distance=distance,
        angle=angle,
        every=all_missed,
    )


def _all_out_of_reach(trajectory: Trajectory, robot: Robot, misses: str) -> str:
    """Return the message where nothing of a trajectory is in reach.

    Args:
        trajectory: The trajectory, in base_link.
        robot: The arm.
        misses: A clause about the first and the farthest target that are out of reach.
    """
    unit = ""
    if in_another_unit(trajectory, robot):
        unit = "; are these millimetres? Positions are in metres, unless --columns x[mm] says so"
    return (
        f"every target is out of reach{unit}; {misses}. The arm reaches at most "
        f"{robot.arm_length:.2f} m from its first joint; check units, frame "
        "(--frame base for pendant poses) and TCP."
    )
