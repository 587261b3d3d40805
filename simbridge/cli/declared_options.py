"""The options of a command, as the dataclass of its flags declares them.

The metavars in the help, such as DIR or "MM DEG", say which values an option takes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tyro.conf import Positional, UseAppendAction, arg

from simbridge.planning.option_field import literal_choices

# The types of what `arg`, `Positional` and `UseAppendAction` add to a field's type.
_ArgConfiguration: Any = type(arg())
_POSITIONAL = get_args(Positional[str])[1]
_REPEATED = get_args(UseAppendAction[str])[1]


@dataclass(frozen=True)
class DeclaredOption:
    """An option of a command.

    Attributes:
        metavar: The values that it takes, as the help names them; "" for a switch.
        is_repeatable: Whether it may be given several times, each time with one more value.
    """

    metavar: str
    is_repeatable: bool = False

    @property
    def value_count(self) -> int:
        """Number of values that it takes at least: of a list, such as "RAD ...", one."""
        if "..." in self.metavar and not self.is_repeatable:
            return 1
        return len(self.metavar.split())


def declared_options(kind: type, prefix: str = "--") -> dict[str, DeclaredOption]:
    """Return the options of a command by their flags, such as "--out".

    Args:
        kind: A dataclass of flags.
        prefix: What the names of its flags begin with.
    """
    options: dict[str, DeclaredOption] = {}
    hints = get_type_hints(kind, include_extras=True)
    for item in fields(kind):
        hint = hints[item.name]
        if not item.init or _POSITIONAL in _marks_of(hint):
            continue

        name, metavar = _describe_field(item.name, hint)
        parts = _command_parts(hint)
        for part in parts:
            # The flags of one of several commands have no prefix.
            options |= declared_options(part, "--" if len(parts) > 1 else f"{prefix}{name}.")
        if not parts:
            options[prefix + name] = DeclaredOption(metavar, _REPEATED in _marks_of(hint))
    return options


def positional_metavars(kind: type) -> list[str]:
    """Return what the arguments of a command without a flag are called, such as SCENARIO.

    Args:
        kind: The dataclass of its flags.
    """
    hints = get_type_hints(kind, include_extras=True)
    return [
        _describe_field(name, hint)[1]
        for name, hint in hints.items()
        if _POSITIONAL in _marks_of(hint)
    ]


def find_option(word: str, options: Collection[str]) -> str | None:
    """Return the option that a word of the command line is, or None.

    Args:
        word: The word, such as "--out", "--max_tool_speed" or "--out=DIR".
        options: The flags of the command.
    """
    flag = word.partition("=")[0].replace("_", "-")
    return flag if flag in options else None


def is_option(word: str) -> bool:
    """Return whether a word of the command line is an option; a negative number is a value."""
    return word.startswith("--")


def _describe_field(field_name: str, hint: Any) -> tuple[str, str]:
    """Return the name of a flag without its prefix, and its metavar.

    Args:
        field_name: Name of its field.
        hint: Type of the field, with its marks.
    """
    kind = _without_marks(hint)
    name = field_name
    if kind is bool:
        metavar = ""
    else:
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
