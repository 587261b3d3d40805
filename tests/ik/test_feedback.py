"""One iteration of feedback inverse kinematics against numpy, on Jacobians of every rank."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.feedback import feedback_step
from tests.ik.step_cases import EIGENVALUES, any_case, close, damped
from tests.properties import few_examples


@few_examples(25)
@given(any_case, st.floats(-2, 4))
def test_the_feedback_step_is_equation_5(case, size):
    gain = 10.0**size * case.rng.uniform(0.1, 10.0, 6)
    dq, _ = case.run(feedback_step, gain)
    weight = np.diag(gain[: case.m])
    expected = (
        case.j.T @ weight @ np.linalg.solve(case.j @ case.j.T @ weight + np.eye(case.m), case.e)
    )

    close(dq, expected, 1e-8)


@few_examples(25)
@given(any_case)
def test_a_zero_gain_omits_its_component(case):
    gain = np.array([0.0, 10.0, 10.0, 10.0, 10.0, 10.0])
    with_it, _ = case.run(feedback_step, gain)
    case.e[0] += 100.0

    assert np.array_equal(case.run(feedback_step, gain)[0], with_it)


@few_examples(25)
@given(any_case, EIGENVALUES)
def test_feedback_with_equal_gains_is_damped_least_squares(case, damping):
    free = np.zeros(case.n)
    dq, _ = case.run(damped, damping, free, free, False)

    close(case.run(feedback_step, np.full(6, damping**-2))[0], dq, 1e-8)
