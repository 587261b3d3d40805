"""Numbers as the page writes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from simbridge.text import (
    degrees,
    displayed,
    fixed,
    join_words,
    make_table,
    millimetres,
    milliseconds,
    significant,
)


@pytest.mark.slow
@given(st.floats(min_value=1e-3, max_value=1e7))
def test_three_digits_are_half_a_percent(value: float) -> None:
    text = significant(value)

    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=5e-3)


@given(st.floats(min_value=1e-3, max_value=1e7))
def test_decimals_are_limited(value: float) -> None:
    whole, _, behind = significant(value).partition(".")

    digits = (whole + behind).lstrip("0")

    assert len(digits) <= 3 or not behind


@given(st.floats(allow_nan=False, allow_infinity=False, max_value=1e9, min_value=-1e9))
def test_negative_numbers_have_a_minus(value: float) -> None:
    if abs(value) > 1e-3:
        assert significant(-abs(value)) == f"\u2212{significant(abs(value))}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (0.9996, "1.00"),
        (99.96, "100"),
        (1234.5, "1234"),
        (0.000125, "0.000125"),
        (0.0000309, "<0.0001"),
        (4e-7, "<0.0001"),
        (3e-17, "0"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_these_are_written_so(value: float | None, text: str) -> None:
    assert significant(value) == text


def test_units_are_those_of_people() -> None:
    assert millimetres(0.00012534) == "0.125"
    assert degrees(math.radians(2.5)) == "2.50"
    assert milliseconds(0.08063) == "80.6"
    assert milliseconds(8.35e-5) == "0.08"
    assert [convert(None) for convert in (millimetres, degrees, milliseconds)] == ["–"] * 3


def test_lists_read_as_sentences() -> None:
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b", "c"]) == "a, b and c"


def test_units_are_those_that_people_read() -> None:
    assert displayed(0.00332, "m/s") == ("3.32", "mm/s")
    assert displayed(0.00332, "m") == ("3.32", "mm")
    assert displayed(0.0186, "s") == ("18.6", "ms")
    assert displayed(0.1, "rad") == ("5.73", "°")
    assert displayed(0.123, "share") == ("12.3", "%")
    assert displayed(1e-6, "share") == ("<0.01", "%")
    assert displayed(0.0186, "%") == ("0.0186", "%")
    assert displayed(None, "m") == ("–", "mm")


def test_fixed_decimals_have_no_negative_zero() -> None:
    assert fixed(-1e-9, 4) == "0.0000"
    assert fixed(-0.5, 2) == "\u22120.50"


@pytest.mark.parametrize(("width", "lines"), [(60, 2), (30, 3), (24, 4)])
def test_a_table_fits_the_terminal(monkeypatch, capsys, width, lines):
    monkeypatch.setenv("COLUMNS", f"{width}")
    Console().print(
        make_table(
            ("solver", "RMS mm", "median time us"), [("forward-dynamics", "0.00206", "74295")]
        )
    )
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    assert max(map(len, printed)) <= width
    assert sum(bool(line) for line in printed) >= lines
    assert any({"0.00206", "74295"} <= set(line.split()) for line in printed)


def test_a_long_text_leaves_numbers_whole(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    columns = ("motion", "kind", "RMS mrad", "peak rad/s")
    row = ("1", "servoj or servoL, gain 300", "38.7654", "1.16432")

    Console().print(make_table(columns, [row], left=("kind",)))

    printed = capsys.readouterr().out
    assert {"1", "servoj", "gain", "38.7654", "1.16432"} <= set(printed.split())
