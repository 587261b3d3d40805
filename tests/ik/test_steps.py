"""One iteration of each method against numpy, on Jacobians of every rank."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.damped_least_squares import damped_motion, null_space_pull
from simbridge.ik.feedback import feedback_step
from simbridge.ik.jacobian_transpose import best_length_step, constant_length_step
from simbridge.ik.kernels.constraints import independent_rows as independent_rows_python
from simbridge.ik.kernels.constraints import solve_constraints
from simbridge.ik.kernels.records import allocate_descent
from simbridge.ik.pseudoinverse import pseudoinverse_step
from simbridge.ik.selectively_damped import selectively_damped_step
from simbridge.kernels.records import with_attributes
from tests.ik.machine import machine_code

# Drops what is singular to rounding, and keeps all that is merely near it.
CUTOFF = 1e-9

independent_rows = machine_code(independent_rows_python)
three_motions = machine_code(solve_constraints)
pull_in_null_space = machine_code(null_space_pull)


def damped(settings, descent):
    """`damped_motion` with the arguments of a step."""
    machine_code(damped_motion)(descent, descent.iterate.error, *settings, descent.iterate.dq)


class Case:
    """A Jacobian (m, n) of some rank, an error, joints and a posture, all random."""

    def __init__(self, seed, n, m, rank, scale):
        self.rng = rng = np.random.default_rng(seed)
        self.n, self.m = n, m
        left, _ = np.linalg.qr(rng.normal(size=(m, m)))
        right, _ = np.linalg.qr(rng.normal(size=(n, n)))
        self.rank = r = min(rank, m, n)
        self.j = 10.0**scale * (left[:, :r] * rng.uniform(0.05, 2.0, r)) @ right[:, :r].T
        self.e = rng.normal(size=m)
        self.q, self.posture = rng.uniform(-3, 3, n), rng.uniform(-3, 3, n)

    def run(self, step, *parameters, error=None):
        """dq of a step, and what it returns; the unused components and the scratch arrays hold rubbish."""
        descent = self.record()
        descent.iterate.error[: self.m] = self.e if error is None else error
        run = (
            step
            if step in (damped, constrained_step) or "<locals>" in step.__qualname__
            else machine_code(step)
        )
        returned = run(parameters, descent)
        dq = descent.iterate.dq[: self.n].copy()
        assert np.all(np.isfinite(dq))
        return dq, returned

    def record(self):
        """The record of a step, with the Jacobian; all else is rubbish."""
        # One size for all, since the sizes are part of what is compiled.
        descent = with_attributes(allocate_descent(12))[0]
        for part in (descent.iterate, descent.scratch, descent.search):
            for name in part.dtype.names:
                part[name] = 5

        iterate = descent.iterate
        iterate.n = self.n
        iterate.rows = self.m
        iterate.q[: self.n] = self.q
        iterate.jacobian[: self.n, : self.m] = self.j.T
        return descent


def cases(scales=(0.0, 0.0), ranks=(0, 6)):
    return st.builds(
        Case,
        st.integers(0, 2**32 - 1),
        st.integers(1, 12),
        st.integers(1, 6),
        st.integers(*ranks),
        st.floats(*scales),
    )


any_case, regular_case = cases(), cases(ranks=(6, 6))
EIGENVALUES = st.floats(1e-3, 10.0)


def close(found, expected, tolerance=1e-10):
    assert np.linalg.norm(found - expected) <= tolerance * (1.0 + np.linalg.norm(expected))


@given(any_case, st.floats(0.01, 1.0))
def test_the_pseudoinverse_step_is_numpys_pinv_whatever_the_rank(case, alpha):
    dq, _ = case.run(pseudoinverse_step, alpha, CUTOFF)
    close(dq, alpha * np.linalg.pinv(case.j, rcond=CUTOFF) @ case.e)


def test_singular_directions_at_or_below_the_cutoff_stay_still():
    case = Case(1, 6, 6, 6, 0.0)
    case.j = np.diag([1.0, 0.5, 0.1, 0.01, 0.001, 0.0001])
    dq, _ = case.run(pseudoinverse_step, 1.0, 0.005)
    close(dq, np.r_[case.e[:4] / [1.0, 0.5, 0.1, 0.01], 0.0, 0.0])


def plain_sdls(j, e, translation, gamma_max):
    """Buss and Kim's algorithm in the paper's letters, with translation and rotation as its end effectors."""

    def clamp_max_abs(w, d):
        return w if np.max(np.abs(w)) <= d else d * w / np.max(np.abs(w))

    parts = [slice(0, translation), slice(translation, None)]
    u, sigma, vt = np.linalg.svd(j, full_matrices=False)
    total = np.zeros(j.shape[1])
    for i in range(len(sigma)):
        if sigma[i] <= 1e-14 * sigma[0] or sigma[i] == 0.0:
            continue
        n_i = sum(np.linalg.norm(u[part, i]) for part in parts)
        m_i = sum(np.abs(vt[i]) @ np.linalg.norm(j[part], axis=0) for part in parts) / sigma[i]
        gamma_i = min(1.0, n_i / m_i) * gamma_max
        total += clamp_max_abs(vt[i] * (u[:, i] @ e) / sigma[i], gamma_i)
    return clamp_max_abs(total, gamma_max)


@given(regular_case, st.floats(-3, 1))
def test_selective_damping_is_the_papers_algorithm(case, size):
    error = 10.0**size * case.e
    dq, _ = case.run(selectively_damped_step, math.pi / 4.0, error=error)
    close(dq, plain_sdls(case.j, error, min(3, case.m), np.pi / 4), 1e-9)


@given(any_case, st.floats(-3, 3), st.floats(0.01, 1.0))
def test_selective_damping_never_moves_a_joint_further_than_gamma_max(case, size, gamma_max):
    dq, _ = case.run(selectively_damped_step, gamma_max, error=10.0**size * case.e)
    assert np.abs(dq).max() <= gamma_max * (1.0 + 1e-12)


def test_selective_damping_leaves_a_small_error_in_an_easy_direction_undamped():
    case = Case(3, 6, 6, 6, 0.0)
    dq, _ = case.run(selectively_damped_step, math.pi / 4, error=1e-3 * case.e)
    close(case.j @ dq, 1e-3 * case.e)


@given(any_case, st.floats(-2, 4))
def test_the_feedback_step_is_equation_5_of_the_paper(case, size):
    gain = 10.0**size * case.rng.uniform(0.1, 10.0, 6)
    dq, _ = case.run(feedback_step, gain)
    weight = np.diag(gain[: case.m])
    expected = (
        case.j.T @ weight @ np.linalg.solve(case.j @ case.j.T @ weight + np.eye(case.m), case.e)
    )
    close(dq, expected, 1e-8)


@given(any_case)
def test_a_feedback_gain_of_zero_leaves_that_component_out(case):
    gain = np.array([0.0, 10.0, 10.0, 10.0, 10.0, 10.0])
    with_it, _ = case.run(feedback_step, gain)
    case.e[0] += 100.0
    assert np.array_equal(case.run(feedback_step, gain)[0], with_it)


@given(any_case, EIGENVALUES)
def test_a_feedback_gain_of_one_over_lambda_squared_is_damped_least_squares(case, damping):
    free = np.zeros(case.n)
    dq, _ = case.run(damped, damping, free, free, False)
    close(case.run(feedback_step, np.full(6, damping**-2))[0], dq, 1e-8)


@given(any_case, EIGENVALUES)
def test_damped_least_squares_minimises_error_and_motion_together(case, damping):
    free = np.zeros(case.n)
    dq, _ = case.run(damped, damping, free, free, False)
    stacked = np.vstack([case.j, damping * np.eye(case.n)])
    close(dq, np.linalg.lstsq(stacked, np.r_[case.e, np.zeros(case.n)], rcond=None)[0], 1e-8)


@given(any_case, EIGENVALUES, st.booleans())
def test_the_stiffness_term_is_equation_17_of_the_report(case, damping, printed):
    beta, off = case.rng.uniform(0.0, 1.0, case.n), case.q - case.posture
    dq, _ = case.run(damped, damping, beta, case.posture, printed)
    inverse = case.j.T @ np.linalg.inv(case.j @ case.j.T + damping**2 * np.eye(case.m))
    z = beta * off**2 if printed else 2.0 * beta * off
    close(dq, inverse @ case.e + (inverse @ case.j - np.eye(case.n)) @ z, 1e-7)


@given(any_case, st.floats(1e-3, 1.0))
def test_the_gradient_form_lowers_the_postures_cost_and_moves_the_tool_only_as_the_damping_allows(
    case, damping
):
    beta, off = case.rng.uniform(0.1, 1.0, case.n), case.q - case.posture
    dq, _ = case.run(damped, damping, beta, case.posture, False, error=np.zeros(case.m))
    slope = 2.0 * beta * off
    assert slope @ dq <= 1e-12
    assert np.abs(slope @ dq) > 0.0 or not np.any(slope)
    leak = damping**2 * np.linalg.solve(
        case.j @ case.j.T + damping**2 * np.eye(case.m), case.j @ slope
    )
    close(case.j @ dq, -leak, 1e-8)


def test_the_printed_form_pushes_a_joint_below_its_posture_further_away():
    case = Case(4, 1, 1, 0, 0.0)
    case.q, case.posture = np.array([-1.0]), np.array([0.0])
    gradient, _ = case.run(damped, 0.1, np.array([0.2]), case.posture, False)
    printed, _ = case.run(damped, 0.1, np.array([0.2]), case.posture, True)
    assert gradient[0] == pytest.approx(0.4)
    assert printed[0] == pytest.approx(-0.2)


@given(regular_case)
def test_without_damping_a_regular_jacobian_gives_the_pseudoinverse(case):
    free = np.zeros(case.n)
    dq, _ = case.run(damped, 0.0, free, free, False)
    close(dq, np.linalg.pinv(case.j) @ case.e, 1e-8)


@given(any_case, st.floats(-2, 2))
def test_the_transpose_is_the_transpose(case, alpha):
    gain = case.rng.uniform(0.0, 10.0, 6)
    dq, _ = case.run(constant_length_step, alpha, gain)
    close(dq, alpha * case.j.T @ (gain[: case.m] * case.e))


@given(any_case)
def test_the_best_length_is_buss_and_kims(case):
    dq, _ = case.run(best_length_step, 0.0)
    reach = case.j @ case.j.T @ case.e
    close(
        dq,
        case.e @ reach / (reach @ reach) * case.j.T @ case.e if np.any(reach) else np.zeros(case.n),
    )


@given(regular_case)
def test_no_other_length_of_the_transpose_leaves_less_error(case):
    dq, _ = case.run(best_length_step, 0.0)

    def left(share):
        return np.linalg.norm(case.e - share * case.j @ dq)

    assert left(1.0) <= min(left(share) for share in (0.0, 0.5, 0.99, 1.01, 2.0)) * (1.0 + 1e-12)


def motions(error, values, rows, rank, hessian, gradient, descent):
    """The three motions: for the error, for custom strict rows, for the soft rows."""
    descent.scratch.wanted[:, :6] = [error, values]
    three_motions(rows, rank, hessian, gradient, descent)
    return tuple(descent.iterate[name][: len(gradient)].copy() for name in ("dq", "held", "drift"))


def whole_step(error, rows, rank, hessian, gradient, descent):
    """All motions in one."""
    descent.iterate.dq[: len(gradient)] = np.sum(
        motions(error, np.zeros(6), rows, rank, hessian, gradient, descent), axis=0
    )


def constrained_step(settings, descent):
    """The whole step with one soft row per joint, dq_i = natural_i, and how many strict rows depend on others."""
    weights, natural, cutoff = settings
    hessian, rows = 2.0 * np.diag(weights) / (weights.max() or 1.0), int(descent.iterate.rows)
    rank = independent_rows(descent.iterate.jacobian, rows, cutoff, descent)
    whole_step(descent.iterate.error, rows, rank, hessian, hessian @ natural, descent)
    return rows - rank


@given(any_case, st.floats(0.0, 1.0))
def test_the_constrained_step_satisfies_the_strict_rows_and_counts_dependent_ones(case, pull):
    weights = 10.0 ** case.rng.uniform(-2.0, 2.0, case.n)
    dq, dropped = case.run(constrained_step, weights, pull * (case.posture - case.q), CUTOFF)
    assert dropped == case.m - case.rank
    # What no motion can do is solved in least squares; without dropped rows this is e itself.
    doable = case.j @ np.linalg.pinv(case.j, rcond=1e-9) @ case.e
    assert np.abs(case.j @ dq - doable).max() <= 1e-10
    if not dropped:
        assert np.abs(case.j @ dq - case.e).max() <= 1e-10


@given(any_case, st.floats(0.0, 1.0))
def test_the_constrained_step_has_the_smallest_soft_cost_of_all_solutions(case, pull):
    weights = 10.0 ** case.rng.uniform(-2.0, 2.0, case.n)
    natural = pull * (case.posture - case.q)
    dq, _ = case.run(constrained_step, weights, natural, CUTOFF)
    # At the minimum the cost's gradient has no part in the null space, the only place left to move.
    free = np.eye(case.n) - np.linalg.pinv(case.j, rcond=1e-9) @ case.j
    gradient = 2.0 * weights * (dq - natural)
    assert np.abs(free @ gradient).max() <= 1e-10 * (1.0 + np.abs(gradient).max())


@given(any_case)
def test_each_motion_of_the_constrained_step_does_only_its_own_part(case):
    hessian, gradient, rank = np.eye(case.n), case.rng.normal(size=case.n), case.rank
    descent, none, parts = case.record(), np.zeros(6), np.zeros((2, 6))
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


@given(any_case, st.booleans())
def test_the_clamped_pull_is_the_gradient_in_the_true_null_space(case, printed):
    beta, off = case.rng.uniform(0.0, 1.0, case.n), case.q - case.posture
    descent = case.record()
    pull_in_null_space(descent, beta, case.posture, printed)
    z = beta * off**2 if printed else 2.0 * beta * off
    close(
        descent.iterate.drift[: case.n],
        (np.linalg.pinv(case.j, rcond=1e-6) @ case.j - np.eye(case.n)) @ z,
    )


@given(regular_case)
def test_the_constrained_step_solves_the_lectures_system_for_any_soft_rows(case):
    if case.m > case.n:
        case = Case(int(case.rng.integers(2**32)), 12, case.m, 6, 0.0)
    soft, wanted = case.rng.normal(size=(case.n, case.n)), case.rng.normal(size=case.n)
    hessian, gradient = 2.0 * soft.T @ soft, 2.0 * soft.T @ wanted

    def step(settings, descent):
        rank = independent_rows(descent.iterate.jacobian, case.m, 1e-9, descent)
        whole_step(descent.iterate.error, case.m, rank, *system, descent)

    system = (hessian, gradient)
    kkt = np.block([[hessian, case.j.T], [case.j, np.zeros((case.m, case.m))]])
    close(case.run(step)[0], np.linalg.solve(kkt, np.r_[gradient, case.e])[: case.n], 1e-7)


@given(any_case)
def test_strict_rows_hold_with_joints_without_a_weight(case):
    weights = case.rng.integers(0, 2, case.n).astype(float)
    dq, _ = case.run(constrained_step, weights, 0.5 * (case.posture - case.q), CUTOFF)
    doable = case.j @ np.linalg.pinv(case.j, rcond=1e-9) @ case.e
    assert np.abs(case.j @ dq - doable).max() <= 1e-9 * (1.0 + np.abs(dq).max())


@given(any_case, EIGENVALUES)
def test_the_pull_towards_a_posture_is_a_term_of_its_own(case, damping):
    ones, none = np.ones(case.n), np.zeros(case.m)
    for step, parameters, unpulled in (
        (damped, (damping, 0.3 * ones, case.posture, False), (damping, 0.0 * ones, ones, False)),
        (constrained_step, (ones, 0.7 * (case.posture - case.q), 1e-9), (ones, 0.0 * ones, 1e-9)),
    ):
        whole, _ = case.run(step, *parameters)
        close(
            whole, case.run(step, *unpulled)[0] + case.run(step, *parameters, error=none)[0], 1e-8
        )


@given(cases(scales=(-60, 60)), st.sampled_from([0.0, 1e-12, 1.0]), st.floats(-30, 30))
def test_no_step_gives_nan_for_any_rank_and_scale(case, damping, size):
    ones, gain, error = np.ones(case.n), np.full(6, 10.0**size), 10.0**size * case.e
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
