"""Writes results.csv of the suite: the figures of results.json, one row a motion and solver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from simbridge.experiments.suite.results import (
    CallTimes,
    LimitShares,
    MotionResult,
    PoseErrors,
    PoseSetResult,
    SuiteResults,
)
from simbridge.files.writing import write_file
from simbridge.json_output import SCHEMA_VERSION
from simbridge.sweeps.results_file import encode_row

# Name of the file in the directory of results.
TABLE = "results.csv"
# Fields of a result that are left out: a path, such as that around the worst moment, is no number.
LEFT_OUT = ("worst",)
# Fields of a result that consist of several figures, each of which has a column: `times_median_s`.
GROUPS: dict[str, type[msgspec.Struct]] = {
    "error": PoseErrors,
    "reference_error": PoseErrors,
    "shares": LimitShares,
    "times": CallTimes,
}


def write_csv(directory: Path, results: SuiteResults) -> None:
    """Write results.csv into a directory: the motions, then the sets of poses.

    The cell of a figure that does not exist is empty. Faults are text: "3 × ValueError; 1 × not a
    number".

    Raises:
        OutputError: The file cannot be written.
    """
    limits = {solver.name: solver.velocity_limits for solver in results.solvers}
    # Motions and sets of poses share some columns, which are listed once.
    repeated_columns = [*columns_of(MotionResult), *columns_of(PoseSetResult)]
    columns = list(dict.fromkeys(["velocity_limits", *repeated_columns]))

    results_in_order: list[MotionResult | PoseSetResult]
    results_in_order = [*results.motion_results, *results.pose_results]
    lines = [encode_row(["schema_version", *columns])]
    for result in results_in_order:
        row = flatten(result)
        row["velocity_limits"] = limits[result.solver]
        lines.append(encode_row([SCHEMA_VERSION, *(row.get(name, "") for name in columns)]))
    write_file(directory / TABLE, b"".join(lines), follow_links=False)


def columns_of(kind: type[msgspec.Struct]) -> list[str]:
    """Return the names of the columns for a kind of results."""
    columns = []
    for name in kind.__struct_fields__:
        if name in GROUPS:
            columns += [f"{name}_{part}" for part in GROUPS[name].__struct_fields__]
        elif name not in LEFT_OUT:
            columns.append(name)
    return columns


def flatten(result: MotionResult | PoseSetResult) -> dict[str, Any]:
    """Return the figures that a result has, by column."""
    row: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(result).items():
        if name == "faults":
            row[name] = "; ".join(f"{fault['count']} × {fault['kind']}" for fault in value)
        elif name in GROUPS and value is not None:
            row |= {f"{name}_{part}": number for part, number in value.items()}
        else:
            row[name] = value
    return {name: value for name, value in row.items() if value is not None}
