"""What `simbridge identify` finds: as `--json` prints it, and as plant.toml, for `simbridge run --plant`.

SI units; one standard deviation for every uncertainty. plant.toml:

    [servoj]        gain (1/s^2), lookahead_s, phase_s (when calls begin after a cycle does; 0 if it is not known)
    [joint_servo]   lag_s; the table is left out if it was not identified
    [payload]       mass_kg
    [friction]      coulomb_a, viscous_a_s_per_rad: of each joint, nan where it moved too little
    [uncertainty]   gain, lookahead_s, lag_s, mass_kg, coulomb_a, viscous_a_s_per_rad: one standard deviation
    [source]        recording, robot, cycle_s, date

Of these, servoj and joint_servo are simulated; the others are for the reader.
"""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

import tomli_w

from simbridge.errors import OutputError
from simbridge.robot.files import write_file


class ServojResult(TypedDict):
    """Tuning of servoj; `phase_s`: how long after the beginning of a cycle calls begin (null without commands).

    `uncertainty` is `{gain, lookahead_s}`. `residual_rad`, the distance over all joints, is `{median, p99}`.
    """

    gain: float
    lookahead_s: float
    phase_s: float | None
    call_s: float | None
    uncertainty: dict[str, float]
    residual_rad: dict[str, float]


class PredictionResult(TypedDict):
    """Predicted minus recorded joint targets, over all joints."""

    rms_rad: float
    median_rad: float
    max_rad: float
    restarts: int


class JointLag(TypedDict):
    """One joint; a lag of null: it moved too little. `residual_rad` is `{rms}`."""

    lag_s: float | None
    residual_rad: dict[str, float]


class JointServoResult(TypedDict):
    """Lag from target_q to actual_q, of all joints together and of each; `residual_rad`, without it, is `{rms}`."""

    lag_s: float
    uncertainty: dict[str, float]
    residual_rad: dict[str, float]
    per_joint: list[JointLag]


class KinematicsResult(TypedDict):
    """TCP poses compared; `tcp` in the flange: x y z (m) and a rotation vector (rad), null where it is uncertain."""

    residual_m: dict[str, float]
    tcp: list[float] | None
    source: str
    uncertainty: dict[str, list[float] | None]


class Measured(TypedDict):
    value: float
    uncertainty: float


class FrictionResult(TypedDict):
    """Of each joint, null where it moved too little; and one standard deviation of each, by the same names."""

    coulomb_a: list[float | None]
    viscous_a_s_per_rad: list[float | None]
    uncertainty: dict[str, list[float | None]]


class Identification(TypedDict):
    """What a recording shows; null what it does not, with the reason under `not_identified`."""

    robot: str | None
    cycle_s: float | None
    servoj: ServojResult | None
    prediction: PredictionResult | None
    joint_servo: JointServoResult | None
    kinematics: KinematicsResult | None
    payload_kg: Measured | None
    friction: FrictionResult | None
    not_identified: dict[str, str]
    notes: list[str]


def write_plant(path: str | Path, found: Identification, recording: str) -> None:
    """Write plant.toml, which names the recording; an existing file is replaced.

    Raises:
        OutputError: The tuning of servoj was not identified, or the file cannot be written.
    """
    servoj = found["servoj"]
    if servoj is None:
        raise OutputError(path, f"servoj's tuning was not identified: {found['not_identified']['servoj']}")
    tables: dict[str, Any] = {
        "servoj": {"gain": servoj["gain"], "lookahead_s": servoj["lookahead_s"], "phase_s": servoj["phase_s"] or 0.0}
    }
    uncertainty: dict[str, Any] = {**servoj["uncertainty"]}
    if (joints := found["joint_servo"]) is not None:
        tables["joint_servo"] = {"lag_s": max(joints["lag_s"], 0.0)}
        uncertainty |= joints["uncertainty"]
    if (payload := found["payload_kg"]) is not None:
        tables["payload"] = {"mass_kg": payload["value"]}
        uncertainty["mass_kg"] = payload["uncertainty"]
    if (friction := found["friction"]) is not None:
        values = {"coulomb_a": friction["coulomb_a"], "viscous_a_s_per_rad": friction["viscous_a_s_per_rad"]}
        tables["friction"] = {name: _numbers(row) for name, row in values.items()}
        uncertainty |= {name: _numbers(row) for name, row in friction["uncertainty"].items()}
    tables["uncertainty"] = uncertainty
    tables["source"] = {
        "recording": recording,
        "robot": found["robot"] or "",
        "cycle_s": found["cycle_s"],
        "date": date.today(),
    }
    write_file(path, b"# Written by simbridge identify.\n\n" + tomli_w.dumps(tables).encode())


def _numbers(values: list[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]
