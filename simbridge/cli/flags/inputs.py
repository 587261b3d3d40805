"""The commands that look at what a run is made of: trajectories, robots, scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional

from simbridge.cli.flags.reading import Seven, given, optional


@dataclass
class Inspect:
    """Look at a trajectory: rate, gaps, speeds, extents, reachable share; plan nothing."""

    file: Positional[str]
    """A file of samples (TUM, CSV, ROS bag), a scenario's name, or a script."""
    robot: str = "ur10"
    """The arm that is asked what it can reach."""
    out: Annotated[str | None, given("PICTURE", "none")] = None
    """Draw it: a .png, .svg or .pdf."""
    frame: Literal["base_link", "base"] = "base_link"
    """Frame of the poses: base_link (x forward, ROS) or base (as the pendant shows)."""
    transform: Annotated[Seven | None, optional(7), given("X Y Z QX QY QZ QW", "none")] = None
    """From the frame of a file's poses to base_link: x y z in m, and a quaternion."""
    anchor: Annotated[Literal["start"] | None, optional(1, "start"), given("start", "none")] = None
    """start moves a file's motion so that it begins at the tool's pose at home."""
    topic: Annotated[str | None, given("NAME", "the only one")] = None
    """Topic of a ROS bag; /tf:child for a frame of tf."""
    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass
class Robots:
    """List the robots."""

    json: bool = False
    """Print the result as JSON, for machines."""


@dataclass
class Scenarios:
    """List the scenarios."""

    json: bool = False
    """Print the result as JSON, for machines."""
