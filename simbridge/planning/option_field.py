"""Describes each option in one place: a field of a dataclass.

The flag, its help text and the entry in settings.toml follow from that field.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import Field, field, fields
from functools import partial
from typing import Any, Literal, TypeVar, cast, get_args

_Options = TypeVar("_Options")


def option(
    default: Any, help: str = "", metavar: str = "", unset: str = "", **metadata: Any
) -> Any:
    """Describe a field of `Options`.

    Args:
        default: Default of the field; None and () mean that the option was not given.
        help: What the option means.
        metavar: Names of the flag's values, such as "MM DEG".
        unset: The effect of leaving the flag out, where the default does not show it.
        metadata: `commands` that have the flag; `units`, the flag's units in SI, one for each
            value; `read`, a function from the flag's text to the value; `devices` of teleoperation
            that have it, where not all do; `flag`, its name where that is not the field's; `prefix`
            of the flags of an option that is a dataclass; `table` of settings.toml that records the
            option as given; `repeats`, whether the flag is repeated for each of several values.
    """
    shown = {"help": help, "metavar": metavar, "unset": unset, "commands": ("run", "check")}
    return field(default=default, metadata={**shown, **metadata})


run_option = partial(option, commands=("run",))
"""An option of the command that moves an arm."""

shared_option = partial(option, commands=("run", "check", "inspect"))
"""An option of all commands that read a trajectory."""

planned_option = partial(shared_option, table="scenario")
"""Such an option that is recorded with the scenario."""

teleop_option = partial(option, commands=("teleop",))
"""An option of teleoperation."""


def describe_fields(kind: type[_Options]) -> type[_Options]:
    """Add the help text of each field to the docstring of a class of options, for `help`.

    Used as a decorator, above that of the dataclass.
    """
    head, raises, errors = inspect.cleandoc(kind.__doc__ or "").partition("\nRaises:")
    lines = [head, "Attributes:"]
    for option_field in fields(cast(Any, kind)):
        facts = option_field.metadata
        unset = facts["unset"] or repr(option_field.default)
        # Flags may have units for people, a program has SI units.
        unit = " In SI units." if "units" in facts else ""
        entry = f"{option_field.name}: {facts['help']}{unit} (default: {unset})"
        lines += textwrap.wrap(entry, 96, initial_indent=" " * 4, subsequent_indent=" " * 8)
    kind.__doc__ = "\n".join([*lines, raises + errors])
    return kind


def flag_name(option_field: Field[Any]) -> str:
    """Return the flag of an option, without the dashes in front."""
    name: str = option_field.metadata.get("flag") or option_field.name
    return name.replace("_", "-")


def literal_choices(kind: Any) -> tuple[str, ...]:
    """Return the values of a `Literal`, also of one that may be None; () for another type."""
    for part in (kind, *get_args(kind)):
        if getattr(part, "__origin__", None) is Literal:
            return get_args(part)
    return ()


def record_options(options: Any, table: str) -> dict[str, Any]:
    """Return the options that a table of settings.toml records as given, by name.

    An option that was left out is not among them.
    """
    values: dict[str, Any] = {}
    for option_field in fields(options):
        value = getattr(options, option_field.name)
        if option_field.metadata.get("table") != table or value is None or value == ():
            continue

        plain = list(value) if isinstance(value, tuple) else value
        if not isinstance(plain, (bool, int, float, list)):
            plain = str(plain)
        values[option_field.name] = plain
    return values
