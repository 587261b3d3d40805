"""Curves decimated for drawing, and intervals of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.report.charts import decimate, decimate_path, intervals

pytestmark = pytest.mark.slow

curves = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=400)


@given(curves, st.integers(1, 40))
def test_decimation_keeps_ends_peaks_and_gaps(values: list[float], columns: int) -> None:
    curve = np.array(values)

    kept = decimate(curve, columns)

    assert len(kept) <= 3 * columns + 2
    assert np.all(np.diff(kept) > 0)
    assert kept[0] == 0
    assert kept[-1] == len(curve) - 1
    assert np.isnan(curve).any() == np.isnan(curve[kept]).any()
    if not np.isnan(curve).all():
        assert np.nanmin(curve[kept]) == np.nanmin(curve)
        assert np.nanmax(curve[kept]) == np.nanmax(curve)


@given(st.integers(500, 3000), st.integers(20, 100))
def test_every_column_keeps_its_own_peak(samples: int, columns: int) -> None:
    curve = np.random.default_rng(samples).normal(size=samples)

    kept = decimate(curve, columns)

    size = -(-samples // columns)
    for start in range(0, samples, size):
        inside = kept[(kept >= start) & (kept < start + size)]
        assert curve[inside].max() == curve[start : start + size].max()


def test_a_decimated_path_keeps_its_outermost_points() -> None:
    angle = np.linspace(0.0, 20.0 * np.pi, 50_000)
    path = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    path[12_345] = [3.0, -2.0]

    kept = decimate_path(path, 200)

    assert len(kept) <= 1202
    assert 12_345 in kept


@given(st.lists(st.booleans(), max_size=60))
def test_intervals_cover_exactly_the_marked_samples(marked: list[bool]) -> None:
    mask = np.array(marked, dtype=bool)
    stamps = np.arange(len(marked)) * 0.5

    periods = intervals(mask, stamps)

    inside = np.zeros(len(marked), dtype=bool)
    for begin, end in periods:
        inside |= (stamps >= begin) & (stamps <= end)
    assert np.array_equal(inside, mask)
    rises = np.diff(np.concatenate([[False], mask]).astype(int)) == 1
    assert len(periods) == int(np.count_nonzero(rises))


def test_intervals_separated_by_a_short_gap_are_merged() -> None:
    mask = np.array([1, 1, 0, 1, 0, 0, 0, 1], dtype=bool)

    periods = intervals(mask, np.arange(8.0), gap=2.5)

    assert periods == [(0.0, 3.0), (7.0, 7.0)]
