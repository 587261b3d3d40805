"""Finds what brought a joint beyond a tolerance: the first cause of which a log has evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simbridge.judging.error_trace import REST_STEP, ErrorTrace, moved_rows
from simbridge.judging.events import FULL_SPEED, MOVING_MODES, MOVING_STATES
from simbridge.judging.log import ControllerLog, Signal
from simbridge.robot.pose import Array
from simbridge.text import fixed, milliradians, milliseconds, significant
from simbridge.ur.tables import RuntimeState, SafetyMode, mode_label

# Longest time from a cause to the violation, s: an error needs time to grow.
MAX_LEAD_S = 2.0
# Smallest step of the reference that is a jump, as a fraction of the error at the violation.
JUMP_FRACTION = 0.5
# Smallest ratio of a jump to the steps before and after it.
JUMP_RATIO = 3.0
# Smallest path that slowing down held the arm back by, to explain an error, as a fraction of it.
HELD_BACK_FRACTION = 0.5
# Smallest error at the trajectory's beginning that explains a later one, as a fraction of it.
OFFSET_FRACTION = 0.7
# Largest error that is still small, as a fraction of the later one: from there the error grew.
EARLY_FRACTION = 0.3
# Largest travel of a joint that stands still, as a fraction of the reference's travel, or of the
# error if the reference stands still, too.
STILL_FRACTION = 0.1
# Longest delay behind the reference that is tried, s.
MAX_LAG_S = 1.0
# Step between the delays that are tried first, s.
COARSE_LAG_STEP_S = 0.01
# Step between the delays that are tried around the best of the first, s.
FINE_LAG_STEP_S = 0.0005
# Largest fraction of an error that a delay may leave if it explains the error.
MAX_UNEXPLAINED = 0.3
# Shortest time for which a joint must rest apart from its resting reference, s.
MIN_REST_APART_S = 0.2
# Largest fraction of this time at whose beginning rows may be missing.
MAX_UNSEEN_REST = 0.5
# Quantities that show what stops an arm or slows it down.
STATE_QUANTITIES = ("speed scaling", "safety mode", "program state")


@dataclass(frozen=True)
class Cause:
    """The cause of an error.

    Attributes:
        name: The cause, as a noun phrase: "protective stop", "lag", ...; "unknown" where the log
            shows none.
        evidence: What shows it, as a clause.
    """

    name: str
    evidence: str


@dataclass(frozen=True, eq=False)
class ErrorGrowth:
    """How an error grew until a joint was beyond a tolerance.

    Attributes:
        begin: Row of the trace in which the trajectory began.
        violation: Row of the trace in which the error exceeded the tolerance.
        end: Row after the last one in which the joint still followed the trajectory; it is later
            than the violation if no controller gave up.
        joint: Index of the joint, from 0.
        tolerance: The tolerance, rad; None if it is not known.
    """

    begin: int
    violation: int
    end: int
    joint: int
    tolerance: float | None


class LastingState(NamedTuple):
    """A state of the controller, and how long it has lasted.

    Attributes:
        value: Number of the state.
        since_s: When the state began, s from the log's beginning.
    """

    value: int
    since_s: float


def find_cause(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause:
    """Return the cause of an error, or that the log does not show it.

    A stop of the arm is looked for before what slows it down, and causes in the motion itself last:
    a stopped arm, for example, also lags.

    Args:
        log: The log.
        trace: Reference and measured joints that were compared.
        growth: How the error grew.
    """
    for find in (
        _find_safety_stop,
        _find_program_end,
        _find_reference_jump,
        _find_slow_controller,
        _find_start_offset,
        _find_still_joint,
        _find_rest_apart,
        _find_lag,
    ):
        cause = find(log, trace, growth)
        if cause is not None:
            return cause

    missing = [item.quantity for item in log.missing if item.quantity in STATE_QUANTITIES]
    not_recorded = f"; not recorded: {', '.join(missing)}" if missing else ""
    return Cause("unknown", f"the log shows no cause{not_recorded}")


def _find_newest_state(signal: Signal | None, instant: float) -> LastingState | None:
    """Return the newest state at an instant, s from the log's beginning; None if not known."""
    if signal is None:
        return None
    newest = int(np.searchsorted(signal.times, instant, side="right")) - 1
    if newest < 0:
        return None

    # The state began after the last value that differs from it.
    value = int(signal.values[newest])
    different = np.flatnonzero(signal.values[: newest + 1] != value)
    first = int(different[-1]) + 1 if len(different) else 0
    return LastingState(value, float(signal.times[first]))


