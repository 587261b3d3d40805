"""What was to be written cannot be."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from simbridge.errors.root import SimbridgeError


class LogWriteError(SimbridgeError, OSError):
    """The log of a run could not be opened, or no longer be written: the disk is full, a file may not grow, ...

    Attributes:
        path: The log.
        bytes_written: Length in bytes of what was stored before.
        reason: The system's error number (errno.ENOSPC, errno.EFBIG, ...).
    """

    def __init__(self, path: str | Path, bytes_written: int, reason: int) -> None:
        self.path = Path(path)
        self.bytes_written = bytes_written
        self.reason = reason
        kept = f"the {bytes_written} bytes before can be read" if bytes_written else "nothing was stored"
        super().__init__(
            f"The log {path} cannot be written: {os.strerror(reason)} ({errno.errorcode.get(reason, reason)}); {kept}. "
            f"Look at the disk's free space, its quota and the folder's permissions, or choose another folder."
        )
        self.errno = reason


class OutputDirectoryError(SimbridgeError, OSError):
    """The run directory cannot be made.

    Attributes:
        path: The directory.
        reason: Why.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"The run directory {path} cannot be used: {reason}.")


class OutputFileError(SimbridgeError, OSError):
    """A file cannot be written.

    Attributes:
        path: The file.
        reason: Why, and what to do.
    """

    def __init__(self, path: str | Path, reason: str) -> None:
        self.path = Path(path)
        self.reason = reason
        super().__init__(f"The file {path} cannot be written: {reason}.")
