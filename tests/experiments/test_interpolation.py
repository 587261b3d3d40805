"""Experiment C gives the known figures on a UR10, and straight edges on other arms."""

from __future__ import annotations

import pytest

from simbridge.experiments import (
    PAPER_SOLVERS,
    interpolation,
)
from simbridge.experiments.layout import choose_layout
from simbridge.robot import load_robot
from tests.experiments.paper import OTHERS, UR10, assert_expected, papers_solvers

pytestmark = pytest.mark.slow


def test_c_is_as_straight_as_known():
    edges = interpolation.measure(
        UR10, papers_solvers(UR10, dt=0.1, iterations=50, kp=(1.0,)), choose_layout(UR10)
    )

    assert_expected(interpolation.figures(edges), interpolation.EXPECTED)


@pytest.mark.parametrize("name", OTHERS)
def test_forward_dynamics_is_straighter_than_the_transpose(name):
    robot = load_robot(name)
    solvers = papers_solvers(robot, dt=0.1, iterations=50, kp=(1.0,))
    edges = interpolation.measure(robot, solvers, choose_layout(robot), steps=200)
    straight, bent = (max(edge.deviation for edge in edges[solver]) for solver in PAPER_SOLVERS)

    assert straight < 0.1 * bent
