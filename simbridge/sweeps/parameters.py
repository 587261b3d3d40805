"""Defines a sweep's parameters: options of runs and settings of solvers, named like flags.

They follow from the registries of options (`Options`) and settings (`ALL_SOLVERS`).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from simbridge.backends import ENGINES, SIMULATION
from simbridge.errors import InvalidChoice, InvalidParameter, UnknownName
from simbridge.ik.settings import ALL_SOLVERS, change_settings, check_solver
from simbridge.planning.option_field import flag_name, literal_choices
from simbridge.planning.options import Options
from simbridge.quoting import quoted
from simbridge.trajectory.sampling import Sampling

# Beginning of the names of solvers' settings, as in their flags.
SOLVER = "solver."
# Name of the parameter of which `--seeds` states the number of values.
SEED = "sample-seed"

_SIMULATED = "sweeps run only in simulation"
_ONE_RUN = "it belongs to one run"

# Options of a run that are not parameters of a sweep, with the reason of each.
NOT_SWEPT: Mapping[str, str] = {
    "host": _SIMULATED,
    "yes": _SIMULATED,
    "on-scaling": _SIMULATED,
    "on-pause": _SIMULATED,
    "realtime-priority": _SIMULATED,
    "link": _SIMULATED,
    "registers": _SIMULATED,
    "realtime": "sweeps do not run in real time",
    "gui": "sweeps do not open windows",
    "label": _ONE_RUN,
    "out": _ONE_RUN,
    "plan": _ONE_RUN,
}

Kind = Literal["text", "choice", "number", "whole number", "numbers"]


@dataclass(frozen=True)
class Parameter:
    """An option of a run, or a setting of a solver, that a sweep may change.

    Attributes:
        name: Name of the flag without the dashes in front: "solver.kp", "servo-gain".
        kind: Kind of the values.
        choices: Allowed values of a choice; () for other kinds.
        units: Factors from the flag's units to SI units, one for each number; () for SI units.
        reader: Function that turns a text, such as the name of a file, into the value; None if the
            kind says how.
        planned: Whether the parameter affects the plan, not only the run.
    """

    name: str
    kind: Kind
    choices: tuple[str, ...] = ()
    units: tuple[float, ...] = ()
    reader: Callable[[str], Any] | None = None
    planned: bool = True

    @property
    def can_be_drawn(self) -> bool:
        """True if one number is a valid value, so that values can be drawn from a range."""
        # Most solver settings with several numbers also accept one for all: solver.kp=50.
        accepts_one_number = self.kind == "numbers" and self.name.startswith(SOLVER)
        return self.kind in ("number", "whole number") or accepts_one_number

    def plain(self, text: str) -> str:
        """Return a value's text in the form that is used everywhere, the same for equal numbers.

        Raises:
            InvalidChoice: The text is not one of the choices.
            InvalidParameter: The text is not as many numbers as needed.
        """
        if self.kind == "choice" and text not in self.choices:
            raise InvalidChoice(self.name, text, self.choices)
        if self.kind in ("text", "choice"):
            return text
        return " ".join(f"{number:.12g}" for number in self._parse_numbers(text))

    def read(self, text: str) -> Any:
        """Return the value that a text stands for, in SI units.

        Raises:
            SimbridgeError: The text is not as many numbers as needed, or a file cannot be read.
        """
        if self.kind in ("text", "choice"):
            return text if self.reader is None else self.reader(text)

        numbers = self._parse_numbers(self.plain(text))
        units = self.units or [1] * len(numbers)
        in_si = tuple(number * unit for number, unit in zip(numbers, units, strict=True))
        return in_si if self.kind == "numbers" else in_si[0]

    def _parse_numbers(self, text: str) -> list[float]:
        """Return the numbers in a text, in the flag's units."""
        numbers = [self._parse_number(word) for word in text.split()]
        if not numbers:
            raise self._refusal(text)
        if self.kind != "numbers" and len(numbers) > 1:
            raise self._refusal(text)

        if self.units and len(numbers) != len(self.units):
            raise self._refusal(text)
        return numbers

    def _parse_number(self, word: str) -> float:
        """Return the number that a word stands for; an int if the parameter is a whole number."""
        try:
            number = float(word)
        except ValueError:
            raise self._refusal(word) from None
        if math.isnan(number):
            raise self._refusal(word)

        if self.kind != "whole number":
            # This turns -0.0 into 0.0, so that equal numbers have equal texts.
            return number + 0.0
        if math.isinf(number) or number != int(number):
            raise self._refusal(word)
        return int(number)

    def _refusal(self, text: str) -> InvalidParameter:
        """Return the error that says which numbers are needed."""
        if self.kind == "whole number":
            needed = "one whole number"
        elif self.kind == "number":
            needed = "one number"
        elif self.units:
            needed = f"{len(self.units)} numbers, separated by blanks"
        else:
            needed = "one number, or several separated by blanks"

        if ":" in text and self.can_be_drawn:
            needed += (
                ": --grid lists values, separated by commas; for a range, use "
                f"--random {self.name}=LOW:HIGH --samples N"
            )
        return InvalidParameter(self.name, quoted(text), needed)


