"""A routine's machine code, made by numba. Only what is compiled for the first time imports this."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import compiler, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.typing.templates import AbstractTemplate

from simbridge.errors import UncompilableCode
from simbridge.ik.kernels.array_type import ArrayType, array_value
from simbridge.ik.kernels.dialect import contexts
from simbridge.ik.kernels.engine import target_machine
from simbridge.ik.kernels.lazy import Compiled, calls_compiled_by

_REMEMBERED = (types.Number, types.Boolean, ArrayType)
_WORD = ir.IntType(64)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NUMBERS = {"float": types.float64, "whole": types.int64, "bool": types.boolean}
# These names of numba's stand for the C library's functions; everything else is known by its own name.
_OF_C = {"numba_frexp": "frexp", "numba_ldexp": "ldexp"}


def compiled_object(function: Callable[..., None], kinds: tuple[Any, ...], symbol: str) -> bytes:
    """An object file with a function's code for arguments of these kinds (see `routine.py`).

    It holds one function for others, `int symbol(block)`: zero if all went well.

    Raises:
        UncompilableCode: The function, or one that it calls, is not written in the dialect of `dialect.py`.
    """
    arguments = tuple(_type(kind) for kind in kinds)
    with global_compiler_lock, _no_garbage_collection(), _answers_remembered(contexts()[0]):
        target = contexts()[1]
        # One library for a routine and all that it calls: LLVM gets to see it once, and as a whole.
        library = _Library(target.codegen(), symbol)
        with calls_compiled_by(lambda called: _callable(called, library)):
            try:
                made = _compiled(function, arguments, types.none, library, inline=False)
            except Exception as problem:
                # Where numba is told of less than it expects, it may fail in any way.
                raise UncompilableCode(function.__name__, _COLOURS.sub("", str(problem))) from problem
        library.add_ir_module(_entry(target, made.fndesc, arguments, symbol))
        library.finalize()
        return library.emitted()


class _Passes(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's way from Python to LLVM, without the passes for what these functions do not hold."""

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("routine")
        for step in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.RewriteSemanticConstants,
            untyped_passes.GenericRewrites,
            # Without it names on the stack of Python 3.10 are given anew with another type.
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            typed_passes.NativeLowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """All functions of a routine, which become an object file instead of a part of this process."""

    def _optimize_functions(self, module: Any) -> None:
        # They are optimised together.
        pass

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.is_declaration:
                function.name = _OF_C.get(function.name, function.name)
            elif function.name != self.name:
                # So that the code of two routines may use one name for different things.
                function.linkage = "internal"
        # The loops are those over a handful of joints and rows: unrolled or in vectors they are no faster, twice as
        # long, and take twice as long to compile.
        tuning = binding.create_pipeline_tuning_options(speed_level=2)
        tuning.loop_vectorization = tuning.loop_interleaving = tuning.loop_unrolling = False
        tuning.slp_vectorization = True
        passes = binding.create_pass_builder(target_machine(), tuning)
        passes.getModulePassManager().run(self._final_module, passes)

    def _finalize_final_module(self) -> None:
        pass

    def emitted(self) -> bytes:
        """The object file."""
        return bytes(target_machine().emit_object(self._final_module))


def _compiled(
    function: Callable[..., Any], arguments: tuple[types.Type, ...], returned: Any, library: Any, inline: bool
) -> Any:
    flags: Any = compiler.Flags()
    # Neither Python's objects nor its exceptions: these numba would have to be there for.
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    flags.error_model = "numpy"
    flags.forceinline = inline
    return compiler.compile_extra(*contexts(), function, arguments, returned, flags, {}, library, _Passes)


def _callable(called: Compiled[..., Any], library: Any) -> types.Function:
    """What numba takes a `Compiled` for where compiled code calls it: compiled for each call's types."""
    known: dict[tuple[types.Type, ...], Any] = {}

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = object()

        def generic(self, arguments: tuple[types.Type, ...], _named: Any) -> Any:
            if arguments not in known:
                made = _compiled(called.function_for(arguments), arguments, None, library, called.inline)
                contexts()[1].insert_user_function(self.key, made.fndesc)
                known[arguments] = made.signature
            return known[arguments]

    return types.Function(Template)


def _type(kind: Any) -> types.Type:
    """Numba's type for a kind."""
    if isinstance(kind, str):
        return _NUMBERS[kind]
    what, *parts = kind
    if what == "array":
        name, dimensions = parts
        return ArrayType(types.boolean if name == "bool" else getattr(types, name), dimensions)
    return types.NamedTuple([_type(part) for part in parts], what)


def _entry(target: Any, callee: Any, arguments: tuple[types.Type, ...], symbol: str) -> ir.Module:
    """A function that takes the arguments from a block, and calls what numba has compiled with them."""
    module = target.create_module(symbol)
    convention = target.call_conv
    called = ir.Function(module, convention.get_function_type(types.none, arguments), callee.llvm_func_name)
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [_WORD.as_pointer()]), symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = (builder.load(builder.gep(entry.args[0], [_WORD(i)])) for i in range(10_000))
    values = [_value(target, builder, kind, words) for kind in arguments]
    status, _ = convention.call_function(builder, called, types.none, arguments, values)
    builder.ret(status.code)
    return module


def _value(target: Any, builder: ir.IRBuilder, kind: types.Type, words: Iterator[Any]) -> Any:
    """The next argument in the block."""
    if isinstance(kind, types.NamedTuple):
        return target.make_tuple(builder, kind, [_value(target, builder, part, words) for part in kind.types])
    word = next(words)
    if not isinstance(kind, ArrayType):
        number = target.get_value_type(kind)
        return builder.bitcast(word, number) if kind == types.float64 else builder.trunc(word, number)
    data = builder.inttoptr(word, target.get_data_type(kind.dtype).as_pointer())
    return array_value(target, builder, kind, data, [next(words) for _ in range(kind.ndim)])


@contextmanager
def _answers_remembered(typing: Any) -> Iterator[None]:
    """Code asks thousands of times what a float times a float is, or a row's element, and numba works it out anew."""
    known: dict[tuple[Any, ...], Any] = {}
    ask = typing.resolve_function_type

    def answer(function: Any, arguments: tuple[types.Type, ...], named: Any) -> Any:
        if named or not all(isinstance(kind, _REMEMBERED) for kind in arguments):
            return ask(function, arguments, named)
        key = function, *arguments
        if key not in known:
            known[key] = ask(function, arguments, named)
        return known[key]

    typing.resolve_function_type = answer
    try:
        yield
    finally:
        del typing.resolve_function_type


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Compiling makes a million objects: to look for garbage among them takes a fifth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
