"""The servo law of a controller, from its joint targets and the commands that it was sent.

Under a tuning and a phase of the calls, each cycle's joint targets reveal one point between the
commands of two successive calls (`simbridge.servo.observation.observe_setpoints`). Which commands
these were is searched for by `command_match`, and the law is fitted to them by `law_fit`. Distances
to the path of the commands do not show a delay along it, so commands are matched by time.

First the expected law is tried, with any phase. Only where it does not explain the cycles to
rounding is another tuning searched for: from the least squares for each constant delay, since a
delay and a lookahead look alike until the commands are matched. A tuning is named only where no
other explains the cycles about as well.
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

# Below this speed of its fastest joint, a cycle shows nothing, rad/s.
MIN_SPEED = 1e-4
# Rows that the search looks at, and that the result is judged by, at most.
MAX_SEARCHED_ROWS = 900
MAX_JUDGED_ROWS = 20_000
# How many of them follow one another.
BLOCK_ROWS = 150
# The longest delay of the link, s.
MAX_DELAY_S = 0.2

# A law is exact if it leaves most rows less than this, rad, and less than this fraction of a step
# from command to command.
EXACT_RESIDUAL = 1e-9
EXACT_STEP_FRACTION = 1e-3
# A tuning that leaves more than this many times what the best one leaves is no rival.
RIVAL_RATIO = 4.0
# Tunings are distinct from this difference on, relative.
DISTINCT_TUNING = 0.01
# The largest standard deviation of a tuning that is named, relative.
MAX_DEVIATION = 0.005


@dataclass(frozen=True)
class FoundLaw:
    """A servo law as identified from joint targets.

    Attributes:
        gain: 1/s^2.
        lookahead: Lookahead of servoj, s.
        deviations: Standard deviations of gain, 1/s^2, and lookahead, s.
        delay: Mean delay of the commands, s.
        phase: Time from a cycle's begin to that of its calls, s.
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
        residuals: What the expected law leaves of each examined cycle (K,), rad; empty where that
            is not known.
    """

    def __init__(self, reason: str, residuals: Array | None = None) -> None:
        super().__init__(reason)
        self.residuals = np.zeros(0) if residuals is None else residuals


def find_servo_law(
    law: ServojLaw, cycles: Counts, commands: Array, q: Array, qd: Array, qdd: Array
) -> FoundLaw:
    """Identify the servo law by which commands became joint targets.

    Args:
        law: The expected one; a call lasts one cycle.
        cycles: Increasing numbers (T,) of the rows' cycles; some may be missing.
        commands: Sent for each of these cycles (T, n), rad.
        q: Joint targets (T, n) at the end of each cycle, rad.
        qd: Their velocities (T, n) there, rad/s.
        qdd: Their accelerations (T, n) over each cycle, rad/s^2.

    Raises:
        LawNotFound: No tuning can be named.
    """
    moving = _moving_rows(cycles, qd)
    if len(moving) < MIN_ROWS:
        raise LawNotFound(f"the joints moved in only {len(moving)} consecutive cycles")

    number = cycles - cycles[0]
    sent = np.full((number[-1] + 1, commands.shape[1]), np.nan)
    sent[number] = commands.astype(np.float32)

    def select_rows(count: int) -> LawRows:
        """Take at most so many of the moving rows."""
        rows = _select_blocks(moving, count)
        return LawRows(law.cycle, number[rows], JointMotion(q[rows], qd[rows], qdd[rows]), sent)

    searched = select_rows(MAX_SEARCHED_ROWS)
    judged = select_rows(MAX_JUDGED_ROWS)

    # Fit the expected law, then others where it is not exact.
    exact = _exact_residual(searched)
    expected = _fit_expected(searched, law, exact)
    fits = _search_fits(searched, expected, exact)

    # What servoj does not accept explains nothing, unless much better than what it does accept.
    best = min(fits, key=lambda fit: fit.cost)
    alike = [fit for fit in fits if fit.is_accepted and fit.score <= RIVAL_RATIO * best.score]
    best = min(alike or [best], key=lambda fit: fit.cost)

    # Judge the best one by many rows.
    final = judged.fit(best.tuning, best.phase, expected.window)
    residuals, delays = judged.residuals_and_delays(final)
    if len(residuals) < MIN_ROWS:
        raise LawNotFound(f"the commands of only {len(residuals)} cycles were recorded")
    relative_deviations = judged.estimate_deviations(final, residuals) / best.tuning

    is_explained = bool(best.score <= exact or np.percentile(residuals, 99.0) < MAX_RESIDUAL)
    reason = _doubt(best, alike, is_explained, relative_deviations)
    if reason is not None:
        refit = judged.fit(expected.tuning, expected.phase, expected.window)
        raise LawNotFound(reason, judged.residuals_and_delays(refit)[0])

    gain = 1.0 / best.tuning[0]
    lookahead = best.tuning[1]
    return FoundLaw(
        gain=float(gain),
        lookahead=float(lookahead),
        deviations=(
            float(relative_deviations[0] * gain),
            float(relative_deviations[1] * lookahead),
        ),
        delay=float(delays.mean() * law.cycle),
        phase=best.phase,
        residuals=residuals,
    )


def _moving_rows(cycles: Counts, qd: Array) -> Counts:
    """Return the rows in which the joints move and that follow the cycle before."""
    moving = np.flatnonzero(np.abs(qd).max(axis=1) > MIN_SPEED)
    cycles_since_row_before = np.diff(cycles, prepend=cycles[0] - 2)
    return moving[cycles_since_row_before[moving] == 1]


def _select_blocks(rows: Counts, count: int) -> Counts:
    """Return at most so many of the rows, in blocks of successive ones all over them."""
    if len(rows) <= count:
        return rows
    begins = np.linspace(0, len(rows) - BLOCK_ROWS, count // BLOCK_ROWS).astype(int)
    selected: Counts = rows[np.unique(begins[:, np.newaxis] + np.arange(BLOCK_ROWS))]
    return selected


def _exact_residual(rows: LawRows) -> float:
    """Return the residual below which a law counts as exact, rad."""
    steps = np.linalg.norm(np.diff(rows.sent, axis=0)[rows.number - 1], axis=1)
    return min(EXACT_RESIDUAL, EXACT_STEP_FRACTION * float(np.nanmedian(steps)))


def _fit_expected(rows: LawRows, law: ServojLaw, exact: float) -> LawFit:
    """Fit the phase of the expected law: from a few phases, then from many, until it is exact."""
    tuning = np.array([1.0 / law.gain, float(np.float32(law.lookahead))])
    window = (round(MAX_DELAY_S / law.cycle), 1)
    best = rows.improve(rows.fit_phase(tuning, window), with_tuning=False)
    if best.score <= exact:
        return best

    for candidate in rows.sweep_phases(best):
        best = min(best, candidate, key=lambda fit: fit.cost)
        if best.score <= exact:
            break
    return best


def _search_fits(rows: LawRows, expected: LawFit, exact: float) -> list[LawFit]:
    """Return fits with any tuning, the one that begins from the expected law first.

    The search ends at the first fit that is exact.
    """
    fits = [rows.improve(expected)]
    if fits[0].score <= exact:
        return fits

    for candidate in chain(rows.search_tunings(), rows.search_phases(fits)):
        fits.append(candidate)
        if candidate.score <= exact:
            break
    return fits


def _doubt(best: LawFit, alike: list[LawFit], is_explained: bool, deviations: Array) -> str | None:
    """Return why the best tuning cannot be named; None if it can.

    Args:
        best: The best fit.
        alike: Accepted fits that explain the cycles about as well.
        is_explained: Whether the best fit explains the cycles.
        deviations: Standard deviations of X and Y (2,), relative.
    """
    if is_explained and deviations.max() > MAX_DEVIATION:
        amounts = " and ".join(f"{100.0 * deviation:.2g}" for deviation in deviations)
        return f"gain and lookahead remain uncertain by {amounts} % after this motion"

    if not is_explained or not alike:
        return "no servoj tuning in the accepted range explains the joint targets"

    rivals = [
        fit for fit in alike if np.abs(fit.tuning / best.tuning - 1.0).max() > DISTINCT_TUNING
    ]
    if not rivals:
        return None
    tunings = " and ".join(
        f"{1.0 / fit.tuning[0]:.4g} with {fit.tuning[1]:.3g} s" for fit in (best, rivals[0])
    )
    return (
        f"gain and lookahead remain ambiguous after this motion: {tunings} explain it "
        "about equally well"
    )
