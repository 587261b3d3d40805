"""The compiled dense algebra against LAPACK, on matrices of every rank and scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simbridge.ik.kernels import dense
from tests.ik.machine import machine_code

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**32 - 1)

decompose = machine_code(dense.decompose)
solve_positive_definite = machine_code(dense.solve_positive_definite)
solve_rank_revealing = machine_code(dense.solve_rank_revealing)


def rank_revealed(a, b):
    """The solution in place of b, and the rank."""
    return solve_rank_revealing(a, b[None], len(b), np.zeros(len(b), dtype=np.int64))


def matrix_of(seed, p, q, rank, decades, scale):
    """A (p, q) matrix of at most that rank, its singular values spread over that many decades."""
    rng = np.random.default_rng(seed)
    rank = min(rank, p, q)
    left, _ = np.linalg.qr(rng.normal(size=(p, p)))
    right, _ = np.linalg.qr(rng.normal(size=(q, q)))
    values = 10.0 ** (scale - rng.uniform(0.0, decades, rank)) if rank else np.zeros(0)
    return left[:, :rank] * values @ right[:, :rank].T


def decomposed(a):
    p, q = a.shape
    # Larger than need be, and dirty: only the leading part counts.
    left = np.full((12, 12), 7.0)
    singular = np.full(12, 7.0)
    right = np.full((12, 12), 7.0)
    count = int(decompose(a, p, q, left, singular, right))
    return left[:count, :p], singular[:count], right[:count, :q]


def same_decomposition(a):
    left, singular, right = decomposed(a)
    p, q = a.shape
    size = np.abs(a).max(initial=0.0)
    assert len(singular) == min(p, q)
    assert np.abs((left.T * singular) @ right - a).max() <= 1e-13 * size
    assert np.abs(singular - np.linalg.svd(a, compute_uv=False)).max() <= 1e-13 * size
    assert np.all(np.diff(singular) <= 0.0)
    assert np.all(singular >= 0.0)
    used = singular > 0.0
    for vectors in (left[used], right[used]):
        assert np.abs(vectors @ vectors.T - np.eye(used.sum())).max(initial=0.0) < 1e-13


@given(
    SEEDS,
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 12),
    st.floats(0, 18),
    st.floats(-30, 30),
)
@example(0, 6, 6, 6, 0.0, 0.0)
def test_the_decomposition_equals_lapacks(seed, p, q, rank, decades, scale):
    """For matrices of any shape, rank and scale."""
    same_decomposition(matrix_of(seed, p, q, rank, decades, scale))


@pytest.mark.parametrize(
    "a",
    [
        np.eye(6),
        np.ones((6, 12)),
        np.diag([1.0, 1e-200, 0.0, 1.0, 1e-9, 1e-18]),
        1.0 / (np.arange(6)[:, None] + np.arange(12) + 1.0),
        np.repeat(np.eye(6), 2, axis=0),
        np.full((3, 5), 1e300),
        np.full((5, 3), 1e-300),
        np.triu(np.ones((6, 6))) * 10.0 ** -np.arange(0, 18, 3.0)[:, None],
        np.diag([1e-3, 1.0, 1e3, 1e-6, 10.0, 5.0]),
    ],
)
def test_the_decomposition_is_exact_on_difficult_matrices(a):
    same_decomposition(a)


def test_every_singular_value_of_a_zero_matrix_is_zero():
    left, singular, right = decomposed(np.zeros((4, 6)))

    assert np.all(singular == 0.0)
    assert np.array_equal(left @ left.T, np.eye(4))
    assert np.all(right == 0.0)


@given(SEEDS, st.integers(1, 6), st.integers(1, 12))
def test_the_decomposition_repeats_bit_for_bit(seed, p, q):
    a = np.random.default_rng(seed).normal(size=(p, q))

    for one, other in zip(decomposed(a), decomposed(a.copy()), strict=True):
        assert one.tobytes() == other.tobytes()


@given(SEEDS, st.integers(1, 12), st.floats(0, 4), st.floats(-6, 6))
def test_the_lower_triangle_alone_is_solved(seed, n, decades, scale):
    root = matrix_of(seed, n, n, n, decades, scale)
    a = root @ root.T
    b = np.random.default_rng(seed).normal(size=n)
    lower = np.tril(a) + np.triu(np.full((n, n), np.nan), 1)
    x = b.copy()
    solve_positive_definite(lower, x, n)

    assert np.linalg.norm(a @ x - b) <= 1e-13 * (
        np.linalg.norm(a) * np.linalg.norm(x) + np.linalg.norm(b)
    )
    condition = np.linalg.cond(a)
    assert np.linalg.norm(x - np.linalg.solve(a, b)) <= 1e-13 * condition * np.linalg.norm(x)


@given(SEEDS, st.integers(1, 12), st.integers(0, 12))
def test_a_singular_system_with_a_solution_is_solved(seed, n, rank):
    # Small whole numbers, so that dependent rows are dependent to the last bit.
    rng = np.random.default_rng(seed)
    root = rng.integers(-2, 3, size=(n, min(rank, n))).astype(float)
    a = root @ root.T
    wanted = rng.normal(size=n)
    for solve in (lambda m, b: solve_positive_definite(m, b, n), rank_revealed):
        x = a @ wanted
        solve(a.copy(), x)
        assert np.abs(a @ x - a @ wanted).max() <= 1e-9 * max(1.0, np.abs(a).max())


@given(SEEDS, st.integers(1, 18), st.integers(-20, 20))
def test_any_regular_system_is_solved_as_lapack_does(seed, n, scale):
    rng = np.random.default_rng(seed)
    a = 10.0**scale * rng.normal(size=(n, n))
    b = rng.normal(size=n)
    x = b.copy()

    assert rank_revealed(a.copy(), x) == n
    assert np.linalg.norm(a @ x - b) <= 1e-12 * np.linalg.norm(a) * np.linalg.norm(x)
    assert np.linalg.norm(x - np.linalg.solve(a, b)) <= 1e-13 * np.linalg.cond(a) * np.linalg.norm(
        x
    )


@given(SEEDS, st.integers(1, 12), st.integers(0, 12))
def test_free_unknowns_of_a_singular_system_are_zero(seed, n, rank):
    a = matrix_of(seed, n, n, rank, 3.0, 0.0)
    x = a @ np.random.default_rng(seed).normal(size=n)
    b = x.copy()
    found = rank_revealed(a.copy(), x)

    assert found == min(rank, n)
    assert np.count_nonzero(x) <= found
    assert np.abs(a @ x - b).max(initial=0.0) <= 1e-10


def test_one_elimination_solves_two_systems():
    """It has the solutions of both right-hand sides alone."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=(7, 7))
    sides = rng.normal(size=(2, 7))
    alone = sides.copy()
    for b in alone:
        rank_revealed(a.copy(), b)

    assert solve_rank_revealing(a.copy(), sides, 7, np.zeros(7, dtype=np.int64)) == 7
    assert sides.tobytes() == alone.tobytes()


def test_a_zero_diagonal_is_solved():
    """The system is symmetric and indefinite."""
    a = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    x = a @ [1.0, -2.0, 3.0]
    rank_revealed(a, x)

    assert x == pytest.approx([1.0, -2.0, 3.0], abs=1e-14)
