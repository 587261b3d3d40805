"""What a controller reported, from a recording of its RTDE outputs or from a run: the input of an identification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from simbridge.errors import NotARun, UnusableSamples
from simbridge.evaluation.identification.servoj import NotIdentified
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.text import counted, listed
from simbridge.trajectory.rtde_recording import read_rtde

# A joint that turns further (rad) is in degrees: UR's joints turn by two turns, and so does this.
_LARGEST = 2.0 * np.pi + 0.2


@dataclass(frozen=True, eq=False)
class Samples:
    """A controller's state, one row a sample; strictly increasing stamps.

    Attributes:
        columns: By UR's field names (target_q, ...), each (T, width), SI units; poses in the pendant's base.
    """

    times: Array  # stamps (T,) by the controller's clock, s
    columns: Mapping[str, Array] = field(default_factory=dict)
    notes: Sequence[str] = ()  # sentences about how it was read
    commands: Array | None = None  # joint targets that were sent (K, n), rad, where they are known
    cycle: float | None = None  # the controller's, s, where it is known

    def need(self, *names: str) -> list[Array]:
        """Columns; raises `NotIdentified` where one was not recorded."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise NotIdentified(f"{listed(missing)} {'was' if len(missing) == 1 else 'were'} not recorded")
        return [self.columns[name] for name in names]

    def check_joints(self, robot: Robot | None) -> None:
        """Check that the joint positions of the recording and of the commands are radians, and the robot's.

        Raises:
            UnusableSamples: They are not.
        """
        recorded = self.columns.get("target_q", self.columns.get("actual_q"))
        for what, q in (("recording", recorded), ("commands", self.commands)):
            if q is None:
                continue
            if robot is not None and q.shape[1] != robot.n:
                joints = f"{counted(q.shape[1], 'joint')}, but the {robot.title or robot.name} has {robot.n}"
                raise UnusableSamples(what, f"it is of an arm with {joints}; name the robot that it is of.")
            # The last joint of some arms turns without end.
            if q.shape[1] > 1 and (largest := float(np.abs(q[:, :-1]).max(initial=0.0))) > _LARGEST:
                reason = f"joint positions reach {largest:.4g}, more than a full turn in radians: they are in degrees"
                raise UnusableSamples(f"joint positions of the {what}", f"{reason}; give them in radians.")


def of_recording(path: str | Path) -> Samples:
    """The samples of an RTDE recording.

    Raises:
        InputFileError: It cannot be read.
    """
    recording = read_rtde(path)
    return Samples(recording.times, recording.columns, recording.notes)


def of_run(path: str | Path) -> Samples:
    """The samples of a run, with the setpoints that it sent.

    Raises:
        NotARun, LogReadError: It cannot be read, or has fewer than two samples.
    """
    directory = RunDirectory.open(path)
    log, period = directory.log(), float(directory.settings()["backend"]["period"])
    if len(log.stamp) < 2:
        raise NotARun(path, "log.mcap", "it holds fewer than two samples")
    new = np.concatenate([[True], np.diff(log.stamp) > 0.0])
    columns = {
        "target_q": log.controller_target,
        "target_qd": log.controller_target_velocity,
        "target_qdd": log.controller_target_acceleration,
        "actual_q": log.position,
        "actual_qd": log.velocity,
    }
    given = {name: values[new] for name, values in columns.items() if np.isfinite(values).all()}
    return Samples(log.stamp[new], given, commands=sent_commands(path), cycle=period)


def sent_commands(path: str | Path) -> Array:
    """The joint targets (K, n), rad, that a run sent, in order: with feedforward they are not its setpoints.

    Raises:
        NotARun, LogReadError: It cannot be read.
    """
    log = RunDirectory.open(path).log()
    return log.command if np.isfinite(log.command).all() else log.setpoint
