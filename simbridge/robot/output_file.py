"""Files that appear whole or not at all: all that simbridge writes, except log.mcap, which grows during a run."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from simbridge.errors import OutputError


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], advice: str = "") -> Iterator[None]:
    """Turn a refusal to write a file or directory into an OutputError; advice follows the reason."""
    try:
        yield
    except OutputError:
        raise
    except (OSError, sqlite3.Error) as error:
        number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or error
        if isinstance(error, FileExistsError):
            reason, advice = "it exists already, and is never overwritten", advice or "; choose another name"
        raise OutputError(Path(path), f"{reason}{advice}", number) from None


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Write a file or directory that takes the place of an earlier one in one step, when it is complete and stored.

    Whatever ends the writing before that (an error, Ctrl-C, a full disk) leaves the earlier one as it was. Yields where
    to write: the same name in a temporary directory, free for other files, too. Devices and pipes are written directly.

    Raises:
        OutputError: It cannot be written, or exists and is not to be overwritten.
    """
    given, target = Path(path), Path(os.path.realpath(path))
    with writing(path):
        if given.exists() and not overwrite:
            raise FileExistsError
        if given.exists() and not (given.is_file() or given.is_dir()):
            yield given
            return
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".simbridge-") as folder:
            new, earlier = Path(folder, given.name), Path(folder, "earlier")
            yield new
            for part in (*new.rglob("*"), new):
                _store(part)
            try:
                if not overwrite and new.is_file():
                    # Of two that write it at once, one is refused.
                    target.touch(exist_ok=False)
                elif overwrite and new.is_dir() and target.is_dir():
                    # A directory does not replace one with files in it.
                    os.replace(target, earlier)
                os.replace(new, target)
            except BaseException:
                if earlier.exists() and not target.exists():
                    os.replace(earlier, target)
                raise
        _store(target.parent)


def write_file(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = True) -> None:
    """Write a file as `replacing` does; the OutputError says how many bytes are missing."""
    with replacing(path, overwrite=overwrite) as new:
        try:
            new.write_bytes(content)
        except OSError as error:
            missing = len(content) - (new.stat().st_size if new.is_file() else 0)
            reason = f"{error.strerror or error}; {missing} of its {len(content)} bytes are missing"
            raise OutputError(Path(path), reason, error.errno, missing) from None


def _store(path: Path) -> None:
    """Wait until it is on the disk: else a power cut may leave an empty file under the new name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():  # Some network file systems do not store directories on request.
            raise
    finally:
        os.close(descriptor)
