"""One iteration of the pseudoinverse against numpy, on Jacobians of every rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.pseudoinverse import pseudoinverse_step
from tests.ik.step_cases import CUTOFF, Case, any_case, close

pytestmark = pytest.mark.slow


@given(any_case, st.floats(0.01, 1.0))
def test_the_step_is_numpys_pinv(case, alpha):
    dq, _ = case.run(pseudoinverse_step, alpha, CUTOFF)

    close(dq, alpha * np.linalg.pinv(case.j, rcond=CUTOFF) @ case.e)


def test_directions_below_the_cutoff_rest():
    case = Case(1, 6, 6, 6, 0.0)
    case.j = np.diag([1.0, 0.5, 0.1, 0.01, 0.001, 0.0001])
    dq, _ = case.run(pseudoinverse_step, 1.0, 0.005)

    close(dq, np.r_[case.e[:4] / [1.0, 0.5, 0.1, 0.01], 0.0, 0.0])
