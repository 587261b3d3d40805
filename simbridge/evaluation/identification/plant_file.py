"""plant.toml: what was identified of an arm, for `simbridge run --plant`.

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
from typing import Any

import tomli_w

from simbridge.errors import OutputError
from simbridge.evaluation.identification.result import Identification
from simbridge.robot.output_file import write_file


def write_plant(path: str | Path, found: Identification, recording: str) -> None:
    """Write plant.toml; an existing file is replaced.

    Args:
        path: The file.
        found: What was identified.
        recording: Where it comes from, for the reader.

    Raises:
        OutputError: The tuning of servoj was not identified, or the file cannot be written.
    """
    servoj = found["servoj"]
    if servoj is None:
        raise OutputError(path, f"servoj's tuning was not identified: {found['not_identified']['servoj']}")
    tables: dict[str, Any] = {
        "servoj": {"gain": servoj["gain"], "lookahead_s": servoj["lookahead_s"], "phase_s": servoj["phase_s"] or 0.0}
    }
    deviation = servoj["uncertainty"]
    uncertainty: dict[str, Any] = {"gain": deviation["gain"], "lookahead_s": deviation["lookahead_s"]}
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
