"""The one model of how a UR controller's servoj answers its setpoints.

UR documents what servoj's parameters do, not how. This model is the simplest that does the same: every joint is a mass
on a spring and a damper, pulled to the last setpoint, which is held between calls:

    qdd = gain (setpoint - q) - gain * lookahead * qd

gain (100..2000) is the stiffness, per second squared; lookahead (0.03..0.2 s) is the time by which a steady motion is
trailed (a real UR10e trailed 0.03 s of lookahead by 0.034 s, of which 4 to 6 ms are communication). The damping ratio
is lookahead sqrt(gain) / 2: 0.67 with 2000 and 0.03 s, as UR's own driver; low gain with a short lookahead overshoots.

THE MODEL HAS NOT BEEN VALIDATED against URSim or a robot. The emulator uses it, and PyBullet with `--servo servoj`.
"""

from __future__ import annotations

import cmath
import math

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

LOOKAHEAD = 0.03  # s, as UR's own driver
GAIN = 2000.0  # 1/s^2, likewise
LOOKAHEAD_RANGE = (0.03, 0.2)
GAIN_RANGE = (100.0, 2000.0)


class ServojModel:
    """Joints that follow held setpoints; the differential equation is solved exactly from period to period.

    Args:
        q: Where the joints rest at first (n,), rad.
        period: Between two steps, s.
        lookahead: s.
        gain: 1/s^2.

    Raises:
        InvalidParameter: lookahead or gain is outside of UR's range.
    """

    def __init__(self, q: Array, period: float, lookahead: float = LOOKAHEAD, gain: float = GAIN) -> None:
        self.period = period
        self.q = np.array(q, dtype=float)
        self.qd = np.zeros_like(self.q)
        self.tune(lookahead, gain)

    def tune(self, lookahead: float, gain: float) -> None:
        """Change lookahead (s) and gain (1/s^2); position and velocity go on."""
        check_tuning(lookahead, gain)
        self.lookahead, self.gain = float(lookahead), float(gain)
        self._transition = transition(self.period, self.lookahead, self.gain)

    def reset(self, q: Array, qd: Array | None = None) -> None:
        """Begin at joint positions q (n,), rad, and velocities qd (n,), rad/s."""
        self.q = np.array(q, dtype=float)
        self.qd = np.zeros_like(self.q) if qd is None else np.array(qd, dtype=float)

    def step(self, setpoint: Array) -> Array:
        """One period towards a setpoint (n,), rad.

        Returns:
            Joint positions (n,) at the end of the period, rad; `qd` holds the velocities.
        """
        (a, b), (c, d) = self._transition
        off = self.q - setpoint
        self.q, self.qd = setpoint + a * off + b * self.qd, c * off + d * self.qd
        return self.q


def check_tuning(lookahead: float, gain: float) -> None:
    """Refuse what UR's servoj refuses.

    Raises:
        InvalidParameter: lookahead (s) or gain (1/s^2) is outside of UR's range.
    """
    for name, value, (low, high) in (
        ("servoj lookahead", lookahead, LOOKAHEAD_RANGE),
        ("servoj gain", gain, GAIN_RANGE),
    ):
        if not low <= value <= high:
            raise InvalidParameter(name, value, f"between {low:g} and {high:g}")


def transition(period: float, lookahead: float, gain: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """What a period makes of offset (rad) and velocity (rad/s): the exponential of the model's system matrix."""
    half = 0.5 * gain * lookahead
    root = cmath.sqrt(half * half - gain)
    decay = math.exp(-half * period)
    cosh = cmath.cosh(root * period).real
    # sinh(root t) / root, whose limit for equal roots is t.
    sinh = (cmath.sinh(root * period) / root).real if abs(root) > 1e-9 else period
    return ((decay * (cosh + half * sinh), decay * sinh), (-decay * gain * sinh, decay * (cosh - half * sinh)))
