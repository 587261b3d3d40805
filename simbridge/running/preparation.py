"""Everything before an arm moves: the arm behind the backend, the scenario, the solver, and the checked plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from simbridge.backends.registry import SIMULATION, backend_class
from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import CallableSolver, StepFunction
from simbridge.ik.solver import Solver
from simbridge.planning.check import Peaks
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan, make_plan
from simbridge.planning.scenario import Scenario, load_scenario
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import chosen_solver, equipped_arm, replayed
from simbridge.ur.facts import ControllerFacts


@dataclass(frozen=True)
class Prepared:
    """A run that has been planned and checked; nothing has moved.

    Attributes:
        backend: The name of the backend it was planned for.
        controller: The facts of that backend's controller; None in simulation.
    """

    robot: Robot
    scenario: Scenario
    solver: Solver
    plan: Plan
    peaks: Peaks
    options: Options = field(default_factory=Options)
    backend: str = SIMULATION
    controller: ControllerFacts | None = None

    @property
    def solver_notes(self) -> tuple[str, ...]:
        """Notes on how the solver treats this plan, as sentences (see `Solver.notes`)."""
        return self.solver.notes(self.plan.targets, self.plan.solution[0])


def prepare(
    scenario: Scenario | str | os.PathLike[str],
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | StepFunction | None = None,
    solver_name: str = "",
    solver_changes: Mapping[str, Any] | None = None,
    options: Options | None = None,
    backend: str = SIMULATION,
) -> Prepared:
    """Load, solve, limit and check: everything up to the point where an arm would move.

    For a controller, its facts are read first, and the plan is made for the arm that it describes.

    Args:
        scenario: A `Scenario`, a name, a script or a file.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default.
        solver: Made for the robot, or a function (see `CallableSolver`); the scenario's by default.
        solver_name: A name in `SOLVERS`, if no solver is given; the scenario's settings are used only if they belong
            to that solver.
        solver_changes: Single settings that replace the scenario's, if no solver is given.
        options: See `Options`.
        backend: A name in `BACKENDS`.

    Raises:
        SimbridgeError: One of its subclasses; nothing was written and nothing has moved.
    """
    own = solver if isinstance(solver, Solver) else None
    controller, arm, options = resolve_arm(backend, robot, own, options or Options())
    if solver is not None:
        own = own or CallableSolver(arm, cast(StepFunction, solver))
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, arm, options.reading)
    earlier = None
    if options.plan is not None:
        changes = {"solver": solver_name, **(solver_changes or {})} if solver_name else solver_changes
        earlier, own, options = replayed(scenario, arm, own, changes, options)
    chosen = own or chosen_solver(scenario, arm, solver_name, solver_changes or {})
    plan, peaks = make_plan(arm, scenario, chosen, options, replay=earlier)
    return Prepared(arm, scenario, chosen, plan, peaks, options, backend, controller)


def resolve_arm(
    backend: str, robot: Robot | str | os.PathLike[str] | None, solver: Solver | None, options: Options
) -> tuple[ControllerFacts | None, Robot, Options]:
    """The arm behind a backend.

    Returns:
        The controller's facts, None in simulation; the arm, as the controller describes it; and the options, completed
        from the controller's facts.

    Raises:
        UnknownName, InvalidParameter: There is no such backend, or the arm does not fit the solver or the cell.
        ControllerError: One of its subclasses: the controller cannot be used.
    """
    kind = backend_class(backend)
    arm = equipped_arm(robot, solver, options)
    controller, resolved, options = kind.resolve(arm, options)
    if solver is not None and resolved.checksum != arm.checksum:
        needed = "made for exactly this arm: leave the solver out, or run with nominal kinematics (--kinematics)"
        raise InvalidParameter("solver", solver.name, needed)
    return controller, resolved, options
