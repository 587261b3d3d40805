"""A live session around its loop: arm and solver that `live` chooses, settings.toml, summary."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from simbridge.backends import SIMULATION, check_live_backend, is_simulated
from simbridge.backends.backend import Ask, Capabilities
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.callable_solver import SolverFunction, UserSolver, is_factory
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.settings import ALL_SOLVERS, check_solver, is_function
from simbridge.ik.solver import Solver
from simbridge.ik.targets import as_joints
from simbridge.planning.option_field import record_options
from simbridge.planning.options import Options
from simbridge.recording.kinematics_record import record_kinematics
from simbridge.recording.record_tables import (
    record_backend,
    record_cell,
    record_controller,
    record_robot,
    record_shapes,
    record_solver,
    record_tolerance,
    versions,
)
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import (
    LiveRecord,
    ScenarioRecord,
    SessionRecord,
    SolverRecord,
)
from simbridge.robot.kinematics import tool_path
from simbridge.robot.robot import Robot
from simbridge.running.arm_and_solver import resolve_arm
from simbridge.running.run_ending import EarlyEnd, EndNotVerified, finalize, record_end
from simbridge.servo.plant import controller_cycle
from simbridge.sessions.driver import LiveDriver, driver_for
from simbridge.sessions.filters import filter_delay
from simbridge.sessions.limits import ServoModel
from simbridge.sessions.motion_setup import MotionSetup
from simbridge.sessions.options import LIVE, MORE, LiveChoices, LiveOptions
from simbridge.sessions.session import LiveSession
from simbridge.ur.controller_facts import ControllerFacts

if TYPE_CHECKING:  # only a type checker reads it
    from typing_extensions import Unpack


def live(  # noqa: PLR0913 (a public call, by keyword)
    backend: str = SIMULATION,
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: UserSolver | None = None,
    out: str | os.PathLike[str] | None = None,
    realtime: bool = True,
    start: ArrayLike | None = None,
    report: bool = True,
    ask: Ask | None = None,
    **choices: Unpack[LiveChoices],
) -> LiveSession:
    """Return a live session, to be entered with `with`.

    Args:
        backend: "pybullet", "mujoco", "ursim" or "real"; a simulation by default.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: The name of a solver, or `"my_ik:step"` for a function in my_ik.py; a step function
            `(q, target) -> q`, or a factory `(robot) -> step`; settings, such as
            `DampedLeastSquaresParameters(iterations=5)`; or a `Solver` made for the robot.
            "forward-dynamics" by default. Unless realtime is False, it must be one that pickle can
            send to another process.
        out: The run directory to create; one under runs/ by default.
        realtime: Whether a simulation is paced by the wall clock; otherwise `wait` moves its clock.
        start: Joint positions (n,), rad, at which a simulated arm begins; home by default.
        report: Whether the session's end writes summary.json and report.html; `simbridge report`
            does so later.
        ask: Displays facts and asks for confirmation before a real arm moves; without it, only a
            cell file can confirm.
        choices: Options by name: the fields of `LiveOptions` (hold, timeout, max_jump, catch_up,
            filter, lead), and those fields of `Options` that do not concern a scenario, such as
            host="192.168.1.10", cell="lab.toml", max_tool_speed=0.1. feedforward="on" applies to
            chunks alone.

    Raises:
        UnknownName: A backend, robot, solver or option is not known.
        InvalidParameter: An argument is invalid or contradicts the cell, or the backend has no live
            sessions.
        MissingEngine: The physics engine of the simulation is not installed.
        ControllerError: One of its subclasses: the controller cannot be used.
    """
    live_options, run_choices = _split_choices(choices)
    check_live_backend(backend)
    if start is not None and not is_simulated(backend):
        raise InvalidParameter("start", start, "left out: a controller's arm starts where it is")

    # To lead the arm is to invert servoj.
    if live_options.lead and run_choices.get("servo") is None:
        run_choices["servo"] = "servoj"

    # The arm, completed from the cell and by its controller, and a solver for it.
    ready_solver = solver if isinstance(solver, Solver) else None
    controller, arm, options = resolve_arm(backend, robot, ready_solver, Options(**run_choices))
    chosen_solver = _choose_solver(solver, arm)
    if live_options.lead and options.servo != "servoj":
        raise InvalidParameter(
            "lead", "on", "used with servoj: the ideal servo has no lag to compensate"
        )

    # The parts of which the loop's process makes the motion.
    period = options.period or arm.period
    plant = options.plant_model
    servo = None
    if options.servo == "servoj":
        law = plant.law(controller_cycle(arm.period, period))
        servo = ServoModel(law, plant.phase)
    setup = MotionSetup(
        robot=arm,
        solver=chosen_solver,
        period=period,
        options=live_options,
        servo=servo,
        collision_scene=options.collision_scene,
        max_tool_speed=options.max_tool_speed,
        preview=options.feedforward == "on",
        start=None if start is None else as_joints(start, arm.n),
        run_options=replace(
            options, feedforward="on" if live_options.lead else "off", realtime=False
        ),
        engine=backend if is_simulated(backend) else SIMULATION,
    )

    # Refuse now what cannot be sent to the loop's process.
    if realtime:
        setup.to_bytes()

    # Where the arm begins.
    if controller is not None:
        begins_at = controller.state.q
    elif setup.start is not None:
        begins_at = setup.start
    else:
        begins_at = arm.home

    driver = driver_for(
        backend, arm, options, setup=setup, controller=controller, ask=ask, realtime=realtime
    )
    return LiveSession(
        driver,
        arm,
        record=partial(
            session_record,
            arm,
            setup,
            options,
            backend=backend,
            controller=controller,
            capabilities=driver.capabilities,
        ),
        finish=partial(finish_session, driver),
        out=None if out is None else Path(out),
        begins_at=begins_at,
        report=report,
    )


def _split_choices(choices: Mapping[str, Any]) -> tuple[LiveOptions, dict[str, Any]]:
    """Return the options of a live session, and the fields of `Options` that the caller chose.

    Raises:
        InvalidParameter: An option concerns a scenario, or has an invalid value.
        UnknownName: An option is not known.
    """
    live_names = {field.name for field in fields(LiveOptions)}
    run_names = {field.name for field in fields(Options)}
    live_choices = {}
    run_choices = {}
    for name, value in choices.items():
        if name in live_names:
            live_choices[name] = value
        elif name in {*LIVE, *MORE}:
            run_choices[name] = value
        elif name in run_names:
            needed = "left out: it applies only to scenarios, not to live sessions"
            raise InvalidParameter(name, value, needed)
        else:
            arguments = set(inspect.signature(live).parameters) - {"choices"}
            known = {*live_names, *LIVE, *MORE, *arguments}
            raise UnknownName("option", name, known, where="of a live session")
    return LiveOptions(**live_choices), run_choices


def _choose_solver(solver: UserSolver | None, arm: Robot) -> Solver | SolverFunction | str:
    """Return the solver that a user gives; forward dynamics without one.

    A step, a factory, or the name of one is returned as it is: the loop's process makes its solver.
    """
    if solver is None:
        return ForwardDynamics(arm)
    if isinstance(solver, str):
        check_solver(solver)
        return solver if is_function(solver) else ALL_SOLVERS[solver]().build(arm)
    if isinstance(solver, Solver):
        return solver
    if isinstance(solver, SolverParameters):
        return solver.build(arm)
    is_factory(solver)
    return solver


def session_record(
    robot: Robot,
    setup: MotionSetup,
    options: Options,
    *,
    backend: str,
    controller: ControllerFacts | None,
    capabilities: Capabilities,
) -> SessionRecord:
    """Return the record of a session, before it has moved.

    Args:
        robot: The arm, with its TCP and payload.
        setup: The parts of the session's motion.
        options: The options of the session.
        backend: Name of the backend.
        controller: Facts of the controller; None in simulation.
        capabilities: Capabilities of the backend.
    """
    # If the solver is a function, only the loop's process makes it: here its name alone is known.
    if not isinstance(setup.solver, Solver):
        solver = SolverRecord(name=setup.solver_name, task=robot.task, parameters={})
    else:
        # A solver's notes are made for a path and a start: there is no path yet, so both are home.
        joint_path = robot.home[np.newaxis]
        notes = setup.solver.notes(tool_path(robot, joint_path), robot.home)
        solver = record_solver(setup.solver, setup.period, notes)

    reported = None if controller is None else controller.arm.kinematics
    return SessionRecord(
        label=options.label or None,
        scenario=ScenarioRecord(
            name="live",
            description="A live session.",
            source="live inputs",
            hold="zero-order",
            on_limits="limit",
            floor=options.collision_scene.floor,
            **record_options(options, "scenario"),
        ),
        robot=record_robot(robot, options),
        kinematics=record_kinematics(robot, options.kinematics_source, reported),
        solver=solver,
        backend=record_backend(
            backend,
            robot,
            options,
            period=setup.period,
            simulated_time=capabilities.simulated_time,
            effort_unit=capabilities.effort_unit,
        ),
        versions=versions(),
        tolerance=record_tolerance(options),
        shapes=record_shapes(robot),
        controller=record_controller(controller),
        cell=record_cell(options),
        live=_record_live(setup),
    )


def _record_live(setup: MotionSetup) -> LiveRecord:
    """Return the table [live] of settings.toml."""
    live = setup.options
    return LiveRecord(
        hold=live.hold,
        timeout=live.timeout,
        max_jump=list(live.max_jump),
        catch_up=live.catch_up,
        filter=live.filter,
        filter_cutoff=live.filter_cutoff,
        lead=live.lead,
        filter_delay_s=filter_delay(live.filter, live.filter_cutoff),
        preview=setup.preview,
    )


def finish_session(
    driver: LiveDriver, directory: RunDirectory, end: EarlyEnd | None, report: bool
) -> None:
    """Write summary.json and report.html of a session that has ended.

    Args:
        driver: The driver of the session's loop, which has ended.
        directory: The session's run directory, into which both are written.
        end: What ended it early, or stopped the arm last; None if nothing did.
        report: Whether it is evaluated; otherwise summary.json says only how it ended.

    Raises:
        OutputError: A file cannot be written.
        EndNotVerified: The controller was not seen to have ended the motion.
    """
    outcome = "completed" if end is None else end.outcome
    error = None if end is None else end.error
    if report:
        finalize(directory, outcome, tolerance=None, arm=driver, error=error)
    else:
        record_end(directory, outcome, driver, error)

    ending = driver.ending
    if end is None and ending is not None and not (ending.arm_at_rest and ending.script_ended):
        raise EndNotVerified(ending)
