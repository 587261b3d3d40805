"""A log is cut into motions between rests."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.judging.logged_motions import find_motions
from tests.judging.logs import CYCLE, START, make_log, movej_and_back, rest


def test_a_rest_separates_motions():
    motions = find_motions(movej_and_back())

    assert [motion.number for motion in motions] == [1, 2]
    assert motions[0].begin_s == pytest.approx(0.392)
    assert motions[1].begin_s - motions[0].end_s == pytest.approx(0.4)
    assert all(motion.starts_at_rest and motion.ends_at_rest for motion in motions)


@pytest.mark.parametrize(("rest_rows", "count"), [(1, 1), (2, 2)])
def test_moves_of_a_program_are_apart(rest_rows, count):
    """The arm stands still for some rows, and the last row of a move is still, too."""
    log = movej_and_back()
    is_moving = np.abs(log.target_qd).max(axis=1) > 0.0
    still = np.flatnonzero(~is_moving)
    between = still[(still > np.argmax(is_moving)) & (still < len(log.times) - 50)]
    kept = np.delete(np.arange(len(log.times)), between[rest_rows:])

    program = make_log(log.target_q[kept], columns={"target_qd": log.target_qd[kept]})

    assert len(find_motions(program)) == count


def test_velocities_of_zero_are_no_rest():
    log = movej_and_back()

    log = make_log(log.target_q, columns={"target_qd": np.zeros_like(log.target_q)})

    assert len(find_motions(log)) == 2


def test_an_arm_at_rest_makes_no_motion():
    assert find_motions(make_log(rest(START, 1.0))) == ()


def test_noise_is_no_motion():
    noise = 2e-5 * np.random.default_rng(0).standard_normal((200, 6))
    log = make_log(rest(START, 1.6))

    log = make_log(log.target_q, columns={"target_q": log.target_q + noise})

    assert find_motions(log) == ()


def test_a_reversal_is_no_rest():
    times = CYCLE * np.arange(500)
    target = START + 0.3 * np.sin(np.pi * times)[:, None]

    assert len(find_motions(make_log(target))) == 1


def test_lost_rows_are_no_rest():
    log = movej_and_back()
    kept = np.ones(len(log.times), dtype=bool)
    kept[90:110] = False

    gappy = make_log(
        log.target_q[kept],
        times=log.times[kept],
        columns={"target_qd": log.target_qd[kept]},
    )

    assert len(find_motions(gappy)) == 2


def test_a_log_may_begin_and_end_in_a_motion():
    log = movej_and_back()
    rows = slice(80, 130)

    (motion,) = find_motions(
        make_log(log.target_q[rows], columns={"target_qd": log.target_qd[rows]})
    )

    assert not motion.starts_at_rest
    assert not motion.ends_at_rest
