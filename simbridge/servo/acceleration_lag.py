"""The joints of arms before the e-Series trail the acceleration of their targets.

Besides a fixed lag, these joints are off their targets r by e = -c r'' where the motion is smooth,
with c about 3.5e-4 s^2 (docs/validation.md). Joints cannot jump, so that e obeys

    c e'' + sqrt(2 c) e' + e = -c r''

whose solution is that term, seen through a maximally flat filter of second order (8.5 Hz). The
acceleration of the targets is interpolated linearly from cycle to cycle.
"""

from __future__ import annotations

import math

import numpy as np

from simbridge.robot.pose import Array

# Longest step of the integration, s: a small fraction of the filter's time constant of 19 ms.
LONGEST_STEP_S = 0.001
# Deviation, rad, and rate, rad/s, below which joints whose targets rest have settled.
SETTLED = 1e-9


class AccelerationLag:
    """The deviation of joints from their targets because of the targets' acceleration.

    Args:
        lag: c above, s^2; 0 for joints without this deviation.
        cycle: Length of the controller's cycle, s.
        steps: Number of equal steps of a cycle, at whose ends the deviation is wanted.
        joints: Number of joints n.
    """

    def __init__(self, lag: float, cycle: float, steps: int, joints: int) -> None:
        self._lag = lag
        self._joints = joints
        self._steps = steps

        # Deviation and its rate at the start of a cycle, and the accelerations at its start and its
        # end, determine both linearly at the end of each step: (steps, 2, 4).
        self._response = np.zeros((steps, 2, 4))
        if lag > 0.0:
            self._response = _step_response(lag, cycle, steps)
        self.reset()

    def reset(self) -> None:
        """Let the joints rest at their targets."""
        # Deviation, rad, and its rate, rad/s (2, n).
        self._state = np.zeros((2, self._joints))
        # Acceleration of the targets at the end of the last cycle (n,), rad/s^2.
        self._acceleration = np.zeros(self._joints)

    @property
    def has_settled(self) -> bool:
        """True if the joints rest at their targets."""
        return not (self._state.any() or self._acceleration.any())

    def advance(self, acceleration: Array) -> Array:
        """Advance by one cycle.

        Args:
            acceleration: Mean acceleration of the targets over the cycle (n,), rad/s^2, which
                counts as the one at its end.

        Returns:
            Deviations from the targets at the end of each step (steps, n), rad.
        """
        if self._lag == 0.0:
            return np.zeros((self._steps, self._joints))

        if not acceleration.any() and np.abs(self._state).max() < SETTLED:
            self.reset()

        inputs = np.stack([*self._state, self._acceleration, acceleration])
        states = self._response @ inputs
        self._state = states[-1]
        self._acceleration = acceleration
        return states[:, 0]


def _step_response(lag: float, cycle: float, steps: int) -> Array:
    """Return the response (steps, 2, 4) of deviation and rate; see `AccelerationLag`."""
    substeps = math.ceil(cycle / steps / LONGEST_STEP_S)
    step = cycle / (steps * substeps)
    damping = math.sqrt(2.0 * lag)

    # Each row is the response to one input: deviation, rate, acceleration at start and at end.
    deviation = np.array([1.0, 0.0, 0.0, 0.0])
    rate = np.array([0.0, 1.0, 0.0, 0.0])
    response = np.zeros((steps, 2, 4))
    for i in range(steps * substeps):
        progress = (i + 1) / (steps * substeps)
        target_acceleration = np.array([0.0, 0.0, 1.0 - progress, progress])

        # Semi-implicit Euler.
        change_of_rate = -target_acceleration - (damping * rate + deviation) / lag
        rate = rate + step * change_of_rate
        deviation = deviation + step * rate
        if (i + 1) % substeps == 0:
            response[i // substeps] = deviation, rate
    return response
