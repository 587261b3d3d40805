"""Reads a run of simbridge, or a live session, into a `ControllerLog`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import NotARun
from simbridge.evaluation.evaluation import Evaluation
from simbridge.judging.log import Clock, Commands, ControllerLog, LogSource, Signal
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import SessionRecord
from simbridge.resources import robot_files
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot


def arm_of_run(path: str | Path) -> Robot | None:
    """Return the arm of a run: from robots/, or from its own file; None if that file is gone.

    Raises:
        NotARun: The run cannot be read.
    """
    record = RunDirectory.open(path).settings().robot
    if record.name in robot_files():
        return load_robot(record.name)
    return load_robot(record.source) if Path(record.source).is_file() else None


def read_run_log(path: Path) -> ControllerLog:
    """Read a run or a live session.

    Args:
        path: Directory of the run or session.

    Raises:
        NotARun, LogReadError: It cannot be read, or has fewer than two samples.
    """
    evaluation = Evaluation.of(path)
    log = evaluation.log
    if len(log.stamp) < 2:
        raise NotARun(path, "log.mcap", "it contains fewer than two samples")

    # A paused controller repeats its stamp.
    is_new: Flags = np.concatenate([[True], np.diff(log.stamp) > 0.0])
    stamps = log.stamp[is_new]
    times = stamps - stamps[0]
    settings = evaluation.settings
    period = settings.backend.period
    is_session = isinstance(settings, SessionRecord)

    def signal(values: Array | NDArray[np.int32]) -> Signal:
        """Return a column of the log over time."""
        return Signal(times, np.asarray(values[is_new], dtype=float))

    # Quantities with a value per row, under the names that UR gives them.
    columns = {
        "target_q": log.controller_target,
        "target_qd": log.controller_target_velocity,
        "target_qdd": log.controller_target_acceleration,
        "actual_q": log.position,
        "actual_qd": log.velocity,
    }
    # Without commands of its own a run sent its setpoints. A command is sent one control period
    # before the stamp of its sample.
    has_commands = bool(np.isfinite(log.command).all())
    commands = log.command if has_commands else log.setpoint
    sent_at = times - period

    return ControllerLog(
        name=str(path),
        source=LogSource.SESSION if is_session else LogSource.RUN,
        clock=Clock.CONTROLLER,
        start=float(stamps[0]),
        times=times,
        joint_names=log.joint_names,
        columns={
            name: values[is_new] for name, values in columns.items() if np.isfinite(values).all()
        },
        setpoints=signal(log.setpoint),
        reference_poses=signal(evaluation.reference),
        attained_poses=signal(evaluation.attained),
        position_commands=Commands(commands[is_new], sent_at),
        speed_scaling=signal(log.speed_scaling),
        robot_mode=signal(log.robot_mode),
        safety_mode=signal(log.safety_mode),
        program_state=signal(log.runtime_state),
        robot=settings.robot.name,
        cycle=period,
    )
