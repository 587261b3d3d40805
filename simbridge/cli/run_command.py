"""The commands `simbridge run` and `check`: a plan is made, and carried out or only shown.

Their arguments are the flags in `cli/flags.py`. Nothing here imports the metrics of runs: a run may
be refused.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape

from simbridge.backends import SIMULATION, replacement_note
from simbridge.cli import terminal
from simbridge.cli.flags import CheckFlags, PlanFlags, RunFlags
from simbridge.cli.option_flags import options_from_flags
from simbridge.cli.progress_line import ProgressLine, progress_line
from simbridge.console import Terminal
from simbridge.errors import Interrupted
from simbridge.json_output import print_json
from simbridge.planning.options import Options
from simbridge.planning.plan import is_slowed_down, slow_down_reason
from simbridge.planning.scenario import Scenario
from simbridge.recording.kinematics_record import describe_kinematics
from simbridge.recording.servo_description import extrapolated_gain
from simbridge.robot.load import load_robot
from simbridge.running.run_setup import Prepared, check_facts, prepare
from simbridge.running.signals import signal_number
from simbridge.servo.extrapolation import describe_extrapolation
from simbridge.sessions.recorded_session import RecordedSession
from simbridge.text import counted, fixed, make_table, milliseconds
from simbridge.trajectory.files import is_bag, pose_topics


def run(flags: RunFlags) -> int:
    """Run a scenario, and show its progress and its result.

    Returns:
        The exit status: 0, or 1 when the run missed its tolerance.
    """
    try:
        prepared = _prepare(flags, flags.backend)
        # Metrics: not for a run that is refused.
        from simbridge.cli import run_tables  # noqa: PLC0415
        from simbridge.running import repeating, runner  # noqa: PLC0415 (likewise)
    except KeyboardInterrupt as error:
        raise Interrupted("Interrupted before anything was moved.", signal_number(error)) from None

    finished: runner.Run | repeating.Repeats
    with progress_line(prepared, quiet=flags.as_json, repeats=flags.repeat) as line:
        update = None if line is None else line.update
        ask = _operator(line)
        if flags.repeat == 1:
            finished = runner.execute(prepared, out=flags.out, progress=update, ask=ask)
        else:
            finished = repeating.repeat(
                prepared, flags.repeat, out=flags.out, progress=update, ask=ask
            )

    try:
        if flags.as_json:
            print_json({"run": str(finished.directory), **finished.summary})
        else:
            if isinstance(finished, runner.Run):
                run_tables.show_run(finished.summary, finished.directory, verbose=flags.verbose)
            else:
                run_tables.show_repeats(finished.summary, finished.directory)
            _show_reading(prepared.scenario)
            _show_engine(prepared.backend)
        # What reads it may be slow.
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        message = (
            "The run is complete; only printing its result was interrupted. It is in "
            f"{finished.directory}"
        )
        raise Interrupted(message, signal_number(error)) from None
    return 1 if finished.summary["passed"] is False else 0


def check(flags: CheckFlags) -> int:
    """Plan and check a scenario, and show how close to the limits it comes.

    Returns:
        The exit status, 0.
    """
    prepared = _prepare(flags, SIMULATION)
    if flags.as_json:
        print_json(check_facts(prepared))
    else:
        _show_check(prepared, verbose=flags.verbose)
    return 0


def _prepare(flags: PlanFlags, backend: str) -> Prepared:
    """Prepare a run from the flags of a command; a recorded session brings its own arm."""
    options = choose_options(flags.scenario, vars(flags))

    session = RecordedSession.at(flags.scenario)
    if session is not None and not flags.robot:
        arm = session.arm(list(flags.home) or None, options.links)
    else:
        arm = load_robot(
            flags.robot or options.robot,
            home=flags.home or None,
            lengths=flags.link_lengths or None,
            **options.links,
        )

    return prepare(
        flags.scenario,
        robot=arm,
        solver=flags.solver or None,
        solver_changes=flags.solver_settings,
        options=options,
        backend=backend,
    )


def choose_options(scenario: str, flags: Mapping[str, Any]) -> Options:
    """Return the options that flags set; of several topics in a bag the operator chooses one.

    Args:
        scenario: A scenario's name, or a file.
        flags: Values of all flags of the command.
    """
    topic = flags["topic"]
    may_ask = topic is None and not flags["frames"] and is_bag(scenario) and sys.stdin.isatty()
    if may_ask:
        topics = pose_topics(scenario)
        topic = terminal.choose("topic", topics) if len(topics) > 1 else None
    return Options(**options_from_flags({**flags, "topic": topic}, Options))


def _operator(
    line: ProgressLine | None,
) -> Callable[[Sequence[tuple[str, str]], str], bool] | None:
    """Return what asks the operator, if there is one at the terminal."""
    if not sys.stdin.isatty():
        return None
    return terminal.ask if line is None else line.ask


def _show_reading(scenario: Scenario) -> None:
    """Say in one line each how files were read; nothing of what is from no file."""
    for trajectory in filter(None, (scenario.targets, scenario.trajectory)):
        if trajectory.read_as:
            name = Path(trajectory.source).name
            terminal.say(Terminal(), f"{name} was read as {trajectory.read_as}.")


def _show_engine(backend: str) -> None:
    """Say in one line which engine has replaced one that is not installed, if one has."""
    note = replacement_note(backend)
    if note:
        terminal.say(Terminal(), note)


def _show_check(prepared: Prepared, *, verbose: bool) -> None:
    """Show how close to its limits a plan comes; more of what is planned if asked for."""
    console = Terminal()
    plan = prepared.plan
    samples = counted(plan.samples, "sample")
    console.print(
        f"[bold]Check passed[/bold]: {escape(prepared.scenario.name)} on "
        f"{escape(prepared.robot.title or prepared.robot.name)} ({samples}, "
        f"{plan.period * 1e3:g} ms apart, {plan.duration:.2f} s). Nothing has moved."
    )
    _show_reading(prepared.scenario)

    prismatic = prepared.robot.prismatic
    _show_joints(console, prepared, ~prismatic, unit="deg", scale=math.degrees(1.0))
    _show_joints(console, prepared, prismatic, unit="mm", scale=1e3)

    terminal.say(console, f"{_tool_speed_sentence(prepared)} {_clearance_sentence(prepared)}")
    for sentence in _plan_remarks(prepared):
        terminal.say(console, sentence)
    if verbose:
        for sentence in _plan_sentences(prepared):
            terminal.say(console, sentence)


def _show_joints(
    console: Terminal, prepared: Prepared, joints: NDArray[np.bool_], *, unit: str, scale: float
) -> None:
    """Show a table of joints that share a unit; nothing if there are none.

    Args:
        console: The console that it is printed on.
        prepared: The plan and its peaks.
        joints: Which joints (n,).
        unit: Unit of their positions.
        scale: The unit's number in an SI unit.
    """
    robot = prepared.robot
    setpoints = prepared.plan.setpoints
    peaks = prepared.peaks
    rows = []
    for joint in np.flatnonzero(joints):
        velocity_fraction = peaks.velocity[joint] / robot.max_velocity[joint]
        rows.append(
            (
                robot.joint_names[joint],
                fixed(scale * setpoints[:, joint].min(), 1),
                fixed(scale * setpoints[:, joint].max(), 1),
                fixed(scale * peaks.velocity[joint], 1),
                f"{100.0 * velocity_fraction:.0f} %",
                fixed(scale * peaks.velocity_jump[joint], 1),
            )
        )

    columns = (
        "joint",
        f"from {unit}",
        f"to {unit}",
        f"peak {unit}/s",
        "of limit",
        f"jump {unit}/s",
    )
    if rows:
        console.print(make_table(columns, rows))


def _tool_speed_sentence(prepared: Prepared) -> str:
    return f"Tool speed: at most {prepared.peaks.tool_speed:.3f} m/s."


def _clearance_sentence(prepared: Prepared) -> str:
    clearance = prepared.peaks.clearance
    if clearance is None:
        return "Clearance: not checked (this robot has no collision shapes)."
    first, second = clearance.bodies
    return f"Smallest clearance: {clearance.distance * 1e3:.0f} mm, {first} to {second}."


def _plan_remarks(prepared: Prepared) -> Iterator[str]:
    """Yield sentences on what a user must know: servo, kinematics, solver, slow-down, limiter."""
    plan = prepared.plan
    backend = prepared.backend_record
    gain = extrapolated_gain(backend)
    if gain is not None:
        yield describe_extrapolation([gain])
    for note in prepared.plant_notes:
        yield f"Note: {note}"
    kinematics = describe_kinematics(prepared.kinematics)
    if kinematics != "nominal":
        yield f"Kinematics: {kinematics}."
    yield from prepared.solver_notes

    planned = float(plan.trajectory_times[-1])
    if is_slowed_down(plan.duration, planned, plan.period):
        has_feedforward = prepared.peaks.command_lead is not None
        reason = slow_down_reason(has_feedforward)
        yield f"Slowed down {reason}: {planned:.2f} s of trajectory take {plan.duration:.2f} s."
    if plan.limited.any():
        yield f"The limiter changed {counted(int(plan.limited.sum()), 'setpoint')}."


def _plan_sentences(prepared: Prepared) -> Iterator[str]:
    """Yield sentences on what follows the commands, and on the solver's lag."""
    yield f"{prepared.plant_model[:1].upper()}{prepared.plant_model[1:]}."
    command_lead = prepared.peaks.command_lead
    if command_lead is not None:
        yield f"Feedforward: commands lead the arm by at most {command_lead:.3f} rad."

    lag = prepared.solver.lag(prepared.plan.period)
    if lag is not None:
        yield f"Predicted lag of the solver: {milliseconds(lag)} ms."
