"""Makes everything that the suite asks of an arm: motions, and sets of single poses."""

from __future__ import annotations

from simbridge.errors import TargetOutOfReach
from simbridge.experiments.suite.boundaries import make_boundary_motions
from simbridge.experiments.suite.poses import make_pose_sets
from simbridge.experiments.suite.shapes import make_shapes
from simbridge.experiments.suite.singularities import make_singular_lines
from simbridge.experiments.suite.stage import set_stage
from simbridge.experiments.suite.streams import make_streams
from simbridge.experiments.suite.suite_motion import PoseSet, SuiteMotion
from simbridge.robot.robot import Robot


def make_motions(robot: Robot, seed: int) -> tuple[list[SuiteMotion], list[PoseSet], list[str]]:
    """Return the motions and the sets of poses for an arm, which are the same for the same seed.

    Args:
        robot: The arm, with its home, tool and task.
        seed: Seed of everything that is random.

    Returns:
        The motions, the sets of poses, and notes on what the arm cannot do.
    """
    notes: list[str] = []
    motions: list[SuiteMotion] = []
    try:
        stage = set_stage(robot)
    except TargetOutOfReach as error:
        notes.append(f"{error} Solvers are compared on single poses only.")
    else:
        motions += make_shapes(stage, notes)
        motions += make_singular_lines(stage, notes)
        motions += make_boundary_motions(stage, notes)
        motions += make_streams(stage, seed, notes)
    pose_sets = make_pose_sets(robot, seed, notes)
    return motions, pose_sets, notes
