"""Words of column names have axes by one set of rules."""

from __future__ import annotations

import pytest

from simbridge.trajectory.tables.components import AxisForm, WordAxis, find_axes, without_order


@pytest.mark.parametrize(
    ("word", "form", "text", "stem", "number"),
    [
        ("x", AxisForm.WORD, "x", "", ""),
        ("x1", AxisForm.WORD, "x", "", "1"),
        ("real", AxisForm.WORD, "real", "", ""),
        ("pos0", AxisForm.NUMBER, "0", "pos", ""),
        ("12", AxisForm.NUMBER, "12", "", ""),
        ("posx", AxisForm.END, "x", "pos", ""),
        ("quatscalar", AxisForm.END, "scalar", "quat", ""),
        ("xpos", AxisForm.BEGINNING, "x", "pos", ""),
        ("xtool0", AxisForm.BEGINNING, "x", "tool", "0"),
    ],
)
def test_words_have_axes(word, form, text, stem, number) -> None:
    axes = list(find_axes(word))

    assert WordAxis(form, text, stem, number) in axes


@pytest.mark.parametrize("word", ["", "force", "a", "hand"])
def test_other_words_have_none(word) -> None:
    assert list(find_axes(word)) == []


@pytest.mark.parametrize("text", ["w", "r", "real", "scalar"])
def test_real_parts_are_w(text) -> None:
    (whole_word,) = [axis for axis in find_axes(text) if axis.form is AxisForm.WORD]

    assert whole_word.axis == "w"


@pytest.mark.parametrize(
    ("name", "rest", "order"),
    [
        (("quat", "wxyz"), ("quat",), "wxyz"),
        (("qxyzw",), ("q",), "xyzw"),
        (("quat",), ("quat",), ""),
        ((), (), ""),
    ],
)
def test_names_say_orders(name, rest, order) -> None:
    assert without_order(name) == (rest, order)
