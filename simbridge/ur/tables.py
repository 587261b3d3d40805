"""The numbers of a controller's states, as their names.

Source: Universal Robots, "Real-Time Data Exchange (RTDE) Guide", robot mode, safety mode and runtime state; the safety
modes past 11 as in UR's own client library.
"""

from __future__ import annotations

ROBOT_MODES = {
    -1: "no controller",
    0: "disconnected",
    1: "confirm safety",
    2: "booting",
    3: "power off",
    4: "power on",
    5: "idle",
    6: "backdrive",
    7: "running",
    8: "updating firmware",
}

SAFETY_MODES = {
    1: "normal",
    2: "reduced",
    3: "protective stop",
    4: "recovery",
    5: "safeguard stop",
    6: "system emergency stop",
    7: "robot emergency stop",
    8: "violation",
    9: "fault",
    10: "validate joint id",
    11: "undefined",
    12: "automatic mode safeguard stop",
    13: "system three-position enabling stop",
    14: "pendant three-position enabling stop",
    15: "IMMI emergency stop",
    16: "IMMI safeguard stop",
    17: "PROFIsafe waiting for parameters",
    18: "PROFIsafe automatic mode safeguard stop",
    19: "PROFIsafe safeguard stop",
    20: "PROFIsafe emergency stop",
    22: "safety API safeguard stop",
}

RUNTIME_STATES = {0: "stopping", 1: "stopped", 2: "playing", 3: "pausing", 4: "paused", 5: "resuming"}


def named(number: int, names: dict[int, str]) -> str:
    """The name and the number: "running (7)"."""
    return f"{names.get(number, 'unknown')} ({number})"
