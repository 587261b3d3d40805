"""Check that a state of a controller can follow the one before.

A corrupt byte or a clock that jumps gives a state that no arm can be in, or not so soon. Such a
state must not reach the loop that sends setpoints: it reckons with the times and positions of
states, and would do so for hours, or for positions that the arm has never had.

A clock that goes back is not judged here: older states are ignored, and a controller that was
restarted is recognized when the session ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from simbridge.backends.state_fields import SCRIPT_COUNTER, SCRIPT_NUMBER
from simbridge.ur.errors import ImplausibleState
from simbridge.ur.rtde import Package

# The longest step of the controller's clock from one state to the next, s. States that stay away
# for 0.1 s end a motion; the last one before may itself have been late by as much.
MAX_STEP_S = 0.2
# The longest step of a joint from one state to the next, rad, in addition to what it moves at its
# largest velocity. A position that is wrong by less is noticed by the guard: the arm is not where
# it was sent.
MAX_JOINT_STEP = 1.0
# Factor of its largest velocity at which a joint may seem to have moved.
VELOCITY_MARGIN = 2.0
# The largest step of the control script's counter from one state to the next: a count a cycle, for
# `MAX_STEP_S`.
MAX_COUNTS = 100

# Field -> the largest magnitude that an arm may have: joint positions, rad (16 turns), velocities,
# rad/s, accelerations, rad/s^2, and currents, A.
MAX_MAGNITUDES = {
    "actual_q": 100.0,
    "target_q": 100.0,
    "actual_qd": 100.0,
    "target_qd": 100.0,
    "target_qdd": 1e6,
    "actual_current": 1e3,
}
POSITION_FIELDS = ("actual_q", "target_q")
# Fractions of full speed; a little outside of 0 to 1 is rounding.
SCALING_FIELDS = ("speed_scaling", "target_speed_fraction")
MIN_SCALING = -0.01
MAX_SCALING = 2.0


def check_state(host: str, state: Package) -> None:
    """Check a state by itself.

    Args:
        host: The controller, for the message.
        state: The state that the controller sent.

    Raises:
        ImplausibleState: A quantity is larger than that of any arm, or not a number.
    """
    for field, largest in MAX_MAGNITUDES.items():
        # Positions must be numbers. Quantities that an older controller does not report are nan.
        must_be_number = field in POSITION_FIELDS
        for value in state.get(field, ()):
            if abs(value) > largest or (must_be_number and math.isnan(value)):
                raise ImplausibleState(
                    host, field, f"{value:g}", "which is not possible for an arm"
                )

    for field in SCALING_FIELDS:
        scaling = state[field]
        if not MIN_SCALING <= scaling <= MAX_SCALING:
            reason = "which is not a fraction of full speed"
            raise ImplausibleState(host, field, f"{scaling:g}", reason)


def check_succession(
    host: str, before: Package, state: Package, max_velocity: Sequence[float]
) -> None:
    """Check that a state can follow an older one.

    Args:
        host: The controller, for the message.
        before: The newest state so far.
        state: A state with a later timestamp: whoever receives states ignores older ones.
        max_velocity: The joints' limits (n,), rad/s.

    Raises:
        ImplausibleState: The state cannot follow the older one.
    """
    check_state(host, state)

    # The clock. A comparison with nan is false: it is written so that nan is refused, too.
    step = state["timestamp"] - before["timestamp"]
    if not step <= MAX_STEP_S:
        reason = f"{step:.3f} s after the state before it, where at most {MAX_STEP_S:g} s may lie"
        raise ImplausibleState(host, "timestamp", f"{state['timestamp']:.3f} s", reason)

    # The joints.
    for field in POSITION_FIELDS:
        for joint, velocity in enumerate(max_velocity):
            position = state[field][joint]
            distance = abs(position - before[field][joint])
            if not distance <= MAX_JOINT_STEP + VELOCITY_MARGIN * velocity * step:
                value = f"{position:.3f} rad for joint {joint + 1}"
                reason = f"{distance:.3f} rad from the state before"
                raise ImplausibleState(host, field, value, reason)

    # The program.
    if is_number_corrupt(before, state):
        reason = "although the control script's counter advanced without a restart"
        raise ImplausibleState(
            host,
            SCRIPT_NUMBER,
            f"{state[SCRIPT_NUMBER]}, which was {before[SCRIPT_NUMBER]}",
            reason,
        )


def is_number_corrupt(before: Package, state: Package) -> bool:
    """Return whether the control script's number changed although the same script still counts.

    Another program in its place would not count at all, or would count from the beginning. So a
    counter that goes on from a large value belongs to the same script, and the number is corrupt.

    Args:
        before: The state before.
        state: A later state.
    """
    if state.get(SCRIPT_NUMBER) == before.get(SCRIPT_NUMBER):
        return False
    advance: int = state[SCRIPT_COUNTER] - before[SCRIPT_COUNTER]
    return before[SCRIPT_COUNTER] > MAX_COUNTS and 0 < advance <= MAX_COUNTS
