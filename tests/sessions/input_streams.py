"""Random streams of inputs for a live session: a seed gives a stream of at least two seconds.

A stream has one to four parts. Each has a kind of input, a rate from 1 Hz to 1 kHz, jitter, gaps
and bursts, and a manner: smooth, noisy, jumping, out of reach, towards a singularity, reversing at
full speed, malformed. Between them the arm may be halted, or disengaged and engaged again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.sessions.inputs import FRAMES
from simbridge.sessions.session import LiveSession

SHORTEST = 2.0
_RATES = (1.0, 1000.0)
MANNERS: dict[str, tuple[str, ...]] = {
    "pose": (
        "smooth",
        "noisy",
        "jumping",
        "out of reach",
        "singular",
        "down",
        "relative",
        "stopping",
    ),
    "twist": ("constant", "noisy", "reversing", "fast", "towards"),
    "jog": ("constant", "noisy", "reversing", "fast"),
    "joints": ("smooth", "noisy", "jumping", "limits"),
    "follow": ("poses", "joints", "reordered", "replaced"),
}


class Given(NamedTuple):
    """One thing that a stream does.

    Attributes:
        at: After the stream's beginning, s.
        part: The number of the part to which it belongs.
        call: The method of the session.
        make: Returns its arguments, from the tool's pose and the joint positions (n,), rad, at the
            beginning of the part.
        keywords: Its keyword arguments.
        bad: True if the call must refuse it.
    """

    at: float
    part: int
    call: str
    make: Callable[[pin.SE3, Array], tuple[Any, ...]]
    keywords: dict[str, Any]
    bad: bool = False


@dataclass(frozen=True)
class InputStream:
    """A stream of inputs.

    Attributes:
        seed: Its seed.
        parts: A description of each part.
        given: The inputs in the order of time.
        duration: Duration, s.
    """

    seed: int
    parts: tuple[str, ...]
    given: tuple[Given, ...]
    duration: float


def input_stream(seed: int, robot: Robot, shortest: float = SHORTEST) -> InputStream:
    """Return the stream of a seed, which lasts for so long at least, s."""
    chance = random.Random(seed)
    given: list[Given] = []
    parts: list[str] = []
    begin = 0.0
    while begin < shortest:
        kind = chance.choice(list(MANNERS))
        manner = chance.choice(MANNERS[kind])
        rate = _RATES[0] * (_RATES[1] / _RATES[0]) ** chance.random()
        length = chance.uniform(0.5, 2.5)
        jitter = chance.choice((0.0, 0.1, 0.9))
        gaps = chance.choice((0.0, 0.0, 0.02))
        bursts = chance.choice((0, 0, 5))
        bad = chance.choice((0.0, 0.0, 0.1))
        parts.append(
            f"{kind} {manner} {rate:.0f} Hz, jitter {jitter:g}, gaps {gaps:g}, "
            f"bursts {bursts}, bad {bad:g}"
        )
        source = _Source(chance, kind, manner, robot, 1.0 / rate)
        number = len(parts) - 1
        for elapsed in _instants(chance, rate, length, jitter, gaps, bursts):
            at = begin + elapsed
            wrong = chance.random() < bad
            given.append(
                _malformed(chance, at, number, robot.n)
                if wrong
                else source.next(at, elapsed, number)
            )
        begin += length
        if chance.random() < 0.3:
            given.append(
                Given(begin, number, chance.choice(("halt", "disengage")), lambda tool, q: (), {})
            )
            if given[-1].call == "disengage":
                given.append(Given(begin, number, "engage", lambda tool, q: (), {}))
    given.sort(key=lambda item: item.at)
    return InputStream(seed, tuple(parts), tuple(given), begin)


def _instants(
    chance: random.Random, rate: float, length: float, jitter: float, gaps: float, bursts: int
) -> Iterator[float]:
    """Yield the times of a part's inputs, s, in order."""
    at = 0.0
    held = 0
    while at < length:
        if bursts and held < bursts:
            # Those of a burst come together, at the end of it.
            held += 1
        else:
            for _ in range(max(held, 1)):
                yield at
            held = 0
        at += (1.0 + jitter * chance.uniform(-1.0, 1.0)) / rate
        if chance.random() < gaps:
            at += chance.uniform(0.05, 0.8)


