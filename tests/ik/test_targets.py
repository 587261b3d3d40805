"""A target of which a task leaves a part free adopts that part from another pose."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.ik.targets import adopt_free_components, adopt_free_rotation
from simbridge.robot import pose
from simbridge.robot.chain import TASK_ROWS


@pytest.mark.parametrize("task", TASK_ROWS)
def test_one_pose_adopts_what_arrays_do(task):
    rng = np.random.default_rng(5)
    positions = rng.normal(size=(2, 50, 3))
    rotations = pose.normalize(rng.normal(size=(2, 50, 4)))
    targets, others = np.concatenate([positions, rotations], axis=2)

    adopted = []
    for target, other in zip(targets, others, strict=True):
        result = adopt_free_rotation(task, pin.XYZQUATToSE3(target), pin.XYZQUATToSE3(other))
        adopted.append(pin.SE3ToXYZQUAT(result))

    errors = pose.error(adopt_free_components(task, targets, others), np.array(adopted))
    assert np.abs(errors).max() < 1e-12


def test_the_axis_task_turns_over_an_opposite_axis():
    upside_down = pin.SE3(np.diag([1.0, -1.0, -1.0]), np.zeros(3))

    result = adopt_free_rotation("axis", upside_down, pin.SE3.Identity())

    assert result.rotation[:, 2] == pytest.approx([0.0, 0.0, -1.0])
