"""The servo law, integrated cycle by cycle: plain Python, and the same function as machine code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array

# Distance, as a fraction of a cycle, up to which a call ends exactly with a cycle.
EDGE_TOLERANCE = 1e-6


def round_to_single(commands: Array) -> Array:
    """Round commands to single precision, in which servoj takes them."""
    return commands.astype(np.float32).astype(float)


def compiled_integrate() -> Callable[..., None]:
    """Return `integrate` as machine code; it is compiled once per computer."""
    return kernel_of(integrate, "servo law")


# complexipy: ignore (a function for the setpoint takes three times as long)
def integrate(  # noqa: PLR0913 (compiled: plain arrays and numbers)
    commands: Array,
    previous: Array,
    ends: Array,
    begin: float,
    cycle: float,
    gain: float,
    lookahead: float,
    state: Array,
    q: Array,
    qd: Array,
    qdd: Array,
) -> None:
    """Integrate the law of `simbridge.servo.law` over all cycles of the results.

    Calls are numbered from 0. Before them are calls as long as the first one, with the previous
    command and with negative numbers. After them are calls as long as the last one, which repeat
    its command.

    Args:
        commands: Joint positions (K, n), rad, one for each call, in single precision.
        previous: The command of the call before the first (n,), rad, in single precision.
        ends: Time from the start of the first cycle to the end of each call (K,), s, increasing.
        begin: Time from the start of the first cycle to that of the first call, s.
        cycle: Length of a cycle, s.
        gain: Gain of servoj, 1/s^2.
        lookahead: Lookahead of servoj, s.
        state: Positions and velocities (2, n), rad and rad/s: at the start, then at the end.
        q: Result: positions (N, n) at the end of each cycle, rad.
        qd: Result: velocities (N, n) at the end of each cycle, rad/s.
        qdd: Result: mean accelerations (N, n) over each cycle, rad/s^2.
    """
    joints = state.shape[1]
    last = len(commands) - 1
    first_duration = ends[0] - begin
    last_duration = ends[last] - ends[last - 1] if last > 0 else first_duration

    call = 0
    for i in range(len(q)):
        # The velocities before the cycle, for the mean acceleration.
        for j in range(joints):
            qdd[i, j] = state[1, j]

        # The call under way when the cycle begins, and when that call ends, s from the start of the
        # first cycle. A call that ends just after the start, by rounding, ends at the start.
        cycle_start = i * cycle
        rounded_start = cycle_start + EDGE_TOLERANCE * cycle
        if rounded_start < begin:
            call = -int(np.ceil((begin - rounded_start) / first_duration))
            call_end = begin + (call + 1) * first_duration
        else:
            call = max(call, 0)
            while call <= last and ends[call] <= rounded_start:
                call += 1
            if call <= last:
                call_end = ends[call]
            else:
                repeats = np.floor((rounded_start - ends[last]) / last_duration)
                call_end = ends[last] + (repeats + 1.0) * last_duration

        # Make one step for each call that the cycle has a part of. All steps but the last one end
        # with their call; the last one ends with the cycle.
        integrated = 0.0
        while True:
            call_rest = call_end - cycle_start
            is_last_step = call_rest >= cycle * (1.0 - EDGE_TOLERANCE)
            step = cycle - integrated if is_last_step else call_rest - integrated

            # At the end of the step, the setpoint has moved by this fraction of the way from the
            # previous command to that of the call.
            progress = 1.0
            if is_last_step and 0 <= call <= last:
                call_begin = begin if call == 0 else ends[call - 1]
                unmade = (call_rest - cycle) / (ends[call] - call_begin)
                progress = min(1.0, 1.0 - unmade)

            for j in range(joints):
                if call < 0:
                    setpoint = previous[j]
                elif call > last:
                    setpoint = commands[last, j]
                else:
                    from_command = previous[j] if call == 0 else commands[call - 1, j]
                    setpoint = from_command + progress * (commands[call, j] - from_command)

                # Semi-implicit Euler: the position moves by the new velocity.
                acceleration = gain * (setpoint - state[0, j]) - gain * lookahead * state[1, j]
                state[1, j] += step * acceleration
                state[0, j] += step * state[1, j]

            if is_last_step:
                break

            # Go on with the next call.
            integrated = call_rest
            call += 1
            if call < 0:
                call_end += first_duration
            elif call <= last:
                call_end = ends[call]
            else:
                call_end += last_duration

        for j in range(joints):
            q[i, j] = state[0, j]
            qd[i, j] = state[1, j]
            qdd[i, j] = (state[1, j] - qdd[i, j]) / cycle
