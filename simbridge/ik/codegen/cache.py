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

from simbridge.ik.codegen.engine import processor

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
        """Write the machine code."""
        _write(self._path, hashlib.sha256(code).digest() + code)

    def print(self, source: str) -> Path:
        """Write what the machine code is made from, for people to read."""
        path = self._path.with_suffix(".py")
        _write(path, source.encode())
        return path


@lru_cache(maxsize=1)
def _maker() -> str:
    """The text of what makes machine code of a text, and calls it."""
    return "".join(Path(__file__).with_name(f"{name}.py").read_text("utf-8") for name in ("machine_code", "routine"))


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
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".new", delete=False) as file:
        file.write(content)
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
