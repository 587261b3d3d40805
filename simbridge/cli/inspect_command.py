"""The command `simbridge inspect`: the figures of a trajectory, and whether an arm reaches it."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

from rich.markup import escape
from rich.table import Table

from simbridge.cli import terminal
from simbridge.cli.flags import InspectFlags
from simbridge.cli.run_command import choose_options
from simbridge.console import Terminal
from simbridge.json_output import print_json
from simbridge.planning.inspection import Spread, TrajectoryFacts
from simbridge.planning.inspection import inspect as measure
from simbridge.planning.placement import PLACEMENT_IS_A_GUESS, flag_of
from simbridge.planning.planner import nearest_placement
from simbridge.planning.reach import Reach
from simbridge.planning.scenario import load_scenario
from simbridge.quoting import quoted
from simbridge.robot.load import load_robot
from simbridge.running.arm_and_solver import choose_solver
from simbridge.text import counted, fixed, milliseconds, significant
from simbridge.trajectory.gaps import named


def inspect(flags: InspectFlags) -> int:
    """Measure a trajectory, show its figures, and draw it if asked.

    Returns:
        The exit status, 0.
    """
    options = choose_options(flags.file, vars(flags))
    arm = load_robot(flags.robot, **options.links)
    # Nothing is going to move: poses in a foreign frame may be looked at as they are.
    scenario = load_scenario(flags.file, arm, options.reading, any_frame=True)
    solver = choose_solver(scenario, arm)
    facts, attained = measure(scenario.trajectory, solver)
    facts = replace(facts, unknown_frame=scenario.unknown_frame, frame_flags=scenario.frame_flags)

    # Where nothing of a file is in reach, its poses may belong elsewhere: suggest a placement.
    # `read_as` is "" for a scenario that is read from no file.
    if facts.reach is not None and facts.reach.share == 0.0 and facts.read_as:
        placement = nearest_placement(arm, scenario, solver, options)
        facts = replace(facts, placement=None if placement is None else tuple(placement.tolist()))

    if flags.as_json:
        print_json(facts.as_dict())
    else:
        _show(facts, gaps_are_treated=options.gaps is not None, verbose=flags.verbose)

    if flags.out is not None:
        from simbridge.report.figure_files import draw_trajectory  # noqa: PLC0415 (matplotlib)

        draw_trajectory(flags.out, scenario.trajectory, attained, title=scenario.name)
        print(f"Picture: {flags.out}", file=sys.stderr if flags.as_json else sys.stdout)
    return 0


def _show(facts: TrajectoryFacts, *, gaps_are_treated: bool, verbose: bool) -> None:
    """Show the facts of a trajectory, one per line, within 80 columns."""
    console = Terminal()
    console.print(f"[bold]{escape(facts.source)}[/bold]", soft_wrap=True)
    if facts.read_as:
        terminal.say(console, f"Read as {facts.read_as}.")

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("fact", no_wrap=True)
    table.add_column("value")
    for name, value in _rows(facts, gaps_are_treated=gaps_are_treated, verbose=verbose):
        table.add_row(name, value)
    console.print(table)

    if facts.placement is not None:
        # On a line of its own, to be copied.
        console.print(
            f"{PLACEMENT_IS_A_GUESS}\n--transform {flag_of(facts.placement)}",
            soft_wrap=True,
        )


def _rows(
    facts: TrajectoryFacts, *, gaps_are_treated: bool, verbose: bool
) -> list[tuple[str, str]]:
    """Return the facts as pairs of a name and a text with its unit.

    Args:
        facts: Facts of the trajectory.
        gaps_are_treated: Whether --gaps says what becomes of gaps that are otherwise refused.
        verbose: Whether all of a spread is shown, not its maximum alone.
    """
    rows = [("samples", f"{facts.samples} over {significant(facts.duration_s, 4)} s")]
    if facts.unknown_frame:
        rows.append(("frame", _unknown_frame(facts)))

    # Steps in time and in space.
    if facts.rate_hz is not None:
        rows.append(("rate", _rate(facts, facts.rate_hz)))
        rows.append(("gaps", _gaps(facts, gaps_are_treated=gaps_are_treated)))
        rows.append(("jumps", named(facts.jumps, "jump") if facts.jumps else "none"))

    # Length, speeds and extent.
    rows.append(("length", f"{significant(facts.length_m, 4)} m"))
    if facts.speed_m_s is not None:
        rows.append(("speed", f"{_spread(facts.speed_m_s, 1.0, verbose=verbose)} m/s"))
    if facts.turn_rate_rad_s is not None:
        turning = _spread(facts.turn_rate_rad_s, 180.0 / math.pi, verbose=verbose)
        rows.append(("turning", f"{turning} degrees/s"))
    extents = []
    for axis, low, high in zip("xyz", facts.extent_min_m, facts.extent_max_m, strict=True):
        extents.append(f"{axis} {fixed(low, 4)} to {fixed(high, 4)}")
    rows.append(("extent", f"{', '.join(extents)} m"))

    if facts.reach is not None:
        condition = ""
        if facts.unknown_frame:
            condition = f"if {escape(quoted(facts.unknown_frame))} were base_link: "
        rows.append(("reachable", condition + _reachable(facts.reach, facts.samples)))
    return rows


def _unknown_frame(facts: TrajectoryFacts) -> str:
    """Say that nothing relates the frame of the poses to the arm, and which flags do."""
    flags = [*map(escape, facts.frame_flags), "--transform", "--anchor"]
    return (
        f"{escape(quoted(facts.unknown_frame))}: its placement relative to base_link is unknown; "
        f"run and check refuse it without {', '.join(flags[:-1])} or {flags[-1]}"
    )


def _rate(facts: TrajectoryFacts, rate: float) -> str:
    """Say how often samples come, and how steadily.

    Args:
        facts: Facts of the trajectory.
        rate: Samples per second, Hz.
    """
    text = f"{significant(rate, 4)} Hz"
    if facts.step_std_s is not None:
        text += f", jitter {milliseconds(facts.step_std_s)} ms"
    return text


def _gaps(facts: TrajectoryFacts, *, gaps_are_treated: bool) -> str:
    """Say how many gaps there are, where the longest is, and whether a run refuses them."""
    if not facts.gaps:
        return "none"
    longest = milliseconds(facts.longest_gap_s)
    begin = significant(facts.longest_gap_at_s, 4)
    text = f"{counted(facts.gaps, 'gap')}, the longest {longest} ms, after {begin} s"
    if facts.large_gaps and not gaps_are_treated:
        text += "; run and check refuse it without --gaps"
    return text


def _reachable(reach: Reach, samples: int) -> str:
    """Say how many of the samples the arm reaches, and which is the first that it does not."""
    checked = "all" if reach.solved >= samples else f"{reach.solved}"
    text = f"{100.0 * reach.share:.3g} % of the samples by {reach.robot} ({checked} checked)"
    if reach.first_missed is not None:
        time = significant(reach.first_missed_s, 4)
        text += f"; first not reached: sample {reach.first_missed} at {time} s"
    return text


def _spread(spread: Spread, factor: float, *, verbose: bool) -> str:
    """Return mean and maximum as text, in a unit.

    Args:
        spread: In the SI unit.
        factor: The unit's number in the SI unit.
        verbose: Whether the 95th percentile is shown, too.
    """
    mean = significant(factor * spread.mean)
    largest = significant(factor * spread.max)
    p95 = f"p95 {significant(factor * spread.p95)}, " if verbose else ""
    return f"mean {mean}, {p95}max {largest}"
