"""The samples of a run: one control period as it is written, and all of them as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from simbridge.files.mapped_arrays import MappedArrays
from simbridge.robot.pose import Array

# The types of the fields that are one number per sample: a number itself, or a column of a log.
Count = TypeVar("Count")
Quantity = TypeVar("Quantity")
Code = TypeVar("Code")
Flag = TypeVar("Flag")


@dataclass(frozen=True, slots=True, eq=False)
class SampleFields(Generic[Count, Quantity, Code, Flag]):
    """The quantities that are logged in a control period of an arm of n joints.

    In a log of T samples each field has a row per sample: (T,) for a number, (T, n) for joints,
    (T, 7) for a pose.

    Attributes:
        index: The control period's counter k.
        stamp: The due instant t_k by the controller's clock since the start of the run, s; not
            negative.
        plan_time: Time on the trajectory, s.
        target: The pose (7,) given to the solver, base_link to TCP.
        solution: The solver's joints (n,), rad.
        setpoint: Joint positions (n,) that the joints should have, rad.
        command: The joints (n,) actually sent, rad: the setpoint, except with feedforward.
        position: Measured joints (n,), rad.
        velocity: Measured joint velocities (n,), rad/s.
        effort: Joint torques (n,), N m, or currents, A, where the controller gives only those.
        controller_target: The controller's own target joints (n,), rad.
        controller_target_velocity: Velocities of the controller's targets (n,), rad/s; nan if it
            does not report them.
        controller_target_acceleration: Accelerations of the controller's targets (n,), rad/s^2; nan
            if it does not report them.
        speed_scaling: The controller's speed scaling, 0 to 1.
        robot_mode: The controller's robot mode.
        safety_mode: The controller's safety mode.
        runtime_state: The state of the controller's program.
        limited: Whether the limiter changed this setpoint.
        host_monotonic: The host's monotonic clock, s: the only field that depends on the host.
    """

    index: Count
    stamp: Quantity
    plan_time: Quantity
    target: Array
    solution: Array
    setpoint: Array
    command: Array
    position: Array
    velocity: Array
    effort: Array
    controller_target: Array
    controller_target_velocity: Array
    controller_target_acceleration: Array
    speed_scaling: Quantity
    robot_mode: Code
    safety_mode: Code
    runtime_state: Code
    limited: Flag
    host_monotonic: Quantity


@dataclass(frozen=True, slots=True, eq=False)
class Sample(SampleFields[int, float, int, bool]):
    """One control period."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveSample(Sample):
    """One control period of a live session; its fields are described in simbridge_msgs/Live.

    Attributes:
        period: Number of the period in its loop, from 0.
        input: Number of the input that was taken in this period; 0 for none.
        now: The loop's clock, s.
        rate: Fraction of full speed, 0 to 1.
        speed: Fraction of the wanted step that was made, 0 to 1.
        solver: Time that solver and checks took, s; nan if it was not measured.
        engagement: The engagement to which it belongs.
        order: Request besides inputs in this period (see `Order`).
        fate: Outcome of the input (see `Fate`).
        phase: The session's phase (see `LivePhase`).
        causes: Causes that slowed the arm down (9,): three times name, subject and value; -1 for
            none.
    """

    period: int
    input: int
    now: float
    rate: float
    speed: float
    solver: float
    engagement: int
    order: int
    fate: int
    phase: int
    causes: Array


SAMPLE_FIELDS = tuple(sample_field.name for sample_field in fields(SampleFields))
"""Names of the fields of every sample."""

LIVE_FIELDS = tuple(
    live_field.name for live_field in fields(LiveSample) if live_field.name not in SAMPLE_FIELDS
)
"""Names of the fields that only the samples of a live session have."""


@dataclass(frozen=True, eq=False)
class LogColumns(SampleFields[NDArray[np.int64], Array, NDArray[np.int32], NDArray[np.bool_]]):
    """A log as read-only arrays: each field of a sample over all T samples.

    Attributes:
        joint_names: Names of the n joints.
        frame_id: The frame in which the targets are given.
        metadata: The facts about the run that the writer was given.
        complete: Whether the log was closed; False when the run was killed, still goes on, or its
            disk was full.
        live: The fields of `LiveSample` by name, each (T,) or (T, 9), for a live session; else
            empty.
        arrays: The memory that the columns are parts of; it is given back where a part of a long
            log has been used.
    """

    joint_names: tuple[str, ...]
    frame_id: str
    metadata: Mapping[str, str]
    complete: bool
    live: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    arrays: MappedArrays = field(default_factory=MappedArrays, repr=False)

    def part(self, rows: slice) -> LogColumns:
        """Return the log of these samples."""
        columns = {name: getattr(self, name)[rows] for name in SAMPLE_FIELDS}
        live = {name: column[rows] for name, column in self.live.items()}
        return replace(self, live=live, **columns)
