"""Files that appear whole or not at all: all that simbridge writes, except log.mcap, which grows during a run."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from simbridge.errors import OutputError
from simbridge.resources import AnyPath


@contextlib.contextmanager
def writing(path: AnyPath, *, advice: str = "", refusals: tuple[type[Exception], ...] = (OSError,)) -> Iterator[None]:
    """Turn the system's refusal to write a file or directory into an OutputError.

    Args:
        path: The file or directory.
        advice: Follows the reason.
        refusals: The errors that mean this; a library may have another than OSError.
    """
    try:
        yield
    except OutputError:
        raise
    except refusals as error:
        number, reason = getattr(error, "errno", None), getattr(error, "strerror", None)
        raise OutputError(path, f"{reason or error}{advice}", number) from None


@contextlib.contextmanager
def replacing(
    path: AnyPath, *, overwrite: bool = True, refusals: tuple[type[Exception], ...] = (OSError,)
) -> Iterator[Path]:
    """Write a file or directory that takes the place of an earlier one in one step, when it is complete and stored.

    Whatever ends the writing before that (an error, Ctrl-C, a full disk) leaves the earlier one as it was. Devices and
    pipes are written directly, and a link stays one.

    Args:
        path: The file or directory.
        overwrite: Whether an earlier one may be there.
        refusals: As for `writing`.

    Yields:
        Where to write: the same name in a temporary directory, which intermediate files may use, too.

    Raises:
        OutputError: It exists already and must not be overwritten, or cannot be written.
    """
    given, target = Path(path), Path(os.path.realpath(path))
    if given.exists() and not overwrite:
        raise OutputError(path, "it exists already, and is not overwritten; choose another name")
    with writing(path, refusals=refusals):
        if given.exists() and not (given.is_file() or given.is_dir()):
            yield given
            return
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".simbridge-") as folder:
            new = Path(folder) / given.name
            yield new
            for part in (*new.rglob("*"), new):
                _store(part)
            _move(new, target, Path(folder) / "earlier", overwrite)
        _store(target.parent)


def write_file(path: AnyPath, content: str | bytes, *, overwrite: bool = True) -> None:
    """Write a file as `replacing` does; text as UTF-8.

    Raises:
        OutputError: As for `replacing`; it says how many bytes are missing.
    """
    data = content if isinstance(content, bytes) else content.encode()
    with replacing(path, overwrite=overwrite) as new:
        try:
            new.write_bytes(data)
        except OSError as error:
            missing = len(data) - (new.stat().st_size if new.is_file() else 0)
            reason = f"{error.strerror or error}; {missing} of its {len(data)} bytes are missing"
            raise OutputError(path, reason, error.errno, missing) from None


def _store(path: Path) -> None:
    """Wait until it is on the disk: else a power cut may leave an empty file under the new name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        # Some network file systems do not store directories on request.
        if not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def _move(new: Path, target: Path, earlier: Path, overwrite: bool) -> None:
    try:
        if overwrite and new.is_dir() and target.is_dir():
            # A directory does not replace one with files in it.
            os.replace(target, earlier)
        if overwrite or new.is_dir():
            os.replace(new, target)
        else:
            # Of two that write the same file at once, one is refused.
            try:
                os.link(new, target)
            except OSError:
                # Not every file system has links.
                if target.exists():
                    raise
                os.replace(new, target)
    except BaseException:
        if earlier.exists() and not target.exists():
            os.replace(earlier, target)
        raise
