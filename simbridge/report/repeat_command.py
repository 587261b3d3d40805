"""The command that repeats a run."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

from simbridge.planning.option_field import flag_name
from simbridge.planning.options import Options
from simbridge.recording.run_record import Record, RobotRecord, ScenarioRecord, SessionRecord
from simbridge.resources import scenario_files
from simbridge.trajectory.read_options import ReadOptions


def repeat_command(record: Record, run: Path) -> str | None:
    """Return the command that sends the same setpoints again, from any directory.

    The plan is replayed, so the solver's settings are not repeated. The command refuses if the
    scenario is another one by then, or was another one already.

    Args:
        record: The record of the run.
        run: The directory of the run.

    Returns:
        None when scenario, robot or cell is neither built in nor from a file.
    """
    run = run.resolve()
    scenario = _scenario_argument(record, run)
    arm = _robot_argument(record.robot)
    if not scenario or not arm:
        return None
    if record.cell is not None and not record.cell.file:
        return None

    command = ["simbridge", "run", scenario]
    command += ["--plan", str(run), "--backend", record.backend.name]
    flags = {
        **_reading_flags(record.scenario),
        **_installation_flags(record, run),
        "robot": arm,
        "period": record.backend.period,
        **_arm_flags(record.robot),
        "floor": "none" if record.scenario.floor is None else record.scenario.floor,
        **_load_flags(record),
        **_servo_flags(record),
    }
    for flag, value in flags.items():
        # None stands for a flag that was not given.
        if value is None:
            continue
        # A tuple repeats the flag; a list is the words of one.
        for occurrence in value if isinstance(value, tuple) else (value,):
            words = occurrence if isinstance(occurrence, list) else [occurrence]
            command += [f"--{flag}", *map(str, words)]
    return shlex.join(command)


def _scenario_argument(record: Record, run: Path) -> str:
    """Return the scenario's file or name, or a session's directory; "" if there is none."""
    scenario = record.scenario
    if isinstance(record, SessionRecord):
        return str(run)
    if scenario.file:
        return scenario.file
    return scenario.name if scenario.name in scenario_files() else ""


def _robot_argument(robot: RobotRecord) -> str:
    """Return the arm's name or file; "" if there is none."""
    return robot.name if robot.is_built_in else robot.source


def _reading_flags(scenario: ScenarioRecord) -> dict[str, Any]:
    """Return the flags by which the scenario's file was read, where they are not the defaults."""
    defaults = ReadOptions()
    flags = {}
    for option in fields(Options):
        if not hasattr(defaults, option.name):
            continue
        value = getattr(scenario, option.name)
        if value is not None and value != getattr(defaults, option.name):
            flags[flag_name(option)] = value
    return flags


def _installation_flags(record: Record, run: Path) -> dict[str, Any]:
    """Return the cell, the controller's address and link, and the kinematics."""
    cell = record.cell
    # A cell may have the address itself.
    host = None
    if record.controller is not None and (cell is None or "host" not in cell.values):
        host = record.controller.host

    kinematics: Path | str | None = None
    if record.kinematics.is_calibrated:
        # The calibration is in the run's settings.
        kinematics = run
    elif cell is not None or not record.backend.simulated_time:
        # Neither the cell's calibration nor the controller's is to be taken.
        kinematics = "nominal"

    return {
        "cell": None if cell is None else Path(cell.file).resolve(),
        "host": host,
        "rest-port": record.backend.rest_port,
        "link": record.backend.link,
        "registers": record.backend.registers,
        "kinematics": kinematics,
    }


def _arm_flags(robot: RobotRecord) -> dict[str, Any]:
    """Return links, packages and arguments of a URDF or xacro file, home and tool speed."""
    return {
        "base": robot.base,
        "tip": robot.tip,
        "package": None if robot.package is None else ",".join(robot.package),
        "xacro-arg": tuple(robot.xacro_arg or ()),
        "home": None if robot.file_home is None else robot.home,
        "max-tool-speed": robot.max_tool_speed,
    }


def _load_flags(record: Record) -> dict[str, Any]:
    """Return the tool and what it carries."""
    robot = record.robot
    return {
        "tcp": robot.tcp if any(robot.tcp) else None,
        "payload": robot.payload or None,
        "unmodelled-payload": record.backend.unmodelled_payload or None,
    }


def _servo_flags(record: Record) -> dict[str, Any]:
    """Return the flags of the servo with its plant, and of commands that lead it, by name."""
    backend = record.backend
    scenario = record.scenario
    is_ideal = backend.servo == "ideal"
    plant = None
    if backend.plant_file is not None:
        plant = Path(backend.plant_file).resolve()
    # The flag is in mm, the record in m.
    tolerance = None
    if scenario.corner_tolerance is not None:
        tolerance = 1e3 * scenario.corner_tolerance
    return {
        "servo": "ideal" if is_ideal else None,
        "servo-gain": None if is_ideal else backend.servo_gain,
        "servo-lookahead": None if is_ideal else backend.servo_lookahead,
        "plant": plant,
        "feedforward": scenario.feedforward,
        "corner-tolerance": tolerance,
    }
