"""The owner of a program is recognized from a controller's states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.program_watch import ProgramOwner, ProgramWatch
from simbridge.backends.state_fields import SCRIPT_COUNTER, SCRIPT_NUMBER

# Numbers of control scripts.
OURS = 4711
OTHER = 815
# Values of runtime_state.
STOPPED = 1
PLAYING = 2
PAUSED = 4


def make_states(*parts, period=0.002):
    """Yield a controller's states.

    Args:
        parts: Runtime state, number, how much the counter advances in a cycle, and cycles, of each
            part.
        period: Control period, s.
    """
    cycle = 0
    counter = 0
    for runtime_state, number, step, cycles in parts:
        for _ in range(cycles):
            cycle += 1
            counter += step
            yield {
                "runtime_state": runtime_state,
                "timestamp": cycle * period,
                SCRIPT_NUMBER: number,
                SCRIPT_COUNTER: counter,
            }


def follow(watch, *parts):
    """Return the owners of the program after each state of these parts."""
    return [watch.follow(state) for state in make_states(*parts)]


def find_owner(*parts, uploaded=False):
    """Return the owner of the program after these parts."""
    return follow(ProgramWatch(OURS, uploaded=uploaded), *parts)[-1]


@pytest.mark.parametrize(
    ("parts", "owner"),
    [
        ([(STOPPED, 0, 0, 5)], ProgramOwner.NONE),
        ([(STOPPED, 0, 0, 5), (PLAYING, OURS, 1, 5)], ProgramOwner.OURS),
        ([(PLAYING, OURS, 1, 5), (PAUSED, OURS, 0, 500)], ProgramOwner.OURS),
        ([(PLAYING, OURS, 1, 5), (PAUSED, OURS, 0, 500), (PLAYING, OURS, 1, 5)], ProgramOwner.OURS),
        ([(PLAYING, OURS, 1, 5), (STOPPED, OURS, 0, 5)], ProgramOwner.NONE),
        # Registers keep their values after a program has ended.
        (
            [(PLAYING, OURS, 1, 5), (STOPPED, OURS, 0, 5), (PLAYING, OURS, 0, 500)],
            ProgramOwner.OTHER,
        ),
        ([(PLAYING, OURS, 1, 5), (PLAYING, OURS, 0, 500)], ProgramOwner.OTHER),
        ([(PLAYING, OTHER, 1, 500)], ProgramOwner.OTHER),
        ([(PLAYING, OTHER, 1, 500), (PAUSED, OTHER, 0, 5)], ProgramOwner.OTHER),
        ([(PLAYING, OURS, 0, 2)], ProgramOwner.UNKNOWN),
        # Another program that took the place of ours and was paused before its missing count could
        # show it.
        (
            [(PLAYING, OURS, 1, 5), (PLAYING, OURS, 0, 4), (PAUSED, OURS, 0, 50)],
            ProgramOwner.UNKNOWN,
        ),
        # After a pause the count may begin a cycle late.
        ([(PLAYING, OURS, 1, 5), (PAUSED, OURS, 0, 500), (PLAYING, OURS, 0, 1)], ProgramOwner.OURS),
        # Our number alone proves nothing.
        ([(PAUSED, OURS, 0, 50)], ProgramOwner.UNKNOWN),
    ],
)
def test_our_number_and_an_advancing_counter_are_ours(parts, owner):
    assert find_owner(*parts) is owner


def test_a_program_paused_after_an_upload_is_ours():
    parts = [(STOPPED, 0, 0, 5), (PAUSED, 0, 0, 50)]

    assert find_owner(*parts, uploaded=True) is ProgramOwner.OURS
    assert find_owner(*parts) is ProgramOwner.UNKNOWN


def test_a_program_paused_after_another_is_not_ours():
    with_other_number = [(STOPPED, 0, 0, 5), (PLAYING, OTHER, 0, 100), (PAUSED, OTHER, 0, 50)]
    without_number = [(STOPPED, 0, 0, 5), (PLAYING, 0, 0, 5), (PAUSED, 0, 0, 50)]

    assert find_owner(*with_other_number, uploaded=True) is ProgramOwner.UNKNOWN
    assert find_owner(*without_number, uploaded=True) is ProgramOwner.OURS


def test_a_paused_program_with_our_number_stays_ours():
    for number, owner in ((OURS, ProgramOwner.OURS), (OTHER, ProgramOwner.UNKNOWN)):
        watch = ProgramWatch(OURS, program=ProgramOwner.OURS)

        owners = follow(watch, (PAUSED, number, 0, 3))

        assert owners[-1] is owner


@pytest.mark.slow
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
def test_a_program_that_played_with_another_number_is_never_ours(parts, before):
    watch = ProgramWatch(OURS, program=before)

    owners = follow(watch, (PLAYING, OTHER, 1, 2), *parts)

    assert ProgramOwner.OURS not in owners


@given(st.lists(st.tuples(st.just(PLAYING), st.just(OTHER), st.integers(0, 1), st.integers(1, 40))))
def test_a_playing_programs_number_decides(parts):
    watch = ProgramWatch(OURS, uploaded=True)

    owners = follow(watch, *parts)

    assert ProgramOwner.OURS not in owners
