"""The interface between a plan and whatever executes it."""

from __future__ import annotations

import errno
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, get_args

from simbridge.errors import Cause, SimbridgeError
from simbridge.robot.pose import Array

# These load the solvers, and the servo process, which imports this module, must start quickly.
if TYPE_CHECKING:
    from simbridge.planning.options import Options
    from simbridge.robot.robot import Robot
    from simbridge.ur.controller_facts import ControllerFacts

# What a controller can show, the strongest evidence first: its safety system, its robot mode, its
# clock, its program.
CAUSES_BY_EVIDENCE: tuple[Cause, ...] = (
    "emergency_stop",
    "safety_fault",
    "safeguard_stop",
    "protective_stop",
    "power_off",
    "controller_restarted",
    "program_replaced",
)
# The system's errors that mean that a file cannot grow.
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Names and values to display, such as ("payload", "1.5 kg").
Facts = tuple[tuple[str, str], ...]
# Displays facts, asks a question, and returns whether the operator confirmed.
Ask = Callable[[Facts, str], bool]


@dataclass(frozen=True)
class ArmState:
    """The arm at one instant of its controller's clock.

    Attributes:
        sequence: Index of the setpoint to which it belongs, from 0; a gap means that states were
            missed.
        host_monotonic: The host's monotonic clock when the state was received, s.
        timestamp: The controller's clock, s.
        plan_time: Position within the plan, s.
        q: Measured joint positions (n,), rad.
        qd: Measured joint velocities (n,), rad/s.
        effort: Joint torques (n,), N m, or motor currents, A: see `Capabilities.effort_unit`. In
            simulation, the largest within the period that ends here.
        controller_target: The controller's own target positions (n,), rad.
        command: The joint positions that were sent for this instant (n,), rad.
        speed_scaling: Fraction of full speed at which the controller moves the arm, 0..1.
        host_sent: The host's monotonic clock when the setpoint was sent, s; nan in simulation.
        controller_target_velocity: Velocities of the controller's targets (n,), rad/s; None if it
            does not report them.
        controller_target_acceleration: Accelerations of the controller's targets (n,), rad/s^2;
            None if it does not report them.
        robot_mode: Robot mode, in UR's numbering (7: ready).
        safety_mode: Safety mode, in UR's numbering (1: normal).
        runtime_state: Runtime state, in UR's numbering (2: a program runs).
    """

    sequence: int
    host_monotonic: float
    timestamp: float
    plan_time: float
    q: Array
    qd: Array
    effort: Array
    controller_target: Array
    command: Array
    speed_scaling: float = 1.0
    robot_mode: int = 7
    safety_mode: int = 1
    runtime_state: int = 2
    host_sent: float = math.nan
    controller_target_velocity: Array | None = None
    controller_target_acceleration: Array | None = None


@dataclass(frozen=True)
class Capabilities:
    """Says what the states of a backend mean.

    Attributes:
        simulated_time: Whether the clock is simulated, rather than real time.
        effort_unit: "N m" for torques, "A" for motor currents.
    """

    simulated_time: bool
    effort_unit: str


@dataclass
class Ending:
    """Records what was seen when a session ended.

    Attributes:
        shown: What the controller showed that ends a session, in order: causes, as in `ended_by` of
            summary.json.
        evidence: What was seen, and what could not be done, as clauses.
        at_s: Time from the session's first setpoint to its last by the controller's clock, s; None
            if none was sent.
        arm_at_rest: Whether the arm was seen at rest; None if it could not be seen.
        script_ended: Whether no program of ours runs or is paused; None if it could not be seen.
    """

    shown: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    at_s: float | None = None
    arm_at_rest: bool | None = None
    script_ended: bool | None = None


