"""Flags that follow from registries: options of a run, and settings of the chosen solver.

One half makes flags of the fields, the other makes options of the values that the flags have.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields, make_dataclass
from typing import Annotated, Any, get_args, get_type_hints

from tyro.conf import UseAppendAction, arg, subcommand

from simbridge.cli.flags import COMMANDS, PlanFlags
from simbridge.cli.option_errors import OtherDevicesOption
from simbridge.errors import InvalidParameter
from simbridge.experiments.flag_types import optional_arg, optional_reading
from simbridge.ik.settings import (
    ALL_SOLVERS,
    FunctionParameters,
    check_solver,
    is_function,
    unknown_setting,
)
from simbridge.planning.option_field import flag_name, literal_choices
from simbridge.teleop import DEVICES

# The solver whose settings are flags where none is named: the default of scenarios.
DEFAULT_SOLVER = "forward-dynamics"
# Flags of a solver's settings begin with this.
SOLVER_PREFIX = "--solver."

_OPTIONS = "simbridge.planning.options:Options"
# The options that are flags of each command. They load NumPy and pinocchio: the other commands
# start without them.
OPTIONS: dict[str, tuple[str, ...]] = {
    "run": (_OPTIONS,),
    "check": (_OPTIONS,),
    "inspect": (_OPTIONS,),
    "studio": (_OPTIONS,),
    "teleop": (
        "simbridge.teleop.options:TeleopOptions",
        "simbridge.sessions.options:LiveOptions",
        _OPTIONS,
    ),
}
# The lists of those fields of `Options` that these commands have in addition.
ADDITIONAL_FIELDS = {
    "teleop": "simbridge.sessions.options:LIVE",
    "studio": "simbridge.sessions.options:STUDIO",
}


def command_types(arguments: Sequence[str], *, every: bool = False) -> dict[str, type]:
    """Return the dataclass of each command's flags by name; the chosen command has all its flags.

    Args:
        arguments: The command line without the program's name.
        every: Whether every command has all its flags, which takes longer.
    """
    chosen = arguments[0] if arguments else ""
    kinds = {name: flags for name, (flags, _) in COMMANDS.items()}
    for name in OPTIONS:
        if every or name == chosen:
            kinds[name] = _with_options(name, kinds[name], arguments)
    return kinds


def any_command(kinds: Mapping[str, type]) -> Any:
    """Return the type that tyro reads the command line as: any of the commands.

    Args:
        kinds: The dataclass of each command's flags by name.
    """
    commands: list[Any] = [
        Annotated[kind, subcommand(name)]  # type: ignore[valid-type]
        for name, kind in kinds.items()
    ]
    union = commands[0]
    for command in commands[1:]:
        union = union | command
    # Without a text, tyro searches its own source for one: a quarter of the time of the help.
    return Annotated[union, arg(help="simbridge COMMAND --help explains a command.")]


def _with_options(name: str, base: type, arguments: Sequence[str]) -> type:
    """Extend a command's flags by those of its options, and of the chosen solver.

    Args:
        name: Name of the command.
        base: The dataclass of its own flags.
        arguments: The command line, which names the solver.
    """
    additional: tuple[str, ...] = ()
    if name in ADDITIONAL_FIELDS:
        additional = pkgutil.resolve_name(ADDITIONAL_FIELDS[name])

    device = _named_device(arguments) if name == "teleop" else ""
    flags: list[Any] = []
    for options in OPTIONS[name]:
        for option, kind in typed_fields(pkgutil.resolve_name(options)):
            is_of_command = name in option.metadata["commands"] or option.name in additional
            if is_of_command and _concerns_device(option, device, arguments):
                flags += _option_flags(option, kind)

    if issubclass(base, PlanFlags):
        solver = ALL_SOLVERS.get(chosen_solver(arguments), FunctionParameters)
        settings: Any = _settings_flags(solver)
        # Without a text, tyro searches the source for one: a tenth of the time of reading.
        parameters: Any = Annotated[settings, arg(name="solver", help=solver.__doc__)]
        flags.append(("parameters", parameters, field(default_factory=settings)))

    return make_dataclass(base.__name__, flags, bases=(base,), namespace={"__doc__": base.__doc__})


def _named_device(arguments: Sequence[str]) -> str:
    """Return the device of teleoperation that a command line names; "" for none."""
    for word in arguments:
        if word in DEVICES:
            return word
    return ""


def _concerns_device(option: Field[Any], device: str, arguments: Sequence[str]) -> bool:
    """Return whether an option is a flag of teleoperation by a device.

    Args:
        option: The field of the options.
        device: Name of the device; "" where none is named, and the flags of all are shown.
        arguments: The command line.

    Raises:
        OtherDevicesOption: The option is given, but concerns other devices.
    """
    devices = option.metadata.get("devices", ())
    if not device or not devices or device in devices:
        return True

    flag = f"--{flag_name(option)}"
    if any(word.partition("=")[0] == flag for word in arguments):
        raise OtherDevicesOption(flag, device, devices)
    return False


def _option_flags(option: Field[Any], kind: Any) -> list[tuple[str, Any, Any]]:
    """Return the flags of an option: one, or one for each field of an option that is a dataclass.

    Args:
        option: The field of the options.
        kind: Its type.
    """
    prefix = option.metadata.get("prefix")
    if prefix is None:
        return [_flag(option.name, option, kind)]
    parts = typed_fields(get_args(kind)[0])
    return [_flag(prefix + part.name, part, part_kind) for part, part_kind in parts]


def _settings_flags(settings: type) -> Any:
    """Return a solver's settings as flags, unchecked: tyro would report a refused one in its words.

    Where one is empty by default, the help shows what that stands for.
    """
    flags: list[Any] = []
    for setting, kind in typed_fields(settings):
        unset = setting.metadata.get("unset")
        if unset:
            metavar = "NAME" if kind is str else "FLOAT ..."
            kind = Annotated[kind, optional_arg(metavar, unset)]
        default = getattr(settings(), setting.name)
        flags.append((setting.name, kind, field(default=default)))

    namespace = {"__doc__": settings.__doc__, "__post_init__": lambda _: None}
    return make_dataclass(
        settings.__name__, flags, bases=(settings,), frozen=True, namespace=namespace
    )


def typed_fields(kind: Any) -> list[tuple[Field[Any], Any]]:
    """Return the fields of a dataclass, each with its type."""
    hints = get_type_hints(kind)
    return [(item, hints[item.name]) for item in fields(kind)]


def _flag(name: str, option: Field[Any], kind: Any) -> tuple[str, Any, Any]:
    """Return the flag of an option's field: name, annotated type, default.

    Args:
        name: Name of the flag's field, with its prefix.
        option: The field of the options.
        kind: Its type.
    """
    facts = option.metadata
    metavar = facts.get("metavar") or None
    unset = facts.get("unset", "none")
    if facts.get("repeats"):
        hint = f"(default: {unset})"
        shown = arg(help=facts["help"], metavar=metavar, help_behavior_hint=hint)
        return name, Annotated[kind, UseAppendAction, shown], ()

    # An option with a default that is not empty: tyro reads and shows it.
    default = option.default
    if default is not None and default not in ((), ""):
        if isinstance(default, float) and "units" in facts:
            # In the flag's unit, in which it is a round number.
            default = round(default / facts["units"][0], 9)
        return name, Annotated[kind, arg(help=facts["help"], metavar=metavar)], default

    # An option that may be left out: its words are read here.
    choices: tuple[str, ...] = ()
    convert: type = str
    if "read" not in facts:
        choices = literal_choices(kind)
        parts = _parts(kind)
        convert = next((number for number in (float, int) if number in parts), str)
    word_count = len((metavar or "").split()) or 1
    reading = optional_reading(word_count, convert, choices)

    shown = arg(
        name=facts.get("flag"),
        help=facts["help"],
        metavar=metavar or "|".join(choices),
        help_behavior_hint=f"(default: {unset})",
    )
    return name, Annotated[kind | None, reading, shown], None


def _parts(kind: Any) -> set[Any]:
    """Return the parts of a union, and the types of what is in them."""
    parts = set(get_args(kind))
    for part in get_args(kind):
        parts.update(get_args(part))
    return parts


def chosen_solver(arguments: Sequence[str]) -> str:
    """Return the solver whose settings are flags: the one that is named, else the default one.

    Raises:
        UnknownName: There is no such solver, or it has no such setting.
        InvalidParameter: It is a function, which has no settings, but a setting is given.
    """
    solver = _named_solver(arguments)
    check_solver(solver)

    settings = solver_setting_names(arguments)
    if is_function(solver):
        if settings:
            needed = f"left out: {solver} is a function"
            raise InvalidParameter("solver's settings", ", ".join(settings), needed)
        return solver

    known = {item.name for item in fields(ALL_SOLVERS[solver])}
    for setting in settings:
        if setting not in known:
            raise unknown_setting(solver, setting)
    return solver


def _named_solver(arguments: Sequence[str]) -> str:
    """Return the value of the last --solver, or the default."""
    solver = DEFAULT_SOLVER
    for position, word in enumerate(arguments):
        flag, equals, value = word.partition("=")
        if flag != "--solver":
            continue
        if equals:
            solver = value
        elif position + 1 < len(arguments) and not arguments[position + 1].startswith("--"):
            solver = arguments[position + 1]
    return solver


def solver_setting_names(arguments: Sequence[str]) -> list[str]:
    """Return the solver's settings that flags name; the others are the scenario's."""
    flags = [word.partition("=")[0] for word in arguments if word.startswith(SOLVER_PREFIX)]
    return [flag.removeprefix(SOLVER_PREFIX).replace("-", "_") for flag in flags]


def options_from_flags(flags: Mapping[str, Any], options: type) -> dict[str, Any]:
    """Return the fields of options that flags set, with their values in SI units.

    Files are read, and flags with a prefix become a dataclass.

    Args:
        flags: Values as tyro has read them; those of commands without the flag are left out.
        options: The class of the options.

    Raises:
        UnknownName, InvalidParameter, InputFileError: A value is invalid, or a file cannot be read.
    """
    chosen: dict[str, Any] = {}
    for option, kind in typed_fields(options):
        prefix = option.metadata.get("prefix")
        if prefix is not None:
            part = _dataclass_from_flags(get_args(kind)[0], flags, prefix)
            if part is not None:
                chosen[option.name] = part
        elif flags.get(option.name) is not None:
            chosen[option.name] = _convert(option, flags[option.name])
    return chosen


def _dataclass_from_flags(kind: Any, flags: Mapping[str, Any], prefix: str) -> Any:
    """Return an option that is a dataclass, or None where its flags ask for nothing.

    Args:
        kind: The dataclass.
        flags: Values as tyro has read them.
        prefix: What the names of its flags begin with.
    """
    values = {}
    for item in fields(kind):
        value = flags.get(prefix + item.name)
        converted = None if value is None else _convert(item, value)
        if converted is not None:
            values[item.name] = converted
    if not values:
        return None

    # A seed alone asks for nothing.
    part = kind(**values)
    return None if part == kind(seed=part.seed) else part


def _convert(option: Field[Any], value: Any) -> Any:
    """Convert the value of a flag to SI units, or to what reading it makes of it."""
    facts = option.metadata
    if "units" in facts:
        if not isinstance(value, Sequence):
            return value * facts["units"][0]
        return tuple(number * unit for number, unit in zip(value, facts["units"], strict=True))
    return facts["read"](value) if "read" in facts else value
