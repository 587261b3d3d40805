"""A live session that moves at once and remembers what it was asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.sessions.causes import LiveCause
from simbridge.teleop.device import AT_REST, Device, Reading


@dataclass
class FakeStatus:
    state: str = "idle"
    causes: tuple[LiveCause, ...] = ()
    speed_factor: float = 1.0
    error: SimbridgeError | None = None


@dataclass
class FakeSession:
    """Calls as (name, arguments); an arm that follows each pose at once, or not at all."""

    directory = Path("runs/hand")
    servo_extrapolation = ""
    follows: bool = True
    refuses: SimbridgeError | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    status: FakeStatus = field(default_factory=FakeStatus)
    tool: pin.SE3 = field(default_factory=lambda: pin.SE3(np.eye(3), np.array([0.5, 0.1, 0.3])))

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.calls.append(("closed",))

    def engage(self) -> None:
        self.calls.append(("engage",))
        if self.refuses is not None:
            raise self.refuses
        self.status.state = "engaged"

    def disengage(self) -> None:
        self.calls.append(("disengage",))
        self.status.state = "idle"

    def halt(self, cause: str) -> None:
        self.calls.append(("halt", cause))

    def note(self, name: str, **facts: Any) -> None:
        self.calls.append(("note", name, facts))

    def pose(self, target: Any, *, relative: bool = False) -> None:
        self.calls.append(("pose", target, relative))
        if self.follows and isinstance(target, pin.SE3):
            self.tool = target

    def twist(self, v: Any, frame: str = "base_link") -> None:
        self.calls.append(("twist", np.asarray(v, dtype=float), frame))

    def jog(self, qd: Any) -> None:
        if len(qd) != 6:
            raise InvalidParameter("jog", (len(qd),), "of shape (6,)")
        self.calls.append(("jog", tuple(qd)))

    def joints(self, q: Any) -> None:
        self.calls.append(("joints", tuple(q)))

    def of(self, *names: str) -> list[tuple[Any, ...]]:
        """The calls of these names."""
        return [call for call in self.calls if call[0] in names]

    @property
    def motions(self) -> list[tuple[Any, ...]]:
        return self.of("pose", "twist", "jog", "joints")


class Script(Device):
    """A device that gives these readings, one at a time; an exception in their place is raised."""

    name = "test device"

    def __init__(self, *readings: Reading | Exception) -> None:
        self.readings = list(readings)

    def read(self) -> Reading:
        reading = self.readings.pop(0) if self.readings else Reading(requests=("quit",))
        if isinstance(reading, Exception):
            raise reading
        return reading


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Passes at once."""
        self.now += seconds


ENGAGE = Reading(requests=("engage",))
RELEASED = Reading()
FORWARD = Reading(axes=(1.0, *AT_REST[1:]), held=True)
