"""The way to a plan's start: within its speeds however short it is, and checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import PlanRefused
from simbridge.planning.approach import plan_approach
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_speeds
from tests.properties import few_examples

UR10 = load_robot("ur10")


@pytest.mark.slow
@few_examples(20)
@given(
    st.integers(0, 2**32 - 1),
    st.floats(1e-6, 0.1),
    st.sampled_from([0.25, 1.0]),
    st.sampled_from([0.002, 0.008]),
)
def test_an_approach_keeps_both_speeds(seed, size, tool_speed, period):
    goal = UR10.home + size * np.random.default_rng(seed).uniform(-1.0, 1.0, 6)
    way = plan_approach(
        UR10, UR10.home, goal, period, max_joint_speed=1.0, max_tool_speed=tool_speed
    )

    assert np.array_equal(way[0], UR10.home)
    assert np.array_equal(way[-1], goal)
    assert tool_speeds(UR10, way, period).max() <= tool_speed
    assert np.abs(np.diff(way, axis=0)).max() / period <= 1.0 + 1e-9


def test_a_way_through_the_floor_is_refused():
    below = np.array([0.0, 0.6, 0.0, 0.0, 0.0, 0.0])

    with pytest.raises(PlanRefused):
        plan_approach(UR10, UR10.home, below, 0.008, max_joint_speed=1.0, max_tool_speed=1.0)
