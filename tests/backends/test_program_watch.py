"""Whose program a sequence of states shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.control_script import (
    COUNTER_OUTPUT,
    NUMBER_OUTPUT,
)
from simbridge.backends.program_watch import ProgramOwner, ProgramWatch

OURS, OTHER = 4711, 815
STOPPED, PLAYING, PAUSED = 1, 2, 4


def states(*parts, period=0.002):
    """States of (runtime state, number, how the counter advances a cycle, cycles), one after the other."""
    count, counter = 0, 0
    for runtime, number, step, cycles in parts:
        for _ in range(cycles):
            count, counter = count + 1, counter + step
            yield {
                "runtime_state": runtime,
                "timestamp": count * period,
                NUMBER_OUTPUT: number,
                COUNTER_OUTPUT: counter,
            }


def seen(*parts, uploaded=False):
    watch = ProgramWatch(OURS, uploaded=uploaded)
    for state in states(*parts):
        program = watch.follow(state)
    return program


@pytest.mark.parametrize(
    ("parts", "program"),
    [
        (((STOPPED, 0, 0, 5),), ProgramOwner.NONE),
        (((STOPPED, 0, 0, 5), (PLAYING, OURS, 1, 5)), ProgramOwner.OURS),
        (((PLAYING, OURS, 1, 5), (PAUSED, OURS, 0, 500)), ProgramOwner.OURS),
        (((PLAYING, OURS, 1, 5), (PAUSED, OURS, 0, 500), (PLAYING, OURS, 1, 5)), ProgramOwner.OURS),
        (((PLAYING, OURS, 1, 5), (STOPPED, OURS, 0, 5)), ProgramOwner.NONE),
        # Registers keep their values after a program has ended.
        (
            ((PLAYING, OURS, 1, 5), (STOPPED, OURS, 0, 5), (PLAYING, OURS, 0, 500)),
            ProgramOwner.OTHER,
        ),
        (((PLAYING, OURS, 1, 5), (PLAYING, OURS, 0, 500)), ProgramOwner.OTHER),
        (((PLAYING, OTHER, 1, 500),), ProgramOwner.OTHER),
        (((PLAYING, OTHER, 1, 500), (PAUSED, OTHER, 0, 5)), ProgramOwner.OTHER),
        (((PLAYING, OURS, 0, 2),), ProgramOwner.UNKNOWN),
        # Another program that took the place of ours and was paused before its missing count could show it.
        (
            ((PLAYING, OURS, 1, 5), (PLAYING, OURS, 0, 4), (PAUSED, OURS, 0, 50)),
            ProgramOwner.UNKNOWN,
        ),
        # After a pause the count may begin a cycle late.
        (((PLAYING, OURS, 1, 5), (PAUSED, OURS, 0, 500), (PLAYING, OURS, 0, 1)), ProgramOwner.OURS),
        # Our number alone proves nothing.
        (((PAUSED, OURS, 0, 50),), ProgramOwner.UNKNOWN),
    ],
)
def test_a_program_is_ours_if_it_has_our_number_and_its_counter_advances(parts, program):
    assert seen(*parts) is program


def test_what_is_paused_before_its_first_cycle_is_ours_right_after_the_upload():
    assert seen((STOPPED, 0, 0, 5), (PAUSED, 0, 0, 50), uploaded=True) is ProgramOwner.OURS
    assert seen((STOPPED, 0, 0, 5), (PAUSED, 0, 0, 50)) is ProgramOwner.UNKNOWN


def test_what_played_with_another_number_for_long_and_is_paused_is_not_taken_for_ours_after_an_upload():
    assert (
        seen((STOPPED, 0, 0, 5), (PLAYING, OTHER, 0, 100), (PAUSED, OTHER, 0, 50), uploaded=True)
        is ProgramOwner.UNKNOWN
    )
    assert (
        seen((STOPPED, 0, 0, 5), (PLAYING, 0, 0, 5), (PAUSED, 0, 0, 50), uploaded=True)
        is ProgramOwner.OURS
    )


def test_what_is_paused_when_nobody_can_say_more_is_ours_if_it_was_ours_and_has_our_number():
    for number, program in ((OURS, ProgramOwner.OURS), (OTHER, ProgramOwner.UNKNOWN)):
        watch = ProgramWatch(OURS, program=ProgramOwner.OURS)
        assert [watch.follow(state) for state in states((PAUSED, number, 0, 3))][-1] is program


@given(
    st.lists(
        st.tuples(
            st.sampled_from([STOPPED, PLAYING, PAUSED]),
            st.just(OTHER),
            st.integers(0, 1),
            st.integers(1, 40),
        )
    ),
    st.sampled_from(ProgramOwner),
)
def test_a_program_with_another_number_is_never_taken_for_ours_once_it_has_played(parts, before):
    watch = ProgramWatch(OURS, program=before)
    followed = [watch.follow(state) for state in states((PLAYING, OTHER, 1, 2), *parts)]
    assert ProgramOwner.OURS not in followed


@given(st.lists(st.tuples(st.just(PLAYING), st.just(OTHER), st.integers(0, 1), st.integers(1, 40))))
def test_a_program_that_plays_with_another_number_is_not_ours_after_an_upload(parts):
    watch = ProgramWatch(OURS, uploaded=True)
    assert all(watch.follow(state) is not ProgramOwner.OURS for state in states(*parts))
