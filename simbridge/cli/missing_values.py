"""Refuses an option of the command line that is given without its value.

The metavars in the help, such as DIR or "MM DEG", say which values an option takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tyro.conf import Positional, arg

from simbridge.errors import MissingValue
from simbridge.planning.option_field import literal_choices

# The types of what `arg` and `Positional` add to a field's type.
_ArgConfiguration: Any = type(arg())
_POSITIONAL = get_args(Positional[str])[1]


def check_values(command: str, kind: type, arguments: Sequence[str]) -> None:
    """Refuse an option without its values, or with too few of them.

    Args:
        command: Name of the command.
        kind: The dataclass of the command's flags.
        arguments: The command line without the program's name.

    Raises:
        MissingValue: Names the option and the values that it takes.
    """
    # The help is shown even if the command line is not complete.
    if "--help" in arguments or "-h" in arguments:
        return

    metavars = value_metavars(kind)
    for position, word in enumerate(arguments):
        # The form --option=VALUE has its value.
        metavar = metavars.get(word.replace("_", "-"))
        if metavar is None:
            continue
        values = itertools.takewhile(lambda text: not _is_option(text), arguments[position + 1 :])
        if len(list(values)) < _value_count(metavar):
            command_names = itertools.takewhile(lambda text: not _is_option(text), arguments[:2])
            name = " ".join(command_names) if command == "experiment" else command
            raise MissingValue(name, word, metavar)


def value_metavars(kind: type, prefix: str = "--") -> dict[str, str]:
    """Return the options that take values: each flag with its metavar, such as "--out": "DIR".

    Args:
        kind: A dataclass of flags.
        prefix: What the names of its flags begin with.
    """
    metavars: dict[str, str] = {}
    hints = get_type_hints(kind, include_extras=True)
    for item in fields(kind):
        hint = hints[item.name]
        if not item.init or _is_switch_or_positional(hint):
            continue

        name, metavar = _describe_flag(item.name, hint)
        parts = _command_parts(hint)
        for part in parts:
            # The flags of one of several commands have no prefix.
            metavars |= value_metavars(part, "--" if len(parts) > 1 else f"{prefix}{name}.")
        if not parts:
            metavars[prefix + name] = metavar
    return metavars


def _is_switch_or_positional(hint: Any) -> bool:
    """Return whether a field's type is that of an option without a value, or of no option."""
    return _without_marks(hint) is bool or _POSITIONAL in _marks_of(hint)


def _describe_flag(field_name: str, hint: Any) -> tuple[str, str]:
    """Return the name of a flag without its prefix, and its metavar.

    Args:
        field_name: Name of its field.
        hint: Type of the field, with its marks.
    """
    kind = _without_marks(hint)
    name = field_name
    metavar = "|".join(literal_choices(kind)) or ("NUMBER" if kind in (int, float) else "VALUE")
    for mark in _marks_of(hint):
        if isinstance(mark, _ArgConfiguration):
            name = mark.name or name
            metavar = mark.metavar or metavar
    return name.replace("_", "-"), metavar


def _command_parts(hint: Any) -> list[Any]:
    """Return the dataclasses of flags that a type is, or is one of; none for a value's type."""
    kind = _without_marks(hint)
    alternatives = get_args(kind) if get_origin(kind) is Union else (kind,)
    parts: list[Any] = [_without_marks(alternative) for alternative in alternatives]
    return [part for part in parts if is_dataclass(part)]


def _marks_of(hint: Any) -> tuple[Any, ...]:
    """Return what an `Annotated` adds to its type; () for another type."""
    marks: tuple[Any, ...] = getattr(hint, "__metadata__", ())
    return marks


def _without_marks(hint: Any) -> Any:
    """Return the type within an `Annotated`, or the type itself."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _is_option(text: str) -> bool:
    """Return whether a word of the command line is an option; a negative number is a value."""
    return text.startswith("--")


def _value_count(metavar: str) -> int:
    """Return how many values an option takes at least.

    In a list, such as "RAD ..." or "KP [KP ...]", the values behind the first are optional.
    """
    if "..." in metavar:
        return 1
    return len(metavar.split())
