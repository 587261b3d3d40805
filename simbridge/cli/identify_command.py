"""The command `simbridge identify`: what a recording or a run shows of an arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from simbridge.cli.flags import IdentifyFlags
from simbridge.console import Terminal
from simbridge.errors import InputFileError
from simbridge.identification.data import (
    Identification,
    Samples,
    read_recording_samples,
    read_run_samples,
    sent_commands,
    write_plant,
)
from simbridge.identification.identification import identify as identify_samples
from simbridge.json_output import print_json
from simbridge.judging.run_log import arm_of_run
from simbridge.resources import robot_files
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import fixed, millimetres, milliseconds, significant
from simbridge.trajectory.rtde_recording import read_joint_positions


class FigureRow(NamedTuple):
    """A row of the table."""

    quantity: str
    value: str
    """Empty in a row of several values: these are in `unit`."""
    deviation: str
    """One standard deviation."""
    unit: str
    """The unit, with remarks; or several values with theirs."""
    is_detail: bool = False
    """True for a row that needs `--verbose`."""


def identify(flags: IdentifyFlags) -> int:
    """Identify an arm, and show its properties.

    Returns:
        The exit status, 0.

    Raises:
        InputFileError, NotARun, LogReadError: A file cannot be read.
        UnusableSamples: Joint positions are in degrees.
        OutputError: plant.toml cannot be written.
    """
    # What was recorded, and of which arm.
    recording = flags.recording
    is_run = Path(recording).is_dir()
    samples = read_run_samples(recording) if is_run else read_recording_samples(recording)
    arm = _known_arm(recording, flags.robot, is_run=is_run)
    candidates = [item for item in map(load_robot, robot_files()) if item.series and item.n == 6]

    has_kinematics = flags.kinematics not in (None, "nominal")
    if has_kinematics:
        kinematics = str(flags.kinematics)
        if arm is None:
            reason = "individual kinematics need the arm's model: name it with --robot"
            raise InputFileError(kinematics, reason)
        arm = with_kinematics(arm, kinematics)

    notes: Sequence[str] = ()
    if flags.commands is not None:
        sent, notes = _read_commands(flags.commands)
        samples = replace(samples, commands=sent)

    identification = identify_samples(
        samples, robot=arm, others=candidates, is_calibrated=has_kinematics
    )
    identification["notes"] += [f"{flags.commands}: {note}" for note in notes]

    if flags.as_json:
        print_json({"recording": recording, **identification})
    else:
        _show(recording, samples, identification, verbose=flags.verbose)
    if flags.out is not None:
        write_plant(flags.out, identification, recording)
        if not flags.as_json:
            print(f"Written: {flags.out}")
    return 0


def _read_commands(commands: str) -> tuple[Array, Sequence[str]]:
    """Read the joint targets that were sent, from a run's directory or a file.

    Returns:
        The targets (K, n), rad, and notes on the file.
    """
    if Path(commands).is_dir():
        return sent_commands(commands), ()
    return read_joint_positions(commands)


def _known_arm(recording: str, robot: str | None, *, is_run: bool) -> Robot | None:
    """Return the arm that was named, or that of a run; None where it must be identified, too."""
    if robot is not None:
        return load_robot(robot)
    if not is_run:
        return None
    return arm_of_run(recording)


def _show(
    recording: str, samples: Samples, identification: Identification, *, verbose: bool
) -> None:
    """Show a table of what was identified, then name what was not, in about a dozen lines.

    `verbose` adds details to the table, and the reasons.
    """
    console = Terminal()
    duration = samples.times[-1] - samples.times[0]
    headline = f"[bold]{escape(recording)}[/bold]: {len(samples.times)} samples, {duration:.1f} s"
    if identification["robot"]:
        headline += f", {identification['robot']}"
    console.print(headline, soft_wrap=True)
    for note in identification["notes"]:
        console.print(f"  {escape(note)}", soft_wrap=True)

    table = Table(box=None, pad_edge=False)
    table.add_column("", justify="left")
    table.add_column("value", justify="right")
    table.add_column("±", justify="right")
    table.add_column("", justify="left")
    for row in _rows(identification):
        if verbose or not row.is_detail:
            table.add_row(row.quantity, row.value, row.deviation, row.unit)
    if table.row_count:
        console.print(table)

    reasons = identification["not_identified"]
    if reasons and verbose:
        console.print("\nNot identified:")
        for name, reason in reasons.items():
            console.print(f"  {name}: {escape(reason)}.", soft_wrap=True)
    elif reasons:
        names = ", ".join(reasons)
        console.print(f"Not identified: {names} (--verbose says why)", soft_wrap=True)


def _rows(identification: Identification) -> list[FigureRow]:
    """Return the rows of all that was identified."""
    rows = [
        *_servoj_rows(identification),
        *_prediction_rows(identification),
        *_joint_servo_rows(identification),
        *_kinematics_rows(identification),
    ]

    payload = identification["payload_kg"]
    if payload is not None:
        deviation = f"{payload['uncertainty']:.3f}"
        rows.append(FigureRow("payload", fixed(payload["value"], 3), deviation, "kg"))

    return [*rows, *_friction_rows(identification)]


def _servoj_rows(identification: Identification) -> list[FigureRow]:
    """Return the tuning of servoj; as details, when its calls come, and the setpoint residual.

    When they come is known only with the commands.
    """
    servoj = identification["servoj"]
    if servoj is None:
        return []

    deviation = servoj["uncertainty"]
    rows = [
        FigureRow("servoj gain", *_rounded(servoj["gain"], deviation["gain"]), "1/s²"),
        FigureRow(
            "servoj lookahead", *_rounded(servoj["lookahead_s"], deviation["lookahead_s"]), "s"
        ),
    ]
    if servoj["phase_s"] is not None and servoj["call_s"] is not None:
        begin = f"{1e3 * servoj['phase_s']:.4f}"
        duration = f"{1e3 * servoj['call_s']:.6g}"
        remark = "ms into the controller cycle"
        rows.append(FigureRow("servoj calls start", begin, "", remark, is_detail=True))
        rows.append(FigureRow("a servoj call takes", duration, "", "ms", is_detail=True))

    residual = servoj["residual_rad"]
    remark = f"rad median, {residual['p99']:.1e} p99"
    median = f"{residual['median']:.1e}"
    rows.append(FigureRow("setpoint residual", median, "", remark, is_detail=True))
    return rows


def _prediction_rows(identification: Identification) -> list[FigureRow]:
    """Return how well the law predicts the joint targets."""
    prediction = identification["prediction"]
    if prediction is None:
        return []
    remark = f"rad RMS, max {prediction['max_rad']:.1e}, {prediction['restarts']} restarts"
    return [FigureRow("prediction error", f"{prediction['rms_rad']:.1e}", "", remark)]


def _joint_servo_rows(identification: Identification) -> list[FigureRow]:
    """Return by how much the joints trail their targets."""
    servo = identification["joint_servo"]
    if servo is None:
        return []
    residual = significant(1e3 * servo["residual_rad"]["rms"])
    deviation = milliseconds(servo["uncertainty"]["lag_s"])
    lags = " ".join(milliseconds(joint["lag_s"]) for joint in servo["per_joint"])
    return [
        FigureRow(
            "joint servo lag",
            milliseconds(servo["lag_s"]),
            deviation,
            f"ms; residual {residual} mrad RMS",
        ),
        FigureRow("  per joint", "", "", f"{lags} ms", is_detail=True),
    ]


def _kinematics_rows(identification: Identification) -> list[FigureRow]:
    """Return how well the kinematics fit the recorded poses, and the TCP."""
    kinematics = identification["kinematics"]
    if kinematics is None:
        return []

    residual = millimetres(kinematics["residual_m"]["rms"])
    rows = [FigureRow(f"kinematics, {kinematics['source']}", residual, "", "mm RMS")]
    tcp = kinematics["tcp"]
    if tcp is not None:
        deviations = kinematics["uncertainty"]["tcp"] or tcp
        position = ", ".join(fixed(1e3 * value, 2) for value in tcp[:3])
        deviation = significant(1e3 * max(deviations[:3]), 2)
        rows.append(FigureRow("  TCP in the flange", "", deviation, f"({position}) mm"))

        degree = math.degrees(1.0)
        rotation = ", ".join(fixed(degree * value, 3) for value in tcp[3:6])
        deviation = significant(degree * max(deviations[3:6]), 2)
        values = f"({rotation}) °"
        rows.append(FigureRow("  its rotation vector", "", deviation, values, is_detail=True))
    return rows


def _friction_rows(identification: Identification) -> list[FigureRow]:
    """Return the friction of the joints as currents; as details, below them, their deviations."""
    friction = identification["friction"]
    if friction is None:
        return []

    rows: list[FigureRow] = []
    deviations = friction["uncertainty"]
    quantities = (
        ("Coulomb friction", friction["coulomb_a"], deviations["coulomb_a"], "A"),
        (
            "viscous friction",
            friction["viscous_a_s_per_rad"],
            deviations["viscous_a_s_per_rad"],
            "A s/rad",
        ),
    )
    for name, values, value_deviations, unit in quantities:
        numbers = " ".join(significant(value) for value in values)
        rows.append(FigureRow(name, "", "", f"{numbers} {unit}"))
        numbers = " ".join(significant(deviation, 2) for deviation in value_deviations)
        rows.append(FigureRow("", "", "", f"± {numbers} {unit}", is_detail=True))
    return rows


def _rounded(value: float, deviation: float) -> tuple[str, str]:
    """Return a value and its standard deviation, both to the first digit of the latter."""
    decimals = max(-math.floor(math.log10(deviation)), 0)
    return f"{value:.{decimals}f}", f"{deviation:.{decimals}f}"
