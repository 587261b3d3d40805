"""One iteration of damped least squares against numpy, on Jacobians of every rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.damped_least_squares import null_space_pull
from tests.ik.machine import machine_code
from tests.ik.step_cases import EIGENVALUES, Case, any_case, close, damped, regular_case
from tests.properties import few_examples

pull_in_null_space = machine_code(null_space_pull)


@few_examples(20)
@given(any_case, EIGENVALUES)
def test_damped_least_squares_minimises_error_and_motion_together(case, damping):
    free = np.zeros(case.n)
    dq, _ = case.run(damped, damping, free, free, False)
    stacked = np.vstack([case.j, damping * np.eye(case.n)])

    close(dq, np.linalg.lstsq(stacked, np.r_[case.e, np.zeros(case.n)], rcond=None)[0], 1e-8)


@few_examples(20)
@given(any_case, EIGENVALUES, st.booleans())
def test_the_stiffness_term_is_equation_17(case, damping, printed):
    beta = case.rng.uniform(0.0, 1.0, case.n)
    off = case.q - case.posture
    dq, _ = case.run(damped, damping, beta, case.posture, printed)
    inverse = case.j.T @ np.linalg.inv(case.j @ case.j.T + damping**2 * np.eye(case.m))
    z = beta * off**2 if printed else 2.0 * beta * off

    close(dq, inverse @ case.e + (inverse @ case.j - np.eye(case.n)) @ z, 1e-7)


@few_examples(20)
@given(any_case, st.floats(1e-3, 1.0))
def test_the_gradient_form_lowers_the_postures_cost(case, damping):
    beta = case.rng.uniform(0.1, 1.0, case.n)
    off = case.q - case.posture
    dq, _ = case.run(damped, damping, beta, case.posture, False, error=np.zeros(case.m))
    slope = 2.0 * beta * off

    assert slope @ dq <= 1e-12
    assert np.abs(slope @ dq) > 0.0 or not np.any(slope)

    leak = damping**2 * np.linalg.solve(
        case.j @ case.j.T + damping**2 * np.eye(case.m), case.j @ slope
    )
    close(case.j @ dq, -leak, 1e-8)


def test_the_printed_form_pushes_joints_away():
    case = Case(4, 1, 1, 0, 0.0)
    case.q = np.array([-1.0])
    case.posture = np.array([0.0])
    gradient, _ = case.run(damped, 0.1, np.array([0.2]), case.posture, False)
    printed, _ = case.run(damped, 0.1, np.array([0.2]), case.posture, True)

    assert gradient[0] == pytest.approx(0.4)
    assert printed[0] == pytest.approx(-0.2)


@few_examples(20)
@given(regular_case)
def test_without_damping_a_regular_jacobian_gives_the_pseudoinverse(case):
    free = np.zeros(case.n)
    dq, _ = case.run(damped, 0.0, free, free, False)

    close(dq, np.linalg.pinv(case.j) @ case.e, 1e-8)


@few_examples(20)
@given(any_case, st.booleans())
def test_the_clamped_pull_is_the_null_space_gradient(case, printed):
    beta = case.rng.uniform(0.0, 1.0, case.n)
    off = case.q - case.posture
    descent = case.record()
    pull_in_null_space(descent, beta, case.posture, printed)
    z = beta * off**2 if printed else 2.0 * beta * off

    close(
        descent.iterate.drift[: case.n],
        (np.linalg.pinv(case.j, rcond=1e-6) @ case.j - np.eye(case.n)) @ z,
    )
