"""Inverse kinematics in closed form: every solution at once, for UR arms and planar arms of two links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.branches import MAX_BRANCHES, kernels
from simbridge.ik.inputs import Target, as_joints, as_pose, as_poses
from simbridge.ik.settings import ClosedFormParameters
from simbridge.ik.solver import Solution, Solver
from simbridge.ik.structures import structure_of
from simbridge.ik.task import freed
from simbridge.ik.workspace_boundary import SLACK
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array, Counts
from simbridge.robot.robot import Robot

_NAMES = ("wrist", "elbow", "shoulder")


class ClosedForm(Solver):
    """All joint positions that put the tool on the target: up to eight on a UR arm, two on a planar arm of two links.

    A planar arm attains positions: the rotation of its targets is ignored.

    Singular configurations. Where the axes of wrist 1 and wrist 3 are parallel (theta5 = 0 or pi), only the sum of
    their angles matters: wrist 3 stays where it is (or turns by the smallest angle that brings the arm within reach),
    and the two flips of the wrist are one branch. Where the arm is stretched or folded, both elbows are one branch;
    where the wrist is d4 away from the pan axis, as near as it gets, both shoulders are. A planar arm of equal links
    folded onto its base leaves the first joint free: it stays where it is. `singular` and `singular_samples` report
    them.

    Out of reach. `branches` is empty. `step` and `track` point the arm to the target, stretched or folded, with the
    target's rotation: continuous, at rest when the target rests, and with the remaining error in `last.residual`. When
    joint limits forbid that too, the arm stays. A target that is out of reach by no more than 1e-11 m (rounding) is
    attained by the stretched arm. Where a stretched or folded elbow meets another singularity, rounding can be more
    than that: then pan and wrist 3 turn within what rounding leaves open, and one branch is given
    (`workspace_boundary.py`).

    Steps go to the nearest solution, even if it is far: where the present branch ends (at a limit or at the boundary of
    what its shoulder reaches) and another does not, the joints jump.

    Args:
        robot: The arm. Its structure is found in its chain: a URDF of a UR arm will do.

    Raises:
        NoClosedForm: The arm is neither; calibrated arms are not, since their axes are not quite parallel.
    """

    name = "closed-form"

    def __init__(self, robot: Robot, settings: ClosedFormParameters | None = None) -> None:
        super().__init__(robot)
        structure = structure_of(robot)
        self.task = structure.task
        self._arm = structure.lengths, structure.joints, structure.frames
        # The singularities at each sample of the last call, as bits; of a single sample just a number.
        self._met: Counts | int = 0

    @property
    def iterations(self) -> int:
        return 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    @property
    def singular_samples(self) -> dict[str, Counts]:
        """At which samples (K,) of the last call, counted from 0, each of `singular` was; a single target is sample 0.

        The last call of `branches` (its nearest solution), `step`, `track`, `solve` or `solve_each`.
        """
        return _named(self._met)

    @property
    def singular(self) -> tuple[str, ...]:
        """The singularities of the last call, at one sample or more (see `singular_samples`).

        Of "wrist", "elbow" and "shoulder"; empty where every joint was determined and no two branches met.
        """
        return tuple(self.singular_samples)

    def notes(self, poses: Array, q0: Array) -> tuple[str, ...]:
        """Where the path is singular, if it is anywhere."""
        met = self._follow(as_poses(poses), as_joints(q0, self.robot.n))[2]
        found = [f"{name} {len(at)}, first sample {at[0]}" for name, at in _named(met).items()]
        if not found:
            return ()
        share, listed = f"{np.count_nonzero(met)} of {len(met)} samples", "; ".join(found)
        return (
            f"The closed form met singular poses in {share} ({listed}): "
            "a joint that a pose leaves free stays as close to its position as possible.",
        )

    def reset(self, q: Array | Sequence[float]) -> None:
        super().reset(q)
        self._met = 0

    def branches(self, target: Target, near: Array | Sequence[float] | None = None) -> Array:
        """Every solution within the joint limits, nearest first.

        Each branch is given once: of the positions that differ by whole turns, the nearest one within the limits, joint
        by joint. The order is by the root of the summed squares of the joint differences.

        Args:
            target: The pose.
            near: Joint positions (n,), rad, from which nearness counts; the solver's present ones by default, which
                are the robot's home before the first step.

        Returns:
            Joint positions (k, n), rad; k = 0 when the target is out of reach, or only attained beyond a limit.

        Raises:
            InvalidParameter: The target is not a pose, or `near` not one finite number per joint.
        """
        return self._found(as_pose(target), self._q if near is None else as_joints(near, self.robot.n))

    def step(self, target: Target) -> Array:
        goal = as_pose(target)
        found = self._found(goal, self._q)
        if not len(found):
            found = self._found(goal, self._q, slack=np.inf)
        self._stepped_to(found[0] if len(found) else self._q, goal)
        return self._q.copy()

    def _track(self, poses: Array, q0: Array) -> Array:
        path, _, self._met = self._follow(poses, q0)
        return path

    def _solve(self, goal: Array, start: Array) -> Solution:
        """The solution nearest to the start; out of reach what `step` would do, not converged."""
        path, attained, self._met = self._follow(goal[None], start)
        distance, angle = self._residuals(goal[None], path)[0]
        return Solution(path[0], bool(attained[0]), float(distance), float(angle), 1, 0)

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        path, attained, self._met = self._follow(poses, start)
        return path, self._residuals(poses, path), attained

    def lag(self, period: float) -> float | None:
        """None: 0 s."""
        return 0.0

    def _found(self, goal: Array, near: Array, slack: float = SLACK) -> Array:
        """The branches (k, n).

        Args:
            goal: The target (7,).
            near: Joint positions (n,), rad.
            slack: How far out of reach the target may be, m: the arm then points to it.
        """
        out, notes = np.empty((MAX_BRANCHES, self.robot.n)), np.zeros(MAX_BRANCHES, np.int64)
        count = kernels().branches(*self._arm, goal, near, slack, out, notes)
        self._met = notes.item(0)
        return out[: max(0, count)]

    def _follow(self, poses: Array, q: Array) -> tuple[Array, NDArray[np.bool_], Counts]:
        total = len(poses)
        path, attained = np.empty((total, self.robot.n)), np.empty(total, np.bool_)
        met = np.empty(total, np.int64)
        kernels().follow(*self._arm, poses, q, path, attained, met)
        return path, attained, met

    def _residuals(self, poses: Array, path: Array) -> Array:
        """Remaining translation (m) and rotation (rad) (T, 2) at joint positions (T, n)."""
        attained = tool_path(self.robot, path)
        parts = pose.error(freed(self.task, poses, attained), attained)
        return np.stack([np.linalg.norm(part, axis=1) for part in parts], axis=1)


def _named(met: Counts | int) -> dict[str, Counts]:
    """The samples of each kind of singularity that was met."""
    bits = np.atleast_1d(met)
    found = {name: np.flatnonzero(bits >> bit & 1) for bit, name in enumerate(_NAMES)}
    return {name: samples for name, samples in found.items() if len(samples)}
