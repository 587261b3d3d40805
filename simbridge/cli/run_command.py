"""The commands `simbridge run`, `check`, `inspect` and `export`, and what they show of plans and trajectories.

Their arguments are the flags in `cli/flags.py`. Nothing here imports the metrics of runs: a run may be refused.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from simbridge.backends import SIMULATION
from simbridge.cli import terminal
from simbridge.cli.option_flags import options_from_flags
from simbridge.console import Terminal
from simbridge.errors import Interrupted, UnknownName
from simbridge.planning.inspection import Facts, Spread
from simbridge.planning.inspection import inspect as measure
from simbridge.planning.options import Options
from simbridge.planning.placement import flag_of
from simbridge.planning.plan import is_slowed_down, slow_down_reason
from simbridge.planning.planner import nearest_placement
from simbridge.planning.scenario import load_scenario
from simbridge.recording.kinematics_record import kinematics_words
from simbridge.robot.load import load_robot
from simbridge.running.run_setup import Prepared, check_facts, chosen_solver, prepare
from simbridge.running.signals import number_of
from simbridge.sessions.recorded_session import RecordedSession
from simbridge.text import counted, fixed, milliseconds, significant, table_of
from simbridge.trajectory.files import is_bag, pose_topics
from simbridge.trajectory.samples import named
from simbridge.trajectory.trajectory import Trajectory


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
    options = _options(scenario, flags)
    session = RecordedSession.at(scenario)
    if session is not None and not robot:
        arm = session.arm(list(home) or None, options.links)
    else:
        arm = load_robot(
            robot or options.robot, home=home or None, lengths=link_lengths or None, **options.links
        )
    return prepare(
        scenario,
        robot=arm,
        solver_name=solver,
        solver_changes=solver_settings,
        options=options,
        backend=backend,
    )


def _options(scenario: str, flags: Mapping[str, Any]) -> Options:
    """The options that flags stand for; of several topics in a bag the operator chooses one."""
    topic = flags["topic"]
    if topic is None and not flags["frames"] and is_bag(scenario) and sys.stdin.isatty():
        topics = pose_topics(scenario)
        topic = terminal.choose("topic", topics) if len(topics) > 1 else None
    return Options(**options_from_flags({**flags, "topic": topic}, Options))


def run(
    scenario: str, *, out: str | None, repeat: int, as_json: bool, backend: str, **flags: Any
) -> int:
    """Run a scenario, show its progress and its result; returns 0, or 1 when the run missed its tolerance."""
    try:
        prepared = _prepare(scenario, backend=backend, **flags)
        # Metrics: not for a run that is refused.
        from simbridge.cli import run_tables  # noqa: PLC0415
        from simbridge.running import repeating, runner  # noqa: PLC0415 (likewise)
    except KeyboardInterrupt as error:
        raise Interrupted("Interrupted before anything was moved.", number_of(error)) from None

    with terminal.progress_line(prepared, quiet=as_json, repeats=repeat) as line:
        update = None if line is None else line.update
        ask = None if not sys.stdin.isatty() else terminal.ask if line is None else line.ask
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
            _show_reading(prepared.scenario.trajectory)
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
        _show_check(prepared)
    return 0


def inspect(file: str, *, robot: str, out: str | None, as_json: bool, **flags: Any) -> int:
    """Measure a trajectory, show its figures, and draw it if asked; returns the exit status, 0."""
    options = _options(file, flags)
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
        _show_inspection(facts, treated=options.gaps is not None)
    if out is not None:
        from simbridge.report.figure_files import draw_trajectory  # noqa: PLC0415 (matplotlib)

        draw_trajectory(out, scenario.trajectory, attained, title=scenario.name)
        print(f"Picture: {out}", file=sys.stderr if as_json else sys.stdout)
    return 0


def export(run: str, *, to: str, as_json: bool) -> int:
    """Write a run in a format for other tools; returns the exit status, 0."""
    # Metrics: used by this command only.
    from simbridge.evaluation.evaluation import Evaluation  # noqa: PLC0415
    from simbridge.recording.export import EXPORTERS  # noqa: PLC0415 (likewise)

    if to not in EXPORTERS:
        raise UnknownName("format", to, EXPORTERS)
    evaluation = Evaluation.read(Path(run))
    written = [str(path) for path in EXPORTERS[to](evaluation.directory.path, evaluation.samples)]
    print(json.dumps({"written": written}, indent=2) if as_json else "\n".join(written))
    return 0


def _show_reading(trajectory: Trajectory) -> None:
    """In one line how a file was read; nothing for what is from no file."""
    if trajectory.read_as:
        terminal.say(
            Terminal(), f"{Path(trajectory.source).name} was read as {trajectory.read_as}."
        )


def _show_check(prepared: Prepared) -> None:
    """How close to its limits a plan comes."""
    console = Terminal()
    plan, peaks, robot = prepared.plan, prepared.peaks, prepared.robot
    console.print(
        f"[bold]The plan passed[/bold]: {escape(prepared.scenario.name)} on {escape(robot.name)}, {plan.samples} "
        f"samples of {plan.period * 1e3:g} ms, {plan.duration:.2f} s. Nothing has moved."
    )
    _show_reading(prepared.scenario.trajectory)
    for unit, scale, joints in (
        ("deg", math.degrees(1.0), ~robot.prismatic),
        ("mm", 1e3, robot.prismatic),
    ):
        rows = [
            (
                robot.joint_names[i],
                fixed(scale * plan.setpoints[:, i].min(), 1),
                fixed(scale * plan.setpoints[:, i].max(), 1),
                fixed(scale * peaks.velocity[i], 1),
                f"{100.0 * peaks.velocity[i] / robot.max_velocity[i]:.0f} %",
                fixed(scale * peaks.velocity_jump[i], 1),
            )
            for i in np.flatnonzero(joints)
        ]
        if rows:
            columns = (
                "joint",
                f"from {unit}",
                f"to {unit}",
                f"peak {unit}/s",
                "of limit",
                f"jump {unit}/s",
            )
            console.print(table_of(columns, rows))
    for sentence in _check_sentences(prepared):
        terminal.say(console, sentence)


def _check_sentences(prepared: Prepared) -> Iterator[str]:
    plan, peaks = prepared.plan, prepared.peaks
    yield f"Tool speed: at most {peaks.tool_speed:.3f} m/s."
    if peaks.clearance is None:
        yield "Clearance: not checked, because this robot has no collision shapes."
    else:
        first, second = peaks.clearance.bodies
        yield f"Smallest clearance: {peaks.clearance.distance * 1e3:.0f} mm, {first} to {second}."
    yield f"{prepared.plant_model[:1].upper()}{prepared.plant_model[1:]}."
    if peaks.command_lead is not None:
        yield f"Feedforward: commands lead the arm by at most {peaks.command_lead:.3f} rad."
    if (kinematics := kinematics_words(prepared.kinematics)) != "nominal":
        yield f"Kinematics: {kinematics}."
    if (lag := prepared.solver.lag(plan.period)) is not None:
        yield f"Predicted lag of the solver: {milliseconds(lag)} ms."
    yield from prepared.solver_notes
    planned = float(plan.trajectory_times[-1])
    if is_slowed_down(plan.duration, planned, plan.period):
        why = slow_down_reason(peaks.command_lead is not None)
        yield f"Slowed down {why}: {planned:.2f} s of trajectory take {plan.duration:.2f} s."
    if plan.limited.any():
        yield f"The limiter changed {int(plan.limited.sum())} setpoints."


def _show_inspection(facts: Facts, *, treated: bool) -> None:
    """The facts of a trajectory, one per line, within 80 columns."""
    console = Terminal()
    console.print(f"[bold]{escape(facts.source)}[/bold]", soft_wrap=True)
    if facts.read_as:
        terminal.say(console, f"Read as {facts.read_as}.")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("fact", no_wrap=True)
    table.add_column("value")
    for name, value in _inspected(facts, treated=treated):
        table.add_row(name, value)
    console.print(table)
    if facts.placement is not None:
        # On a line of its own, to be copied.
        console.print(
            f"The nearest placement in reach:\n--transform {flag_of(facts.placement)}",
            soft_wrap=True,
        )


def _inspected(facts: Facts, *, treated: bool) -> list[tuple[str, str]]:
    rows = [("samples", f"{facts.samples} over {significant(facts.duration_s, 4)} s")]
    if facts.rate_hz is not None:
        steady = (
            f", steps deviate by {milliseconds(facts.step_std_s)} ms"
            if facts.step_std_s is not None
            else ""
        )
        rows.append(("rate", f"{significant(facts.rate_hz, 4)} Hz{steady}"))
        at = f"the longest {milliseconds(facts.longest_gap_s)} ms, after {significant(facts.longest_gap_at_s, 4)} s"
        large = (
            "; run and check refuse it without --gaps" if facts.large_gaps and not treated else ""
        )
        rows.append(
            ("gaps", f"{counted(facts.gaps, 'gap')}, {at}{large}" if facts.gaps else "none")
        )
        rows.append(("jumps", named(facts.jumps, "jump") if facts.jumps else "none"))
    rows.append(("length", f"{significant(facts.length_m, 4)} m"))
    if facts.speed_m_s is not None:
        rows.append(("speed", f"{_spread(facts.speed_m_s, 1.0)} m/s"))
    if facts.turn_rate_rad_s is not None:
        rows.append(("turning", f"{_spread(facts.turn_rate_rad_s, 180.0 / math.pi)} degrees/s"))
    for axis, low, high in zip("xyz", facts.extent_min_m, facts.extent_max_m, strict=True):
        rows.append((axis, f"{fixed(low, 4)} to {fixed(high, 4)} m"))
    reach = facts.reach
    if reach is not None:
        of = (
            f"{reach.solved} of them checked"
            if reach.solved < facts.samples
            else "all of them checked"
        )
        first = ""
        if reach.first_missed is not None:
            first = f"; first not reached: sample {reach.first_missed} at {significant(reach.first_missed_s, 4)} s"
        rows.append(
            (
                "reachable",
                f"{100.0 * reach.share:.3g} % of the samples by {reach.robot}, {of}{first}",
            )
        )
    return rows


def _spread(spread: Spread, factor: float) -> str:
    mean, p95, largest = (
        significant(factor * value) for value in (spread.mean, spread.p95, spread.max)
    )
    return f"mean {mean}, p95 {p95}, max {largest}"
