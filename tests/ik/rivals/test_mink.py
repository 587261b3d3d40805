"""mink as a solver equals a loop around mink."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.ik.rivals.mink import MinkParameters
from simbridge.robot import load_robot
from simbridge.robot.kinematic_urdf import kinematic_urdf
from simbridge.robot.kinematics import tool_path
from tests.ik.rivals.panda import load_panda

pytestmark = pytest.mark.slow

DT = 0.002


def model_with_site(mujoco, robot):
    """The arm as MuJoCo reads it from a URDF, with a site at the TCP."""
    specification = mujoco.MjSpec.from_string(kinematic_urdf(robot))
    tool = (robot.tool0 * robot.tcp).homogeneous
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, tool[:3, :3].ravel())
    last_link = specification.body(robot.links[-1].name)
    last_link.add_site(name="tool", pos=tool[:3, 3], quat=quaternion)
    return specification.compile()


@pytest.mark.parametrize("arm", ["ur5e", "panda"])
def test_it_equals_a_loop_around_mink(arm):
    mink = pytest.importorskip("mink")
    mujoco = pytest.importorskip("mujoco")
    pytest.importorskip("daqp")
    robot = load_panda() if arm == "panda" else load_robot(arm)
    targets = np.tile(tool_path(robot, robot.home[None])[0], (100, 1))
    # Faster than the limits of velocity allow at the end.
    targets[:, 1] += 0.1 * np.linspace(0.0, 1.0, 100) ** 2
    targets[50:, 2] += 0.2
    model = model_with_site(mujoco, robot)
    configuration = mink.Configuration(model)
    configuration.update(robot.home)
    pose = mink.FrameTask("tool", "site", position_cost=1.0, orientation_cost=1.0, lm_damping=1.0)
    tasks = [pose]
    if robot.n == 7:
        # The posture task of examples/arm_iiwa.py.
        posture = mink.PostureTask(model, cost=1e-2)
        posture.set_target(robot.home)
        tasks.append(posture)
    speeds = {joint.name: joint.max_velocity for joint in robot.joints}
    limits = [mink.ConfigurationLimit(model), mink.VelocityLimit(model, speeds)]
    expected = []
    for x, y, z, qx, qy, qz, qw in targets:
        pose.set_target(mink.SE3(np.array([qw, qx, qy, qz, x, y, z])))
        velocity = mink.solve_ik(configuration, tasks, DT, "daqp", 1e-3, limits=limits)
        configuration.integrate_inplace(velocity, DT)
        expected.append(configuration.q.copy())

    solver = MinkParameters().build(robot)
    solver.period = DT
    joints = solver.track(targets, robot.home)

    np.testing.assert_allclose(joints, expected, rtol=0.0, atol=1e-9)
