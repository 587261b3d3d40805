"""Sets the stage of the suite: an arm, its motions' place and size, and what it can follow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.experiments.arm import within_limits
from simbridge.experiments.layout import choose_layout
from simbridge.ik.reaching import fallback_solver
from simbridge.ik.solver import Solver
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Height by which an arm must be able to raise its tool for its motions to rise, m, on an arm of
# scale 1.
TRIED_SHIFT = 0.1
# Angle by which an arm must be able to turn its tool about an axis for its motions to turn about
# it, rad.
TRIED_TURN = 0.3
# Number of targets that are solved together before the next check whether they were attained.
TARGETS_PER_CHUNK = 8
# Largest joint motion between two targets without a jump to another branch of solutions, rad or m.
# Close to a singularity a joint may turn by half of this within a control period.
MAX_JUMP = 1.0
# Fraction of a control period by which a duration may fall short of whole periods, by rounding.
PERIOD_ROUNDING = 1e-9


@dataclass(frozen=True)
class Stage:
    """An arm, and the place and size of its motions.

    Attributes:
        robot: The arm.
        scale: Factor of all lengths and speeds, 1 on a UR10.
        centre: Centre of the motions (3,), in base_link, m.
        orientation: Orientation of the tool (4,), a unit quaternion.
        lift: Factor of vertical shifts: 1, or 0 if the arm cannot raise its tool.
        turns: Factors (3,) of rotations about the axes of base_link: 1, or 0 for an axis about
            which the arm cannot turn its tool.
        solver: Solver that decides which poses can be reached, and from which joint positions a
            motion begins, for all solvers that are compared.
    """

    robot: Robot
    scale: float
    centre: Array
    orientation: Array
    lift: float
    turns: Array
    solver: Solver

    @property
    def central_pose(self) -> Array:
        """The pose (7,) about which the motions take place."""
        return np.concatenate([self.centre, self.orientation])

    def shrink(self, factor: float) -> Stage:
        """Return the same stage for smaller motions."""
        return replace(self, scale=self.scale * factor)

    def instants(self, duration: float) -> Array:
        """Return the instants (T,) of the control periods from 0 to a duration, s."""
        periods = int(duration / self.robot.period + PERIOD_ROUNDING)
        return self.robot.period * np.arange(periods + 1, dtype=float)

    def displace(self, shifts: Array, turns: Array) -> Array:
        """Return poses (T, 7) that are displaced from the central one.

        Displacements in directions in which the arm cannot move its tool are left out.

        Args:
            shifts: Translations (T, 3) on an arm of scale 1, m.
            turns: Rotation vectors (T, 3) about the axes of base_link, rad.
        """
        displaced = turn_poses(np.tile(self.central_pose, (len(shifts), 1)), turns * self.turns)
        displaced[:, :3] += self.scale * shifts * np.array([1.0, 1.0, self.lift])
        return displaced

    def restrict(self, poses: Array) -> Array:
        """Return poses (T, 7) near the centre without displacements that the arm cannot make.

        An arm that cannot raise its tool, for example, gets them at the height of the centre.
        """
        if self.lift and self.turns.all():
            return poses
        shifts, turns = pose.error(poses, self.central_pose)
        return self.displace(shifts / self.scale, turns)

    def solve(self, target: Array) -> Array | None:
        """Return joint positions (n,) for a pose (7,), from home; None if it is out of reach."""
        solution = self.solver.solve(target)
        return solution.q if solution.converged else None


def set_stage(robot: Robot) -> Stage:
    """Return the stage for an arm: where it can follow motions, and in which directions.

    Raises:
        TargetOutOfReach: The arm can follow no motion, not even a small square around its tool.
    """
    # Begin with a stage whose motions neither rise nor turn, until the arm is known to be able to.
    layout = choose_layout(robot)
    stage = Stage(
        robot=robot,
        scale=layout.scale,
        centre=layout.centre,
        orientation=layout.orientation,
        lift=0.0,
        turns=np.zeros(3),
        solver=fallback_solver(robot, robot.task),
    )

    # Try to raise the tool at the centre, and to turn it there about each axis of base_link.
    raised = stage.central_pose
    raised[2] += TRIED_SHIFT * stage.scale
    lift = 0.0 if stage.solve(raised) is None else 1.0

    turns = np.zeros(3)
    for axis in range(3):
        rotation_vector = np.zeros(3)
        rotation_vector[axis] = TRIED_TURN
        turned = turn_poses(stage.central_pose, rotation_vector)
        turns[axis] = 0.0 if stage.solve(turned) is None else 1.0
    return replace(stage, lift=lift, turns=turns)


def smooth_step(fraction: Array) -> Array:
    """Return the progress (T,), 0 to 1, of a minimum-jerk motion at fractions (T,) of its duration.

    It is the polynomial 10 x^3 - 15 x^4 + 6 x^5 of Flash and Hogan (1985).
    """
    x = np.clip(fraction, 0.0, 1.0)
    return x**3 * (10.0 + x * (6.0 * x - 15.0))


def turn_poses(poses: Array, rotation_vectors: Array) -> Array:
    """Return poses (..., 7), each turned about its position.

    Args:
        poses: The poses (..., 7).
        rotation_vectors: Rotation vectors (..., 3) about the axes of base_link, rad.
    """
    turned = np.array(poses, dtype=float)
    turned[..., 3:] = pose.multiply(pose.quaternions(rotation_vectors), turned[..., 3:])
    return turned


def follow(stage: Stage, targets: Array, start: Array) -> Array | None:
    """Return the joint positions (T, n) with which the arm follows dense targets.

    Args:
        stage: The arm and its solver.
        targets: Poses (T, 7).
        start: Joint positions (n,) to begin with.

    Returns:
        The joint positions; None if a target cannot be attained within the joint limits, or only
        with a jump.
    """
    parts = []
    # A target that cannot be attained takes long to solve: short chunks end the work early.
    for begin in range(0, len(targets), TARGETS_PER_CHUNK):
        chunk = targets[begin : begin + TARGETS_PER_CHUNK]
        joints, _, converged = stage.solver.solve_each(chunk, start)
        jumps = np.abs(np.diff(joints, axis=0, prepend=start[None]))
        is_inside = within_limits(stage.robot, joints)
        if not converged.all() or not is_inside or jumps.max() > MAX_JUMP:
            return None
        parts.append(joints)
        start = joints[-1]
    return np.concatenate(parts)


def attains_all(stage: Stage, targets: Array, start: Array) -> bool:
    """Return whether the arm attains each of some targets within its joint limits.

    Args:
        stage: The arm and its solver.
        targets: Poses (T, 7).
        start: Joint positions (n,) from which the first target is solved; the others are solved
            from the solution before.
    """
    joints = start
    for target in targets:
        solution = stage.solver.solve(target, joints)
        if not solution.converged:
            return False
        joints = solution.q
    return True
