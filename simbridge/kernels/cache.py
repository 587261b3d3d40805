"""The cache directory of compiled programs, and the modules whose text is kept there."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType

# Modification time of every kept file, s since 1970. It is fixed, since several processes may write
# the same file, and numba recompiles a file with another time.
MODIFICATION_TIME_S = 1_000_000_000
# Number of digits of a hash in the name of a file.
HASH_DIGITS = 24
# How long a process waits for another that compiles the same, s. Longer than any kernel takes, but
# the other may be stopped.
LONGEST_WAIT_S = 60.0
# Time between two attempts to get the lock, s.
WAIT_STEP_S = 0.05


def cache_directory() -> Path:
    """Return the directory in which kernels are kept.

    It is $SIMBRIDGE_CACHE, or else simbridge/kernels in $XDG_CACHE_HOME or in ~/.cache.
    """
    directory = os.environ.get("SIMBRIDGE_CACHE")
    if directory:
        return Path(directory).expanduser()

    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG base directory specification says that a relative path must be ignored.
    if not base.is_absolute():
        base = Path.home() / ".cache"
    return base / "simbridge" / "kernels"


@lru_cache(maxsize=256)
def load_module(text: str) -> ModuleType:
    """Return the module with a text as source.

    Its name is made of the hash of the text and of the versions of numba, llvmlite, numpy and
    Python, so that numba finds its machine code again in the next process.
    """
    libraries = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    content = "\0".join([text, platform.python_version(), *libraries]).encode()
    digest = hashlib.sha256(content).hexdigest()[:HASH_DIGITS]

    module = ModuleType(f"simbridge_kernel_{digest}")
    path = _keep_text(f"{module.__name__}.py", text)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def load_kept_module(name: str) -> bool:
    """Load a module by its name, if its text is kept in the cache.

    Returns:
        Whether the module is loaded now.
    """
    try:
        text = (cache_directory() / f"{name}.py").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    # A text that was changed has another name.
    return load_module(text).__name__ == name


@contextmanager
def compile_once(module: ModuleType) -> Iterator[None]:
    """Let one process at a time compile a module's functions within the block.

    Another process waits for up to a minute. If the block has ended by then, that process finds in
    the cache what was compiled, else it compiles the same.

    Args:
        module: The module, from `load_module`.
    """
    path = cache_directory() / f"{module.__name__}.lock"
    try:
        lock = open(path, "w")
    except OSError:
        # Without a cache directory there is nothing to wait for.
        yield
        return

    with lock:
        # If the lock cannot be had in time, both processes compile, which only costs time.
        _wait_for(lock.fileno())
        try:
            yield
        finally:
            # A process that comes later makes a new file, even while others still wait with this
            # one. Both find what was compiled; two that compile at once only lose time.
            path.unlink(missing_ok=True)


def _wait_for(lock: int) -> None:
    """Wait until a file descriptor's lock is ours, at most LONGEST_WAIT_S."""
    end = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < end:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(WAIT_STEP_S)
        except OSError:
            # A file system without locks.
            return
        else:
            return


def _keep_text(name: str, text: str) -> Path:
    """Keep a text in a file, and return the file.

    It is in the cache directory, or else in a temporary directory of this process.
    """
    directory = cache_directory()
    try:
        return _write_whole(directory / name, text)
    except OSError as error:
        warn_not_kept(directory, error.strerror)

    try:
        return _write_whole(Path(_temporary_directory().name, name), text)
    except OSError:
        # Without any file, the text is still compiled, under this name.
        return Path(name)


def _write_whole(path: Path, text: str) -> Path:
    """Write a file unless it has this text already, and return its path.

    A process never reads a part of the file, even if several write it at the same time: each writes
    a file of its own, which then takes the place of the file.

    Raises:
        OSError: The file cannot be written.
    """
    try:
        if path.read_text("utf-8") == text:
            return path
    except (OSError, UnicodeDecodeError):
        pass

    # Kept files are run as code, so only the user may write into the directory.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.utime(unfinished, (MODIFICATION_TIME_S, MODIFICATION_TIME_S))
        os.replace(unfinished, path)
    except BaseException:
        # An interrupt leaves no unfinished file behind, either.
        os.unlink(unfinished)
        raise
    return path


@lru_cache(maxsize=1)
def warn_not_kept(directory: Path, reason: str) -> None:
    """Warn once per process that kernels cannot be kept in a directory."""
    warnings.warn(
        f"{directory} cannot be written ({reason}), so compiled kernels are lost when this "
        "process ends. Set SIMBRIDGE_CACHE to another directory.",
        stacklevel=6,
    )


@lru_cache(maxsize=1)
def _temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary directory, the same every time, which is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="simbridge-kernels-", ignore_cleanup_errors=True)
