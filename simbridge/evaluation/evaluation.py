"""A run read back from its directory as arrays: poses along the pipeline, error budget, contour error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import SimbridgeError
from simbridge.evaluation.metrics.delays import MAX_CORRELATED, sampled
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
from simbridge.robot.kinematics import joint_origins, tool_poses
from simbridge.robot.pose import Array
from simbridge.servo.law import ServojLaw
from simbridge.sessions.figures import Session
from simbridge.sessions.record import read_events, read_inputs
from simbridge.trajectory.trajectory import Trajectory
from simbridge.ur.tables import RuntimeState

POSES = ("reference", "target", "solution", "setpoint", "attained")
"""The poses of the pipeline."""


def _chain(record: KinematicsRecord) -> tuple[Array, NDArray[np.bool_]]:
    """Return the joints' placements (n + 1, 4, 4), and which joints are prismatic (n,)."""
    placements = np.array(record.placements, dtype=float).reshape(-1, 4, 4)
    return placements, np.array(record.prismatic, dtype=bool)


def _recorded_plan(record: SessionRecord, log: LogColumns) -> Plan:
    """What a live session was asked for and sent, as a plan: its targets are its reference."""
    stamps, poses = log.stamp, log.target
    if not len(stamps):
        home = np.array(record.robot.home, dtype=float)
        stamps, poses = np.zeros(1), tool_poses(*_chain(record.kinematics), home[None])
    checksum = record.kinematics.checksum
    trajectory = Trajectory(stamps, poses, source="live inputs")
    times = trajectory.elapsed.copy()
    joints = log.solution.copy(), log.setpoint.copy(), log.limited.copy()
    return Plan(checksum, record.backend.period, trajectory, "zero-order", times, *joints)


