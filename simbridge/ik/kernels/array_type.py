"""Arrays as a routine's code sees them: contiguous, so an address and a shape is all that there is to one.

Numba's own arrays are seven to nine words each (strides, and whose memory it is), which every function hands on to the
next, and which LLVM then has to see through.

An array has elements, rows (of a stack of matrices: matrices), parts of a vector, a shape and a length; loops go over
what is in it. Negative indices count from the end.
"""

# Numba declares neither types nor its registries' decorators.
# mypy: disable-error-code="misc, no-untyped-call, untyped-decorator"

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils, imputils
from numba.core.typing import templates
from numba.cpython import slicing
from numba.extending import models, register_model

# What numba is to know of arrays: which type has what is done with them, and how it is done.
typing, lowering = templates.Registry(), imputils.Registry("arrays of routines")


class ArrayType(types.IterableType):
    """A contiguous array of numbers of one type."""

    # So that `is` is refused: of two types that cannot change numba would say that they differ.
    mutable = True

    def __init__(self, dtype: types.Type, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(f"contiguous_array({dtype}, {ndim}d)")

    @property
    def iterator_type(self) -> types.IteratorType:
        return _Iteration(self)


class _Iteration(types.SimpleIteratorType):
    """What a loop over an array holds: the array, and how far it has come."""

    def __init__(self, array: ArrayType) -> None:
        self.array = array
        super().__init__(f"iteration({array})", _at(array, 1))


@register_model(ArrayType)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: ArrayType) -> None:
        parts = [("data", types.CPointer(kind.dtype)), ("shape", types.UniTuple(types.intp, kind.ndim))]
        super().__init__(manager, kind, parts)


@register_model(_Iteration)
class _IterationModel(models.StructModel):
    def __init__(self, manager: Any, kind: _Iteration) -> None:
        super().__init__(manager, kind, [("array", kind.array), ("next", types.EphemeralPointer(types.intp))])


def array_value(target: Any, builder: ir.IRBuilder, kind: ArrayType, data: ir.Value, shape: list[ir.Value]) -> ir.Value:
    """An array that begins at `data`, a pointer to its numbers."""
    array = cgutils.create_struct_proxy(kind)(target, builder)
    array.data, array.shape = data, cgutils.pack_array(builder, shape)
    return array._getvalue()


@typing.register_attr
class _Attributes(templates.AttributeTemplate):
    key = ArrayType

    def resolve_shape(self, kind: ArrayType) -> types.Type:
        return types.UniTuple(types.intp, kind.ndim)


@lowering.lower_getattr(ArrayType, "shape")
def _shape(_target: Any, builder: ir.IRBuilder, _kind: ArrayType, array: ir.Value) -> ir.Value:
    return builder.extract_value(array, 1)


def _at(array: ArrayType, indices: int) -> types.Type:
    """The type of what so many indices lead to."""
    return array.dtype if indices == array.ndim else ArrayType(array.dtype, array.ndim - indices)


def _found(kind: types.Type, index: types.Type) -> types.Type | None:
    """The type of what is at an index."""
    if not isinstance(kind, ArrayType):
        return None
    if isinstance(index, types.SliceType):
        return kind if kind.ndim == 1 and not index.has_step else None
    parts: Any = index if isinstance(index, types.BaseTuple) else (index,)
    if not all(isinstance(part, types.Integer) for part in parts) or len(parts) > kind.ndim:
        return None
    return _at(kind, len(parts))


@typing.register_global(len)
class _Len(templates.AbstractTemplate):
    def generic(self, arguments: tuple[types.Type, ...], _named: Any) -> Any:
        is_array = len(arguments) == 1 and isinstance(arguments[0], ArrayType)
        return templates.signature(types.intp, *arguments) if is_array else None


@lowering.lower(len, ArrayType)
def _len(_target: Any, builder: ir.IRBuilder, _signature: Any, arguments: tuple[ir.Value]) -> ir.Value:
    return _parts(builder, arguments[0])[1][0]


@typing.register_global(operator.getitem)
class _GetItem(templates.AbstractTemplate):
    def generic(self, arguments: tuple[types.Type, ...], _named: Any) -> Any:
        found = _found(*arguments)
        return found and templates.signature(found, *arguments)


