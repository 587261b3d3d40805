"""The typed record of a log, whatever it was read from: what judging knows of an arm's motion.

Readers fill it in: `read_log.py` finds the one for a file or directory. Everything that follows
(motions, their kind, delays, errors, tolerances, the page) takes a `ControllerLog` and nothing
else.

All values are in SI units and radians. All times are in s from the log's first sample, by the
log's own clock: a quantity that was published at other instants than the joint positions is a
`Signal` with times of its own on the same clock, which may be negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np

from simbridge.errors import UnusableSamples
from simbridge.identification.data import Samples
from simbridge.judging.differences import differentiate
from simbridge.robot.pose import Array
from simbridge.robot.robot import UR_JOINTS


class LogSource(Enum):
    """What a log was read from; the value is its name in output."""

    RTDE = "RTDE recording"
    ROS1_BAG = "ROS 1 bag"
    ROS2_BAG = "ROS 2 bag"
    RUN = "run"
    SESSION = "live session"
    EXPORT = "exported run"


class Clock(Enum):
    """Whose clock stamped the samples; the value is its name in output."""

    # The controller stamps every sample with a multiple of its cycle, so that delays are exact.
    CONTROLLER = "the controller's clock"
    # The recording computer stamps a sample on arrival, so that every delay contains the jitter of
    # network and computer.
    HOST = "the clock of the computer that recorded"


@dataclass(frozen=True, eq=False)
class Signal:
    """A quantity with times of its own.

    Attributes:
        times: Instants (K,), s, not decreasing.
        values: Values of the quantity (K,) or (K, n); a value holds until the next instant.
    """

    times: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Commands:
    """Joint commands in the order in which they were sent to the controller.

    Attributes:
        values: Positions (K, n), rad, or velocities (K, n), rad/s: see `ControllerLog`.
        times: When each command was sent (K,), s, not decreasing; None where only the order is
            known.
    """

    values: Array
    times: Array | None = None


@dataclass(frozen=True, eq=False)
class TrackedReference:
    """The state of a joint trajectory controller of ROS, as it published it.

    The controller samples its trajectory at `reference`; an arm with a position interface is sent
    the same positions as commands. It aborts when `error` exceeds a tolerance.

    Attributes:
        name: The topic.
        times: Instants (K,), s, strictly increasing.
        q: Positions of the reference (K, n), rad.
        qd: Velocities of the reference (K, n), rad/s; None where they were not published.
        actual_q: Measured positions (K, n) that the controller compared, rad.
        error: Reference minus measured position (K, n) as published, rad.
        output: Positions (K, n) that the controller sent to the arm, rad; None where the message
            has none.
    """

    name: str
    times: Array
    q: Array
    qd: Array | None
    actual_q: Array
    error: Array
    output: Array | None = None


@dataclass(frozen=True, eq=False)
class TrajectoryGoal:
    """A trajectory that was sent to a joint trajectory controller.

    Attributes:
        received: When it was received, s.
        times: Times of its points from its start (K,), s.
        q: Positions of its points (K, n), rad.
        qd: Velocities of its points (K, n), rad/s; None where it has none.
        goal_id: The goal's identity, to find its result; "" where it has none.
        path_tolerance: Largest error of each joint on the way (n,), rad; 0 for the controller's
            own tolerance, negative for none. None if the goal names no path tolerance.
        goal_tolerance: Largest error of each joint at the end (n,), rad, with the same special
            values.
        goal_time_tolerance: Time after the trajectory's end within which the arm must come within
            the goal tolerance, s; 0 for the controller's own time.
    """

    received: float
    times: Array
    q: Array
    qd: Array | None = None
    goal_id: str = ""
    path_tolerance: Array | None = None
    goal_tolerance: Array | None = None
    goal_time_tolerance: float = 0.0


@dataclass(frozen=True)
class GoalResult:
    """How a goal of a joint trajectory controller ended, as the controller reported it.

    Attributes:
        time: When it was reported, s.
        outcome: "succeeded", "aborted", "canceled", "preempted", "rejected", "recalled" or "lost".
        error: The controller's error by name, such as "PATH_TOLERANCE_VIOLATED"; "" for success,
            or where only the outcome was recorded.
        text: The controller's explanation; "" where it gave none.
        goal_id: The identity of the goal; "" where it is not known.
        tolerance_rad: The position tolerance that was exceeded, rad; None unless the controller
            named it.
    """

    time: float
    outcome: str
    error: str = ""
    text: str = ""
    goal_id: str = ""
    tolerance_rad: float | None = None


@dataclass(frozen=True)
class Missing:
    """A quantity that the log does not have.

    Attributes:
        quantity: Its name: "target_q", "commands", ...
        would_show: What it would have added, as a clause: "how far the joints trail their
            targets".
    """

    quantity: str
    would_show: str


@dataclass(frozen=True, eq=False)
class ControllerLog:
    """A log of an arm with n joints: T samples of its joints, and what was recorded beside them.

    Attributes:
        name: The file or directory as the user named it.
        source: What it was read from.
        clock: Whose clock stamped the samples.
        start: Stamp of the first sample by that clock, s.
        times: Stamps of the samples from the first (T,), s, strictly increasing.
        joint_names: Names of the n joints, from the base.
        columns: Recorded quantities with a row per sample, each (T, width), by UR's field names
            (target_q, target_qd, target_qdd, actual_q, actual_qd, target_moment, target_current,
            actual_current, ...; see `trajectory/rtde_recording.py`). actual_TCP_pose and
            target_TCP_pose (T, 6) are as UR writes them: m and rotation vector, in the
            pendant's base. A row without a quantity has nan in it.
        incomplete_times: Stamps (K,) of rows that are left out, since joint values are missing in
            them, s from the first sample; None without such rows.
        setpoints: Joint positions (K, n) that the joints should have, rad, if the log has them
            apart from the commands, as a run has: with feedforward the commands run ahead of them.
        reference_poses: Poses of the TCP (K, 7) on the reference, base_link to TCP.
        attained_poses: Poses of the TCP (K, 7) as measured, base_link to TCP, where the log has
            them: by the controller's kinematics, or by those of a run.
        position_commands: Joint positions that were sent to servoj, rad.
        speed_commands: Joint velocities that were sent to speedj, rad/s.
        reference: State of a joint trajectory controller.
        goals: Trajectories that were sent to a joint trajectory controller, in order.
        results: How the goals of that controller ended, in order.
        speed_scaling: Fraction of full speed at which the controller moves the arm, 0 to 1, the
            speed slider included.
        robot_mode: See `simbridge.ur.tables.RobotMode`.
        safety_mode: See `simbridge.ur.tables.SafetyMode`.
        program_state: See `simbridge.ur.tables.RuntimeState`; PLAYING and STOPPED where only
            whether a program ran is known.
        robot: The arm's name for --robot, where the log or the user names it; "" where it is
            unknown.
        cycle: The controller's cycle, s, where the log states it; else None.
        missing: What the log does not have.
        notes: Sentences about what was left out or assumed in reading.
    """

    name: str
    source: LogSource
    clock: Clock
    start: float
    times: Array
    joint_names: tuple[str, ...]
    columns: Mapping[str, Array] = field(default_factory=dict)
    incomplete_times: Array | None = None

    setpoints: Signal | None = None
    reference_poses: Signal | None = None
    attained_poses: Signal | None = None
    position_commands: Commands | None = None
    speed_commands: Commands | None = None
    reference: TrackedReference | None = None
    goals: tuple[TrajectoryGoal, ...] = ()
    results: tuple[GoalResult, ...] = ()

    speed_scaling: Signal | None = None
    robot_mode: Signal | None = None
    safety_mode: Signal | None = None
    program_state: Signal | None = None

    robot: str = ""
    cycle: float | None = None
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def target_q(self) -> Array | None:
        """Joint targets of the controller (T, n), rad; None where they were not recorded."""
        return self.columns.get("target_q")

    @property
    def target_qd(self) -> Array | None:
        """Velocities of the joint targets (T, n), rad/s; None where they were not recorded."""
        return self.columns.get("target_qd")

    @property
    def target_qdd(self) -> Array | None:
        """Accelerations of the joint targets (T, n), rad/s^2; None where not recorded."""
        return self.columns.get("target_qdd")

    @property
    def actual_q(self) -> Array | None:
        """Measured joint positions (T, n), rad; None where they were not recorded."""
        return self.columns.get("actual_q")

    @property
    def actual_qd(self) -> Array | None:
        """Measured joint velocities (T, n), rad/s; None where they were not recorded."""
        return self.columns.get("actual_qd")

    @property
    def q(self) -> Array:
        """Joint positions (T, n), rad: as measured, else the controller's targets.

        Raises:
            UnusableSamples: The log has neither.
        """
        for positions in (self.actual_q, self.target_q):
            if positions is not None:
                return positions
        raise UnusableSamples(
            f"joints of {self.name}", "neither actual_q nor target_q was recorded."
        )

    @cached_property
    def joint_velocities(self) -> Array:
        """Velocities of the joints (T, n), rad/s; callers must not change the array.

        They are the velocities of the joint targets if there are targets, else the measured ones.
        Velocities that were not recorded are differentiated from the positions.
        """
        if self.target_q is not None:
            positions = self.target_q
            velocities = self.target_qd
        else:
            positions = self.q
            velocities = self.actual_qd
        # A recorder that was not sent the velocities may write zeros.
        if velocities is None or not velocities.any():
            return differentiate(self.times, positions)
        return np.nan_to_num(velocities)

    @property
    def duration(self) -> float:
        """Time from the first sample to the last, s."""
        return float(self.times[-1] - self.times[0])

    def samples(self, rows: slice = slice(None)) -> Samples:
        """Return the samples of some rows in the form in which identification takes them.

        The commands are those of the whole log: identification finds which of them were used.
        """
        commands = self.position_commands
        return Samples(
            times=self.times[rows],
            columns={name: values[rows] for name, values in self.columns.items()},
            notes=self.notes,
            commands=None if commands is None else commands.values,
            cycle=self.cycle,
        )


def joint_names(count: int) -> tuple[str, ...]:
    """Return the names of the joints of a log that names none: UR's for six joints."""
    if count == len(UR_JOINTS):
        return UR_JOINTS
    return tuple(f"joint_{number}" for number in range(1, count + 1))
