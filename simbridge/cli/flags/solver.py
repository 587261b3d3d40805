"""The chosen solver's own flags, --solver.NAME."""

from __future__ import annotations

from dataclasses import fields

from simbridge.cli.flags.planned import Planned
from simbridge.errors import InvalidParameter
from simbridge.ik.settings import SOLVERS, check_solver, is_function, unknown_setting, with_preset


def solver_given(given: list[str]) -> str:
    """The solver whose flags are to be read: the named one, else the paper's.

    Raises:
        UnknownName: There is no such solver, or it has no such setting.
        InvalidParameter: It is a function, which has no settings, and one is given.
    """
    name = "forward-dynamics"
    for position, word in enumerate(given):
        flag, equals, value = word.partition("=")
        if flag == "--solver":
            name = value if equals else given[position + 1] if position + 1 < len(given) else name
    check_solver(name)
    settings = _solver_flags(given)
    if is_function(name):
        if settings:
            raise InvalidParameter("solver's settings", ", ".join(settings), f"left out: {name} is a function")
        return name
    known = {field.name for field in fields(SOLVERS[name])}
    for setting in settings:
        if setting not in known:
            raise unknown_setting(name, setting)
    return name


def solver_changes(command: Planned, given: list[str]) -> dict[str, object]:
    """The solver's settings that were given as flags, a preset's among them; the others are the scenario's."""
    changes = {name: getattr(command.parameters, name) for name in _solver_flags(given)}  # type: ignore[attr-defined]
    return with_preset(changes)


def _solver_flags(given: list[str]) -> list[str]:
    prefix = "--solver."
    flags = (word.partition("=")[0] for word in given if word.startswith(prefix))
    return [flag.removeprefix(prefix).replace("-", "_") for flag in flags]
