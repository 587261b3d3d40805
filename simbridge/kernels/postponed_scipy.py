"""Machine code is loaded without scipy, which takes 0.2 s to import and is not needed for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def postpone_scipy() -> Iterator[None]:
    """Let numba start within the block as if scipy were not installed.

    When numba first loads a function, it imports `scipy.linalg` to see whether there is a BLAS
    library. It does so again whenever it compiles a function that needs one (such as `np.dot`), so
    nothing is lost.
    """
    modules: dict[str, Any] = sys.modules
    if "scipy.linalg" in modules:
        yield
        return

    # Python does not import a module for which None stands here.
    modules["scipy.linalg"] = None
    try:
        yield
    finally:
        del modules["scipy.linalg"]
