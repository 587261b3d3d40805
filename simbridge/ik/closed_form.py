"""Inverse kinematics in closed form: every solution at once, for UR arms and planar arms of two links.

Which arms have a closed form is found in the chain itself, not in its name, nor in the choice of its frames. Two joint
axes with parallel or crossing directions are joined by Rz(phi) Tz(d) Tx(a) Rx(alpha) Rz(psi) Tz(e). The turns about and
shifts along an axis belong as well to the joint that turns about it, so that any chain of the right structure comes
down to the few lengths of its Denavit-Hartenberg table, and offsets of the joint angles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import NoClosedForm
from simbridge.ik.branches import MAX_BRANCHES, SLACK, compiled_search
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.solver import Solution, Solver
from simbridge.ik.targets import Target, as_joints, as_pose, as_poses, freed
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array, Counts
from simbridge.robot.robot import Robot

_NAMES = ("wrist", "elbow", "shoulder")
# URDF files give right angles with nine or ten digits; the axes of real arms are off by far more than that.
PARALLEL = 1e-8
# Lengths and angles below this count as zero: their effect on a pose stays below the promised accuracy.
_ON_AXIS = 1e-10


@dataclass(frozen=True)
class ClosedFormParameters(SolverParameters):
    """The closed form has no settings."""

    def build(self, robot: Robot) -> ClosedForm:
        """Return the solver."""
        return ClosedForm(robot, self)


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
    than that: then pan and wrist 3 turn within what rounding leaves open, and one branch is given (`branches.py`).

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
        # The singularities at each sample of the last call, as bits.
        self._met: Counts = np.zeros(1, np.int64)

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    @property
    def singular_samples(self) -> dict[str, Counts]:
        """At which samples (K,), counted from 0, each of `singular` was in the last call of `branches` (its nearest
        solution), `step`, `track`, `solve` or `solve_each`."""
        return _named(self._met)

    @property
    def singular(self) -> tuple[str, ...]:
        """Those of "wrist", "elbow" and "shoulder" that were singular in the last call, at one sample or more; empty
        where every joint was determined and no two branches met."""
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
        self._met = np.zeros(1, np.int64)

    def branches(self, target: Target, near: Array | Sequence[float] | None = None) -> Array:
        """Every solution within the joint limits (k, n), rad, nearest first; k = 0 when the target is out of reach, or
        only attained beyond a limit.

        Each branch is given once: of the positions that differ by whole turns, the nearest one within the limits, joint
        by joint. The order is by the root of the summed squares of the joint differences.

        Args:
            target: The pose.
            near: Joint positions (n,), rad, from which nearness counts; the solver's present ones by default, which
                are the robot's home before the first step.

        Raises:
            InvalidParameter: The target is not a pose, or `near` not one finite number per joint.
        """
        goal, begin = as_pose(target), self._q if near is None else as_joints(near, self.robot.n)
        out, notes = np.empty((MAX_BRANCHES, self.robot.n)), np.zeros(MAX_BRANCHES, np.int64)
        count = compiled_search("branches")(*self._arm, goal, begin, SLACK, out, notes)
        self._met = notes[:1]
        return out[: max(0, count)]

    def _advance(self, poses: Array, memory: Array, out: Array) -> None:
        out[:], _, self._met = self._follow(poses, memory)

    def _solve(self, goal: Array, start: Array) -> Solution:
        """The solution nearest to the start; out of reach what `step` would do, not converged."""
        path, residuals, attained = self._solve_each(goal[None], start)
        return Solution(
            path[0], bool(attained[0]), float(residuals[0, 0]), float(residuals[0, 1]), 1, 0
        )

    def _solve_each(self, poses: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        path, found, self._met = self._follow(poses, start)
        attained = tool_path(self.robot, path)
        parts = pose.error(freed(self.task, poses, attained), attained)
        return path, np.stack([np.linalg.norm(part, axis=1) for part in parts], axis=1), found

    def lag(self, period: float) -> float | None:
        """None: 0 s."""
        return 0.0

    def _follow(self, poses: Array, q: Array) -> tuple[Array, NDArray[np.bool_], Counts]:
        total = len(poses)
        path, attained = np.empty((total, self.robot.n)), np.empty(total, np.bool_)
        met = np.empty(total, np.int64)
        compiled_search("follow")(*self._arm, poses, q, path, attained, met)
        return path, attained, met


def _named(met: Counts) -> dict[str, Counts]:
    """The samples of each kind of singularity that was met."""
    found = {name: np.flatnonzero(met >> bit & 1) for bit, name in enumerate(_NAMES)}
    return {name: samples for name, samples in found.items() if len(samples)}


@dataclass(frozen=True)
class Structure:
    """The parameters of an arm with a closed form. All arrays are contiguous, for compiled code.

    Attributes:
        task: The part of a target that it attains: "pose", or "position" (see `targets.py`).
        lengths: m. A UR arm (4,): upper arm a2, forearm a3, d4 (all of the offset along the parallel axes) and d5.
            A planar arm (3,): its two links, and the height of the TCP over the base.
        joints: (3, n), rad: theta - q, the standard table's joint angles less the robot's; lower and upper limits.
        frames: (2, 4, 4): the base in base_link, z along the first axis, a UR arm's origin on the second; and the TCP
            in a UR arm's last joint, whose origin is on the axis of wrist 2 (on a planar arm: identity).
    """

    task: str
    lengths: Array
    joints: Array
    frames: Array


@dataclass(frozen=True)
class _Joining:
    """Rz(phi) Tz(d) Tx(a) Rx(alpha) Rz(psi) Tz(e), alpha being given."""

    phi: float
    d: float
    a: float
    psi: float
    e: float


def structure_of(robot: Robot) -> Structure:
    """The arm as a UR arm or as a planar arm of two links.

    Raises:
        NoClosedForm: It is neither.
    """
    slides = bool(np.any(robot.prismatic))
    if slides or robot.n not in (2, 6):
        raise NoClosedForm(
            robot.name, f"it has {robot.n} joints{', of which some slide' if slides else ''}"
        )
    return _ur(robot) if robot.n == 6 else _planar(robot)


def _ur(robot: Robot) -> Structure:
    """Standard DH with alpha = pi/2, 0, 0, pi/2, -pi/2; of the lengths only a2, a3, d1, d4, d5 and the last frame."""
    chain = robot.placements
    names = robot.joint_names
    pan = _crossing(chain[1], 1.0, robot, names[0:2])
    upper = _parallel(chain[2], robot, names[1:3])
    fore = _parallel(chain[3], robot, names[2:4])
    wrist = _crossing(chain[4], 1.0, robot, names[3:5])
    last = _crossing(chain[5], -1.0, robot, names[4:6])
    if min(upper.a, fore.a) < _ON_AXIS:
        raise NoClosedForm(
            robot.name, f"of the axes of {names[1]}, {names[2]} and {names[3]} two are one line"
        )
    joinings = (pan, upper, fore, wrist, last)
    before = [0.0, *(j.psi for j in joinings)]
    after = [*(j.phi for j in joinings), 0.0]
    d4 = pan.e + upper.d + upper.e + fore.d + fore.e + wrist.d
    return Structure(
        task="pose",
        lengths=np.array([upper.a, fore.a, d4, wrist.e + last.d]),
        joints=np.array([np.add(before, after), robot.position_min, robot.position_max]),
        frames=np.array([chain[0] @ _shift(pan.d), _shift(last.e) @ chain[6]]),
    )


def _planar(robot: Robot) -> Structure:
    link = _parallel(robot.placements[1], robot, robot.joint_names)
    x, y, z = robot.placements[2, :3, 3]
    second = math.hypot(x, y)
    if min(link.a, second) < _ON_AXIS:
        raise NoClosedForm(robot.name, "one of its two links has no length")
    return Structure(
        task="position",
        lengths=np.array([link.a, second, link.d + link.e + z]),
        joints=np.array(
            [[link.phi, link.psi + math.atan2(y, x)], robot.position_min, robot.position_max]
        ),
        frames=np.array([robot.placements[0], np.eye(4)]),
    )


def _parallel(placement: Array, robot: Robot, names: tuple[str, ...]) -> _Joining:
    """alpha = 0: parallel axes that point the same way."""
    rotation, (x, y, z) = placement[:3, :3], placement[:3, 3]
    if math.hypot(rotation[0, 2], rotation[1, 2]) > PARALLEL or rotation[2, 2] < 0.0:
        raise NoClosedForm(robot.name, f"the axes of {names[0]} and {names[1]} are not parallel")
    phi = math.atan2(y, x)
    turn = math.atan2(rotation[1, 0], rotation[0, 0])
    return _Joining(phi=phi, d=float(z), a=math.hypot(x, y), psi=turn - phi, e=0.0)


def _crossing(placement: Array, direction: float, robot: Robot, names: tuple[str, ...]) -> _Joining:
    """alpha = direction pi/2 and a = 0: axes that meet at a right angle."""
    rotation, shift = placement[:3, :3], placement[:3, 3]
    x, y, cosine = direction * rotation[:, 2]
    if abs(cosine) > PARALLEL:
        raise NoClosedForm(
            robot.name, f"the axes of {names[0]} and {names[1]} are not at a right angle"
        )
    phi = math.atan2(x, -y)
    common = np.array([math.cos(phi), math.sin(phi), 0.0])
    if abs(float(common @ shift)) > _ON_AXIS:
        raise NoClosedForm(robot.name, f"the axes of {names[0]} and {names[1]} do not meet")
    # The common normal is the x axis in between, from which psi turns to the next frame's.
    psi = math.atan2(-float(common @ rotation[:, 1]), float(common @ rotation[:, 0]))
    return _Joining(phi=phi, d=float(shift[2]), a=0.0, psi=psi, e=float(rotation[:, 2] @ shift))


def _shift(distance: float) -> Array:
    frame = np.eye(4)
    frame[2, 3] = distance
    return frame
