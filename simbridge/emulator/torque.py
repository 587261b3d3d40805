"""direct_torque: the joints move as the rigid-body model of the arm does under the torques commanded.

Gravity is compensated, as on a controller. The rotors' inertia was found in recordings of a UR5e and a UR10e; others
have that of the one closer in size. Friction, elasticity and the payload are not modelled.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.emulator.motion import Motion, ramped
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

BRAKING = 20.0  # rad/s^2, when no torque is commanded any more


# Of the rotors, as it acts at the joints, kg m^2
_SMALL = np.array([1.915] * 3 + [0.212] * 3)
_LARGE = np.array([6.03, 6.05, 1.94, 0.61, 0.61, 0.61])


def rotor_inertia(robot: Robot) -> Array:
    """Of each joint (6,), kg m^2."""
    return _SMALL if robot.name.startswith(("ur3", "ur5", "ur7")) else _LARGE


class JointTorque(Motion):
    """Torques on the joints, each for one control period; without a new one the arm brakes, under position control.

    Args:
        robot: The arm.
    """

    has_path = False

    def __init__(self, robot: Robot) -> None:
        self._model = robot.model.copy()
        self._model.armature = rotor_inertia(robot)
        self._data = self._model.createData()
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
