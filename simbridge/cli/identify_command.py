"""The command `simbridge identify`: what a recording or a run shows of an arm."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from simbridge.console import Terminal
from simbridge.errors import InputFileError
from simbridge.identification.data import (
    Identification,
    Samples,
    of_recording,
    of_run,
    sent_commands,
    write_plant,
)
from simbridge.identification.identification import identify as identify_samples
from simbridge.recording.run_directory import RunDirectory
from simbridge.resources import robot_files
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.text import fixed, millimetres, milliseconds, significant
from simbridge.trajectory.rtde_recording import read_joint_positions


def identify(
    recording: str,
    *,
    commands: str | None = None,
    robot: str | None = None,
    kinematics: str | None = None,
    out: str | None = None,
    as_json: bool = False,
) -> int:
    """Identify an arm and show what was found; returns the exit status, 0. The arguments are the command's flags.

    Raises:
        InputFileError, NotARun, LogReadError: A file cannot be read.
        UnusableSamples: Joint positions are in degrees.
        OutputError: plant.toml cannot be written.
    """
    is_run = Path(recording).is_dir()
    samples = of_run(recording) if is_run else of_recording(recording)
    arm, others = _arms(recording, robot, is_run)
    given = kinematics not in (None, "nominal")
    if given:
        if arm is None:
            raise InputFileError(
                str(kinematics), "kinematics of one arm need its model; name it with --robot"
            )
        arm = with_kinematics(arm, str(kinematics))
    sent, notes = samples.commands, tuple[str, ...]()
    if commands is not None:
        sent, notes = (
            (sent_commands(commands), ())
            if Path(commands).is_dir()
            else read_joint_positions(commands)
        )
    samples = replace(samples, commands=sent)
    found = identify_samples(samples, robot=arm, others=others, given_kinematics=given)
    found["notes"] += [f"{commands}: {note}" for note in notes]
    if as_json:
        print(json.dumps({"recording": recording, **found}, indent=2, allow_nan=False))
    else:
        _show(recording, samples, found)
    if out is not None:
        write_plant(out, found, recording)
        if not as_json:
            print(f"Written: {out}")
    return 0


def _arms(recording: str, robot: str | None, is_run: bool) -> tuple[Robot | None, list[Robot]]:
    """The arm, if it is known, and the UR arms that it may be."""
    others = [arm for arm in map(load_robot, robot_files()) if arm.series and arm.n == 6]
    if robot is not None:
        return load_robot(robot), others
    if not is_run:
        return None, others
    record = RunDirectory.open(recording).settings().robot
    if record.name in robot_files():
        return load_robot(record.name), others
    return (load_robot(record.source) if Path(record.source).is_file() else None), others


def _show(recording: str, samples: Samples, found: Identification) -> None:
    """A table of what was found, then what was not, and why."""
    console = Terminal()
    duration = samples.times[-1] - samples.times[0]
    console.print(
        f"[bold]{escape(recording)}[/bold]: {len(samples.times)} samples, {duration:.1f} s"
        + (f", {found['robot']}" if found["robot"] else ""),
        soft_wrap=True,
    )
    for note in found["notes"]:
        console.print(f"  {escape(note)}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name, side in (("", "left"), ("value", "right"), ("±", "right"), ("", "left")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for row in _rows(found):
        table.add_row(*row)
    if table.row_count:
        console.print(table)
    if found["not_identified"]:
        console.print("\nNot identified:")
        for name, reason in found["not_identified"].items():
            console.print(f"  {name}: {escape(reason)}.", soft_wrap=True)


def _rows(found: Identification) -> list[tuple[str, str, str, str]]:
    """Each a quantity, its value, one standard deviation to whose first digit it is rounded, and unit with remarks."""
    rows: list[tuple[str, str, str, str]] = []
    if (servoj := found["servoj"]) is not None:
        deviation, left = servoj["uncertainty"], servoj["residual_rad"]
        rows += [
            ("servoj gain", *_rounded(servoj["gain"], deviation["gain"]), "1/s²"),
            ("servoj lookahead", *_rounded(servoj["lookahead_s"], deviation["lookahead_s"]), "s"),
        ]
        if servoj["phase_s"] is not None and servoj["call_s"] is not None:
            rows += [
                ("calls begin", f"{1e3 * servoj['phase_s']:.4f}", "", "ms after a cycle does"),
                ("a call lasts", f"{1e3 * servoj['call_s']:.6g}", "", "ms"),
            ]
        rows.append(
            ("setpoints left", f"{left['median']:.1e}", "", f"rad median, {left['p99']:.1e} p99")
        )
    if (predicted := found["prediction"]) is not None:
        remark = f"rad RMS, max {predicted['max_rad']:.1e}, {predicted['restarts']} restarts"
        rows.append(("prediction error", f"{predicted['rms_rad']:.1e}", "", remark))
    if (joints := found["joint_servo"]) is not None:
        rest = f"ms; {significant(1e3 * joints['residual_rad']['rms'])} mrad RMS left"
        spread = milliseconds(joints["uncertainty"]["lag_s"])
        rows.append(("joint servo lag", milliseconds(joints["lag_s"]), spread, rest))
        each = [milliseconds(joint["lag_s"]) for joint in joints["per_joint"]]
        rows.append(("  of each joint", "", "", f"{' '.join(each)} ms"))
    if (kinematics := found["kinematics"]) is not None:
        off = millimetres(kinematics["residual_m"]["rms"])
        rows.append((f"kinematics, {kinematics['source']}", off, "", "mm RMS"))
        if (tcp := kinematics["tcp"]) is not None:
            deviations = kinematics["uncertainty"]["tcp"] or tcp
            for name, unit, part, scale, decimals in (
                ("  TCP in the flange", "mm", slice(3), 1e3, 2),
                ("  its rotation vector", "°", slice(3, 6), math.degrees(1.0), 3),
            ):
                at = ", ".join(fixed(scale * value, decimals) for value in tcp[part])
                rows.append(
                    (name, "", significant(scale * max(deviations[part]), 2), f"({at}) {unit}")
                )
    if (payload := found["payload_kg"]) is not None:
        rows.append(("payload", fixed(payload["value"], 3), f"{payload['uncertainty']:.3f}", "kg"))
    if (friction := found["friction"]) is not None:
        spreads = friction["uncertainty"]
        for name, values, own, unit in (
            ("Coulomb friction", friction["coulomb_a"], spreads["coulomb_a"], "A"),
            (
                "viscous friction",
                friction["viscous_a_s_per_rad"],
                spreads["viscous_a_s_per_rad"],
                "A s/rad",
            ),
        ):
            rows.append(
                (name, "", "", f"{' '.join(significant(value) for value in values)} {unit}")
            )
            rows.append(
                ("", "", "", f"± {' '.join(significant(value, 2) for value in own)} {unit}")
            )
    return rows


def _rounded(value: float, deviation: float) -> tuple[str, str]:
    """A value and its standard deviation, both to the first digit of the latter."""
    decimals = max(-math.floor(math.log10(deviation)), 0)
    return f"{value:.{decimals}f}", f"{deviation:.{decimals}f}"
