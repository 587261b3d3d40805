"""The one interface between a plan and whatever executes it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from types import TracebackType

from simbridge.robot.pose import Array


@dataclass(frozen=True)
class ArmState:
    """The arm at one instant of its controller's clock.

    Attributes:
        sequence: Number of the setpoint it belongs to, counted from 0; a gap means that its state was missed.
        host_monotonic: The host's clock when the state was taken, s. Depends on the host.
        timestamp: The controller's clock, s.
        plan_time: How far the plan has come, s.
        q: Measured joint positions (n,), rad.
        qd: Measured joint velocities (n,), rad/s.
        effort: Joint torques (n,), N m, or motor currents, A: see `Capabilities.effort_unit`. In simulation the largest
            of the period that ends here.
        controller_target: The controller's own target positions (n,), rad.
        setpoint: What was really sent for this instant (n,), rad.
        speed_scaling: 0..1, of the controller.
        host_sent: The host's clock when the setpoint was sent, s; nan in simulation.
        robot_mode, safety_mode, runtime_state: As numbered by UR's controllers (7, 1 and 2 when all is well).
    """

    sequence: int
    host_monotonic: float
    timestamp: float
    plan_time: float
    q: Array
    qd: Array
    effort: Array
    controller_target: Array
    setpoint: Array
    speed_scaling: float = 1.0
    robot_mode: int = 7
    safety_mode: int = 1
    runtime_state: int = 2
    host_sent: float = math.nan


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do.

    Attributes:
        simulated_time: Its clock is computed, not the wall's.
        effort_unit: "N m" or "A".
    """

    simulated_time: bool
    effort_unit: str


class Backend(ABC):
    """An arm that takes setpoints. A context manager: leaving it stops the arm.

    Attributes:
        period: Control period, s.
        capabilities: What it can do.
    """

    period: float
    capabilities: Capabilities

    @property
    def loop(self) -> dict[str, float | int] | None:
        """How well the last stream kept its time, as summary.json has it; None in simulated time."""
        return None

    def __enter__(self) -> Backend:
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the arm and let go of it."""

    @abstractmethod
    def read(self) -> ArmState:
        """The arm as it is now."""

    @abstractmethod
    def move_to(self, q: Array) -> None:
        """Bring the arm to joint positions q (n,) by a slow, checked joint move, and wait until it is there.

        Raises:
            PlanRefused: The straight way in joint space breaks a limit or touches something.
        """

    @abstractmethod
    def stream(self, setpoints: Iterable[Array]) -> Generator[ArmState, None, None]:
        """Send one setpoint (n,) a period and yield the state at the instant each is due.

        Closing the iterator stops the arm.

        Raises:
            GuardViolation: A setpoint was not let out; the arm has been stopped.
        """

    @abstractmethod
    def stop(self) -> None:
        """Bring the arm to rest where it is."""

    @abstractmethod
    def recover(self) -> None:
        """After a stop: begin anew from the measured joints. Nothing moves before the next command."""
