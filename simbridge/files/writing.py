"""Writing files: whole or not at all, and through no link under a name that simbridge chose."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

from simbridge.errors import OutputError


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], advice: str = "") -> Iterator[None]:
    """Turn a refusal to write within the block into an OutputError.

    Args:
        path: The file or directory that is written.
        advice: What follows the reason.
    """
    # What is being handled when the block begins did not end it.
    handled_before = sys.exc_info()[1]
    try:
        yield
    except OutputError:
        raise
    except (OSError, sqlite3.Error) as error:
        # Ctrl-C while the standard library removes a directory closes a descriptor twice: then it
        # is Ctrl-C that ended the block.
        cause = error.__context__
        if isinstance(cause, KeyboardInterrupt) and cause is not handled_before:
            raise cause from None

        number = getattr(error, "errno", None)
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, FileExistsError):
            reason = "it already exists and is not overwritten"
            advice = advice or "; choose another name"
        raise OutputError(Path(path), f"{reason}{advice}", number) from None


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], *, overwrite: bool = True, follow_links: bool = True
) -> Iterator[Path]:
    """Write a file or directory that replaces an earlier one in one step, when it is complete.

    Whatever ends the writing before that (an error, Ctrl-C, a full disk) leaves the earlier one as
    it was.

    Args:
        path: The file that is written.
        overwrite: Whether an earlier one may be replaced.
        follow_links: True for a path that the user gives: what a link there points to is written,
            and a device or pipe is written directly. False for a name that simbridge chooses inside
            a directory, which may come from anywhere: a link there is replaced, never followed, and
            a device, pipe or socket is refused. The directory itself may be a link in both cases.

    Yields:
        Where to write: the same name in a temporary directory, which is free for other files, too.

    Raises:
        OutputError: It cannot be written, or exists and is not to be overwritten.
    """
    requested = Path(path)
    target = Path(os.path.realpath(path)) if follow_links else _resolve_folder(requested)
    with writing(path):
        if not overwrite and _exists(requested, follow_links=follow_links):
            raise FileExistsError
        if _is_special(requested, follow_links=follow_links):
            if not follow_links:
                _refuse_special(requested)
            yield requested
            return

        temporary = tempfile.TemporaryDirectory(dir=target.parent, prefix=".simbridge-")
        # Removed twice, as Ctrl-C may end the first time.
        with temporary as folder, temporary:
            new = Path(folder, requested.name)
            yield new
            for part in (*new.rglob("*"), new):
                _store(part)
            _exchange(new, target, Path(folder, "earlier"), overwrite=overwrite)
        _store(target.parent)


def _exchange(new: Path, target: Path, earlier: Path, *, overwrite: bool) -> None:
    """Give `new` the name of `target`.

    What has that name becomes `earlier`, if it cannot be replaced in place.
    """
    is_claimed = False
    try:
        if not overwrite and new.is_file():
            # os.replace would silently replace what another process has just written. So claim the
            # name first with an empty file: if two processes write it at once, one is refused. A
            # directory needs no claim: os.replace lets it replace only an empty directory.
            target.touch(exist_ok=False)
            is_claimed = True
        elif overwrite and new.is_dir() and (target.is_dir() or target.is_symlink()):
            # A directory does not replace a directory with files in it, nor a link.
            os.replace(target, earlier)
        os.replace(new, target)
    except BaseException:
        if _exists(earlier) and not _exists(target):
            os.replace(earlier, target)
        if is_claimed and _exists(new):
            _remove_claim(target)
        raise


def _remove_claim(target: Path) -> None:
    """Remove the empty file that claimed the name of a target.

    Another process that may overwrite may have put its own file there meanwhile: it stays.
    """
    with contextlib.suppress(OSError):
        if target.stat().st_size == 0:
            target.unlink()


def write_file(
    path: str | os.PathLike[str],
    content: bytes,
    *,
    overwrite: bool = True,
    follow_links: bool = True,
) -> None:
    """Write a file as `replacing` does.

    Args:
        path: The file that is written.
        content: Content of the file.
        overwrite: Whether an existing file is replaced: see `replacing`.
        follow_links: Whether links are followed: see `replacing`.

    Raises:
        OutputError: It cannot be written; tells how many bytes are missing.
    """
    with replacing(path, overwrite=overwrite, follow_links=follow_links) as new:
        try:
            new.write_bytes(content)
        except OSError as error:
            size = new.stat().st_size if new.is_file() else 0
            missing = len(content) - size
            reason = (
                f"{error.strerror or error}; {missing} of its {len(content)} bytes were not written"
            )
            raise OutputError(Path(path), reason, error.errno, missing) from None


def clear_name(path: Path) -> None:
    """Remove an earlier file or link under a name that simbridge chooses.

    The next file of that name is then new.

    Raises:
        OutputError: It cannot be removed, or is a device, FIFO or socket.
    """
    with writing(path):
        if _is_special(path):
            _refuse_special(path)
        path.unlink(missing_ok=True)


def open_new(path: Path) -> BinaryIO:
    """Open an empty file for writing that grows under a name that simbridge chooses.

    An earlier file or link of that name is removed first, so that what a link points to stays as it
    is.

    Raises:
        OutputError: It cannot be made, or a device, FIFO or socket has the name.
    """
    clear_name(path)
    with writing(path):
        # Exclusive: a link that appears meanwhile is not followed either.
        return open(path, "xb")


def open_to_append(path: Path) -> io.FileIO:
    """Open a file for appending, without a buffer, under a name that simbridge chooses.

    Raises:
        OutputError: It cannot be opened, or is a link, a device, a FIFO or a socket.
    """

    def open_without_links(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW, 0o666)

    with writing(path):
        if _is_special(path):
            _refuse_special(path)
        return open(path, "ab", buffering=0, opener=open_without_links)


def _resolve_folder(path: Path) -> Path:
    """Return the path with the links of its folders resolved, but not one at the path itself."""
    return Path(os.path.realpath(path.parent), path.name)


def _exists(path: Path, *, follow_links: bool = False) -> bool:
    """Return whether there is something: behind the links, or under the name itself.

    Under the name itself, a link that leads nowhere is something, too.
    """
    return path.exists() if follow_links else os.path.lexists(path)


def _is_special(path: Path, *, follow_links: bool = False) -> bool:
    """Return whether there is a device, FIFO or socket: behind the links, or under the name."""
    try:
        mode = path.stat(follow_symlinks=follow_links).st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _refuse_special(path: Path) -> NoReturn:
    raise OutputError(
        path, "a device, FIFO or socket has this name; remove it, or choose another directory"
    )


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
