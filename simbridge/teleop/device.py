"""An input device: what one reading of it holds, and what it is notified of."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol

import pinocchio as pin

from simbridge.errors import MissingPackage, Refusal, SimbridgeError
from simbridge.planning.live.inputs import TwistFrame

Axes = tuple[float, float, float, float, float, float]
Steps = tuple[int, int, int, int, int, int]
Request = Literal["engage", "disengage", "toggle", "halt", "quit"]

AT_REST: Axes = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NO_STEP: Steps = (0, 0, 0, 0, 0, 0)

MOVABLE = ("engaged", "tracking", "braking", "holding")
"""States of a session in which inputs move the arm."""


class Status(Protocol):
    """What a session says of itself (`simbridge.running.live_session`)."""

    @property
    def state(self) -> str: ...
    @property
    def causes(self) -> tuple[str, ...]: ...
    @property
    def speed_factor(self) -> float: ...
    @property
    def error(self) -> SimbridgeError | None: ...


class Session(Protocol):
    """The part of a live session that inputs use (`simbridge.running.live_session`)."""

    @property
    def status(self) -> Status: ...
    @property
    def tool(self) -> pin.SE3: ...
    def engage(self) -> None: ...
    def disengage(self) -> None: ...
    def halt(self, cause: str) -> None: ...
    def note(self, name: str, **facts: Any) -> None: ...
    def pose(self, target: Any, /, *, relative: bool = False) -> None: ...
    def twist(self, v: Any, /, frame: TwistFrame = "base_link") -> None: ...
    def jog(self, qd: Any, /) -> None: ...
    def joints(self, q: Any, /) -> None: ...


class DeviceError(Refusal, OSError):
    """An input device that is missing, must not be read, or was lost.

    Attributes:
        device: Its name.
        reason: What is wrong and what to do, as sentences.
        rule: Lines of a udev rule that gives the rights to read it, or "".
    """

    def __init__(self, device: str, reason: str, rule: str = "") -> None:
        self.device, self.reason, self.rule = device, reason, rule
        super().__init__(f"{device}: {reason}")


@dataclass(frozen=True)
class Command:
    """An input that a program gave, to be passed on to the session once.

    Attributes:
        kind: The session's method: "pose", "twist", "jog" or "joints".
        values: Its argument, in SI units.
        frame: Of a twist.
        relative: Of a pose.
        source: What the device knows it by.
    """

    kind: Literal["pose", "twist", "jog", "joints"]
    values: tuple[float, ...]
    frame: TwistFrame = "base_link"
    relative: bool = False
    source: Any = None


@dataclass(frozen=True)
class Reading:
    """What a device shows at one instant; a part that it does not have stays as it is here.

    Attributes:
        axes: Deflection along x (forward), y (left), z (up) and about them, -1 to 1.
        held: Whether the dead-man button is held: only then do the axes move the arm.
        steps: Single steps along and about the same axes since the last reading: -1, 0 or 1 each.
        buttons: Names of the other buttons that are down.
        requests: What was asked for since the last reading, in this order.
        commands: What programs gave since the last reading, in this order.
    """

    axes: Axes = AT_REST
    held: bool = False
    steps: Steps = NO_STEP
    buttons: frozenset[str] = frozenset()
    requests: tuple[Request, ...] = ()
    commands: tuple[Command, ...] = ()


class Device:
    """An input device, open for reading, to be derived from. A context manager.

    Attributes:
        name: As in messages.
        dead_man: The dead-man button, as in messages.
        guide: Lines of the first screen: what engages, what moves, what stops.
    """

    name: str
    dead_man: str = "the dead-man button"
    guide: tuple[str, ...] = ()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close by default."""

    def read(self) -> Reading:
        """The newest reading; returns at once.

        Raises:
            OSError: The device was unplugged, or cannot be read any more.
        """
        raise NotImplementedError

    def engaged(self) -> None:
        """The session has just been engaged: what was received until now must not move the arm."""

    def refused(self, command: Command, error: SimbridgeError) -> None:
        """The session refused a command of this device."""

    def answer(self, session: Session, problem: str) -> None:
        """A reading was acted on; problem: why a request of it failed, or ""."""

    def suspended(self) -> AbstractContextManager[None]:
        """While the operator is asked something in the terminal."""
        return nullcontext()


def optional_package(module: str, package: str, purpose: str) -> Any:
    """A module of the extra `teleop`.

    Raises:
        MissingPackage: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingPackage(package, purpose, extra="teleop") from None