def _find_safety_stop(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return a stop of the safety system before the violation; None without any."""
    state = _find_newest_state(log.safety_mode, trace.times[growth.violation])
    if state is None or state.value in MOVING_MODES:
        return None
    # The label has the number of the mode in parentheses.
    label = mode_label(state.value, SafetyMode)
    name = label.split(" (")[0]
    return Cause(name, f"the safety mode was {label} since {fixed(state.since_s, 2)} s")


def _find_program_end(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return the end or pause of the program before the violation; None without any."""
    state = _find_newest_state(log.program_state, trace.times[growth.violation])
    if state is None or state.value in MOVING_STATES:
        return None
    name = mode_label(state.value, RuntimeState)
    evidence = f"the program's state was {name} since {fixed(state.since_s, 2)} s"
    return Cause("program not running", evidence)


def _find_reference_jump(
    log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth
) -> Cause | None:
    """Return a jump of the reference from which most of the error comes; None without any."""
    # Step i leads from row i to row i + 1.
    steps = np.abs(np.diff(trace.reference[:, growth.joint]))
    rows = _select_recent_rows(trace, growth)
    recent_steps = steps[rows.start : growth.violation]
    if not len(recent_steps):
        return None

    # A jump is much longer than the steps before and after it.
    longest = rows.start + int(recent_steps.argmax())
    size = float(steps[longest])
    steps_before = steps[max(longest - 1, 0) : longest]
    steps_after = steps[longest + 1 : longest + 2]
    longest_neighbour = max([*steps_before, *steps_after], default=0.0)
    error = abs(float(trace.error[growth.violation, growth.joint]))
    if size < JUMP_FRACTION * error or size < JUMP_RATIO * longest_neighbour:
        return None

    at_s = float(trace.times[longest + 1])
    evidence = f"it jumped by {milliradians(size)} mrad at {fixed(at_s, 2)} s"
    return Cause("jump of the reference", evidence)


def _find_slow_controller(
    log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth
) -> Cause | None:
    """Return that the controller's speed scaling explains the error; None if it does not."""
    scaling = log.speed_scaling
    if scaling is None or not len(scaling.times):
        return None

    # The newest speed scaling at each row; full speed before the first one.
    rows = _select_recent_rows(trace, growth)
    newest = np.searchsorted(scaling.times, trace.times[rows], side="right") - 1
    factors = np.where(newest >= 0, scaling.values[np.maximum(newest, 0)], 1.0)
    if float(factors.min()) >= FULL_SPEED:
        return None

    # The part of each step of the reference that a slowed arm does not travel adds to the error.
    # Its sum must have the sign of the error, and be a large part of it.
    steps = np.diff(trace.reference[rows, growth.joint])
    held_back = float((1.0 - factors[:-1]) @ steps)
    error = float(trace.error[growth.violation, growth.joint])
    has_same_sign = held_back * error > 0.0
    if not has_same_sign or abs(held_back) < HELD_BACK_FRACTION * abs(error):
        return None

    percent = significant(100.0 * float(factors.min()))
    evidence = f"the controller slowed to {percent} % of full speed while the reference went on"
    return Cause("speed scaling", evidence)


def _find_still_joint(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return that a joint stood still while its reference moved on; None if it moved."""
    # The error grew from the last row in which it was still small.
    sizes = np.abs(trace.error[growth.begin : growth.violation + 1, growth.joint])
    small = np.flatnonzero(sizes <= EARLY_FRACTION * sizes[-1])
    first = growth.begin + (int(small[-1]) if len(small) else 0)

    # The rows after the violation count, too: a joint that sets off later only has a long lag.
    rows = slice(first, growth.end)
    travel = float(np.ptp(trace.actual[rows, growth.joint]))
    reference_travel = float(np.ptp(trace.reference[rows, growth.joint]))
    if travel > STILL_FRACTION * reference_travel or not moved_rows(trace.reference[rows]).any():
        return None

    first_s = fixed(float(trace.times[first]), 2)
    evidence = (
        f"from {first_s} s it moved by {milliradians(travel)} mrad, but "
        f"its reference by {milliradians(reference_travel)} mrad: no command reached it, or "
        "something held it"
    )
    return Cause("the joint did not move", evidence)


def _find_start_offset(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return that the arm was apart from the trajectory's start; None if it was not."""
    if not _starts_at_rest(trace, growth):
        return None
    offset = float(trace.error[growth.begin, growth.joint])
    error = float(trace.error[growth.violation, growth.joint])
    has_same_sign = offset * error > 0.0
    if not has_same_sign or abs(offset) < OFFSET_FRACTION * abs(error):
        return None

    evidence = f"the joint was {milliradians(abs(offset))} mrad from the trajectory's start"
    return Cause("start away from the arm", evidence)


def _find_lag(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return a delay behind the reference that explains the error; None if none does."""
    times = trace.times[growth.begin : growth.end]
    reference = trace.reference[growth.begin : growth.end, growth.joint]
    actual = trace.actual[growth.begin : growth.end, growth.joint]
    lag_s = _find_best_lag(times, reference, actual)
    # A lag at the end of the range that was searched is not a minimum.
    if not 0.0 < lag_s < MAX_LAG_S - COARSE_LAG_STEP_S:
        return None

    # Compare up to the violation. In a log that begins within the motion, the reference that the
    # arm followed at first was not recorded: then begin one lag later.
    compared = slice(0, growth.violation + 1 - growth.begin)
    if not _starts_at_rest(trace, growth):
        compared = slice(int(np.searchsorted(times, times[0] + lag_s)), None)
    error = float(np.linalg.norm((reference - actual)[compared]))
    delayed = np.interp(times - lag_s, times, reference)
    unexplained = float(np.linalg.norm((delayed - actual)[compared]))
    if error == 0.0 or unexplained > MAX_UNEXPLAINED * error:
        return None

    evidence = f"it trailed the reference by {milliseconds(lag_s)} ms"
    if growth.tolerance is not None:
        # In steady motion the error is the speed times the lag.
        speed = significant(growth.tolerance / lag_s, 2)
        evidence += f", which stays within the tolerance up to {speed} rad/s"
    return Cause("lag", evidence)


def _starts_at_rest(trace: ErrorTrace, growth: ErrorGrowth) -> bool:
    """Return whether the reference of a joint rests where its trajectory begins."""
    # The step to the first row of the trajectory, or the first step of the trace.
    first = max(growth.begin - 1, 0)
    step = trace.reference[first + 1, growth.joint] - trace.reference[first, growth.joint]
    return abs(float(step)) <= REST_STEP


def _find_rest_apart(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return that joint and reference rest apart, so that no lag remains; None if they do not."""
    # The rest must be of this trajectory alone, and most of it must be in the trace.
    earliest_s = trace.times[growth.violation] - MIN_REST_APART_S
    begin = int(np.searchsorted(trace.times, earliest_s))
    unseen_s = trace.times[begin] - earliest_s
    if begin < growth.begin or unseen_s > MAX_UNSEEN_REST * MIN_REST_APART_S:
        return None

    rows = slice(begin, growth.violation + 1)
    error = abs(float(trace.error[growth.violation, growth.joint]))
    for positions in (trace.reference, trace.actual):
        travel = float(np.ptp(positions[rows, growth.joint]))
        if travel > STILL_FRACTION * error:
            return None
    evidence = f"it rested {milliradians(error)} mrad from where its reference rested"
    return Cause("the joint stopped short", evidence)


def _find_best_lag(times: Array, reference: Array, actual: Array) -> float:
    """Return the delay with which a reference comes closest to the measured positions, s.

    Args:
        times: Instants (K,), s.
        reference: The reference of a joint (K,), rad.
        actual: Measured positions of that joint (K,), rad.
    """

    def misfits(lags: Array) -> list[float]:
        """Return the distance of the delayed reference from the measured positions, by delay."""
        return [
            float(np.linalg.norm(np.interp(times - lag, times, reference) - actual)) for lag in lags
        ]

    coarse = np.arange(0.0, MAX_LAG_S, COARSE_LAG_STEP_S)
    best = float(coarse[int(np.argmin(misfits(coarse)))])
    fine = np.arange(best - COARSE_LAG_STEP_S, best + COARSE_LAG_STEP_S, FINE_LAG_STEP_S)
    return float(fine[int(np.argmin(misfits(fine)))])


def _select_recent_rows(trace: ErrorTrace, growth: ErrorGrowth) -> slice:
    """Return the rows of a trajectory, up to the violation, in which its cause is looked for."""
    earliest_s = trace.times[growth.violation] - MAX_LEAD_S
    begin = max(growth.begin, int(np.searchsorted(trace.times, earliest_s)))
    return slice(begin, growth.violation + 1)
