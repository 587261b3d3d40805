"""Makes a live session: the arm, the solver and the loop that `simbridge.live` chooses."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from simbridge.backends.backend import Ask
from simbridge.backends.live_driver import driver_for
from simbridge.backends.live_loop import LiveSetup
from simbridge.backends.registry import SIMULATION
from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.inputs import as_joints
from simbridge.ik.settings import SOLVERS, check_solver, is_function
from simbridge.ik.solver import Solver
from simbridge.planning.live.options import LIVE, MORE, LiveOptions
from simbridge.planning.options import Options
from simbridge.robot.robot import Robot
from simbridge.running.live_end import session_settings
from simbridge.running.live_session import LiveSession
from simbridge.running.run_setup import resolve_arm
from simbridge.servo.plant import controller_cycle


def live(
    backend: str = SIMULATION,
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | str | None = None,
    out: str | os.PathLike[str] | None = None,
    realtime: bool = True,
    start: ArrayLike | None = None,
    report: bool = True,
    ask: Ask | None = None,
    **choices: Any,
) -> LiveSession:
    """A live session, to be entered with `with`.

    Args:
        backend: A name in `BACKENDS`.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: A name, `module:function`, or a solver made for the robot that pickle can send to another process; the
            paper's by default.
        out: The run directory to create; one under runs/ by default.
        realtime: Whether a simulation is paced by the wall clock; otherwise `advance` moves its clock.
        start: Joint positions (n,), rad, at which a simulated arm begins; home by default.
        report: Whether the session's end writes summary.json and report.html; `simbridge report` does so later.
        ask: Displays facts and asks for confirmation before a real arm moves; without it, only a cell file can confirm.
        choices: Fields of `LiveOptions` (hold, timeout, max_jump, filter, lead) and of `Options` that do not concern a
            scenario: host="192.168.1.10", cell=..., max_tool_speed=0.1. feedforward="on" applies to chunks alone.

    Raises:
        UnknownName: There is no such backend, robot, solver or option.
        InvalidParameter: An argument is invalid or contradicts the cell.
        ControllerError: One of its subclasses: the controller cannot be used.
    """
    own = {field.name for field in fields(LiveOptions)}
    live_options = LiveOptions(**{name: choices.pop(name) for name in list(choices) if name in own})
    for name in choices.keys() - {*LIVE, *MORE}:
        if name in {field.name for field in fields(Options)}:
            raise InvalidParameter(name, choices[name], "left out: it concerns a scenario, which a live session is not")
        raise UnknownName("option", name, {*own, *LIVE, *MORE}, where="of a live session")
    if start is not None and backend != SIMULATION:
        raise InvalidParameter("start", start, "left out: a controller's arm begins where it is")
    made = solver if isinstance(solver, Solver) else None
    controller, arm, options = resolve_arm(backend, robot, made, Options(**choices))
    if isinstance(solver, str):
        check_solver(solver)
        made = None if is_function(solver) else SOLVERS[solver]().build(arm)
    chosen: Solver | str = solver if isinstance(solver, str) and made is None else made or ForwardDynamics(arm)
    period = options.period or arm.period
    plant, cycle = options.plant_model, controller_cycle(arm.period, period)
    if live_options.lead and options.servo != "servoj":
        raise InvalidParameter("lead", "on", "used with servoj: the ideal servo has no lag to compensate")
    setup = LiveSetup(
        robot=arm,
        solver=chosen,
        period=period,
        options=live_options,
        law=plant.law(cycle) if options.servo == "servoj" else None,
        phase=plant.phase,
        collision_scene=options.collision_scene,
        max_tool_speed=options.max_tool_speed,
        preview=options.feedforward == "on",
        start=None if start is None else as_joints(start, arm.n),
        run_options=replace(options, feedforward="on" if live_options.lead else "off", realtime=False),
    )
    setup.pickled()
    driver = driver_for(backend, arm, options, setup, controller, ask, realtime)
    return LiveSession(
        driver,
        arm,
        lambda: session_settings(arm, setup, options, backend, controller, driver.capabilities),
        None if out is None else Path(out),
        begins_at=(arm.home if setup.start is None else setup.start) if controller is None else controller.state.q,
        report=report,
    )
