"""The age of a run, as the list of runs shows it."""

from __future__ import annotations

from simbridge.cli.listed_runs import format_age


def test_an_age_has_one_unit():
    assert [format_age(seconds) for seconds in (0.2, 59.0, 90.0, 7200.0, 2e6)] == [
        "0 s",
        "59 s",
        "2 min",
        "2 h",
        "23 d",
    ]
