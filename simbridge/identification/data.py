"""The samples that an identification reads, and the result that it returns.

Samples come from a recording of a controller's RTDE outputs or from the log of a run. The result is
printed by `simbridge identify --json`, and its part for `simbridge run --plant` is written as
plant.toml; docs/identify.md describes both. All values are in SI units, and every uncertainty is
one standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import tomli_w

from simbridge.errors import NotARun, OutputError, UnusableSamples
from simbridge.files.writing import write_file
from simbridge.identification.target_motion import NotIdentified
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import counted, join_words
from simbridge.trajectory.rtde_recording import read_rtde

# Largest position of a joint, rad: UR's joints turn by one turn to either side. A larger number is
# in degrees.
MAX_POSITION = 2.0 * np.pi + 0.2


@dataclass(frozen=True, eq=False)
class Samples:
    """The recorded states of a controller, one row per sample.

    Attributes:
        times: Stamps by the controller's clock (T,), s, strictly increasing.
        columns: Recorded quantities, each (T, width), by UR's field names (target_q, ...); poses
            are in the pendant's base.
        notes: Sentences about how the samples were read.
        commands: Joint positions that were sent to servoj (K, n), rad; None if they are not known.
        cycle: The controller's cycle, s; None if it is not known.
    """

    times: Array
    columns: Mapping[str, Array] = field(default_factory=dict)
    notes: Sequence[str] = ()
    commands: Array | None = None
    cycle: float | None = None

    def need(self, *names: str) -> list[Array]:
        """Return the columns with these names.

        Raises:
            NotIdentified: A column was not recorded.
        """
        missing = [name for name in names if name not in self.columns]
        if missing:
            verb = "was" if len(missing) == 1 else "were"
            raise NotIdentified(f"{join_words(missing)} {verb} not recorded")
        return [self.columns[name] for name in names]

    def check_joints(self, robot: Robot | None) -> None:
        """Check that the joint positions of recording and commands are the robot's, in radians.

        Args:
            robot: The arm; None if it is not known.

        Raises:
            UnusableSamples: They have another number of joints, or are in degrees.
        """
        recorded = self.columns.get("target_q", self.columns.get("actual_q"))
        if recorded is not None:
            _check_positions("recording", recorded, robot)
        if self.commands is not None:
            _check_positions("commands", self.commands, robot)


def _check_positions(source: str, q: Array, robot: Robot | None) -> None:
    """Check joint positions; see `Samples.check_joints`.

    Args:
        source: Source of the positions, for messages: "recording" or "commands".
        q: Joint positions (T, n), rad.
        robot: The arm; None if it is not known.
    """
    joints = q.shape[1]
    if robot is not None and joints != robot.n:
        raise UnusableSamples(
            source,
            f"it was recorded on an arm with {counted(joints, 'joint')}, but the "
            f"{robot.title or robot.name} has {robot.n}; name the right robot.",
        )

    # The last joint of some arms turns without limit, so it is not checked.
    if joints == 1:
        return
    largest_position = float(np.abs(q[:, :-1]).max(initial=0.0))
    if largest_position > MAX_POSITION:
        raise UnusableSamples(
            f"joint positions of the {source}",
            f"joint positions reach {largest_position:.4g}, which would be more than a full turn "
            "in radians; they seem to be in degrees. Convert them to radians.",
        )


def read_recording_samples(path: str | Path) -> Samples:
    """Read the samples of an RTDE recording.

    Raises:
        InputFileError: The recording cannot be read.
    """
    recording = read_rtde(path)
    return Samples(recording.times, recording.columns, recording.notes)


def read_run_samples(path: str | Path) -> Samples:
    """Read the samples of a run, with the commands that it sent.

    Raises:
        NotARun, LogReadError: The run cannot be read, or has fewer than two samples.
    """
    directory = RunDirectory.open(path)
    log = directory.log()
    cycle = directory.settings().backend.period
    if len(log.stamp) < 2:
        raise NotARun(path, "log.mcap", "it contains fewer than two samples")

    # Keep rows with a later stamp than the row before, and columns that were recorded in all rows.
    is_new = np.concatenate([[True], np.diff(log.stamp) > 0.0])
    columns = {
        "target_q": log.controller_target,
        "target_qd": log.controller_target_velocity,
        "target_qdd": log.controller_target_acceleration,
        "actual_q": log.position,
        "actual_qd": log.velocity,
    }
    recorded_columns = {
        name: values[is_new] for name, values in columns.items() if np.isfinite(values).all()
    }
    return Samples(log.stamp[is_new], recorded_columns, commands=sent_commands(path), cycle=cycle)


def sent_commands(path: str | Path) -> Array:
    """Read the commands (K, n), rad, that a run sent, in order.

    With feedforward they differ from its setpoints.

    Raises:
        NotARun, LogReadError: The run cannot be read.
    """
    log = RunDirectory.open(path).log()
    return log.command if np.isfinite(log.command).all() else log.setpoint


class ServojResult(TypedDict):
    """The identified tuning of servoj.

    `phase_s` is how long after the beginning of a cycle a call begins, and `call_s` how long it
    lasts; both are null without commands. `uncertainty` is `{gain, lookahead_s}`. `residual_rad`,
    the Euclidean distance over all joints, is `{median, p99}`.
    """

    gain: float
    lookahead_s: float
    phase_s: float | None
    call_s: float | None
    uncertainty: dict[str, float]
    residual_rad: dict[str, float]


class PredictionResult(TypedDict):
    """Statistics of predicted minus recorded joint targets, over all joints and rows.

    `restarts` is how often the prediction restarted from a recorded row.
    """

    rms_rad: float
    median_rad: float
    max_rad: float
    restarts: int


class JointLag(TypedDict):
    """Lag of one joint; null if it moved too little. `residual_rad` is `{rms}`."""

    lag_s: float | None
    residual_rad: dict[str, float]


class JointServoResult(TypedDict):
    """Lag from target_q to actual_q, of all joints together and of each.

    `residual_rad` is `{rms}` of what remains after the lag is removed.
    """

    lag_s: float
    uncertainty: dict[str, float]
    residual_rad: dict[str, float]
    per_joint: list[JointLag]


class KinematicsResult(TypedDict):
    """Comparison of the chain's TCP poses with the controller's.

    `tcp` is the tool in the flange's frame: x y z (m) and a rotation vector (rad); null if it is
    uncertain. `source` is `nominal`, `given` or `estimated`.
    """

    residual_m: dict[str, float]
    tcp: list[float] | None
    source: str
    uncertainty: dict[str, list[float] | None]


class Measured(TypedDict):
    """An identified value and its standard deviation."""

    value: float
    uncertainty: float


class FrictionResult(TypedDict):
    """Friction of each joint; null for a joint that moved too little.

    `uncertainty` has one standard deviation of each value, under the same names.
    """

    coulomb_a: list[float | None]
    viscous_a_s_per_rad: list[float | None]
    uncertainty: dict[str, list[float | None]]


class Identification(TypedDict):
    """The identified properties of an arm.

    A property that was not identified is None, and `not_identified` has the reason.
    """

    robot: str | None
    cycle_s: float | None
    servoj: ServojResult | None
    prediction: PredictionResult | None
    joint_servo: JointServoResult | None
    kinematics: KinematicsResult | None
    payload_kg: Measured | None
    friction: FrictionResult | None
    not_identified: dict[str, str]
    notes: list[str]


def write_plant(path: str | Path, identification: Identification, recording: str) -> None:
    """Write what a simulation needs of an identification as plant.toml, replacing the file.

    Args:
        path: The file.
        identification: The identified arm.
        recording: Name of the recording, which the file states as its source.

    Raises:
        OutputError: The tuning of servoj was not identified, or the file cannot be written.
    """
    servoj = identification["servoj"]
    if servoj is None:
        raise OutputError(
            path,
            f"servoj's tuning was not identified: {identification['not_identified']['servoj']}",
        )
    tables: dict[str, Any] = {
        "servoj": {
            "gain": servoj["gain"],
            "lookahead_s": servoj["lookahead_s"],
            "phase_s": servoj["phase_s"] or 0.0,
        }
    }
    uncertainty: dict[str, Any] = {**servoj["uncertainty"]}

    joint_servo = identification["joint_servo"]
    if joint_servo is not None:
        tables["joint_servo"] = {"lag_s": max(joint_servo["lag_s"], 0.0)}
        uncertainty |= joint_servo["uncertainty"]

    payload = identification["payload_kg"]
    if payload is not None:
        tables["payload"] = {"mass_kg": payload["value"]}
        uncertainty["mass_kg"] = payload["uncertainty"]

    friction = identification["friction"]
    if friction is not None:
        tables["friction"] = {
            "coulomb_a": _numbers(friction["coulomb_a"]),
            "viscous_a_s_per_rad": _numbers(friction["viscous_a_s_per_rad"]),
        }
        uncertainty |= {name: _numbers(row) for name, row in friction["uncertainty"].items()}

    tables["uncertainty"] = uncertainty
    tables["source"] = {
        "recording": recording,
        "robot": identification["robot"] or "",
        "cycle_s": identification["cycle_s"],
        "date": date.today(),
    }
    write_file(path, b"# Written by simbridge identify.\n\n" + tomli_w.dumps(tables).encode())


def _numbers(values: list[float | None]) -> list[float]:
    """Return values with NaN for None."""
    return [math.nan if value is None else value for value in values]
