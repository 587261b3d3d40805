"""A run read back from its directory as arrays.

They are the poses along the pipeline, the error budget, the contour error, and what the controller
did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import SimbridgeError
from simbridge.evaluation.metrics.delays import MAX_CORRELATED, motion_through
from simbridge.evaluation.metrics.path import ContourError, contour_error
from simbridge.evaluation.metrics.samples import BLOCK, ErrorSize, PoseError
from simbridge.evaluation.metrics.tracking import (
    ErrorBudget,
    Tracking,
    error_budget,
    error_shares,
    errors_and_delays,
    pipeline_delays,
)
from simbridge.ik.targets import adopt_free_components
from simbridge.planning.plan import Plan
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import KinematicsRecord, Record, SessionRecord
from simbridge.recording.sample_table import ALL, RunSamples
from simbridge.recording.samples import LogColumns
from simbridge.resources import AnyPath
from simbridge.robot.kinematics import joint_origins, tool_poses
from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw
from simbridge.sessions.figures import SessionFigures
from simbridge.sessions.record import read_events, read_inputs
from simbridge.trajectory.trajectory import Trajectory
from simbridge.ur.tables import RuntimeState

# The poses of the pipeline, in its order.
POSES = ("reference", "target", "solution", "setpoint", "attained")
# The states in which a controller's program is paused.
PAUSE_STATES = (RuntimeState.PAUSING, RuntimeState.PAUSED)


def _chain(record: KinematicsRecord) -> tuple[Array, NDArray[np.bool_]]:
    """Return the joints' placements (n + 1, 4, 4), and which joints are prismatic (n,)."""
    placements = np.array(record.placements, dtype=float).reshape(-1, 4, 4)
    return placements, np.array(record.prismatic, dtype=bool)


def _recorded_plan(record: SessionRecord, log: LogColumns) -> Plan:
    """Return what a live session was asked for and sent, as a plan: its targets are its reference.

    Args:
        record: Settings of the session.
        log: Samples of the session. Without any, the plan's path is the arm's home.
    """
    stamps = log.stamp
    poses = log.target
    if len(stamps) == 0:
        home = np.array(record.robot.home, dtype=float)
        placements, prismatic = _chain(record.kinematics)
        stamps = np.zeros(1)
        poses = tool_poses(placements, prismatic, home[None])

    trajectory = Trajectory(stamps, poses, source="live inputs")
    return Plan(
        checksum=record.kinematics.checksum,
        period=record.backend.period,
        trajectory=trajectory,
        hold="zero-order",
        trajectory_times=trajectory.elapsed.copy(),
        solution=log.solution.copy(),
        setpoints=log.setpoint.copy(),
        limited=log.limited.copy(),
    )


