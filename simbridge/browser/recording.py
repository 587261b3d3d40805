"""A scenario run in simulation, to be played, scrubbed through, and kept."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.browser.setup import SOLVER, StudioSetup
from simbridge.errors import InvalidParameter
from simbridge.evaluation.evaluation import Evaluation
from simbridge.ik.settings import SOLVERS
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.settings_list import repeat_command
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from simbridge.running.run_setup import Prepared, prepare
from simbridge.running.runner import begin, finalize, open_backend, record_end, stream_plan


@dataclass(frozen=True)
class Played:
    """A finished run of a scenario, as the page plays it.

    Attributes:
        setup: With which it was made.
        prepared: Plan and solver; None for one that was loaded.
        path: Its run directory.
        times: Of the samples (T,), s.
        q, qd: Of the arm (T, n), rad and rad/s.
        solution: Joint positions (T, n), rad.
        reference, attained: Positions of the tool (T, 3), m.
        errors: Distances by source (T, 5), m: see `SOURCES`.
        tracking: Between reference and attained (T,), m.
    """

    setup: StudioSetup
    prepared: Prepared | None
    path: Path
    times: Array
    q: Array
    qd: Array
    solution: Array
    reference: Array
    attained: Array
    errors: Array
    tracking: Array


def record(setup: StudioSetup, scenario: str, out: Path) -> Played:
    """Plan a scenario, run it in simulation as fast as it goes, and read it back.

    Raises:
        SimbridgeError: It cannot be planned, or the plan is refused.
    """
    arm = load_robot(setup.robot, lengths=setup.values.get("link_lengths"), **setup.options.links)
    given = {name.removeprefix(SOLVER): value for name, value in setup.values.items() if name.startswith(SOLVER)}
    prepared = prepare(scenario, robot=arm, solver_name=setup.solver, solver_changes=given, options=setup.options)
    backend = open_backend(prepared)
    directory = RunDirectory.create(out, prepared.scenario.name)
    begin(prepared, backend, directory)
    with backend:
        stream_plan(prepared, backend, directory, None)
    record_end(directory, "completed", backend)
    return _read(setup, prepared, directory)


def load(path: Path, shown: StudioSetup) -> tuple[Played, str]:
    """A kept run, read back, and the name of its scenario. Its solver is compiled.

    Args:
        path: The run directory.
        shown: What the studio shows: the run must be of the same arm; a planar one may have other link lengths.

    Raises:
        NotARun, LogReadError: A part of it is missing or broken.
        InvalidParameter: It was made with a custom solver, or with another arm.
    """
    directory = RunDirectory.open(path)
    settings = directory.settings()
    robot, solver, scenario = settings["robot"], settings["solver"], settings["scenario"]
    if solver["name"] not in SOLVERS:
        raise InvalidParameter("run", path, f"made with a solver of simbridge, not with {solver['name']}")
    values = {SOLVER + name: _plain(value) for name, value in solver["parameters"].items()}
    if robot["name"] == shown.arm.name and shown.arm.planar:
        chain = np.array(settings["kinematics"]["placements"]).reshape(-1, 4, 4)
        values["link_lengths"] = tuple(chain[1:, 0, 3].tolist())
    setup = StudioSetup(shown.robot, solver["name"], values, shown.base)
    if robot["name"] != shown.arm.name or setup.arm.checksum != settings["kinematics"]["checksum"]:
        needed = f"made with the arm of this studio, {shown.arm.name}, and its TCP and kinematics"
        raise InvalidParameter("run", f"{path}, made with {robot['name']}", needed)
    setup.compiled()
    return _read(setup, None, directory), scenario.get("file") or scenario["name"]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _read(setup: StudioSetup, prepared: Prepared | None, directory: RunDirectory) -> Played:
    found = Evaluation.of(directory)
    *way, attained = found.poses.values()
    way += [way[-1] if found.predicted is None else found.predicted, attained]
    errors = [np.linalg.norm(b[:, :3] - a[:, :3], axis=1) for a, b in pairwise(way)]
    log = found.log
    return Played(
        setup=setup,
        prepared=prepared,
        path=directory.path,
        times=log.stamp - log.stamp[0],
        q=log.position,
        qd=log.velocity,
        solution=log.solution,
        reference=found.reference[:, :3],
        attained=found.attained[:, :3],
        errors=np.column_stack(errors),
        tracking=found.errors.tracking.distance,
    )


def repeated(run: Path) -> str:
    """Where a kept run is, and the command that repeats it, as a sentence."""
    command = repeat_command(RunDirectory.open(run).settings(), run)
    again = f" `{command}` repeats it to the bit." if command else ""
    return f"Kept: {run}. Its page is {run / 'report.html'}.{again}"


def keep(played: Played) -> Path:
    """Write the report of a run, and copy it to a new directory under runs/, which it returns.

    Raises:
        OutputError: It cannot be written.
    """
    if played.prepared is None:
        return played.path
    backend = open_backend(played.prepared)
    finalize(RunDirectory.open(played.path), "completed", played.prepared.options.tolerance, backend)
    return copied(played.path, played.prepared.scenario.name)


def copied(path: Path, name: str) -> Path:
    """A copy of a run directory in a new one under runs/.

    Raises:
        OutputError: It cannot be written.
    """
    kept = RunDirectory.create(None, name).path
    shutil.copytree(path, kept, dirs_exist_ok=True)
    return kept
