"""The closed form against ur-analytic-ik, which has no wheel for Python 3.12."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

from simbridge.ik.closed_form import ClosedForm
from simbridge.robot import load_robot
from tests.ik.test_closed_form import SOLVER, UR10, farthest_apart, misses, shoulder_singular, tool

ur_analytic_ik = pytest.importorskip(
    "ur_analytic_ik", reason="ur-analytic-ik has no wheel for this Python"
)

# Their base frame is the pendant's.
BASE = np.diag([-1.0, -1.0, 1.0, 1.0])


@pytest.mark.parametrize("name", ["ur10", "ur5e"])
def test_branches_are_those_of_ur_analytic_ik(name):
    solver = ClosedForm(load_robot(name))
    theirs = getattr(ur_analytic_ik, name)
    joints = np.random.default_rng(7).uniform(-math.pi, math.pi, (10_000, 6))

    for target in map(pin.XYZQUATToSE3, tool(solver.robot, joints)):
        ours = solver.branches(target)
        expected = np.array(theirs.inverse_kinematics(BASE @ target.homogeneous))
        assert len(ours) == len(expected)
        assert farthest_apart(ours, expected) < 1e-9


def test_ur_analytic_ik_misses_singular_postures():
    rng = np.random.default_rng(1)
    missed = 0

    for q in rng.uniform(-3.0, 3.0, (100, 6)):
        over = shoulder_singular(q, 0.0)
        if over is None:
            continue
        target = tool(UR10, over)[0]
        theirs = ur_analytic_ik.ur10.inverse_kinematics(BASE @ pin.XYZQUATToSE3(target).homogeneous)
        ours = SOLVER.branches(target, over)
        assert len(ours) > 0
        assert misses(UR10, target, ours) < 1e-10
        missed += len(theirs) == 0

    assert missed > 0
