"""Input of users within messages: visible and short."""

from __future__ import annotations

import pytest

from simbridge.quoting import ELLIPSIS, LONGEST_QUOTE, quoted, quoted_list, shorten, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\r\t", "two\\nlines\\r\\t"),
        ("\u202eright to left", "\\u202eright to left"),
        ("\udcff", "\\udcff"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_control_characters_are_visible(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["plain", "R&D <1>", "Größe 机器人", "C:\\new", "1\u00a0mm", ""])
def test_text_is_left_as_it_is(text):
    assert visible(text) == text


def test_a_short_input_is_quoted_whole():
    assert quoted("x" * LONGEST_QUOTE) == f"'{'x' * LONGEST_QUOTE}'"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 10**6, "\x1b" * 10**6, "\U000e0001" * 200])
def test_a_long_input_is_shortened(text):
    shown = quoted(text)

    assert len(shown) == LONGEST_QUOTE + 2
    assert ELLIPSIS in shown


def test_a_long_text_keeps_both_ends():
    assert shorten("abcdefghij", 7) == f"abcd{ELLIPSIS}ij"


def test_of_many_names_the_first_are_listed():
    assert quoted_list(range(5), most=2) == "0, 1 and 3 more"


def test_few_names_are_listed_whole():
    assert quoted_list(["a", "b\n"]) == "a, b\\n"
