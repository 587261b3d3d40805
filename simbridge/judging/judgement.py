"""Judges a log: what the arm did in each motion, how far it was behind, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.judging.arm import Arm, ArmModel, find_arm
from simbridge.judging.events import (
    Gap,
    Jump,
    Slowdown,
    Stop,
    find_gaps,
    find_jumps,
    find_slowdowns,
    find_stop,
)
from simbridge.judging.goal_path import goal_positions
from simbridge.judging.kinds import MotionKind, find_kind
from simbridge.judging.limits import Peaks, find_peaks
from simbridge.judging.log import ControllerLog, Missing
from simbridge.judging.motions import Motion, find_motions, joint_velocities
from simbridge.judging.signal_chain import SIGNALS, Signals, at_instants
from simbridge.judging.tracking_errors import TrackingErrors, split_error
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.law import JointMotion
from simbridge.servo.observation import observe_setpoints


@dataclass(frozen=True)
class JudgedMotion:
    """A motion of a log, judged.

    Attributes:
        motion: When it was.
        travel_rad: Largest range of a joint's positions, rad.
        kind: How the controller made it.
        errors: The tracking error and its parts; None if the log has only one signal of the joints.
        peaks: The largest speed and acceleration, with the shares of the arm's limits.
        slowdowns: Spans at less than full speed.
        stop: What ended it, if not the motion itself; None if the log shows nothing of that kind.
    """

    motion: Motion
    travel_rad: float
    kind: MotionKind
    errors: TrackingErrors | None
    peaks: Peaks
    slowdowns: tuple[Slowdown, ...]
    stop: Stop | None


@dataclass(frozen=True)
class Judgement:
    """A log, judged.

    Attributes:
        name: The log as the user named it.
        source: What it was read from: "RTDE recording", ...
        samples: Number of rows.
        duration_s: Time from the first row to the last, s.
        arm: The arm.
        motions: The motions, in order.
        whole: The tracking error over all motions and its parts; None without any.
        gaps: Spans without rows.
        jumps: Jumps of the joint commands.
        missing: What the log does not have.
        notes: Sentences about what was left out or assumed.
    """

    name: str
    source: str
    samples: int
    duration_s: float
    arm: Arm
    motions: tuple[JudgedMotion, ...]
    whole: TrackingErrors | None
    gaps: tuple[Gap, ...]
    jumps: tuple[Jump, ...]
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]


def judge(log: ControllerLog, robots: Sequence[Robot]) -> Judgement:
    """Judge a log.

    Args:
        log: The log.
        robots: Arms that it may be of; the one that `log.robot` names is taken, if it is among
            them.
    """
    model = find_arm(log, robots)
    motions = tuple(_judge_motion(log, motion, model) for motion in find_motions(log))
    jumps = () if log.position_commands is None else find_jumps(log.position_commands)
    return Judgement(
        name=log.name,
        source=log.source.value,
        samples=len(log.times),
        duration_s=log.duration,
        arm=model.arm,
        motions=motions,
        whole=_whole_error(log, motions, model),
        gaps=find_gaps(log),
        jumps=jumps,
        missing=log.missing,
        notes=log.notes,
    )


def _judge_motion(log: ControllerLog, motion: Motion, model: ArmModel) -> JudgedMotion:
    """Return a motion with everything that the log shows of it."""
    kind = find_kind(log, motion, model.robot)
    signals = motion_signals(log, motion, kind, model.arm)
    velocity = joint_velocities(log)[motion.rows]

    stop = find_stop(log, motion)
    if kind.name == "movej" and stop is not None and "program" in stop.cause:
        # A movej that came to its end did so before its program.
        stop = None
    return JudgedMotion(
        motion=motion,
        travel_rad=float(np.ptp(log.q[motion.rows], axis=0).max()),
        kind=kind,
        errors=split_error(signals, velocity, model.robot) if _is_tracked(kind) else None,
        peaks=find_peaks(log, motion, model.robot),
        slowdowns=find_slowdowns(log, motion),
        stop=stop,
    )


def _is_tracked(kind: MotionKind) -> bool:
    """Return whether an arm followed its targets: in freedrive the targets follow the arm."""
    return kind.name != "freedrive"


def motion_signals(log: ControllerLog, motion: Motion, kind: MotionKind, arm: Arm) -> Signals:
    """Return the signals of a motion that the log has or reveals.

    Args:
        log: The log.
        motion: The motion.
        kind: How the controller made it.
        arm: The arm.
    """
    rows = motion.rows
    times = log.times[rows]
    positions: dict[str, Array] = {}
    if log.reference is not None:
        positions["reference"] = at_instants(log.reference.times, log.reference.q, times)
    elif log.goals:
        positions["reference"] = goal_positions(log.goals, times)
    commands = log.position_commands
    if commands is not None and commands.times is not None:
        positions["command sent"] = at_instants(commands.times, commands.values, times)
    setpoints = _setpoints(log, motion, kind, arm)
    if setpoints is not None:
        positions["setpoint"] = setpoints
    if log.target_q is not None:
        positions["target"] = log.target_q[rows]
    if log.actual_q is not None:
        positions["actual"] = log.actual_q[rows]
    return Signals(times, {name: positions[name] for name in SIGNALS if name in positions})


def _setpoints(log: ControllerLog, motion: Motion, kind: MotionKind, arm: Arm) -> Array | None:
    """Return the setpoints (T, n), rad, that the joint targets of servoj reveal; None if unknown.

    Args:
        log: The log.
        motion: The motion.
        kind: How the controller made it.
        arm: The arm, with the controller's cycle.
    """
    q, qd, qdd = log.target_q, log.target_qd, log.target_qdd
    if kind.servoj is None or arm.cycle_s is None or q is None or qd is None or qdd is None:
        return None
    rows = motion.rows
    targets = JointMotion(q[rows], qd[rows], qdd[rows])
    whole_cycles = np.full(len(targets.q), arm.cycle_s)
    gain, lookahead = kind.servoj.gain, kind.servoj.lookahead_s
    setpoints, _ = observe_setpoints(targets, arm.cycle_s, gain, lookahead, whole_cycles)
    return setpoints


def _whole_error(
    log: ControllerLog, motions: Sequence[JudgedMotion], model: ArmModel
) -> TrackingErrors | None:
    """Return the tracking error over all motions that were tracked; None without any.

    Only signals that every motion has are compared.
    """
    tracked = [judged for judged in motions if _is_tracked(judged.kind)]
    if not tracked:
        return None
    signals = [motion_signals(log, item.motion, item.kind, model.arm) for item in tracked]
    names = [name for name in SIGNALS if all(name in item.positions for item in signals)]
    positions = {name: np.concatenate([item.positions[name] for item in signals]) for name in names}
    times = np.concatenate([item.times for item in signals])
    velocities = joint_velocities(log)
    velocity = np.concatenate([velocities[item.motion.rows] for item in tracked])
    # Successive motions may share the row between them.
    is_new = np.concatenate([[True], np.diff(times) > 0.0])
    kept = {name: values[is_new] for name, values in positions.items()}
    return split_error(Signals(times[is_new], kept), velocity[is_new], model.robot)
