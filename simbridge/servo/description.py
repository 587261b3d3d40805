"""What follows the commands, in words: from the table "backend" of a run's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simbridge.text import listed

# What is known of the law is said wherever it is named; other tunings and CB3 controllers are
# extrapolations.
VERIFIED = "the law was verified on a real UR5e at gain 300: docs/validation.md"


def describe_plant(backend: Mapping[str, Any]) -> str:
    """Return one line: "simulated arm: UR's servoj, gain 2000, lookahead 0.03 s; ..."."""
    is_simulated = backend["simulated_time"]

    if backend.get("servo") != "servoj":
        if is_simulated:
            return "simulated arm: an ideal servo, not UR's"
        return "servo: the controller's, tuning unknown"

    gain = backend["servo_gain"]
    lookahead = backend["servo_lookahead"]
    tuning = f"servoj, gain {gain:g}, lookahead {lookahead:g} s"
    if not is_simulated:
        return f"servo: the controller's {tuning}"
    return f"simulated arm: UR's {tuning}{_describe_file(backend)}; {VERIFIED}"


def _describe_file(backend: Mapping[str, Any]) -> str:
    """Return the plant's file in parentheses, with what of it was not used; "" without a file."""
    source = backend.get("plant_file", "")
    if not source:
        return ""

    replaced = backend.get("plant_replaced")
    if replaced:
        source += f", except the {listed(replaced)}"
    not_simulated = backend.get("plant_not_simulated")
    if not_simulated:
        source += f"; not simulated: {not_simulated}"
    return f" ({source})"


def name_servo(backend: Mapping[str, Any]) -> str:
    """Return a noun phrase: "servoj at gain 2000, lookahead 0.03 s"."""
    if backend.get("servo") == "servoj":
        gain = backend["servo_gain"]
        lookahead = backend["servo_lookahead"]
        return f"servoj at gain {gain:g}, lookahead {lookahead:g} s"
    return "an ideal servo" if backend["simulated_time"] else "a servo of unknown tuning"
