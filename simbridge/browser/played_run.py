"""A finished run of a scenario in simulation, as the page plays it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.browser.curve import Curve
from simbridge.browser.setup import SOLVER_PREFIX, StudioSetup
from simbridge.browser.snapshot import Snapshot, limit_use
from simbridge.errors import InvalidParameter
from simbridge.evaluation.evaluation import Evaluation
from simbridge.ik.settings import is_function
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import Record
from simbridge.robot.pose import Array
from simbridge.running.run_ending import finalize, record_end
from simbridge.running.run_setup import Prepared, prepare
from simbridge.running.runner import begin, open_backend, stream_plan


@dataclass(frozen=True)
class PlayedRun:
    """A run, and its errors by source.

    Attributes:
        setup: The settings with which it was made.
        prepared: Plan and solver; None for one that was loaded.
        path: Directory of the run.
        times: Times of the samples (T,), s.
        q: Joint positions of the arm (T, n), rad.
        qd: Joint velocities of the arm (T, n), rad/s.
        solution: The solver's joint positions (T, n), rad.
        target: Target of the solver (T, 7).
        errors: Distances by source (T, 5), m: see `SOURCES`.
        tracking: Distance between reference and tool (T,), m.
    """

    setup: StudioSetup
    prepared: Prepared | None
    path: Path
    times: Array
    q: Array
    qd: Array
    solution: Array
    target: Array
    errors: Array
    tracking: Array

    @staticmethod
    def record(setup: StudioSetup, scenario: str, out: Path) -> PlayedRun:
        """Plan a scenario, run it in simulation as fast as it goes, and read it back."""
        prepared = prepare(
            scenario,
            robot=setup.bare_arm,
            solver=setup.solver,
            solver_changes=setup.solver_values,
            options=setup.options,
            backend=setup.engine,
        )
        backend = open_backend(prepared)
        directory = RunDirectory.create(out, prepared.scenario.name)
        begin(prepared, directory)
        with backend:
            stream_plan(prepared, backend, directory, None)
        record_end(directory, "completed", backend)
        return PlayedRun._read(setup, prepared, directory)

    @staticmethod
    def load(path: Path, shown: StudioSetup) -> tuple[PlayedRun, str]:
        """Read a kept run back, and compile its solver.

        Args:
            path: The run directory.
            shown: What the studio shows: the run must be of the same arm; a planar one may have
                other link lengths.

        Returns:
            The run, and the name of its scenario.

        Raises:
            NotARun: The directory is not that of a run.
            LogReadError: A part of it is missing or broken.
            InvalidParameter: The run was made with a custom solver, or with another arm.
        """
        directory = RunDirectory.open(path)
        record = directory.settings()
        setup = _setup_of_run(path, record, shown)
        setup.compile_solver()
        scenario = record.scenario
        return PlayedRun._read(setup, None, directory), scenario.file or scenario.name

    @staticmethod
    def _read(setup: StudioSetup, prepared: Prepared | None, directory: RunDirectory) -> PlayedRun:
        """Read a finished run."""
        evaluation = Evaluation.of(directory)

        # The way from the reference to the arm, whose steps are the sources of the error.
        *stages, attained = evaluation.poses.values()
        predicted = stages[-1] if evaluation.predicted is None else evaluation.predicted
        stages += [predicted, attained]
        errors = []
        for before, after in pairwise(stages):
            errors.append(np.linalg.norm(after[:, :3] - before[:, :3], axis=1))

        log = evaluation.log
        return PlayedRun(
            setup=setup,
            prepared=prepared,
            path=directory.path,
            times=log.stamp - log.stamp[0],
            q=log.position,
            qd=log.velocity,
            solution=log.solution,
            target=evaluation.poses["target"],
            errors=np.column_stack(errors),
            tracking=evaluation.errors.tracking.distance,
        )

    def keep(self) -> Path:
        """Write its report, and copy it to a new directory under runs/, which is returned.

        A run that was loaded is kept already.
        """
        if self.prepared is None:
            return self.path
        backend = open_backend(self.prepared)
        tolerance = self.prepared.options.tolerance
        finalize(RunDirectory.open(self.path), "completed", tolerance, arm=backend)
        return copy_run(self.path, self.prepared.scenario.name)

    @property
    def rms(self) -> float:
        """RMS tracking error, m."""
        return float(np.sqrt(np.mean(self.tracking**2)))

    @property
    def curve(self) -> Curve:
        """Its errors, and what the joints use of their limits."""
        joints = limit_use(self.setup.arm, self.q, self.qd)
        return Curve.of_run(np.column_stack([self.times, self.tracking, self.errors, *joints]))

    def snapshot(self, index: int) -> Snapshot:
        """Return a sample."""
        return Snapshot(
            time=float(self.times[index]),
            q=self.q[index],
            qd=self.qd[index],
            solution=self.solution[index],
            target=self.target[index],
            errors=tuple(self.errors[index].tolist()),
            distance=float(self.tracking[index]),
            angle=0.0,
            causes=(),
        )


def _setup_of_run(path: Path, record: Record, shown: StudioSetup) -> StudioSetup:
    """Return the setup with which a kept run was made.

    Args:
        path: The run directory, for messages.
        record: Record of the run.
        shown: What the studio shows.

    Raises:
        InvalidParameter: The run was made with a custom solver, or with another arm.
    """
    robot = record.robot
    solver = record.solver
    kinematics = record.kinematics
    if solver.name not in shown.solver_names:
        needed = f"made with a solver of simbridge or of this studio, not with {solver.name}"
        raise InvalidParameter("run", path, needed)

    values: dict[str, Any] = {}
    settings = {} if is_function(solver.name) else solver.parameters
    for name, value in settings.items():
        values[SOLVER_PREFIX + name] = tuple(value) if isinstance(value, list) else value
    is_same_arm = robot.name == shown.arm.name
    if is_same_arm and shown.arm.planar:
        chain = np.array(kinematics.placements).reshape(-1, 4, 4)
        values["link_lengths"] = tuple(chain[1:, 0, 3].tolist())

    setup = StudioSetup(
        shown.robot,
        solver.name,
        custom_solvers=shown.custom_solvers,
        values=values,
        base=shown.base,
        backend=shown.backend,
    )
    if not is_same_arm or setup.arm.checksum != kinematics.checksum:
        needed = f"made with the arm of this studio, {shown.arm.name}, and its TCP and kinematics"
        raise InvalidParameter("run", f"{path}, made with {robot.name}", needed)
    return setup


def copy_run(path: Path, name: str) -> Path:
    """Copy a run directory into a new one under runs/, which is returned.

    Args:
        path: The run directory.
        name: Beginning of the new directory's name.
    """
    kept = RunDirectory.create(None, name).path
    shutil.copytree(path, kept, dirs_exist_ok=True)
    return kept
