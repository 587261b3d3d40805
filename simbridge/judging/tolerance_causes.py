"""What brought a joint beyond a tolerance: the first cause that a log gives evidence of."""

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

# A cause precedes the violation by no more than this, s: an error needs time to grow.
MAX_LEAD_S = 2.0
# A step of the reference by this fraction of the error is a jump, ...
JUMP_FRACTION = 0.5
# ... if it is this many times as long as the steps beside it.
JUMP_RATIO = 3.0
# Slowing down explains an error if the reference moved by at least this fraction of it meanwhile.
HELD_BACK_FRACTION = 0.5
# The arm had started apart from the reference if the error was this fraction of the later one.
OFFSET_FRACTION = 0.7
# An error begins to grow where it last was this fraction of the later one.
EARLY_FRACTION = 0.3
# A joint did not follow if it moved by less than this fraction of what the reference did.
STILL_FRACTION = 0.1
# Delays that are tried: up to this, in these steps and then in finer ones around the best, s.
MAX_LAG_S = 1.0
COARSE_LAG_STEP_S = 0.01
FINE_LAG_STEP_S = 0.0005
# A delay explains an error if it leaves no more than this fraction of it.
MAX_UNEXPLAINED = 0.3
# A joint that rests apart from its reference has done so for this time, s.
MIN_REST_APART_S = 0.2
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
        begin: Row of the trace in which its trajectory began.
        at: Row of the violation.
        end: Row after the last one in which the joint still followed the trajectory: beyond the
            violation, where no controller gave up.
        joint: Index of the joint, from 0.
        tolerance: The tolerance, rad; None where it is not known.
    """

    begin: int
    at: int
    end: int
    joint: int
    tolerance: float | None


class LastingState(NamedTuple):
    """A state of the controller.

    Attributes:
        value: The state.
        since_s: When it began, s from the log's beginning.
    """

    value: int
    since_s: float


def find_cause(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause:
    """Return the cause of an error.

    What stops an arm comes before what slows it down, and both before what the motion itself
    explains.

    Args:
        log: The log.
        trace: What was compared.
        growth: How the error grew.
    """
    for look in (
        _find_safety_stop,
        _find_program_end,
        _find_reference_jump,
        _find_slow_controller,
        _find_start_offset,
        _find_still_joint,
        _find_rest_apart,
        _find_lag,
    ):
        cause = look(log, trace, growth)
        if cause is not None:
            return cause

    missing = [entry.quantity for entry in log.missing if entry.quantity in STATE_QUANTITIES]
    recorded = f"; not recorded: {', '.join(missing)}" if missing else ""
    return Cause("unknown", f"the log shows no cause{recorded}")


def _newest_state(signal: Signal | None, instant: float) -> LastingState | None:
    """Return the newest state at an instant, s; None where it is not known."""
    if signal is None:
        return None
    index = int(np.searchsorted(signal.times, instant, side="right")) - 1
    if index < 0:
        return None
    value = int(signal.values[index])
    others = np.flatnonzero(signal.values[: index + 1] != value)
    since = int(others[-1]) + 1 if len(others) else 0
    return LastingState(value, float(signal.times[since]))


def _find_safety_stop(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return a stop of the safety system before the violation."""
    state = _newest_state(log.safety_mode, trace.times[growth.at])
    if state is None or state.value in MOVING_MODES:
        return None
    name = mode_label(state.value, SafetyMode)
    return Cause(
        name.split(" (")[0], f"the safety mode was {name} since {fixed(state.since_s, 2)} s"
    )


