"""direct_torque: the joints move as the rigid-body model of the arm does under the torques commanded.

Gravity is compensated, as on a controller. Friction, elasticity and the payload are not modelled.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.emulator.motion import Motion, ramped
from simbridge.robot.pose import Array

BRAKING = 20.0  # rad/s^2, when no torque is commanded any more


class JointTorque(Motion):
    """Torques on the joints, each for one control period; without a new one the arm brakes, under position control.

    Args:
        model: Of the arm.
    """

    has_path = False

    def __init__(self, model: pin.Model) -> None:
        self._model, self._data = model, model.createData()
        self._torque: Array | None = None

    def aim(self, torque: Array) -> None:
        """The torques (n,), N m, for the next period."""
        self._torque = torque

    def step(self, q: Array, qd: Array, dt: float, scaling: float) -> Array:
        torque, self._torque = self._torque, None
        if torque is None:
            return q + dt * ramped(qd, np.zeros_like(qd), BRAKING * dt)
        gravity = pin.computeGeneralizedGravity(self._model, self._data, q)
        return q + dt * (qd + dt * pin.aba(self._model, self._data, q, qd, torque + gravity))