@cache
def parameters() -> dict[str, Parameter]:
    """Return all parameters by their names."""
    # Arguments of a run that are not fields of its options.
    candidates = [
        Parameter("robot", "text"),
        Parameter("backend", "choice", tuple(ENGINES), planned=False),
        Parameter("solver", "text"),
        Parameter("home", "numbers"),
        Parameter("link-lengths", "numbers"),
    ]
    candidates += _option_parameters()

    for settings in ALL_SOLVERS.values():
        hints = get_type_hints(settings)
        for item in fields(settings):
            candidates.append(_define(SOLVER + item.name, hints[item.name], item.metadata))

    return {item.name: item for item in candidates if item.name not in NOT_SWEPT}


def _option_parameters() -> Iterator[Parameter]:
    """Yield a parameter for each option of a run, and for each field of its sampling."""
    option_hints = get_type_hints(Options)
    sampling_hints = get_type_hints(Sampling)

    for option in fields(Options):
        # Only the sampling has a prefix, with which the names of its fields begin.
        prefix = option.metadata.get("prefix")
        if prefix is not None:
            for item in fields(Sampling):
                yield _define(prefix + item.name, sampling_hints[item.name], item.metadata)
        else:
            parameter = _define(flag_name(option), option_hints[option.name], option.metadata)
            yield replace(parameter, planned="check" in option.metadata["commands"])


def _define(name: str, hint: Any, metadata: Mapping[str, Any]) -> Parameter:
    """Return the parameter of a field of options or settings.

    Args:
        name: Name of the flag, without the dashes in front.
        hint: Type of the field.
        metadata: Metadata of the field, with "units", "read" and "choices" if it has them.
    """
    name = name.replace("_", "-")
    units = tuple(metadata.get("units", ()))
    if "read" in metadata:
        return Parameter(name, "text", reader=metadata["read"])

    # A choice may be "", but in a sweep an empty text stands for the default.
    all_choices = metadata.get("choices") or literal_choices(hint)
    allowed = tuple(choice for choice in all_choices if choice)
    if allowed:
        return Parameter(name, "choice", allowed)

    # The type, and the types within it: `tuple[float, float] | None` has a tuple and floats in it.
    types = {hint, *get_args(hint)}
    types |= {inner for outer in types for inner in get_args(outer)}
    if any(get_origin(item) in (tuple, Sequence, list) for item in types):
        return Parameter(name, "numbers", units=units)
    if float in types:
        return Parameter(name, "number", units=units)
    if int in types:
        return Parameter(name, "whole number", units=units)
    return Parameter(name, "text", units=units)


