"""Inverse kinematics in closed form: every solution at once, for UR arms and planar arms of two links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.branches import Arm, branches, follow, residuals, room_for, routine
from simbridge.ik.inputs import Target, as_joints, as_pose, as_poses
from simbridge.ik.kernels.routine import Call
from simbridge.ik.linearization import chain_of, sight_for
from simbridge.ik.solver import Solution, Solver
from simbridge.ik.structures import structure_of
from simbridge.ik.workspace_boundary import SLACK
from simbridge.robot.pose import Array, Counts
from simbridge.robot.robot import Robot

_NAMES = ("wrist", "elbow", "shoulder")


class ClosedForm(Solver):
    """All joint positions that put the tool on the target: up to eight on a UR arm, two on a planar arm of two links.

    A planar arm attains positions: the rotation of its targets is not looked at.

    Singular configurations. Where the axes of wrist 1 and wrist 3 are parallel (theta5 = 0 or pi), only the sum of
    their angles matters: wrist 3 stays where it is (or turns as little as brings the arm within reach), and the two
    flips of the wrist are one branch. Where the arm is stretched or folded, both elbows are one branch; where the wrist
    is d4 away from the pan axis, as near as it gets, both shoulders are. A planar arm of equal links folded onto its
    base leaves the first joint free: it stays where it is. `singular` and `singular_samples` say what and when.

    Out of reach. `branches` is empty. `step` and `track` point the arm to the target, stretched or folded, with the
    target's rotation: continuous, at rest when the target rests, and `last.residual` says by how much it misses. When
    joint limits forbid that too, the arm stays. A target that is out of reach by no more than 1e-11 m (rounding) is
    attained by the stretched arm. Where a stretched or folded elbow meets another singularity, rounding can be more
    than that: then pan and wrist 3 turn within what rounding leaves open, and one branch is given (`edge_of_reach.py`).

    Steps go to the nearest of the solutions, even when that is far: where the present branch ends (at a limit or at
    the edge of what its shoulder reaches) and another does not, the joints jump.

    Args:
        robot: The arm. Its structure is found in its chain: a URDF of a UR arm will do.

    Raises:
        NoClosedForm: The arm is neither; calibrated arms are not, since their axes are not quite parallel.
    """

    name = "closed-form"

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        structure = structure_of(robot)
        self.task = structure.task
        self._arm = Arm(structure.lengths, structure.joints, structure.frames)
        self._room = room_for(robot.n)
        # The same arrays at every call: to hand over new ones takes longer than to find all branches.
        self._goal, self._near = np.zeros(7), np.zeros(robot.n)
        self._calls: dict[float, Call] = {}
        # What was singular at each sample of the last call, as bits; at one sample just a number.
        self._met: Counts | int = 0

    def __getstate__(self) -> dict[str, Any]:
        # A copy makes calls of its own.
        return {**self.__dict__, "_calls": {}}

    @property
    def iterations(self) -> int:
        return 1

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    @property
    def singular_samples(self) -> dict[str, Counts]:
        """At which samples (K,) of the last call, counted from 0, each of `singular` was; a single target is sample 0.

        The last call of `branches` (there the nearest solution counts), `step`, `track`, `solve` or `solve_each`.
        """
        return _named(self._met)

    @property
    def singular(self) -> tuple[str, ...]:
        """What was singular in the last call, at one sample or more (see `singular_samples`).

        Of "wrist", "elbow" and "shoulder"; empty where every joint was determined and no two branches met.
        """
        return tuple(self.singular_samples)

    def notes(self, poses: Array, q0: Array) -> tuple[str, ...]:
        """Where the way is singular, if it is anywhere."""
        met = self._follow(as_poses(poses), as_joints(q0, self.robot.n))[2]
        told = [f"{name} {len(at)}, first sample {at[0]}" for name, at in _named(met).items()]
        if not told:
            return ()
        return (
            f"The closed form met singular poses in {np.count_nonzero(met)} of {len(met)} samples ({'; '.join(told)}): "
            "a joint that a pose leaves free stays as near as can be to where it is.",
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
            InvalidParameter: The target is not a pose, or `near` not one finite number a joint.
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
        """None at all: 0 s."""
        return 0.0

    def _found(self, goal: Array, near: Array, slack: float = SLACK) -> Array:
        """The branches (k, n).

        Args:
            goal: The target (7,).
            near: Joint positions (n,), rad.
            slack: How far out of reach the target may be, m: the arm then points to it.
        """
        if slack not in self._calls:
            self._calls[slack] = routine(branches).bound(self._arm, self._goal, self._near, slack, self._room)
        self._goal[:], self._near[:] = goal, near
        self._calls[slack]()
        self._met = self._room.notes.item(0)
        return self._room.out[: self._room.total.item()].copy()

    def _follow(self, poses: Array, q: Array) -> tuple[Array, NDArray[np.bool_], Counts]:
        total = len(poses)
        path, attained = np.empty((total, self.robot.n)), np.empty(total, np.bool_)
        met = np.empty(total, np.int64)
        routine(follow)(self._arm, poses, q, room_for(self.robot.n), path, attained, met)
        return path, attained, met

    def _residuals(self, poses: Array, path: Array) -> Array:
        out = np.empty((len(path), 2))
        chain, looks = chain_of(self.robot, self.task)
        routine(residuals, looks)(chain, poses, path, sight_for(self.robot.n), out)
        return out


def _named(met: Counts | int) -> dict[str, Counts]:
    """At which samples each kind of singularity was met, of those that were."""
    bits = np.atleast_1d(met)
    found = {name: np.flatnonzero(bits >> bit & 1) for bit, name in enumerate(_NAMES)}
    return {name: samples for name, samples in found.items() if len(samples)}
