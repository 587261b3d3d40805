"""Describes flags that may be left out: what the help shows, and how their words are read."""

from __future__ import annotations

from typing import Any

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec


def optional_arg(metavar: str, default: str, help: str | None = None) -> Any:
    """Describe a flag that may be left out, for the help.

    Args:
        metavar: Word that stands for the value in the help.
        default: Value without the flag, in words.
        help: Help text of the flag; by default the docstring of its field.
    """
    return arg(metavar=metavar, help_behavior_hint=f"(default: {default})", help=help)


def optional_reading(
    count: int, convert: type, choices: tuple[str, ...] = ()
) -> PrimitiveConstructorSpec[Any]:
    """Define how a flag that may be left out is read.

    By itself, tyro would offer None as a value, and name Python's types in errors.

    Args:
        count: Number of words.
        convert: Type that makes a value from each word.
        choices: Words that are accepted; any word if empty.
    """

    def read(words: list[str]) -> Any:
        """Return the value that the words stand for: a tuple if there are several."""
        values = tuple(map(convert, words))
        return values if count > 1 else values[0]

    return PrimitiveConstructorSpec(
        nargs=count,
        metavar="",
        instance_from_str=read,
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)] * count,
        choices=choices or None,
    )
