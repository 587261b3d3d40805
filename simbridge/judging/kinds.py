"""Decides by evidence which kind of motion a controller made; without enough it is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from simbridge.identification.movej import MovejEvidence, find_movej
from simbridge.judging.freedrive_evidence import FreedriveEvidence, find_freedrive
from simbridge.judging.log import ControllerLog
from simbridge.judging.logged_motions import Motion, moving_rows
from simbridge.judging.servoj_evidence import (
    ServojEvidence,
    ServojSignals,
    find_servoj,
    find_settling,
)
from simbridge.judging.speedj_evidence import SpeedjEvidence, find_speedj
from simbridge.robot.robot import Robot

# Smallest number of rows in which servoj can be recognized.
MIN_ROWS = 12
# Longest time after a motion in which the arm may still settle, s.
MAX_SETTLING_S = 0.5

KindName = Literal["servoj", "servoj or servoL", "speedj", "movej", "freedrive", "unknown"]


@dataclass(frozen=True)
class MotionKind:
    """The kind of a motion with its evidence.

    Attributes:
        name: The kind.
        servoj: Tuning of servoj; None for other kinds.
        speedj: How velocities follow commands; None for other kinds.
        movej: The trapezoidal speed profile; None for other kinds.
        freedrive: How targets follow the joints; None for other kinds.
        reason: Why the kind is unknown, as a clause; "" if it is known.
    """

    name: KindName
    servoj: ServojEvidence | None = None
    speedj: SpeedjEvidence | None = None
    movej: MovejEvidence | None = None
    freedrive: FreedriveEvidence | None = None
    reason: str = ""


def find_kind(
    log: ControllerLog, motion: Motion, robot: Robot | None
) -> tuple[MotionKind, ServojSignals | None]:
    """Return the kind of a motion, and what servoj's targets reveal of the commands.

    Args:
        log: The log.
        motion: The motion.
        robot: The arm; None if it is not known.

    Returns:
        The kind, and the revealed signals; None for other kinds than servoj.
    """
    other_kind = _find_kind_besides_servoj(log, motion)
    if other_kind is not None:
        return other_kind, None

    row_count = motion.end - motion.first
    if row_count < MIN_ROWS:
        reason = f"it has only {row_count} rows, and {MIN_ROWS} are needed to recognize servoj"
        return MotionKind("unknown", reason=reason), None

    servoj, reason = find_servoj(log.samples(motion.rows), log.position_commands, robot)
    if servoj is None and log.position_commands is None:
        # Without commands, how the arm settles after the motion may show the tuning.
        settling_rows = slice(motion.first, _find_last_settling_row(log, motion) + 1)
        servoj = find_settling(log.samples(settling_rows), robot, end_s=motion.end_s)
    if servoj is None:
        return MotionKind("unknown", reason=reason), None

    # Only joint commands tell servoj from servoL, which obeys the same law.
    name: KindName = "servoj" if servoj.evidence.has_commands else "servoj or servoL"
    return MotionKind(name, servoj=servoj.evidence), servoj.signals


def _find_last_settling_row(log: ControllerLog, motion: Motion) -> int:
    """Return the last row in which the arm may settle after a motion, before any other motion."""
    # The row before the next motion, or the log's last.
    last_resting = len(log.times) - 1
    moves_again = np.flatnonzero(moving_rows(log)[motion.end :])
    if len(moves_again):
        last_resting = motion.end + int(moves_again[0]) - 1

    latest_s = motion.end_s + MAX_SETTLING_S
    last_in_time = int(np.searchsorted(log.times, latest_s, side="right")) - 1
    return max(min(last_resting, last_in_time), motion.end - 1)


def _find_kind_besides_servoj(log: ControllerLog, motion: Motion) -> MotionKind | None:
    """Return the kind of a motion that servoj did not make; None if servoj may have made it.

    Freedrive, movej and speedj are tried in this order. A motion without complete joint targets is
    of an unknown kind, since the targets show how the controller moved.
    """
    rows = motion.rows
    times = log.times[rows]
    target = log.target_q
    if target is None:
        reason = "target_q, which shows how the controller moved, was not recorded"
        return MotionKind("unknown", reason=reason)
    if not np.isfinite(target[rows]).all():
        return MotionKind("unknown", reason="target_q has gaps")

    # In freedrive the targets follow the measured joints.
    if log.actual_q is not None and np.isfinite(log.actual_q[rows]).all():
        acceleration = None if log.target_qdd is None else log.target_qdd[rows]
        freedrive = find_freedrive(times, target[rows], log.actual_q[rows], acceleration)
        if freedrive is not None:
            return MotionKind("freedrive", freedrive=freedrive)

    # The targets of movej have a trapezoidal speed profile.
    velocity = log.joint_velocities[rows]
    movej = find_movej(
        times,
        target[rows],
        velocity,
        starts_at_rest=motion.starts_at_rest,
        ends_at_rest=motion.ends_at_rest,
    )
    if movej is not None:
        return MotionKind("movej", movej=movej)

    # The velocities of speedj follow recorded commands.
    if log.speed_commands is not None:
        speedj = find_speedj(times, velocity, log.speed_commands)
        if speedj is not None:
            return MotionKind("speedj", speedj=speedj)

    return None
