"""Functions that several programs contain."""

from __future__ import annotations

import pytest

from simbridge.kernels.cache import load_module
from simbridge.kernels.compile import kernel
from simbridge.kernels.program import KernelProgram

pytestmark = pytest.mark.slow

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


def test_another_constant_is_another_function():
    # Equal numbers of other types are other constants, too.
    first, first_module = call(KernelProgram(PROGRAM.format(factor=5.0, name="one")), "one")
    second, second_module = call(KernelProgram(PROGRAM.format(factor=5, name="two")), "two")
    third, third_module = call(KernelProgram(PROGRAM.format(factor=6.0, name="three")), "three")

    assert (first, second, third) == (11.0, 11.0, 13.0)
    assert len({first_module.shift, second_module.shift, third_module.shift}) == 3
