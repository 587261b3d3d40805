"""Random Jacobians, errors and postures for the steps of solvers, and helpers to call these."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from simbridge.ik.damped_least_squares import damped_motion
from simbridge.ik.kernels.constraints import independent_rows as independent_rows_python
from simbridge.ik.kernels.constraints import solve_constraints
from simbridge.ik.kernels.records import allocate_descent
from simbridge.kernels.records import with_attributes
from tests.ik.machine import machine_code

# Drops what is singular to rounding, and keeps all that is merely near it.
CUTOFF = 1e-9

independent_rows = machine_code(independent_rows_python)

three_motions = machine_code(solve_constraints)


def damped(settings, descent):
    """`damped_motion` with the arguments of a step."""
    machine_code(damped_motion)(descent, descent.iterate.error, *settings, descent.iterate.dq)


class Case:
    """A Jacobian (m, n) of some rank, an error, joints and a posture, all random."""

    def __init__(self, seed, n, m, rank, scale):
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.n = n
        self.m = m
        left_vectors, _ = np.linalg.qr(rng.normal(size=(m, m)))
        right, _ = np.linalg.qr(rng.normal(size=(n, n)))
        rank = min(rank, m, n)
        self.rank = rank
        singular_values = rng.uniform(0.05, 2.0, rank)
        self.j = 10.0**scale * (left_vectors[:, :rank] * singular_values) @ right[:, :rank].T
        self.e = rng.normal(size=m)
        self.q = rng.uniform(-3, 3, n)
        self.posture = rng.uniform(-3, 3, n)

    def run(self, step, *parameters, error=None):
        """dq of a step, and what it returns; the unused components and the scratch arrays hold
        rubbish.
        """
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


any_case = cases()
regular_case = cases(ranks=(6, 6))

EIGENVALUES = st.floats(1e-3, 10.0)


def close(actual, expected, tolerance=1e-10):
    assert np.linalg.norm(actual - expected) <= tolerance * (1.0 + np.linalg.norm(expected))


def motions(error, values, rows, rank, hessian, gradient, descent):
    """The three motions: for the error, for custom strict rows, for the soft rows."""
    descent.scratch.strict_values[:, :6] = [error, values]
    three_motions(rows, rank, hessian, gradient, descent)
    return tuple(descent.iterate[name][: len(gradient)].copy() for name in ("dq", "held", "drift"))


def whole_step(error, rows, rank, hessian, gradient, descent):
    """All motions in one."""
    descent.iterate.dq[: len(gradient)] = np.sum(
        motions(error, np.zeros(6), rows, rank, hessian, gradient, descent), axis=0
    )


def constrained_step(settings, descent):
    """The whole step with one soft row per joint, dq_i = natural_i, and how many strict rows depend
    on others.
    """
    weights, natural, cutoff = settings
    hessian = 2.0 * np.diag(weights) / (weights.max() or 1.0)
    rows = int(descent.iterate.rows)
    rank = independent_rows(descent.iterate.jacobian, rows, cutoff, descent)
    whole_step(descent.iterate.error, rows, rank, hessian, hessian @ natural, descent)
    return rows - rank