@dataclass(frozen=True)
class Evaluation:
    """A run, read back from its directory alone.

    Nothing in it comes from the process that made the run. All poses are (T, 7) from base_link to
    the TCP and belong to the stamps `log.stamp`.

    Attributes:
        directory: Directory of the run.
        settings: The content of settings.toml.
        plan: The content of plan.npz; of a live session what was asked for and sent.
        log: The content of log.mcap, as far as it was written.
    """

    directory: RunDirectory
    settings: Record
    plan: Plan
    log: LogColumns

    def __repr__(self) -> str:
        return f"<Evaluation of {self.directory.path}: {len(self.log.stamp)} samples>"

    @staticmethod
    def of(run: RunDirectory | AnyPath) -> Evaluation:
        """Read a run.

        Args:
            run: The run's directory: its path, or the object that stands for it.

        Raises:
            NotARun: A part is missing or broken.
            LogReadError: The log is broken.
        """
        directory = run if isinstance(run, RunDirectory) else RunDirectory.open(Path(run))
        settings = directory.settings()
        log = directory.log()
        if isinstance(settings, SessionRecord):
            plan = _recorded_plan(settings, log)
        else:
            plan = directory.plan(Plan.from_arrays)
        return Evaluation(directory, settings, plan, log)

    @staticmethod
    def read(path: Path) -> Evaluation:
        """Read a run that has at least one sample.

        Raises:
            NotARun: A part is missing or broken.
            LogReadError: The log is broken.
            SimbridgeError: The run has no sample.
        """
        evaluation = Evaluation.of(path)
        if not evaluation.has_samples:
            reason = "the run ended before the arm reached the start of its plan"
            if isinstance(evaluation.settings, SessionRecord):
                reason = "the session was never engaged"
            raise SimbridgeError(f"{path} contains no samples: {reason}.")
        return evaluation

    # What ran.

    @property
    def has_samples(self) -> bool:
        """True if the log has at least one sample.

        A run may end before the arm reaches the start of its plan.
        """
        return len(self.log.stamp) > 0

    @property
    def is_simulated(self) -> bool:
        """True if the arm was simulated."""
        return self.settings.backend.simulated_time

    @property
    def task(self) -> str:
        """The part of a target that the solver was to attain: "pose", "axis" or "position"."""
        return self.settings.solver.task or "pose"

    @cached_property
    def servo(self) -> ServojLaw | None:
        """The servo law that the commands were sent to, as configured; None for an ideal servo."""
        return self.settings.backend.servo_law if self.has_samples else None

    @cached_property
    def chain(self) -> tuple[Array, NDArray[np.bool_]]:
        """The kinematic chain.

        It has the placements of the joints (n + 1, 4, 4), and which joints are prismatic (n,).
        """
        return _chain(self.settings.kinematics)

    @property
    def max_effort(self) -> Array:
        """Torque limits (n,), N m."""
        return np.array(self.settings.robot.max_effort, dtype=float)

    @property
    def max_velocity(self) -> Array:
        """Velocity limits (n,), rad/s."""
        return np.array(self.settings.robot.max_velocity, dtype=float)

    @property
    def outcome(self) -> str:
        """The outcome of the run, as its directory shows it: "completed", or why it ended."""
        plan_time = self.log.plan_time
        end = self.plan.trajectory_times[-1]
        has_arrived = self.has_samples and bool(plan_time[-1] >= end - 0.5 * self.plan.period)
        return self.directory.outcome(complete=self.log.complete, arrived=has_arrived)

    @cached_property
    def session(self) -> SessionFigures | None:
        """The inputs, events and figures of a live session; None for a replay.

        Raises:
            NotARun: inputs.jsonl or events.jsonl is missing or broken.
        """
        if not isinstance(self.settings, SessionRecord):
            return None
        path = self.directory.path
        return SessionFigures(
            self.log, self.plan.period, read_inputs(path), events=read_events(path)
        )

    # The poses of the pipeline. Of an hour each is 0.1 GB: what is needed once is not kept.

    def tool(self, joints: Array) -> Array:
        """Return tool poses (T, 7) at joint positions (T, n), rad."""
        self.log.arrays.release()
        placements, prismatic = self.chain
        return tool_poses(placements, prismatic, joints)

    def column(self, name: str) -> Array:
        """Return a column of the log; the memory of those that were used before is given back."""
        self.log.arrays.release()
        column: Array = getattr(self.log, name)
        return column

    @property
    def reference(self) -> Array:
        """The continuous path at the stamps.

        Components that the task leaves free are taken from the solution.
        """
        poses = self.plan.trajectory.reference(self.column("plan_time"))
        if self.task == "pose":
            return poses
        return adopt_free_components(self.task, poses, self.solution)

    def reference_at(self, times: Array) -> Array:
        """Return the continuous path (K, 7) at instants (K,) within the log.

        Args:
            times: The instants (K,), s of the log's clock.
        """
        plan_times = np.interp(times, self.log.stamp, self.log.plan_time)
        poses = self.plan.trajectory.reference(plan_times)
        if self.task == "pose":
            return poses
        solution = motion_through(self.log.stamp, self.solution)
        return adopt_free_components(self.task, poses, solution(times))

    @property
    def solution(self) -> Array:
        """Tool poses at the solver's joint positions."""
        return self.tool(self.log.solution)

    @property
    def setpoint(self) -> Array:
        """Tool poses where the joints should be."""
        return self.tool(self.log.setpoint)

    @cached_property
    def attained(self) -> Array:
        """Tool poses at the measured joint positions."""
        columns = self._by_blocks(lambda rows: {"attained": self.tool(self.log.position[rows])})
        return columns["attained"]

    @cached_property
    def poses(self) -> dict[str, Array]:
        """All poses of the pipeline, by the names in `POSES`."""
        return self._by_blocks(self._pipeline)

    def _pipeline(self, rows: slice) -> dict[str, Array]:
        """Return the poses of the pipeline of these samples, by the names in `POSES`."""
        log = self.log
        solution = self.tool(log.solution[rows])
        reference = self.plan.trajectory.reference(log.plan_time[rows])
        setpoint = self.tool(log.setpoint[rows])
        attained = self.tool(log.position[rows])

        # The task may leave components of reference and target free: they are taken from the
        # solution.
        poses = {
            "reference": adopt_free_components(self.task, reference, solution),
            "target": adopt_free_components(self.task, log.target[rows], solution),
            "solution": solution,
            "setpoint": setpoint,
            "attained": attained,
        }
        # Give back the memory of the columns that were read for these samples.
        log.arrays.release()
        return poses

    def _by_blocks(self, values: Callable[[slice], Mapping[Any, Array]]) -> dict[Any, Array]:
        """Compute arrays of all samples block by block: memory need not hold whole arrays.

        Args:
            values: Returns the values of some samples, by name.

        Returns:
            Those of all samples, by name.
        """
        count = len(self.log.stamp)
        begins = range(0, max(count, 1), BLOCK)
        blocks = (values(slice(begin, begin + BLOCK)) for begin in begins)
        return self.log.arrays.gather(count, blocks)

    # What the servo law makes of the commands.

    def predict_joints(self, law: ServojLaw) -> Array:
        """Return the joint positions (T, n), rad, that a servo law makes of this run's commands.

        From the controller's target of the first sample on, nothing measured is used. Where a
        sample is missing, the command before it holds.
        """
        log = self.log
        period = self.plan.period

        # The newest command of each call: a call without a sample has the one before.
        calls = np.rint((log.stamp - log.stamp[0]) / period).astype(int)
        newest = np.searchsorted(calls, np.arange(calls[-1] + 1), side="right") - 1

        cycles_per_call = round(period / law.cycle)
        velocity = log.controller_target_velocity[0]
        motion = law.follow(
            log.command[newest],
            call=period,
            # The first command's call has ended, except for the phase.
            begin=(self.settings.backend.phase or 0.0) - period,
            q=self.column("controller_target")[0],
            qd=np.where(np.isfinite(velocity), velocity, 0.0),
            cycles=max(int(calls[-1]), 0) * cycles_per_call,
        )

        # The joints at the end of each call.
        joints = motion.q[cycles_per_call - 1 :: cycles_per_call]
        return np.concatenate([log.controller_target[:1], joints])[calls]

    @cached_property
    def predicted_joints(self) -> Array | None:
        """Joint positions (T, n), rad, by the configured servo law; None if no law is known.

        See `predict_joints`.
        """
        if self.servo is None:
            return None
        joints = self.predict_joints(self.servo)
        return self._by_blocks(lambda rows: {"predicted": joints[rows]})["predicted"]

    @property
    def predicted(self) -> Array | None:
        """Tool poses at the predicted joint positions; None if no servo law is known."""
        return self._predicted(slice(None))

    def _predicted(self, rows: slice) -> Array | None:
        """Return the predicted tool poses of these samples; None if no servo law is known."""
        if self.predicted_joints is None:
            return None
        return self.tool(self.predicted_joints[rows])

    # The errors.

    @property
    def budget(self) -> ErrorBudget[PoseError]:
        """The tracking error of every sample, split by source."""
        return self._budget(slice(None))

    def _budget(self, rows: slice) -> ErrorBudget[PoseError]:
        """Return the tracking error of these samples, split by source."""
        return error_budget(**self._pipeline(rows), predicted=self._predicted(rows))

    @cached_property
    def errors(self) -> ErrorBudget[ErrorSize]:
        """Sizes of the tracking error of every sample, and of its parts.

        Of long runs it takes a sixth of `budget`'s memory.
        """
        columns = self._by_blocks(self._error_sizes)
        parts = dict.fromkeys(part for part, _ in columns)
        sizes = {
            part: ErrorSize(columns[part, "distance"], columns[part, "angle"]) for part in parts
        }
        return ErrorBudget(**sizes)

    def _error_sizes(self, rows: slice) -> dict[tuple[str, str], Array]:
        """Return distance and angle of these samples' errors, by part and quantity."""
        sizes = {}
        for part, error in vars(self._budget(rows)).items():
            if error is not None:
                sizes[part, "distance"] = error.distance
                sizes[part, "angle"] = error.angle
        return sizes

    @cached_property
    def tracking(self) -> Tracking:
        """Statistics of the error budget, and the delays."""
        stamps = self.log.stamp
        # A longer run is compared at evenly spaced samples: more would not change its delays and
        # shares.
        stride = max(1, math.ceil(len(stamps) / MAX_CORRELATED))
        compared = slice(None, None, stride)

        poses = list(self._pipeline(compared).values())
        delays = pipeline_delays(
            stamps[compared], self.reference_at, poses, predicted=self._predicted(compared)
        )
        shares = error_shares(self._budget(compared))
        return errors_and_delays(
            stamps,
            self.reference_at,
            self.attained,
            budget=self.errors,
            delays=delays,
            shares=shares,
        )

    @cached_property
    def contour(self) -> ContourError:
        """Contour error and lag along the path of every sample."""
        errors = vars(self.contour_of(self.log.stamp, self.attained[:, :3]))

        def columns(rows: slice) -> dict[str, Array]:
            """Return the errors of these samples."""
            return {name: values[rows] for name, values in errors.items()}

        return ContourError(**self._by_blocks(columns))

    def contour_of(self, times: Array, positions: Array) -> ContourError:
        """Return the contour error of positions.

        Args:
            times: Instants (K,), s of the log's clock.
            positions: Positions (K, 3) at the instants, m.
        """
        path = self.plan.trajectory
        lag = self.tracking["delay_s"] or 0.0
        due = np.interp(times, self.log.stamp, self.log.plan_time)
        expected = np.interp(times - lag, self.log.stamp, self.log.plan_time)
        return contour_error(
            path.elapsed, path.poses[:, :3], due, attained=positions, expected=expected
        )

    # What the controller did.

    @property
    def torque(self) -> Array | None:
        """Measured torques (T, n), N m.

        None if the controller reports currents, to which no torque limit applies.
        """
        return self.column("effort") if self.settings.backend.effort_unit != "A" else None

    @property
    def _is_paused(self) -> NDArray[np.bool_]:
        """Mask (T,) of the samples at which the controller's program is paused."""
        return np.isin(self.column("runtime_state"), PAUSE_STATES)

    @property
    def pauses(self) -> Array:
        """Begin and end (P, 2) of each pause of the controller's program, as stamps in s."""
        changes = np.diff(self._is_paused.astype(int), prepend=0, append=0)
        last = len(self.log.stamp) - 1
        begins = np.minimum(np.flatnonzero(changes == 1), last)
        ends = np.minimum(np.flatnonzero(changes == -1), last)
        return np.column_stack([self.log.stamp[begins], self.log.stamp[ends]])

    @property
    def speed_scaling(self) -> Array:
        """The controller's speed scaling, 0 to 1, of the samples (S,) outside pauses."""
        is_paused = self._is_paused
        # The sample after a pause still has the pause's scaling.
        follows_pause = np.concatenate(([False], is_paused[:-1]))
        is_left_out = is_paused | follows_pause
        if is_left_out.all():
            return np.ones(1)
        return self.log.speed_scaling[~is_left_out]

    # What is exported.

    def samples(self, rows: slice = ALL) -> RunSamples:
        """Return what is exported of these samples."""
        # Predict first, while little memory is in use: the servo law's own arrays are large.
        predicted = self._predicted(rows)

        poses = {name: values[rows] for name, values in self.poses.items()}
        errors = {}
        for part, error in vars(error_budget(**poses, predicted=predicted)).items():
            if error is not None:
                errors[part] = (error.translation, error.rotation)

        log = self.log.part(rows)
        placements, prismatic = self.chain
        return RunSamples(
            log=log,
            poses=poses,
            errors=errors,
            origins=joint_origins(placements, prismatic, log.position),
            prismatic=prismatic,
            effort_unit=self.settings.backend.effort_unit,
        )
