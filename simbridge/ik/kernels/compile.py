"""Compiles generated modules with numba, and keeps them for later processes.

A module's text is written to the cache directory under the hash of its content, and numba keeps the machine code next
to it (`numba.njit(cache=True)`). The text contains everything that is compiled, so the hash changes whenever the code
does. This is the only module of `simbridge.ik` that reads or writes files.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from simbridge.errors import UncompilableCode

# Any fixed time (s): numba recompiles when a file is newer, and several processes may write the same file.
_MODIFIED = 1_000_000_000
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


class Kernel:
    """A function of a generated module, compiled (or loaded from the cache) at its first call.

    Args:
        text: Source of the module: see `source.py`.
        name: The function. Every call takes arguments of the same types: numbers, contiguous arrays, and tuples of
            them.
        purpose: What it is part of, for the notice about compiling.
    """

    def __init__(self, text: str, name: str, purpose: str) -> None:
        self.text, self.name, self._purpose = text, name, purpose
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._function is None:
            self._function = _compiled(self.text, self.name, self._purpose, arguments)
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        # Machine code is not copied: whoever unpickles a solver loads it again.
        return kernel, (self.text, self.name, self._purpose)


@lru_cache(maxsize=256)
def kernel(text: str, name: str, purpose: str) -> Kernel:
    """The kernel of these arguments, the same one every time."""
    return Kernel(text, name, purpose)


def cache_directory() -> Path:
    """Where kernels are kept: $SIMBRIDGE_CACHE, else simbridge/kernels in $XDG_CACHE_HOME or in ~/.cache."""
    if directory := os.environ.get("SIMBRIDGE_CACHE"):
        return Path(directory).expanduser()
    # A relative path is to be ignored (XDG base directory specification).
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "simbridge" / "kernels"


def _compiled(text: str, name: str, purpose: str, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """A function of a module, compiled for arguments of these types.

    Raises:
        UncompilableCode: Numba cannot compile it.
    """
    import numba  # 0.25 s, which commands that solve nothing should not take

    signature = tuple(numba.typeof(argument) for argument in arguments)
    module = _module(text)
    function = getattr(module, name)
    try:
        cached = numba.njit(cache=True, **_OPTIONS)(function)
        files = Path(cached.stats.cache_path), f"{module.__name__}.{name}-*.nb?"
        if not any(files[0].glob(files[1])):
            _report_compiling(purpose)
        try:
            cached.compile(signature)
        except OSError as error:
            _warn_not_kept(files[0], error.strerror)
        except numba.errors.NumbaError:
            raise
        except Exception:
            # A damaged file. One that is not damaged raises the same error again.
            _report_compiling(purpose)
            for file in files[0].glob(files[1]):
                file.unlink(missing_ok=True)
            cached = numba.njit(cache=True, **_OPTIONS)(function)
            cached.compile(signature)
        if not cached.signatures:
            cached = _uncached(numba, function, signature)
    except numba.errors.NumbaError as error:
        raise UncompilableCode(name, str(error)) from error
    except (OSError, RuntimeError):
        # Numba has no directory to write to.
        _report_compiling(purpose)
        cached = _uncached(numba, function, signature)
    cached.disable_compile()
    compiled: Callable[..., Any] = cached
    return compiled


def _uncached(numba: Any, function: Callable[..., Any], signature: tuple[Any, ...]) -> Any:
    compiled = numba.njit(**_OPTIONS)(function)
    compiled.compile(signature)
    return compiled


@lru_cache(maxsize=256)
def _module(text: str) -> ModuleType:
    """The module, under a name that numba finds again in the next process."""
    versions = [platform.python_version(), *map(importlib.metadata.version, ("numba", "llvmlite", "numpy"))]
    content = "\0".join([text, *versions]).encode()
    module = ModuleType(f"simbridge_kernel_{hashlib.sha256(content).hexdigest()[:24]}")
    path = _written(f"{module.__name__}.py", text)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def _written(name: str, text: str) -> Path:
    """The file with this text: in the cache directory, else in a temporary one."""
    directory = cache_directory()
    try:
        return _write(directory / name, text)
    except OSError as error:
        _warn_not_kept(directory, error.strerror)
    try:
        return _write(_temporary_directory() / name, text)
    except OSError:
        # Compiled all the same, without a file.
        return Path(name)


def _write(path: Path, text: str) -> Path:
    """Write a file as a whole, unless it is there: processes that do so at the same time do not disturb each other."""
    try:
        if path.read_text("utf-8") == text:
            return path
    except (OSError, UnicodeDecodeError):
        pass
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.utime(unfinished, (_MODIFIED, _MODIFIED))
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
    return path


@lru_cache(maxsize=64)
def _report_compiling(purpose: str) -> None:
    """Once per process and purpose."""
    warnings.warn(f"Compiling the {purpose}: a few seconds, once.", stacklevel=5)


@lru_cache(maxsize=1)
def _warn_not_kept(directory: Path, reason: str) -> None:
    """Once per process."""
    warnings.warn(
        f"{directory} cannot be written ({reason}): compiled kernels are not kept after this process. "
        "SIMBRIDGE_CACHE names another directory.",
        stacklevel=6,
    )


@lru_cache(maxsize=1)
def _temporary_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="simbridge-kernels-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
