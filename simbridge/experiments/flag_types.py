"""Types of flags that may be left out.

They say what the help shows of a flag, and how its words are read.
"""

from __future__ import annotations

from typing import Any

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec


def optional_arg(metavar: str, default: str, help: str | None = None) -> Any:
    """Describe a flag that may be left out, for the help.

    Args:
        metavar: Word that stands for the value.
        default: What holds without the flag, in words.
        help: What the flag means; by default the docstring of its field.
    """
    return arg(metavar=metavar, help_behavior_hint=f"(default: {default})", help=help)


def optional_reading(
    count: int, convert: type, choices: tuple[str, ...] = ()
) -> PrimitiveConstructorSpec[Any]:
    """Define how a flag that may be left out is read.

    Tyro alone would offer None as a value, and report Python's types.

    Args:
        count: Number of words.
        convert: Makes a value of each word.
        choices: The words that are accepted; any if empty.
    """

    def read(words: list[str]) -> Any:
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
