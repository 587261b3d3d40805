"""Errors between processes: every class arrives as it was raised, with all its fields."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import simbridge
from simbridge.backends.backend import Ending
from simbridge.backends.error_events import error_facts, reconstruct_error
from simbridge.errors import (
    InvalidParameter,
    LimitExceeded,
    MissingPackage,
    PlannedCollision,
    PlanRefused,
    SimbridgeError,
    TargetOutOfReach,
    UnstableSolver,
)
from simbridge.running.run_ending import StoppedAtTheEnd

# Arguments of a constructor whose value must be of a certain kind; the others are numbers or text.
VALUES: dict[str, Any] = {
    "bytes_written": 7,
    "cause": ValueError("inner"),
    "checksum": (1, 2, 3),
    "ending": Ending(arm_at_rest=True, evidence=["seen"]),
    "known": ("one", "two"),
    "number": 28,
    "path": Path("runs/hand"),
    "runtime_state": 4,
    "value": (1.0, 2.0),
    "variables": ("a", "b"),
}
NUMBERS = ("int", "float", "int | None", "float | None")
AT_SAMPLE = {"sample": 5, "time": 0.04, "joint": "elbow"}
# Errors whose constructor passes facts on, or computes with its arguments.
EXAMPLES: dict[str, Callable[[], SimbridgeError]] = {
    "LimitExceeded": lambda: LimitExceeded(
        "Too fast.", "velocity", value=3.0, limit=2.0, **AT_SAMPLE
    ),
    "PlanRefused": lambda: PlanRefused("Refused.", value=3.0, limit=2.0, **AT_SAMPLE),
    "PlannedCollision": lambda: PlannedCollision(
        "Too near.", "self", ("a", "b"), value=-0.01, **AT_SAMPLE
    ),
    "StoppedAtTheEnd": lambda: StoppedAtTheEnd("It was interrupted.", "protective_stop", ("seen",)),
    "TargetOutOfReach": lambda: TargetOutOfReach("Too far.", distance=0.2, angle=0.1, **AT_SAMPLE),
    "UnstableSolver": lambda: UnstableSolver(9.0, 0.5, needed=(1.0, 0.1)),
}


def error_classes() -> list[type[SimbridgeError]]:
    """Every class of errors in the package, whatever module it is in."""
    for module in pkgutil.walk_packages(simbridge.__path__, "simbridge."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except (ImportError, MissingPackage):
            # A package that need not be installed.
            continue
    return sorted(set(subclasses(SimbridgeError)), key=lambda kind: kind.__qualname__)


def subclasses(kind: type[SimbridgeError]) -> Iterator[type[SimbridgeError]]:
    yield kind
    for derived in kind.__subclasses__():
        # Tests define errors of their own.
        if derived.__module__.startswith("simbridge."):
            yield from subclasses(derived)


def example(kind: type[SimbridgeError]) -> SimbridgeError:
    """An error of a class, with a value for each argument of its constructor."""
    if kind.__name__ in EXAMPLES:
        return EXAMPLES[kind.__name__]()
    if "__init__" not in {
        name
        for base in kind.__mro__[:-1]
        if issubclass(base, SimbridgeError)
        for name in vars(base)
    }:
        return kind("a message")
    parameters = inspect.signature(kind).parameters.values()
    return kind(**{parameter.name: value_for(parameter) for parameter in parameters})


def value_for(parameter: inspect.Parameter) -> Any:
    if parameter.name in VALUES:
        return VALUES[parameter.name]
    if parameter.annotation in NUMBERS:
        return 2
    if parameter.annotation == "bool":
        return True
    return f"some {parameter.name}"


def facts(error: SimbridgeError) -> dict[str, Any]:
    """Everything about an error that a program or a reader sees."""
    inherited = {name: getattr(error, name) for name in ("cause", "aftermath", "run_directory")}
    number = {"errno": error.errno} if isinstance(error, OSError) else {}
    return {"text": str(error), "args": error.args, **inherited, **number, **vars(error)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__qualname__)
def test_an_error_can_be_pickled(kind: type[SimbridgeError]) -> None:
    error = example(kind)
    error.aftermath = "The arm is at rest."
    error.run_directory = Path("runs/hand")

    restored = pickle.loads(pickle.dumps(error))

    assert type(restored) is kind
    assert facts(restored) == facts(error)


@pytest.mark.slow
@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__qualname__)
def test_an_error_arrives_as_it_was_raised(kind: type[SimbridgeError]) -> None:
    error = example(kind)

    received = reconstruct_error(json.loads(json.dumps(error_facts(error))))

    assert type(received) is kind
    assert facts(received) == facts(error)


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "value", [10**5000, Unprintable()], ids=["a huge integer", "an object without text"]
)
def test_an_unprintable_value_is_refused_alike(value: object) -> None:
    error = InvalidParameter("speed", value, "a number")

    assert error.value is value
    assert "must be a number; got a value of type" in str(error)
