"""The methods of values: those of lists, and of handles, which answer by themselves."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.values import MAX_ELEMENTS, check_size, kind_of


def invoke(
    thread: Any, value: Any, name: str, *arguments: Any
) -> Generator[None, None, tuple[Any, Any]]:
    """Call a method: value.name(...).

    Args:
        thread: The calling thread, which is charged for the work.
        value: A list; or a handle, which is not URScript's own and answers by its
            `call(thread, name, arguments)`, a generator.
        name: Name of the method.
        arguments: Arguments of the call, as in the script.

    Returns:
        The value after the call, which the compiled program assigns to its variable, and what the
        call returns.
    """
    if hasattr(value, "call"):
        return value, (yield from value.call(thread, name, arguments))

    if type(value) is not tuple or name not in _METHODS:
        raise RuntimeFault(f"There is no method '{name}' of {kind_of(value)}.")
    thread.charge(len(value))

    items = list(value)
    try:
        result = _METHODS[name](items, *arguments)
    except (TypeError, IndexError):
        counts = f"{len(items)} elements and {len(arguments)} arguments"
        raise RuntimeFault(
            f"'{name}' cannot be called on a list with {counts} like these."
        ) from None

    if len(items) > MAX_ELEMENTS:
        raise RuntimeFault(f"A list has more than {MAX_ELEMENTS} elements.")
    changed = tuple(items)
    thread.charge(check_size(changed))
    return changed, result


def _check_range(begin: int, end: int, count: int) -> None:
    """Refuse a range that is not within a list: Python would count from the end."""
    if not 0 <= begin <= end <= count:
        raise IndexError


def _insert(items: list[Any], index: int, value: Any) -> None:
    _check_range(index, index, len(items))
    items.insert(index, value)


def _remove(items: list[Any], index: int) -> None:
    _check_range(index, index + 1, len(items))
    del items[index]


def _slice(items: list[Any], begin: int, end: int) -> tuple[Any, ...]:
    _check_range(begin, end, len(items))
    return tuple(items[begin:end])


def _capacity(_items: list[Any]) -> int:
    return MAX_ELEMENTS


# The methods of a list; each is called with a copy of it.
_METHODS: dict[str, Callable[..., Any]] = {
    "append": list.append,
    "clear": list.clear,
    "extend": list.extend,
    "insert": _insert,
    "pop": list.pop,
    "remove": _remove,
    "length": len,
    "capacity": _capacity,
    "slice": _slice,
}
