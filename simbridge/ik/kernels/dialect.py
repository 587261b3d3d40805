"""The Python that a routine's code may hold, as numba is told of it.

    numbers      arithmetic, comparisons, abs, min, max, int, what numba knows of `math`, np.floor, np.ceil, np.rint
    loops        while, and for over range, arrays, enumerate, zip
    tuples       also named ones, of numbers, arrays and tuples
    arrays       see `array_type.py`
    functions    those marked with `compiled`, and `Choice`
    names        each given before it is read, and of one kind throughout its function: a whole number that becomes a
                 float is one from the start

Numba knows much more, and looks through all of it, at each operation, for what is meant; only to get it ready takes
longer than to compile a solver's code. None of this becomes known to it. What else the process has told it may get into
the dialect, though: what compiles only after that compiles in no other process.
"""

# Numba declares neither types nor its registries' decorators.
# mypy: disable-error-code="misc, no-untyped-call, untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cpu, imputils
from numba.core.typing import templates
from numba.core.typing.context import BaseContext

from simbridge.ik.kernels import array_type

_typing, _lowering = templates.Registry(), imputils.Registry("routines")
# What numba has written in Python (functions, methods, intrinsics), and would have to get ready or compile first.
_WRITTEN_IN_PYTHON = (templates._OverloadFunctionTemplate, templates._TemplateTargetHelperMixin)


@lru_cache(maxsize=1)
def contexts() -> tuple[Any, Any]:
    """What numba knows of types, and how it makes code of what is done with them."""
    typing = _Typing()
    target = _Target(typing, "cpu")
    target.refresh()
    return typing, target


class _Typing(BaseContext):
    def refresh(self) -> None:
        # Numba comes here whenever it misses something, which another module may have brought: not here.
        if not self._registries:
            super().refresh()

    def resolve_value_type(self, value: Any) -> types.Type:
        # Numba asks first what else a function might be, and writes down at length that it is nothing.
        if isinstance(value, np.ndarray):
            raise ValueError("an array is handed to compiled code, which knows no array of its module")
        function = self._lookup_global(value) if callable(value) else None
        return function or super().resolve_value_type(value)

    def _load_builtins(self) -> None:
        from numba.core.typing import builtins, collections, mathdecl  # noqa: F401

        for registry in (_typing, array_type.typing, templates.builtin_registry, mathdecl.registry):
            self.install_registry(_without_python(registry))


class _Target(cpu.CPUContext):
    def refresh(self) -> None:
        if not self._registries:
            super().refresh()

    def load_additional_registries(self) -> None:
        from numba.cpython import builtins, iterators, mathimpl, numbers, rangeobj, tupleobj  # noqa: F401

        for registry in (_lowering, array_type.lowering, mathimpl.registry):
            self.install_registry(registry)

    def post_lowering(self, _module: ir.Module, _library: Any) -> None:
        """Numba adds what counts references here; nothing does in a routine."""


def _without_python(registry: Any) -> Any:
    """A registry without what numba has written in Python."""

    def kept(template: Any) -> bool:
        return not issubclass(template, _WRITTEN_IN_PYTHON)

    left = templates.Registry()
    left.functions = [template for template in registry.functions if kept(template)]
    left.attributes = [template for template in registry.attributes if kept(template)]
    left.globals = [
        (value, kind)
        for value, kind in registry.globals
        if not isinstance(kind, types.Function) or all(kept(template) for template in kind.templates)
    ]
    return left


_REAL = (types.Boolean, types.Integer, types.Float)


class _Extreme(templates.AbstractTemplate):
    def generic(self, arguments: tuple[types.Type, ...], _named: Any) -> Any:
        if len(arguments) < 2 or not all(isinstance(kind, _REAL) for kind in arguments):
            return None
        common = types.float64 if any(isinstance(kind, types.Float) for kind in arguments) else types.int64
        return templates.signature(common, *[common] * len(arguments))


@_typing.register_global(min)
class _Min(_Extreme):
    pass


@_typing.register_global(max)
class _Max(_Extreme):
    pass


def _extreme(better: str) -> Callable[..., ir.Value]:
    """As Python's: the first of those of which none is better. Numbers of several kinds become floats."""

    def lower(_target: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        compared = builder.fcmp_ordered if signature.return_type == types.float64 else builder.icmp_signed
        best = values[0]
        for value in values[1:]:
            best = builder.select(compared(better, value, best), value, best)
        return best

    return lower


_lowering.lower(min, types.VarArg(types.Any))(_extreme("<"))
_lowering.lower(max, types.VarArg(types.Any))(_extreme(">"))


@_typing.register_global(int)
class _Whole(templates.ConcreteTemplate):
    cases = (templates.signature(types.int64, types.int64), templates.signature(types.int64, types.float64))


@_lowering.lower(int, types.Number)
def _whole(target: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value]) -> ir.Value:
    return target.cast(builder, values[0], signature.args[0], types.int64)


class _Rounding(templates.ConcreteTemplate):
    cases = (templates.signature(types.float64, types.float64),)


def _rounded_by(name: str) -> Callable[..., ir.Value]:
    def lower(_target: Any, builder: ir.IRBuilder, _signature: Any, values: tuple[ir.Value]) -> ir.Value:
        number = values[0].type
        intrinsic = builder.module.declare_intrinsic(f"llvm.{name}", [number])
        return builder.call(intrinsic, values)

    return lower


for _function, _name in ((np.floor, "floor"), (np.ceil, "ceil"), (np.rint, "rint")):
    _typing.register_global(_function)(type("Rounding", (_Rounding,), {}))
    _lowering.lower(_function, types.Float)(_rounded_by(_name))
