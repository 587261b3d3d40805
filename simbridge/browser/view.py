"""The studio's state as pages show it, as plain data; the events that they send; and the page that drives."""

from __future__ import annotations

import errno
import math
import socket
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from markupsafe import Markup
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.ik.solver import Diagnosis
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import degrees, millimetres

# In place of a page's number: the event is of none, or it is what was done beside the loop.
NO_PAGE = -1
BESIDE = -2


class Event(NamedTuple):
    """Something that happened in a page.

    Attributes:
        page: Its number, `NO_PAGE` or `BESIDE`.
        name: What happened.
        value: With what.
        at: When it arrived, on the monotonic clock, s; infinite for one that is never too old.
    """

    page: int
    name: str
    value: Any = None
    at: float = math.inf


class Refused(SimbridgeError, RuntimeError):
    """The studio does not do what a page asks for; reason: why not, as a sentence."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


# m: no arm reaches so far.
_FAR = 1e3


def place_of(given: ArrayLike, count: int) -> Array:
    """So many numbers of a place or a pose; others, or some beyond any arm, are an InvalidParameter."""
    found = np.asarray(given, dtype=float)
    if found.shape != (count,) or not (np.abs(found) < _FAR).all():
        raise InvalidParameter("place", found.tolist(), f"{count} numbers below {_FAR:g}")
    return found


SOURCES = ("sampling", "solver", "limiter", "servo law", "rest")
"""The sources of the error between the goal and the arm, in the order of the data."""


class Sample(NamedTuple):
    """What the page shows of an instant.

    Attributes:
        time: On the session's clock, s.
        q, qd: Of the arm (n,), rad and rad/s.
        solution: The solver's joint positions (n,), rad.
        target: What the solver was given (7,).
        errors: Distance by source, m: see `SOURCES`.
        distance, angle: Between the goal and the arm, m and rad, in what the task constrains.
        causes: What limits the arm now, in words.
    """

    time: float
    q: Array
    qd: Array
    solution: Array
    target: Array
    errors: tuple[float, ...]
    distance: float
    angle: float
    causes: tuple[str, ...]


# Of the curve of a whole run; of that of a live arm its length, and how far its points are apart, s.
_POINTS, _SECONDS, _APART = 600, 10.0, 0.04


class Curve:
    """The errors of the last seconds by source and their sum, and the joints against their limits; of bounded size.

    Attributes:
        version: Counts changes.
        span: The first and the last time that a plot shows, s: before now, or of a run.
    """

    def __init__(self) -> None:
        self._rows: list[Array] = []
        self.version, self.span = 0, (-_SECONDS, 0.0)

    def add(self, robot: Robot, sample: Sample) -> None:
        """Add an instant."""
        if self._rows and sample.time - self._rows[-1][0] < _APART:
            return
        shares = np.concatenate(shares_of_limits(robot, sample.q, sample.qd))
        self._rows.append(np.array([sample.time, sample.distance, *sample.errors, *shares]))
        self.version += 1
        while self._rows[-1][0] - self._rows[0][0] > _SECONDS:
            del self._rows[0]

    def clear(self) -> None:
        """Begin anew."""
        self._rows.clear()
        self.version += 1

    @classmethod
    def of(cls, rows: Array) -> Curve:
        """That of a whole run: rows of time, s, whole distance and its sources, m, and the joints' shares of limits."""
        made = cls()
        made._rows = list(rows[:: max(1, len(rows) // _POINTS)])
        made.span = 0.0, float(rows[-1, 0])
        return made

    @property
    def largest(self) -> float:
        """A round number above every distance, mm, and 1 at least: a plot's scale that changes rarely."""
        highest = max([1.0, *(1e3 * row[1 : 2 + len(SOURCES)].max() for row in self._rows)])
        decade = 10.0 ** math.floor(math.log10(highest))
        return next(step * decade for step in (1.0, 2.0, 5.0, 10.0) if step * decade >= highest)

    @property
    def errors(self) -> tuple[Array, ...]:
        """Time, s (see `span`); the whole distance and that of each source, mm."""
        return self._columns(1, 1 + len(SOURCES), 1e3)

    def joints(self, n: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Time, s, and the shares of n joints' ranges, %; and the same of their velocity limits."""
        first = 2 + len(SOURCES)
        return self._columns(first, n, 100.0), self._columns(first + n, n, 100.0)

    def _columns(self, first: int, count: int, scale: float) -> tuple[Array, ...]:
        if not self._rows:
            return tuple(np.zeros(1) for _ in range(1 + count))
        columns = np.array(self._rows).T
        now = columns[0][-1] if self.span[0] < 0.0 else 0.0
        return (columns[0] - now, *(scale * columns[first : first + count]))


@dataclass
class Shown:
    """What the pages show besides the scene.

    Attributes:
        sentence: What limits the arm now, or that it is at the goal.
        figures: Name and value, both as text.
        joints: Of each joint name, position and share of its range, velocity and share of its limit, as text.
        problem: By the name of a control, or "" for none of them, what went wrong there.
        iterations: What is left of an iteration's run, as a sentence.
        playing: What is played, as a sentence.
        command: The command line that equals the present state.
        rivals: A row for each solver: name, error, sources; empty for one solver.
        state: Of the session with a controller, such as "holding".
        moving: Whether settings must wait until the arm is at rest.
        question: What is asked before a real arm moves, as HTML (see `html_texts.question`); empty while nothing is.
        refused: How many events were refused: of pages that do not drive, or with values that are not offered.
    """

    sentence: str = ""
    figures: list[tuple[str, str]] = field(default_factory=list)
    joints: list[tuple[str, ...]] = field(default_factory=list)
    problem: dict[str, str] = field(default_factory=dict)
    iterations: str = ""
    playing: str = ""
    command: str = ""
    rivals: list[tuple[str, ...]] = field(default_factory=list)
    state: str = ""
    moving: bool = False
    question: Markup = field(default_factory=Markup)
    refused: int = 0

    def describe(self, robot: Robot, task: str, sample: Sample) -> None:
        """Fill in the figures and the joints of an instant, of a solver's task."""
        found = Diagnosis(robot, sample.q, pin.SE3ToXYZQUAT(pin.SE3.Identity()), 0, task)
        self.figures = [
            *(
                (f"error, {name}", f"{millimetres(v)} mm")
                for name, v in zip(SOURCES, sample.errors, strict=True)
            ),
            ("condition number", f"{found.condition:.3g}"),
            ("manipulability", f"{found.manipulability:.3g}"),
        ]
        ranges, limits = (100.0 * share for share in shares_of_limits(robot, sample.q, sample.qd))
        self.joints = [
            (
                name,
                f"{np.degrees(q):.1f}°",
                f"{of_range:.0f} %",
                f"{qd:.3f} rad/s",
                f"{of_limit:.0f} %",
            )
            for name, q, of_range, qd, of_limit in zip(
                robot.joint_names, sample.q, ranges, sample.qd, limits, strict=True
            )
        ]


# At the goal, m and rad.
_THERE = (1e-4, 1e-3)
_CAUSES = {
    "joint_velocity": "A joint is at its velocity limit",
    "joint_limit": "A joint is near the end of its range",
    "tool_speed": "The tool is at its speed limit",
    "singularity": "The arm is slowed near a singularity",
    "obstacle": "The arm is slowed near an obstacle, or near itself",
    "reach": "The goal is out of reach",
    "stale": "No goal has come for a while",
    "max_jump": "The goal jumped too far",
    "max_turn": "The goal turned too far",
    "solver": "The solver takes longer than a period",
    "speed_slider": "The speed is scaled down",
    "late_commands": "Commands come late",
    "payload": "The controller's payload was changed",
    "halted": "Nobody holds the goal",
    "disengaged": "The arm is not engaged",
    "paused": "The program is paused at the pendant",
    "not_engaged": "The arm is not engaged",
}


def sentence_of(sample: Sample, reach: float, task: str) -> str:
    """What limits the arm at a sample, by a solver's task; reach: by how much the goal is out of reach, m."""
    words = []
    if reach > 0.0:
        words.append(f"The goal is {millimetres(reach)} mm out of reach.")
    for name, _, facts in (cause.partition(" ") for cause in sample.causes):
        if name != "reach" or reach <= 0.0:
            words.append(f"{_CAUSES.get(name, name)}{': ' * bool(facts)}{facts}.")
    if words:
        return " ".join(words)
    if sample.distance < _THERE[0] and sample.angle < _THERE[1]:
        return "The arm is at the goal."
    turn = f" and {degrees(sample.angle)}°" if task != "position" else ""
    return f"The arm is on its way: {millimetres(sample.distance)} mm{turn} are left. Nothing limits it."


def shares_of_limits(robot: Robot, q: Array, qd: Array) -> tuple[Array, Array]:
    """Of each joint the share of its range, from its middle, and of its velocity limit that is used, each (..., n)."""
    ends = np.isfinite(robot.position_max) & np.isfinite(robot.position_min)
    low, high = np.where(ends, robot.position_min, -1.0), np.where(ends, robot.position_max, 1.0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return np.where(ends, np.abs(q - middle) / half, 0.0), np.abs(qd) / robot.max_velocity


def out_of_reach(robot: Robot, point: Array) -> float:
    """By how much a point in base_link is further from the first joint than the arm is long, m; 0 where it is not."""
    first = robot.placements[0][:3, 3]
    return max(0.0, float(np.linalg.norm(np.asarray(point) - first)) - robot.reach)


class PortInUse(SimbridgeError, OSError):
    """The studio's port is in use; address, port: where it was to listen."""

    def __init__(self, address: str, port: int) -> None:
        self.address, self.port = address, port
        super().__init__(
            f"Port {port} of {address} is in use; choose another with --port, or end what uses it."
        )


def check_port(address: str, port: int) -> None:
    """Refuses a port on which somebody listens: viser would take the next one without a word.

    Raises:
        PortInUse: It is in use.
        InvalidParameter: It is no address of this computer.
    """
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise PortInUse(address, port) from None
            needed = "an address of this computer and a port"
            raise InvalidParameter("address of the page", f"{address}:{port}", needed) from None


def on_loopback(address: str) -> bool:
    """Whether only this computer reaches an address."""
    return address in ("localhost", "::1") or address.startswith("127.")


class Access:
    """The pages that are open, and which of them drives. Whoever can open a page may take control.

    Attributes:
        driver: The page that drives; None while there is none.
        refused: How many events were refused: of pages that do not drive, or with values that are not offered.
    """

    def __init__(self) -> None:
        self._pages: set[int] = set()
        self.driver: int | None = None
        self.refused = 0

    def opened(self, page: int) -> None:
        """A page was opened; the first drives."""
        self._pages.add(page)
        if self.driver is None:
            self.driver = page

    def closed(self, page: int) -> None:
        """A page was closed. If it drove, the next page drives only once it takes control."""
        self._pages.discard(page)
        if self.driver == page:
            self.driver = None

    def takes_control(self, page: int) -> None:
        """A page takes control."""
        if page in self._pages:
            self.driver = page

    def drives(self, page: int) -> bool:
        """Whether an event of a page counts; one that does not is counted as refused."""
        if page == self.driver:
            return True
        self.refused += 1
        return False
