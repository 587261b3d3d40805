"""A plan: for which arm and period it is valid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simbridge.errors import InvalidParameter
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.planning.planner import make_plan
from simbridge.planning.scenario import load_scenario
from simbridge.robot import load_robot

ROBOT = load_robot("ur10")


@pytest.fixture(scope="module")
def plan(line):
    plan, _ = make_plan(ROBOT, load_scenario(line, ROBOT), ForwardDynamics(ROBOT))
    return plan


def test_a_plan_fits_its_own_arm(plan):
    plan.check_made_for(ROBOT.checksum, plan.period)


def test_a_plan_of_another_arm_is_refused(plan):
    with pytest.raises(InvalidParameter, match="robot and TCP"):
        plan.check_made_for(load_robot("ur10e").checksum, plan.period)


def test_a_plan_of_another_period_is_refused(plan):
    with pytest.raises(InvalidParameter, match="period"):
        plan.check_made_for(ROBOT.checksum, 0.004)


def test_a_plan_without_a_period_is_refused(plan):
    damaged = replace(plan, period=float("nan"))

    with pytest.raises(InvalidParameter, match="period"):
        damaged.check_made_for(ROBOT.checksum, 0.008)
