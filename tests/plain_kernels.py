"""Kernels as plain Python: a few steps run faster this way than they compile."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from simbridge.kernels.compile import Kernel, python_function


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Run kernels as plain Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", _call_python)
        yield


def _call_python(kernel: Kernel, *arguments: Any) -> Any:
    return _python_function(kernel.program, kernel.name)(*arguments)


_python_function = functools.lru_cache(maxsize=256)(python_function)
