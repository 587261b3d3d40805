"""The law by which a UR controller's speedj turns commanded speeds into joint targets.

The velocities of the joints approach the commanded ones in proportion: in a straight line, along
which the joint with the largest change has the given acceleration. They may attain the command
inside a cycle, and then keep it. The positions are the exact integral of that velocity.

The law was found in recordings of one real UR5 of the CB3 series (acceleration 4 pi rad/s^2, a
cycle of 8 ms), whose target_qd it repeats to single precision: docs/validation.md. There a command
took effect three cycles after the state that it answered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.servo.law import JointMotion


def approach_velocity(qd: Array, target: Array, max_change: float) -> Array:
    """Return velocities closer to a target, all joints in proportion.

    Args:
        qd: Present velocities (n,), or of several rows (..., n), rad/s.
        target: Velocities to approach, of the same shape, rad/s.
        max_change: Largest change of the velocity of a joint, rad/s.
    """
    change = target - qd
    largest = np.abs(change).max(axis=-1, keepdims=True, initial=0.0)
    # The target itself, to the last bit, where it is within reach.
    is_within_reach = largest <= max_change
    if is_within_reach.all():
        return target
    step = change * (max_change / np.maximum(largest, max_change))
    return np.asarray(np.where(is_within_reach, target, qd + step))


def step_speedj(
    qd: Array, target: Array, *, acceleration: float, duration: float
) -> tuple[Array, Array]:
    """Advance joints that approach commanded speeds.

    Args:
        qd: Present velocities (n,), rad/s.
        target: Commanded speeds (n,), rad/s.
        acceleration: Acceleration of the joint with the largest change, rad/s^2.
        duration: Time that passes, s.

    Returns:
        The displacements (n,), rad, and the velocities afterwards (n,), rad/s.
    """
    velocity = approach_velocity(qd, target, acceleration * duration)
    change = velocity - qd

    # The velocity changes during the ramp, and is constant in the rest of the duration.
    ramp_duration = float(np.abs(change).max(initial=0.0)) / acceleration
    displacement = duration * velocity - 0.5 * ramp_duration * change
    return displacement, velocity


@dataclass(frozen=True)
class SpeedjLaw:
    """The law of speedj on a controller with one cycle.

    Attributes:
        cycle: Length of the controller's cycle, s.
        acceleration: Acceleration of the joint whose speed changes most, rad/s^2.
        delay: Number of whole cycles from the state that a command answers to the first state that
            the command has influenced: 3 in the recordings.

    Raises:
        InvalidParameter: The acceleration is not positive, or the delay is negative.
    """

    cycle: float
    acceleration: float
    delay: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.acceleration < np.inf:
            raise InvalidParameter(
                "speedj acceleration", f"{self.acceleration:g} rad/s^2", "positive and finite"
            )
        if self.delay < 0:
            raise InvalidParameter("speedj delay", self.delay, "zero cycles or more")

    def follow(
        self,
        commands: Array,
        *,
        previous: Array | None = None,
        q: Array | None = None,
        qd: Array | None = None,
    ) -> JointMotion:
        """Predict the joint targets that commands lead to.

        Args:
            commands: Speeds of the joints (N, n), rad/s, one for each cycle. With a delay of d, the
                command of cycle k first acts in cycle k + d.
            previous: The command before the first (n,), rad/s; rest by default.
            q: Joint targets at the start (n,), rad; zero by default.
            qd: Velocities of the joint targets (n,), rad/s; at rest by default.

        Returns:
            Joint targets at the end of each of the N cycles.
        """
        commands = np.asarray(commands, dtype=float)
        cycles, joints = commands.shape
        command_before = np.zeros(joints) if previous is None else np.asarray(previous, dtype=float)
        position = np.zeros(joints) if q is None else np.asarray(q, dtype=float)
        velocity = np.zeros(joints) if qd is None else np.asarray(qd, dtype=float)

        motion = JointMotion.zeros(cycles, joints)
        for i in range(cycles):
            # Until the first command acts, the one before it still does.
            target = commands[i - self.delay] if i >= self.delay else command_before
            displacement, reached = step_speedj(
                velocity, target, acceleration=self.acceleration, duration=self.cycle
            )
            position = position + displacement

            motion.q[i] = position
            motion.qd[i] = reached
            motion.qdd[i] = (reached - velocity) / self.cycle
            velocity = reached
        return motion
