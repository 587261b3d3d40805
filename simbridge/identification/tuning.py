"""The identified tuning of servoj: gain and lookahead with their standard deviations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simbridge.identification.target_motion import NotIdentified
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN_RANGE, LOOKAHEAD_RANGE

# Largest relative standard deviation of gain and lookahead that is reported.
MAX_DEVIATION = 0.02
# Smallest relative standard deviation: the controller keeps numbers in single precision.
SINGLE_PRECISION = 6e-8
# Smallest value that is tolerated, as a multiple of the least one that servoj accepts.
LOWER_TOLERANCE = 0.95
# Largest value that is tolerated, as a multiple of the largest one that servoj accepts.
UPPER_TOLERANCE = 1.05
# A value beyond its range is taken to be on its edge if it exceeds that by less than this many
# standard deviations, ...
EDGE_DEVIATIONS = 5.0
# ... or by less than this, relative.
EDGE_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Tuning:
    """The identified gain and lookahead of servoj.

    Attributes:
        gain: Gain of servoj's law, 1/s^2.
        lookahead: Lookahead of servoj, s.
        deviation: One standard deviation of gain, 1/s^2, and lookahead, s (2,).
        residuals: Residuals of the fitted rows (R,), rad: the Euclidean distance over all joints.
    """

    gain: float
    lookahead: float
    deviation: Array
    residuals: Array

    @property
    def values(self) -> Array:
        """Gain, 1/s^2, and lookahead, s, in the order of `deviation` (2,)."""
        return np.array([self.gain, self.lookahead])

    @property
    def gain_deviation(self) -> float:
        """One standard deviation of the gain, 1/s^2."""
        return float(self.deviation[0])

    @property
    def lookahead_deviation(self) -> float:
        """One standard deviation of the lookahead, s."""
        return float(self.deviation[1])

    def round_and_check(self, max_deviation: float = MAX_DEVIATION) -> Tuning:
        """Return the tuning rounded to values that can have been set, if it is certain enough.

        Args:
            max_deviation: Largest accepted relative standard deviation of gain and lookahead.

        Raises:
            NotIdentified: servoj does not accept the tuning, or it is too uncertain.
        """
        if not np.isfinite([self.gain, self.lookahead, *self.deviation]).all():
            raise NotIdentified("the motion does not determine gain and lookahead")
        self._check_range("gain", self.gain, GAIN_RANGE)
        self._check_range("lookahead", self.lookahead, LOOKAHEAD_RANGE)

        relative_deviation = self.deviation / self.values
        if relative_deviation.max() > max_deviation:
            gain_percent, lookahead_percent = 100 * relative_deviation
            raise NotIdentified(
                "this motion determines gain and lookahead only to within "
                f"{gain_percent:.2g} % and {lookahead_percent:.2g} %; "
                f"{100 * max_deviation:.0f} % is required"
            )

        # The controller keeps the lookahead in single precision. Take the shortest decimal number
        # with the same single-precision value.
        shortest_lookahead = float(str(np.float32(self.lookahead)))
        least_deviation = SINGLE_PRECISION * self.values
        return replace(
            self,
            gain=_move_to_edge(self.gain, GAIN_RANGE, self.gain_deviation),
            lookahead=_move_to_edge(shortest_lookahead, LOOKAHEAD_RANGE, self.lookahead_deviation),
            deviation=np.maximum(self.deviation, least_deviation),
        )

    @staticmethod
    def _check_range(name: str, value: float, accepted: tuple[float, float]) -> None:
        """Refuse a value that servoj does not accept, within a tolerance."""
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
        deviation: One standard deviation of X, s^2, and Y, s (2,).
        residuals: Residuals of the fitted rows (R,), rad: the Euclidean distance over all joints.
    """
    x, y = pair
    gain = 1.0 / x if x else np.inf
    return Tuning(gain, y, np.array([deviation[0] * gain**2, deviation[1]]), residuals)


def _move_to_edge(value: float, accepted: tuple[float, float], deviation: float) -> float:
    """Return a value, or the edge of its range if it exceeds that by uncertainty or rounding."""
    low, high = accepted
    clipped = min(max(value, low), high)
    tolerance = max(EDGE_DEVIATIONS * deviation, EDGE_ROUNDING * value)
    return float(clipped if abs(value - clipped) < tolerance else value)
