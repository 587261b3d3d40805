"""Two TCPs are compared within the pendant's rounding."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.backends.tool_comparison import same_tcp


def test_equal_rotations_are_equal_in_any_vector():
    turn = np.array([0.3, -1.0, 0.5])
    same_turn = turn * (1.0 - 2.0 * np.pi / np.linalg.norm(turn))

    assert np.allclose(pin.exp3(turn), pin.exp3(same_turn))
    assert same_tcp([0.0, 0.0, 0.1, *turn], [0.0, 0.0, 0.1, *same_turn])


def test_a_turn_may_go_round_the_other_way():
    axis = np.array([0.6, 0.0, 0.8])
    turn = 3.0 * axis
    opposite = (3.0 - 2.0 * np.pi) * axis

    assert same_tcp([0.0, 0.0, 0.1, *turn], [0.0, 0.0, 0.1, *opposite])


@pytest.mark.parametrize("turn", [0.0, 1.0, np.pi])
def test_a_turn_of_two_milliradians_is_another_tcp(turn):
    tcp = [0.0, 0.0, 0.1, turn, 0.0, 0.0]
    turned = [0.0, 0.0, 0.1, turn + 0.002, 0.0, 0.0]

    assert not same_tcp(tcp, turned)
