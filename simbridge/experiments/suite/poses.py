"""Makes sets of single poses: random ones, poses near singularities, and poses out of reach."""

from __future__ import annotations

import numpy as np

from simbridge.experiments.arm import dexterity, random_joints
from simbridge.experiments.suite.suite_motion import PoseSet
from simbridge.ik.reaching import fallback_solver
from simbridge.robot.kinematics import joint_origins, tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import significant

# Number of random poses.
RANDOM_POSES = 100
# Number of poses near singularities.
SINGULAR_POSES = 50
# Number of poses out of reach.
POSES_OUT_OF_REACH = 20
# Number of random postures from which those near singularities and those far out are chosen.
TRIED_POSTURES = 4000
# Factors by which the distance of an outermost pose is extended; the first one with which the pose
# cannot be attained is chosen.
EXTENSIONS = (1.02, 1.05, 1.1, 1.2, 1.5)


def make_pose_sets(robot: Robot, seed: int, notes: list[str]) -> list[PoseSet]:
    """Return the sets of single poses for an arm, each with random starts.

    The same seed gives the same sets, since all random numbers are drawn in the order of the sets.

    Args:
        robot: The arm.
        seed: Seed of poses and starts.
        notes: List of notes, to which one is appended if a set is left out.
    """
    # The 1 keeps these random numbers apart from those of the solvers' restarts: with equal ones,
    # the first postures would be those from which solvers restart.
    random = np.random.default_rng((seed, 1))

    # Poses at random joint positions.
    targets = tool_path(robot, random_joints(robot, RANDOM_POSES, random))
    starts = random_joints(robot, RANDOM_POSES, random)
    sets = [
        PoseSet(
            name="random_poses",
            description=(
                "The tool's poses at random joint positions within the limits, from other random "
                "joint positions."
            ),
            targets=targets,
            starts=starts,
            reachable=True,
        )
    ]

    # Of many random postures, those closest to a singularity.
    postures = random_joints(robot, TRIED_POSTURES, random)
    ratios = dexterity(robot, postures)
    most_singular = np.argsort(ratios)[:SINGULAR_POSES]
    largest_ratio = float(ratios[most_singular[-1]])
    sets.append(
        PoseSet(
            name="near_singularities",
            description=(
                f"The {SINGULAR_POSES} of {TRIED_POSTURES} such poses that are nearest to a "
                "singularity: the smallest singular value of the Jacobian is at most "
                f"{significant(largest_ratio, digits=2)} of the largest."
            ),
            targets=tool_path(robot, postures[most_singular]),
            starts=random_joints(robot, SINGULAR_POSES, random),
            reachable=True,
        )
    )

    # Poses just beyond the reach of the arm.
    out_of_reach = _find_poses_out_of_reach(robot, postures)
    if len(out_of_reach):
        sets.append(
            PoseSet(
                name="out_of_reach",
                description=(
                    "Poses a little farther out than the arm gets; a solver has to say that it "
                    "did not attain them."
                ),
                targets=out_of_reach,
                starts=random_joints(robot, len(out_of_reach), random),
                reachable=False,
            )
        )
    else:
        notes.append(
            f"out_of_reach is left out: no pose was found that {robot.name} cannot attain."
        )
    return sets


def _find_poses_out_of_reach(robot: Robot, postures: Array) -> Array:
    """Return poses (N, 7) just out of an arm's reach; fewer, or none, if that is not limited.

    They are the poses of the outermost postures, moved away from the arm's first joint until not
    even their position can be attained.

    Args:
        robot: The arm.
        postures: Joint positions (K, n) among which the outermost are searched.
    """
    first_joint = joint_origins(robot.placements, robot.prismatic, robot.home[None])[0, 0]
    poses = tool_path(robot, postures)
    distances = np.linalg.norm(poses[:, :3] - first_joint, axis=1)
    outermost = poses[np.argsort(-distances)[:POSES_OUT_OF_REACH]]

    solver = fallback_solver(robot, "position")
    beyond = []
    for outer in outermost:
        for extension in EXTENSIONS:
            candidate = outer.copy()
            candidate[:3] = first_joint + extension * (outer[:3] - first_joint)
            if not solver.solve(candidate).converged:
                beyond.append(candidate)
                break
    return np.array(beyond).reshape(-1, 7)
