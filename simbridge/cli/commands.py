"""The commands that plan, run, inspect and export; their arguments are the flags in `cli/flags.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

from simbridge.backends import SIMULATION
from simbridge.cli import plan_tables, prompts
from simbridge.cli.option_flags import typed_fields
from simbridge.errors import Interrupted, UnknownName
from simbridge.planning.inspection import inspect as measure
from simbridge.planning.options import Options
from simbridge.planning.planner import nearest_placement
from simbridge.planning.scenario import load_scenario
from simbridge.robot.load import load_robot
from simbridge.running.recorded_session import RecordedSession
from simbridge.running.run_setup import Prepared, check_facts, chosen_solver, prepare
from simbridge.running.signals import number_of
from simbridge.trajectory.files import is_bag


def read_options(flags: Mapping[str, Any]) -> Options:
    """The options of a run that flags stand for (see `given_options`)."""
    return Options(**given_options(flags))


def given_options(flags: Mapping[str, Any], options: type = Options) -> dict[str, Any]:
    """Fields of options, and the values that flags give them: in SI units, files read, a dataclass for a prefix.

    Args:
        flags: Values as tyro has read them; those of commands without the flag are left out.
        options: The class of the options.

    Raises:
        UnknownName, InvalidParameter, InputFileError: A value is invalid, or a file cannot be read.
    """
    chosen: dict[str, Any] = {}
    for own, kind in typed_fields(options):
        if "prefix" in own.metadata:
            part = get_args(kind)[0]
            values = {inner.name: _read(inner, flags, own.metadata["prefix"]) for inner in fields(part)}
            given = {name: value for name, value in values.items() if value is not None}
            # A seed alone asks for nothing.
            if given and (made := part(**given)) != part(seed=made.seed):
                chosen[own.name] = made
        elif flags.get(own.name) is not None:
            chosen[own.name] = _read(own, flags)
    return chosen


def _read(own: Any, flags: Mapping[str, Any], prefix: str = "") -> Any:
    value, about = flags.get(prefix + own.name), own.metadata
    if value is None:
        return None
    if "units" in about:
        several = isinstance(value, Sequence)
        scaled = tuple(v * unit for v, unit in zip(value if several else (value,), about["units"], strict=True))
        return scaled if several else scaled[0]
    return about["read"](value) if "read" in about else value


def _prepare(
    scenario: str,
    *,
    robot: str | None,
    solver: str,
    solver_settings: Mapping[str, Any],
    home: Sequence[float],
    link_lengths: Sequence[float],
    backend: str = SIMULATION,
    **flags: Any,
) -> Prepared:
    options = read_options({**flags, "topic": _topic(scenario, flags["topic"], flags["frames"])})
    session = RecordedSession.at(scenario)
    if session is not None and not robot:
        arm = session.arm(list(home) or None)
    else:
        arm = load_robot(robot or options.robot, home=home or None, lengths=link_lengths or None, **options.links)
    return prepare(
        scenario, robot=arm, solver_name=solver, solver_changes=solver_settings, options=options, backend=backend
    )


def run(scenario: str, *, out: str | None, repeat: int, as_json: bool, backend: str, **flags: Any) -> int:
    """Run a scenario, show its progress and its result; returns 0, or 1 when the run missed its tolerance."""
    try:
        prepared = _prepare(scenario, backend=backend, **flags)
        from simbridge.cli import progress, run_tables  # metrics: not for a run that is refused
        from simbridge.running import repeating, runner  # likewise
    except KeyboardInterrupt as error:
        raise Interrupted("Interrupted before anything was moved.", number_of(error)) from None

    with progress.progress_line(prepared, quiet=as_json, repeats=repeat) as line:
        update = None if line is None else line.update
        ask = None if not sys.stdin.isatty() else prompts.ask if line is None else line.ask
        finished: runner.Run | repeating.Repeats
        if repeat == 1:
            finished = runner.execute(prepared, out=out, progress=update, ask=ask)
        else:
            finished = repeating.repeat(prepared, repeat, out=out, progress=update, ask=ask)
    try:
        if as_json:
            print(json.dumps({"run": str(finished.directory), **finished.summary}, indent=2))
        elif isinstance(finished, runner.Run):
            run_tables.show_run(finished.summary, finished.directory)
        else:
            run_tables.show_repeats(finished.summary, finished.directory)
        if not as_json:
            plan_tables.show_reading(prepared.scenario.trajectory)
        # What reads it may be slow.
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        complete = f"The run is complete; only printing its result was interrupted. It is in {finished.directory}"
        raise Interrupted(complete, number_of(error)) from None
    return 1 if finished.summary["passed"] is False else 0


def check(scenario: str, *, as_json: bool, **flags: Any) -> int:
    """Plan and check a scenario, and show how close to the limits it comes; returns the exit status, 0."""
    prepared = _prepare(scenario, **flags)
    if as_json:
        print(json.dumps(check_facts(prepared), indent=2))
    else:
        plan_tables.show_check(prepared)
    return 0


def inspect(file: str, *, robot: str, out: str | None, as_json: bool, **flags: Any) -> int:
    """Measure a trajectory, show its figures, and draw it if asked; returns the exit status, 0."""
    from simbridge.report.inspection_figure import draw  # matplotlib

    options = read_options({**flags, "topic": _topic(file, flags["topic"], flags["frames"])})
    arm = load_robot(robot, **options.links)
    # Nothing is going to move: poses in a foreign frame may be looked at as they are.
    scenario = load_scenario(file, arm, options.reading, any_frame=True)
    solver = chosen_solver(scenario, arm)
    facts, attained = measure(scenario.trajectory, solver)
    if facts.reach is not None and facts.reach.share == 0.0 and facts.read_as:
        placement = nearest_placement(arm, scenario, solver, options)
        facts = replace(facts, placement=None if placement is None else tuple(placement.tolist()))
    if as_json:
        print(json.dumps(facts.as_dict(), indent=2))
    else:
        plan_tables.show_inspection(facts)
    if out is not None:
        draw(out, scenario.trajectory, attained, title=scenario.name)
        print(f"Picture: {out}", file=sys.stderr if as_json else sys.stdout)
    return 0


def _topic(given: str, topic: str | None, frames: Sequence[str] | None) -> str | None:
    """The topic of a bag: the one given, or the one the operator chooses when there are several."""
    if topic is not None or frames or not is_bag(given) or not sys.stdin.isatty():
        return topic
    from simbridge.trajectory.bags import pose_topics  # rosbags: only for a bag

    topics = pose_topics(given)
    return prompts.choose("topic", topics) if len(topics) > 1 else None


def export(run: str, *, to: str, as_json: bool) -> int:
    """Write a run in a format for other tools; returns the exit status, 0."""
    from simbridge.evaluation.evaluation import Evaluation  # metrics: used by this command only
    from simbridge.recording.export import EXPORTERS  # likewise

    if to not in EXPORTERS:
        raise UnknownName("format", to, EXPORTERS)
    evaluation = Evaluation.read(Path(run))
    written = [str(path) for path in EXPORTERS[to](evaluation.directory.path, evaluation.samples)]
    print(json.dumps({"written": written}, indent=2) if as_json else "\n".join(written))
    return 0
