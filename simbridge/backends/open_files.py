"""The limit on open files, by which ur_rtde's reconnection is switched off (servo_process.py says why)."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

# Open files: the standard streams. Not zero, because poll() watches no more descriptors than the limit.
_NO_MORE_FILES = 3


def forbid_new_files() -> None:
    """From now on this process opens no file and no socket; open ones stay open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_NO_MORE_FILES, most))


@contextlib.contextmanager
def new_files_allowed() -> Iterator[None]:
    """Files can be opened again within the block."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
