"""Compiled functions whose machine code is found again by the next process, which needs no numba to run it.

A routine takes numbers, contiguous arrays, and named tuples of these; what it finds it leaves in arrays. It is compiled
for the kinds of its arguments: the number type and dimensions of an array, the class of a named tuple. All arguments
lie in one block of memory, eight bytes a number, so a call hands over a single address:

    array       address, then its shape
    whole, bool, float      itself
    named tuple             its fields in turn
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.ik.kernels.cache import Store
from simbridge.ik.kernels.engine import address_of
from simbridge.ik.kernels.lazy import tell_of_compiling

Kind = Any
"""("array", its number type, dimensions), "bool", "whole", "float", or a class followed by the kinds of its fields."""

_ARRAYS = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))
_SERIAL = itertools.count()
_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Routine:
    """A compiled function.

    Args:
        name: Its name.
        purpose: What it is for, as the note about compiling says it.
        text: All that its machine code comes from, but for the kinds of its arguments, and for the modules outside
            `simbridge.ik` that declare their classes: a user's settings, next to which his step is expected.
        function: Makes it, to be compiled: a plain function, which may call those marked with `compiled`, and which
            neither allocates nor raises.
    """

    def __init__(self, name: str, purpose: str, text: str, function: Callable[[], Callable[..., None]]) -> None:
        self.name = name
        self._purpose, self._text, self._function = purpose, text, function
        self._found: dict[tuple[Kind, ...], Any] = {}

    def __call__(self, *arguments: Any) -> None:
        """Run it once."""
        self.bound(*arguments)()

    def bound(self, *arguments: Any) -> Call:
        """A call with these arguments, to be made as often as one likes: arrays are not copied.

        Raises:
            TypeError: An argument is of no kind that a routine takes, or an array is not contiguous.
        """
        kinds = tuple(_kind_of(value) for value in arguments)
        if kinds not in self._found:
            self._found[kinds] = self._entry(kinds)
        block: list[int | float] = []
        for value in arguments:
            _flatten(value, block)
        packed = struct.pack("".join("d" if isinstance(word, float) else "q" for word in block), *block)
        return Call(self.name, self._found[kinds], packed, arguments)

    def _entry(self, kinds: tuple[Kind, ...]) -> Any:
        modules = sorted({kind.__module__ for kind in _classes(kinds)})
        declared = {name: _module_hash(name) for name in modules if not f"{name}.".startswith("simbridge.ik.")}
        unknown = [name for name, content in declared.items() if content is None]
        # What cannot be known is taken for new: code of its own, under a name of its own, that is not kept.
        new = f"{next(_SERIAL)}" if unknown else ""
        store = Store("\n".join((self.name, str(kinds), str(declared), new, self._text)))
        symbol = f"simbridge_{store.key}"
        code = None if unknown else store.found()
        if code is None:
            what = f"the {self._purpose} ({self.name})"
            if unknown:
                _tell_of_compiling_each_time(what, unknown[0])
            else:
                tell_of_compiling(what, str(store.directory))
            from simbridge.ik.kernels.machine_code import compiled_object

            code = compiled_object(self._function(), kinds, symbol)
            if not unknown:
                store.keep(code)
        return _ENTRY_TYPE(address_of(symbol, code))


@lru_cache(maxsize=1)
def own_source() -> str:
    """The text of `simbridge.ik`: what the loops that are not generated are compiled from."""
    return "".join(path.read_text("utf-8") for path in sorted(Path(__file__).parents[1].rglob("*.py")))


def _module_hash(name: str) -> str | None:
    """What a module's file holds; None for one without a file, such as a notebook's."""
    file = getattr(sys.modules.get(name), "__file__", None)
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None
    except OSError:
        return None


def _tell_of_compiling_each_time(what: str, module: str) -> None:
    warnings.warn(
        f"Compiling {what}: a few seconds, at each start, as the settings' class is declared in {module}, which has no "
        "file that can be read. Declare it and its step in a file, and import it.",
        stacklevel=5,
    )


def _classes(kinds: tuple[Kind, ...]) -> Iterator[type]:
    """The classes of the named tuples among the arguments, and in them."""
    for kind in kinds:
        if isinstance(kind, type):
            yield kind
        elif isinstance(kind, tuple):
            yield from _classes(kind)


class Call:
    """A routine and its arguments. The interpreter's lock is free while it runs."""

    __slots__ = ("_block", "_entry", "_kept", "_name")

    def __init__(self, name: str, entry: Any, packed: bytes, kept: tuple[Any, ...]) -> None:
        self._name, self._entry, self._kept = name, entry, kept
        self._block = ctypes.create_string_buffer(packed, len(packed))

    def __call__(self) -> None:
        if status := self._entry(self._block):
            raise RuntimeError(f"The compiled {self._name} has failed with status {status}.")


def _kind_of(value: Any) -> Kind:
    if isinstance(value, np.ndarray):
        if not (value.flags.c_contiguous and value.ndim and value.dtype in _ARRAYS):
            raise TypeError(
                "A routine takes contiguous arrays of one dimension or more, of float64, int64 or bool as this machine "
                f"has them, not one of {value.ndim} dimensions, of {value.dtype.str!r}, strides {value.strides}."
            )
        return "array", value.dtype.name, value.ndim
    for kind, name in ((bool, "bool"), (int, "whole"), (float, "float")):
        if isinstance(value, kind):
            return name
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value), *(_kind_of(field) for field in value))
    raise TypeError(f"A routine does not take {type(value).__name__}.")


def _flatten(value: Any, block: list[int | float]) -> None:
    if isinstance(value, np.ndarray):
        block += [value.ctypes.data, *value.shape]
    elif isinstance(value, tuple):
        for field in value:
            _flatten(field, block)
    else:
        block.append(value)
