"""Inverse kinematics in closed form: every solution of a UR arm, or of a planar arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.closed_form_arm import closed_form_arm
from simbridge.ik.kernels.branches import MAX_BRANCHES, SLACK, compiled_search
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.solver import Solution, Solver
from simbridge.ik.targets import Target, adopt_free_components, as_joints, as_pose, as_poses
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array, Counts
from simbridge.robot.robot import Robot

# The singularities, in the order of their bits.
SINGULARITIES = ("wrist", "elbow", "shoulder")


@dataclass(frozen=True)
class ClosedFormParameters(SolverParameters):
    """The closed form has no settings."""

    def build(self, robot: Robot) -> ClosedForm:
        """Return the solver."""
        return ClosedForm(robot, self)


class ClosedForm(Solver):
    """All joint positions that put the tool on the target.

    There are up to eight on a UR arm, two on a planar arm of two links. A planar arm attains
    positions: the rotation of its targets is ignored.

    Singular configurations. Where the axes of wrist 1 and wrist 3 are parallel (theta5 = 0 or pi),
    only the sum of their angles matters: wrist 3 stays where it is (or turns by the smallest angle
    that brings the arm within reach), and the two flips of the wrist are one branch. Where the arm
    is stretched or folded, both elbows are one branch; where the wrist is d4 away from the pan
    axis, as near as it gets, both shoulders are. A planar arm of equal links folded onto its base
    leaves the first joint free: it stays where it is. `singular` and `singular_samples` report
    them.

    Out of reach. `branches` is empty. `step` and `track` point the arm to the target, stretched or
    folded, with the target's rotation: continuous, at rest when the target rests, and with the
    remaining error in `last.residual`. When joint limits forbid that too, the arm stays. A target
    that is out of reach by no more than 1e-11 m (rounding) is attained by the stretched arm. Where
    a stretched or folded elbow meets another singularity, rounding can be more than that: then pan
    and wrist 3 turn within what rounding leaves open, and one branch is given
    (`kernels/rounding.py`).

    Steps go to the nearest solution, even if it is far away: where the present branch ends (at a
    limit or at the boundary of what its shoulder reaches) and another does not, the joints jump.

    Args:
        robot: The arm. Its structure is found in its chain: a URDF of a UR arm will do.
        settings: Empty: the closed form has none.

    Raises:
        NoClosedForm: The arm is neither; calibrated arms are not, since their axes are not quite
            parallel.
    """

    name = "closed-form"

    def __init__(self, robot: Robot, settings: ClosedFormParameters | None = None) -> None:
        super().__init__(robot)
        arm = closed_form_arm(robot)
        self.task = arm.task
        self._arm = (arm.lengths, arm.joints, arm.frames)
        # The singularities at each sample of the last call, as bits.
        self._met: Counts = np.zeros(1, np.int64)

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    @property
    def singular_samples(self) -> dict[str, Counts]:
        """The samples (K,) of the last call at which each of `singular` occurred, from 0.

        Calls are those of `branches` (its nearest solution), `step`, `track`, `solve` and
        `solve_each`.
        """
        return _singular_samples(self._met)

    @property
    def singular(self) -> tuple[str, ...]:
        """The singularities of the last call: some of "wrist", "elbow" and "shoulder".

        Each occurred at one sample or more. Empty where every joint was determined and no two
        branches met.
        """
        return tuple(self.singular_samples)

    def notes(self, poses: Array, q0: Array) -> tuple[str, ...]:
        """Return a remark on the singular samples of the path, if there are any."""
        _, _, singularities = self._follow(as_poses(poses), as_joints(q0, self.robot.n))
        parts = []
        for name, samples in _singular_samples(singularities).items():
            parts.append(f"{name} {len(samples)}, first sample {samples[0]}")
        if not parts:
            return ()
        count = np.count_nonzero(singularities)
        return (
            f"The closed form met singular poses in {count} of {len(singularities)} samples "
            f"({'; '.join(parts)}): joints that such a pose leaves undetermined stay as close as "
            "possible to their previous positions.",
        )

    def reset(self, q: Array | Sequence[float]) -> None:
        super().reset(q)
        self._met = np.zeros(1, np.int64)

    def branches(self, target: Target, near: Array | Sequence[float] | None = None) -> Array:
        """Return every solution within the joint limits (k, n), rad, nearest first.

        k is 0 when the target is out of reach, or only attained beyond a limit. Each branch is
        given once: of the positions that differ by whole turns, the nearest one within the limits,
        joint by joint. The order is by the root of the summed squares of the joint differences.

        Args:
            target: The pose.
            near: Joint positions (n,), rad, from which distances are measured; the solver's present
                ones by default, which are the robot's home before the first step.

        Raises:
            InvalidParameter: The target is not a pose, or `near` not one finite number per joint.
        """
        goal = as_pose(target)
        start = self._q if near is None else as_joints(near, self.robot.n)
        out = np.empty((MAX_BRANCHES, self.robot.n))
        notes = np.zeros(MAX_BRANCHES, np.int64)
        count = compiled_search("branches")(*self._arm, goal, start, SLACK, out, notes)
        self._met = notes[:1]
        return out[: max(0, count)]

    def lag(self, period: float) -> float | None:
        """Return no lag: 0 s."""
        return 0.0

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        path, _, self._met = self._follow(poses, memory)
        out[:] = path

    def _solve(self, goal: Array, start: Array) -> Solution:
        # The solution nearest to the start; out of reach what `step` would do, not converged.
        path, residuals, attained = self._solve_each(goal[None], start)
        distance, angle = residuals[0]
        return Solution(
            q=path[0],
            converged=bool(attained[0]),
            distance=float(distance),
            angle=float(angle),
            iterations=1,
            restarts=0,
        )

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        path, is_attained, self._met = self._follow(poses, start)
        attained = tool_path(self.robot, path)
        parts = pose.error(adopt_free_components(self.task, poses, attained), attained)
        residuals = np.stack([np.linalg.norm(part, axis=1) for part in parts], axis=1)
        return path, residuals, is_attained

    def _follow(self, poses: Array, q: Array) -> tuple[Array, NDArray[np.bool_], Counts]:
        """Go to the nearest solution for each target in turn.

        Args:
            poses: The targets (T, 7).
            q: Joint positions (n,), rad, to begin with, which become the last ones.

        Returns:
            Joint positions (T, n), whether they attain the targets (T,), and their singularities
            (T,), as bits.
        """
        total = len(poses)
        path = np.empty((total, self.robot.n))
        attained = np.empty(total, np.bool_)
        singularities = np.empty(total, np.int64)
        compiled_search("follow")(*self._arm, poses, q, path, attained, singularities)
        return path, attained, singularities


def _singular_samples(singularities: Counts) -> dict[str, Counts]:
    """Return the samples of each kind of singularity that was met.

    Args:
        singularities: The singularities at each sample (T,), as bits.
    """
    samples_by_name = {}
    for bit, name in enumerate(SINGULARITIES):
        samples = np.flatnonzero(singularities >> bit & 1)
        if len(samples):
            samples_by_name[name] = samples
    return samples_by_name
