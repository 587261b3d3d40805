"""The joints of a simulated arm under servoj: the servo law, then the lag of the joints.

The joints are where their targets were a fixed time before. Those of arms before the e-Series also
trail the acceleration of their targets (`simbridge.servo.acceleration_lag`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.robot.pose import Array
from simbridge.servo.acceleration_lag import AccelerationLag
from simbridge.servo.joints import ServojJoints
from simbridge.servo.law import JointMotion
from simbridge.servo.plant import Plant


class SimulatedJoints:
    """The targets of a simulated arm's joints at each of its physics steps.

    Args:
        plant: The servo law's tuning and the joints' lags; no acceleration lag if it has none.
        q: Joint positions of the resting arm (n,), rad.
        period: Duration of a command, s: a multiple of the cycle.
        cycle: Cycle of the controller, s: a multiple of the step.
        step: Physics step, s.

    Raises:
        InvalidParameter: The servo law is unstable at this cycle.
    """

    def __init__(self, plant: Plant, q: Array, *, period: float, cycle: float, step: float) -> None:
        self._joints = ServojJoints(plant.law(cycle), q, plant.phase)
        self._period = period
        self._cycle = cycle
        self._cycles_per_period = round(period / cycle)

        # The joints are where their targets were `joint_lag` before. For the end of each physics
        # step, these are the instants of the targets, in cycles after the start of the step's
        # cycle, and the weights (steps, 6) that interpolate the targets there.
        steps = round(cycle / step)
        instants = [((i + 1) * step - plant.joint_lag) / cycle for i in range(steps)]
        self._weights = _hermite_weights(instants)

        # How far the joints trail the acceleration of their targets, in addition.
        acceleration_lag = plant.acceleration_lag or 0.0
        self._acceleration_lag = AccelerationLag(acceleration_lag, cycle, steps, len(q))
        self.reset(q)

    @property
    def target(self) -> Array:
        """The controller's joint targets now (n,), rad."""
        return self._joints.q

    @property
    def motion(self) -> JointMotion:
        """The joint targets, their velocities and their mean accelerations now, each (n,)."""
        return self._joints.motion

    def reset(self, q: Array) -> None:
        """Rest at joint positions q (n,), rad."""
        self._joints.reset(q)
        # Position and slope (per cycle) at the ends of the last three cycles (6, n).
        self._nodes = np.stack([q, np.zeros_like(q)] * 3)
        self._acceleration_lag.reset()

    def advance(self, command: Array) -> Array:
        """Move for one period towards a command.

        Args:
            command: Joint positions (n,), rad.

        Returns:
            Joint positions (S, n), rad, at the end of each physics step.
        """
        self._joints.command(command, self._period)
        return np.concatenate([self._advance_cycle() for _ in range(self._cycles_per_period)])

    def _advance_cycle(self) -> Array:
        """Move for one cycle.

        Returns:
            Joint positions (steps, n), rad, at the end of each of the cycle's physics steps.
        """
        velocity_before = self._joints.qd
        q = self._joints.step()
        mean_velocity = self._joints.qd

        # The law's velocity is the mean over the cycle. The velocity at the end of the cycle
        # follows if it goes on changing as it did.
        velocity = mean_velocity + 0.5 * (mean_velocity - velocity_before)
        slope = self._cycle * velocity

        # The end of this cycle becomes the newest node, and the oldest node is dropped.
        self._nodes = np.concatenate([self._nodes[2:], q[np.newaxis], slope[np.newaxis]])

        # The nodes interpolate the targets. At the end of each physics step a joint is where the
        # targets were `joint_lag` before. It deviates from there by its acceleration lag.
        acceleration = (mean_velocity - velocity_before) / self._cycle
        deviation = self._acceleration_lag.advance(acceleration)
        return self._weights @ self._nodes + deviation


def _hermite_weights(instants: Sequence[float]) -> Array:
    """Return weights of cubic Hermite interpolation between three nodes.

    Args:
        instants: S instants, in cycles; the nodes are at -1, 0 and 1.

    Returns:
        Weights (S, 6): position and slope (per cycle) of each node.
    """
    weights = np.zeros((len(instants), 6))
    for row, instant in zip(weights, instants, strict=True):
        # The instant is between the first two nodes, or between the last two. The column of the
        # first weight of that interval, and the fraction of the interval that has passed:
        first = 0 if instant < 0.0 else 2
        u = instant + 1.0 if instant < 0.0 else instant

        # The cubic Hermite basis: position and slope at the start, position and slope at the end.
        row[first : first + 4] = (
            (1.0 + 2.0 * u) * (1.0 - u) ** 2,
            u * (1.0 - u) ** 2,
            u * u * (3.0 - 2.0 * u),
            u * u * (u - 1.0),
        )
    return weights
