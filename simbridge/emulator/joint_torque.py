"""direct_torque: the joints move as the rigid-body model of the arm does under torques.

Gravity is compensated, as on a controller. The rotors' inertia was found in recordings of a UR5e
and a UR10e; others have that of the one closer in size. Viscous friction is plausible, not UR's;
its compensation removes a part of it. Coulomb friction, elasticity and the payload are not
modelled.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from simbridge.emulator.motions import ArmMotion
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.servo.speedj import approach_velocity

# Deceleration once torques are no longer commanded, rad/s^2.
BRAKING = 20.0
# Time in which viscous friction slows a rotor to a third, s, without compensation and with full
# compensation.
FRICTION_TIME = 0.25
COMPENSATED_TIME = 0.5
# Inertia of the rotors, as it acts at the joints (6,), kg m^2: of a UR5e, and of a UR10e.
SMALL_INERTIA = np.array([1.915] * 3 + [0.212] * 3)
LARGE_INERTIA = np.array([6.03, 6.05, 1.94, 0.61, 0.61, 0.61])
# Models of UR whose rotors are taken to be those of the UR5e.
SMALL_ARMS = ("UR3", "UR5", "UR3e", "UR5e", "UR7e")


class JointTorque(ArmMotion):
    """Torques on the joints, each for one control period.

    Without a new one the arm brakes, under position control.

    Args:
        robot: The arm, with its rigid-body model.
    """

    has_path = False

    def __init__(self, robot: Robot) -> None:
        self._model = robot.model.copy()
        self._model.armature = SMALL_INERTIA if robot.ur_model in SMALL_ARMS else LARGE_INERTIA
        self._data = self._model.createData()
        # Torques for the next period (n,), N m; None once it has passed.
        self._torque: Array | None = None
        # Viscous friction (n,), N m s/rad.
        self._friction = np.zeros(robot.n)

    def aim(self, torque: Array, compensation: Array) -> None:
        """Command torques for the next period.

        Args:
            torque: Torques of the joints (n,), N m.
            compensation: Fraction of the friction that is compensated (n,).
        """
        self._torque = torque
        rate = 1.0 / FRICTION_TIME - compensation * (1.0 / FRICTION_TIME - 1.0 / COMPENSATED_TIME)
        self._friction = rate * self._model.armature

    def step(self, q: Array, qd: Array, *, dt: float, scaling: float) -> Array:
        """See `ArmMotion`."""
        torque = self._torque
        self._torque = None
        if torque is None:
            return q + dt * approach_velocity(qd, np.zeros_like(qd), BRAKING * dt)

        gravity = pin.computeGeneralizedGravity(self._model, self._data, q)
        torque = torque + gravity - self._friction * qd
        acceleration = pin.aba(self._model, self._data, q, qd, torque)
        return q + dt * (qd + dt * acceleration)
