"""The page of a judged log: one file that loads nothing, with the sentence, plots and tables."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from simbridge.judging.judgement import examine
from simbridge.judging.judgement_page import judgement_page
from simbridge.judging.log import Missing
from simbridge.judging.wording import headline
from tests.judging.logs import START, make_log, movej_and_back, rest

pytestmark = pytest.mark.shares_setup


@cache
def examination():
    log = movej_and_back(missing=(Missing("commands", "what was sent"),))
    trailing = log.target_q - 0.0005 * log.target_qd
    columns = {"target_qd": log.target_qd, "actual_q": trailing}
    return examine(make_log(log.target_q, columns=columns, missing=log.missing), [])


@cache
def page():
    return judgement_page(examination())


def test_the_page_says_what_the_command_says():
    (shown,) = re.findall(r'<p class="headline">(.*?)</p>', page())

    assert shown == headline(examination().judgement)


def test_the_page_loads_nothing():
    assert not re.search(r'(src|href)="(?!data:|#)', page())


@pytest.mark.parametrize("section", ["time", "motions", "sources", "largest-error", "speed", "arm"])
def test_the_page_has_a_section(section):
    assert f'<section id="{section}">' in page()


def test_each_motion_has_a_row():
    table = page().split('<section id="motions">')[1].split("</section>")[0]

    assert table.count('<tr><th scope="row"') == 2


def test_missing_quantities_are_named():
    assert "would show what was sent" in page()


def test_names_from_the_log_are_escaped():
    log = make_log(rest(START, 1.0), notes=("<script>alert(1)</script>",))

    assert "<script>alert" not in judgement_page(examine(log, []))


def test_a_log_without_a_motion_has_a_page():
    still = judgement_page(examine(make_log(rest(START, 1.0)), []))

    assert "nothing to judge" in still
    assert '<section id="speed">' in still


def test_the_same_log_makes_the_same_page():
    assert judgement_page(examination()) == page()


def test_the_first_plot_shows_the_largest_error():
    size = examination().judgement.whole.whole.size

    assert size.max_rad == pytest.approx(0.0005 * 0.5, rel=1e-6)
    assert f"to {1e3 * size.max_rad:.3f}"[:7] in np.str_(page())


def test_headings_of_groups_cover_all_columns():
    heads = re.findall(r"<thead>\s*<tr>(.*)</tr>\s*<tr>(.*)</tr>", page())
    widths = [
        len(re.findall("<t[dh]", groups))
        + sum(int(width) - 1 for width in re.findall(r'colspan="(\d+)"', groups))
        for groups, _ in heads
    ]

    assert heads
    assert widths == [columns.count("<th") for _, columns in heads]
