"""Makes a motion of the suite from a scenario, or from a user's own file of samples."""

from __future__ import annotations

import numpy as np

from simbridge.errors import InvalidTrajectory
from simbridge.experiments.arm import start_posture
from simbridge.experiments.suite.suite_motion import SuiteMotion
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.scenario import load_scenario
from simbridge.robot.robot import Robot

# Smallest number of samples of a trajectory: fewer have no acceleration.
MIN_SAMPLES = 3


def make_scenario_motion(robot: Robot, name: str) -> SuiteMotion:
    """Return a scenario as a motion.

    Args:
        robot: The arm.
        name: Name of a scenario in scenarios/, a script, or a file of samples.

    Raises:
        UnknownName: There is no such scenario.
        InvalidTrajectory: The trajectory has fewer than three samples, too few for an acceleration.
        TargetOutOfReach: No joint positions within the limits attain its first target.
    """
    scenario = load_scenario(name, robot)
    trajectory = scenario.trajectory
    times = np.arange(int(trajectory.duration / robot.period) + 1) * robot.period
    if len(times) < MIN_SAMPLES:
        reason = (
            f"it lasts {trajectory.duration:g} s, less than three control periods of {robot.name}"
        )
        raise InvalidTrajectory(reason, source=trajectory.source)

    # Targets that are held are a stream, of which the trajectory itself is the ideal motion.
    targets = trajectory.target(times, scenario.hold)
    is_stream = scenario.hold != "linear"

    # A target is in reach if it is attained with all joints within their limits.
    start = start_posture(robot, targets[0])
    joints, _, is_attained = ForwardDynamics(robot).solve_each(targets, start)
    is_inside = (joints >= robot.position_min) & (joints <= robot.position_max)
    return SuiteMotion(
        name=name,
        group="stream" if is_stream else "tracking",
        description="The scenario, from the command line.",
        targets=targets,
        reference=trajectory.target(times, "linear") if is_stream else None,
        start=start,
        in_reach=is_attained & is_inside.all(axis=1),
    )
