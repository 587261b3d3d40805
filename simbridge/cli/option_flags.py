"""Flags that follow from registries: options of a run, and settings of the chosen solver; and the options they give."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields, make_dataclass
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from tyro.conf import arg, subcommand

from simbridge.cli.flags import COMMANDS, Plan
from simbridge.errors import InvalidParameter
from simbridge.experiments import given, optional
from simbridge.ik.settings import (
    SOLVERS,
    FunctionParameters,
    check_solver,
    is_function,
    unknown_setting,
)

_OPTIONS = "simbridge.planning.options:Options"
# The options that are flags of each command. They load NumPy and pinocchio: the other commands start without them.
OPTIONS: dict[str, tuple[str, ...]] = {
    "run": (_OPTIONS,),
    "check": (_OPTIONS,),
    "inspect": (_OPTIONS,),
    "studio": (_OPTIONS,),
    "teleop": (
        "simbridge.teleop.device:TeleopOptions",
        "simbridge.sessions.options:LiveOptions",
        _OPTIONS,
    ),
}
# The lists of those fields of `Options` that these commands have in addition.
_LISTED = {
    "teleop": "simbridge.sessions.options:LIVE",
    "studio": "simbridge.sessions.options:STUDIO",
}


def command_type(words: list[str], *, every: bool = False) -> Any:
    """The type that tyro reads the command line's words as: any of the commands, the chosen one with all its flags.

    Args:
        words: The command line without the program's name.
        every: Whether every command has all its flags, which takes longer.
    """
    chosen = next(iter(words), "")
    kinds = {name: flags for name, (flags, _) in COMMANDS.items()}
    for name in OPTIONS:
        if every or name == chosen:
            kinds[name] = _with_options(name, kinds[name], words)
    commands = [Annotated[kind, subcommand(name)] for name, kind in kinds.items()]  # type: ignore[valid-type]
    union = commands[0]
    for command in commands[1:]:
        union = union | command
    return union


def _with_options(name: str, base: type, words: list[str]) -> type:
    """A command's flags with those of its options, and of the chosen solver."""
    flags: list[Any] = []
    more = pkgutil.resolve_name(_LISTED[name]) if name in _LISTED else ()
    for options in OPTIONS[name]:
        for own, kind in typed_fields(pkgutil.resolve_name(options)):
            if name not in own.metadata["commands"] and own.name not in more:
                continue
            parts = typed_fields(get_args(kind)[0]) if "prefix" in own.metadata else [(own, kind)]
            flags += [
                _flag(own.metadata.get("prefix", "") + part.name, part, its_kind)
                for part, its_kind in parts
            ]
    if issubclass(base, Plan):
        settings = _solver_flags(SOLVERS.get(chosen_solver(words), FunctionParameters))
        flags.append(
            ("parameters", Annotated[settings, arg(name="solver")], field(default_factory=settings))
        )
    return make_dataclass(base.__name__, flags, bases=(base,), namespace={"__doc__": base.__doc__})


def _solver_flags(settings: type) -> Any:
    """A solver's settings as flags, unchecked: tyro would report a refused one in its own words.

    Where one is empty by default, the help shows what that stands for.
    """
    names: list[Any] = []
    for own, kind in typed_fields(settings):
        if unset := own.metadata.get("unset"):
            kind = Annotated[kind, given("NAME" if kind is str else "FLOAT ...", unset)]
        names.append((own.name, kind, field(default=getattr(settings(), own.name))))
    namespace = {"__doc__": settings.__doc__, "__post_init__": lambda _: None}
    return make_dataclass(
        settings.__name__, names, bases=(settings,), frozen=True, namespace=namespace
    )


def typed_fields(kind: Any) -> list[tuple[Field[Any], Any]]:
    """The fields of a dataclass, each with its type."""
    hints = get_type_hints(kind)
    return [(own, hints[own.name]) for own in fields(kind)]


def _flag(name: str, own: Field[Any], kind: Any) -> tuple[str, Any, Any]:
    """The flag of an option's field: name, annotated type, default."""
    about = own.metadata
    metavar = about.get("metavar") or None
    if own.default is not None and own.default not in ((), ""):
        default = own.default
        if isinstance(default, float) and "units" in about:
            # In the flag's unit, in which it is a round number.
            default = round(default / about["units"][0], 9)
        return name, Annotated[kind, arg(help=about["help"], metavar=metavar)], default
    choices = (
        ()
        if "read" in about
        else next((get_args(k) for k in get_args(kind) if get_origin(k) is Literal), ())
    )
    inside = {part for k in get_args(kind) for part in (k, *get_args(k))}
    numbers = float in inside and "read" not in about
    reading = optional(len((metavar or "").split()) or 1, float if numbers else str, choices)
    unset = f"(default: {about.get('unset', 'none')})"
    metavar = metavar or "|".join(choices)
    shown = arg(
        name=about.get("flag"), help=about["help"], metavar=metavar, help_behavior_hint=unset
    )
    return name, Annotated[kind | None, reading, shown], None


def chosen_solver(words: list[str]) -> str:
    """The solver whose settings are flags: the named one, or the default of scenarios.

    Raises:
        UnknownName: There is no such solver, or it has no such setting.
        InvalidParameter: It is a function, which has no settings, and one is given.
    """
    name = "forward-dynamics"
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag == "--solver":
            name = value if equals else words[position + 1] if position + 1 < len(words) else name
    check_solver(name)
    settings = given_settings(words)
    if is_function(name):
        if settings:
            raise InvalidParameter(
                "solver's settings", ", ".join(settings), f"left out: {name} is a function"
            )
        return name
    known = {own.name for own in fields(SOLVERS[name])}
    for setting in settings:
        if setting not in known:
            raise unknown_setting(name, setting)
    return name


def given_settings(words: list[str]) -> list[str]:
    """The solver's settings that are given as flags; the others are the scenario's."""
    prefix = "--solver."
    flags = (word.partition("=")[0] for word in words if word.startswith(prefix))
    return [flag.removeprefix(prefix).replace("-", "_") for flag in flags]


def given_options(flags: Mapping[str, Any], options: type) -> dict[str, Any]:
    """Fields of options, and the values that flags give them: in SI units, files read, a dataclass for a prefix.

    Args:
        flags: Values as tyro has read them; those of commands without the flag are left out.
        options: The class of the options.

    Raises:
        UnknownName, InvalidParameter, InputFileError: A value is invalid, or a file cannot be read.
    """
    chosen: dict[str, Any] = {}
    for own, kind in typed_fields(options):
        if "prefix" in own.metadata:
            part = get_args(kind)[0]
            values = {
                inner.name: _read(inner, flags, own.metadata["prefix"]) for inner in fields(part)
            }
            given = {name: value for name, value in values.items() if value is not None}
            # A seed alone asks for nothing.
            if given and (made := part(**given)) != part(seed=made.seed):
                chosen[own.name] = made
        elif flags.get(own.name) is not None:
            chosen[own.name] = _read(own, flags)
    return chosen


def _read(own: Any, flags: Mapping[str, Any], prefix: str = "") -> Any:
    value, about = flags.get(prefix + own.name), own.metadata
    if value is None:
        return None
    if "units" in about:
        several = isinstance(value, Sequence)
        scaled = tuple(
            v * unit for v, unit in zip(value if several else (value,), about["units"], strict=True)
        )
        return scaled if several else scaled[0]
    return about["read"](value) if "read" in about else value
