"""Identifies a controller's servo law from its joint targets and the commands that it was sent.

A law has a tuning (X = 1 / gain and Y = lookahead) and a phase (how long after the beginning of a
cycle a call begins). Under a law, the joint targets of each cycle reveal one point between the
commands of two successive calls (`simbridge.servo.observation.observe_setpoints`).
`command_match` finds these commands, and `law_fit` fits the law to them. Commands are matched by
time, since distances from the path of the commands do not show a delay along it.

The expected law is tried first, with any phase. If it does not explain the cycles to rounding,
other tunings are searched for, starting from a least-squares tuning for each constant delay: a
delay and a lookahead look alike until the commands are matched. A tuning is reported only if no
other one explains the cycles about as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from simbridge.identification.law_fit import MIN_ROWS, LawFit, LawRows
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import JointMotion, ServojLaw

# A law explains the joint targets if 99 % of the residuals are smaller than this, rad.
MAX_RESIDUAL = 1e-4

# Speed of the fastest joint below which a cycle shows nothing of the law, rad/s.
MIN_SPEED = 1e-4
# Largest number of rows that the search uses.
MAX_SEARCHED_ROWS = 900
# Largest number of rows that the result is judged by.
MAX_JUDGED_ROWS = 20_000
# Number of successive rows in each block of the used rows.
BLOCK_ROWS = 150
# Longest delay of the link, s.
MAX_DELAY_S = 0.2

# Residual of most rows below which a law counts as exact, rad.
EXACT_RESIDUAL = 1e-9
# The same limit as a fraction of the median step between successive commands; the smaller one
# counts.
EXACT_STEP_FRACTION = 1e-3
# Ratio of a fit's residual to the best fit's up to which it is a rival.
RIVAL_RATIO = 4.0
# Relative difference from which on two tunings are distinct.
DISTINCT_TUNING = 0.01
# Largest relative standard deviation of a tuning that is reported.
MAX_DEVIATION = 0.005


@dataclass(frozen=True)
class IdentifiedLaw:
    """A servo law as identified from joint targets.

    Attributes:
        gain: Gain of servoj's law, 1/s^2.
        lookahead: Lookahead of servoj, s.
        deviations: Standard deviations of gain, 1/s^2, and lookahead, s.
        delay: Mean delay of the commands, s.
        phase: Time from the beginning of a cycle to that of its call, s.
        residuals: Distance of each examined cycle's setpoint from the commands (K,), rad.
    """

    gain: float
    lookahead: float
    deviations: tuple[float, float]
    delay: float
    phase: float
    residuals: Array


class LawNotFound(ValueError):
    """Joint targets do not show a tuning of the servo law; the message says why, as a clause.

    Attributes:
        residuals: Distance of each examined cycle's setpoint from the commands under the expected
            law (K,), rad; empty if that is not known.
    """

    def __init__(self, reason: str, residuals: Array | None = None) -> None:
        super().__init__(reason)
        self.residuals = np.zeros(0) if residuals is None else residuals


def find_servo_law(
    law: ServojLaw, cycles: Counts, commands: Array, *, q: Array, qd: Array, qdd: Array
) -> IdentifiedLaw:
    """Identify the servo law by which commands became joint targets.

    Args:
        law: The expected law, of which a call lasts one cycle.
        cycles: Number of each row's cycle (T,), increasing; cycles may be missing.
        commands: Command that was sent for each of these cycles (T, n), rad.
        q: Joint targets at the end of each cycle (T, n), rad.
        qd: Velocities of the joint targets at the end of each cycle (T, n), rad/s.
        qdd: Accelerations of the joint targets over each cycle (T, n), rad/s^2.

    Raises:
        LawNotFound: The motion is too short, no tuning explains it, or several do.
    """
    moving = _moving_rows(cycles, qd)
    if len(moving) < MIN_ROWS:
        raise LawNotFound(f"the joints moved in only {len(moving)} consecutive cycles")

    # The command of each cycle since the first; nan if a cycle was not recorded.
    number = cycles - cycles[0]
    sent = np.full((number[-1] + 1, commands.shape[1]), np.nan)
    sent[number] = commands.astype(np.float32)

    def select_rows(count: int) -> LawRows:
        """Return at most `count` of the moving rows, for fits."""
        rows = _select_blocks(moving, count)
        return LawRows(law.cycle, number[rows], JointMotion(q[rows], qd[rows], qdd[rows]), sent)

    searched = select_rows(MAX_SEARCHED_ROWS)
    judged = select_rows(MAX_JUDGED_ROWS)

    # Fit the expected law, and other tunings if it is not exact.
    max_exact_residual = _max_exact_residual(searched)
    expected = _fit_expected(searched, law, max_exact_residual)
    fits = _search_fits(searched, expected, max_exact_residual)

    # Prefer a tuning that servoj accepts, unless one that it does not accept fits much better.
    best = min(fits, key=lambda fit: fit.cost)
    max_residual = RIVAL_RATIO * best.residual
    rivals = [fit for fit in fits if fit.is_accepted and fit.residual <= max_residual]
    best = min(rivals or [best], key=lambda fit: fit.cost)

    # Judge the best fit by many rows.
    final = judged.fit(best.tuning, best.phase, expected.window)
    residuals, delays = judged.residuals_and_delays(final)
    if len(residuals) < MIN_ROWS:
        raise LawNotFound(f"the commands of only {len(residuals)} cycles were recorded")
    relative_deviations = judged.estimate_deviations(final, residuals) / best.tuning

    is_explained = bool(
        best.residual <= max_exact_residual or np.percentile(residuals, 99.0) < MAX_RESIDUAL
    )
    reason = _reason_for_doubt(best, rivals, is_explained, relative_deviations)
    if reason is not None:
        refit = judged.fit(expected.tuning, expected.phase, expected.window)
        raise LawNotFound(reason, judged.residuals_and_delays(refit)[0])

    # A tuning is X = 1 / gain and Y = lookahead. X and gain have the same relative deviation.
    x, lookahead = best.tuning
    gain = 1.0 / x
    x_deviation, y_deviation = relative_deviations
    return IdentifiedLaw(
        gain=float(gain),
        lookahead=float(lookahead),
        deviations=(float(x_deviation * gain), float(y_deviation * lookahead)),
        delay=float(delays.mean() * law.cycle),
        phase=best.phase,
        residuals=residuals,
    )


def _moving_rows(cycles: Counts, qd: Array) -> Counts:
    """Return the indices of rows in which a joint moves and whose previous cycle was recorded."""
    moving = np.flatnonzero(np.abs(qd).max(axis=1) > MIN_SPEED)
    cycles_since_row_before = np.diff(cycles, prepend=cycles[0] - 2)
    return moving[cycles_since_row_before[moving] == 1]


def _select_blocks(rows: Counts, count: int) -> Counts:
    """Return at most `count` of the rows, in blocks of successive rows spread over all of them."""
    if len(rows) <= count:
        return rows
    begins = np.linspace(0, len(rows) - BLOCK_ROWS, count // BLOCK_ROWS).astype(int)
    selected: Counts = rows[np.unique(begins[:, np.newaxis] + np.arange(BLOCK_ROWS))]
    return selected


def _max_exact_residual(rows: LawRows) -> float:
    """Return the residual up to which a law counts as exact for these rows, rad."""
    steps = np.linalg.norm(np.diff(rows.sent, axis=0)[rows.number - 1], axis=1)
    return min(EXACT_RESIDUAL, EXACT_STEP_FRACTION * float(np.nanmedian(steps)))


def _fit_expected(rows: LawRows, law: ServojLaw, max_exact_residual: float) -> LawFit:
    """Fit the phase of the expected law: from a few phases, then from many, until it is exact."""
    tuning = np.array([1.0 / law.gain, float(np.float32(law.lookahead))])
    window = (round(MAX_DELAY_S / law.cycle), 1)
    best = rows.improve(rows.fit_phase(tuning, window), with_tuning=False)
    if best.residual <= max_exact_residual:
        return best

    for candidate in rows.sweep_phases(best):
        best = min(best, candidate, key=lambda fit: fit.cost)
        if best.residual <= max_exact_residual:
            break
    return best


def _search_fits(rows: LawRows, expected: LawFit, max_exact_residual: float) -> list[LawFit]:
    """Return fits with any tuning, up to the first one that is exact.

    The first fit is the expected law, improved.
    """
    fits = [rows.improve(expected)]
    if fits[0].residual <= max_exact_residual:
        return fits

    for candidate in chain(rows.search_tunings(), rows.search_phases(fits)):
        fits.append(candidate)
        if candidate.residual <= max_exact_residual:
            break
    return fits


def _reason_for_doubt(
    best: LawFit, rivals: list[LawFit], is_explained: bool, deviations: Array
) -> str | None:
    """Return why the tuning of the best fit cannot be reported, as a clause; None if it can.

    Args:
        best: The best fit.
        rivals: Fits that explain the cycles about as well, with tunings that servoj accepts. The
            best fit is one of them, unless servoj does not accept its tuning.
        is_explained: Whether the best fit explains the cycles.
        deviations: Relative standard deviations of X = 1 / gain and Y = lookahead (2,).
    """
    if is_explained and deviations.max() > MAX_DEVIATION:
        amounts = " and ".join(f"{100.0 * deviation:.2g}" for deviation in deviations)
        return f"gain and lookahead remain uncertain by {amounts} % after this motion"

    if not is_explained or not rivals:
        return "no servoj tuning in the accepted range explains the joint targets"

    distinct = [
        fit for fit in rivals if np.abs(fit.tuning / best.tuning - 1.0).max() > DISTINCT_TUNING
    ]
    if not distinct:
        return None
    tunings = " and ".join(
        f"{1.0 / fit.tuning[0]:.4g} with {fit.tuning[1]:.3g} s" for fit in (best, distinct[0])
    )
    return (
        f"gain and lookahead remain ambiguous after this motion: {tunings} explain it "
        "about equally well"
    )
