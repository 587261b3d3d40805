"""The tuning of servoj, as identified: gain and lookahead with their deviations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE

# The largest standard deviation of gain and lookahead that is accepted, relative.
MAX_DEVIATION = 0.02
# Nothing is known better than what the controller holds in single precision, relative.
SINGLE_PRECISION = 6e-8
# How far below, and above, the range that servoj accepts a tuning may be: factors.
LOWER_TOLERANCE = 0.95
UPPER_TOLERANCE = 1.05
# A value that exceeds its range by this many deviations, or by rounding (relative), is on its edge.
EDGE_DEVIATIONS = 5.0
EDGE_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Tuning:
    """Gain and lookahead of servoj, as identified.

    Attributes:
        gain: Gain of servoj's law, 1/s^2.
        lookahead: Lookahead of servoj, s.
        deviation: One standard deviation of both (2,).
        residuals: Residuals of the fitted rows (R,), rad: the Euclidean distance over all joints.
    """

    gain: float
    lookahead: float
    deviation: Array
    residuals: Array

    def round_and_check(self) -> Tuning:
        """Return the same tuning, rounded as somebody may have set it.

        Raises:
            NotIdentified: servoj does not accept the tuning, or it is too uncertain.
        """
        if not np.isfinite([self.gain, self.lookahead, *self.deviation]).all():
            raise NotIdentified("the motion does not determine gain and lookahead")
        self._check_range("gain", self.gain, GAIN_RANGE)
        self._check_range("lookahead", self.lookahead, LOOKAHEAD_RANGE)

        relative = self.deviation / (self.gain, self.lookahead)
        if relative.max() > MAX_DEVIATION:
            raise NotIdentified(
                "this motion determines gain and lookahead only to within "
                f"{100 * relative[0]:.2g} % and {100 * relative[1]:.2g} %; "
                f"{100 * MAX_DEVIATION:.0f} % is required"
            )

        # The controller keeps a lookahead in single precision: take the shortest decimal number
        # that it stands for.
        shortest_lookahead = float(str(np.float32(self.lookahead)))
        least_deviation = SINGLE_PRECISION * np.array([self.gain, self.lookahead])
        return replace(
            self,
            gain=_move_to_edge(self.gain, GAIN_RANGE, self.deviation[0]),
            lookahead=_move_to_edge(shortest_lookahead, LOOKAHEAD_RANGE, self.deviation[1]),
            deviation=np.maximum(self.deviation, least_deviation),
        )

    @staticmethod
    def _check_range(name: str, value: float, accepted: tuple[float, float]) -> None:
        """Refuse what servoj does not accept, within a tolerance."""
        low, high = accepted
        if not LOWER_TOLERANCE * low <= value <= UPPER_TOLERANCE * high:
            raise NotIdentified(
                f"the best fit has a {name} of {value:.4g}, which servoj does not accept "
                f"({low:g} to {high:g}): this motion was not made by servoj"
            )


def tuning_of_pair(pair: tuple[float, float], deviation: Array, residuals: Array) -> Tuning:
    """Return the tuning of X = 1 / gain and Y = lookahead.

    Args:
        pair: X, s^2, and Y, s.
        deviation: One standard deviation of both (2,).
        residuals: Residuals of the fitted rows (R,), rad: the Euclidean distance over all joints.
    """
    x, y = pair
    gain = 1.0 / x if x else np.inf
    return Tuning(gain, y, np.array([deviation[0] * gain**2, deviation[1]]), residuals)


def _move_to_edge(value: float, accepted: tuple[float, float], deviation: float) -> float:
    """Return the range's edge for a value beyond it by its uncertainty, or by rounding."""
    low, high = accepted
    nearest = min(max(value, low), high)
    tolerance = max(EDGE_DEVIATIONS * deviation, EDGE_ROUNDING * value)
    return float(nearest if abs(value - nearest) < tolerance else value)