def cause_of(error: BaseException | None, ending: Ending | None) -> Cause:
    """Return what ended a run.

    That is what the controller showed, or else what the error on our side proves.

    Args:
        error: The error that left the run; None if the run was completed.
        ending: The end of the session with the controller; None if nothing had been sent.
    """
    if error is None:
        return "completed"

    # The strongest evidence that the controller showed.
    if ending is not None and ending.shown:
        return next(cause for cause in CAUSES_BY_EVIDENCE if cause in ending.shown)

    # An error that is not one of ours.
    if isinstance(error, OSError) and error.errno in DISK_FULL_ERRORS:
        return "disk_full"
    if isinstance(error, KeyboardInterrupt):
        # `SignalReceived` has a cause that names the signal. Another KeyboardInterrupt, as of a
        # custom solver, may have an attribute of that name with any value.
        cause: Cause | None = getattr(error, "cause", None)
        if cause is not None and cause in get_args(Cause):
            return cause
        return "interrupted"
    if not isinstance(error, SimbridgeError):
        return "internal_error"

    # An error of ours that came before anything was sent has refused the run.
    if ending is None and error.cause == "unknown":
        return "refused"
    return error.cause


class Backend(ABC):
    """An arm that executes setpoints. A context manager: leaving it stops the arm.

    The options of a run go no further than the constructor, which keeps what the backend needs of
    them.

    Args:
        robot: The arm.
        options: The options of the run.
        plan_facts: Facts about the plan, displayed before a real arm moves.
        ask: Function that asks the operator for confirmation before a real arm moves; None if there
            is no operator.

    Attributes:
        robot: The arm.
        period: Control period, s.
        collision_scene: The obstacles that `move_to` keeps clear of.
        approach_joint_speed: Limit on every joint in `move_to`, rad/s.
        approach_tool_speed: Limit on the tool in `move_to`, m/s.
        planned_for: The controller for which the plan was made; it must be the same when the arm
            moves.
    """

    # Each backend gives these three.
    capabilities: Capabilities
    approach_joint_speed: ClassVar[float]
    approach_tool_speed: ClassVar[float]
    planned_for: ControllerFacts | None = None

    def __init__(
        self, robot: Robot, options: Options, *, plan_facts: Facts = (), ask: Ask | None = None
    ) -> None:
        self.robot = robot
        self.period = robot.period if options.period is None else options.period
        self.collision_scene = options.collision_scene
        self._plan_facts = plan_facts
        self._ask = ask

    @classmethod
    def resolve(
        cls, robot: Robot, options: Options
    ) -> tuple[ControllerFacts | None, Robot, Options]:
        """Determine what a plan has to be made for; nothing moves.

        A simulated arm that does not follow servoj returns options whose servo is "ideal".

        Returns:
            The controller's facts, None in simulation; the robot and the options, completed from
            them.

        Raises:
            ControllerError: One of its subclasses: the controller cannot be used.
        """
        return None, robot, options

    @property
    def loop(self) -> dict[str, float | int] | None:
        """Timing of the last stream, as in summary.json; None in simulated time."""
        return None

    @property
    def ending(self) -> Ending | None:
        """The observed ending of the last session; None if no session has ended."""
        # A simulated arm rests when nothing moves it.
        if self.capabilities.simulated_time:
            return Ending(arm_at_rest=True, script_ended=True)
        return None

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *_exception: object) -> None:
        """Stop the arm and release it."""
        self.stop()

    @abstractmethod
    def read(self) -> ArmState:
        """Return the current state of the arm."""

    @abstractmethod
    def move_to(self, q: Array) -> None:
        """Move by a slow, checked joint motion, and wait until the arm is there.

        Args:
            q: Joint positions (n,), rad.

        Raises:
            PlanRefused: The straight line in joint space violates a limit or collides.
        """

    @abstractmethod
    def stream(self, setpoints: Array) -> Generator[ArmState, None, None]:
        """Send the setpoints of a plan, and yield the state at the instant each is due.

        Closing the iterator stops the arm.

        Args:
            setpoints: Joint positions (T, n), rad, one a period.

        Raises:
            GuardViolation: A setpoint was refused; the arm has been stopped.
        """

    def unread(self) -> Iterable[ArmState]:
        """Return the states of a replay left early that had arrived but were not yielded."""
        return ()

    @abstractmethod
    def stop(self) -> None:
        """Bring the arm to rest."""

    @abstractmethod
    def recover(self) -> None:
        """Start again after a stop, from the measured joints.

        Nothing moves before the next command.
        """
