"""Generated modules, compiled once for all processes.

A module lies under the hash of all that its machine code depends on, so it never changes: whoever finds a file with the
right text may use it, and writing it again at the same time does no harm. Next to it numba keeps the machine code.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

# A file's time is part of what numba recognises it by: one that never changes lets writers race.
_STAMP = 1_000_000_000


def cache_directory() -> Path:
    """Where kernels are kept: $SIMBRIDGE_CACHE, else simbridge/kernels in $XDG_CACHE_HOME or in ~/.cache."""
    if moved := os.environ.get("SIMBRIDGE_CACHE"):
        return Path(moved).expanduser()
    # A relative path is to be ignored (XDG base directory specification).
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "simbridge" / "kernels"


class Module:
    """A generated module whose functions are compiled when they are first asked for.

    Args:
        text: Its source.
        purpose: What it is for, as the note about compiling says it.
    """

    def __init__(self, text: str, purpose: str) -> None:
        self._text, self._purpose = text, purpose
        self._name = f"simbridge_kernel_{_content_hash(text)}"
        self._directory = _writable_directory()
        self._module = self._imported()

    def function(self, name: str, signature: Any) -> Any:
        """A function of the module, compiled for one signature: from the cache, or now and into the cache."""
        cached = any(self._compiled_files(name))
        if not cached:
            warnings.warn(
                f"Compiling the {self._purpose} ({name}): a few seconds, once. Later starts find it in "
                f"{self._directory}.",
                stacklevel=4,
            )
        try:
            return self._compiled(name, signature)
        except Exception:
            if not cached:
                raise
        # What a crash or a full disk left behind must not be in the way for ever.
        for path in self._compiled_files(""):
            path.unlink(missing_ok=True)
        self._module = self._imported()
        return self._compiled(name, signature)

    def _compiled(self, name: str, signature: Any) -> Any:
        function = getattr(self._module, name)
        # It makes a million objects: to look for garbage among them takes a fifth of the time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            function.compile(signature)
        finally:
            if collecting:
                gc.enable()
        return function

    def _compiled_files(self, function: str) -> list[Path]:
        return list((self._directory / "__pycache__").glob(f"{self._name}.{function}*.nb?"))

    def _imported(self) -> ModuleType:
        path = self._directory / f"{self._name}.py"
        if not _holds(path, self._text):
            _write(path, self._text)
        spec = importlib.util.spec_from_file_location(self._name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Where numba looks for the module whose machine code it loads.
        sys.modules[self._name] = module
        spec.loader.exec_module(module)
        return module


def _content_hash(text: str) -> str:
    import numba
    from llvmlite import binding  # type: ignore[import-untyped]

    depends = (
        text,
        numba.__version__,
        platform.python_version(),
        platform.machine(),
        binding.get_host_cpu_name(),
    )
    return hashlib.sha256("\0".join(depends).encode()).hexdigest()[:24]


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text() == text and path.stat().st_mtime == _STAMP
    except (OSError, UnicodeDecodeError):
        return False


def _write(path: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".new", delete=False) as file:
        file.write(text)
    os.utime(file.name, (_STAMP, _STAMP))
    os.replace(file.name, path)


def _writable_directory() -> Path:
    directory = cache_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        return _temporary_directory(f"{directory} cannot be written ({error.strerror})")
    return directory


@lru_cache(maxsize=1)
def _temporary_directory(reason: str) -> Path:
    import atexit

    warnings.warn(
        f"{reason}: compiled kernels are kept for this process only. SIMBRIDGE_CACHE names another directory.",
        stacklevel=6,
    )
    directory = Path(tempfile.mkdtemp(prefix="simbridge-kernels-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
