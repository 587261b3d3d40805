"""The states of a session, walked with random events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.session_state import TRANSITIONS, SessionEvent, SessionState, next_state

EVENTS = st.lists(st.sampled_from(SessionEvent), max_size=40)


def walked(events, state=SessionState.CONNECTING):
    for event in events:
        state = next_state(state, event)
    return state


@given(EVENTS)
def test_from_wherever_a_session_is_the_same_three_events_end_it(events):
    assert (
        walked([*events, SessionEvent.END, SessionEvent.RESTS, SessionEvent.VERIFIED])
        is SessionState.ENDED
    )


@given(EVENTS, EVENTS)
def test_what_is_ending_never_moves_again(events, more):
    assert walked(more, walked([*events, SessionEvent.END])) in (
        SessionState.BRAKING,
        SessionState.AT_REST,
        SessionState.ENDED,
    )


@given(EVENTS)
def test_nothing_moves_before_the_script_runs(events):
    before = (
        events[: events.index(SessionEvent.SCRIPT_RUNS)]
        if SessionEvent.SCRIPT_RUNS in events
        else events
    )
    assert walked(before) not in (SessionState.READY, SessionState.MOVING, SessionState.PAUSED)


def test_every_state_is_reached():
    assert {*TRANSITIONS.values(), SessionState.CONNECTING} == set(SessionState)
