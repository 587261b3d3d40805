"""One iteration of the Jacobian transpose against numpy, on Jacobians of every rank."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.jacobian_transpose import best_length_step, constant_length_step
from tests.ik.step_cases import any_case, close, regular_case
from tests.properties import few_examples


@few_examples(25)
@given(any_case, st.floats(-2, 2))
def test_the_transpose_is_the_transpose(case, alpha):
    gain = case.rng.uniform(0.0, 10.0, 6)
    dq, _ = case.run(constant_length_step, alpha, gain)

    close(dq, alpha * case.j.T @ (gain[: case.m] * case.e))


@few_examples(25)
@given(any_case)
def test_the_best_length_is_buss_and_kims(case):
    dq, _ = case.run(best_length_step, 0.0)
    reach = case.j @ case.j.T @ case.e

    close(
        dq,
        case.e @ reach / (reach @ reach) * case.j.T @ case.e if np.any(reach) else np.zeros(case.n),
    )


@few_examples(25)
@given(regular_case)
def test_the_transposes_length_is_best(case):
    dq, _ = case.run(best_length_step, 0.0)

    def left(share):
        return np.linalg.norm(case.e - share * case.j @ dq)

    assert left(1.0) <= min(left(share) for share in (0.0, 0.5, 0.99, 1.01, 2.0)) * (1.0 + 1e-12)
