"""Chooses the solvers that take part in the suite, and says which ones cannot."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata

from simbridge.errors import InvalidParameter, SimbridgeError, UnknownName
from simbridge.experiments import SolversParameters
from simbridge.experiments.arm import make_solver
from simbridge.experiments.suite.results import AbsentSolver, SolverFacts
from simbridge.ik import VelocityLimits
from simbridge.ik.parameters import IterativeParameters, Jacobian
from simbridge.ik.rivals.rival import RivalParameters
from simbridge.ik.settings import ALL_SOLVERS, RIVALS, SOLVERS, is_function
from simbridge.ik.solver import Solver
from simbridge.robot.robot import Robot

# The value of --rivals that stands for every rival.
ALL_RIVALS = "all"
# The package that a rival without packages of its own calls.
PINOCCHIO = ("pinocchio", "pin")


@dataclass(frozen=True)
class Entrant:
    """A solver that takes part in the suite.

    Attributes:
        name: Name of the solver in the tables.
        origin: "simbridge", "rival" for a solver of another library, or "custom".
        solver: The solver.
        velocity_limits: Whether the solver's steps keep the velocity limits of the joints.
        versions: Version of each package that the solver calls, by name.
    """

    name: str
    origin: str
    solver: Solver
    velocity_limits: VelocityLimits
    versions: dict[str, str]

    @property
    def facts(self) -> SolverFacts:
        """The description of the solver in the results."""
        return SolverFacts(
            name=self.name,
            origin=self.origin,
            velocity_limits=self.velocity_limits,
            task=self.solver.task,
            settings=dict(self.solver.parameters),
            versions=self.versions,
        )


def choose_entrants(
    robot: Robot, parameters: SolversParameters
) -> tuple[list[Entrant], list[AbsentSolver]]:
    """Return the solvers that take part, and those that do not support the arm or are missing.

    A solver that --solver names must take part.

    Args:
        robot: The arm.
        parameters: The parameters of the command.

    Raises:
        SimbridgeError: There is no such solver, or a named one cannot take part.
        InvalidParameter: --solver-limits is stated, but --solver names no function.
    """
    named = list(dict.fromkeys(parameters.solver))
    _check_declared_limits(parameters, named)
    names = [*(named or SOLVERS)]
    names += [name for name in chosen_rivals(parameters.rivals) if name not in names]

    entrants: list[Entrant] = []
    absent = []
    for name in names:
        try:
            entrants += _make_entrants(robot, name, parameters)
        except SimbridgeError as error:
            if name in named:
                raise
            absent.append(AbsentSolver(name=name, reason=str(error)))
    return entrants, absent


def chosen_rivals(text: str) -> list[str]:
    """Return the names of rivals in the value of --rivals: "all", or names with commas between.

    Raises:
        UnknownName: There is no such rival.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == [ALL_RIVALS]:
        return list(RIVALS)
    for name in names:
        if name not in RIVALS:
            raise UnknownName("rival", name, [ALL_RIVALS, *RIVALS])
    return names


def _check_declared_limits(parameters: SolversParameters, named: Sequence[str]) -> None:
    """Refuse --solver-limits without a function, whose property it declares."""
    if parameters.solver_limits is not None and not any(map(is_function, named)):
        needed = "given together with a function: --solver module:function"
        raise InvalidParameter("solver-limits", parameters.solver_limits, needed)


def _make_entrants(robot: Robot, name: str, parameters: SolversParameters) -> Iterator[Entrant]:
    """Yield a solver, once for each of the chosen Jacobians if it uses the Jacobian."""
    for jacobian in _choose_jacobians(name, parameters.jacobian):
        solver = make_solver(robot, name, jacobian=jacobian)
        limits = solver.velocity_limits
        if is_function(name) and parameters.solver_limits is not None:
            limits = parameters.solver_limits
        yield Entrant(
            name=name if jacobian == "exact" else f"{name}, {jacobian}",
            origin=_find_origin(name),
            solver=solver,
            velocity_limits=limits,
            versions=_find_versions(name),
        )


def _choose_jacobians(name: str, jacobians: Sequence[Jacobian]) -> Sequence[Jacobian]:
    """Return the Jacobians with which a solver takes part.

    Args:
        name: Name of the solver.
        jacobians: The Jacobians that the command chooses.
    """
    is_iterative = name in ALL_SOLVERS and issubclass(ALL_SOLVERS[name], IterativeParameters)
    return jacobians if is_iterative else ("exact",)


def _find_origin(name: str) -> str:
    """Return the origin of a solver: see `Entrant`."""
    if is_function(name):
        return "custom"
    return "rival" if name in RIVALS else "simbridge"


def _find_versions(name: str) -> dict[str, str]:
    """Return the version of each package that a rival calls; nothing for any other solver."""
    if name not in RIVALS:
        return {}
    settings = RIVALS[name]
    assert issubclass(settings, RivalParameters)
    packages = settings.packages or (PINOCCHIO,)
    return {package: package_version(module, package) for module, package in packages}


def package_version(module: str, package: str) -> str:
    """Return the version of a package that is installed.

    Args:
        module: Name of the package's module. It states the version if the package has no metadata
            for Python, like Debian's python3-pykdl.
        package: Name of the package.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module(module), "__version__", "unknown"))
