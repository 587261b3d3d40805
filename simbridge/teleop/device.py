"""The interface of every input device: its readings, its notifications, and its error."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from simbridge.errors import Refusal, SimbridgeError
from simbridge.sessions.inputs import TwistFrame

if TYPE_CHECKING:  # loads the backends; a device is only given its session
    from simbridge.sessions.session import LiveSession

# Deflections along x (forward), y (left), z (up) and about them, -1 to 1.
Axes = tuple[float, ...]
# Steps along and about the same axes: -1, 0 or 1.
Steps = tuple[int, ...]
Request = Literal["engage", "disengage", "toggle", "halt", "quit"]

AT_REST: Axes = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
NO_STEP: Steps = (0, 0, 0, 0, 0, 0)

# States of a session in which inputs move the arm.
MOVABLE = ("engaged", "tracking", "braking", "holding")


class DeviceError(Refusal, OSError):
    """An input device is missing, must not be read, or was lost.

    Attributes:
        device: Name of the device.
        reason: What is wrong, and what to do.
        rule: Lines of a udev rule that gives the rights to read it; "" if that is not the cause.
    """

    def __init__(self, device: str, reason: str, rule: str = "") -> None:
        self.device = device
        self.reason = reason
        self.rule = rule
        super().__init__(f"{device}: {reason}")


@dataclass(frozen=True)
class DeviceCommand:
    """An input that a program gave, to be passed on to the session once.

    Attributes:
        kind: The session's method that takes it.
        values: Argument of the input, in SI units.
        frame: Axes of a twist.
        relative: Whether a pose is relative to that at the engagement.
        source: The device's own key of the command.
    """

    kind: Literal["pose", "twist", "jog", "joints"]
    values: tuple[float, ...]
    frame: TwistFrame = "base_link"
    relative: bool = False
    source: Any = None


@dataclass(frozen=True)
class Reading:
    """The state of an input device at one instant; a part that it lacks keeps its default.

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
    commands: tuple[DeviceCommand, ...] = ()


class Device:
    """An input device, open for reading, to be derived from. A context manager.

    Attributes:
        name: The device, as in messages.
        dead_man: Name of the dead-man button, as in messages.
        guide: Lines of the first screen: what engages, what moves, what stops.
    """

    name: str
    dead_man: str = "the dead-man button"
    guide: tuple[str, ...] = ()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the device."""

    def read(self) -> Reading:
        """Return the newest reading, at once.

        Raises:
            OSError: The device was unplugged, or can no longer be read.
        """
        raise NotImplementedError

    def note_engagement(self) -> None:
        """Take note that the session has just been engaged.

        What the device received until now must not move the arm.
        """

    def note_refusal(self, command: DeviceCommand, error: SimbridgeError) -> None:
        """Take note that the session refused a command of this device."""

    def answer(self, session: LiveSession, problem: str) -> None:
        """Answer whoever gave the last reading, which was acted on.

        Args:
            session: The session, as it is afterwards.
            problem: Why a request of the reading failed; "" if none did.
        """

    def suspend(self) -> AbstractContextManager[None]:
        """Return a context in which the operator is asked something in the terminal."""
        return nullcontext()
