"""Compiled functions, called from a test: their machine code, not their Python."""

from __future__ import annotations

import functools

from simbridge.kernels.compile import Kernel, kernel_of


@functools.cache
def machine_code(function) -> Kernel:
    """A function that is compiled with the solvers, as a kernel. It takes the types of its first
    call only.
    """
    return kernel_of(function, "function of a test")
