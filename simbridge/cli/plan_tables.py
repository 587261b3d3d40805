"""Plans and trajectories in the terminal: how close a plan comes to its limits, and the facts of a trajectory.

Degrees and millimetres are used in the terminal and on pages only. Nothing here imports the metrics of runs.
"""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.planning.inspection import Facts, Spread
from simbridge.planning.placement import flag_of
from simbridge.planning.plan import is_slowed_down, slow_down_reason
from simbridge.robot.kinematics_record import kinematics_words
from simbridge.running.run_setup import Prepared
from simbridge.text import counted, fixed, milliseconds, significant, table_of
from simbridge.trajectory.gaps import named
from simbridge.trajectory.trajectory import Trajectory


def show_reading(trajectory: Trajectory) -> None:
    """Say in one line how a file was read; nothing for what is from no file."""
    if trajectory.read_as:
        line = f"{Path(trajectory.source).name} was read as {trajectory.read_as}."
        Console(highlight=False).print(line, soft_wrap=True, markup=False)


def show_check(prepared: Prepared) -> None:
    """Show how close to its limits a plan comes."""
    console = Console(highlight=False)
    plan, peaks, robot = prepared.plan, prepared.peaks, prepared.robot
    console.print(
        f"[bold]The plan passed[/bold]: {escape(prepared.scenario.name)} on {escape(robot.name)}, {plan.samples} "
        f"samples of {plan.period * 1e3:g} ms, {plan.duration:.2f} s. Nothing has moved."
    )
    show_reading(prepared.scenario.trajectory)
    rows = [
        (
            name,
            fixed(math.degrees(plan.setpoints[:, i].min()), 1),
            fixed(math.degrees(plan.setpoints[:, i].max()), 1),
            fixed(math.degrees(peaks.velocity[i]), 1),
            f"{100.0 * peaks.velocity[i] / robot.max_velocity[i]:.0f} %",
            fixed(math.degrees(peaks.velocity_jump[i]), 1),
        )
        for i, name in enumerate(robot.joint_names)
    ]
    console.print(table_of(("joint", "from deg", "to deg", "peak deg/s", "of limit", "jump deg/s"), rows))
    console.print(f"Tool speed: at most {peaks.tool_speed:.3f} m/s.")
    if peaks.clearance is None:
        console.print("Clearance: not checked, because this robot has no collision shapes.")
    else:
        first, second = peaks.clearance.bodies
        console.print(f"Smallest clearance: {peaks.clearance.distance * 1e3:.0f} mm, {first} to {second}.")
    console.print(f"{prepared.plant_model[:1].upper()}{prepared.plant_model[1:]}.", soft_wrap=True, markup=False)
    if peaks.command_lead is not None:
        console.print(f"Feedforward: commands lead the arm by at most {peaks.command_lead:.3f} rad.")
    if (kinematics := kinematics_words(prepared.kinematics)) != "nominal":
        console.print(f"Kinematics: {kinematics}.", soft_wrap=True, markup=False)
    lag = prepared.solver.lag(plan.period)
    if lag is not None:
        console.print(f"Predicted lag of the solver: {milliseconds(lag)} ms.")
    for note in prepared.solver_notes:
        console.print(note, soft_wrap=True, markup=False)
    if is_slowed_down(plan.duration, float(plan.trajectory_times[-1]), plan.period):
        console.print(
            f"Slowed down {slow_down_reason(peaks.command_lead is not None)}: {plan.trajectory_times[-1]:.2f} s of "
            f"trajectory take {plan.duration:.2f} s."
        )
    if plan.limited.any():
        console.print(f"The limiter changed {int(plan.limited.sum())} setpoints.")


def show_inspection(facts: Facts) -> None:
    """Show the facts of a trajectory, one per line, within 80 columns."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(facts.source)}[/bold]", soft_wrap=True)
    if facts.read_as:
        console.print(f"Read as {facts.read_as}.", soft_wrap=True, markup=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("fact", no_wrap=True)
    table.add_column("value")
    for name, value in _inspected(facts):
        table.add_row(name, value)
    console.print(table)
    if facts.placement is not None:
        # On a line of its own, to be copied.
        console.print(f"The nearest placement in reach:\n--transform {flag_of(facts.placement)}", soft_wrap=True)


def _inspected(facts: Facts) -> list[tuple[str, str]]:
    rows = [("samples", f"{facts.samples} over {significant(facts.duration_s, 4)} s")]
    if facts.rate_hz is not None:
        steady = f", steps deviate by {milliseconds(facts.step_std_s)} ms" if facts.step_std_s is not None else ""
        rows.append(("rate", f"{significant(facts.rate_hz, 4)} Hz{steady}"))
        at = f"the longest {milliseconds(facts.longest_gap_s)} ms, after {significant(facts.longest_gap_at_s, 4)} s"
        large = "; run and check refuse it without --gaps" if facts.large_gaps else ""
        rows.append(("gaps", f"{counted(facts.gaps, 'gap')}, {at}{large}" if facts.gaps else "none"))
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
        of = f"{reach.solved} of them checked" if reach.solved < facts.samples else "all of them checked"
        first = ""
        if reach.first_missed is not None:
            first = f"; first not reached: sample {reach.first_missed} at {significant(reach.first_missed_s, 4)} s"
        rows.append(("reachable", f"{100.0 * reach.share:.3g} % of the samples by {reach.robot}, {of}{first}"))
    return rows


def _spread(spread: Spread, factor: float) -> str:
    mean, p95, largest = (significant(factor * value) for value in (spread.mean, spread.p95, spread.max))
    return f"mean {mean}, p95 {p95}, max {largest}"
