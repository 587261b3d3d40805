"""Fits a servo law to rows of a recording: its tuning, the phase of its calls, and their commands.

The unknowns are X = 1 / gain and Y = lookahead, in which the law is linear, and the phase: how long
after the beginning of a controller's cycle a call of servoj begins. Which command each call took is
unknown, too: it is matched under a law, and the law is then fitted to the matched commands, in
turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simbridge.identification.command_match import match_commands
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE, JointMotion
from simbridge.servo.observation import observe_setpoints

# Smallest number of rows that a law can be fitted to.
MIN_ROWS = 50
# Fraction of the rows whose residuals count: the others may belong to lost or skipped commands.
COUNTED_FRACTION = 0.8
# How far a tuning may exceed the range that servoj accepts, relative to the range's edge.
RANGE_TOLERANCE = 0.05

# Longest usual delay of the link, s.
MAX_USUAL_DELAY_S = 0.04
# How far the delay of a command may vary around the usual one, s.
DELAY_VARIATION_S = 0.014

# Phases that a search starts from, as fractions of a cycle. At 0 a call begins with the cycle. At
# the other phases a cycle reveals a setpoint that is about 0.9, 0.7, 0.5, 0.3 and 0.1 of the way
# from the previous call's command to the current one's.
START_PHASES = (0.0, 0.05, 0.16, 0.29, 0.45, 0.68)
# A phase this close to the beginning or the end of a cycle, as a fraction of it, may be exactly
# there.
EDGE_FRACTION = 0.05
# Number of phases that the sweep over all phases tries.
SWEPT_PHASES = 16
# Number of the best fits that are tried once more from all phases.
MAX_RETRIED_FITS = 3

# Largest number of rounds of an improvement.
MAX_ROUNDS = 10
# Quantiles of the residuals that scale the weights of the rows, alternating between rounds: most
# rows count, then half of them.
ROUND_QUANTILES = (COUNTED_FRACTION, 0.5)
# Number of successive rounds without a gain after which an improvement ends.
MAX_ROUNDS_WITHOUT_GAIN = 2
# Smallest decrease of the cost that counts as a gain.
MIN_COST_GAIN = 0.01
# Smallest decrease of the residual that counts as a gain, relative.
MIN_RESIDUAL_GAIN = 0.1
# How much more a fit with calls at the beginning of the cycle may cost than one close to it.
EDGE_COST = 0.1
# Largest number of Gauss-Newton steps for one set of matched commands.
MAX_NEWTON_STEPS = 3
# Relative change of the unknowns below which the Gauss-Newton steps end.
CONVERGED = 1e-10
# Smallest and largest weight of the current call's command with which the sweep over all phases
# starts.
SWEPT_WEIGHTS = (0.025, 0.975)
# Lookaheads that a fit may start from, s: a little beyond the range that servoj accepts.
LEAST_START_LOOKAHEAD = 0.9 * LOOKAHEAD_RANGE[0]
LARGEST_START_LOOKAHEAD = 1.1 * LOOKAHEAD_RANGE[1]
# Smallest and largest X, s^2, and Y, s, of a fit: half and twice the range that servoj accepts.
LEAST_TUNING = (0.5 / GAIN_RANGE[1], 0.5 * LOOKAHEAD_RANGE[0])
LARGEST_TUNING = (2.0 / GAIN_RANGE[0], 2.0 * LOOKAHEAD_RANGE[1])
# Residuals beyond this many medians are left out of the standard deviations.
MAX_KEPT_RESIDUAL = 3.0
# Smallest residual that is not rounding, rad.
LEAST_RESIDUAL = 1e-13
# Step of the numerical derivatives, relative to X, to Y and to the cycle.
DERIVATIVE_STEP = 1e-6
# Singular values of the normal equations up to this fraction of the largest count as zero.
LEAST_SINGULAR_VALUE = 1e-14


@dataclass(frozen=True, eq=False)
class LawFit:
    """A servo law as fitted to K rows of a recording.

    Attributes:
        tuning: X = 1 / gain, s^2, and Y = lookahead, s (2,).
        phase: How long after the beginning of a cycle a call begins, s.
        window: Oldest and newest command that a row may have taken: the row of cycle k may have
            taken the commands k - window[0] to k + window[1].
        matched: Indices (2, K) of the matched commands: the previous call's and the current call's
            command at the end of each row's cycle.
        cost: Mean cost of the matched commands, as `match_commands` counts it; lower is better.
        residual: Residual that most rows (COUNTED_FRACTION) stay below, rad; infinite if the
            commands of too few rows were recorded.
    """

    tuning: Array
    phase: float
    window: tuple[int, int]
    matched: Counts
    cost: float
    residual: float

    @property
    def is_accepted(self) -> bool:
        """True if servoj accepts the tuning, within a tolerance."""
        gain_and_lookahead = np.array([1.0 / self.tuning[0], self.tuning[1]])
        low, high = np.transpose([GAIN_RANGE, LOOKAHEAD_RANGE])
        is_high_enough = ((1.0 - RANGE_TOLERANCE) * low <= gain_and_lookahead).all()
        is_low_enough = (gain_and_lookahead <= (1.0 + RANGE_TOLERANCE) * high).all()
        return bool(is_high_enough and is_low_enough)


@dataclass(frozen=True, eq=False)
class LawRows:
    """Rows of a recording, to which servo laws are fitted.

    Attributes:
        cycle: Length of the controller's cycle, s.
        number: Number of each row's cycle (K,), an index into `sent`.
        motion: Joint targets (K, n) of the rows.
        sent: Command of each cycle (C, n), rad; NaN where none was recorded.
    """

    cycle: float
    number: Counts
    motion: JointMotion
    sent: Array

    def fit(self, tuning: Array, phase: float, window: tuple[int, int]) -> LawFit:
        """Return the fit of a given law: the commands that match it best, and their residuals.

        Args:
            tuning: X and Y (2,).
            phase: How long after the beginning of a cycle a call begins, s.
            window: Oldest and newest command that a row may have taken; see `LawFit`.
        """
        setpoints, weight = self._reveal_setpoints(tuning, phase)
        matched, cost = match_commands(
            self.sent, setpoints, self.number, weight=weight, window=window
        )

        distances = np.linalg.norm(self._residuals(tuning, phase, matched), axis=1)
        known = distances[np.isfinite(distances)]
        residual = np.inf
        if len(known) >= MIN_ROWS:
            residual = float(np.quantile(known, COUNTED_FRACTION))
        return LawFit(tuning, phase, window, matched, cost / len(setpoints), residual)

    def fit_phase(self, tuning: Array, window: tuple[int, int]) -> LawFit:
        """Return the fit of a tuning with the best of START_PHASES."""
        fits = [self.fit(tuning, fraction * self.cycle, window) for fraction in START_PHASES]
        return min(fits, key=lambda fit: fit.cost)

    def improve(self, fit: LawFit, with_tuning: bool = True) -> LawFit:
        """Improve a fit until two rounds bring no gain.

        Each round fits the law to the matched commands, and then matches the commands anew.

        Args:
            fit: The fit to start from.
            with_tuning: Whether the tuning may vary, too; otherwise only the phase does.
        """
        rounds_without_gain = 0
        for round_number in range(MAX_ROUNDS):
            quantile = ROUND_QUANTILES[round_number % len(ROUND_QUANTILES)]
            x, y, phase = self._refine(fit, with_tuning, quantile)
            # A negative phase is a call that begins near the end of the previous cycle.
            candidate = self.fit(np.array([x, y]), float(phase % self.cycle), fit.window)

            gains_cost = candidate.cost <= fit.cost - MIN_COST_GAIN
            gains_residual = candidate.residual <= (1.0 - MIN_RESIDUAL_GAIN) * fit.residual
            rounds_without_gain = 0 if gains_cost or gains_residual else rounds_without_gain + 1

            if candidate.cost < fit.cost:
                fit = candidate
            if rounds_without_gain == MAX_ROUNDS_WITHOUT_GAIN:
                break

        # Calls close to the edge of a cycle may begin exactly on it: try that, with the phase fixed
        # at zero.
        distance_to_edge = min(fit.phase, self.cycle - fit.phase)
        if 0.0 < distance_to_edge < EDGE_FRACTION * self.cycle:
            edge_fit = self.improve(self.fit(fit.tuning, 0.0, fit.window), with_tuning)
            if edge_fit.cost < fit.cost + EDGE_COST:
                return edge_fit
        return fit

    def sweep_phases(self, fit: LawFit) -> Iterator[LawFit]:
        """Yield fits with the same tuning, improved from phases all over the cycle."""
        for weight in np.linspace(*SWEPT_WEIGHTS, SWEPT_PHASES):
            # The command of a call that has acted for a fraction f of the cycle has the weight f^2.
            phase = float(self.cycle * (1.0 - np.sqrt(weight)))
            yield self.improve(self.fit(fit.tuning, phase, fit.window), with_tuning=False)

    def search_tunings(self) -> Iterator[LawFit]:
        """Yield a fit for each likely delay of the link, improved from a least-squares tuning.

        Under a constant delay the command s of each row is known, and the law reads
        X qdd + Y qd' = s - q', where q' and qd' are position and velocity one cycle before. It is
        linear in X and Y.
        """
        velocity_before = self.motion.qd - self.cycle * self.motion.qdd
        columns = np.stack([self.motion.qdd, velocity_before], axis=-1)
        position_before = self.motion.q - self.cycle * self.motion.qd
        variation = round(DELAY_VARIATION_S / self.cycle) + 1

        # A delay of -1 is a command that acted one cycle before it was recorded.
        for delay in range(-1, round(MAX_USUAL_DELAY_S / self.cycle) + 1):
            command = self.number - delay
            last = len(self.sent) - 1
            lead = self.sent[np.clip(command, 0, last)] - position_before
            known = (command >= 0) & (command <= last) & np.isfinite(lead).all(axis=1)
            if known.sum() < MIN_ROWS:
                continue

            weights = np.ones(int(known.sum()))
            tuning = _solve_least_squares(columns[known], lead[known], weights)
            # Search only from a plausible lookahead.
            if not LEAST_START_LOOKAHEAD < tuning[1] < LARGEST_START_LOOKAHEAD:
                continue
            tuning[0] = np.clip(tuning[0], 1.0 / GAIN_RANGE[1], 1.0 / GAIN_RANGE[0])
            window = (delay + variation, variation - delay)
            yield self.improve(self.fit_phase(tuning, window))

    def search_phases(self, fits: list[LawFit]) -> Iterator[LawFit]:
        """Yield the best fits improved once more, from each of START_PHASES.

        Calls that begin inside a cycle are easily mistaken for calls that begin with it.
        """
        for fit in sorted(fits, key=lambda fit: fit.cost)[:MAX_RETRIED_FITS]:
            for fraction in START_PHASES[1:]:
                phase = self.cycle * fraction
                weight = self._reveal_setpoints(fit.tuning, phase)[1]
                lead = weight - self._reveal_setpoints(fit.tuning, fit.phase)[1]

                for lead_cycles in (lead, lead + 1.0):
                    # Change the lookahead so that the setpoints lead the commands as far as before.
                    tuning = fit.tuning + np.array([0.0, lead_cycles * self.cycle])
                    yield self.improve(self.fit(tuning, phase, fit.window))

    def residuals_and_delays(self, fit: LawFit) -> tuple[Array, Counts]:
        """Return the residuals and delays of the R rows whose commands were recorded.

        Returns:
            Distance of each setpoint from the commands (R,), rad, and delay of each current command
            (R,), in cycles.
        """
        residuals = np.linalg.norm(self._residuals(fit.tuning, fit.phase, fit.matched), axis=1)
        known = np.isfinite(residuals)
        return residuals[known], (self.number - fit.matched[1])[known]

    def estimate_deviations(self, fit: LawFit, distances: Array) -> Array:
        """Return the standard deviations of X, s^2, and Y, s (2,).

        Args:
            fit: The fitted law.
            distances: Distances (R,) of the setpoints from the commands, rad.
        """
        residuals = self._residuals(fit.tuning, fit.phase, fit.matched)
        # Leave out rows whose residuals are far beyond the median.
        max_residual = MAX_KEPT_RESIDUAL * float(np.median(distances))
        kept = np.linalg.norm(residuals, axis=1) <= max_residual
        variance = float(np.mean(residuals[kept] ** 2))

        # The covariance of a least-squares fit of X, Y and a free phase: the variance of the
        # residuals times the inverse of the normal matrix.
        estimate = np.array([*fit.tuning, fit.phase])
        unknowns = _free_unknowns(fit, with_tuning=True)
        slopes = self._slopes(estimate, residuals, unknowns, fit.matched)
        columns, scale = _scale_columns(slopes[kept])
        inverse = np.linalg.pinv(np.einsum("kni,knj->ij", columns, columns))
        scaled_deviations = np.sqrt(variance * np.diag(inverse))
        return np.asarray(scaled_deviations[:2] / scale[:2])

    def _reveal_setpoints(self, tuning: Array, phase: float) -> tuple[Array, float]:
        """Return what the rows' cycles reveal under a law.

        Returns:
            The setpoint of each row (K, n), rad: a point between two successive calls' commands;
            and the weight of the current call's command in it.
        """
        last_step = self.cycle - phase
        setpoints, weights = observe_setpoints(
            self.motion,
            self.cycle,
            gain=1.0 / tuning[0],
            lookahead=tuning[1],
            last_step=np.full(len(self.number), last_step),
        )
        return setpoints, float(weights[0]) * last_step / self.cycle

    def _residuals(self, tuning: Array, phase: float, matched: Counts) -> Array:
        """Return setpoints minus commands (K, n), rad; NaN where a command was not recorded."""
        setpoints, weight = self._reveal_setpoints(tuning, phase)
        previous = self.sent[matched[0]]
        current = self.sent[matched[1]]

        # If calls begin with the cycle, the previous command has no weight. It may be NaN.
        if weight == 1.0:
            return setpoints - current
        return setpoints - ((1.0 - weight) * previous + weight * current)

    def _slopes(
        self, estimate: Array, residuals: Array, unknowns: list[int], matched: Counts
    ) -> Array:
        """Return the derivatives (K, n, m) of the residuals with respect to m unknowns.

        Args:
            estimate: X, s^2, Y, s, and phase, s (3,).
            residuals: Residuals at the estimate (K, n), rad.
            unknowns: Indices of the m elements of the estimate that vary.
            matched: Indices (2, K) of the matched commands; see `LawFit`.
        """
        x, y, _ = estimate
        sizes = [DERIVATIVE_STEP * x, DERIVATIVE_STEP * y, -DERIVATIVE_STEP * self.cycle]
        steps = np.diag(sizes)

        slopes = []
        for i in unknowns:
            varied = estimate + steps[i]
            change = self._residuals(varied[:2], varied[2], matched) - residuals
            slopes.append(change / steps[i, i])
        return np.stack(slopes, axis=-1)

    def _refine(self, fit: LawFit, with_tuning: bool, quantile: float) -> Array:
        """Fit the law to the matched commands of a fit, by Gauss-Newton steps.

        Before each step the rows get Cauchy weights by their residuals.

        Args:
            fit: The fit to start from.
            with_tuning: Whether the tuning may vary, too; otherwise only the phase does.
            quantile: Quantile of the residuals that scales the weights.

        Returns:
            X = 1 / gain, s^2, Y = lookahead, s, and the phase, s (3,).
        """
        estimate = np.array([*fit.tuning, fit.phase])
        unknowns = _free_unknowns(fit, with_tuning)
        if not unknowns:
            return estimate

        for _ in range(MAX_NEWTON_STEPS):
            residuals = self._residuals(estimate[:2], estimate[2], fit.matched)
            known = np.isfinite(residuals).all(axis=1)
            if known.sum() < MIN_ROWS:
                break

            # A row at the quantile gets half the weight of an exact one; far beyond it a row hardly
            # matters.
            distance = np.linalg.norm(residuals[known], axis=1)
            scale = max(float(np.quantile(distance, quantile)), LEAST_RESIDUAL)
            weights = 1.0 / (1.0 + (distance / scale) ** 2)

            slopes = self._slopes(estimate, residuals, unknowns, fit.matched)
            change = np.zeros(3)
            change[unknowns] = -_solve_least_squares(slopes[known], residuals[known], weights)
            estimate = estimate + change
            estimate[:2] = np.clip(estimate[:2], LEAST_TUNING, LARGEST_TUNING)

            tuning_settled = np.abs(change[:2] / estimate[:2]).max() < CONVERGED
            phase_settled = abs(change[2]) < CONVERGED * self.cycle
            if tuning_settled and phase_settled:
                break
            # A phase that leaves the cycle belongs to other commands, which must be matched anew.
            if fit.phase > 0.0 and not 0.0 < estimate[2] < self.cycle:
                break
        return estimate


def _free_unknowns(fit: LawFit, with_tuning: bool) -> list[int]:
    """Return the indices of X, Y and phase that may vary: a phase of zero stays zero."""
    unknowns = [0, 1] if with_tuning else []
    if fit.phase > 0.0:
        unknowns.append(2)
    return unknowns


def _scale_columns(columns: Array) -> tuple[Array, Array]:
    """Divide each column (K, n, m) by its length.

    Returns:
        The divided columns, and the lengths that they were divided by (m,).
    """
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
    scaled_x = np.linalg.lstsq(normal, projected, rcond=LEAST_SINGULAR_VALUE)[0]
    return np.asarray(scaled_x / scale)
