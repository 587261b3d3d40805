"""The bars of the progress line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simbridge.cli.terminal import ASCII_BARS, BARS, sparkline


def test_the_largest_value_is_a_full_bar_and_zero_is_the_lowest():
    assert sparkline([0.0, 1.0, 2.0], 3) == f"{BARS[0]}{BARS[4]}{BARS[7]}"
    assert sparkline([0.0, 0.0], 2) == BARS[0] * 2
    assert sparkline([3.0], 4, ASCII_BARS) == "   #"


@given(st.lists(st.floats(0.0, 1e6), max_size=30), st.integers(1, 20))
def test_the_last_values_fill_the_width_and_larger_values_have_higher_bars(values, width):
    line = sparkline(values, width)
    assert len(line) == width
    shown = values[-width:]
    heights = [BARS.index(bar) for bar in line.strip()]
    assert len(heights) == len(shown)
    assert all(
        heights[i] <= heights[j] for i, a in enumerate(shown) for j, b in enumerate(shown) if a <= b
    )
