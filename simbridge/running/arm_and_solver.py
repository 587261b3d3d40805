"""The arm and the solver of a run.

What the user asks for is resolved against cell, controller and scenario.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any, cast

from simbridge.backends import backend_class
from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import (
    RECORDED_JOINTS,
    RecordedSolver,
    SolverFunction,
    build_solver,
    make_custom_solver,
)
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.settings import ALL_SOLVERS, change_settings, check_solver, is_function
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.planning.scenario import Scenario
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.servo.plant import controller_cycle
from simbridge.ur.controller_facts import ControllerFacts

RobotChoice = Robot | str | os.PathLike[str] | None


def resolve_arm(
    backend: str, robot: RobotChoice, solver: Solver | None, options: Options
) -> tuple[ControllerFacts | None, Robot, Options]:
    """Find the arm behind a backend; a controller is read, and nothing moves.

    Args:
        backend: A name in `BACKENDS`.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: The user's solver, made for an arm; None if the user gives none.
        options: The options of the run.

    Returns:
        The controller's facts, None in simulation; the arm, as the controller describes it; and the
        options, completed from the controller's facts.

    Raises:
        UnknownName: The backend is not known.
        InvalidParameter: The arm does not fit the solver or the cell.
        ControllerError: One of its subclasses: the controller cannot be used.
    """
    kind = backend_class(backend)
    is_simulated = kind.capabilities.simulated_time
    if options.servo == "ideal" and not is_simulated:
        needed = (
            f"servoj, which the controller runs with --backend {backend}: an ideal servo exists "
            "only in simulation"
        )
        raise InvalidParameter("servo", options.servo, needed)

    arm = equip_arm(robot, solver, options)
    servo = options.servo_of(arm) if is_simulated else "servoj"
    options = replace(options, servo=servo)
    controller, described_arm, options = kind.resolve(arm, options)
    if options.servo == "servoj":
        # Making the law refuses a tuning that is unstable at this controller's cycle.
        period = options.period or described_arm.period
        options.plant_model.law(controller_cycle(described_arm.period, period))

    if solver is not None and described_arm.checksum != arm.checksum:
        needed = (
            "made for exactly this arm: leave the solver out, or run with nominal kinematics "
            "(--kinematics)"
        )
        raise InvalidParameter("solver", solver.name, needed)
    return controller, described_arm, options


def equip_arm(robot: RobotChoice, solver: Solver | None, options: Options) -> Robot:
    """Return the arm with its TCP and payload, mounted as in its cell.

    With a solver it is the arm that the solver was made for.

    Args:
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: The user's solver, made for an arm; None if the user gives none.
        options: The options of the run.

    Raises:
        InvalidParameter: The solver was made for another arm or TCP, or the cell is another arm's.
    """
    # Without a solver, the arm that the user, the cell or the default names.
    if solver is None:
        if not isinstance(robot, Robot):
            robot = load_robot(robot or options.robot, **options.links)
        return options.equip(robot)

    # With a solver and an arm, that arm must be the solver's.
    if robot is not None:
        chosen_arm = robot if isinstance(robot, Robot) else load_robot(robot, **options.links)
        equipped_arm = options.equip(chosen_arm)
        if equipped_arm.checksum == solver.robot.checksum:
            return equipped_arm

        _check_arm_of_solver(solver, chosen_arm, is_object=chosen_arm is robot)

    # The solver's own arm. It has its tool, which options must not change.
    arm = options.equip(solver.robot)
    has_tool_options = options.cell is None and (options.tcp or options.payload)
    if has_tool_options or arm.checksum != solver.robot.checksum:
        needed = (
            "made for a robot with these kinematics, TCP and payload: leave the options for them "
            "out"
        )
        raise InvalidParameter("solver", solver.name, needed)
    return arm


def _check_arm_of_solver(solver: Solver, arm: Robot, *, is_object: bool) -> None:
    """Refuse a solver that was made for another arm than the user's.

    Args:
        solver: The user's solver.
        arm: The user's arm, without the tool of the options.
        is_object: Whether the user gave the arm itself, which must be exactly the solver's. An arm
            that was given by name may lack the solver's tool: that is compared later.

    Raises:
        InvalidParameter: The solver was made for another arm.
    """
    is_other_object = is_object and arm.checksum != solver.robot.checksum
    if arm.name != solver.robot.name or is_other_object:
        raise InvalidParameter(
            "solver",
            f"{solver.name} for {solver.robot.name}",
            f"made for the same robot and TCP, {arm.name}",
        )


def check_recorded_joints(robot: Robot, options: Options, *, chosen_solver: str) -> None:
    """Refuse what a plan of recorded joint positions does not have: a solver, targets and a start.

    Args:
        robot: The arm.
        options: The options of the plan.
        chosen_solver: The name of the user's solver, or its settings; "" if there is none.

    Raises:
        InvalidParameter: A solver, a sampling, a hold, a start or a home is chosen.
    """
    if chosen_solver:
        needed = (
            "left out: recorded joint positions are themselves the plan. To use a solver, choose "
            "poses from the file (--from actual_TCP_pose, --topic or --columns)"
        )
        raise InvalidParameter("solver", chosen_solver, needed)
    if options.sampling or options.hold:
        needed = "left out: recorded joint positions are followed as they are, without a solver"
        raise InvalidParameter("sampling or hold of targets", "one", needed)

    begins_as_recorded = "left out: recorded joint positions start where they were recorded"
    if options.start is not None:
        raise InvalidParameter("start", options.start, begins_as_recorded)
    if robot.file_home is not None:
        home = " ".join(f"{q:g}" for q in robot.home)
        raise InvalidParameter("home", home, f"{begins_as_recorded} (--home)")


def recorded_joints_solver(robot: Robot) -> Solver:
    """Return what stands for the solver of a plan of recorded joint positions, which has none."""
    return RecordedSolver(robot, RECORDED_JOINTS, task=None, parameters={})


def choose_solver(
    scenario: Scenario, robot: Robot, name: str = "", changes: Mapping[str, Any] | None = None
) -> Solver:
    """Make the solver of a run: the scenario's, or the named one, with some settings changed.

    Args:
        scenario: The scenario, whose settings are used if they belong to the solver.
        robot: The arm.
        name: A name in `ALL_SOLVERS`, or module:function; the scenario's solver by default.
        changes: Single settings that replace the scenario's.

    Raises:
        UnknownName: The solver, or one of its settings, is not known.
        InvalidParameter: A setting is invalid.
    """
    # The scenario's settings, or the default ones of a named solver to which they do not belong.
    if name:
        check_solver(name)
    settings = scenario.solver
    if name in ALL_SOLVERS and type(settings) is not ALL_SOLVERS[name]:
        settings = ALL_SOLVERS[name]()

    # A function has no settings.
    if is_function(name) or not is_dataclass(settings):
        if changes:
            raise InvalidParameter(
                "solver's settings", ", ".join(changes), "left out: the solver is a function"
            )
        if name:
            return build_solver(robot, name)
        return make_custom_solver(robot, cast(SolverFunction, settings))

    parameters = cast(SolverParameters, settings)
    return change_settings(type(parameters), parameters, changes or {}).build(robot)
