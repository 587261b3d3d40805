"""What a controller's modes mean for an arm that is to move."""

from __future__ import annotations

from simbridge.ur.errors import (
    ArmNotReady,
    ArmStopped,
    EmergencyStop,
    ProgramStopped,
    ProtectiveStop,
    SafeguardStop,
    SafetyFault,
)
from simbridge.ur.rtde import Package

RUNNING = 7  # robot_mode
PLAYING, PAUSING, PAUSED, RESUMING = 2, 3, 4, 5  # runtime_state
PROGRAM_RUNS = (PLAYING, PAUSING, PAUSED, RESUMING)
# Speed scaling above this is full speed.
FULL_SPEED = 0.999

_SAFETY_STOPS: dict[int, type[ArmStopped]] = {
    3: ProtectiveStop,
    5: SafeguardStop,
    6: EmergencyStop,
    7: EmergencyStop,
    # Newer software tells these apart from the ordinary ones: enabling devices, fieldbuses, interfaces of machines.
    12: SafeguardStop,
    13: SafeguardStop,
    14: SafeguardStop,
    15: EmergencyStop,
    16: SafeguardStop,
    18: SafeguardStop,
    19: SafeguardStop,
    20: EmergencyStop,
    22: SafeguardStop,
}


def safety_stop(safety_mode: int, safety_status_bits: int = 0) -> type[ArmStopped] | None:
    """Why the safety system keeps the arm; None when it does not (normal, reduced)."""
    if safety_mode in _SAFETY_STOPS:
        return _SAFETY_STOPS[safety_mode]
    if safety_status_bits >> 5 & 0b111:
        return EmergencyStop
    if safety_status_bits >> 2 & 1:
        return ProtectiveStop
    if safety_status_bits >> 4 & 1:
        return SafeguardStop
    return None if safety_mode in (1, 2) else SafetyFault


def stop_of(state: Package) -> type[ArmStopped] | None:
    """What keeps an arm whose control script should run, the safety system first; None when it can move."""
    stop = safety_stop(state["safety_mode"], state.get("safety_status_bits", 0))
    if stop is not None:
        return stop
    if state["robot_mode"] != RUNNING:
        return ArmNotReady
    return None if state["runtime_state"] in PROGRAM_RUNS else ProgramStopped


def scaling_of(state: Package) -> float:
    """The controller's speed now, 0..1 of what is asked; 0 while its program is paused."""
    if state["runtime_state"] != PLAYING:
        return 0.0
    scaling = float(state["speed_scaling"]) * float(state["target_speed_fraction"])
    return 1.0 if scaling > FULL_SPEED else max(scaling, 0.0)
