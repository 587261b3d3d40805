"""Results in the terminal, in degrees and millimetres."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.evaluation.metrics.delays import PosePart
from simbridge.evaluation.metrics.summary import part_delays, turns_otherwise
from simbridge.text import degrees, millimetres, milliseconds, significant

if TYPE_CHECKING:
    from simbridge.running.preparation import Prepared
    from simbridge.running.runner import Run

_LINES = {
    "sampling_error": "sampling",
    "solver_error": "solver",
    "limiter_error": "limiter",
    "plant_error": "plant",
    "tracking_error": "tracking",
    "delay_compensated": "tracking, delay removed",
}


def show_run(run: Run) -> None:
    """The answer first, then where it comes from, then where to look."""
    console = Console(highlight=False)
    summary = run.summary
    if not summary["samples"]:
        console.print(f"No sample was recorded. The run is in {run.directory}", markup=False)
        return
    error = summary["tracking_error"]
    console.print(
        f"[bold]{escape(summary['robot'])} tracked {escape(summary['scenario'])} to "
        f"{millimetres(error['position_m']['rms'])} mm and {degrees(error['rotation_rad']['rms'])} degrees RMS[/bold]",
        soft_wrap=True,
    )
    console.print(
        f"at most {millimetres(error['position_m']['max'])} mm and {degrees(error['rotation_rad']['max'])} degrees\n",
        soft_wrap=True,
    )
    console.print(_budget_table(summary, narrow=console.width < 72))
    _print_delays(console, summary)
    _print_path(console, summary)
    _print_relative(console, summary)
    for note in summary["solver_notes"]:
        console.print(note, soft_wrap=True, markup=False)
    if summary["limited_samples"]:
        console.print(f"The limiter changed {summary['limited_samples']} of {summary['samples']} setpoints.")
    _print_time(console, summary)
    if summary["saturated_samples"]:
        console.print(
            f"A joint torque was at its limit in {summary['saturated_samples']} of {summary['samples']} samples."
        )
    if summary["passed"] is not None:
        console.print(
            "[green]Within the tolerance.[/green]" if summary["passed"] else "[red]Beyond the tolerance.[/red]"
        )
    console.print(f"Run:    {run.directory}", soft_wrap=True, markup=False)
    console.print(f"Report: {run.directory / 'report.html'}", soft_wrap=True, markup=False)


def _print_time(console: Console, summary: Mapping[str, Any]) -> None:
    """What became of time: stretched by the plan, scaled by the controller, and how the loop kept it."""
    stretched, loop = summary["duration_s"] - summary["trajectory_duration_s"], summary["loop"]
    if stretched > max(summary["period_s"], 0.005):
        why = "For the tool's speed" if loop is None else "With the plan's, the controller's and the network's pauses"
        console.print(
            f"{why}, {summary['trajectory_duration_s']:.2f} s of trajectory took {summary['duration_s']:.2f} s."
        )
    if loop is None:
        return
    scaling = summary["speed_scaling"]
    if scaling["min"] < 1.0:
        console.print(
            f"The controller's speed scaling was {scaling['mean']:.0%} on average, {scaling['min']:.0%} at least."
        )
    times = (milliseconds(loop[name]) for name in ("period_mean_s", "period_std_s", "period_p999_s", "period_max_s"))
    mean, deviation, p999, longest = times
    console.print(
        f"Loop: {mean} ms, deviation {deviation}, p99.9 {p999}, longest {longest} ms; missed: "
        f"{loop['missed_deadlines']} deadlines, {loop['missed_states']} states."
    )


def _budget_table(summary: Mapping[str, Any], *, narrow: bool) -> Table:
    """In a narrow terminal only the columns that fit: a number that is cut is no number."""
    table = Table(title=None, box=None, pad_edge=False)
    table.add_column("error")
    positions, rotations = (("rms", "max"), ("rms",)) if narrow else (("rms", "p95", "max"), ("rms", "max"))
    titles = {"rms": "RMS", "p95": "p95", "max": "max"}
    for column in [f"{titles[k]} mm" for k in positions] + [f"{titles[k]} deg" for k in rotations]:
        table.add_column(column, justify="right", no_wrap=True)
    for key, name in _LINES.items():
        if summary[key] is None:
            continue
        position, rotation = summary[key]["position_m"], summary[key]["rotation_rad"]
        table.add_row(
            name.removeprefix("tracking, ") if narrow else name,
            *(millimetres(position[k]) for k in positions),
            *(degrees(rotation[k]) for k in rotations),
            style="bold" if key == "tracking_error" else None,
        )
    return table


def _print_delays(console: Console, summary: Mapping[str, Any]) -> None:
    """Of the position, and of the rotation if that is another; of the rotation alone where the tool only turns."""
    console.print()
    if summary["delay_of"] == "position":
        _print_part(console, summary, "position")
    if summary["delay_of"] == "rotation" or turns_otherwise(summary):
        _print_part(console, summary, "rotation")


def _print_part(console: Console, summary: Mapping[str, Any], part: PosePart) -> None:
    delays = part_delays(summary, part)
    named = delays._asdict()
    if part == "position":
        named["predicted lag"] = summary["predicted_lag_s"]
    known = [f"{name} {milliseconds(late)}" for name, late in named.items() if late is not None]
    if known:
        console.print(f"Delay in {part}: {', '.join(known)} ms.")
    if delays.total == 0.0:
        console.print(f"No shift in time makes the error of the {part} smaller: its delay counts as 0.")


def _print_path(console: Console, summary: Mapping[str, Any]) -> None:
    """The path, time aside, and how smoothly it was gone."""
    off, lag = summary["contour_error"]["position_m"], summary["along_path_lag"]["length_m"]
    behind = "behind" if lag["mean"] >= 0.0 else "ahead"
    console.print(
        f"Path, time aside: off by {millimetres(off['rms'])} mm RMS, {millimetres(off['max'])} at most; "
        f"{millimetres(abs(lag['mean']))} mm {behind}."
    )
    tool, joints = summary["smoothness"]["tool"], summary["smoothness"]["joints"]
    if tool["sparc"] is None:
        return
    moving = [value for value in joints["sparc"] if value is not None]
    of_joints = f", joints {significant(min(moving))} to {significant(max(moving))}" if moving else ""
    console.print(
        f"Smoothness: SPARC of the tool {significant(tool['sparc'])}{of_joints}; LDLJ {significant(tool['ldlj'])}."
    )


def _print_relative(console: Console, summary: Mapping[str, Any]) -> None:
    """How far the motion strays within a second; of the absolute pose error the RMSE is the tracking error's RMS."""
    relative = summary["relative_pose_error"]
    if relative is not None:
        console.print(
            f"Relative pose error over {significant(relative['delta_s'])} s: "
            f"{millimetres(relative['position_m']['rmse'])} mm, {degrees(relative['rotation_rad']['rmse'])} degrees "
            f"RMSE."
        )


