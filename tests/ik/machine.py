"""Compiled functions, called from a test: their machine code, not their Python."""

from __future__ import annotations

import functools
import inspect
import sys

import numpy as np

from simbridge.ik.kernels.routine import Routine, own_source


@functools.cache
def machine_code(function):
    """A function marked as compiled, as a routine of its own; what it returns, if anything, comes back as a float."""
    names = ", ".join(inspect.signature(function).parameters)
    call = f"def call(result, {names}):\n    result[0] = function({names})\n"
    if inspect.signature(function).return_annotation in (None, "None", inspect.Signature.empty):
        call = call.replace("result[0] = ", "")
    space = {"function": function}
    exec(call, space)
    text = call + own_source() + inspect.getsource(sys.modules[function.__module__])
    routine = Routine(function.__name__, "function of a test", text, lambda: space["call"])

    @functools.wraps(function)
    def run(*arguments):
        result = np.zeros(1)
        routine(result, *arguments)
        return float(result[0])

    return run
