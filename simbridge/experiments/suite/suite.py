"""Prepares the suite, and runs one motion or set of poses after another."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simbridge import __version__
from simbridge.errors import UnknownName
from simbridge.experiments import SolversParameters
from simbridge.experiments.arm import choose_arm
from simbridge.experiments.suite import pose_solving
from simbridge.experiments.suite.entrants import Entrant, choose_entrants
from simbridge.experiments.suite.following import Heartbeat, follow_in_turn, warm_up
from simbridge.experiments.suite.measures import jerk_limit, target_jumps
from simbridge.experiments.suite.motion_makers import make_motions
from simbridge.experiments.suite.motion_results import evaluate_motion
from simbridge.experiments.suite.results import (
    ArmFacts,
    Budget,
    MotionFacts,
    MotionResult,
    PoseSetFacts,
    PoseSetResult,
    SuiteResults,
)
from simbridge.experiments.suite.scenario_motion import make_scenario_motion
from simbridge.experiments.suite.suite_motion import PoseSet, SuiteMotion
from simbridge.robot.robot import Robot

# Number of times that every solver follows a motion.
PASSES = 3
# Parameters that say where results go and what they are compared with, and do not belong to them.
OUTPUT_PARAMETERS = ("out", "json", "baseline")

# Function that is called with the results of a motion or a set, one for each solver.
Report = Callable[[Sequence[MotionResult] | Sequence[PoseSetResult]], None]


@dataclass(frozen=True)
class Suite:
    """Everything that the suite needs: the arm, the solvers, the motions and the poses.

    Attributes:
        robot: The arm.
        entrants: The solvers; times are compared with those of the first.
        motions: The motions.
        pose_sets: The sets of single poses.
        results: The results, which have no rows at first.
    """

    robot: Robot
    entrants: Sequence[Entrant]
    motions: Sequence[SuiteMotion]
    pose_sets: Sequence[PoseSet]
    results: SuiteResults

    def run(self, heartbeat: Heartbeat, begin: Callable[[str], None], report: Report) -> None:
        """Complete the results; a motion or a set that has results already is skipped.

        Args:
            heartbeat: Function that is called after each call of a solver.
            begin: Function that is called with the name of each motion and set before it begins.
            report: Function that is called with the results of each motion and set.
        """
        results = self.results
        budget = results.budget
        complete_motions = {result.motion for result in results.motion_results}
        complete_sets = {result.pose_set for result in results.pose_results}

        # All entrants follow a motion in turn, after one warm-up for all motions.
        if self.motions:
            warm_up(self.entrants, self.motions[0])
        for motion in self.motions:
            if motion.name in complete_motions:
                continue
            begin(motion.name)
            followings = follow_in_turn(
                motion,
                self.entrants,
                passes=budget.passes,
                time_limit=budget.motion_time_s,
                heartbeat=heartbeat,
            )
            motion_results = evaluate_motion(self.robot, motion, followings, results.baseline)
            results.motion_results.extend(motion_results)
            report(motion_results)

        # All entrants solve the single poses of a set in turn.
        for pose_set in self.pose_sets:
            if pose_set.name in complete_sets:
                continue
            begin(pose_set.name)
            pose_results = pose_solving.solve_in_turn(
                self.robot, pose_set, self.entrants, budget, heartbeat
            )
            results.pose_results.extend(pose_results)
            report(pose_results)
        results.complete = True


def prepare_suite(parameters: SolversParameters) -> Suite:
    """Return the suite of a command, without results yet.

    Raises:
        SimbridgeError: There is no such arm, solver, rival or motion.
    """
    # The arm, the solvers, and what they are given.
    arm = choose_arm(parameters)
    robot = arm.robot
    entrants, absent = choose_entrants(robot, parameters)
    motions, pose_sets, notes = make_motions(robot, parameters.seed)
    motions += [make_scenario_motion(robot, name) for name in parameters.scenario]
    motions, pose_sets = _select_named(motions, pose_sets, parameters.motion)

    # The parameters that the results keep.
    values: dict[str, Any] = asdict(parameters)
    for name in OUTPUT_PARAMETERS:
        del values[name]

    results = SuiteResults(
        experiment="solvers",
        simbridge=__version__,
        python=platform.python_version(),
        processor=describe_processor(),
        parameters=values,
        arm=_describe_arm(robot),
        budget=_make_budget(robot, parameters.motion_time),
        baseline=entrants[0].name,
        solvers=[entrant.facts for entrant in entrants],
        absent=absent,
        motions=[_describe_motion(robot, motion) for motion in motions],
        pose_sets=[_describe_pose_set(pose_set) for pose_set in pose_sets],
        motion_results=[],
        pose_results=[],
        notes=[*robot.notes, *arm.notes, *notes],
        complete=False,
    )
    return Suite(robot, entrants, motions, pose_sets, results)


def _select_named(
    motions: Sequence[SuiteMotion], pose_sets: Sequence[PoseSet], names: Sequence[str]
) -> tuple[list[SuiteMotion], list[PoseSet]]:
    """Return the motions and sets with one of some names; all of them if there are no names.

    Raises:
        UnknownName: No motion or set has one of the names.
    """
    known = [motion.name for motion in motions]
    known += [pose_set.name for pose_set in pose_sets]
    for name in names:
        if name not in known:
            raise UnknownName("motion", name, known)
    chosen = names or known
    return (
        [motion for motion in motions if motion.name in chosen],
        [pose_set for pose_set in pose_sets if pose_set.name in chosen],
    )


def _make_budget(robot: Robot, motion_time: float) -> Budget:
    """Return the time and the calls that each solver has for a motion, and for a single pose.

    Args:
        robot: The arm.
        motion_time: Time for a motion with all its passes, s.
    """
    return Budget(
        motion_time_s=motion_time,
        passes=PASSES,
        pose_time_s=pose_solving.POSE_TIME_S,
        pose_calls=round(pose_solving.POSE_MOTION_S / robot.period),
        pose_motion_s=pose_solving.POSE_MOTION_S,
        tolerance_m=pose_solving.SOLVED_DISTANCE,
        tolerance_rad=pose_solving.SOLVED_ANGLE,
    )


def _describe_arm(robot: Robot) -> ArmFacts:
    """Return the description of the arm in the results."""
    return ArmFacts(
        name=robot.name,
        title=robot.title,
        joints=robot.n,
        period_s=robot.period,
        task=robot.task,
        checksum=robot.checksum,
        speed_limits=robot.max_velocity.tolist(),
        acceleration_limit=robot.max_acceleration,
        jerk_limit=jerk_limit(robot),
    )


def _describe_motion(robot: Robot, motion: SuiteMotion) -> MotionFacts:
    """Return the description of a motion in the results."""
    return MotionFacts(
        name=motion.name,
        group=motion.group,
        description=motion.description,
        steps=len(motion.targets),
        duration_s=(len(motion.targets) - 1) * robot.period,
        loops=motion.loops,
        out_of_reach=1.0 - float(motion.in_reach.mean()),
        jumps=bool(target_jumps(motion.targets, robot.period).any()),
    )


def _describe_pose_set(pose_set: PoseSet) -> PoseSetFacts:
    """Return the description of a set of poses in the results."""
    return PoseSetFacts(
        name=pose_set.name,
        description=pose_set.description,
        poses=len(pose_set.targets),
        reachable=pose_set.reachable,
    )


def describe_processor() -> str:
    """Return the number and the model of this computer's processors: "8 × AMD Ryzen 7"."""
    model = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            model = value.strip()
            break
    return f"{os.cpu_count()} × {model}"