@typing.register_global(operator.setitem)
class _SetItem(templates.AbstractTemplate):
    def generic(self, arguments: tuple[types.Type, ...], _named: Any) -> Any:
        kind, index, value = arguments
        found = _found(kind, index)
        if found is None or isinstance(found, ArrayType) or self.context.can_convert(value, found) is None:
            return None
        return templates.signature(types.none, kind, index, found)


def _parts(builder: ir.IRBuilder, array: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
    """Where an array begins, and its shape."""
    return builder.extract_value(array, 0), cgutils.unpack_tuple(builder, builder.extract_value(array, 1))


def _address(target: Any, builder: ir.IRBuilder, array: ir.Value, index: ir.Value, kind: Any) -> ir.Value:
    """Where the number is, or a row's first, at an index of this kind."""
    data, shape = _parts(builder, array)
    several = isinstance(kind, types.BaseTuple)
    indices = cgutils.unpack_tuple(builder, index) if several else [index]
    kinds = kind if several else [kind]
    place = ir.Constant(shape[0].type, 0)
    for dimension, length in enumerate(shape):
        place = builder.mul(place, length) if dimension else place
        if dimension < len(indices):
            i = target.cast(builder, indices[dimension], kinds[dimension], types.intp)
            from_end = builder.icmp_signed("<", i, ir.Constant(i.type, 0))
            place = builder.add(place, builder.select(from_end, builder.add(i, length), i))
    return builder.gep(data, [place], inbounds=True)


@lowering.lower(operator.getitem, ArrayType, types.Integer)
@lowering.lower(operator.getitem, ArrayType, types.BaseTuple)
def _get(target: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[ir.Value, ir.Value]) -> ir.Value:
    found, address = signature.return_type, _address(target, builder, *arguments, signature.args[1])
    if isinstance(found, ArrayType):
        return array_value(target, builder, found, address, _parts(builder, arguments[0])[1][-found.ndim :])
    return target.unpack_value(builder, found, address)


@lowering.lower(operator.getitem, ArrayType, types.SliceType)
def _part(target: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[ir.Value, ir.Value]) -> ir.Value:
    kind, index_kind = signature.args
    data, shape = _parts(builder, arguments[0])
    part = target.make_helper(builder, index_kind, arguments[1])
    slicing.fix_slice(builder, part, shape[0])
    first = builder.gep(data, [part.start], inbounds=True)
    return array_value(target, builder, kind, first, [slicing.get_slice_length(builder, part)])


@lowering.lower(operator.setitem, ArrayType, types.Integer, types.Any)
@lowering.lower(operator.setitem, ArrayType, types.BaseTuple, types.Any)
def _set(target: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[ir.Value, ...]) -> ir.Value:
    array, index, value = arguments
    kind, index_kind, _value_kind = signature.args
    target.pack_value(builder, kind.dtype, value, _address(target, builder, array, index, index_kind))
    return target.get_dummy_value()


@lowering.lower("getiter", ArrayType)
def _begin(target: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[ir.Value]) -> ir.Value:
    iteration = target.make_helper(builder, signature.return_type)
    iteration.array = arguments[0]
    iteration.next = cgutils.alloca_once_value(builder, target.get_constant(types.intp, 0))
    return iteration._getvalue()


@lowering.lower("iternext", _Iteration)
@imputils.iternext_impl(imputils.RefType.UNTRACKED)
def _next(target: Any, builder: ir.IRBuilder, signature: Any, arguments: tuple[ir.Value], result: Any) -> None:
    (kind,) = signature.args
    iteration = target.make_helper(builder, kind, value=arguments[0])
    at = builder.load(iteration.next)
    more = builder.icmp_signed("<", at, _parts(builder, iteration.array)[1][0])
    result.set_valid(more)
    with builder.if_then(more):
        one = templates.signature(kind.yield_type, kind.array, types.intp)
        result.yield_(_get(target, builder, one, (iteration.array, at)))
        builder.store(builder.add(at, target.get_constant(types.intp, 1)), iteration.next)