def check_facts(prepared: Prepared) -> dict[str, Any]:
    """What `simbridge check --json` prints (SI units)."""
    plan, peaks, robot = prepared.plan, prepared.peaks, prepared.robot
    clearance = peaks.clearance
    return {
        "scenario": prepared.scenario.name,
        "robot": robot.name,
        "solver": prepared.solver.name,
        "period_s": plan.period,
        "samples": plan.samples,
        "duration_s": plan.duration,
        "trajectory_duration_s": float(plan.trajectory_times[-1]),
        "limited_samples": int(plan.limited.sum()),
        "predicted_lag_s": prepared.solver.lag(plan.period),
        "solver_notes": list(prepared.solver_notes),
        "peak_joint_velocity": peaks.velocity.tolist(),
        "peak_velocity_jump": peaks.velocity_jump.tolist(),
        "peak_tool_speed": peaks.tool_speed,
        "clearance": None
        if clearance is None
        else {"distance_m": clearance.distance, "bodies": list(clearance.bodies)},
    }


def show_check(prepared: Prepared) -> None:
    """How close to its limits a plan comes."""
    console = Console(highlight=False)
    plan, peaks, robot = prepared.plan, prepared.peaks, prepared.robot
    console.print(
        f"[bold]The plan passed[/bold]: {escape(prepared.scenario.name)} on {escape(robot.name)}, {plan.samples} "
        f"samples of {plan.period * 1e3:g} ms, {plan.duration:.2f} s. Nothing has moved."
    )
    table = Table(box=None, pad_edge=False)
    for name in ("joint", "from deg", "to deg", "peak deg/s", "of limit", "jump deg/s"):
        table.add_column(name, justify="left" if name == "joint" else "right")
    for i, name in enumerate(robot.joint_names):
        table.add_row(
            name,
            f"{math.degrees(plan.setpoints[:, i].min()):.1f}",
            f"{math.degrees(plan.setpoints[:, i].max()):.1f}",
            f"{math.degrees(peaks.velocity[i]):.1f}",
            f"{100.0 * peaks.velocity[i] / robot.max_velocity[i]:.0f} %",
            f"{math.degrees(peaks.velocity_jump[i]):.1f}",
        )
    console.print(table)
    console.print(f"Tool speed: at most {peaks.tool_speed:.3f} m/s.")
    if peaks.clearance is None:
        console.print("Clearance: not checked, for this robot has no shapes.")
    else:
        first, second = peaks.clearance.bodies
        console.print(f"Clearance: {peaks.clearance.distance * 1e3:.0f} mm at the least seen, {first} to {second}.")
    lag = prepared.solver.lag(plan.period)
    if lag is not None:
        console.print(f"Predicted lag of the solver: {lag * 1e3:.3g} ms.")
    for note in prepared.solver_notes:
        console.print(note, soft_wrap=True, markup=False)
    if plan.duration - plan.trajectory_times[-1] > plan.period:
        console.print(
            f"For the tool's speed, {plan.trajectory_times[-1]:.2f} s of trajectory will take {plan.duration:.2f} s."
        )
    if plan.limited.any():
        console.print(f"The limiter changed {int(plan.limited.sum())} setpoints.")