@dataclass(frozen=True)
class Evaluation:
    """A run, read back from its directory alone: nothing in it comes from the process that made the run.

    All poses are (T, 7) from base_link to the TCP and belong to the stamps `log.stamp`.

    Attributes:
        settings, plan, log: Contents of settings.toml, plan.npz and log.mcap, the last as far as it was written.
    """

    directory: RunDirectory
    settings: Record
    plan: Plan
    log: LogColumns

    @staticmethod
    def of(directory: RunDirectory) -> Evaluation:
        """Read a run.

        Raises:
            NotARun, LogReadError: A part is missing or broken.
        """
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
            NotARun, LogReadError: A part is missing or broken.
            SimbridgeError: The run has no sample.
        """
        evaluation = Evaluation.of(RunDirectory.open(path))
        if not evaluation.has_samples:
            why = "the run ended before the arm reached the start of its plan"
            if isinstance(evaluation.settings, SessionRecord):
                why = "the session was never engaged"
            raise SimbridgeError(f"{path} holds no sample: {why}.")
        return evaluation

    @property
    def has_samples(self) -> bool:
        """Whether anything was logged: a run may end before the arm reaches the start of its plan."""
        return len(self.log.stamp) > 0

    @cached_property
    def chain(self) -> tuple[Array, NDArray[np.bool_]]:
        """The kinematic chain: placements of the joints (n + 1, 4, 4), and which joints are prismatic (n,)."""
        return _chain(self.settings.kinematics)

    def tool(self, joints: Array) -> Array:
        """Tool poses (T, 7) at joint positions (T, n), rad."""
        self.log.arrays.release()
        return tool_poses(*self.chain, joints)

    def column(self, name: str) -> Array:
        """A column of the log; the memory of those that were used before is given back."""
        self.log.arrays.release()
        column: Array = getattr(self.log, name)
        return column

    @property
    def task(self) -> str:
        """The part of a target that the solver was to attain: "pose", "axis" or "position"."""
        return self.settings.solver.task or "pose"

    # Of an hour each is 0.1 GB: what is needed once is not kept.
    @property
    def reference(self) -> Array:
        """The continuous path at the stamps; what the task leaves free is taken from the solution."""
        poses = self.plan.trajectory.reference(self.column("plan_time"))
        return (
            poses if self.task == "pose" else adopt_free_components(self.task, poses, self.solution)
        )

    @property
    def solution(self) -> Array:
        """Tool poses at the solver's joint positions."""
        return self.tool(self.log.solution)

    @property
    def setpoint(self) -> Array:
        """Tool poses where the joints should be."""
        return self.tool(self.log.setpoint)

    def _pipeline(self, rows: slice) -> dict[str, Array]:
        """Of these samples the poses of the pipeline, by the names in `POSES`."""
        log, solution = self.log, self.tool(self.log.solution[rows])
        reference = self.plan.trajectory.reference(log.plan_time[rows])
        setpoint, attained = self.tool(log.setpoint[rows]), self.tool(log.position[rows])
        wanted = [
            adopt_free_components(self.task, poses, solution)
            for poses in (reference, log.target[rows])
        ]
        log.arrays.release()
        return dict(zip(POSES, [*wanted, solution, setpoint, attained], strict=True))

    def _predicted(self, rows: slice) -> Array | None:
        return None if self.predicted_joints is None else self.tool(self.predicted_joints[rows])

    @property
    def is_simulated(self) -> bool:
        """Whether the arm was simulated."""
        return self.settings.backend.simulated_time

    @cached_property
    def servo(self) -> ServojLaw | None:
        """The servo law that the commands were sent to, as configured; None for an ideal servo, and for old runs."""
        return self.settings.backend.servo_law if self.has_samples else None

    @cached_property
    def predicted_joints(self) -> Array | None:
        """Joint positions (T, n), rad, that the servo law makes of the commands; None if no servo law is known.

        From the controller's target of the first sample on, nothing measured is used. Where a sample is missing, the
        command before it holds.
        """
        if self.servo is None:
            return None
        followed = self.followed(self.servo)
        return self._by_blocks(lambda rows: {"followed": followed[rows]})["followed"]

    def followed(self, law: ServojLaw) -> Array:
        """What a servo law makes of the commands of this run: see `predicted_joints`."""
        log, period = self.log, self.plan.period
        calls = np.rint((log.stamp - log.stamp[0]) / period).astype(int)
        # The newest command of each call.
        newest = np.searchsorted(calls, np.arange(calls[-1] + 1), side="right") - 1
        velocity = log.controller_target_velocity[0]
        cycles = round(period / law.cycle)
        joints = law.follow(
            log.command[newest],
            call=period,
            # The first command's call has ended, except for the phase.
            begin=(self.settings.backend.phase or 0.0) - period,
            q=self.column("controller_target")[0],
            qd=np.where(np.isfinite(velocity), velocity, 0.0),
            cycles=max(int(calls[-1]), 0) * cycles,
        ).q[cycles - 1 :: cycles]
        return np.concatenate([log.controller_target[:1], joints])[calls]

    @property
    def predicted(self) -> Array | None:
        """Tool poses at the joint positions that the servo law makes of the commands; None if no law is known."""
        return self._predicted(slice(None))

    @cached_property
    def attained(self) -> Array:
        """Tool poses at the measured joint positions."""
        return self._by_blocks(lambda rows: {"attained": self.tool(self.log.position[rows])})[
            "attained"
        ]

    @property
    def budget(self) -> ErrorBudget[PoseError]:
        """The tracking error of every sample, split by source."""
        return self._budget(slice(None))

    def _budget(self, rows: slice) -> ErrorBudget[PoseError]:
        return error_budget(**self._pipeline(rows), predicted=self._predicted(rows))

    @cached_property
    def errors(self) -> ErrorBudget[ErrorSize]:
        """How large the tracking error of every sample and its parts are; of long runs a sixth of `budget`'s memory."""

        def sizes(rows: slice) -> dict[tuple[str, str], Array]:
            parts = [
                (name, part) for name, part in vars(self._budget(rows)).items() if part is not None
            ]
            distances = {(name, "distance"): part.distance for name, part in parts}
            return distances | {(name, "angle"): part.angle for name, part in parts}

        found = self._by_blocks(sizes)
        parts = dict.fromkeys(name for name, _ in found)
        return ErrorBudget(
            **{name: ErrorSize(found[name, "distance"], found[name, "angle"]) for name in parts}
        )

    def _by_blocks(self, values: Callable[[slice], Mapping[Any, Array]]) -> dict[Any, Array]:
        """Arrays of all samples by name, of the values of some samples: memory holds what is in use of them."""
        count = len(self.log.stamp)
        blocks = (values(slice(begin, begin + BLOCK)) for begin in range(0, max(count, 1), BLOCK))
        return self.log.arrays.gather(count, blocks)

    @cached_property
    def tracking(self) -> Tracking:
        """Statistics of the error budget, and the delays."""
        stamps = self.log.stamp
        # A longer run is compared at evenly spaced samples: more would not change its delays and shares.
        few = slice(None, None, max(1, -(-len(stamps) // MAX_CORRELATED)))
        delays = pipeline_delays(
            stamps[few], self.reference_at, [*self._pipeline(few).values()], self._predicted(few)
        )
        shares = error_shares(self._budget(few))
        return errors_and_delays(
            stamps, self.reference_at, self.attained, self.errors, delays, shares
        )

    @cached_property
    def contour(self) -> ContourError:
        """Contour error and lag along the path of every sample."""
        found = vars(self.contour_of(self.log.stamp, self.attained[:, :3]))
        return ContourError(
            **self._by_blocks(lambda rows: {name: values[rows] for name, values in found.items()})
        )

    def contour_of(self, times: Array, positions: Array) -> ContourError:
        """The contour error of positions (K, 3) at instants (K,) of the log's clock."""
        path, lag = self.plan.trajectory, self.tracking["delay_s"] or 0.0
        due, expected = (
            np.interp(times - d, self.log.stamp, self.log.plan_time) for d in (0.0, lag)
        )
        return contour_error(path.elapsed, path.poses[:, :3], due, positions, expected=expected)

    @property
    def torque(self) -> Array | None:
        """Measured torques (T, n), N m; None if the controller reports currents, to which no torque limit applies."""
        return self.column("effort") if self.settings.backend.effort_unit != "A" else None

    def reference_at(self, times: Array) -> Array:
        """The continuous path (K, 7) at instants (K,) of the log's clock, within its range."""
        poses = self.plan.trajectory.reference(np.interp(times, self.log.stamp, self.log.plan_time))
        return (
            poses
            if self.task == "pose"
            else adopt_free_components(
                self.task, poses, sampled(self.log.stamp, self.solution)(times)
            )
        )

    @cached_property
    def poses(self) -> dict[str, Array]:
        """All poses of the pipeline, by the names in `POSES`."""
        return self._by_blocks(self._pipeline)

    def samples(self, rows: slice = ALL) -> RunSamples:
        """What is exported of these samples."""
        # First, while there is room: the servo law's own arrays are large.
        predicted = self._predicted(rows)
        poses = {name: values[rows] for name, values in self.poses.items()}
        parts = vars(error_budget(**poses, predicted=predicted)).items()
        errors = {
            part: (error.translation, error.rotation) for part, error in parts if error is not None
        }
        log = self.log.part(rows)
        unit = self.settings.backend.effort_unit
        return RunSamples(
            log, poses, errors, joint_origins(*self.chain, log.position), self.chain[1], unit
        )

    @cached_property
    def session(self) -> Session | None:
        """What a live session has besides; None for a replay.

        Raises:
            NotARun: inputs.jsonl or events.jsonl is missing or broken.
        """
        if not isinstance(self.settings, SessionRecord):
            return None
        path = self.directory.path
        return Session(self.log, self.plan.period, read_inputs(path), read_events(path))

    @property
    def outcome(self) -> str:
        """How the run ended, as far as its directory shows: see `RunDirectory.outcome`."""
        at, end = self.log.plan_time, self.plan.trajectory_times[-1]
        arrived = self.has_samples and bool(at[-1] >= end - 0.5 * self.plan.period)
        return self.directory.outcome(complete=self.log.complete, arrived=arrived)

    @property
    def _paused(self) -> NDArray[np.bool_]:
        return np.isin(self.column("runtime_state"), (RuntimeState.PAUSING, RuntimeState.PAUSED))

    @property
    def pauses(self) -> Array:
        """Begin and end (P, 2) of each pause of the controller's program, as stamps in s."""
        change = np.diff(self._paused.astype(int), prepend=0, append=0)
        last = len(self.log.stamp) - 1
        ends = [
            self.log.stamp[np.minimum(np.flatnonzero(change == sign), last)] for sign in (1, -1)
        ]
        return np.column_stack(ends)

    @property
    def speed_scaling(self) -> Array:
        """The controller's speed scaling, 0 to 1, of the samples (S,) outside pauses."""
        # The sample after a pause still has the pause's scaling.
        apart = self._paused | np.concatenate(([False], self._paused[:-1]))
        return np.ones(1) if apart.all() else self.log.speed_scaling[~apart]

    @property
    def max_effort(self) -> Array:
        """Torque limits (n,), N m."""
        return np.array(self.settings.robot.max_effort, dtype=float)

    @property
    def max_velocity(self) -> Array:
        """Velocity limits (n,), rad/s."""
        return np.array(self.settings.robot.max_velocity, dtype=float)
