"""What a sweep may change: every option of a simulated run and every setting of a solver, by the name of its flag.

Nothing is listed here that the registries of options (`Options`) and settings (`SOLVERS`) do not say.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.ik.settings import SOLVERS, check_solver, resolved
from simbridge.planning.option_field import literal_choices
from simbridge.planning.options import Options
from simbridge.quoting import quoted
from simbridge.trajectory.trajectory import Sampling

SOLVER = "solver."
"""Names of solvers' settings begin with this, as their flags do."""
SEED = "sample-seed"
"""The parameter that `--seeds` counts."""

_SIMULATED = "a sweep runs in simulation only"
_ONE = "it belongs to one run"
NOT_SWEPT: Mapping[str, str] = {
    "backend": _SIMULATED,
    "host": _SIMULATED,
    "yes": _SIMULATED,
    "on-scaling": _SIMULATED,
    "on-pause": _SIMULATED,
    "realtime-priority": _SIMULATED,
    "realtime": "a sweep is not paced by the wall clock",
    "gui": "a sweep opens no window",
    "label": _ONE,
    "out": _ONE,
    "plan": _ONE,
}
"""Options of a run that are no parameters of a sweep, and why not."""

Kind = Literal["text", "choice", "number", "whole number", "numbers"]


@dataclass(frozen=True)
class Parameter:
    """One thing that a sweep may change.

    Attributes:
        name: As its flag, without the dashes in front: "solver.kp", "servo-gain", "sample-noise".
        kind: Of its values.
        choices: For a choice.
        units: The flag's units in SI, one for each of its numbers; () for SI units.
        reader: What turns the text of a file's name, or of anything special, into its value.
        planned: Whether it acts on the plan, not only on the run.
    """

    name: str
    kind: Kind
    choices: tuple[str, ...] = ()
    units: tuple[float, ...] = ()
    reader: Callable[[str], Any] | None = None
    planned: bool = True

    def plain(self, text: str) -> str:
        """A value's text as it is written everywhere: of two texts of one number the same. Others are refused."""
        if self.kind == "choice" and text not in self.choices:
            raise UnknownName(f"value of {self.name}", text, self.choices)
        if self.kind in ("text", "choice"):
            return text
        return " ".join(f"{number:.12g}" for number in self._numbers(text))

    def read(self, text: str) -> Any:
        """The value that a text stands for, in SI units. What is none is refused, and a file that cannot be read."""
        if self.kind in ("text", "choice"):
            return text if self.reader is None else self.reader(text)
        numbers = self._numbers(self.plain(text))
        scaled = tuple(
            n * unit for n, unit in zip(numbers, self.units or [1] * len(numbers), strict=True)
        )
        return scaled if self.kind == "numbers" else scaled[0]

    def _numbers(self, text: str) -> list[float]:
        numbers = [self._number(word) for word in text.split()]
        if not numbers or (self.kind != "numbers" and len(numbers) > 1):
            raise self._wrong(text)
        if self.units and len(numbers) != len(self.units):
            raise InvalidParameter(
                self.name, text, f"{len(self.units)} numbers, separated by blanks"
            )
        return numbers

    def _number(self, word: str) -> float:
        try:
            number = float(word)
            if math.isnan(number) or (self.kind == "whole number" and number != int(number)):
                raise ValueError
        except (ValueError, OverflowError):
            raise self._wrong(word) from None
        return int(number) if self.kind == "whole number" else number

    def _wrong(self, text: str) -> InvalidParameter:
        needed = {"whole number": "one whole number", "numbers": "numbers, separated by blanks"}
        return InvalidParameter(self.name, quoted(text), needed.get(self.kind, "one number"))


@cache
def parameters() -> dict[str, Parameter]:
    """All parameters by their names."""
    found = [
        Parameter("robot", "text"),
        Parameter("solver", "text"),
        Parameter("home", "numbers"),
        Parameter("link-lengths", "numbers"),
    ]
    hints, sampling = get_type_hints(Options), get_type_hints(Sampling)
    for own in fields(Options):
        about = own.metadata
        if "prefix" in about:
            found += [
                _parameter(about["prefix"] + part.name, sampling[part.name], part.metadata)
                for part in fields(Sampling)
            ]
        else:
            made = _parameter(about.get("flag") or own.name, hints[own.name], about)
            found.append(replace(made, planned="check" in about["commands"]))
    for kind in SOLVERS.values():
        hints = get_type_hints(kind)
        found += [
            _parameter(SOLVER + own.name, hints[own.name], own.metadata) for own in fields(kind)
        ]
    return {one.name: one for one in found if one.name not in NOT_SWEPT}


