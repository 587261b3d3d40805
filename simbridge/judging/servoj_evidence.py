"""Whether a motion obeys servoj's law, with which tuning, and which commands its calls took.

The law shows itself where the commands are known, or where a command was held while the arm still
moved (`simbridge.identification`). servoL obeys the same law; only joint commands tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.identification.data import Samples, ServojResult
from simbridge.identification.read_motion import read_motion
from simbridge.identification.servo_law import LawNotFound, find_servo_law
from simbridge.identification.servoj_results import (
    CommandFit,
    fit_servoj,
    servoj_result,
)
from simbridge.identification.settling import fit_to_settling
from simbridge.identification.target_motion import NotIdentified, TargetMotion
from simbridge.judging.log import Commands
from simbridge.robot.pose import Array, Counts
from simbridge.robot.robot import Robot
from simbridge.servo.law import ServojLaw

# Largest difference of the spans between rows from the cycle, as a fraction of it, in a log with a
# row for nearly every cycle.
CYCLE_TOLERANCE = 0.05
# Fraction of a cycle by which the time of a command may be late in its cycle.
COMMAND_TOLERANCE = 0.25
# Largest number of rows that are searched for held commands.
MAX_HELD_ROWS = 20_000
# Longest mean delay of commands, s; with a longer one their times are not those of the log's clock.
MAX_DELAY_S = 1.0
# The same for commands that seem to be used before they are sent, s.
MAX_LEAD_S = 0.05
# Largest relative standard deviation of a tuning that an arm shows while it settles: it is stated.
MAX_SETTLING_DEVIATION = 0.2
# Smallest step between commands that the setpoints show, in units of their resolution.
MIN_STEP_DIGITS = 5.0
# Fraction of a cycle up to which calls begin with it.
PHASE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class ServojEvidence:
    """The tuning of servoj in a motion.

    Attributes:
        gain: Gain of servoj, 1/s^2.
        gain_uncertainty: One standard deviation of the gain, 1/s^2.
        lookahead_s: Lookahead of servoj, s.
        lookahead_uncertainty_s: One standard deviation of the lookahead, s.
        call_s: Duration of a call, s; None if the commands do not show it.
        phase_s: How long after the beginning of a cycle calls begin, s; None if the commands do
            not show it.
        delay_s: Mean time from a command to the cycle that takes it, s; None if the commands have
            no times. If the tuning comes from measured joints, their own delay is part of it.
        held_calls: Number of calls that had no new command, and held the one before, as far as the
            digits tell commands apart; None if the commands do not show it.
        residual_rad: Median distance of the setpoints from the commands, or from the held command,
            over all joints, rad.
        has_commands: Whether the joint commands were recorded and explain the motion.
        single_cycles: Number of single cycles without a new command that show the tuning; 0 if it
            comes from the commands, or from one that was held for longer.
        is_measured: Whether it comes from the measured joints, since the joint targets were not
            recorded.
    """

    gain: float
    gain_uncertainty: float
    lookahead_s: float
    lookahead_uncertainty_s: float
    call_s: float | None
    phase_s: float | None
    delay_s: float | None
    held_calls: int | None
    residual_rad: float
    has_commands: bool
    single_cycles: int = 0
    is_measured: bool = False


@dataclass(frozen=True, eq=False)
class ServojSignals:
    """What servoj's targets reveal of the commands.

    Attributes:
        times: Instants of K rows, s from the log's beginning.
        setpoints: Positions that the law moves towards (K, n), rad.
        newest: The newest command that the controller had (K, n), rad; None if the commands do
            not show it.
    """

    times: Array
    setpoints: Array
    newest: Array | None


@dataclass(frozen=True, eq=False)
class RecognizedServoj:
    """A motion that obeys servoj's law.

    Attributes:
        evidence: Its tuning.
        signals: What it reveals of the commands.
    """

    evidence: ServojEvidence
    signals: ServojSignals


def find_servoj(
    samples: Samples, commands: Commands | None, robot: Robot | None
) -> tuple[RecognizedServoj | None, str]:
    """Return the tuning of servoj in a motion, or why it is not known.

    Args:
        samples: The rows of the motion, with times from the log's beginning, s.
        commands: Joint commands of the log; None if they were not recorded.
        robot: The arm; None if it is not known.

    Returns:
        The motion and ""; or None and the reason, as a clause.
    """
    try:
        motion = read_motion(samples, robot)
    except NotIdentified as reason:
        return None, str(reason)

    in_cycles = _fit_command_each_cycle(motion, commands)
    if in_cycles is not None:
        return in_cycles, ""

    if commands is None:
        # Held commands are as frequent at the beginning of a long motion as later.
        fit = fit_servoj(motion[:MAX_HELD_ROWS], None)
    else:
        fit = fit_servoj(motion, commands.values)
    if fit.from_commands is not None:
        assert commands is not None
        return _decoded(fit.from_commands, commands), ""
    if fit.held is not None:
        evidence = replace(
            _evidence(servoj_result(fit.held), has_commands=False), single_cycles=fit.single_cycles
        )
        setpoints = motion.setpoints(fit.held.gain, fit.held.lookahead)
        return RecognizedServoj(evidence, ServojSignals(motion.times, setpoints, None)), ""
    return None, "; ".join(reversed(fit.failures))


def find_settling(
    samples: Samples, robot: Robot | None, *, end_s: float
) -> RecognizedServoj | None:
    """Return the tuning of servoj from how the arm settles after a motion; None if it is not shown.

    Args:
        samples: The rows of the motion and of the rest after it, with times from the log's
            beginning, s.
        robot: The arm; None if it is not known.
        end_s: Time of the motion's last row, s.
    """
    try:
        motion = read_motion(samples, robot)
        tuning = fit_to_settling(motion).round_and_check(MAX_SETTLING_DEVIATION)
    except NotIdentified:
        return None

    moving = motion[motion.times <= end_s]
    setpoints = moving.setpoints(tuning.gain, tuning.lookahead)
    evidence = _evidence(servoj_result(tuning), has_commands=False)
    return RecognizedServoj(evidence, ServojSignals(moving.times, setpoints, None))


def _fit_command_each_cycle(
    motion: TargetMotion, commands: Commands | None
) -> RecognizedServoj | None:
    """Fit the law to rows and commands that follow each other cycle by cycle; None if they do not.

    Args:
        motion: Joint targets.
        commands: Joint commands; None if they were not recorded.
    """
    cycle = motion.cycle
    spans = np.diff(motion.times)
    if commands is None or commands.times is None or len(commands.values) < 2:
        return None
    usual_spans = (float(np.median(spans)), float(np.median(np.diff(commands.times))))
    if any(abs(span - cycle) > CYCLE_TOLERANCE * cycle for span in usual_spans):
        return None

    # The newest command that was sent when the cycle began that ends with a row.
    cycle_begins = motion.times - cycle + COMMAND_TOLERANCE * cycle
    newest = np.maximum(np.searchsorted(commands.times, cycle_begins, side="right") - 1, 0)
    sent = commands.values[newest]
    try:
        law = find_servo_law(
            ServojLaw(cycle), motion.cycles, sent, q=motion.q, qd=motion.qd, qdd=motion.qdd
        )
    except (LawNotFound, InvalidParameter):
        return None

    evidence = ServojEvidence(
        gain=law.gain,
        gain_uncertainty=law.deviations[0],
        lookahead_s=law.lookahead,
        lookahead_uncertainty_s=law.deviations[1],
        call_s=cycle,
        phase_s=law.phase,
        delay_s=law.delay,
        held_calls=None,
        residual_rad=float(np.median(law.residuals)),
        has_commands=True,
    )
    setpoints = motion.setpoints(law.gain, law.lookahead)
    # A call that begins with the cycle moves its setpoint to its command within that cycle.
    begins_with_cycle = law.phase < PHASE_TOLERANCE * cycle
    newest_commands = setpoints if begins_with_cycle else None
    return RecognizedServoj(evidence, ServojSignals(motion.times, setpoints, newest_commands))


def _decoded(fit: CommandFit, commands: Commands) -> RecognizedServoj:
    """Return a motion whose calls and their commands are known.

    Args:
        fit: The tuning and the calls.
        commands: The commands that the calls took.
    """
    calls = fit.calls
    result = servoj_result(fit.tuning, phase=fit.phase, duration=float(calls.law.duration))
    used = calls.command[calls.call.min() : calls.call.max() + 2]
    times = fit.motion.times

    delay: float | None = None
    if commands.times is not None:
        # Each call begins some time after the newest command that it took was sent.
        begins = times[0] + calls.law.begin + calls.call * calls.law.duration
        mean_delay = float(np.mean(begins - commands.times[calls.command[calls.call + 1]]))
        if -MAX_LEAD_S <= mean_delay <= MAX_DELAY_S:
            delay = mean_delay
    resolution = fit.motion.setpoint_resolution(1.0 / fit.tuning.gain, fit.tuning.lookahead)
    held = count_held(used, commands.values, MIN_STEP_DIGITS * float(resolution))
    evidence = _evidence(result, has_commands=True, delay=delay, held=held)
    newest_commands = commands.values[calls.command[calls.call + 1]]
    return RecognizedServoj(evidence, ServojSignals(times, calls.setpoints, newest_commands))


def count_held(used: Counts, commands: Array, min_step: float) -> int:
    """Return how many calls held the command before although the next one differs visibly.

    Args:
        used: Index of the command that each call took (M,).
        commands: Commands (K, n), rad.
        min_step: Smallest step between commands that the digits of the log show, rad.
    """
    steps = np.linalg.norm(np.diff(commands, axis=0), axis=1)
    # After the last command there is no other one, so calls that hold it have none; but where the
    # commands had come to rest before it, none was needed.
    is_visible = np.append(steps, steps[-1]) > min_step
    is_held = np.diff(used) == 0
    return int(np.sum(is_held & is_visible[used[1:]]))


def _evidence(
    result: ServojResult,
    *,
    has_commands: bool,
    delay: float | None = None,
    held: int | None = None,
) -> ServojEvidence:
    """Return the result of an identification as evidence.

    Args:
        result: The tuning.
        has_commands: Whether the joint commands explain the motion.
        delay: Mean time from a command to the call that takes it, s; None if it is not known.
        held: Number of calls without a new command; None if it is not known.
    """
    return ServojEvidence(
        gain=result["gain"],
        gain_uncertainty=result["uncertainty"]["gain"],
        lookahead_s=result["lookahead_s"],
        lookahead_uncertainty_s=result["uncertainty"]["lookahead_s"],
        call_s=result["call_s"],
        phase_s=result["phase_s"],
        delay_s=delay,
        held_calls=held,
        residual_rad=result["residual_rad"]["median"],
        has_commands=has_commands,
    )
