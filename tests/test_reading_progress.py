"""The reading of a large file is reported."""

from __future__ import annotations

import pytest

from simbridge.reading_progress import reading_shown_by, with_progress
from simbridge.trajectory.files import read_trajectory

SAMPLES = "".join(f"{0.1 * k:g} {0.7 + 0.01 * k:g} 0.1 0.3 0 0 0 1\n" for k in range(5))


@pytest.mark.slow
def test_reading_is_reported_throughout(tmp_path):
    path = tmp_path / "poses.csv"
    path.write_text("\n" * 200_000 + SAMPLES)
    names = set()
    activities = set()
    fractions = []

    def record(name, fraction, activity):
        names.add(name)
        activities.add(activity)
        fractions.append(fraction)

    with reading_shown_by(record):
        read_trajectory(path)

    assert names == {str(path)}
    assert activities == {"Reading"}
    assert len(fractions) > 4
    assert fractions[0] == 0.0
    assert fractions[-1] == 1.0


def test_without_a_viewer_lines_are_numbered():
    assert list(with_progress("poses.csv", ["a", "b", "c"], first=1)) == [(2, "b"), (3, "c")]
