"""Recognizes servoj: whether a motion obeys its law, with which tuning and commands.

The law shows if the commands are known, or if a command was held while the arm still moved
(`simbridge.identification`). servoL obeys the same law; only joint commands tell the two apart.
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

# Largest relative difference of the time between rows, or commands, from the cycle in a log with
# one for nearly every cycle.
CYCLE_TOLERANCE = 0.05
# Largest time after the beginning of a cycle at which a command still counts for it, in cycles.
COMMAND_TOLERANCE = 0.25
# Largest number of rows that are searched for held commands.
MAX_HELD_ROWS = 20_000
# Longest mean delay of commands, s; if it is longer, their times are by another clock.
MAX_DELAY_S = 1.0
# Longest mean time by which commands may seem to be used before they are sent, s; if it is longer,
# their times are by another clock.
MAX_LEAD_S = 0.05
# Largest relative standard deviation of a tuning that comes from how an arm settles. It may be
# large, since it is reported with the tuning.
MAX_SETTLING_DEVIATION = 0.2
# Smallest step between commands that the setpoints show, in units of their resolution.
MIN_STEP_DIGITS = 5.0
# Largest time after the beginning of a cycle at which calls count as beginning with it, in cycles.
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
            no times. If the tuning comes from the measured joints, the delay includes theirs.
        held_calls: Number of calls that had no new command, and held the one before, as far as the
            digits of the log tell commands apart; None if the commands do not show it.
        residual_rad: Median distance of the setpoints from the commands, or from the held command,
            over all joints, rad.
        has_commands: Whether the joint commands were recorded and explain the motion.
        single_cycles: Number of single cycles without a new command that show the tuning; 0 if the
            tuning comes from the commands, or from a command that was held for longer.
        is_measured: Whether the tuning comes from the measured joints, since the joint targets were
            not recorded.
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
    """The commands and setpoints of servoj, as far as the joint targets reveal them.

    Attributes:
        times: Instants of the rows (K,), s from the log's beginning.
        setpoints: Positions that the law moves towards (K, n), rad.
        newest: The newest command that the controller had in each row (K, n), rad; None if the
            commands do not show it.
    """

    times: Array
    setpoints: Array
    newest: Array | None


@dataclass(frozen=True, eq=False)
class RecognizedServoj:
    """A motion that obeys servoj's law.

    Attributes:
        evidence: The tuning, and what shows it.
        signals: What the motion reveals of the commands.
    """

    evidence: ServojEvidence
    signals: ServojSignals


def find_servoj(
    samples: Samples, commands: Commands | None, robot: Robot | None
) -> tuple[RecognizedServoj | None, str]:
    """Recognize servoj in a motion by its joint targets, and by the commands if there are any.

    Args:
        samples: The rows of the motion, with times from the log's beginning, s.
        commands: Joint commands of the log; None if they were not recorded.
        robot: The arm; None if it is not known.

    Returns:
        The motion and ""; or None and a clause that says why servoj was not recognized.
    """
    try:
        motion = read_motion(samples, robot)
    except NotIdentified as reason:
        return None, str(reason)

    # The simplest case: a row and a command in each cycle.
    servoj = _fit_command_each_cycle(motion, commands)
    if servoj is not None:
        return servoj, ""

    if commands is None:
        # The first part of a long motion is enough: commands are held throughout.
        fit = fit_servoj(motion[:MAX_HELD_ROWS], None)
    else:
        fit = fit_servoj(motion, commands.values)
    if fit.from_commands is not None:
        assert commands is not None, "there is no fit of commands without commands"
        return _decode_calls(fit.from_commands, commands), ""
    if fit.held is not None:
        evidence = _make_evidence(servoj_result(fit.held), has_commands=False)
        evidence = replace(evidence, single_cycles=fit.single_cycles)
        setpoints = motion.setpoints(fit.held.gain, fit.held.lookahead)
        signals = ServojSignals(motion.times, setpoints, newest=None)
        return RecognizedServoj(evidence, signals), ""
    return None, "; ".join(reversed(fit.failures))


def find_settling(
    samples: Samples, robot: Robot | None, *, end_s: float
) -> RecognizedServoj | None:
    """Recognize servoj by how the arm settles after a motion; None if that does not show it.

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

    # The signals are those of the motion only, without the rest after it.
    moving = motion[motion.times <= end_s]
    setpoints = moving.setpoints(tuning.gain, tuning.lookahead)
    evidence = _make_evidence(servoj_result(tuning), has_commands=False)
    return RecognizedServoj(evidence, ServojSignals(moving.times, setpoints, newest=None))


