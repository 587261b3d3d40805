"""What follows a value's point: the members of a struct, and the methods of a list or of a remote procedure handle.

A list is a value, as everywhere in URScript: a method that changes it returns another one, which the compiled program
assigns to the variable.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.values import MAX_ELEMENTS, Struct, check_size, kind_of

# The methods after which the variable has another value.
LIST_CHANGES = frozenset({"append", "clear", "extend", "insert", "pop", "remove"})


def member(value: Any, name: str) -> Any:
    """value.name

    Raises:
        RuntimeFault: The value is not a struct, or has no such member.
    """
    if type(value) is not Struct:
        raise RuntimeFault(f"Only a struct has members, not {kind_of(value)}: there is no '.{name}'.")
    return value.member(name)


def invoke(thread: Any, value: Any, name: str, *arguments: Any) -> Generator[None, None, tuple[Any, Any]]:
    """value.name(...): the value after the call, and what the call returns.

    A value that is not URScript's own answers by its `call(thread, name, arguments)`, a generator.

    Raises:
        RuntimeFault: The value has no such method, or not with these arguments.
    """
    if hasattr(value, "call"):
        return value, (yield from value.call(thread, name, arguments))
    if type(value) is not tuple or name not in _METHODS:
        raise RuntimeFault(f"There is no method '{name}' of {kind_of(value)}.")
    thread.charge(len(value))
    items = list(value)
    try:
        result = getattr(_List, name)(items, *arguments)
    except (TypeError, IndexError):
        given = f"{len(items)} elements and {len(arguments)} arguments"
        raise RuntimeFault(f"'{name}' cannot be called on a list with {given} like these.") from None
    if len(items) > MAX_ELEMENTS:
        raise RuntimeFault(f"A list has more than {MAX_ELEMENTS} elements.")
    changed = tuple(items)
    thread.charge(check_size(changed))
    return changed, result


class _List:
    """The methods of a list, called with a copy of it."""

    @staticmethod
    def append(items: list[Any], value: Any) -> None:
        items.append(value)

    @staticmethod
    def clear(items: list[Any]) -> None:
        items.clear()

    @staticmethod
    def extend(items: list[Any], values: tuple[Any, ...]) -> None:
        items.extend(values)

    @staticmethod
    def insert(items: list[Any], index: int, value: Any) -> None:
        if not 0 <= index <= len(items):
            raise IndexError
        items.insert(index, value)

    @staticmethod
    def pop(items: list[Any], index: int = -1) -> Any:
        return items.pop(index)

    @staticmethod
    def remove(items: list[Any], index: int) -> None:
        if not 0 <= index < len(items):
            raise IndexError
        del items[index]

    @staticmethod
    def length(items: list[Any]) -> int:
        return len(items)

    @staticmethod
    def capacity(_items: list[Any]) -> int:
        return MAX_ELEMENTS

    @staticmethod
    def slice(items: list[Any], begin: int, end: int) -> tuple[Any, ...]:
        if not 0 <= begin <= end <= len(items):
            raise IndexError
        return tuple(items[begin:end])


_METHODS = frozenset(name for name in vars(_List) if not name.startswith("_"))