def _find_program_end(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return the end or pause of the program before the violation."""
    state = _newest_state(log.program_state, trace.times[growth.at])
    if state is None or state.value in MOVING_STATES:
        return None
    name = mode_label(state.value, RuntimeState)
    evidence = f"the program's state was {name} since {fixed(state.since_s, 2)} s"
    return Cause("program not running", evidence)


def _find_reference_jump(
    log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth
) -> Cause | None:
    """Return a jump of the reference that most of the error comes from."""
    steps = np.abs(np.diff(trace.reference[:, growth.joint]))
    rows = _select_recent_rows(trace, growth)
    recent = steps[rows.start : growth.at]
    if not len(recent):
        return None

    # A jump is much longer than the steps before and after it.
    longest = rows.start + int(recent.argmax())
    size = float(steps[longest])
    neighbours = [*steps[max(longest - 1, 0) : longest], *steps[longest + 1 : longest + 2]]
    error = abs(float(trace.error[growth.at, growth.joint]))
    if size < JUMP_FRACTION * error or size < JUMP_RATIO * max(neighbours, default=0.0):
        return None
    at_s = float(trace.times[longest + 1])
    evidence = f"it jumped by {milliradians(size)} mrad at {fixed(at_s, 2)} s"
    return Cause("jump of the reference", evidence)


def _find_slow_controller(
    log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth
) -> Cause | None:
    """Return the controller's speed scaling, where what it held back explains the error."""
    scaling = log.speed_scaling
    if scaling is None or not len(scaling.times):
        return None
    # The newest scaling at each row; full speed before the first one.
    rows = _select_recent_rows(trace, growth)
    index = np.searchsorted(scaling.times, trace.times[rows], side="right") - 1
    factors = np.where(index >= 0, scaling.values[np.maximum(index, 0)], 1.0)
    if float(factors.min()) >= FULL_SPEED:
        return None

    # What a slowed arm did not travel of each step of the reference adds up to an error. It must
    # have the direction of the error, and be a large part of it.
    steps = np.diff(trace.reference[rows, growth.joint])
    held_back = float((1.0 - factors[:-1]) @ steps)
    error = float(trace.error[growth.at, growth.joint])
    if held_back * error <= 0.0 or abs(held_back) < HELD_BACK_FRACTION * abs(error):
        return None
    percent = significant(100.0 * float(factors.min()))
    evidence = f"the controller slowed to {percent} % of full speed while the reference went on"
    return Cause("speed scaling", evidence)


def _find_still_joint(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return that a joint stood still while its reference moved on."""
    # The error grew from the last row in which it was still small.
    sizes = np.abs(trace.error[growth.begin : growth.at + 1, growth.joint])
    small = np.flatnonzero(sizes <= EARLY_FRACTION * sizes[-1])
    first = growth.begin + (int(small[-1]) if len(small) else 0)

    # The rows after the violation count, too: a joint that sets off late has only a long lag.
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
    """Return that the arm was apart from the reference at the trajectory's beginning."""
    if not _starts_at_rest(trace, growth):
        return None
    offset = float(trace.error[growth.begin, growth.joint])
    error = float(trace.error[growth.at, growth.joint])
    if offset * error <= 0.0 or abs(offset) < OFFSET_FRACTION * abs(error):
        return None
    evidence = f"the joint was {milliradians(abs(offset))} mrad from the trajectory's start"
    return Cause("start away from the arm", evidence)


def _find_lag(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return a delay behind the reference that explains the error."""
    times = trace.times[growth.begin : growth.end]
    reference = trace.reference[growth.begin : growth.end, growth.joint]
    actual = trace.actual[growth.begin : growth.end, growth.joint]
    lag_s = _find_best_lag(times, reference, actual)
    if not 0.0 < lag_s < MAX_LAG_S - COARSE_LAG_STEP_S:
        return None

    # What the delay leaves of the error, up to the violation. Where the log begins within the
    # motion, what the arm followed at first is not in it.
    explained = slice(0, growth.at + 1 - growth.begin)
    if not _starts_at_rest(trace, growth):
        explained = slice(int(np.searchsorted(times, times[0] + lag_s)), None)
    error = float(np.linalg.norm((reference - actual)[explained]))
    delayed = np.interp(times - lag_s, times, reference)
    left = float(np.linalg.norm((delayed - actual)[explained]))
    if error == 0.0 or left > MAX_UNEXPLAINED * error:
        return None

    evidence = f"it trailed the reference by {milliseconds(lag_s)} ms"
    if growth.tolerance is not None:
        speed = significant(growth.tolerance / lag_s, 2)
        evidence += f", which stays within the tolerance up to {speed} rad/s"
    return Cause("lag", evidence)


def _starts_at_rest(trace: ErrorTrace, growth: ErrorGrowth) -> bool:
    """Return whether the reference of a joint rests where its trajectory begins."""
    row = growth.begin
    first = max(row - 1, 0)
    step = trace.reference[first + 1, growth.joint] - trace.reference[first, growth.joint]
    return abs(float(step)) <= REST_STEP


def _find_rest_apart(log: ControllerLog, trace: ErrorTrace, growth: ErrorGrowth) -> Cause | None:
    """Return that a joint rests apart from its reference, which rests, too: it trails no more."""
    earliest = trace.times[growth.at] - MIN_REST_APART_S
    begin = int(np.searchsorted(trace.times, earliest))
    if begin < growth.begin or trace.times[begin] - earliest > 0.5 * MIN_REST_APART_S:
        return None

    rows = slice(begin, growth.at + 1)
    error = abs(float(trace.error[growth.at, growth.joint]))
    for positions in (trace.reference, trace.actual):
        if float(np.ptp(positions[rows, growth.joint])) > STILL_FRACTION * error:
            return None
    evidence = f"it rested {milliradians(error)} mrad from where its reference rested"
    return Cause("the joint stopped short", evidence)


def _find_best_lag(times: Array, reference: Array, actual: Array) -> float:
    """Return by how much a reference must be delayed to fit what was measured best, s.

    Args:
        times: Instants (K,), s.
        reference: The reference of a joint (K,), rad.
        actual: Its measured positions (K,), rad.
    """

    def misfits(lags: Array) -> list[float]:
        """Return the distance of the delayed reference from what was measured, for each delay."""
        return [
            float(np.linalg.norm(np.interp(times - lag, times, reference) - actual)) for lag in lags
        ]

    coarse = np.arange(0.0, MAX_LAG_S, COARSE_LAG_STEP_S)
    best = float(coarse[int(np.argmin(misfits(coarse)))])
    fine = np.arange(best - COARSE_LAG_STEP_S, best + COARSE_LAG_STEP_S, FINE_LAG_STEP_S)
    return float(fine[int(np.argmin(misfits(fine)))])


def _select_recent_rows(trace: ErrorTrace, growth: ErrorGrowth) -> slice:
    """Return the rows of a trajectory before the violation in which its cause is looked for."""
    earliest = trace.times[growth.at] - MAX_LEAD_S
    begin = max(growth.begin, int(np.searchsorted(trace.times, earliest)))
    return slice(begin, growth.at + 1)
