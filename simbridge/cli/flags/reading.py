"""How a flag is shown and read."""

from __future__ import annotations

from typing import Any

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec

Six = tuple[float, float, float, float, float, float]
Seven = tuple[float, float, float, float, float, float, float]


def given(metavar: str, otherwise: str) -> Any:
    """A flag's value as the help shows it, and what holds without the flag."""
    return arg(metavar=metavar, help_behavior_hint=f"(default: {otherwise})")


def optional(count: int, *choices: str) -> PrimitiveConstructorSpec[Any]:
    """How a flag that may be left out is read: as `count` numbers, or as one of the choices.

    Tyro's own reading of such a type offers None as a value, and complains in terms of Python's types.
    """

    def read(words: list[str]) -> Any:
        if choices:
            return words[0]
        numbers = tuple(map(float, words))
        return numbers if count > 1 else numbers[0]

    return PrimitiveConstructorSpec(
        nargs=count,
        metavar="",
        instance_from_str=read,
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(value)] * count,
        choices=choices or None,
    )
