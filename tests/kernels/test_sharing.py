"""Functions that several programs contain."""

from __future__ import annotations

import sys
import warnings

import pytest

from simbridge.kernels.cache import load_module
from simbridge.kernels.compile import kernel
from simbridge.kernels.program import KernelProgram

PROGRAM = """
from numba import njit

FACTOR = {factor}

@njit
def scale(x):
    return FACTOR * x

@njit
def shift(x):
    return scale(x) + 1.0

def {name}(x):
    return shift(x)
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """Nothing is compiled before."""
    monkeypatch.setenv("SIMBRIDGE_CACHE", str(tmp_path))


def call(program, name):
    """Compile a program's function; returns its result at 2, and the module."""
    result = kernel(program, name, "function of a test")(2.0)
    return result, load_module(program.text)


def test_an_equal_function_is_compiled_once():
    first, first_module = call(KernelProgram(PROGRAM.format(factor=3.0, name="one")), "one")
    second, second_module = call(KernelProgram(PROGRAM.format(factor=3.0, name="two")), "two")

    assert (first, second) == (7.0, 7.0)
    assert second_module.shift is first_module.shift
    assert second_module.scale is first_module.scale


def test_machine_code_is_loaded_without_the_earlier_program():
    _, earlier = call(KernelProgram(PROGRAM.format(factor=4.0, name="one")), "one")
    program = KernelProgram(PROGRAM.format(factor=4.0, name="two"))
    call(program, "two")
    # As in a process that has used none of them.
    sys.modules.pop(earlier.__name__)
    load_module.cache_clear()

    with warnings.catch_warnings():
        # No notice of compiling.
        warnings.simplefilter("error")
        result = kernel(program, "two", "function that was compiled before")(2.0)

    assert result == 9.0


def test_another_constant_is_another_function():
    # Equal numbers of other types are other constants, too.
    first, first_module = call(KernelProgram(PROGRAM.format(factor=5.0, name="one")), "one")
    second, second_module = call(KernelProgram(PROGRAM.format(factor=5, name="two")), "two")
    third, third_module = call(KernelProgram(PROGRAM.format(factor=6.0, name="three")), "three")

    assert (first, second, third) == (11.0, 11.0, 13.0)
    assert len({first_module.shift, second_module.shift, third_module.shift}) == 3