def _fit_command_each_cycle(
    motion: TargetMotion, commands: Commands | None
) -> RecognizedServoj | None:
    """Fit the law to a motion with a row and a command in each cycle; None for any other motion.

    Args:
        motion: Joint targets.
        commands: Joint commands; None if they were not recorded.
    """
    cycle = motion.cycle
    if commands is None or commands.times is None or len(commands.values) < 2:
        return None
    row_span = float(np.median(np.diff(motion.times)))
    command_span = float(np.median(np.diff(commands.times)))
    if any(abs(span - cycle) > CYCLE_TOLERANCE * cycle for span in (row_span, command_span)):
        return None

    # A cycle ends with its row. The command for it is the newest one when it begins, or shortly
    # after, since the times of commands jitter.
    latest_sending = motion.times - cycle + COMMAND_TOLERANCE * cycle
    newest = np.maximum(np.searchsorted(commands.times, latest_sending, side="right") - 1, 0)
    cycle_commands = commands.values[newest]
    try:
        # The default tuning is tried first. It is refused where the cycle is so long that it would
        # be unstable.
        expected = ServojLaw(cycle)
        law = find_servo_law(
            expected,
            motion.cycles,
            cycle_commands,
            q=motion.q,
            qd=motion.qd,
            qdd=motion.qdd,
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
    # A call that begins with the cycle brings its setpoint to its command by the end of the cycle.
    begins_with_cycle = law.phase < PHASE_TOLERANCE * cycle
    newest_commands = setpoints if begins_with_cycle else None
    return RecognizedServoj(evidence, ServojSignals(motion.times, setpoints, newest_commands))


def _decode_calls(fit: CommandFit, commands: Commands) -> RecognizedServoj:
    """Return a motion whose calls of servoj, and the command of each call, are known.

    Args:
        fit: The tuning and the calls.
        commands: The commands that the calls took.
    """
    calls = fit.calls
    times = fit.motion.times
    # Index of the newest command in each row: `command` begins with the command before call 0.
    newest = calls.command[calls.call + 1]

    # The mean time from a command to the beginning of the call that takes it.
    delay: float | None = None
    if commands.times is not None:
        call_begins = times[0] + calls.law.begin + calls.call * calls.law.duration
        mean_delay = float(np.mean(call_begins - commands.times[newest]))
        if -MAX_LEAD_S <= mean_delay <= MAX_DELAY_S:
            delay = mean_delay

    # The calls that held a command, among those of the motion and the one before them.
    used = calls.command[calls.call.min() : calls.call.max() + 2]
    resolution = fit.motion.setpoint_resolution(1.0 / fit.tuning.gain, fit.tuning.lookahead)
    held_calls = count_held(used, commands.values, MIN_STEP_DIGITS * float(resolution))

    result = servoj_result(fit.tuning, phase=fit.phase, duration=float(calls.law.duration))
    evidence = _make_evidence(result, has_commands=True, delay=delay, held_calls=held_calls)
    signals = ServojSignals(times, calls.setpoints, commands.values[newest])
    return RecognizedServoj(evidence, signals)


def count_held(used: Counts, commands: Array, min_step: float) -> int:
    """Return how many calls held the command before although the next one differs visibly.

    Args:
        used: Index of the command that each call took (M,).
        commands: Commands (K, n), rad.
        min_step: Smallest step between commands that the digits of the log show, rad.
    """
    steps = np.linalg.norm(np.diff(commands, axis=0), axis=1)
    # No command follows the last one. A call that holds it counts if the last step was visible: if
    # the commands had come to rest before, no new command was needed.
    steps_to_next = np.append(steps, steps[-1])
    is_visible = steps_to_next > min_step
    is_held = np.diff(used) == 0
    return int(np.sum(is_held & is_visible[used[1:]]))


def _make_evidence(
    result: ServojResult,
    *,
    has_commands: bool,
    delay: float | None = None,
    held_calls: int | None = None,
) -> ServojEvidence:
    """Return the result of an identification as evidence.

    Args:
        result: The tuning.
        has_commands: Whether the joint commands explain the motion.
        delay: Mean time from a command to the call that takes it, s; None if it is not known.
        held_calls: Number of calls without a new command; None if it is not known.
    """
    return ServojEvidence(
        gain=result["gain"],
        gain_uncertainty=result["uncertainty"]["gain"],
        lookahead_s=result["lookahead_s"],
        lookahead_uncertainty_s=result["uncertainty"]["lookahead_s"],
        call_s=result["call_s"],
        phase_s=result["phase_s"],
        delay_s=delay,
        held_calls=held_calls,
        residual_rad=result["residual_rad"]["median"],
        has_commands=has_commands,
    )