def _malformed(chance: random.Random, at: float, part: int, n: int) -> Given:
    """Return an input that the session must refuse."""
    nan = float("nan")
    call, arguments, keywords = chance.choice(
        [
            ("pose", ([nan] * 7,), {}),
            ("pose", ([0.1, 0.2],), {}),
            ("pose", ("here",), {"relative": True}),
            ("twist", ([0.1, nan, 0.0, 0.0, 0.0, 0.0],), {}),
            ("twist", ([0.1] * 5,), {}),
            ("twist", ([0.1] * 6,), {"frame": "tool0"}),
            ("jog", ([float("inf")] * n,), {}),
            ("jog", ([0.1] * (n + 1),), {}),
            ("joints", ([nan] * n,), {}),
            ("joints", (None,), {}),
            ("follow", ([0.2, 0.1], [[0.0] * n] * 2), {}),
            ("follow", ([0.1, nan], [[0.0] * n] * 2), {}),
            ("follow", ([0.1], [[0.0] * n] * 2), {}),
            ("follow", ([], []), {}),
        ]
    )
    return Given(at, part, call, lambda tool, q: arguments, keywords, bad=True)


class _Source:
    """The inputs of one part."""

    def __init__(
        self, chance: random.Random, kind: str, manner: str, robot: Robot, interval: float
    ) -> None:
        self._chance = chance
        self._kind = kind
        self._manner = manner
        self._robot = robot
        self._rng = np.random.default_rng(chance.getrandbits(32))
        self._interval = interval
        self._direction = self._unit(6)
        self._size = chance.choice((0.02, 0.1, 0.3))
        self._pulse = chance.uniform(0.5, 12.0)  # rad/s
        self._frame: Literal["base_link", "base", "tool"] = chance.choice(FRAMES)
        self._share = 10.0 ** chance.uniform(-1.5, 0.5)
        self._walked: Array = np.zeros(6)

    def _unit(self, count: int) -> Array:
        """Return a random direction (count,)."""
        direction = self._rng.normal(size=count)
        return np.asarray(direction / np.linalg.norm(direction))

    def next(self, at: float, elapsed: float, part: int) -> Given:
        """Return the input that is given so long after the part's beginning, s."""
        keywords: dict[str, Any] = {}
        if self._kind == "pose":
            keywords["relative"] = self._manner == "relative"
        if self._kind == "twist":
            keywords["frame"] = self._frame
        make = getattr(self, f"_{self._kind}")(elapsed)
        return Given(at, part, self._kind, make, keywords)

    def _pose(self, elapsed: float) -> Callable[[pin.SE3, Array], tuple[Any, ...]]:
        wave = np.sin(self._pulse * elapsed)
        scale = np.array([self._size] * 3 + [3.0 * self._size] * 3)
        offset = wave * scale * self._direction
        if self._manner == "noisy":
            offset = offset + self._rng.normal(size=6) * np.array([0.01] * 3 + [0.03] * 3)
        elif self._manner == "jumping":
            offset = self._rng.uniform(-1.0, 1.0, 6) * np.array([0.06] * 3 + [0.3] * 3)
        elif self._manner in ("out of reach", "singular", "down"):
            self._walked = self._walked + min(1.0 * self._interval, 0.08) * self._heading()
            offset = self._walked
        elif self._manner == "stopping":
            offset = np.minimum(elapsed, 0.4) * 0.5 * self._direction
        if self._manner == "relative":
            target = pin.SE3(pin.exp3(offset[3:]), offset[:3])
            return lambda tool, q: (target,)
        turned = pin.exp3(offset[3:])
        return lambda tool, q: (pin.SE3(turned @ tool.rotation, tool.translation + offset[:3]),)

    def _heading(self) -> Array:
        """Return the direction of a target that walks away, m and rad per m."""
        if self._manner == "down":
            return np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0])
        if self._manner == "singular":
            # Over the shoulder's axis; the arm faces along x.
            return np.array([-1.0, -0.2, 0.2, 0.0, 0.0, 0.0])
        return np.concatenate(
            [self._direction[:3] / np.linalg.norm(self._direction[:3]), np.zeros(3)]
        )

    def _twist(self, elapsed: float) -> Callable[[pin.SE3, Array], tuple[Any, ...]]:
        twist = self._share * self._direction
        if self._manner == "noisy":
            twist = self._share * self._rng.normal(size=6)
        elif self._manner == "reversing":
            twist = np.sign(np.sin(self._pulse * elapsed)) * 2.0 * twist
        elif self._manner == "fast":
            twist = 10.0 * twist
        elif self._manner == "towards":
            twist = np.array([0.5, 0.0, -0.2, 0.0, 0.0, 0.0]) * (
                1.0 if elapsed % 1.2 < 0.8 else -1.0
            )
        return lambda tool, q: (twist,)

    def _jog(self, elapsed: float) -> Callable[[pin.SE3, Array], tuple[Any, ...]]:
        velocity = self._direction * self._share
        if self._manner == "noisy":
            velocity = self._share * self._rng.normal(size=6)
        elif self._manner == "reversing":
            velocity = (
                np.sign(np.sin(self._pulse * elapsed) * self._direction) * self._robot.max_velocity
            )
        elif self._manner == "fast":
            velocity = 3.0 * np.sign(self._direction) * self._robot.max_velocity
        return lambda tool, q: (velocity,)

    def _joints(self, elapsed: float) -> Callable[[pin.SE3, Array], tuple[Any, ...]]:
        offset = 3.0 * self._size * np.sin(self._pulse * elapsed) * self._direction
        if self._manner == "noisy":
            offset = offset + 0.05 * self._rng.normal(size=6)
        elif self._manner == "jumping":
            offset = self._rng.uniform(-0.4, 0.4, 6)
        elif self._manner == "limits":
            self._walked = self._walked + min(2.0 * self._interval, 0.4) * np.sign(self._direction)
            offset = self._walked
        return lambda tool, q: (q + offset,)

    def _follow(self, elapsed: float) -> Callable[[pin.SE3, Array], tuple[Any, ...]]:
        count = self._chance.randint(1, 40)
        step = self._chance.choice((0.002, 0.02, 0.1))
        times = self._chance.choice((0.0, step, 0.3)) + step * np.arange(count)
        phases = self._pulse * (elapsed + times)
        ways = self._size * np.sin(phases)[:, np.newaxis] * self._direction
        if self._manner == "replaced":
            ways = ways + self._rng.normal(size=6) * 0.02
        if self._manner == "reordered" and self._chance.random() < 0.5:
            # What is received out of order: an older chunk, whose first stamps are over.
            ways = ways[::-1]
        if self._manner == "joints" or (self._manner != "poses" and self._chance.random() < 0.5):
            return lambda tool, q: (times, q + 3.0 * ways)
        turns = [pin.exp3(way[3:]) for way in ways]
        return lambda tool, q: (
            times,
            [
                pin.SE3(turn @ tool.rotation, tool.translation + way[:3])
                for turn, way in zip(turns, ways, strict=True)
            ],
        )


def play(stream: InputStream, session: LiveSession, wait: Callable[[float], None]) -> list[str]:
    """Give a stream to an engaged session, and return what must not be.

    Args:
        stream: The stream.
        session: An engaged session.
        wait: Waits until so long after the stream's beginning, s.
    """
    wrong: list[str] = []
    part = -1
    tool = session.tool
    q = session.robot.home
    for item in stream.given:
        wait(item.at)
        if item.part != part:
            part = item.part
            tool = session.tool
            q = session.robot.home if session.state is None else session.state.q
        refused = ""
        try:
            getattr(session, item.call)(*item.make(tool, q), **item.keywords)
        except (InvalidParameter, UnknownName) as error:
            refused = str(error)
        # A chunk of random poses may also have a step above max_jump, which is refused at the call.
        if bool(refused) != item.bad and not (item.call == "follow" and "max_jump" in refused):
            wrong.append(
                f"{item.call} at {item.at:.3f} s: {refused or 'a malformed input was taken'}"
            )
        if session.status.state in ("ended", "paused"):
            wrong.append(f"after {item.call} at {item.at:.3f} s: {session.status}")
            return wrong
    wait(stream.duration)
    return wrong
