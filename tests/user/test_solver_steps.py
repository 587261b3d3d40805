"""Properties of the steps of all solvers, on Jacobians of every rank and scale."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.feedback import feedback_step
from simbridge.ik.jacobian_transpose import best_length_step, constant_length_step
from simbridge.ik.pseudoinverse import pseudoinverse_step
from simbridge.ik.selectively_damped import selectively_damped_step
from tests.ik.step_cases import EIGENVALUES, any_case, cases, close, constrained_step, damped
from tests.properties import few_examples


@few_examples(20, soak=1000)
@given(any_case, EIGENVALUES)
def test_the_pull_towards_a_posture_adds_up(case, damping):
    ones = np.ones(case.n)
    none = np.zeros(case.m)
    for step, parameters, unpulled in (
        (damped, (damping, 0.3 * ones, case.posture, False), (damping, 0.0 * ones, ones, False)),
        (constrained_step, (ones, 0.7 * (case.posture - case.q), 1e-9), (ones, 0.0 * ones, 1e-9)),
    ):
        whole, _ = case.run(step, *parameters)
        close(
            whole, case.run(step, *unpulled)[0] + case.run(step, *parameters, error=none)[0], 1e-8
        )


@few_examples(12, soak=1000)
@given(cases(scales=(-60, 60)), st.sampled_from([0.0, 1e-12, 1.0]), st.floats(-30, 30))
def test_no_step_gives_nan(case, damping, size):
    ones = np.ones(case.n)
    gain = np.full(6, 10.0**size)
    error = 10.0**size * case.e
    for step, parameters in (
        (pseudoinverse_step, (1.0, 1e-9)),
        (selectively_damped_step, (math.pi / 4,)),
        (feedback_step, (gain,)),
        (damped, (damping, ones, case.posture, False)),
        (constant_length_step, (1.0, gain)),
        (best_length_step, (0.0,)),
        (constrained_step, (ones, case.posture - case.q, 1e-9)),
        (constrained_step, (0.0 * ones, case.posture - case.q, 1e-9)),
    ):
        first, _ = case.run(step, *parameters, error=error)
        assert first.tobytes() == case.run(step, *parameters, error=error)[0].tobytes()
