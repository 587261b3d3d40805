"""Describes in words the servo that followed the commands of a run."""

from __future__ import annotations

from simbridge.recording.run_record import BackendRecord
from simbridge.servo.extrapolation import is_extrapolated
from simbridge.text import join_words

# The evidence for the law, which is given wherever the law is named.
VERIFIED = (
    "the law was verified on a real UR5e at gain 300 and a real UR5 at gain 100: docs/validation.md"
)


def describe_plant(backend: BackendRecord) -> str:
    """Return one line: "simulated arm: UR's servoj, gain 2000, lookahead 0.03 s; ..."."""
    if backend.servo != "servoj":
        if backend.simulated_time:
            return "simulated arm: an ideal servo"
        return "servo: the controller's, tuning unknown"

    tuning = f"servoj, gain {backend.servo_gain:g}, lookahead {backend.servo_lookahead:g} s"
    if not backend.simulated_time:
        return f"servo: the controller's {tuning}"
    return f"simulated arm: UR's {tuning}{_describe_file(backend)}; {VERIFIED}"


def _describe_file(backend: BackendRecord) -> str:
    """Return the plant's file, and its parts that were not used, in parentheses; "" without it."""
    source = backend.plant_file
    if not source:
        return ""

    if backend.plant_replaced:
        source += f", except the {join_words(backend.plant_replaced)}"
    if backend.plant_not_simulated:
        source += f"; not simulated: {backend.plant_not_simulated}"
    return f" ({source})"


def plant_notes(backend: BackendRecord, robot: str) -> list[str]:
    """Return remarks on the plant's file, as sentences.

    Args:
        backend: The backend, and what followed the commands.
        robot: Name of the run's arm.
    """
    if backend.plant_robot is None or backend.plant_robot == robot:
        return []
    return [
        f"{backend.plant_file} was identified on a {backend.plant_robot}, but this run is for a "
        f"{robot}: to predict this arm, identify it from its own recording (simbridge identify)."
    ]


def name_servo(backend: BackendRecord) -> str:
    """Return a noun phrase: "servoj at gain 2000, lookahead 0.03 s"."""
    if backend.servo == "servoj":
        return f"servoj at gain {backend.servo_gain:g}, lookahead {backend.servo_lookahead:g} s"
    return "an ideal servo" if backend.simulated_time else "a servo of unknown tuning"


def extrapolated_gain(backend: BackendRecord) -> float | None:
    """Return the gain of a simulated servoj, 1/s^2, if it is extrapolated; None otherwise."""
    gain = backend.servo_gain
    if not backend.simulated_time or backend.servo != "servoj" or gain is None:
        return None
    return gain if is_extrapolated(gain) else None