def _parameter(name: str, kind: Any, about: Mapping[str, Any]) -> Parameter:
    name = name.replace("_", "-")
    units = tuple(about.get("units", ()))
    if "read" in about:
        return Parameter(name, "text", reader=about["read"])
    parts = {kind, *get_args(kind)}
    parts |= {inner for part in parts for inner in get_args(part)}
    # An empty text is "not given", for choices too.
    if choices := tuple(filter(None, about.get("choices") or literal_choices(kind))):
        return Parameter(name, "choice", choices)
    if any(get_origin(part) in (tuple, Sequence, list) for part in parts):
        return Parameter(name, "numbers", units=units)
    if float in parts:
        return Parameter(name, "number", units=units)
    return Parameter(name, "whole number" if int in parts else "text", units=units)


def parameter(name: str) -> Parameter:
    """The parameter of this name.

    Raises:
        InvalidParameter: It is an option of a run that a sweep does not have.
        UnknownName: There is none.
    """
    name = name.replace("_", "-")
    if reason := NOT_SWEPT.get(name):
        raise InvalidParameter("sweep's parameter", name, f"another one: {reason}")
    known = parameters()
    if name not in known:
        near = difflib.get_close_matches(name, known) or [
            other for other in known if other.endswith(f".{name}")
        ]
        hint = "Parameters are the flags of `simbridge run`; a solver's settings are called solver.NAME."
        raise UnknownName("parameter", name, near, hint)
    return known[name]


@dataclass(frozen=True)
class Choices:
    """What the values of a point choose.

    Attributes:
        robot: A name or a file; None for the cell's, or else ur10.
        home: Joint positions, rad; () for the robot's.
        lengths: Link lengths of a planar arm, m; () for the robot's.
        solver: A name, or module:function; "" for the scenario's.
        settings: Of the solver, those that are given.
        options: Of the run.
    """

    robot: str | None
    home: tuple[float, ...]
    lengths: tuple[float, ...]
    solver: str
    settings: Mapping[str, Any]
    options: Options


def choices(values: Mapping[str, str]) -> Choices:
    """What values, by the names of their parameters, choose; an empty text is not given.

    Raises:
        SimbridgeError: A value is none, or they contradict each other.
    """
    given = {name: parameter(name).read(text) for name, text in values.items() if text}
    settings = {
        name.removeprefix(SOLVER).replace("-", "_"): given.pop(name)
        for name in [*given]
        if name.startswith(SOLVER)
    }
    solver = given.pop("solver", "")
    if solver:
        check_solver(solver)
    if solver in SOLVERS:
        resolved(SOLVERS[solver], None, settings)
    robot, home, lengths = (
        given.pop("robot", None),
        given.pop("home", ()),
        given.pop("link-lengths", ()),
    )
    sampling, options = {}, {}
    for own in fields(Options):
        flag = (own.metadata.get("flag") or own.name).replace("_", "-")
        if "prefix" in own.metadata:
            for part in fields(Sampling):
                name = (own.metadata["prefix"] + part.name).replace("_", "-")
                if name in given:
                    sampling[part.name] = given[name]
        elif flag in given:
            options[own.name] = given[flag]
    made = Sampling(**sampling)
    if made != Sampling(seed=made.seed):
        options["sampling"] = made
    return Choices(robot, home, lengths, solver, settings, Options(**options))


def is_random(values: Mapping[str, str]) -> bool:
    """Whether the seed of a point's samples matters."""
    sampling = choices(
        {name: text for name, text in values.items() if name.startswith("sample-")}
    ).options.sampling
    return sampling is not None and (
        sampling.jitter > 0.0 or sampling.dropout > 0.0 or any(sampling.noise)
    )