def parameter(name: str) -> Parameter:
    """Return the parameter with a name, in which underscores may stand for dashes.

    Raises:
        InvalidParameter: The name is that of an option of a run that a sweep does not have.
        UnknownName: No parameter has this name.
    """
    name = name.replace("_", "-")
    reason = NOT_SWEPT.get(name)
    if reason is not None:
        raise InvalidParameter("sweep's parameter", name, f"another one: {reason}")

    known = parameters()
    if name not in known:
        similar = difflib.get_close_matches(name, known)
        if not similar:
            # The name may lack the beginning "solver.".
            similar = [known_name for known_name in known if known_name.endswith(f".{name}")]
        hint = (
            "Parameters are the flags of `simbridge run`; a solver's settings are called "
            "solver.NAME."
        )
        raise UnknownName("parameter", name, similar, hint)
    return known[name]


@dataclass(frozen=True)
class Choices:
    """The arm, solver and options that the values of a point choose.

    Attributes:
        robot: Name or file of the arm; None for the cell's arm, or ur10 without a cell.
        backend: Name of the physics engine.
        home: Home position of the joints (n,), rad; () for that of the arm's file.
        lengths: Link lengths of a planar arm, m; () for those of the arm's file.
        solver: Name of a solver, or module:function; "" for the scenario's solver.
        settings: Settings of the solver that the values set.
        options: Options of the run.
    """

    robot: str | None
    backend: str
    home: tuple[float, ...]
    lengths: tuple[float, ...]
    solver: str
    settings: Mapping[str, Any]
    options: Options


def choices(values: Mapping[str, str]) -> Choices:
    """Return the arm, solver and options that the values of a point choose.

    Args:
        values: Texts by the names of their parameters; an empty text stands for the default.

    Raises:
        SimbridgeError: A value cannot be read, or values contradict each other.
    """
    parsed = {name: parameter(name).read(text) for name, text in values.items() if text}

    solver = parsed.get("solver", "")
    settings = {
        name.removeprefix(SOLVER).replace("-", "_"): value
        for name, value in parsed.items()
        if name.startswith(SOLVER)
    }

    # Refuse a solver that does not exist, and settings that it does not have: changing its defaults
    # raises an error then. The scenario's own solver is not known here.
    if solver:
        check_solver(solver)
    if solver in ALL_SOLVERS:
        change_settings(ALL_SOLVERS[solver], settings=None, changes=settings)

    return Choices(
        robot=parsed.get("robot"),
        backend=parsed.get("backend", SIMULATION),
        home=parsed.get("home", ()),
        lengths=parsed.get("link-lengths", ()),
        solver=solver,
        settings=settings,
        options=_make_options(parsed),
    )


@cache
def _option_fields() -> dict[str, str]:
    """Return the names of the fields of `Options`, except the sampling, by parameter."""
    return {
        flag_name(option): option.name
        for option in fields(Options)
        if "prefix" not in option.metadata
    }


@cache
def _sampling_fields() -> dict[str, str]:
    """Return the names of the fields of `Sampling` by parameter."""
    prefixes = [
        option.metadata["prefix"] for option in fields(Options) if "prefix" in option.metadata
    ]
    return {
        (prefix + item.name).replace("_", "-"): item.name
        for prefix in prefixes
        for item in fields(Sampling)
    }


def _make_options(parsed: Mapping[str, Any]) -> Options:
    """Return the options of a run.

    Args:
        parsed: Values by the names of their parameters, in SI units.
    """
    options = {
        field_name: parsed[name] for name, field_name in _option_fields().items() if name in parsed
    }

    # A sampling that differs from the default only in its seed changes nothing: it is left out.
    sampling_values = {
        field_name: parsed[name]
        for name, field_name in _sampling_fields().items()
        if name in parsed
    }
    sampling = Sampling(**sampling_values)
    if sampling != Sampling(seed=sampling.seed):
        options["sampling"] = sampling
    return Options(**options)


def is_random(values: Mapping[str, str]) -> bool:
    """Return whether a point's targets are random, so that their seed matters.

    Args:
        values: Values of the point, as texts by parameter.
    """
    sample_values = {name: text for name, text in values.items() if name.startswith("sample-")}
    sampling = choices(sample_values).options.sampling
    if sampling is None:
        return False
    return sampling.jitter > 0.0 or sampling.dropout > 0.0 or any(sampling.noise)
