"""The calls of servoj in a recording: when they begin, how long they last, which command each took.

Call m lasts from `begin` + m `duration` until the next call begins. During it the setpoint moves in
a straight line from the previous call's command to this call's. Every row therefore reveals one
setpoint between two commands:

    setpoint = (1 - weight) previous + weight current

In a cycle that one call's end splits, two setpoints act one after the other; what the row then
reveals is their weighted mean, which has the same form. All rows count once the timing is known,
also where every cycle is split, which read as whole would show a wrong tuning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.target_motion import TargetMotion
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import JointMotion
from simbridge.servo.observation import observe_setpoints

# An edge of a call within this fraction of a cycle of a cycle's edge is on it.
EDGE_TOLERANCE = 1e-6
# An edge of calls within this fraction of a call of the first row's end is on it.
BEGIN_TOLERANCE = 1e-5


@dataclass(frozen=True)
class TimedLaw:
    """The servo law with the timing of its calls.

    Attributes:
        gain: 1/s^2.
        lookahead: Lookahead of servoj, s.
        duration: Duration of a call, s.
        begin: When call 0 begins, s after the end of the first row's cycle: negative, by less than
            a duration.
    """

    gain: float
    lookahead: float
    duration: float
    begin: float


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of a recording.

    Attributes:
        law: The servo law, with their timing.
        call: The call at the end of each row's cycle (T,).
        weight: Weight of this call's command in the row's setpoint (T,); the rest is the weight of
            the previous call's.
        setpoints: Setpoint that each row reveals (T, n), rad.
        command: Index of the command that each call took (M,), counted from the call before the
            first: `command[m]` and `command[m + 1]` are the previous and the current one of call m.
            Empty if not searched for yet.
    """

    law: TimedLaw
    call: Counts
    weight: Array
    setpoints: Array
    command: Counts

    def residuals(self, commands: Array) -> Array:
        """Return each row's setpoint minus what it should be (T, n), rad.

        Args:
            commands: Commands (K, n), rad.
        """
        weight = self.weight[:, None]
        previous = commands[self.command[self.call]]
        current = commands[self.command[self.call + 1]]
        expected = (1.0 - weight) * previous + weight * current
        return self.setpoints - expected


def reveal_calls(motion: TargetMotion, law: TimedLaw) -> Calls:
    """Return what the rows of a recording reveal under a law, without the commands of the calls."""
    cycle = motion.cycle
    end = motion.times - motion.times[0]

    # An edge of a call on a cycle's edge belongs to the cycle before.
    call_number = np.ceil((end - law.begin - EDGE_TOLERANCE * cycle) / law.duration)
    call = call_number.astype(np.int64) - 1
    since_edge = end - law.begin - call * law.duration

    targets = JointMotion(motion.q, motion.qd, motion.qdd)
    last_step = np.minimum(since_edge, cycle)
    setpoints, weight = observe_setpoints(targets, cycle, law.gain, law.lookahead, last_step)
    progress = np.minimum(since_edge / law.duration, 1.0)
    return Calls(law, call, weight * progress, setpoints, np.zeros(0, dtype=np.int64))


def wrap_begin(begin: float, duration: float) -> float:
    """Return the same edge of calls as the last one before the first row's end.

    Args:
        begin: An edge, s after the first row's end.
        duration: Duration of a call, s.

    Returns:
        The edge, s: at least -duration, below 0.
    """
    # An edge on that end is the end of call 0, not its begin.
    return float(begin - duration * np.ceil(begin / duration + BEGIN_TOLERANCE))
