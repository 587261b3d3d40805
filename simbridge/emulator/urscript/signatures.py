"""Signatures of functions: which arguments a call may pass, by position and by name.

Those of the built-in functions are a table, `signatures.txt`; those of a program's own functions
are its definitions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A function of the table, its parameters between the brackets; and one of these parameters. The
# default of a parameter may be a list or a pose, with commas in it.
_FUNCTION = re.compile(r"(\w+)\((.*)\)")
_PARAMETER = re.compile(r"([\w|]+)(?:=(p?\[[^]]*\]|[^,]+))?")


@dataclass(frozen=True)
class ScriptParameter:
    """A parameter of a function.

    Attributes:
        names: Names of the parameter as a keyword. The first is its name in Python; the others are
            those of other editions of UR's script manual.
        default: Default of the parameter as the table has it; "..." if the manual gives none, None
            if the parameter must be passed.
    """

    names: tuple[str, ...]
    default: str | None = None

    @property
    def name(self) -> str:
        """Its name in Python."""
        return self.names[0]


@dataclass(frozen=True)
class Signature:
    """The parameters of a function.

    Attributes:
        parameters: The parameters in their order.
        any_positions: Whether further arguments by position are accepted.
        any_keywords: Whether further arguments by name are accepted.
    """

    parameters: tuple[ScriptParameter, ...] = ()
    any_positions: bool = False
    any_keywords: bool = False

    def python_name(self, keyword: str) -> str:
        """Return the name in Python of the parameter with this keyword."""
        parameter = self._find(keyword)
        return keyword if parameter is None else parameter.name

    def _find(self, keyword: str) -> ScriptParameter | None:
        """Return the parameter with a keyword; None if there is none."""
        for parameter in self.parameters:
            if keyword in parameter.names:
                return parameter
        return None

    def call_error(self, positional_count: int, keywords: Sequence[str]) -> str:
        """Return why a call does not fit, as a clause; "" if it does.

        Args:
            positional_count: Number of the arguments that are passed by position.
            keywords: Keywords of the others, in the order of the call.
        """
        count = len(self.parameters)
        if positional_count > count and not self.any_positions:
            return f"too many positional arguments: {positional_count} instead of at most {count}"

        passed = {parameter.name for parameter in self.parameters[:positional_count]}
        for keyword in keywords:
            if self._find(keyword) is None and not self.any_keywords:
                names = ", ".join(parameter.name for parameter in self.parameters) or "none"
                return f"got an unexpected keyword argument '{keyword}'; its parameters: {names}"
            name = self.python_name(keyword)
            if name in passed:
                return f"multiple values for argument '{keyword}'"
            passed.add(name)

        for parameter in self.parameters:
            if parameter.default is None and parameter.name not in passed:
                return f"missing a required argument: '{parameter.name}'"
        return ""


def read_table(text: str) -> dict[str, Signature]:
    """Return the signatures of a table, by the names of the functions.

    Args:
        text: The table in the form that `signatures.txt` describes.

    Raises:
        ValueError: A line is not a function.
    """
    signatures = {}
    for line in text.replace("\n    ", " ").splitlines():
        if not line or line.startswith("#"):
            continue
        match = _FUNCTION.fullmatch(line)
        if match is None:
            raise ValueError(f"not a function: {line}")
        name, parameters = match.groups()
        signatures[name] = _signature_of(parameters)
    return signatures


def _signature_of(parameters: str) -> Signature:
    """Return the signature of a function's parameters in the table."""
    if parameters == "*":
        return Signature(any_positions=True, any_keywords=True)
    if parameters == "**":
        return Signature(any_keywords=True)
    return Signature(
        tuple(
            ScriptParameter(tuple(names.split("|")), default or None)
            for names, default in _PARAMETER.findall(parameters)
        )
    )


def signature_of_method(method: Callable[..., Any]) -> Signature:
    """Return the signature of a method in Python, without its first parameter, the thread."""
    _, *parameters = inspect.signature(method).parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    named = [
        parameter
        for parameter in parameters
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    return Signature(
        tuple(
            ScriptParameter(
                (parameter.name,),
                None if parameter.default is inspect.Parameter.empty else "...",
            )
            for parameter in named
        ),
        any_positions=inspect.Parameter.VAR_POSITIONAL in kinds,
        any_keywords=inspect.Parameter.VAR_KEYWORD in kinds,
    )


def signature_of_definition(parameters: Iterable[tuple[str, bool]]) -> Signature:
    """Return the signature of a function of a program.

    Args:
        parameters: The name of each parameter, and whether it has a default.
    """
    return Signature(
        tuple(
            ScriptParameter((name,), "..." if has_default else None)
            for name, has_default in parameters
        )
    )


SIGNATURES: Mapping[str, Signature] = read_table(
    Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8")
)
