"""`simbridge bench`: which part is measured for how long, and the rows that are printed."""

from __future__ import annotations

import json

import pytest

from simbridge.bench.bench import KEYS, bench
from simbridge.errors import InvalidParameter


@pytest.fixture
def quick_live(monkeypatch):
    """In place of a live session a row that shows how long it would have been measured."""

    def measure(minutes=0.5):
        return [("missed", f"{minutes} min", "a bare timer's", "none")]

    monkeypatch.setattr("simbridge.bench.live.measure", measure)


def test_rows_are_printed_as_a_table(quick_live, capsys):
    status = bench("live", minutes=2.0)

    assert status == 0
    assert "2.0 min" in capsys.readouterr().out


def test_rows_are_printed_as_json(quick_live, capsys):
    status = bench("live", as_json=True)

    (row,) = json.loads(capsys.readouterr().out)["figures"]
    assert status == 0
    assert tuple(row) == KEYS
    assert row["median"] == "0.5 min"


@pytest.mark.parametrize(("part", "minutes"), [("servo", 1.0), ("live", 0.0), ("live", 601.0)])
def test_minutes_that_make_no_sense_are_refused(part, minutes):
    with pytest.raises(InvalidParameter):
        bench(part, minutes=minutes)
