"""Functions that are compiled when they are first needed: what only defines or imports them does without numba."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Compiled(Generic[_Given, _Result]):
    """A function that becomes a part of every routine that calls it (see `routine.py`).

    Args:
        function: It neither allocates nor raises. Called from Python it runs as it is, uncompiled, as in a debugger.
    """

    inline: bool = False

    def __init__(self, function: Callable[_Given, _Result]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._type: tuple[object, Any] = (None, None)

    def function_for(self, types: tuple[Any, ...]) -> Callable[..., Any]:
        """What is to be compiled for a call with arguments of these types."""
        return self._function

    def __call__(self, *arguments: _Given.args, **named: _Given.kwargs) -> _Result:
        return self._function(*arguments, **named)

    @property
    def _numba_type_(self) -> Any:
        # Numba asks an object that it does not know for its type.
        if self._type[0] is not _calls_compiled_by:
            self._type = _calls_compiled_by, _calls_compiled_by(self)
        return self._type[1]


class Inlined(Compiled[_Given, _Result]):
    """A compiled function whose text becomes a part of what calls it."""

    inline = True


class Choice(Compiled[..., Any]):
    """A call of the function that belongs to the class of its first argument, a named tuple."""

    def __init__(self, name: str) -> None:
        self._made_by: dict[type, Callable[[], Callable[..., Any]]] = {}
        self.__name__ = name
        self._type = (None, None)

    def declare(self, kind: type, make: Callable[[], Callable[..., Any]]) -> None:
        """For this class it is the function that `make` makes, once it is to be compiled."""
        self._made_by[kind] = make

    def function_for(self, types: tuple[Any, ...]) -> Callable[..., Any]:
        return self._made_by[types[0].instance_class]()

    def __call__(self, *arguments: Any) -> Any:
        return self._made_by[type(arguments[0])]()(*arguments)


def compiled(function: Callable[_Given, _Result]) -> Compiled[_Given, _Result]:
    """Marks a function to be compiled with the routines that call it."""
    return Compiled(function)


def inlined(function: Callable[_Given, _Result]) -> Inlined[_Given, _Result]:
    """Marks a function to be compiled into whatever compiled code calls it."""
    return Inlined(function)


def _nothing_is_compiled(_called: Compiled[..., Any]) -> Any:
    raise TypeError("This function is compiled with a Routine, not by numba itself.")


_calls_compiled_by: Callable[[Compiled[..., Any]], Any] = _nothing_is_compiled


@contextmanager
def calls_compiled_by(typed: Callable[[Compiled[..., Any]], Any]) -> Iterator[None]:
    """While it lasts, numba takes compiled functions that are called for what `typed` says."""
    global _calls_compiled_by
    before, _calls_compiled_by = _calls_compiled_by, typed
    try:
        yield
    finally:
        _calls_compiled_by = before


def tell_of_compiling(what: str, where: object) -> None:
    """Say that something is being compiled, and that it is once only."""
    warnings.warn(f"Compiling {what}: a few seconds, once. Later starts find it in {where}.", stacklevel=6)
