"""Every solver by its name, and its settings from changes by name.

A new solver is a file with its settings and its class, and one line in `SETTINGS`; a solver of
another library is the same in `rivals/`, with its line in `RIVAL_SETTINGS`.
"""

from __future__ import annotations

import math
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from simbridge.errors import UnknownName
from simbridge.ik.parameters import SolverParameters
from simbridge.text import join_words

_Settings = TypeVar("_Settings", bound=SolverParameters)

# The class of each solver's settings, which is in the same file as the solver. Classes are given by
# name: the solvers load NumPy and pinocchio, but the command line often needs only the solvers'
# names.
SETTINGS = {
    "forward-dynamics": "simbridge.ik.forward_dynamics:ForwardDynamicsParameters",
    "jacobian-transpose": "simbridge.ik.jacobian_transpose:JacobianTransposeParameters",
    "pseudoinverse": "simbridge.ik.pseudoinverse:PseudoinverseParameters",
    "damped-least-squares": "simbridge.ik.damped_least_squares:DampedLeastSquaresParameters",
    "selectively-damped": "simbridge.ik.selectively_damped:SelectivelyDampedParameters",
    "feedback": "simbridge.ik.feedback:FeedbackParameters",
    "constrained": "simbridge.ik.constrained:ConstrainedParameters",
    "closed-form": "simbridge.ik.closed_form:ClosedFormParameters",
}

# The settings classes of the solvers of other libraries, most of which need not be installed.
RIVAL_SETTINGS = {
    "pybullet-ik": "simbridge.ik.rivals.pybullet_ik:PybulletIKParameters",
    "pinocchio-clik": "simbridge.ik.rivals.pinocchio_clik:PinocchioClikParameters",
    "pink": "simbridge.ik.rivals.pink:PinkParameters",
    "mink": "simbridge.ik.rivals.mink:MinkParameters",
    "ikpy": "simbridge.ik.rivals.ikpy:IkpyParameters",
    "trac-ik": "simbridge.ik.rivals.trac_ik:TracIKParameters",
    "roboticstoolbox": "simbridge.ik.rivals.roboticstoolbox:RoboticsToolboxParameters",
    "pykdl": "simbridge.ik.rivals.pykdl:PyKDLParameters",
}

# Other names that the solvers have in the literature, in lower case without dashes.
SYNONYMS = {
    "lm": "damped-least-squares",
    "levenbergmarquardt": "damped-least-squares",
    "sdls": "selectively-damped",
    "selectivelydampedleastsquares": "selectively-damped",
    "pinv": "pseudoinverse",
    "jacobianpseudoinverse": "pseudoinverse",
    "newton": "pseudoinverse",
    "transpose": "jacobian-transpose",
    "fdc": "forward-dynamics",
    "clik": "feedback",
    "qp": "constrained",
    "analytic": "closed-form",
    "analytical": "closed-form",
}


class SolverRegistry(Mapping[str, type[SolverParameters]]):
    """The settings classes of solvers by the solvers' names, imported where they are used.

    Args:
        locations: Location of each solver's class, `module:class`.
    """

    def __init__(self, locations: Mapping[str, str]) -> None:
        self._locations = locations

    def __getitem__(self, name: str) -> type[SolverParameters]:
        settings: type[SolverParameters] = pkgutil.resolve_name(self._locations[name])
        return settings

    def __iter__(self) -> Iterator[str]:
        return iter(self._locations)

    def __len__(self) -> int:
        return len(self._locations)

    def __contains__(self, name: object) -> bool:
        # The default would import the solver.
        return name in self._locations


SOLVERS = SolverRegistry(SETTINGS)
"""simbridge's own solvers by their names at the command line."""

RIVALS = SolverRegistry(RIVAL_SETTINGS)
"""The solvers of other libraries by their names at the command line."""

ALL_SOLVERS = SolverRegistry({**SETTINGS, **RIVAL_SETTINGS})
"""Every solver by its name at the command line."""


@dataclass(frozen=True)
class FunctionParameters:
    """A custom solver function has no settings."""


def change_settings(
    kind: type[_Settings], settings: _Settings | None, changes: Mapping[str, Any]
) -> _Settings:
    """Return settings with changes.

    A preset among the changes applies to the settings that are not among them. It undoes what
    another preset had set.

    Args:
        kind: The class of the settings.
        settings: The settings to change; None for the defaults.
        changes: Values by name; None stands for "not given".

    Raises:
        UnknownName: There is no such setting, or no such preset.
        InvalidParameter: A setting makes no sense.
    """
    _check_names(kind, changes)

    # The values of a preset, and over them the single changes. The settings keep the name of no
    # preset.
    values = {name: value for name, value in changes.items() if value is not None}
    preset = values.get("preset")
    if preset:
        values = {**preset_values(kind, preset), **values, "preset": ""}
    if settings is None:
        return kind(**values)

    if preset:
        # Values of the former preset go back to their defaults, for which None stands.
        former_values = kind.presets.get(getattr(settings, "preset", ""), {})
        for name, value in former_values.items():
            if getattr(settings, name) == value:
                values.setdefault(name, None)
    return replace(settings, **values)


def _check_names(kind: type[SolverParameters], changes: Mapping[str, Any]) -> None:
    """Refuse changes of settings that a class of settings does not have.

    Raises:
        UnknownName: A change has the name of no setting.
    """
    known = {item.name for item in fields(kind)}
    for name in changes:
        if name not in known:
            solver = next(solver for solver in ALL_SOLVERS if ALL_SOLVERS[solver] is kind)
            raise unknown_setting(solver, name)


def preset_values(kind: type[SolverParameters], name: str) -> Mapping[str, Any]:
    """Return the values of a preset by the settings' names; none for the name "".

    Raises:
        UnknownName: There is no such preset.
    """
    if name and name not in kind.presets:
        raise UnknownName("preset", name, kind.presets)
    return kind.presets.get(name, {})


def without_clamps(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of settings in which a clamp that is None is infinite."""
    infinite = {"error_clamp": (math.inf, math.inf), "step_clamp": math.inf}
    return {name: infinite.get(name) if value is None else value for name, value in changes.items()}


def is_function(name: str) -> bool:
    """Return whether a solver's name is that of a custom function, `module:function`."""
    return all(name.rpartition(":"))


def check_solver(name: str) -> None:
    """Refuse a name that is neither a solver's nor a function's.

    Raises:
        UnknownName: It is neither.
    """
    if name not in ALL_SOLVERS and not is_function(name):
        raise UnknownName("solver", name, ALL_SOLVERS, _function_hint(name), synonyms=SYNONYMS)


def _function_hint(name: str) -> str:
    """Return how a custom function is given, also for a file that was named without one."""
    if name.endswith(".py"):
        path = name if name.startswith(("/", ".")) else f"./{name}"
        return f"Give a function in this file as {path}:function."
    return "Give a function of your own as module:function or ./FILE.py:function."


def unknown_setting(solver: str, setting: str) -> UnknownName:
    """Return the error that a solver has no such setting, with the solvers that have it."""
    known = [item.name for item in fields(ALL_SOLVERS[solver])]

    solvers = []
    for name, kind in ALL_SOLVERS.items():
        if setting in {item.name for item in fields(kind)}:
            solvers.append(name)
    hint = ""
    if solvers:
        hint = f"{setting} is a setting of {join_words(solvers)}: choose it with --solver."

    return UnknownName("setting", setting, known, hint, where=f"of {solver}")
