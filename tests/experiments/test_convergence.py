"""Experiment B gives the known figures on a UR10, and a clean step on other arms."""

from __future__ import annotations

import math

import pytest

from simbridge.experiments import (
    convergence,
)
from simbridge.experiments.layout import step_target
from simbridge.robot import load_robot
from tests.experiments.paper import OTHERS, UR10, assert_expected, papers_solvers

pytestmark = pytest.mark.slow


def steps_of(robot, **more):
    solvers = papers_solvers(robot, dt=1.0, iterations=1, kp=(1.0,))
    return convergence.measure(robot, solvers, step_target(robot)[0], **more)


def test_b_converges_as_known():
    steps = steps_of(UR10)

    assert_expected(convergence.figures(steps), convergence.EXPECTED)


@pytest.mark.parametrize("name", OTHERS)
def test_on_other_arms_the_step_arrives_without_overshoot(name):
    robot = load_robot(name)
    step = steps_of(robot)["forward-dynamics"]

    assert step.arrival < 25
    assert step.overshoot < 1e-4


def test_what_never_arrives_has_no_arrival():
    steps = steps_of(UR10, iterations=3)

    assert all(math.isnan(step.arrival) for step in steps.values())
