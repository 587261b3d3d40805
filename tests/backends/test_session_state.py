"""The states of a session, walked with random events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.servo_channel import TRANSITIONS, Event, State, next_state

EVENTS = st.lists(st.sampled_from(Event), max_size=40)


def walked(events, state=State.CONNECTING):
    for event in events:
        state = next_state(state, event)
    return state


@given(EVENTS)
def test_from_wherever_a_session_is_the_same_three_events_end_it(events):
    assert walked([*events, Event.END, Event.RESTS, Event.VERIFIED]) is State.ENDED


@given(EVENTS, EVENTS)
def test_what_is_ending_never_moves_again(events, more):
    assert walked(more, walked([*events, Event.END])) in (State.BRAKING, State.AT_REST, State.ENDED)


@given(EVENTS)
def test_nothing_moves_before_the_script_runs(events):
    before = events[: events.index(Event.SCRIPT_RUNS)] if Event.SCRIPT_RUNS in events else events
    assert walked(before) not in (State.READY, State.MOVING, State.PAUSED)


def test_every_state_is_reached():
    assert {*TRANSITIONS.values(), State.CONNECTING} == set(State)
