"""Which of the events that wait still count."""

from __future__ import annotations

import pytest

from simbridge.browser.events import BACKGROUND, PageEvent
from simbridge.browser.superseded import without_superseded


def left(*events):
    """Return the events of one page, each a name and a value, without superseded ones."""
    return [
        (event.name, event.value)
        for event in without_superseded([PageEvent(1, *event) for event in events])
    ]


def test_of_the_values_of_a_control_the_newest_counts():
    events = [("change", (name, value)) for value in range(1000) for name in ("gain", "period")]

    assert left(*events) == [("change", ("gain", 999)), ("change", ("period", 999))]


@pytest.mark.parametrize(
    "name", ["goal", "goal turn", "clicked goal", "speed", "solver", "rival", "scenario", "scrub"]
)
def test_each_control_is_coalesced_for_itself(name):
    other = ("change", ("gain", 1.0))

    assert left((name, 1), other, (name, 2)) == [other, (name, 2)]


@pytest.mark.parametrize(
    "action", ["play", "pause", "stop", "iterate", "keep", "load", "release", "engage", "answer"]
)
def test_what_an_action_depends_on_is_done_before_it(action):
    events = [("change", ("gain", 1.0)), (action, None), ("change", ("gain", 2.0)), (action, None)]

    assert left(*events) == events


def test_a_drag_keeps_its_begin_and_its_end():
    moves = [("drag", ("update", number)) for number in range(100)]
    begin = ("drag", ("start", 0))
    end = ("drag", ("end", 99))

    assert left(begin, *moves, end, begin, *moves) == [begin, moves[-1], end, begin, moves[-1]]


def test_of_several_starts_the_last_counts():
    assert left(("start", 1), ("home", None), ("start", 2)) == [("start", 2)]


def test_a_start_where_the_arm_is_needs_the_start_before():
    events = [("home", None), ("here", None)]

    assert left(*events) == events


def test_a_start_needs_the_rotation_of_the_goal_before():
    events = [("goal turn", 1), ("start", 1), ("goal turn", 2)]

    assert left(*events) == events


def test_pages_and_what_was_done_beside_the_loop_are_kept_apart():
    events = [
        PageEvent(1, "speed", 1),
        PageEvent(2, "speed", 2),
        PageEvent(BACKGROUND, "rival", print),
        PageEvent(BACKGROUND, "rival", print),
    ]

    assert without_superseded(events) == events
