"""Runs to report on, made without a simulator: errors are put in by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.evaluation.evaluation import Evaluation
from simbridge.planning.plan import Plan
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import Record
from simbridge.recording.samples import LogColumns
from simbridge.recording.settings_file import read_record
from simbridge.robot.kinematics import tool_poses
from simbridge.trajectory import Trajectory
from tests.records import made_up_tables

Array = NDArray[np.float64]


@dataclass
class MadeUp:
    """A run to be reported.

    The joints swing by `swing` rad about 0.3 rad, each at its own frequency. The offsets of the
    first joint are added along the pipeline, so that they are the parts of the error budget.

    Attributes:
        samples: Number of control periods.
        joints: Number of joints.
        period: Control period, s.
        swing: Amplitude of every joint, rad.
        target_offset: Of the target from the reference, rad.
        solution_offset: Of the solution from the target, rad.
        setpoint_offset: Of the setpoint from the solution, rad.
        plant_offset: Of the attained position from the setpoint, rad.
        plant_delay: How much later than the setpoints the arm is there, s.
        noise: Standard deviation of the attained positions, rad.
        outcome: As summary.json has it.
        complete: The log was closed.
        effort: Joint torques, N m: (T, n), or what has this shape by broadcasting.
        limited: Which setpoints (T,) the limiter changed; none by default.
        speed_scaling: Of the controller (T,), 0 to 1.
        runtime_state: Of the controller's program (T,).
        tolerance: The RMS errors that are allowed: position_m and rotation_rad; None for none.
        settings: Changes of settings.toml, by table.
        summary: Changes of summary.json.
    """

    samples: int = 200
    joints: int = 3
    period: float = 0.008
    swing: float = 0.2
    target_offset: float = 0.0
    solution_offset: float = 0.0
    setpoint_offset: float = 0.0
    plant_offset: float = 0.0
    plant_delay: float = 0.0
    noise: float = 0.0
    outcome: str = "completed"
    complete: bool = True
    effort: Array | float = 1.0
    limited: NDArray[np.bool_] | None = None
    speed_scaling: Array | float = 1.0
    runtime_state: NDArray[np.int32] | int = 2
    tolerance: dict[str, float] | None = None
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    def evaluation(self, directory: Path) -> Evaluation:
        """Return the run, and write its settings into a directory of its own."""
        directory.mkdir(parents=True, exist_ok=True)
        record = self._record()
        times = np.arange(self.samples) * self.period
        first_joint = np.eye(1, self.joints)[0]

        # The joints along the pipeline: reference, target, solution, setpoint, attained.
        reference_q = self._motion(times)
        target_q = reference_q + self.target_offset * first_joint
        solution = reference_q + (self.target_offset + self.solution_offset) * first_joint
        setpoint = solution + self.setpoint_offset * first_joint
        lag = self._motion(times - self.plant_delay) - reference_q
        noise = np.random.default_rng(1).normal(0.0, self.noise, reference_q.shape)
        position = setpoint + lag + self.plant_offset * first_joint + noise
        velocity = 0.0 * position
        if self.samples > 1:
            velocity = np.gradient(position, self.period, axis=0)

        # The tool's poses.
        placements = np.array(record.kinematics.placements).reshape(-1, 4, 4)
        prismatic = np.array(record.kinematics.prismatic)
        target = tool_poses(placements, prismatic, target_q)
        if self.samples:
            reference = tool_poses(placements, prismatic, reference_q)
            path = Trajectory(times, reference, source="made up")
        else:
            path = Trajectory(np.zeros(1), np.eye(1, 7, 6))

        limited = self.limited
        if limited is None:
            limited = np.zeros(self.samples, dtype=bool)
        ones = np.ones(self.samples)
        log = LogColumns(
            joint_names=tuple(record.robot.joint_names),
            frame_id="base_link",
            metadata={},
            complete=self.complete,
            index=np.arange(self.samples),
            stamp=times,
            plan_time=times,
            target=target,
            solution=solution,
            setpoint=setpoint,
            command=setpoint,
            controller_target_velocity=0.0 * setpoint,
            controller_target_acceleration=0.0 * setpoint,
            position=position,
            velocity=velocity,
            effort=np.broadcast_to(np.asarray(self.effort, dtype=float), position.shape),
            controller_target=setpoint,
            speed_scaling=self.speed_scaling * ones,
            robot_mode=ones.astype(np.int32),
            safety_mode=ones.astype(np.int32),
            runtime_state=self.runtime_state * ones.astype(np.int32),
            limited=limited,
            host_monotonic=times,
        )

        plan = Plan("0" * 64, self.period, path, "linear", times, solution, setpoint, limited)
        run = RunDirectory(directory)
        run.write_settings(record)
        return Evaluation(run, record, plan, log)

    def _motion(self, times: Array) -> Array:
        """Return the joints (T, n), rad, at times (T,), s."""
        angular_frequencies = 2.0 + 0.7 * np.arange(self.joints)
        return 0.3 + self.swing * np.sin(times[:, None] * angular_frequencies)

    def _record(self) -> Record:
        """Return the content of settings.toml."""
        tables = made_up_tables(self.joints, self.period)
        for table, changes in self.settings.items():
            tables[table] |= changes
        return read_record(tables)
