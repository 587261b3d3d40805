"""scipy is not imported for loading machine code, and is there for whoever needs it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from simbridge.kernels.postponed_scipy import postpone_scipy

# Loads a kernel from the cache, and then compiles a user's function that needs BLAS.
PROGRAM = """
import sys
import numba
import numpy as np
from simbridge.kernels.compile import kernel
from simbridge.kernels.program import KernelProgram

TEXT = "def halve(x):\\n    for i in range(x.shape[0]):\\n        x[i] *= 0.5\\n"
kernel(KernelProgram(TEXT), "halve", "halving")(np.ones(2))
is_imported = "scipy.linalg" in sys.modules
product = numba.njit(lambda a, b: np.dot(a, b))(np.eye(2), np.full((2, 2), 3.0))
print(is_imported, product.sum())
"""


def test_scipy_cannot_be_imported_within_the_block(monkeypatch):
    monkeypatch.delitem(sys.modules, "scipy.linalg", raising=False)

    with postpone_scipy(), pytest.raises(ModuleNotFoundError):
        importlib.import_module("scipy.linalg")

    assert "scipy.linalg" not in sys.modules


def test_imported_scipy_stays(monkeypatch):
    imported = object()
    monkeypatch.setitem(sys.modules, "scipy.linalg", imported)

    with postpone_scipy():
        assert sys.modules["scipy.linalg"] is imported

    assert sys.modules["scipy.linalg"] is imported


@pytest.mark.soak
def test_a_users_function_has_blas_after_a_kernel():
    pytest.importorskip("scipy.linalg")
    command = [sys.executable, "-c", PROGRAM]
    subprocess.run(command, check=True)

    loaded = subprocess.run(command, check=True, capture_output=True, text=True)

    assert loaded.stdout == "False 12.0\n"
