"""What each command does, once its flags have been read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simbridge.cli import terminal
from simbridge.errors import SimbridgeError
from simbridge.resources import robot_files, scenario_files

if TYPE_CHECKING:
    from simbridge.backends.backend import Ask
    from simbridge.cli.flags.inputs import Inspect
    from simbridge.cli.flags.planned import Planned
    from simbridge.cli.flags.run import Check, Run
    from simbridge.running.preparation import Prepared
    from simbridge.running.runner import Progress


def _prepared(command: Planned, solver_changes: dict[str, Any], backend: str = "pybullet") -> Prepared:
    from simbridge.robot.load import load_robot
    from simbridge.running.preparation import prepare

    command.topic = _topic(command.scenario, command.topic)
    options = command.options()
    robot = load_robot(command.robot or options.robot, home=command.home or None, lengths=command.link_lengths or None)
    return prepare(
        command.scenario,
        robot=robot,
        solver_name=command.solver,
        solver_changes=solver_changes,
        options=options,
        backend=backend,
    )


def run(command: Run, solver_changes: dict[str, Any]) -> int:
    """Run a scenario, show its progress and its result."""
    from simbridge.cli.progress import live_line
    from simbridge.running.runner import execute

    prepared = _prepared(command, solver_changes, command.backend)
    with live_line(prepared, quiet=command.json, repeats=command.repeat) as line:
        progress = None if line is None else line.update
        ask = None if not sys.stdin.isatty() else terminal.ask if line is None else line.ask
        if command.repeat != 1:
            return _repeated(command, prepared, progress, ask)
        finished = execute(prepared, out=command.out, progress=progress, ask=ask)
    if command.json:
        print(json.dumps({"run": str(finished.directory), **finished.summary}, indent=2))
    else:
        terminal.show_run(finished)
    return 1 if finished.summary["passed"] is False else 0


def _repeated(command: Run, prepared: Prepared, progress: Progress | None, ask: Ask | None) -> int:
    from simbridge.running.repeating import repeat

    finished = repeat(prepared, command.repeat, out=command.out, progress=progress, ask=ask)
    if command.json:
        print(json.dumps({"run": str(finished.directory), **finished.summary}, indent=2))
    else:
        from simbridge.cli.repeats_table import show_repeats

        show_repeats(finished)
    return 1 if finished.summary["passed"] is False else 0


def check(command: Check, solver_changes: dict[str, Any]) -> int:
    """Plan and check a scenario, and show how close to the limits it comes."""
    prepared = _prepared(command, solver_changes)
    if command.json:
        print(json.dumps(terminal.check_facts(prepared), indent=2))
    else:
        terminal.show_check(prepared)
    return 0


def inspect(command: Inspect) -> int:
    """Measure a trajectory, show what it is like, and draw it if asked."""
    from simbridge.planning.inspection import inspect as measured
    from simbridge.planning.scenario import load_scenario
    from simbridge.robot.load import load_robot
    from simbridge.running.run_setup import chosen_solver
    from simbridge.trajectory.files import ReadOptions

    robot = load_robot(command.robot)
    topic = _topic(command.file, command.topic)
    reading = ReadOptions(command.frame, command.transform or (), command.anchor, topic)
    # Nothing is going to move: poses in a foreign frame may be looked at as they are.
    scenario = load_scenario(command.file, robot, reading, any_frame=True)
    facts, attained = measured(scenario.trajectory, chosen_solver(scenario, robot))
    if command.json:
        print(json.dumps(facts.as_dict(), indent=2))
    else:
        from simbridge.cli.inspection_table import show

        show(facts)
    if command.out is not None:
        from simbridge.report.inspection_figure import draw

        draw(command.out, scenario.trajectory, attained, title=scenario.name)
        print(f"Picture: {command.out}", file=sys.stderr if command.json else sys.stdout)
    return 0


def _topic(given: str, topic: str | None) -> str | None:
    """The topic of a bag: the one given, or the one a person chooses when there are several."""
    from simbridge.trajectory.bags import pose_topics
    from simbridge.trajectory.files import is_bag

    if topic is not None or not is_bag(given) or not sys.stdin.isatty():
        return topic
    topics = pose_topics(given)
    return terminal.choose("topic", topics) if len(topics) > 1 else None


def robots(*, as_json: bool = False) -> int:
    """List the robots."""
    from simbridge.robot.load import load_robot

    found = [load_robot(name) for name in robot_files()]
    if as_json:
        print(json.dumps([terminal.robot_facts(robot) for robot in found], indent=2))
    else:
        terminal.show_robots(found)
    return 0


def scenarios(*, as_json: bool = False) -> int:
    """List the scenarios."""
    from simbridge.planning.scenario import describe

    found = {name: describe(path) for name, path in scenario_files().items()}
    if as_json:
        print(json.dumps([{"scenario": name, "description": text} for name, text in found.items()], indent=2))
    else:
        terminal.show_scenarios(found)
    return 0


def export(run: Path, to: str, *, as_json: bool = False) -> int:
    """Write a run in a format for other tools."""
    from simbridge.evaluation.evaluation import Evaluation
    from simbridge.recording.export import EXPORTERS
    from simbridge.recording.run_directory import RunDirectory

    evaluation = Evaluation.of(RunDirectory.open(run))
    if len(evaluation.log.stamp) == 0:
        raise SimbridgeError(f"{run} holds no sample: the run ended before the arm had reached the start of its plan.")
    poses = {name: getattr(evaluation, name) for name in ("reference", "target", "solution", "setpoint", "attained")}
    errors = {part: (error.translation, error.rotation) for part, error in vars(evaluation.budget).items()}
    files = EXPORTERS[to](evaluation.directory.path, evaluation.log, poses, errors, evaluation.joint_origins)
    written = [str(path) for path in files]
    print(json.dumps({"written": written}, indent=2) if as_json else "\n".join(written))
    return 0
