"""Fits of a servo law to rows of a recording: tuning, phase of the calls, and their commands.

The unknowns are X = 1 / gain and Y = lookahead, in which the law is linear, and the phase.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simbridge.identification.command_match import match_commands
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, JointMotion
from simbridge.servo.observation import observe_setpoints

# Rows that a fit needs.
MIN_ROWS = 50
# Fraction of the rows whose residuals count: the others may belong to lost or forgotten commands.
COUNTED_FRACTION = 0.8
# By how much a tuning may exceed the range that servoj accepts, relative.
RANGE_TOLERANCE = 0.05

# The usual delay of the link at most, and by how much it varies around that, s.
MAX_USUAL_DELAY_S = 0.04
DELAY_VARIATION_S = 0.014

# Phases that a search begins from, as fractions of a cycle; 0 is a call that begins on the edge.
# The setpoints that cycles reveal with the others are about 0.9, 0.7, 0.5, 0.3 and 0.1 of the way
# to the last call's command.
START_PHASES = (0.0, 0.05, 0.16, 0.29, 0.45, 0.68)
# A phase within this fraction of a cycle of its edge may as well be on it.
EDGE_FRACTION = 0.05
# Phases that the sweep over all phases tries.
SWEPT_PHASES = 16
# The best fits that are tried once more from all phases.
MAX_RETRIED_FITS = 3

# Pairs of improvements, with most and with half of the rows; and failures that end them.
MAX_IMPROVEMENT_PAIRS = 5
MAX_FAILURES = 2
# An improvement that lowers the cost by less than this, and the score by less, relative, failed.
MIN_COST_GAIN = 0.01
MIN_SCORE_GAIN = 0.1
# A fit on the edge may cost this much more than one beside it.
EDGE_COST = 0.1
# Steps of Gauss and Newton for one set of commands, and the relative change that ends them.
MAX_NEWTON_STEPS = 3
CONVERGED = 1e-10
# Weights of a call's command from which the sweep over all phases begins: least and largest.
SWEPT_WEIGHTS = (0.025, 0.975)
# Lookaheads from which a fit begins, s: somewhat beyond the range that servoj accepts.
LEAST_START_LOOKAHEAD = 0.9 * LOOKAHEAD_RANGE[0]
LARGEST_START_LOOKAHEAD = 1.1 * LOOKAHEAD_RANGE[1]
# Residuals beyond this many medians do not count for the standard deviations.
MAX_KEPT_RESIDUAL = 3.0
# Residuals below this are rounding, rad.
LEAST_RESIDUAL = 1e-13
# Step of the derivatives, relative to X, to Y and to the cycle.
DERIVATIVE_STEP = 1e-6


@dataclass(frozen=True, eq=False)
class LawFit:
    """A servo law as fitted to some rows.

    Attributes:
        tuning: X = 1 / gain, s^2, and Y = lookahead, s (2,).
        phase: Time from the beginning of a cycle to that of its calls, s.
        window: How many commands before, and after, that of its own cycle a row may have taken.
        matched: Indices (2, K) of the commands of the call before, and of the call at the end of
            each row's cycle.
        cost: Mean cost of the rows with these commands; lower is better.
        score: The largest residual of most rows, rad.
    """

    tuning: Array
    phase: float
    window: tuple[int, int]
    matched: Counts
    cost: float
    score: float

    @property
    def is_accepted(self) -> bool:
        """True if servoj accepts the tuning, within a tolerance."""
        tuning = np.array([1.0 / self.tuning[0], self.tuning[1]])
        low, high = np.transpose([GAIN_RANGE, LOOKAHEAD_RANGE])
        is_high_enough = ((1.0 - RANGE_TOLERANCE) * low <= tuning).all()
        is_low_enough = (tuning <= (1.0 + RANGE_TOLERANCE) * high).all()
        return bool(is_high_enough and is_low_enough)


@dataclass(frozen=True, eq=False)
class LawRows:
    """Rows of a recording, to which servo laws are fitted.

    Attributes:
        cycle: Length of the controller's cycle, s.
        number: The number of each row's cycle (K,).
        motion: Joint targets (K, n) of the rows.
        sent: The command of each cycle (C, n), rad; NaN where none was recorded.
    """

    cycle: float
    number: Counts
    motion: JointMotion
    sent: Array

    def fit(self, tuning: Array, phase: float, window: tuple[int, int]) -> LawFit:
        """Return a law with the commands that fit it best.

        Args:
            tuning: X and Y (2,).
            phase: Time from the beginning of a cycle to that of its calls, s.
            window: How many commands before, and after, that of its own cycle a row may have
                taken.
        """
        setpoints, weight = self._reveal_setpoints(tuning, phase)
        matched, cost = match_commands(
            self.sent, setpoints, self.number, weight=weight, window=window
        )

        distances = np.linalg.norm(self._residuals(tuning, phase, matched), axis=1)
        known = distances[np.isfinite(distances)]
        score = float(np.quantile(known, COUNTED_FRACTION)) if len(known) >= MIN_ROWS else np.inf
        return LawFit(tuning, phase, window, matched, cost / len(setpoints), score)

    def fit_phase(self, tuning: Array, window: tuple[int, int]) -> LawFit:
        """Return the best fit of a tuning among some phases."""
        fits = [self.fit(tuning, fraction * self.cycle, window) for fraction in START_PHASES]
        return min(fits, key=lambda fit: fit.cost)

    def improve(self, fit: LawFit, with_tuning: bool = True) -> LawFit:
        """Improve a fit: fit the law to its commands, then search for the law's commands, in turns.

        Args:
            fit: The fit to begin from.
            with_tuning: Vary the tuning, too; else the phase alone.
        """
        failures = 0
        for fraction in (COUNTED_FRACTION, 0.5) * MAX_IMPROVEMENT_PAIRS:
            x = self._refine(fit, with_tuning, fraction)
            # A phase before the cycle belongs to the end of the cycle before.
            candidate = self.fit(x[:2], float(x[2] % self.cycle), fit.window)

            cost_stays = candidate.cost > fit.cost - MIN_COST_GAIN
            score_stays = candidate.score > (1.0 - MIN_SCORE_GAIN) * fit.score
            failures = failures + 1 if cost_stays and score_stays else 0

            fit = min(fit, candidate, key=lambda compared: compared.cost)
            if failures == MAX_FAILURES:
                break

        distance_to_edge = min(fit.phase, self.cycle - fit.phase)
        if 0.0 < distance_to_edge < EDGE_FRACTION * self.cycle:
            edge = self.improve(self.fit(fit.tuning, 0.0, fit.window), with_tuning)
            return edge if edge.cost < fit.cost + EDGE_COST else fit
        return fit

    def sweep_phases(self, fit: LawFit) -> Iterator[LawFit]:
        """Yield fits of the same tuning that begin from phases all over the cycle."""
        for weight in np.linspace(*SWEPT_WEIGHTS, SWEPT_PHASES):
            # A call that has acted for a fraction f of the cycle has the weight f^2.
            phase = float(self.cycle * (1.0 - np.sqrt(weight)))
            yield self.improve(self.fit(fit.tuning, phase, fit.window), with_tuning=False)

    def search_tunings(self) -> Iterator[LawFit]:
        """Yield fits that begin from least squares with a constant delay, for each likely delay.

        With the command s of a row the law is X qdd + Y qd' = s - q', where q' and qd' are position
        and velocity one cycle before: linear in X and Y.
        """
        velocity_before = self.motion.qd - self.cycle * self.motion.qdd
        columns = np.stack([self.motion.qdd, velocity_before], axis=-1)
        position_before = self.motion.q - self.cycle * self.motion.qd
        variation = round(DELAY_VARIATION_S / self.cycle) + 1

        # From one cycle before the command was recorded to the longest usual delay.
        for delay in range(-1, round(MAX_USUAL_DELAY_S / self.cycle) + 1):
            command = self.number - delay
            last = len(self.sent) - 1
            lead = self.sent[np.clip(command, 0, last)] - position_before
            known = (command >= 0) & (command <= last) & np.isfinite(lead).all(axis=1)
            if known.sum() < MIN_ROWS:
                continue

            weights = np.ones(int(known.sum()))
            tuning = _solve_least_squares(columns[known], lead[known], weights)
            # Only a likely lookahead is worth a search.
            if not LEAST_START_LOOKAHEAD < tuning[1] < LARGEST_START_LOOKAHEAD:
                continue
            tuning[0] = np.clip(tuning[0], 1.0 / GAIN_RANGE[1], 1.0 / GAIN_RANGE[0])
            window = (delay + variation, variation - delay)
            yield self.improve(self.fit_phase(tuning, window))

    def search_phases(self, fits: list[LawFit]) -> Iterator[LawFit]:
        """Yield the best of the fits once more, from all phases.

        Calls that begin inside of a cycle are easily mistaken for calls on its edge.
        """
        for fit in sorted(fits, key=lambda fit: fit.cost)[:MAX_RETRIED_FITS]:
            for fraction in START_PHASES[1:]:
                phase = self.cycle * fraction
                weight = self._reveal_setpoints(fit.tuning, phase)[1]
                lead = weight - self._reveal_setpoints(fit.tuning, fit.phase)[1]

                for lead_cycles in (lead, lead + 1.0):
                    # A lookahead with which the setpoints lead the commands as far as before.
                    tuning = fit.tuning + np.array([0.0, lead_cycles * self.cycle])
                    yield self.improve(self.fit(tuning, phase, fit.window))

    def residuals_and_delays(self, fit: LawFit) -> tuple[Array, Counts]:
        """Return residuals and delays of the rows whose commands were recorded.

        Returns:
            Distances (R,) of the setpoints from the commands, rad, and delays (R,) in cycles.
        """
        residuals = np.linalg.norm(self._residuals(fit.tuning, fit.phase, fit.matched), axis=1)
        known = np.isfinite(residuals)
        return residuals[known], (self.number - fit.matched[1])[known]

    def estimate_deviations(self, fit: LawFit, distances: Array) -> Array:
        """Return the standard deviations of X and Y (2,).

        Args:
            fit: The law.
            distances: Distances (R,) of the setpoints from the commands, rad.
        """
        x = np.array([*fit.tuning, fit.phase])
        residuals = self._residuals(fit.tuning, fit.phase, fit.matched)
        # Rows with residuals far beyond the median do not count.
        largest = MAX_KEPT_RESIDUAL * float(np.median(distances))
        kept = np.linalg.norm(residuals, axis=1) <= largest

        unknowns = _free_unknowns(fit, with_tuning=True)
        slopes = self._slopes(x, residuals, unknowns, fit.matched)
        columns, scale = _scale_columns(slopes[kept])
        inverse = np.linalg.pinv(np.einsum("kni,knj->ij", columns, columns))
        variance = float(np.mean(residuals[kept] ** 2))
        return np.asarray(np.sqrt(variance * np.diag(inverse))[:2] / scale[:2])

    def _reveal_setpoints(self, tuning: Array, phase: float) -> tuple[Array, float]:
        """Return the setpoint between two commands (K, n), rad, and the weight of the last one."""
        last_step = self.cycle - phase
        setpoints, weights = observe_setpoints(
            self.motion,
            self.cycle,
            1.0 / tuning[0],
            tuning[1],
            np.full(len(self.number), last_step),
        )
        return setpoints, float(weights[0]) * last_step / self.cycle

    def _residuals(self, tuning: Array, phase: float, matched: Counts) -> Array:
        """Return setpoints minus commands (K, n), rad; NaN where a command was not recorded."""
        setpoints, weight = self._reveal_setpoints(tuning, phase)
        previous = self.sent[matched[0]]
        current = self.sent[matched[1]]

        # The command before does not matter where calls begin on the edge.
        if weight == 1.0:
            return setpoints - current
        return setpoints - ((1.0 - weight) * previous + weight * current)

    def _slopes(self, x: Array, residuals: Array, unknowns: list[int], matched: Counts) -> Array:
        """Return the derivatives (K, n, m) of the residuals by m unknowns.

        Args:
            x: X, Y and phase (3,).
            residuals: Residuals at x (K, n), rad.
            unknowns: Indices of the m elements of x that vary.
            matched: Indices (2, K) of the commands of the call before, and of the call at the end
                of each row's cycle.
        """
        sizes = [DERIVATIVE_STEP * x[0], DERIVATIVE_STEP * x[1], -DERIVATIVE_STEP * self.cycle]
        steps = np.diag(sizes)

        slopes = []
        for i in unknowns:
            varied = x + steps[i]
            change = self._residuals(varied[:2], varied[2], matched) - residuals
            slopes.append(change / steps[i, i])
        return np.stack(slopes, axis=-1)

    def _refine(self, fit: LawFit, with_tuning: bool, fraction: float) -> Array:
        """Return X = 1 / gain, Y = lookahead and the phase (3,) for the commands of a fit.

        By Gauss-Newton steps, with Cauchy weights from the residuals before each step.

        Args:
            fit: The fit to begin from.
            with_tuning: Vary the tuning, too; else the phase alone.
            fraction: Fraction of the rows that counts.
        """
        x = np.array([*fit.tuning, fit.phase])
        unknowns = _free_unknowns(fit, with_tuning)
        if not unknowns:
            return x

        for _ in range(MAX_NEWTON_STEPS):
            residuals = self._residuals(x[:2], x[2], fit.matched)
            known = np.isfinite(residuals).all(axis=1)
            if known.sum() < MIN_ROWS:
                break

            # Residuals beyond those of the rows that count hardly matter.
            distance = np.linalg.norm(residuals[known], axis=1)
            scale = max(float(np.quantile(distance, fraction)), LEAST_RESIDUAL)
            weights = 1.0 / (1.0 + (distance / scale) ** 2)

            slopes = self._slopes(x, residuals, unknowns, fit.matched)
            change = np.zeros(3)
            change[unknowns] = -_solve_least_squares(slopes[known], residuals[known], weights)
            x = x + change
            # Stay within twice the range that servoj accepts.
            x[0] = np.clip(x[0], 0.5 / GAIN_RANGE[1], 2.0 / GAIN_RANGE[0])
            x[1] = np.clip(x[1], 0.5 * LOOKAHEAD_RANGE[0], 2.0 * LOOKAHEAD_RANGE[1])

            tuning_settled = np.abs(change[:2] / x[:2]).max() < CONVERGED
            phase_settled = abs(change[2]) < CONVERGED * self.cycle
            if tuning_settled and phase_settled:
                break
            # Beyond its cycle a phase belongs to other commands, which must be searched for anew.
            if fit.phase > 0.0 and not 0.0 < x[2] < self.cycle:
                break
        return x


def _free_unknowns(fit: LawFit, with_tuning: bool) -> list[int]:
    """Return which of X, Y and phase may vary: a phase on the edge stays there."""
    unknowns = [0, 1] if with_tuning else []
    if fit.phase > 0.0:
        unknowns.append(2)
    return unknowns


def _scale_columns(columns: Array) -> tuple[Array, Array]:
    """Return columns (K, n, m) of similar size, and by what they were divided (m,)."""
    scale = np.sqrt((columns**2).sum(axis=(0, 1)))
    scale[scale == 0.0] = 1.0
    return columns / scale, scale


def _solve_least_squares(columns: Array, target: Array, weights: Array) -> Array:
    """Return the weighted least-squares solution x (m,) of columns x = target.

    Args:
        columns: Coefficients of the unknowns (K, n, m).
        target: Right-hand sides (K, n).
        weights: Weights of the rows (K,).
    """
    columns, scale = _scale_columns(columns)
    weighted = columns * weights[:, np.newaxis, np.newaxis]
    normal = np.einsum("kni,knj->ij", weighted, columns)
    projected = np.einsum("kni,kn->i", weighted, target)
    x: Array = np.linalg.lstsq(normal, projected, rcond=1e-14)[0] / scale
    return x
