"""Which arm a log is of: its model, its controller, and whether it was simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simbridge.errors import InputFileError
from simbridge.identification.identification import choose_robot, title_of_body
from simbridge.identification.kinematics import (
    OTHER_ARM_RESIDUAL,
    PENDANT_BASE,
    estimate_tool,
    nominal_residual,
)
from simbridge.identification.read_motion import E_SERIES_CYCLE, find_cycle
from simbridge.identification.target_motion import NotIdentified
from simbridge.judging.log import Clock, ControllerLog
from simbridge.robot import pose
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import millimetres

# Rows closer to each other than this, s, are from a controller with a cycle of 2 ms.
MIN_CB3_SPAN_S = 0.0079
# Median spans that are a controller's cycle if the stamps are those of another clock, s.
HOST_CYCLE_TOLERANCE_S = 2e-4


@dataclass(frozen=True)
class Arm:
    """The arm of a log, as far as the log shows it.

    Attributes:
        robot: The arm's name for --robot; None if it is not known.
        title: The arm for people, with those that have the same links: "UR5e or UR7e"; "" if it
            is not known.
        series: The controller's series, "CB3" or "e-Series"; "" if it is not known.
        cycle_s: The controller's cycle, s; None if it is not known.
        is_simulated: Whether the joints are exactly at their targets, as no real arm's are; None
            if targets or positions were not recorded, or the targets rest.
        evidence: What shows the arm and its controller, as clauses.
    """

    robot: str | None
    title: str
    series: str
    cycle_s: float | None
    is_simulated: bool | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LoggedArm:
    """The arm of a log, and the robot that stands for it in calculations.

    Attributes:
        arm: What is known of the arm.
        robot: The robot, with the tool of the log where its poses show that; None if the arm is
            not known.
    """

    arm: Arm
    robot: Robot | None


def find_arm(log: ControllerLog, robots: Sequence[Robot]) -> LoggedArm:
    """Find the arm of a log.

    Args:
        log: The log.
        robots: Arms that it may be of.

    Raises:
        InputFileError: The poses of the log fit another arm than the named one.
    """
    named = next((robot for robot in robots if robot.name == log.robot), None)
    evidence: list[str] = []
    robot = named
    title = ""
    if named is not None:
        _refuse_other_arm(log, named, robots)
        title = named.title or named.name
        evidence.append(f"the log or the user names the {title}")
    else:
        robot = _fitting_robot(log, robots, evidence)
        title = "" if robot is None else title_of_body(robot, robots)

    cycle = _find_cycle(log, robot, evidence)
    series = "" if robot is None else robot.series
    if not series and cycle is not None:
        series = "e-Series" if cycle == E_SERIES_CYCLE else "CB3"

    arm = Arm(
        robot=None if robot is None else robot.name,
        title=title,
        series=series,
        cycle_s=cycle,
        is_simulated=_is_simulated(log),
        evidence=tuple(evidence),
    )
    return LoggedArm(arm, _with_tool(log, robot))


def _refuse_other_arm(log: ControllerLog, named: Robot, robots: Sequence[Robot]) -> None:
    """Refuse a UR arm that a log is said to be of, if its TCP poses fit another one.

    Poses that fit no arm refuse nothing: the tool may have been changed while they were recorded.

    Args:
        log: The log.
        named: The arm that the log or the user names.
        robots: Arms that the log may be of.

    Raises:
        InputFileError: Says how far the poses are from both arms.
    """
    poses = log.columns.get("actual_TCP_pose")
    if poses is None or log.actual_q is None or not named.series:
        return

    try:
        named_residual = nominal_residual(named, log.actual_q, poses)
    except NotIdentified:
        return
    if named_residual <= OTHER_ARM_RESIDUAL:
        return

    candidates = [robot for robot in robots if robot.series and robot.n == named.n]
    residuals = [nominal_residual(robot, log.actual_q, poses) for robot in candidates]
    best = int(np.argmin(residuals))
    if residuals[best] > OTHER_ARM_RESIDUAL:
        return

    reason = (
        f"it is off by {millimetres(named_residual)} mm RMS with the kinematics of a "
        f"{named.title or named.name}, but by {millimetres(residuals[best])} mm with those of a "
        f"{title_of_body(candidates[best], candidates)}: name the right arm (--robot)"
    )
    raise InputFileError(log.name, reason, field="actual_TCP_pose")


def _fitting_robot(
    log: ControllerLog, robots: Sequence[Robot], evidence: list[str]
) -> Robot | None:
    """Return the arm whose kinematics or torques fit a log; None if none does.

    Args:
        log: The log.
        robots: Arms that it may be of.
        evidence: Clauses, to which one is added.
    """
    candidates = [robot for robot in robots if robot.n == log.q.shape[1]]
    samples = log.samples()
    poses = _controller_poses(log)
    if poses is not None:
        samples = replace(samples, columns={**samples.columns, "actual_TCP_pose": poses})
    try:
        robot = choose_robot(samples, candidates)
    except NotIdentified:
        return None

    if poses is None or log.actual_q is None:
        evidence.append("its torques at these joint positions fit")
        return robot
    try:
        residual = nominal_residual(robot, log.actual_q, poses)
    except NotIdentified:
        evidence.append("its torques at these joint positions fit")
        return robot
    if residual < OTHER_ARM_RESIDUAL:
        evidence.append(f"its kinematics fit the TCP poses to {millimetres(residual)} mm RMS")
    return robot


def _controller_poses(log: ControllerLog) -> Array | None:
    """Return the poses of the TCP (T, 6) at the rows, in the pendant's base, as UR writes them.

    They are None if they were not recorded at the rows.
    """
    poses = log.columns.get("actual_TCP_pose")
    attained = log.attained_poses
    if poses is not None or attained is None or not np.array_equal(attained.times, log.times):
        return poses
    in_base = pose.compose(PENDANT_BASE, attained.values)
    return np.concatenate([in_base[:, :3], pose.rotation_vectors(in_base[:, 3:])], axis=1)


def _find_cycle(log: ControllerLog, robot: Robot | None, evidence: list[str]) -> float | None:
    """Return the controller's cycle, s; None if the log does not show it.

    Args:
        log: The log.
        robot: The arm; None if it is not known.
        evidence: Clauses, to which one is added.
    """
    if log.cycle is not None:
        evidence.append("the log states the cycle")
        return log.cycle
    if robot is not None and robot.series:
        return robot.period

    spans = np.diff(log.times)
    if log.clock is not Clock.CONTROLLER:
        # Stamps of another clock jitter, but their median does not.
        span = float(np.median(spans))
        if abs(span - E_SERIES_CYCLE) < HOST_CYCLE_TOLERANCE_S:
            evidence.append("rows are 2 ms apart")
            return E_SERIES_CYCLE
        return None
    if spans.min() < MIN_CB3_SPAN_S:
        evidence.append("rows are closer to each other than a CB3's cycle")
        return E_SERIES_CYCLE

    cycle = find_cycle(log.times, log.target_qd, log.target_qdd)
    if cycle is not None:
        evidence.append(f"target_qd changes by {1e3 * cycle:g} ms of target_qdd from row to row")
    return cycle


def _is_simulated(log: ControllerLog) -> bool | None:
    """Return whether the joints are exactly at their targets; None if that is not known.

    At rest the targets of a real arm without power are its measured positions.
    """
    if log.target_q is None or log.actual_q is None or not np.ptp(log.target_q, axis=0).any():
        return None
    return bool(np.array_equal(log.target_q, log.actual_q))


def _with_tool(log: ControllerLog, robot: Robot | None) -> Robot | None:
    """Return a robot with the tool that the poses of a log show; as it is without poses."""
    poses = _controller_poses(log)
    if robot is None or poses is None or log.actual_q is None:
        return robot
    return replace(robot, tcp=estimate_tool(robot, log.actual_q, poses))
