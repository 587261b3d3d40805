"""What every page shows of the studio's state, as plain data; and the events that a page sends back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from simbridge.browser.sample import SOURCES, Sample
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres


class Event(NamedTuple):
    """Something that happened in a page.

    Attributes:
        page: Its number.
        name: What happened.
        value: With what.
    """

    page: int
    name: str
    value: Any = None


# Of the curve of a whole run.
_POINTS = 600


class Curve:
    """The errors of the last seconds, by source, and their sum; of bounded size.

    Attributes:
        version: Counts changes.
    """

    def __init__(self, seconds: float = 10.0, rate: float = 25.0) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._seconds, self._apart = seconds, 1.0 / rate
        self.version = 0

    def add(self, time: float, errors: tuple[float, ...], whole: float) -> None:
        """Add an instant, errors in m."""
        if self._rows and time - self._rows[-1][0] < self._apart:
            return
        self._rows.append((time, whole, *errors))
        self.version += 1
        while self._rows[-1][0] - self._rows[0][0] > self._seconds:
            del self._rows[0]

    def clear(self) -> None:
        """Begin anew."""
        self._rows.clear()
        self.version += 1

    @classmethod
    def of(cls, times: Array, errors: Array, whole: Array) -> Curve:
        """That of a whole run: times (T,), s; errors (T, 5) and whole (T,), m."""
        made = cls(seconds=float("inf"), rate=_POINTS / max(float(times[-1]), 1e-9))
        for time, row, error in zip(times.tolist(), errors.tolist(), whole.tolist(), strict=True):
            made.add(time, tuple(row), error)
        return made

    @property
    def largest(self) -> float:
        """A round number above every distance, mm, and 1 at least: a plot's scale that changes rarely."""
        highest = max([1.0, *(1e3 * max(row[1:]) for row in self._rows)])
        decade = 10.0 ** math.floor(math.log10(highest))
        return next(step * decade for step in (1.0, 2.0, 5.0, 10.0) if step * decade >= highest)

    @property
    def columns(self) -> tuple[Array, ...]:
        """Time, s; the whole distance and that of each source, mm."""
        if not self._rows:
            return tuple(np.zeros(1) for _ in range(2 + len(SOURCES)))
        columns = np.array(self._rows).T
        return (columns[0], *(1e3 * columns[1:]))


@dataclass
class Shown:
    """What the pages show besides the scene.

    Attributes:
        sentence: What limits the arm now, or that it is at the goal.
        figures: Name and value, both as text.
        joints: Of each joint name, position and share of its limits, velocity and share, as text.
        problem: By the name of a control, or "" for none of them, what went wrong there.
        iterations: What is left of an iteration's run, as a sentence.
        playing: What is played, as a sentence.
        command: The command line that equals the present state.
        rivals: A row for each solver: name, error, sources; empty for one solver.
    """

    sentence: str = ""
    figures: list[tuple[str, str]] = field(default_factory=list)
    joints: list[tuple[str, ...]] = field(default_factory=list)
    problem: dict[str, str] = field(default_factory=dict)
    iterations: str = ""
    playing: str = ""
    command: str = ""
    rivals: list[tuple[str, ...]] = field(default_factory=list)


def sentence_of(sample: Sample, error: str, reach: float, task: str) -> str:
    """What limits the arm now.

    Args:
        sample: Of now.
        error: What stopped it, "" if nothing.
        reach: By how much the goal is out of reach, m.
        task: Of the solver.
    """
    if error:
        return error
    words = []
    if reach > 0.0:
        words.append(f"The goal is {millimetres(reach)} mm out of reach.")
    for name, _, facts in (cause.partition(" ") for cause in sample.causes):
        words.append(f"{_CAUSES.get(name, name)}{': ' * bool(facts)}{facts}.")
    if not words and sample.distance < _THERE[0] and sample.angle < _THERE[1]:
        words = ["The arm is at the goal."]
    elif not words:
        turn = f" and {degrees(sample.angle)}°" if task != "position" else ""
        words = [f"The arm is on its way: {millimetres(sample.distance)} mm{turn} are left. Nothing limits it."]
    return " ".join(words)


# At the goal, m and rad.
_THERE = (1e-4, 1e-3)
_CAUSES = {
    "joint_velocity": "A joint is at its velocity limit",
    "joint_range": "A joint is at the end of its range",
    "tool_speed": "The tool is at its largest speed",
    "singularity": "The arm is slowed near a singularity",
    "obstacle": "The arm is slowed near an obstacle",
    "self_collision": "The arm is slowed near itself",
    "reach": "The goal is out of reach",
    "speed_slider": "The speed is scaled down",
    "stale": "No goal has come for a while",
}


def figures_of(
    sample: Sample,
    dexterity: tuple[float, float] | None = None,
    iterations: int | None = None,
    delay: float | None = None,
) -> list[tuple[str, str]]:
    """Figures of an instant as text."""
    rows = [(f"error, {name}", f"{millimetres(value)} mm") for name, value in zip(SOURCES, sample.errors, strict=True)]
    if dexterity is not None:
        rows += zip(("condition number", "manipulability"), (f"{value:.3g}" for value in dexterity), strict=True)
    if iterations is not None:
        rows.append(("iterations a period", str(iterations)))
    if delay is not None:
        rows.append(("servo delay", f"{1e3 * delay:.0f} ms"))
    return rows


def joints_of(robot: Robot, sample: Sample) -> list[tuple[str, ...]]:
    """Of each joint its name, position and share of its range, velocity and share of its limit, as text."""
    place, velocity = shares_of_limits(robot, sample)
    return [
        (name, f"{np.degrees(q):.1f}°", f"{100.0 * of_range:.0f} %", f"{qd:.3f} rad/s", f"{100.0 * of_limit:.0f} %")
        for name, q, of_range, qd, of_limit in zip(robot.joint_names, sample.q, place, sample.qd, velocity, strict=True)
    ]


def shares_of_limits(robot: Robot, sample: Sample) -> tuple[Array, Array]:
    """Of each joint the share of its range and of its velocity limit that is used, each (n,)."""
    ends = np.isfinite(robot.position_max) & np.isfinite(robot.position_min)
    low, high = np.where(ends, robot.position_min, -np.inf), np.where(ends, robot.position_max, np.inf)
    half = 0.5 * (high - low)
    place = np.where(ends, np.abs(sample.q - np.where(ends, low, 0.0) - np.where(ends, half, 0.0)) / half, 0.0)
    return place, np.abs(sample.qd) / robot.max_velocity


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
