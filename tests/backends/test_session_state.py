"""The states of a session, walked with random events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.session_state import TRANSITIONS, SessionEvent, SessionState, next_state

EVENTS = st.lists(st.sampled_from(SessionEvent), max_size=40)


def walk(events, state=SessionState.CONNECTING):
    """Return the state after these events."""
    for event in events:
        state = next_state(state, event)
    return state


@given(EVENTS)
def test_the_same_three_events_end_every_session(events):
    ending = [SessionEvent.END, SessionEvent.RESTS, SessionEvent.VERIFIED]

    assert walk([*events, *ending]) is SessionState.ENDED


@given(EVENTS, EVENTS)
def test_what_is_ending_never_moves_again(events, later_events):
    state = walk(later_events, walk([*events, SessionEvent.END]))

    assert state in (SessionState.BRAKING, SessionState.AT_REST, SessionState.ENDED)


@given(EVENTS)
def test_nothing_moves_before_the_script_runs(events):
    if SessionEvent.SCRIPT_RUNS in events:
        events = events[: events.index(SessionEvent.SCRIPT_RUNS)]

    state = walk(events)

    assert state not in (SessionState.READY, SessionState.MOVING, SessionState.PAUSED)


def test_every_state_is_reached():
    assert {*TRANSITIONS.values(), SessionState.CONNECTING} == set(SessionState)
