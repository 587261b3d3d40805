"""The studio's sentences and tables as HTML, in which every value is escaped."""

from __future__ import annotations

from simbridge.browser import html_texts

SCRIPT = "<img src=x onerror=window.pwned=1>"


def test_a_question_shows_facts_literally():
    asked = html_texts.question([(f"fact {SCRIPT}", "R&D <1>")], f"question {SCRIPT}")

    assert "<img" not in asked
    assert "<td>R&amp;D &lt;1&gt;</td>" in asked
