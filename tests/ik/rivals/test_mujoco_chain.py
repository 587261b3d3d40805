"""The model of MuJoCo that mink solves has the kinematics of the arm."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.ik.rivals.mujoco_chain import TCP, make_chain
from simbridge.robot import load_robot, pose
from simbridge.robot.kinematics import tool_path


@pytest.mark.parametrize("arm", ["ur10", "ur5e", "planar3r"])
def test_the_tool_is_where_the_arms_is(arm):
    mujoco = pytest.importorskip("mujoco")
    robot = load_robot(arm)
    model = make_chain(mujoco, robot)
    data = mujoco.MjData(model)
    data.qpos[:] = robot.home + 0.3

    mujoco.mj_kinematics(model, data)

    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, data.site(TCP).xmat)
    attained = np.concatenate([data.site(TCP).xpos, np.roll(quaternion, -1)])
    errors = pose.error(tool_path(robot, robot.home[None] + 0.3), attained[None])
    assert np.abs(errors).max() < 1e-12
    is_limited = np.isfinite(robot.position_max)
    assert np.array_equal(model.jnt_limited.astype(bool), is_limited)
    assert np.array_equal(model.jnt_range[is_limited, 1], robot.position_max[is_limited])
