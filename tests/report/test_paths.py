"""The colour steps along the path."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simbridge.report.paths import LEVELS, colour_steps


@given(st.lists(st.floats(0.0, 1e3), min_size=1, max_size=50))
def test_steps_rise_to_the_largest_error(values):
    error = np.array(values)

    steps = colour_steps(error)

    assert steps[0] == 0.0
    assert steps[-1] >= error.max()
    assert np.all(np.diff(steps) > 0.0)
    assert 1 <= len(steps) - 1 <= LEVELS + 1


def test_even_errors_have_even_steps():
    steps = colour_steps(np.linspace(1.0, 2.4, 100))

    assert steps.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0, 2.4]


def test_rare_peaks_leave_colours_to_small_errors():
    error = np.full(1000, 0.007)
    error[::100] = 1.16

    steps = colour_steps(error)

    assert np.count_nonzero(steps < 0.1) >= 3
