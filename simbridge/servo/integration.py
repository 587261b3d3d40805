"""The servo law, integrated cycle by cycle: plain Python, and the same function as machine code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simbridge.kernels.compile import kernel_of
from simbridge.robot.pose import Array


def round_to_single(commands: Array) -> Array:
    """Round commands to single precision, in which a controller receives them."""
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

    Calls as long as the first one precede it, with the command before. Calls as long as the last
    one follow it, with its command again.

    Args:
        commands: Joint positions (K, n), rad, one for each call, in single precision.
        previous: The command before them (n,), rad.
        ends: Time from the start of the first cycle to the end of each call (K,), s, increasing.
        begin: Time from the start of the first cycle to that of the first call, s.
        cycle: Length of a cycle, s.
        gain: Gain of servoj, 1/s^2.
        lookahead: Lookahead of servoj, s.
        state: Positions and velocities (2, n), rad and rad/s: at the start, then at the end.
        q: Result: positions (N, n) at the end of each cycle, rad.
        qd: Result: velocities (N, n) there, rad/s.
        qdd: Result: mean accelerations (N, n) over each cycle, rad/s^2.
    """
    joints = state.shape[1]
    last = len(commands) - 1
    first_duration = ends[0] - begin
    last_duration = ends[last] - ends[last - 1] if last > 0 else first_duration

    number = 0
    for i in range(len(q)):
        for j in range(joints):
            qdd[i, j] = state[1, j]

        # The call under way when the cycle begins, and its end, s from the start of all. An edge
        # of a call that misses the cycle's by less than a millionth of it is on it.
        start = i * cycle
        edge = start + 1e-6 * cycle
        if edge < begin:
            number = -int(np.ceil((begin - edge) / first_duration))
            end = begin + (number + 1) * first_duration
        else:
            number = max(number, 0)
            while number <= last and ends[number] <= edge:
                number += 1
            if number <= last:
                end = ends[number]
            else:
                repeats = np.floor((edge - ends[last]) / last_duration)
                end = ends[last] + (repeats + 1.0) * last_duration

        # One step for each call that the cycle has a part of.
        integrated = 0.0
        while True:
            remaining = end - start
            is_last_step = remaining >= cycle * (1.0 - 1e-6)
            step = cycle - integrated if is_last_step else remaining - integrated

            # The setpoint has moved by this fraction of the way from the previous command.
            progress = 1.0
            if is_last_step and 0 <= number <= last:
                call_begin = begin if number == 0 else ends[number - 1]
                left = (remaining - cycle) / (ends[number] - call_begin)
                progress = min(1.0, 1.0 - left)

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

            if is_last_step:
                break
            integrated = remaining
            number += 1
            if number < 0:
                end += first_duration
            elif number <= last:
                end = ends[number]
            else:
                end += last_duration

        for j in range(joints):
            q[i, j] = state[0, j]
            qd[i, j] = state[1, j]
            qdd[i, j] = (state[1, j] - qdd[i, j]) / cycle
