"""The law by which a UR controller's servoj turns commands into joint targets, and its inverse.

Every cycle of length h, each joint takes one step of semi-implicit Euler towards the setpoint s:

    qdd = gain (s - q) - gain lookahead qd;   qd += h qdd;   q += h qd

A call of servoj lasts exactly t. During it s moves in a straight line from the previous call's
command to this call's. Without a new command the last one holds. A cycle in which one call ends
and the next begins is integrated in two steps. Commands and lookahead are single precision.

The law was found in recordings of one real UR5e (gain 300, lookahead 0.1 s, t 10 ms, h 2 ms), which
it predicts to a median of 7e-12 rad. It also predicts a real UR5 of the CB3 series (gain 100,
lookahead 0.2 s, h 8 ms), and servoL obeys it: docs/validation.md. Larger gains are extrapolations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.servo.integration import (
    EDGE_TOLERANCE,
    compiled_integrate,
    integrate,
    round_to_single,
)

# The defaults of UR's own ROS driver, s and 1/s^2.
LOOKAHEAD = 0.03
GAIN = 2000.0

# What servoj accepts (UR's script manual), s and 1/s^2.
LOOKAHEAD_RANGE = (0.03, 0.2)
GAIN_RANGE = (100.0, 2000.0)

# After this time nothing remains of what a command did, with any tuning, s.
RESPONSE_DURATION_S = 20.0

# The most cycles that are integrated uncompiled: to load the compiler would take longer.
MAX_UNCOMPILED_CYCLES = 100


class JointMotion(NamedTuple):
    """Joint targets at the end of each cycle; the controller's target_q, target_qd and target_qdd.

    Attributes:
        q: Positions (N, n), rad.
        qd: Velocities (N, n), rad/s.
        qdd: Mean accelerations over each cycle (N, n), rad/s^2.
    """

    q: Array
    qd: Array
    qdd: Array

    @classmethod
    def zeros(cls, cycles: int, joints: int) -> JointMotion:
        """Return a motion to be filled in: arrays of zeros."""
        shape = (cycles, joints)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))


class VelocityGain(NamedTuple):
    """The largest velocity of joint targets for commands that move at 1 rad/s at most, rad/s.

    Attributes:
        late: The increase through a command that comes a cycle late: the joints rest for a cycle,
            and move twice as far in the next.
        reversal: The velocity for commands that reverse once, from one steady velocity to the
            opposite, with one late command.
        of_any_motion: The velocity whatever the commands do, with one late command: the sum of the
            absolute impulse response, which is attained.
    """

    late: float
    reversal: float
    of_any_motion: float


@dataclass(frozen=True)
class ServojLaw:
    """The law of servoj with one tuning, on a controller with one cycle.

    Attributes:
        cycle: Length of the controller's cycle, s.
        gain: Gain of servoj, 1/s^2.
        lookahead: Lookahead of servoj, s.

    Raises:
        InvalidParameter: Gain or lookahead is outside UR's range, or unstable at this cycle.
    """

    cycle: float
    gain: float = GAIN
    lookahead: float = LOOKAHEAD

    def __post_init__(self) -> None:
        check_tuning(self.lookahead, self.gain, self.cycle)

    @property
    def lag(self) -> float:
        """Delay of the joint targets behind steadily moving commands, s."""
        return self.lookahead - self.cycle

    def follow(
        self,
        commands: Array,
        *,
        call: float | Array | None = None,
        begin: float = 0.0,
        previous: Array | None = None,
        q: Array | None = None,
        qd: Array | None = None,
        cycles: int | None = None,
    ) -> JointMotion:
        """Predict the joint targets that commands lead to.

        Args:
            commands: Joint positions (K, n), rad, one for each call.
            call: Duration t of a call, s, or of each call (K,); one cycle by default.
            begin: Time from the start of the first cycle to that of the first call, s; negative
                for a call under way.
            previous: Command of the call before the first (n,), rad; the first command by default.
            q: Joint targets at the start (n,), rad; `previous` by default.
            qd: Velocities of the joint targets at the start (n,), rad/s; at rest by default.
            cycles: Number of cycles to predict; by default until the last call ends.

        Raises:
            InvalidParameter: A call does not last longer than zero seconds.
        """
        commands = np.ascontiguousarray(commands, dtype=float)
        ends = _call_ends(self.cycle if call is None else call, begin, len(commands))
        previous = commands[0] if previous is None else np.array(previous, dtype=float)
        if cycles is None:
            # Rounding must not add a cycle to a call that ends with one.
            cycles = math.ceil(ends[-1] / self.cycle - EDGE_TOLERANCE)

        # The state (2, n) is advanced in place, and the motion is filled in.
        start_q = previous if q is None else q
        start_qd = np.zeros_like(previous) if qd is None else qd
        state = np.stack([start_q, start_qd])
        motion = JointMotion.zeros(cycles, commands.shape[1])

        # The process that sends commands must not load a compiler while the arm moves.
        integration = integrate if cycles <= MAX_UNCOMPILED_CYCLES else compiled_integrate()
        integration(
            round_to_single(commands),
            round_to_single(previous),
            ends,
            *self.integration_constants(begin),
            state,
            *motion,
        )
        return motion

    def velocity_gain(self, begin: float = 0.0) -> VelocityGain:
        """Return how much faster than the commands the joint targets become.

        Args:
            begin: Time from the start of a cycle to that of its calls, s.
        """
        # The velocity of the targets is the velocity of the commands, filtered by the response to
        # a command that steps by 1 rad.
        step = np.ones((1, 1))
        cycles = round(RESPONSE_DURATION_S / self.cycle)
        motion = self.follow(step, begin=begin, previous=np.zeros(1), cycles=cycles)
        response = self.cycle * motion.qd[:, 0]

        late = float(np.abs(np.diff(response, prepend=0.0)).max())
        reversal = max(2.0 * float(np.cumsum(response).max()) - 1.0, 1.0)
        absolute_sum = float(np.abs(response).sum())
        return VelocityGain(late=late, reversal=reversal + late, of_any_motion=absolute_sum + late)

    def overshoot(self, deceleration: float) -> float:
        """Return how far the joint targets pass commands that come to rest, rad.

        Args:
            deceleration: Deceleration of the commands, rad/s^2.
        """
        count = round(1.0 / self.cycle)
        time_to_rest = np.arange(count, -count, -1).clip(min=0) * self.cycle
        commands = -0.5 * deceleration * time_to_rest[:, np.newaxis] ** 2
        motion = self.follow(commands, qd=np.array([deceleration]))
        return max(float(motion.q.max()), 0.0)

    def commands_for(self, q: Array) -> Array:
        """Return the commands (N, n), rad, that make the joint targets q (N, n), rad.

        The inverse of `follow` for calls of one cycle that begin on its edge:
        s = q' + qdd / gain + lookahead qd', with q' and qd' one cycle before. The arm is at rest at
        q[0] before.
        """
        # The targets after two cycles at rest (N + 2, n); the differences lose one row each.
        positions = np.concatenate([q[:1], q[:1], q])
        velocities = np.diff(positions, axis=0) / self.cycle
        accelerations = np.diff(velocities, axis=0) / self.cycle
        return self.setpoint(positions[1:-1], velocities[:-1], accelerations)

    def setpoint(self, before: Array, velocity: Array, qdd: Array) -> Array:
        """Return the setpoint, rad, that accelerates the joints at `qdd`.

        Args:
            before: Joint positions one cycle before, rad.
            velocity: Joint velocities one cycle before, rad/s.
            qdd: Wanted accelerations, rad/s^2.
        """
        lookahead = float(np.float32(self.lookahead))
        setpoint: Array = before + qdd / self.gain + lookahead * velocity
        return setpoint

    def integration_constants(self, begin: float) -> tuple[float, float, float, float]:
        """Return the scalar arguments of `integrate`: begin, cycle, gain and lookahead."""
        # Compiled for floats: whole numbers would make integers of all later calls' values.
        lookahead = float(np.float32(self.lookahead))
        return float(begin), float(self.cycle), float(self.gain), lookahead


def _call_ends(duration: float | Array, begin: float, count: int) -> Array:
    """Return when each of successive calls ends (K,), s.

    Args:
        duration: Duration of a call, s, or of each call (K,).
        begin: When the first call begins, s.
        count: Number K of calls.

    Raises:
        InvalidParameter: A call does not last longer than zero seconds.
    """
    durations = np.asarray(duration, dtype=float)
    if not (durations > 0.0).all():
        shortest = f"{durations.min():g} s"
        raise InvalidParameter("duration of a servoj call", shortest, "longer than zero seconds")

    if durations.ndim == 0:
        # A sum of equal durations would accumulate their rounding.
        return begin + durations * np.arange(1.0, count + 1.0)
    return begin + np.cumsum(np.broadcast_to(durations, count))


def check_tuning(lookahead: float, gain: float, cycle: float | None = None) -> None:
    """Refuse a tuning that UR's servoj refuses, or that is unstable.

    Args:
        lookahead: Lookahead of servoj, s.
        gain: Gain of servoj, 1/s^2.
        cycle: Length of the controller's cycle, s; without it stability is not checked.

    Raises:
        InvalidParameter: Lookahead or gain is outside UR's range, or the step is unstable.
    """
    tuning = [("servoj lookahead", lookahead, LOOKAHEAD_RANGE), ("servoj gain", gain, GAIN_RANGE)]
    for name, value, (low, high) in tuning:
        if not low <= value <= high:
            raise InvalidParameter(name, value, f"between {low:g} and {high:g}")

    if cycle is not None and _is_unstable(lookahead, gain, cycle):
        raise _unstable_tuning(lookahead, gain, cycle)


def _is_unstable(lookahead: float, gain: float, cycle: float) -> bool:
    """Return whether the law's step is unstable.

    By Jury's criterion for its characteristic polynomial, it is stable if
    2 h gain lookahead + h^2 gain < 4, with the cycle h.
    """
    return 2.0 * cycle * gain * lookahead + cycle**2 * gain >= 4.0


def _unstable_tuning(lookahead: float, gain: float, cycle: float) -> InvalidParameter:
    """Return the error for an unstable tuning, which names a lookahead or a cycle that is stable.

    Both bounds are those of `_is_unstable`, solved for the lookahead and for the cycle.

    Args:
        lookahead: Lookahead of servoj, s.
        gain: Gain of servoj, 1/s^2.
        cycle: Length of the controller's cycle, s.
    """
    shortest_lookahead = LOOKAHEAD_RANGE[0]
    lookahead_bound = (4.0 - cycle**2 * gain) / (2.0 * cycle * gain)

    # If servoj accepts no lookahead that is short enough, only a shorter cycle or a lower gain
    # helps. Below `longest_cycle` at least the shortest lookahead is stable.
    if lookahead_bound <= shortest_lookahead:
        longest_cycle = math.sqrt(shortest_lookahead**2 + 4.0 / gain) - shortest_lookahead
        needed = (
            f"below {1e3 * longest_cycle:.1f} ms for servoj with a gain of {gain:g} to be stable "
            "with any lookahead: choose a multiple of the controller's own cycle (--period), or a "
            "lower gain (--servo-gain)"
        )
        return InvalidParameter("control period", f"{1e3 * cycle:g} ms", needed)

    needed = (
        f"below {lookahead_bound:.3f} s with a gain of {gain:g} and a cycle of {1e3 * cycle:g} "
        "ms: otherwise, the servo is unstable"
    )
    return InvalidParameter("servoj lookahead", lookahead, needed)
