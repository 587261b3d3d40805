"""The commands that work on finished runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, UseAppendAction, arg

from simbridge.cli.flags.reading import given


@dataclass
class Export:
    """Write a run in a format for other tools, into its directory."""

    run: Positional[str]
    """The run directory."""
    to: Literal["csv", "tum", "mcap", "bag"]
    """csv: samples.csv; tum: reference.tum, target.tum, setpoint.tum and attained.tum; mcap: samples.mcap; bag:
    rosbag2/, a ROS 2 bag."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass
class Report:
    """Write a run's report.html and replay.html (the arm in 3D) anew from what it recorded; exit status as of `run`."""

    run: Positional[str]
    """The run directory."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass
class Compare:
    """Lay two or more runs of one scenario over each other: a table, and compare.html."""

    runs: Positional[tuple[str, ...]]
    """Run directories; one made by --repeat stands for its runs."""
    out: Annotated[str | None, given("DIR", "one under runs/")] = None
    """Where compare.html is written."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass
class Evaluate:
    """Measure a run against an outside recording (laser tracker, motion capture); writes its evaluation.json."""

    run: Positional[str]
    """The run directory; of one made by --repeat, all runs are measured together, ISO 9283-style."""
    attained: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="FILE")]
    """What was recorded, in any frame, on any clock: a file of samples as for `run`. Of repeats one recording of all
    runs, or, given several times, one for each run that completed."""
    topic: Annotated[str | None, given("NAME", "the only one")] = None
    """Of a bag: the topic with the poses."""
    marker: bool = False
    """The recording looks at a point beside the TCP: find it (the tool must turn)."""
    json: bool = False
    """Print the result as JSON, for machines."""
