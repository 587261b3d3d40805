"""The plan of an earlier run, replayed as it is: its solver, and the options that made it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import LONGEST_VALUE, InvalidParameter, NotARun
from simbridge.ik.callable_solver import RecordedSolver
from simbridge.ik.settings import ALL_SOLVERS
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan
from simbridge.planning.planner import sample_recorded_joints
from simbridge.planning.scenario import Scenario
from simbridge.quoting import unquoted
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import ScenarioRecord, SolverRecord
from simbridge.robot.robot import Robot
from simbridge.sessions.recorded_session import RecordedSession, planning_flags
from simbridge.trajectory.sampling import Sampling
from simbridge.trajectory.trajectory import Trajectory

# Paths and joints of a plan differ from those of a scenario by rounding alone, m and rad.
ROUNDING = 1e-9


class ReplayedPlan(NamedTuple):
    """The plan of an earlier run, its solver, and the options, completed from its settings."""

    plan: Plan
    solver: Solver
    options: Options


def load_replay(
    scenario: Scenario,
    robot: Robot,
    *,
    options: Options,
    solver: Solver | None,
    changes_solver: bool,
) -> ReplayedPlan:
    """Read the plan that the options name.

    Args:
        scenario: The scenario for which the plan must have been made.
        robot: The arm for which the plan must have been made.
        options: The options of the new run; `plan` is the directory of the earlier one.
        solver: The user's solver; None for the recorded one.
        changes_solver: Whether the user names another solver, or other settings, which is refused.

    Raises:
        NotARun: The directory is not that of a run, or its settings were edited and are not usable.
        InvalidParameter: The plan was made for another arm, period, scenario or home, or options
            would change it.
    """
    # Refuse options that would change the plan.
    assert options.plan is not None
    refused_options = planning_flags(options)
    if changes_solver:
        refused_options.append("settings of the solver")
    if refused_options:
        raise InvalidParameter(
            "plan", options.plan, f"replayed as it is, without {' and '.join(refused_options)}"
        )

    # Read the plan; a live session's is that of its recorded setpoints.
    run = RunDirectory.open(Path(options.plan))
    session = RecordedSession.at(run.path)
    if session is None:
        plan = run.plan(Plan.from_arrays)
    else:
        plan = session.recorded_plan(robot)
    plan.check_made_for(robot.checksum, options.period or robot.period)

    # Check that it was made for this scenario. The targets of a session depend on how its inputs
    # were solved, so those of the plan are accepted. (A session has no speed scale.)
    record = run.settings()
    if _is_session_of_plan(scenario, run, session, record.scenario):
        expected = plan.trajectory
    else:
        expected = scenario.trajectory.scale_speed(record.scenario.speed_scale)
    if expected.joints is not None:
        expected = sample_recorded_joints(robot, expected, plan.period)
    is_same = _is_same_motion(plan.trajectory, expected)

    # Noisy samples that the solver got in place of the trajectory belong to the scenario, too.
    if scenario.targets is not None:
        targets = scenario.targets.scale_speed(record.scenario.speed_scale)
        is_same &= plan.source_samples is not None and _is_same_motion(plan.source_samples, targets)
    if not is_same:
        raise InvalidParameter("plan", options.plan, f"made for this scenario, {scenario.name}")

    # Check that it was made with the same home.
    if not _is_close(np.array(record.robot.home), robot.home):
        raise InvalidParameter("plan", options.plan, "made from the same home (--home)")

    # Complete options and solver from its settings.
    options = _options_of_plan(run, record.scenario, options)
    if solver is None:
        solver = _recorded_solver(run, record.solver, robot)
    return ReplayedPlan(plan, solver, options)


def _is_session_of_plan(
    scenario: Scenario, run: RunDirectory, session: RecordedSession | None, record: ScenarioRecord
) -> bool:
    """Return whether a scenario is the live session whose inputs the plan follows.

    Args:
        scenario: The scenario of the new run.
        run: The directory of the plan.
        session: The session in that directory; None if it is a run's.
        record: The scenario for which the plan was made.
    """
    if scenario.file is None or not scenario.file.is_dir():
        return False
    source = Path(record.file or "") if session is None else run.path.resolve()
    return scenario.file == source


def _options_of_plan(run: RunDirectory, scenario: ScenarioRecord, options: Options) -> Options:
    """Return the options of a run, completed by those that made its plan."""
    options = replace(
        options,
        speed_scale=scenario.speed_scale,
        hold=scenario.hold,
        on_limits=scenario.on_limits,
    )
    if scenario.sampling is None:
        return options
    with _refuse_edited_table(run, "scenario.sampling"):
        return replace(options, sampling=Sampling(**scenario.sampling))


def _recorded_solver(run: RunDirectory, record: SolverRecord, robot: Robot) -> Solver:
    """Make the solver that a run had.

    For a solver of the user's own, which is not recorded, one that only has its name and settings.
    """
    if record.name not in ALL_SOLVERS:
        return RecordedSolver(robot, record.name, task=record.task, parameters=record.parameters)
    with _refuse_edited_table(run, "solver.parameters"):
        return ALL_SOLVERS[record.name](**record.parameters).build(robot)


@contextlib.contextmanager
def _refuse_edited_table(run: RunDirectory, table: str) -> Iterator[None]:
    """Turn the errors of a table of settings.toml that was edited into one that names it.

    Raises:
        NotARun: The table has an unknown field, a field of another type, or a number that is too
            large for a float.
    """
    try:
        yield
    except (TypeError, AttributeError, OverflowError) as error:
        raise NotARun(
            run.path, "settings.toml", f"its table [{table}]: {unquoted(error, LONGEST_VALUE)}"
        ) from None


def _is_same_motion(planned: Trajectory, expected: Trajectory) -> bool:
    """Return whether a plan's path or samples are those of the scenario."""
    same_poses = _is_close(planned.poses, expected.poses)
    return same_poses and _is_close(planned.elapsed, expected.elapsed)


def _is_close(values: NDArray[np.float64], expected: NDArray[np.float64]) -> bool:
    if values.shape != expected.shape:
        return False
    return bool(np.allclose(values, expected, rtol=0.0, atol=ROUNDING))
