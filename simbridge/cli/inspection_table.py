"""The facts of a trajectory as a table for the terminal. Degrees and millimetres are for here only."""

from __future__ import annotations

import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simbridge.planning.inspection import Facts, Spread
from simbridge.text import counted, milliseconds, significant


def show(facts: Facts) -> None:
    """Print a line a fact, within 80 columns."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(facts.source)}[/bold]", soft_wrap=True)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("fact", no_wrap=True)
    table.add_column("value")
    for name, value in _rows(facts):
        table.add_row(name, value)
    console.print(table)


def _rows(facts: Facts) -> list[tuple[str, str]]:
    rows = [("samples", f"{facts.samples} over {significant(facts.duration_s, 4)} s")]
    if facts.rate_hz is not None:
        steady = f", steps deviate by {milliseconds(facts.step_std_s)} ms" if facts.step_std_s is not None else ""
        rows.append(("rate", f"{significant(facts.rate_hz, 4)} Hz{steady}"))
        at = f"the longest {milliseconds(facts.longest_gap_s)} ms, after {significant(facts.longest_gap_at_s, 4)} s"
        rows.append(("gaps", f"{counted(facts.gaps, 'gap')}, {at}" if facts.gaps else "none"))
    rows.append(("length", f"{significant(facts.length_m, 4)} m"))
    if facts.speed_m_s is not None:
        rows.append(("speed", f"{_spread(facts.speed_m_s, 1.0)} m/s"))
    if facts.turn_rate_rad_s is not None:
        rows.append(("turning", f"{_spread(facts.turn_rate_rad_s, 180.0 / math.pi)} degrees/s"))
    for axis, low, high in zip("xyz", facts.extent_min_m, facts.extent_max_m, strict=True):
        rows.append((axis, f"{low:.4f} to {high:.4f} m"))
    reach = facts.reach
    if reach is not None:
        of = f"{reach.solved} of them tried" if reach.solved < facts.samples else "each of them tried"
        first = ""
        if reach.first_missed is not None:
            first = f"; the first missed is sample {reach.first_missed} at {significant(reach.first_missed_s, 4)} s"
        rows.append(("reachable", f"{100.0 * reach.share:.3g} % of the samples by {reach.robot}, {of}{first}"))
    return rows


def _spread(spread: Spread, factor: float) -> str:
    mean, p95, largest = (significant(factor * value) for value in (spread.mean, spread.p95, spread.max))
    return f"mean {mean}, p95 {p95}, max {largest}"
