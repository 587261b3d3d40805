"""Tell what a state means for an arm that is to move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simbridge.ur import errors, tables
from simbridge.ur.tables import PROGRAM_RUNS

# Speed scaling above this is full speed.
FULL_SPEED = 0.999

# Bits of the safety status. Newer versions set others, too: bit 11, of an enabling input, is set on
# an arm that is ready to move.
NORMAL_BIT = 0
REDUCED_BIT = 1
PROTECTIVE_STOP_BIT = 2
SAFEGUARD_STOP_BIT = 4
# The first of three bits: the emergency stops of the system, the robot and a device.
EMERGENCY_STOP_BIT = 5
STOPPED_BIT = 10

SAFETY_STOPS: dict[int, type[errors.ArmStopped]] = {
    tables.SafetyMode.PROTECTIVE_STOP: errors.ProtectiveStop,
    tables.SafetyMode.SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.SYSTEM_EMERGENCY_STOP: errors.EmergencyStop,
    tables.SafetyMode.ROBOT_EMERGENCY_STOP: errors.EmergencyStop,
    # Newer versions report the source: enabling devices, fieldbuses, interfaces of machines.
    tables.SafetyMode.AUTOMATIC_MODE_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.SYSTEM_THREE_POSITION_ENABLING_STOP: errors.SafeguardStop,
    tables.SafetyMode.PENDANT_THREE_POSITION_ENABLING_STOP: errors.SafeguardStop,
    tables.SafetyMode.IMMI_EMERGENCY_STOP: errors.EmergencyStop,
    tables.SafetyMode.IMMI_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.PROFISAFE_AUTOMATIC_MODE_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.PROFISAFE_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.PROFISAFE_EMERGENCY_STOP: errors.EmergencyStop,
    tables.SafetyMode.SAFETY_API_SAFEGUARD_STOP: errors.SafeguardStop,
}


def safety_stop(safety_mode: int, safety_status_bits: int = 0) -> type[errors.ArmStopped] | None:
    """Return the error for what makes the safety system stop the arm.

    Args:
        safety_mode: Safety mode by UR's number.
        safety_status_bits: Safety status bits from RTDE; 0 if they are not reported.

    Returns:
        None when it does not stop the arm: in normal and reduced mode, and in a mode with a number
        that simbridge does not know if the status bits report normal or reduced mode and no stop.
    """
    if safety_mode in SAFETY_STOPS:
        return SAFETY_STOPS[safety_mode]
    if safety_status_bits >> EMERGENCY_STOP_BIT & 0b111:
        return errors.EmergencyStop
    if safety_status_bits >> PROTECTIVE_STOP_BIT & 1:
        return errors.ProtectiveStop
    if safety_status_bits >> SAFEGUARD_STOP_BIT & 1:
        return errors.SafeguardStop
    if safety_mode in (tables.SafetyMode.NORMAL, tables.SafetyMode.REDUCED):
        return None

    # In a mode that is newer than the table, the status bits decide.
    is_known = safety_mode in tuple(tables.SafetyMode)
    if not is_known and _allows_motion(safety_status_bits):
        return None
    return errors.SafetyFault


def _allows_motion(safety_status_bits: int) -> bool:
    """Return whether the status bits report normal or reduced mode, and no stop."""
    is_normal = safety_status_bits >> NORMAL_BIT & 1
    is_reduced = safety_status_bits >> REDUCED_BIT & 1
    is_stopped = safety_status_bits >> STOPPED_BIT & 1
    return bool(is_normal or is_reduced) and not is_stopped


def find_stop(state: Mapping[str, Any]) -> type[errors.ArmStopped] | None:
    """Return the error for what stops an arm whose control script should run.

    The safety system comes first.

    Args:
        state: Variables of RTDE by name.

    Returns:
        None when the arm can move.
    """
    stop = safety_stop(state["safety_mode"], state.get("safety_status_bits", 0))
    if stop is not None:
        return stop
    if state["robot_mode"] != tables.RobotMode.RUNNING:
        return errors.ArmNotReady
    if state["runtime_state"] not in PROGRAM_RUNS:
        return errors.ProgramStopped
    return None


def read_modes(state: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return robot mode, safety mode and runtime state of a state."""
    return state["robot_mode"], state["safety_mode"], state["runtime_state"]


def speed_factor(state: Mapping[str, Any]) -> float:
    """Return the controller's present speed factor, 0..1; 0 while its program is paused."""
    if state["runtime_state"] != tables.RuntimeState.PLAYING:
        return 0.0
    scaling = float(state["speed_scaling"]) * float(state["target_speed_fraction"])
    return 1.0 if scaling > FULL_SPEED else max(scaling, 0.0)
