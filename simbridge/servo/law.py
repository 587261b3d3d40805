"""The law by which a UR controller's servoj turns commands into joint targets, and its inverse.

Every cycle of length h, each joint takes one step of semi-implicit Euler towards the setpoint s:

    qdd = gain (s - q) - gain lookahead qd;   qd += h qdd;   q += h qd

A call of servoj lasts exactly t. During it s moves in a straight line from the previous call's command to this call's.
Without a new command the last one holds. A cycle in which one call ends and the next begins is integrated in two steps.
Commands and lookahead are single precision.

The law was found in recordings of one real UR5e (gain 300, lookahead 0.1 s, t 10 ms, h 2 ms), which it predicts to a
median of 7e-12 rad: docs/validation.md. Other tunings and CB3 controllers (h 8 ms) are extrapolations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.ik.kernels.compile import kernel_of
from simbridge.robot.pose import Array

LOOKAHEAD = 0.03  # s, as UR's own driver
GAIN = 2000.0  # 1/s^2, likewise
LOOKAHEAD_RANGE = (0.03, 0.2)
GAIN_RANGE = (100.0, 2000.0)
# After this time nothing is left of what a command did, with any tuning.
_MEMORY = 20.0  # s
# As many cycles take less time uncompiled than loading the compiler does.
_FEW = 100


class JointMotion(NamedTuple):
    """Joint targets at the end of each cycle, and their mean acceleration over it: rad, rad/s and rad/s^2, each (N, n).

    They are the controller's target_q, target_qd and target_qdd.
    """

    q: Array
    qd: Array
    qdd: Array


class VelocityGain(NamedTuple):
    """The largest velocity of joint targets for commands that move at 1 rad/s at most, rad/s.

    Attributes:
        late: What a command adds that comes a cycle late: they rest for a cycle, and move twice as far in the next.
        reversal: With one late command, when they reverse once, from one steady velocity to the opposite.
        any: With one late command, whatever they do: by the sum of the absolute impulse response, which is attained.
    """

    late: float
    reversal: float
    any: float


@dataclass(frozen=True)
class ServojLaw:
    """servoj with one tuning, gain (1/s^2) and lookahead (s), on a controller with one cycle (s).

    Raises:
        InvalidParameter: Gain or lookahead is outside of UR's range, or unstable at this cycle.
    """

    cycle: float
    gain: float = GAIN
    lookahead: float = LOOKAHEAD

    def __post_init__(self) -> None:
        check_tuning(self.lookahead, self.gain, self.cycle)

    @property
    def lag(self) -> float:
        """How far the joint targets trail a steady motion of the commands, s."""
        return self.lookahead - self.cycle

    def follow(
        self,
        commands: Array,
        *,
        call: float | None = None,
        begin: float = 0.0,
        previous: Array | None = None,
        q: Array | None = None,
        qd: Array | None = None,
        cycles: int | None = None,
    ) -> JointMotion:
        """The joint targets that commands make.

        Args:
            commands: Joint positions (K, n), rad, one for each call.
            call: Duration t of a call, s; one cycle by default.
            begin: When the first call begins, s after the first cycle does; negative for a call under way.
            previous: Command of the call before the first (n,), rad; the first command by default.
            q, qd: Joint targets at the start (n,), rad and rad/s; at rest at `previous` by default.
            cycles: How many to return; by default until the last call ends.
        """
        commands = np.ascontiguousarray(commands, dtype=float)
        call = self.cycle if call is None else call
        previous = commands[0] if previous is None else np.array(previous, dtype=float)
        if cycles is None:
            cycles = math.ceil((begin + len(commands) * call) / self.cycle - 1e-6)
        motion = JointMotion(*(np.empty((cycles, commands.shape[1])) for _ in JointMotion._fields))
        state = np.stack([previous if q is None else q, np.zeros_like(previous) if qd is None else qd])
        # The process that sends commands must not load a compiler while the arm moves.
        integrate = _integrate if cycles <= _FEW else _compiled()
        integrate(_as_received(commands), _as_received(previous), *self._constants(call, begin), state, *motion)
        return motion

    def velocity_gain(self, begin: float = 0.0) -> VelocityGain:
        """How much faster than the commands the joint targets become, for calls that begin so long after a cycle, s."""
        step, cycles = np.ones((1, 1)), round(_MEMORY / self.cycle)
        # The velocity of the targets is that of the commands, filtered by this impulse response.
        response = self.cycle * self.follow(step, begin=begin, previous=np.zeros(1), cycles=cycles).qd[:, 0]
        late = float(np.abs(np.diff(response, prepend=0.0)).max())
        reversal = max(2.0 * float(np.cumsum(response).max()) - 1.0, 1.0)
        return VelocityGain(late, reversal + late, float(np.abs(response).sum()) + late)

    def overshoot(self, deceleration: float) -> float:
        """How far the joint targets go beyond commands that come to rest at a deceleration, rad/s^2: rad."""
        count = round(1.0 / self.cycle)
        left = np.arange(count, -count, -1).clip(min=0) * self.cycle
        motion = self.follow(-0.5 * deceleration * left[:, np.newaxis] ** 2, qd=np.array([deceleration]))
        return max(float(motion.q.max()), 0.0)

    def _constants(self, call: float, begin: float) -> tuple[float, float, float, float, float]:
        # Compiled for floats: whole numbers would make integers of all later calls' values.
        return float(call), float(begin), float(self.cycle), float(self.gain), float(np.float32(self.lookahead))

    def commands_for(self, q: Array) -> Array:
        """The commands (N, n), one for each cycle, that make the joint targets q (N, n), rad.

        The arm is at rest at q[0] before. The inverse of `follow` for calls of one cycle that begin on its edge:
        s = q' + qdd / gain + lookahead qd', with q' and qd' one cycle before.
        """
        before = np.concatenate([q[:1], q[:1], q])
        qd = np.diff(before, axis=0) / self.cycle
        return self.setpoint(before[1:-1], qd[:-1], np.diff(qd, axis=0) / self.cycle)

    def setpoint(self, before: Array, velocity: Array, qdd: Array) -> Array:
        """The setpoint, rad, that accelerates joints at qdd, rad/s^2, from `before`, rad, and `velocity`, rad/s."""
        setpoint: Array = before + qdd / self.gain + float(np.float32(self.lookahead)) * velocity
        return setpoint


class ServojJoints:
    """Joints under servoj, one cycle at a time, for commands that arrive while they move.

    Args:
        law: Of the controller.
        q: Where the joints are (n,), rad.
        phase: How long after a cycle's begin calls begin, s: less than a cycle.
        compiled: Otherwise a cycle takes 20 us instead of 3, but nothing has to be loaded or compiled before the first.

    Attributes:
        law: May be replaced between two cycles.
    """

    def __init__(self, law: ServojLaw, q: Array, phase: float = 0.0, *, compiled: bool = True) -> None:
        self.law, self._phase = law, phase
        self._integrate = _compiled() if compiled else _integrate
        self._motion = JointMotion(*(np.zeros((1, len(q))) for _ in JointMotion._fields))
        self.reset(q)

    @property
    def q(self) -> Array:
        """Joint targets (n,), rad."""
        return self._state[0].copy()

    @property
    def qd(self) -> Array:
        """Their velocities (n,), rad/s."""
        return self._state[1].copy()

    @property
    def motion(self) -> JointMotion:
        """Joint targets (n,), rad, their velocities, rad/s, and accelerations, rad/s^2, after the last cycle."""
        return JointMotion(*(values[0].copy() for values in self._motion))

    def reset(self, q: Array, qd: Array | None = None) -> None:
        """Continue from q (n,), rad, and qd (n,), rad/s; q counts as the last command."""
        self._state = np.stack([q, np.zeros(len(q)) if qd is None else qd]).astype(float)
        # The last three commands, oldest first: with a phase, two calls and their ramps share a cycle.
        self._commands = np.stack([_as_received(self._state[0])] * 3)
        self._call, self._elapsed = self.law.cycle, 0.0
        for values, now in zip(self._motion, (*self._state, 0.0), strict=True):
            values[0] = now

    def command(self, q: Array, call: float | None = None) -> None:
        """Begin a call with a command (n,), rad, that lasts `call` s: one cycle by default."""
        self._commands = np.concatenate([self._commands[1:], _as_received(np.asarray(q, dtype=float))[np.newaxis]])
        self._call, self._elapsed = self.law.cycle if call is None else call, 0.0

    def step(self) -> Array:
        """One cycle; returns the joint targets (n,), rad."""
        constants = self.law._constants(self._call, self._phase - self._elapsed - self._call)
        self._integrate(self._commands[1:], self._commands[0], *constants, self._state, *self._motion)
        self._elapsed += self.law.cycle
        return self.q


def check_tuning(lookahead: float, gain: float, cycle: float | None = None) -> None:
    """Refuse a lookahead (s) and gain (1/s^2) that UR's servoj refuses, or that its step cannot follow at a cycle (s).

    Raises:
        InvalidParameter: Lookahead or gain is outside of UR's range, or the step is unstable.
    """
    shortest = LOOKAHEAD_RANGE[0]
    for name, value, (low, high) in (
        ("servoj lookahead", lookahead, LOOKAHEAD_RANGE),
        ("servoj gain", gain, GAIN_RANGE),
    ):
        if not low <= value <= high:
            raise InvalidParameter(name, value, f"between {low:g} and {high:g}")
    if cycle is not None and 2.0 * cycle * gain * lookahead + cycle**2 * gain >= 4.0:
        bound = (4.0 - cycle**2 * gain) / (2.0 * cycle * gain)
        if bound <= shortest:
            longest = math.sqrt(shortest**2 + 4.0 / gain) - shortest
            needed = (
                f"below {1e3 * longest:.1f} ms for servoj with a gain of {gain:g} to be stable with any lookahead: "
                "choose a multiple of the controller's own cycle (--period), or a lower gain (--servo-gain)"
            )
            raise InvalidParameter("control period", f"{1e3 * cycle:g} ms", needed)
        needed = (
            f"below {bound:.3f} with a gain of {gain:g} at a cycle of {1e3 * cycle:g} ms, else the servo is unstable"
        )
        raise InvalidParameter("servoj lookahead", lookahead, needed)


def setpoints_seen(
    motion: JointMotion, cycle: float, gain: float, lookahead: float, second: Array
) -> tuple[Array, Array]:
    """The setpoints that joint targets reveal; of the two of a split cycle only their weighted mean.

    A whole cycle reveals s = q' + qdd / gain + lookahead qd', with q' and qd' one cycle before.

    Args:
        motion: N cycles.
        cycle, gain, lookahead: s, 1/s^2 and s.
        second: How long the last step of each cycle (N,) lasts, s: the whole cycle where it is not split.

    Returns:
        Setpoints (N, n), rad, and the weight (N,) of the last step's in them: 1 where the cycle is not split.
    """
    q, qd, before = motion.q, motion.qd, motion.qd - cycle * motion.qdd
    seen, weight = q - cycle * qd + motion.qdd / gain + lookahead * before, np.ones(len(q))
    split = second < cycle * (1.0 - 1e-6)
    last = second[split, np.newaxis]
    first = cycle - last
    damped = 1.0 - last * gain * lookahead
    # Before the last step: position, and velocity as a linear function of the last setpoint.
    middle = q[split] - last * qd[split]
    velocity = (qd[split] + last * gain * middle) / damped
    slope = -last * gain / damped
    # The first setpoint as a linear function, offset + factor times, of the last.
    factor = slope * (1.0 / (first * gain) - first)
    offset = middle - first * velocity
    offset += (velocity - before[split] * (1.0 - first * gain * lookahead)) / (first * gain)
    seen[split] = offset / (1.0 - factor)
    weight[split] = (-factor / (1.0 - factor))[:, 0]
    return seen, weight


def _as_received(commands: Array) -> Array:
    return commands.astype(np.float32).astype(float)


def _compiled() -> Callable[..., None]:
    return kernel_of(_integrate, "servo law")


def _integrate(
    commands: Array,
    previous: Array,
    call: float,
    begin: float,
    cycle: float,
    gain: float,
    lookahead: float,
    state: Array,
    q: Array,
    qd: Array,
    qdd: Array,
) -> None:
    """The law, cycle by cycle; the source of the compiled function. For most arguments see `ServojLaw.follow`.

    Args:
        state: Positions and velocities (2, n): at the start, then at the end.
        q, qd, qdd: Results (N, n).
    """
    joints = state.shape[1]
    last = len(commands) - 1
    for i in range(len(q)):
        for j in range(joints):
            qdd[i, j] = state[1, j]
        # An edge of a call that misses the cycle's by less than a millionth of it is on it.
        number = int(np.floor((i * cycle - begin) / call + 1e-6 * cycle / call))
        end = begin + (number + 1) * call - i * cycle
        done = 0.0
        while True:
            whole = end >= cycle * (1.0 - 1e-6)
            step = cycle - done if whole else end - done
            progress = min(1.0, 1.0 - (end - cycle) / call) if whole else 1.0
            for j in range(joints):
                if number < 0:
                    setpoint = previous[j]
                elif number > last:
                    setpoint = commands[last, j]
                else:
                    from_command = previous[j] if number == 0 else commands[number - 1, j]
                    setpoint = from_command + progress * (commands[number, j] - from_command)
                acceleration = gain * (setpoint - state[0, j]) - gain * lookahead * state[1, j]
                state[1, j] += step * acceleration
                state[0, j] += step * state[1, j]
            if whole:
                break
            done = end
            number += 1
            end += call
        for j in range(joints):
            q[i, j] = state[0, j]
            qd[i, j] = state[1, j]
            qdd[i, j] = (state[1, j] - qdd[i, j]) / cycle
