"""The quantities that are read of a controller in each of its states."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from simbridge.backends.backend import ArmState
from simbridge.backends.registers import Registers
from simbridge.backends.tool_watch import TOOL_FIELDS
from simbridge.robot.pose import Array
from simbridge.ur.rtde import Package

# The RTDE outputs that are read of every state.
STATE_FIELDS = (
    "timestamp",
    "actual_q",
    "actual_qd",
    "actual_current",
    "target_q",
    "target_qd",
    "target_qdd",
    "speed_scaling",
    "target_speed_fraction",
    "robot_mode",
    "safety_mode",
    "safety_status_bits",
    "runtime_state",
    *TOOL_FIELDS,
)
# A run can do without these, which older versions do not have: its record then does not show the
# servo law. What a version does not report of the tool is not watched.
OPTIONAL_FIELDS = (
    "target_qd",
    "target_qdd",
)
# The fields under which a state holds the session's number and the control script's counter,
# whichever registers the script writes.
SCRIPT_NUMBER = "script_number"
SCRIPT_COUNTER = "script_counter"


def session_fields(registers: Registers) -> tuple[str, ...]:
    """Return the RTDE outputs that are read during a session, in which a control script runs."""
    return (*STATE_FIELDS, registers.number_output, registers.counter_output)


def name_script_outputs(state: Package, registers: Registers) -> None:
    """Add what the control script writes to a state, under its own names.

    Args:
        state: A state with `session_fields`.
        registers: The registers of the session.
    """
    state[SCRIPT_NUMBER] = state[registers.number_output]
    state[SCRIPT_COUNTER] = state[registers.counter_output]


def state_at_rest(package: Package) -> ArmState:
    """Return a controller's state outside of a motion.

    Nothing was sent then: the arm's joint positions stand in for the command.

    Args:
        package: The state that the controller reported, with `STATE_FIELDS`.
    """
    q = _constant_vector(package["actual_q"])
    return ArmState(
        sequence=0,
        host_monotonic=time.monotonic(),
        timestamp=package["timestamp"],
        plan_time=0.0,
        q=q,
        qd=_constant_vector(package["actual_qd"]),
        effort=_constant_vector(package["actual_current"]),
        controller_target=_constant_vector(package["target_q"]),
        command=q,
        speed_scaling=package["speed_scaling"] * package["target_speed_fraction"],
        robot_mode=package["robot_mode"],
        safety_mode=package["safety_mode"],
        runtime_state=package["runtime_state"],
    )


def _constant_vector(values: Sequence[float]) -> Array:
    """Return an array (n,) that cannot be written to."""
    vector = np.array(values)
    vector.setflags(write=False)
    return vector
