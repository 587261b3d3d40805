"""States pass from the servo process to its parent, even if one of them is slow or is killed."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.state_ring import MAX_ROWS, StateRing
from tests.patience import PATIENCE
from tests.properties import few_examples

N = 6
PERIOD = 0.002
SPAWN = multiprocessing.get_context("spawn")
VECTORS = (
    "q",
    "qd",
    "effort",
    "controller_target",
    "controller_target_velocity",
    "controller_target_acceleration",
    "command",
)


@pytest.fixture
def make_pair(tmp_path):
    """Makes a ring, as its maker and as the other process see it."""
    count = 0

    def make(states=8):
        nonlocal count
        path = tmp_path / f"ring{count}"
        count += 1
        parent = StateRing.create(path, N, states)
        return parent, StateRing(path, N, parent.rows)

    return make


def write_states(ring, *numbers):
    """Write states whose values all depend on their numbers."""
    for number in numbers:
        # Sequence, position, sent, received, timestamp, scaling, and three modes.
        times = (10.0 + number, 11.0 + number, 100.0 + number)
        scalars = (number, 0.5 * number, *times, 0.3, 7.0, 1.0, 4.0)
        vectors = tuple(np.full(N, 10.0 * number + k) for k in range(len(VECTORS)))
        ring.write(scalars, vectors)


def read_numbers(ring):
    """Return the numbers of the states that are new."""
    return [state.sequence for state in ring.new_states(PERIOD)]


def check_is_whole(state):
    """Check that all of a state belongs to one number."""
    number = state.sequence
    for k, name in enumerate(VECTORS):
        assert (getattr(state, name) == 10.0 * number + k).all()
    assert state.host_sent == 10.0 + number
    assert state.host_monotonic == 11.0 + number
    assert state.timestamp == 100.0 + number
    assert state.speed_scaling == 0.3
    assert state.robot_mode == 7
    assert state.safety_mode == 1
    assert state.runtime_state == 4
    assert state.plan_time == 0.5 * number * PERIOD


def test_a_state_arrives_as_it_was_written(make_pair):
    parent, process = make_pair()

    write_states(process, 3)
    (state,) = parent.new_states(PERIOD)

    check_is_whole(state)
    with pytest.raises(ValueError, match="read-only"):
        state.q[0] = 1.0


def test_each_state_is_returned_once_and_in_order(make_pair):
    parent, process = make_pair()
    assert read_numbers(parent) == []

    write_states(process, 0, 1, 2)
    assert parent.written == 3
    assert read_numbers(parent) == [0, 1, 2]
    assert read_numbers(parent) == []

    write_states(process, 3)
    assert read_numbers(parent) == [3]


def test_a_returned_state_survives_its_row(make_pair):
    parent, process = make_pair()
    write_states(process, 0)
    (state,) = parent.new_states(PERIOD)

    write_states(process, *range(1, 20))

    check_is_whole(state)


@few_examples(20)
@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=20))
def test_a_slow_reader_gets_the_newest_complete_states(tmp_path_factory, turns):
    path = tmp_path_factory.mktemp("ring") / "ring"
    parent = StateRing.create(path, N, 8)
    process = StateRing(path, N, 8)

    written = 0
    newest_read = -1
    for count, reads in turns:
        write_states(process, *range(written, written + count))
        written += count
        if reads:
            # The row that would be written next is not given out: the writer may be at it.
            first = max(newest_read + 1, written - 7)
            assert read_numbers(parent) == list(range(first, written))
            newest_read = written - 1


def test_a_state_overwritten_while_it_is_read_is_skipped(make_pair):
    parent, process = make_pair()
    write_states(process, *range(7))

    states = parent.new_states(PERIOD)
    assert next(states).sequence == 0
    write_states(process, *range(7, 20))

    assert [state.sequence for state in states] == list(range(13, 20))


def test_a_ring_is_no_larger_than_two_minutes_need(make_pair, tmp_path):
    ring, _ = make_pair(10 * MAX_ROWS)

    assert ring.rows == MAX_ROWS
    assert MAX_ROWS >= 120 / PERIOD
    assert (tmp_path / "ring0").stat().st_size < 40e6


def test_the_file_is_written_in_full_before_it_is_used(tmp_path):
    StateRing.create(tmp_path / "ring", N, 1000)

    status = (tmp_path / "ring").stat()

    assert status.st_blocks * 512 >= status.st_size


def test_both_sides_continue_after_the_file_was_unlinked(tmp_path):
    parent = StateRing.create(tmp_path / "ring", N, 8)
    process = StateRing(tmp_path / "ring", N, 8)

    (tmp_path / "ring").unlink()
    write_states(process, 0)

    assert read_numbers(parent) == [0]
    assert list(tmp_path.iterdir()) == []


# ---- two processes


def write_in_process(path, rows, count):
    """Write so many states, in another process."""
    write_states(StateRing(path, N, rows), *range(count))


def read_from_process(ring, writer):
    """Return the states that another process writes until it ends."""
    states = []
    deadline = time.monotonic() + PATIENCE
    while True:
        # It is read once more after the process has ended.
        alive = writer.is_alive()
        if not alive and not ring.written:
            return states
        states += ring.new_states(PERIOD)
        if not alive or time.monotonic() > deadline:
            return states


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "holds_all"),
    [
        # That none is lost, test_each_state_is_returned_once_and_in_order shows in one process.
        pytest.param(20_000, True, marks=pytest.mark.soak),
        (16, False),
    ],
)
def test_states_from_another_process_are_whole_and_in_order(tmp_path, rows, holds_all):
    count = 1_500
    path = tmp_path / "ring"
    ring = StateRing.create(path, N, rows)

    writer = SPAWN.Process(target=write_in_process, args=(path, rows, count))
    writer.start()
    states = read_from_process(ring, writer)
    writer.join()

    for state in states:
        check_is_whole(state)
    numbers = [state.sequence for state in states]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == count - 1
    if holds_all:
        assert numbers == list(range(count))


def test_a_deleted_ring_releases_its_memory_but_not_its_states(tmp_path):
    path = tmp_path / "ring"
    ring = StateRing.create(path, N, 8)
    write_states(ring, 0, 1)
    state = next(ring.new_states(PERIOD))
    assert str(path) in Path("/proc/self/maps").read_text()

    del ring

    assert str(path) not in Path("/proc/self/maps").read_text()
    check_is_whole(state)
