"""One iteration of the constrained step against numpy, on Jacobians of every rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ik.step_cases import (
    CUTOFF,
    Case,
    any_case,
    close,
    constrained_step,
    independent_rows,
    motions,
    regular_case,
    whole_step,
)
from tests.properties import few_examples


@pytest.mark.slow
@few_examples(20)
@given(any_case, st.floats(0.0, 1.0))
def test_strict_rows_hold_and_dependent_ones_are_counted(case, pull):
    weights = 10.0 ** case.rng.uniform(-2.0, 2.0, case.n)
    dq, dropped = case.run(constrained_step, weights, pull * (case.posture - case.q), CUTOFF)

    assert dropped == case.m - case.rank
    # What no motion can do is solved in least squares; without dropped rows this is e itself.
    doable = case.j @ np.linalg.pinv(case.j, rcond=1e-9) @ case.e
    assert np.abs(case.j @ dq - doable).max() <= 1e-10
    if not dropped:
        assert np.abs(case.j @ dq - case.e).max() <= 1e-10


@few_examples(20)
@given(any_case, st.floats(0.0, 1.0))
def test_the_constrained_step_costs_the_least(case, pull):
    weights = 10.0 ** case.rng.uniform(-2.0, 2.0, case.n)
    natural = pull * (case.posture - case.q)
    dq, _ = case.run(constrained_step, weights, natural, CUTOFF)
    # At the minimum the cost's gradient has no part in the null space, the only place left to move.
    free = np.eye(case.n) - np.linalg.pinv(case.j, rcond=1e-9) @ case.j
    gradient = 2.0 * weights * (dq - natural)

    assert np.abs(free @ gradient).max() <= 1e-10 * (1.0 + np.abs(gradient).max())


@few_examples(20)
@given(any_case)
def test_each_motion_does_its_own_part(case):
    hessian = np.eye(case.n)
    gradient = case.rng.normal(size=case.n)
    rank = case.rank
    descent = case.record()
    none = np.zeros(6)
    parts = np.zeros((2, 6))
    jacobian = descent.iterate.jacobian
    parts[:, : case.m] = [case.e, case.rng.normal(size=case.m)]

    assert independent_rows(jacobian, case.m, CUTOFF, descent) == rank
    found = motions(*parts, case.m, rank, hessian, gradient, descent)
    for part, error, slope in zip(
        found, (*parts, none), (0.0 * gradient, 0.0 * gradient, gradient), strict=True
    ):
        independent_rows(jacobian, case.m, CUTOFF, descent)
        whole_step(error, case.m, rank, hessian, slope, descent)
        close(part, descent.iterate.dq[: case.n])


@few_examples(20)
@given(regular_case)
def test_any_soft_rows_solve_the_lectures_system(case):
    if case.m > case.n:
        case = Case(int(case.rng.integers(2**32)), 12, case.m, 6, 0.0)
    soft = case.rng.normal(size=(case.n, case.n))
    wanted = case.rng.normal(size=case.n)
    hessian = 2.0 * soft.T @ soft
    gradient = 2.0 * soft.T @ wanted

    def step(settings, descent):
        rank = independent_rows(descent.iterate.jacobian, case.m, 1e-9, descent)
        whole_step(descent.iterate.error, case.m, rank, *system, descent)

    system = (hessian, gradient)
    kkt = np.block([[hessian, case.j.T], [case.j, np.zeros((case.m, case.m))]])
    close(case.run(step)[0], np.linalg.solve(kkt, np.r_[gradient, case.e])[: case.n], 1e-7)


@few_examples(20)
@given(any_case)
def test_strict_rows_hold_with_joints_without_a_weight(case):
    weights = case.rng.integers(0, 2, case.n).astype(float)
    dq, _ = case.run(constrained_step, weights, 0.5 * (case.posture - case.q), CUTOFF)
    doable = case.j @ np.linalg.pinv(case.j, rcond=1e-9) @ case.e

    assert np.abs(case.j @ dq - doable).max() <= 1e-9 * (1.0 + np.abs(dq).max())
