"""Errors over time: panels and legend."""

from __future__ import annotations

import pytest

from simbridge.report.drawing import drawing_style
from simbridge.report.over_time import errors_over_time, logarithmic_range

pytestmark = pytest.mark.slow


def test_negligible_rotation_is_not_drawn(measured):
    with drawing_style():
        _, small = errors_over_time(*measured(plant_offset=1e-7))
        _, large = errors_over_time(*measured(plant_offset=1e-3))

    assert "Position error (mm); rotation below 0.0001°" in small
    assert "Rotation error (°)" not in small
    assert "Rotation error (°)" in large
    assert "rotation below" not in large


def test_invisible_curves_are_in_the_legend(measured):
    run = measured(solution_offset=1e-9, plant_offset=0.5)

    with drawing_style():
        entries, _ = errors_over_time(*run)

    names = {entry.name for entry in entries}
    assert {"sampling (zero)", "limiter (zero)", "solver (too small to show)", "plant"} <= names


def test_the_legend_names_a_drawn_worst_sample(measured):
    with drawing_style():
        exact_entries, _ = errors_over_time(*measured())
        entries, _ = errors_over_time(*measured(plant_offset=1e-3))

    assert "worst sample" not in {entry.name for entry in exact_entries}
    assert "worst sample" in {entry.name for entry in entries}


def test_curves_of_one_level_are_seen_whole():
    levels = [(4.5, 2.9), (4.0, 2.5)]

    bottom, top = logarithmic_range(levels, min_decades=3)

    assert bottom == 1e-3
    assert top > 4.5
