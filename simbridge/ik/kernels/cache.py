"""Machine code, made once for all processes.

It lies under the hash of all that it depends on, so it never changes: whoever finds a file that is whole may use it,
and writing it again at the same time does no harm. Next to generated code lies its source.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import shutil
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path

from simbridge.ik.kernels.engine import processor

# What makes machine code of a text, loads it, and calls it.
_MAKER = ("array_type", "dialect", "engine", "lazy", "machine_code", "routine")
# Before the code lies its hash: code that is not whole would end the process.
_SEAL = hashlib.sha256().digest_size


def cache_directory() -> Path:
    """Where kernels are kept: $SIMBRIDGE_CACHE, else simbridge/kernels in $XDG_CACHE_HOME or in ~/.cache."""
    if moved := os.environ.get("SIMBRIDGE_CACHE"):
        return Path(moved).expanduser()
    # A relative path is to be ignored (XDG base directory specification).
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "simbridge" / "kernels"


class Store:
    """A place in the cache for the machine code that comes from a text.

    Attributes:
        key: What it lies under: the hash of all that it depends on.
        directory: Where.
    """

    def __init__(self, text: str) -> None:
        self.key = _content_hash(text)
        self.directory = _writable_directory()
        self._path = self.directory / f"{self.key}.o"

    def found(self) -> bytes | None:
        """The machine code; None if it is not there, or is not what was written."""
        try:
            content = self._path.read_bytes()
        except OSError:
            return None
        seal, code = content[:_SEAL], content[_SEAL:]
        return code if hashlib.sha256(code).digest() == seal else None

    def keep(self, code: bytes) -> None:
        """Write the machine code, if there is room for it: who has it in memory can do without."""
        _write(self._path, hashlib.sha256(code).digest() + code)

    def print(self, source: str) -> Path:
        """Write what the machine code is made from, if there is room for it: people and tracebacks read it."""
        path = self._path.with_suffix(".py")
        _write(path, source.encode())
        return path


@lru_cache(maxsize=1)
def _maker() -> str:
    return "".join(Path(__file__).with_name(f"{name}.py").read_text("utf-8") for name in _MAKER)


def _content_hash(text: str) -> str:
    depends = (
        text,
        _maker(),
        *(importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")),
        platform.python_version(),
        platform.machine(),
        *processor(),
    )
    return hashlib.sha256("\0".join(depends).encode()).hexdigest()[:24]


def _write(path: Path, content: bytes) -> None:
    try:
        handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".new")
        try:
            with open(handle, "wb") as file:
                file.write(content)
            os.replace(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError as error:
        # The disk or a quota may be full even where a file can be made.
        _tell_that_nothing_is_kept(path.parent, error.strerror)


def _writable_directory() -> Path:
    directory = cache_directory()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        _tell_that_nothing_is_kept(directory, error.strerror)
        return _temporary_directory() or directory
    return directory


@lru_cache(maxsize=16)
def _tell_that_nothing_is_kept(directory: Path, reason: str) -> None:
    """Once for each directory and reason."""
    warnings.warn(
        f"{directory} cannot be written ({reason}): compiled kernels are kept for this process only. "
        "SIMBRIDGE_CACHE names another directory.",
        stacklevel=6,
    )


@lru_cache(maxsize=1)
def _temporary_directory() -> Path | None:
    """None where not even that can be made."""
    import atexit

    try:
        directory = Path(tempfile.mkdtemp(prefix="simbridge-kernels-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
