"""The calls of servoj in a recording: when they begin, how long they last, which command each took.

Call m begins at `begin` + m `duration` and lasts until the next call begins. During a call the
setpoint moves in a straight line from the previous call's command to this call's. Every row
therefore reveals one setpoint between two commands:

    setpoint = (1 - weight) previous + weight current

If a call ends inside a controller's cycle, it splits the cycle into two steps with a setpoint each.
The row then reveals a weighted mean of the two, which has the same form. With the timing known all
rows can be used, even if every cycle is split; read as whole cycles they would show a wrong tuning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.identification.target_motion import TargetMotion
from simbridge.robot.pose import Array, Counts
from simbridge.servo.law import JointMotion
from simbridge.servo.observation import observe_setpoints

# Distance, as a fraction of a cycle, up to which a call ends exactly at the end of a cycle.
EDGE_TOLERANCE = 1e-6
# Distance, as a fraction of a call, up to which a call begins exactly at the end of the first row's
# cycle.
BEGIN_TOLERANCE = 1e-5


@dataclass(frozen=True)
class TimedLaw:
    """The servo law with the timing of its calls.

    Attributes:
        gain: Gain of servoj's law, 1/s^2.
        lookahead: Lookahead of servoj, s.
        duration: Duration of a call, s.
        begin: When call 0 begins, s after the end of the first row's cycle. It is negative: call 0
            is the one that acts at that end.
    """

    gain: float
    lookahead: float
    duration: float
    begin: float


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of a recording.

    Attributes:
        law: The servo law, with the timing of the calls.
        call: Number of the call that acts at the end of each row's cycle (T,).
        weight: Weight of this call's command in the row's setpoint (T,), the previous call's being
            1 - weight.
        setpoints: Setpoint that each row reveals (T, n), rad.
        command: Index of the command that each call took (M,), starting with the call before call
            0: `command[m]` is the previous command of call m, and `command[m + 1]` its current one.
            Empty until the commands have been searched for.
    """

    law: TimedLaw
    call: Counts
    weight: Array
    setpoints: Array
    command: Counts

    def residuals(self, commands: Array) -> Array:
        """Return the setpoint that each row reveals minus that of its commands (T, n), rad.

        Args:
            commands: Commands (K, n), rad, which `command` indexes.
        """
        weight = self.weight[:, None]
        previous = commands[self.command[self.call]]
        current = commands[self.command[self.call + 1]]
        expected = (1.0 - weight) * previous + weight * current
        return self.setpoints - expected


def reveal_calls(motion: TargetMotion, law: TimedLaw) -> Calls:
    """Return the calls and setpoints that rows reveal under a law, without the calls' commands."""
    cycle = motion.cycle
    end = motion.times - motion.times[0]

    # A call that begins exactly at the end of a cycle acts from the next cycle on.
    call_number = np.ceil((end - law.begin - EDGE_TOLERANCE * cycle) / law.duration)
    call = call_number.astype(np.int64) - 1
    since_edge = end - law.begin - call * law.duration

    targets = JointMotion(motion.q, motion.qd, motion.qdd)
    last_step = np.minimum(since_edge, cycle)
    setpoints, last_step_weight = observe_setpoints(
        targets, cycle, gain=law.gain, lookahead=law.lookahead, last_step=last_step
    )

    # The last step's setpoint has gone `progress` of the way from the previous command to the
    # current one.
    progress = np.minimum(since_edge / law.duration, 1.0)
    return Calls(
        law=law,
        call=call,
        weight=last_step_weight * progress,
        setpoints=setpoints,
        command=np.zeros(0, dtype=np.int64),
    )


def wrap_begin(begin: float, duration: float) -> float:
    """Return when call 0 begins, from when any call begins.

    Args:
        begin: When some call begins, s after the end of the first row's cycle.
        duration: Duration of a call, s.

    Returns:
        When the last call before the end of the first row's cycle begins, s after that end: at
        least -duration, and negative.
    """
    # If one call ends and the next begins at that very end, call 0 is the one that ends.
    return float(begin - duration * np.ceil(begin / duration + BEGIN_TOLERANCE))
