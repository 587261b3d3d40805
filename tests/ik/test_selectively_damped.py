"""One iteration of selective damping against the paper, on Jacobians of every rank."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik.selectively_damped import selectively_damped_step
from tests.ik.step_cases import Case, any_case, close, regular_case
from tests.properties import few_examples


def plain_sdls(j, e, translation, gamma_max):
    """Buss and Kim's algorithm in the paper's letters, with translation and rotation as its end
    effectors.
    """

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


@few_examples(25)
@given(regular_case, st.floats(-3, 1))
def test_selective_damping_is_the_papers_algorithm(case, size):
    error = 10.0**size * case.e
    dq, _ = case.run(selectively_damped_step, math.pi / 4.0, error=error)

    close(dq, plain_sdls(case.j, error, min(3, case.m), np.pi / 4), 1e-9)


@few_examples(25)
@given(any_case, st.floats(-3, 3), st.floats(0.01, 1.0))
def test_no_joint_moves_beyond_gamma_max(case, size, gamma_max):
    dq, _ = case.run(selectively_damped_step, gamma_max, error=10.0**size * case.e)

    assert np.abs(dq).max() <= gamma_max * (1.0 + 1e-12)


def test_easy_directions_are_undamped():
    case = Case(3, 6, 6, 6, 0.0)
    dq, _ = case.run(selectively_damped_step, math.pi / 4, error=1e-3 * case.e)

    close(case.j @ dq, 1e-3 * case.e)
