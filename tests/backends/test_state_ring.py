"""What passes between the servo process and its parent, even if one of them is slow or is killed."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.state_ring import MAX_ROWS, StateRing

N = 6
PERIOD = 0.002
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def pair(tmp_path):
    """Makes the same ring as its maker and as the other process see it."""
    made = []

    def make(states=8):
        path = tmp_path / f"ring{len(made)}"
        made.append(StateRing.create(path, N, states))
        made.append(StateRing(path, N, made[-1].rows))
        return made[-2], made[-1]

    return make


def scalars(number):
    """Those of a state by its number: sequence position sent received timestamp scaling and three modes."""
    return (number, 0.5 * number, 10.0 + number, 11.0 + number, 100.0 + number, 0.3, 7.0, 1.0, 4.0)


def vectors(number):
    return tuple(np.full(N, 10.0 * number + k) for k in range(7))


def put(ring, *numbers):
    for number in numbers:
        ring.write(scalars(number), vectors(number))


def read(ring):
    return [state.sequence for state in ring.new_states(PERIOD)]


def is_whole(state):
    """Whether all of a state belongs to one number."""
    number = state.sequence
    rows = (
        *(state.q, state.qd, state.effort, state.controller_target),
        *(state.controller_target_velocity, state.controller_target_acceleration, state.command),
    )
    return (
        all((row == 10.0 * number + k).all() for k, row in enumerate(rows))
        and (state.host_sent, state.host_monotonic, state.timestamp)
        == (10.0 + number, 11.0 + number, 100.0 + number)
        and (state.speed_scaling, state.robot_mode, state.safety_mode, state.runtime_state)
        == (0.3, 7, 1, 4)
        and state.plan_time == 0.5 * number * PERIOD
    )


def test_a_state_arrives_as_it_was_written(pair):
    parent, process = pair()
    put(process, 3)
    (state,) = parent.new_states(PERIOD)
    assert is_whole(state)
    with pytest.raises(ValueError, match="read-only"):
        state.q[0] = 1.0


def test_each_state_is_returned_once_and_in_order(pair):
    parent, process = pair()
    assert read(parent) == []
    put(process, 0, 1, 2)
    assert parent.written == 3
    assert read(parent) == [0, 1, 2]
    assert read(parent) == []
    put(process, 3)
    assert read(parent) == [3]


def test_a_returned_state_does_not_change_when_its_row_is_overwritten(pair):
    parent, process = pair()
    put(process, 0)
    (state,) = parent.new_states(PERIOD)
    put(process, *range(1, 20))
    assert is_whole(state)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=20))
def test_a_slow_reader_gets_the_newest_states_in_order_and_never_a_row_that_may_be_being_overwritten(
    tmp_path_factory, turns
):
    path = tmp_path_factory.mktemp("ring") / "ring"
    parent = StateRing.create(path, N, 8)
    process = StateRing(path, N, 8)
    written, seen = 0, -1
    for count, looks in turns:
        put(process, *range(written, written + count))
        written += count
        if looks:
            # The row that would be written next is not given out: the writer may be at it.
            assert read(parent) == list(range(max(seen + 1, written - 7), written))
            seen = written - 1


def test_a_state_overwritten_while_it_is_read_is_skipped(pair):
    parent, process = pair()
    put(process, *range(7))
    states = parent.new_states(PERIOD)
    assert next(states).sequence == 0
    put(process, *range(7, 20))
    assert [state.sequence for state in states] == list(range(13, 20))


def test_a_ring_is_no_larger_than_two_minutes_need(pair, tmp_path):
    ring, _ = pair(10 * MAX_ROWS)
    assert ring.rows == MAX_ROWS >= 120 / PERIOD
    assert (tmp_path / "ring0").stat().st_size < 40e6


def test_the_file_is_written_in_full_before_it_is_used(tmp_path):
    StateRing.create(tmp_path / "ring", N, 1000)
    found = (tmp_path / "ring").stat()
    assert found.st_blocks * 512 >= found.st_size


def test_both_sides_continue_after_the_file_was_unlinked(tmp_path):
    parent = StateRing.create(tmp_path / "ring", N, 8)
    process = StateRing(tmp_path / "ring", N, 8)
    (tmp_path / "ring").unlink()
    put(process, 0)
    assert read(parent) == [0]
    assert list(tmp_path.iterdir()) == []


# ---- two processes


def write_states(path, rows, count):
    ring = StateRing(path, N, rows)
    put(ring, *range(count))


def take_all(ring, writer, deadline=30.0):
    states, end = [], time.monotonic() + deadline
    while (alive := writer.is_alive()) or ring.written:
        states += ring.new_states(PERIOD)
        if not alive or time.monotonic() > end:
            break
    return states


@pytest.mark.parametrize(("rows", "all_of_them"), [(20_000, True), (16, False)])
def test_states_from_another_process_come_whole_and_in_order_and_from_a_large_ring_all(
    tmp_path, rows, all_of_them
):
    path, count = tmp_path / "ring", 10_000
    ring = StateRing.create(path, N, rows)
    writer = SPAWN.Process(target=write_states, args=(path, rows, count))
    writer.start()
    states = take_all(ring, writer)
    writer.join()
    numbers = [state.sequence for state in states]
    assert all(is_whole(state) for state in states)
    assert numbers == sorted(set(numbers)) and numbers[-1] == count - 1
    assert not all_of_them or numbers == list(range(count))


def test_a_ring_that_is_let_go_releases_its_memory_and_returned_states_stay(tmp_path):
    path = tmp_path / "ring"
    ring = StateRing.create(path, N, 8)
    put(ring, 0, 1)
    state = next(ring.new_states(PERIOD))
    assert str(path) in Path("/proc/self/maps").read_text()
    del ring
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert is_whole(state)
