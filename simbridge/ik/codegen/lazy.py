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
    """A function that other compiled code may call, and so may Python: then numba compiles it, and keeps it.

    What is run at every start is a `Routine` instead, which comes from its cache without numba.

    Args:
        function: It may allocate only if no routine calls it.
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
        result: _Result = self._from_python(*arguments, **named)
        return result

    @property
    def kept_in(self) -> str:
        """The directory where numba keeps what it has compiled for calls from Python."""
        return str(self._from_python.stats.cache_path)

    @functools.cached_property
    def _from_python(self) -> Any:
        from numba import njit

        dispatcher = njit(cache=True, nogil=True, error_model="numpy")(self._function)
        _told().append(dispatcher)
        return dispatcher

    @functools.cached_property
    def _inner(self) -> Any:
        from numba import njit

        return njit(error_model="numpy")(self._function)

    @property
    def _numba_type_(self) -> Any:
        # Numba asks an object that it does not know for its type.
        if _calls_compiled_by is None:
            from numba import types

            return types.Dispatcher(self._inner)
        if self._type[0] is not _calls_compiled_by:
            self._type = _calls_compiled_by, _calls_compiled_by(self)
        return self._type[1]


class Inlined(Compiled[_Given, _Result]):
    """A compiled function that becomes a part of what calls it."""

    inline = True


class Choice(Compiled[..., Any]):
    """A call, in compiled code, of the function that belongs to the class of its first argument, a named tuple."""

    def __init__(self, name: str) -> None:
        self.functions: dict[type, Callable[..., Any]] = {}
        self.__name__ = name
        self._type = (None, None)

    def function_for(self, types: tuple[Any, ...]) -> Callable[..., Any]:
        return self.functions[types[0].instance_class]


def compiled(function: Callable[_Given, _Result]) -> Compiled[_Given, _Result]:
    """Marks a function to be compiled when it is first called."""
    return Compiled(function)


def inlined(function: Callable[_Given, _Result]) -> Inlined[_Given, _Result]:
    """Marks a function to be compiled into whatever compiled code calls it."""
    return Inlined(function)


_calls_compiled_by: Callable[[Compiled[..., Any]], Any] | None = None


@contextmanager
def calls_compiled_by(typed: Callable[[Compiled[..., Any]], Any]) -> Iterator[None]:
    """While it lasts, numba takes compiled functions that are called for what `typed` says."""
    global _calls_compiled_by
    _calls_compiled_by = typed
    try:
        yield
    finally:
        _calls_compiled_by = None


def tell_of_compiling(what: str, where: object) -> None:
    """Say that something is being compiled, and that it is once only."""
    warnings.warn(f"Compiling {what}: a few seconds, once. Later starts find it in {where}.", stacklevel=6)


@functools.cache
def _told() -> list[Any]:
    """The dispatchers of which it is told, once in a process, when numba compiles rather than finds one in its cache.

    They are small and each is compiled for every kind of its arguments: a line for each would be noise.
    """
    from numba.core import event

    dispatchers: list[Any] = []
    told = False

    class Teller(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            nonlocal told
            found = event.data["dispatcher"]
            if not told and any(found is dispatcher for dispatcher in dispatchers):
                told = True
                tell_of_compiling("poses, Jacobians and distances", found.stats.cache_path)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Teller())
    return dispatchers
