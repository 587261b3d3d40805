"""ur_rtde reconnects by itself when a connection ends, uploads its script again and goes on streaming, and it has no
switch against that. A process that can get no further socket cannot reconnect: ur_rtde then reports the loss."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

# The standard streams. Not zero: poll() watches no more descriptors than the limit allows.
_NO_MORE = 3


def forbid_new_files() -> None:
    """From now on this process opens no file and no socket; those that it has stay."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_NO_MORE, most))


@contextlib.contextmanager
def new_files_allowed() -> Iterator[None]:
    """For the length of a block files can be opened again."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
