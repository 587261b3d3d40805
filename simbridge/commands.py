"""What each command does, once its flags have been read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simbridge import terminal
from simbridge.errors import SimbridgeError
from simbridge.resources import robot_files, scenario_files

if TYPE_CHECKING:
    from simbridge.cli import _Check, _Planned, _Run
    from simbridge.runner import Prepared


def _prepared(command: _Planned, solver_changes: dict[str, Any], backend: str = "pybullet") -> Prepared:
    from simbridge.robot import load_robot
    from simbridge.runner import prepare

    options = command.options()
    robot = load_robot(command.robot or options.robot, home=command.home or None)
    return prepare(command.scenario, robot=robot, solver_changes=solver_changes, options=options, backend=backend)


def run(command: _Run, solver_changes: dict[str, Any]) -> int:
    """Run a scenario, show its progress and its result."""
    from simbridge.runner import execute

    prepared = _prepared(command, solver_changes, command.backend)
    ask = terminal.ask if sys.stdin.isatty() else None
    # A question cannot be asked while a progress bar is drawn.
    with terminal.progress(prepared.plan, quiet=command.json or command.backend == "real") as progress:
        finished = execute(prepared, out=command.out, progress=progress, ask=ask)
    if command.json:
        print(json.dumps({"run": str(finished.directory), **finished.summary}, indent=2))
    else:
        terminal.show_run(finished)
    return 1 if finished.summary["passed"] is False else 0


def check(command: _Check, solver_changes: dict[str, Any]) -> int:
    """Plan and check a scenario, and show how close to the limits it comes."""
    prepared = _prepared(command, solver_changes)
    if command.json:
        print(json.dumps(terminal.check_facts(prepared), indent=2))
    else:
        terminal.show_check(prepared)
    return 0


def robots() -> int:
    """List the robots."""
    from simbridge.robot import load_robot

    terminal.show_robots([load_robot(name) for name in robot_files()])
    return 0


def scenarios() -> int:
    """List the scenarios."""
    from simbridge.scenario import describe

    terminal.show_scenarios({name: describe(path) for name, path in scenario_files().items()})
    return 0


def export(run: Path, to: str) -> int:
    """Write a run in a format for other tools."""
    from simbridge.evaluation import Evaluation
    from simbridge.export import export_csv, export_tum
    from simbridge.recording.run_directory import RunDirectory

    evaluation = Evaluation.of(RunDirectory.open(run))
    if len(evaluation.log.stamp) == 0:
        raise SimbridgeError(f"{run} holds no sample: the run ended before the arm had reached the start of its plan.")
    for path in export_csv(evaluation) if to == "csv" else export_tum(evaluation):
        print(path)
    return 0
