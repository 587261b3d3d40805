"""Finds which arm a log is of: its model, its controller, and whether it was simulated."""

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

# Shortest time between two rows of a CB3, s: its cycle of 8 ms, less what rounding takes away.
MIN_CB3_SPAN_S = 0.0079
# Largest difference of the median time between rows from the cycle of an e-Series, s, if the
# recording computer's clock stamped the rows.
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
        robots: Arms that the log may be of.

    Raises:
        InputFileError: The log's TCP poses fit another arm than the one that is named.
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
        robot = _find_fitting_robot(log, robots, evidence)
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
    """Refuse a log whose TCP poses fit another UR arm than the one that is named.

    A log whose poses fit no arm at all is accepted: the tool may have been changed while it was
    recorded.

    Args:
        log: The log.
        named: The arm that the log or the user names.
        robots: Arms that the log may be of.

    Raises:
        InputFileError: The poses fit another arm; it says how far they are from both.
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


def _find_fitting_robot(
    log: ControllerLog, robots: Sequence[Robot], evidence: list[str]
) -> Robot | None:
    """Return the arm whose kinematics or torques fit a log; None if none does.

    Args:
        log: The log.
        robots: Arms that the log may be of.
        evidence: List of clauses, to which the clause on what fits is appended.
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
        # The poses do not determine how well the kinematics fit, so the torques decided.
        evidence.append("its torques at these joint positions fit")
        return robot
    if residual < OTHER_ARM_RESIDUAL:
        evidence.append(f"its kinematics fit the TCP poses to {millimetres(residual)} mm RMS")
    return robot


def _controller_poses(log: ControllerLog) -> Array | None:
    """Return the TCP pose of each row (T, 6) in UR's form; None if it was not recorded at the rows.

    UR's form is the position, m, and the rotation vector, rad, in the pendant's base frame.
    """
    poses = log.columns.get("actual_TCP_pose")
    if poses is not None:
        return poses

    attained = log.attained_poses
    if attained is None or not np.array_equal(attained.times, log.times):
        return None
    in_pendant_base = pose.compose(PENDANT_BASE, attained.values)
    rotations = pose.rotation_vectors(in_pendant_base[:, 3:])
    return np.concatenate([in_pendant_base[:, :3], rotations], axis=1)


def _find_cycle(log: ControllerLog, robot: Robot | None, evidence: list[str]) -> float | None:
    """Return the controller's cycle, s; None if the log does not show it.

    Args:
        log: The log.
        robot: The arm; None if it is not known.
        evidence: List of clauses, to which the clause on what shows the cycle is appended.
    """
    if log.cycle is not None:
        evidence.append("the log states the cycle")
        return log.cycle
    if robot is not None and robot.series:
        return robot.period

    spans = np.diff(log.times)
    if log.clock is not Clock.CONTROLLER:
        # Stamps of the recording computer jitter, but their median span does not.
        median_span = float(np.median(spans))
        if abs(median_span - E_SERIES_CYCLE) < HOST_CYCLE_TOLERANCE_S:
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

    Only targets that move show it: while a real arm is switched off, its controller reports the
    measured positions as targets.
    """
    if log.target_q is None or log.actual_q is None:
        return None
    target_ranges = np.ptp(log.target_q, axis=0)
    if not target_ranges.any():
        return None
    return bool(np.array_equal(log.target_q, log.actual_q))


def _with_tool(log: ControllerLog, robot: Robot | None) -> Robot | None:
    """Return a robot with the tool that a log's poses show; the same robot without poses."""
    poses = _controller_poses(log)
    if robot is None or poses is None or log.actual_q is None:
        return robot
    return replace(robot, tcp=estimate_tool(robot, log.actual_q, poses))
