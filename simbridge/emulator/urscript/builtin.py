"""What the compiler must know of built-in functions. The functions themselves may be in another process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simbridge.emulator.urscript.library import LIBRARY


@dataclass(frozen=True)
class Builtin:
    """A built-in function as its callers see it.

    Attributes:
        signature: Its parameters; the first is the thread that calls.
        blocks: Whether a thread may have to wait in it: it is a generator function.
    """

    signature: inspect.Signature
    blocks: bool


def describe(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Builtin]:
    """These functions and those of the library, by name."""
    return {
        name: Builtin(inspect.signature(function), inspect.isgeneratorfunction(function))
        for name, function in {**LIBRARY, **functions}.items()
    }
