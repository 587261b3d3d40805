"""Pick and place moves straight down and up, turns only while it travels, and stops where it grips."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InvalidParameter
from simbridge.robot import pose
from simbridge.trajectory import TOOL_DOWN, MinimumJerk, pick_and_place

PICK = np.concatenate([[0.6, -0.2, 0.2], TOOL_DOWN])
PLACE = np.concatenate(
    [[0.6, 0.2, 0.25], pose.multiply(pose.quaternions([0.0, 0.0, 1.0]), TOOL_DOWN)]
)
LIFT, LAW = 0.1, MinimumJerk(0.3)


def cycle():
    return pick_and_place(PICK, PLACE, LIFT, LAW, dwell=0.4)


def test_a_cycle_begins_and_ends_above_the_pick_pose():
    made = cycle()
    above = PICK[:3] + np.array([0.0, 0.0, LIFT])
    np.testing.assert_allclose(made.poses[[0, -1], :3], [above, above], atol=1e-12)
    assert made.poses[:, 2].min() == pytest.approx(0.2) and made.poses[:, 2].max() == pytest.approx(
        0.35
    )


def test_it_stops_once_at_each_of_the_two_for_the_dwell():
    made = cycle()
    stops = np.flatnonzero(np.diff(made.times) > 0.3)
    np.testing.assert_allclose(np.diff(made.times)[stops], 0.4, atol=1e-12)
    np.testing.assert_allclose(made.poses[stops, :3], [PICK[:3], PLACE[:3]], atol=1e-12)


def test_below_the_height_of_travel_it_moves_straight_up_and_down_without_turning():
    made = cycle()
    for end in (PICK, PLACE):
        near = np.linalg.norm(made.poses[:, :2] - end[:2], axis=1) < 1e-9
        low = near & (made.poses[:, 2] < end[2] + LIFT - 1e-9)
        assert low.sum() > 20
        assert (
            np.linalg.norm(
                pose.error(made.poses[low], np.tile(end, (low.sum(), 1)))[1], axis=1
            ).max()
            < 1e-9
        )
    below = made.poses[:, 2] < 0.3 - 1e-9
    distance = np.minimum(
        *(np.linalg.norm(made.poses[:, :2] - end[:2], axis=1) for end in (PICK, PLACE))
    )
    assert distance[below].max() < 1e-9


@pytest.mark.parametrize(
    ("given", "name"),
    [({"lift": 0.0}, "lift"), ({"dwell": -1.0}, "dwell"), ({"pick": PICK[:6]}, "pick")],
)
def test_a_parameter_out_of_range_is_refused_by_name(given, name):
    with pytest.raises(InvalidParameter, match=name):
        pick_and_place(**{"pick": PICK, "place": PLACE, "lift": LIFT, "law": LAW, **given})
