"""Scalars that remember how they were computed, and the Python that they print as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.kernels.expression import Trace, opaque, statements


@opaque(outputs=1)
def half(x):
    return (0.5 * x,)


def test_zeros_ones_and_repetitions_fold_away():
    trace = Trace()
    x = trace.name("x")
    y = trace.name("y")
    result = 0.0 * x + 1.0 * y + (-1.0) * (x * y) + (x * y) * half(x)[0] - 0.0

    assert statements(trace, [("out", result)]) == [
        "v2 = x * y",
        "v3 = -v2",
        "v4 = y + v3",
        "v5 = half(x)",
        "v6 = v5[0]",
        "v7 = v2 * v6",
        "v8 = v4 + v7",
        "out = v8",
    ]


@given(st.lists(st.floats(-3.0, 3.0), min_size=4, max_size=4))
def test_a_trace_computes_what_the_function_does(values):
    def function(a, b, c, d):
        return (
            (a - b) * (c - (d - a)) / (1.0 + b * b) - -(a / (2.0 + half(c)[0])) + (b - (c - d)) * -d
        )

    trace = Trace()
    lines = statements(trace, [("out", function(*(trace.name(name) for name in "abcd")))])
    given_names = {**dict(zip("abcd", values, strict=True)), "half": half}
    exec("\n".join(lines), given_names)

    assert given_names["out"] == pytest.approx(function(*values), rel=1e-14, abs=1e-14)
