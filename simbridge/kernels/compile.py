"""Kernels: functions of a program as machine code, which later processes load.

Numba compiles a program's module from a file of the cache directory, named by the hash of its text,
and keeps the machine code next to it (`numba.njit(cache=True)`).

With SIMBRIDGE_PYTHON_KERNELS=1 in the environment the same functions run as plain Python, a hundred
times slower, and a debugger stops in them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from simbridge.errors import UncompilableCode
from simbridge.kernels.cache import (
    compile_once,
    load_kept_module,
    load_module,
    warn_not_kept,
)
from simbridge.kernels.program import OPTIONS, KernelProgram, program_of
from simbridge.kernels.records import with_attributes
from simbridge.kernels.sharing import share_functions

PYTHON_SWITCH = "SIMBRIDGE_PYTHON_KERNELS"
"""Name of the environment variable that makes kernels run as plain Python."""


class Kernel:
    """A function of a program, which is compiled, or loaded from the cache, at its first call.

    All calls must have arguments of the same types: numbers, contiguous arrays, and tuples of them.

    Args:
        program: The program that contains the function; see `program_of`.
        name: Name of the function.
        purpose: What the function is part of, for the notice about compiling.
    """

    def __init__(self, program: KernelProgram, name: str, purpose: str) -> None:
        self.program = program
        self.name = name
        self._purpose = purpose
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._function is None:
            if runs_python():
                self._function = python_function(self.program, self.name)
            else:
                self._function = _compile(self.program, self.name, self._purpose, arguments)
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        # Machine code is not pickled: a process that unpickles a kernel loads it from the cache.
        return kernel, (self.program, self.name, self._purpose)


@lru_cache(maxsize=256)
def kernel(program: KernelProgram, name: str, purpose: str) -> Kernel:
    """Return the kernel with these arguments, the same object every time."""
    return Kernel(program, name, purpose)


@lru_cache(maxsize=64)
def kernel_of(function: Callable[..., Any], purpose: str) -> Kernel:
    """Return the kernel of a plain function, for which all that it uses is compiled, too."""
    return kernel(program_of(function), function.__name__, purpose)


def runs_python() -> bool:
    """Return whether kernels run as plain Python, by the environment."""
    return os.environ.get(PYTHON_SWITCH, "") not in ("", "0")


def python_function(program: KernelProgram, name: str) -> Callable[..., Any]:
    """Return a function of a program as plain Python, in which a debugger stops.

    A debugger shows generated functions in the module's file in the cache directory, and all others
    in the files that they come from.

    Args:
        program: The program.
        name: Name of the function.
    """
    # Load the program's module without numba. Its copies of functions get the code objects of the
    # originals, which name the original file and lines.
    module = load_module(program.python_text)
    for function_name, original in program.functions.items():
        vars(module)[function_name].__code__ = original.__code__
    function = getattr(module, name)

    def call(*arguments: Any) -> Any:
        """Call the function as compiled code is called."""
        # Compiled code reads the fields of a record as attributes.
        values = [with_attributes(item) if _are_records(item) else item for item in arguments]
        # A division by zero gives infinity, as in compiled code.
        with np.errstate(all="ignore"):
            return function(*values)

    return call


def _are_records(value: Any) -> bool:
    """Return whether a value is an array of records: see `simbridge.kernels.records`."""
    return isinstance(value, np.ndarray) and value.dtype.names is not None


def _compile(
    program: KernelProgram, name: str, purpose: str, arguments: tuple[Any, ...]
) -> Callable[..., Any]:
    """Return a function of a program, compiled for the types of some arguments.

    Args:
        program: The program.
        name: Name of the function.
        purpose: What the function is part of, for the notice about compiling.
        arguments: Arguments of the first call, whose types all later ones must have.

    Raises:
        UncompilableCode: Numba cannot compile it.
    """
    import numba  # noqa: PLC0415 (0.25 s, which commands that solve nothing should not take)

    signature = tuple(numba.typeof(argument) for argument in arguments)
    try:
        dispatcher = _compile_in_cache(program, name, signature, purpose)
    except numba.errors.NumbaError as error:
        raise UncompilableCode(name, str(error)) from error
    except (OSError, RuntimeError):
        # Numba has no directory that it can write to, so the machine code cannot be kept. (It says
        # so by a RuntimeError.)
        _report_compiling(purpose)
        function = getattr(load_module(program.text), name)
        dispatcher = _compile_anew(function, signature, keep=False)

    # A call with arguments of other types is an error, not a reason to compile again.
    dispatcher.disable_compile()
    compiled: Callable[..., Any] = dispatcher
    return compiled


def _compile_in_cache(program: KernelProgram, name: str, signature: Any, purpose: str) -> Any:
    """Return a function with machine code from the cache; if there is none, compile it and keep it.

    If the machine code cannot be kept, or if the kept file is damaged, the function is compiled
    anew.

    Args:
        program: The program.
        name: Name of the function.
        signature: Numba's types of the arguments.
        purpose: What the function is part of, for the notice about compiling.

    Raises:
        NumbaError: Numba cannot compile the function.
        OSError, RuntimeError: Numba has no directory that it can write to.
    """
    import numba  # noqa: PLC0415 (see `_compile`)

    module = load_module(program.text)
    function = getattr(module, name)
    dispatcher = numba.njit(cache=True, **OPTIONS)(function)
    # The files in which numba keeps machine code: an index (.nbi), and the code (.nbc).
    directory = Path(dispatcher.stats.cache_path)
    kept_files = f"{module.__name__}.{name}-*.nb?"

    # Load the machine code. Otherwise compile the function, in one process at a time.
    try:
        if any(directory.glob(kept_files)):
            _load_or_compile(dispatcher, signature)
        else:
            _report_compiling(purpose)
            # Take over equal functions of earlier programs: those that this process has compiled
            # already need not be compiled again.
            share_functions(module, program.text)
            with compile_once(module):
                # Another process may have compiled it meanwhile.
                _load_or_compile(dispatcher, signature)
    except OSError as error:
        # The cache cannot be read or written; the function may be compiled all the same.
        warn_not_kept(directory, error.strerror)
    except numba.errors.NumbaError:
        # The function itself is at fault, not the cache.
        raise
    except Exception:
        # A damaged file may cause any error when it is unpickled. If the error has another cause,
        # it is raised again when the function is compiled without the file.
        _report_compiling(purpose)
        for file in directory.glob(kept_files):
            file.unlink(missing_ok=True)
        dispatcher = _compile_anew(function, signature, keep=True)

    # After an OSError that came before the function was compiled, compile it without the cache.
    if not dispatcher.signatures:
        dispatcher = _compile_anew(function, signature, keep=False)
    return dispatcher


def _load_or_compile(dispatcher: Any, signature: Any) -> None:
    """Load the machine code of a function from the cache; if there is none, compile the function.

    The process that compiled it may have taken functions of earlier programs (`share_functions`).
    Numba then needs the modules of those programs, too.
    """
    while True:
        try:
            dispatcher.compile(signature)
            return
        except ModuleNotFoundError as error:
            if not load_kept_module(error.name or ""):
                raise


def _compile_anew(function: Callable[..., Any], signature: Any, *, keep: bool) -> Any:
    """Compile a function with numba, and return it.

    Args:
        function: A function of a program's module.
        signature: Numba's types of the arguments.
        keep: Whether to keep the machine code in the cache.
    """
    import numba  # noqa: PLC0415 (see `_compile`)

    dispatcher = numba.njit(cache=keep, **OPTIONS)(function)
    dispatcher.compile(signature)
    return dispatcher


@lru_cache(maxsize=64)
def _report_compiling(purpose: str) -> None:
    """Report once per process that functions are being compiled for a purpose."""
    warnings.warn(f"Compiling the {purpose} (first run only, a few seconds) ...", stacklevel=6)
