"""What a run is made with: the arm with its tool, the solver with its settings, or both as an earlier run had them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import CallableSolver, StepFunction
from simbridge.ik.settings import SOLVERS, SolverParameters, check_solver, is_function, resolved
from simbridge.ik.solver import Solver
from simbridge.ik.solver_import import function_named
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan
from simbridge.planning.scenario import Scenario
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.trajectory.sampling import Sampling


def chosen_solver(scenario: Scenario, robot: Robot, name: str = "", changes: Mapping[str, Any] | None = None) -> Solver:
    """The solver of a run: the named one, or else the scenario's, with single settings changed.

    Args:
        scenario: Its settings hold if they are of the same solver.
        robot: The arm.
        name: In `SOLVERS`, or module:function; empty for the scenario's own.
        changes: Settings by name.

    Raises:
        UnknownName: There is no such solver, or it has no such setting.
        InvalidParameter: A setting makes no sense.
    """
    if name:
        check_solver(name)
    settings = scenario.solver
    if name in SOLVERS and type(settings) is not SOLVERS[name]:
        settings = SOLVERS[name]()
    if is_function(name) or not is_dataclass(settings):
        if changes:
            raise InvalidParameter("solver's settings", ", ".join(changes), "left out: the solver is a function")
        if name:
            return CallableSolver(robot, function_named(name), name=name)
        return CallableSolver(robot, cast(StepFunction, settings))
    chosen = cast(SolverParameters, settings)
    return resolved(type(chosen), chosen, changes or {}).build(robot)


def equipped_arm(robot: Robot | str | os.PathLike[str] | None, solver: Solver | None, options: Options) -> Robot:
    """The arm with its TCP and payload, mounted as in its cell: the solver's own, when there is one.

    Raises:
        InvalidParameter: The solver was made for another arm or TCP, or the cell is another arm's.
    """
    if solver is None:
        arm = robot if isinstance(robot, Robot) else load_robot(options.robot if robot is None else robot)
        return options.equipped(arm)
    arm = options.equipped(solver.robot)
    flags = options.cell is None and (options.tcp or options.payload)
    if flags or arm.checksum != solver.robot.checksum:
        needed = "made for a robot with these kinematics, TCP and payload, not beside them"
        raise InvalidParameter("solver", solver.name, needed)
    if isinstance(robot, Robot) and robot.checksum != solver.robot.checksum:
        given = f"{solver.name} for {solver.robot.name}"
        raise InvalidParameter("solver", given, f"made for the same robot and TCP, {robot.name}")
    return arm


def replayed(
    scenario: Scenario, robot: Robot, solver: Solver | None, changes: Mapping[str, Any] | None, options: Options
) -> tuple[Plan, Solver, Options]:
    """The plan of an earlier run, the solver it was made with, and the options with what it was made with."""
    assert options.plan is not None
    flags = {"--speed-scale": options.speed_scale != 1.0, "--hold": options.hold, "--on-limits": options.on_limits}
    flags |= {"sampling": options.sampling is not None}
    given = [name for name, value in (flags | {"settings of the solver": changes}).items() if value]
    if given:
        raise InvalidParameter("plan", options.plan, f"replayed as it is, without {' and '.join(given)}")
    run = RunDirectory.open(Path(options.plan))
    plan = run.plan(Plan.from_arrays)
    plan.check_made_for(robot.checksum, robot.period if options.period is None else options.period)
    settings = run.settings()
    made = settings["scenario"]
    wanted = scenario.trajectory.time_scaled(made["speed_scale"])
    if not (_alike(plan.trajectory.poses, wanted.poses) and _alike(plan.trajectory.elapsed, wanted.elapsed)):
        raise InvalidParameter("plan", options.plan, f"made for this scenario, {scenario.name}")
    if not _alike(np.array(settings["robot"]["home"]), robot.home):
        raise InvalidParameter("plan", options.plan, "made from the same home (--home)")
    options = replace(options, speed_scale=made["speed_scale"], hold=made["hold"], on_limits=made["on_limits"])
    if "sampling" in made:
        options = replace(options, sampling=Sampling(**made["sampling"]))
    return plan, solver or recorded_solver(settings, robot), options


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0.0, atol=1e-9))


def recorded_solver(settings: Mapping[str, Any], robot: Robot) -> Solver:
    """The solver that settings.toml describes.

    Raises:
        UnknownName: It is none of simbridge's own, nor module:function.
        ForeignSolverError: The function is not to be had any more.
    """
    name, parameters = settings["solver"]["name"], settings["solver"]["parameters"]
    check_solver(name)
    if is_function(name):
        return CallableSolver(robot, function_named(name), name=name)
    return SOLVERS[name](**parameters).build(robot)
