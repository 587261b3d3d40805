"""The suite's figures of Pink and mink equal those of a loop around each library."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.experiments.suite.entrants import Entrant
from simbridge.experiments.suite.following import follow_in_turn
from simbridge.experiments.suite.motion_results import evaluate_motion
from simbridge.ik.settings import RIVALS
from simbridge.robot import load_robot
from tests.experiments.suite.conftest import make_short_motions
from tests.ik.rivals.test_mink import model_with_site

ROBOT = load_robot("ur5e")


def loop_around_pink(motion):
    """Joint positions (T, n) of Pink, called as in its example."""
    pink = pytest.importorskip("pink")
    pytest.importorskip("daqp")
    model = pin.buildModelFromXML(ROBOT.urdf)
    configuration = pink.Configuration(model, model.createData(), motion.start)
    pose = pink.FrameTask("tcp", position_cost=1.0, orientation_cost=1.0, lm_damping=1.0)
    posture = pink.PostureTask(cost=1e-3)
    posture.set_target(motion.start)
    joints = []
    for target in motion.targets:
        pose.set_target(pin.XYZQUATToSE3(target))
        velocity = pink.solve_ik(configuration, [pose, posture], ROBOT.period, solver="daqp")
        configuration.integrate_inplace(velocity, ROBOT.period)
        joints.append(configuration.q)
    return np.array(joints)


def loop_around_mink(motion):
    """Joint positions (T, n) of mink, called as in its example."""
    mink = pytest.importorskip("mink")
    pytest.importorskip("daqp")
    model = model_with_site(pytest.importorskip("mujoco"), ROBOT)
    configuration = mink.Configuration(model)
    configuration.update(motion.start)
    pose = mink.FrameTask("tool", "site", position_cost=1.0, orientation_cost=1.0, lm_damping=1.0)
    speeds = {joint.name: joint.max_velocity for joint in ROBOT.joints}
    limits = [mink.ConfigurationLimit(model), mink.VelocityLimit(model, speeds)]
    joints = []
    for x, y, z, qx, qy, qz, qw in motion.targets:
        pose.set_target(mink.SE3(np.array([qw, qx, qy, qz, x, y, z])))
        velocity = mink.solve_ik(configuration, [pose], ROBOT.period, "daqp", 1e-3, limits=limits)
        configuration.integrate_inplace(velocity, ROBOT.period)
        joints.append(configuration.q.copy())
    return np.array(joints)


def errors_of(motion, joints):
    """Distances and angles (T,) from the targets, by pinocchio alone."""
    model = ROBOT.model
    data = model.createData()
    tcp = model.getFrameId("tcp")
    distances = []
    angles = []
    for target, q in zip(motion.targets, joints, strict=True):
        pin.framesForwardKinematics(model, data, q)
        wanted = pin.XYZQUATToSE3(target)
        distances.append(np.linalg.norm(wanted.translation - data.oMf[tcp].translation))
        angles.append(np.linalg.norm(pin.log3(wanted.rotation @ data.oMf[tcp].rotation.T)))
    return np.array(distances), np.array(angles)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "loop"), [("pink", loop_around_pink), ("mink", loop_around_mink)])
def test_figures_equal_a_loop_around_the_library(name, loop):
    motions, _, _ = make_short_motions(ROBOT, seed=0)
    stream = motions[1]
    joints = loop(stream)
    solver = RIVALS[name]().build(ROBOT)
    entrant = Entrant(name, "rival", solver, solver.velocity_limits, {})

    followings = follow_in_turn(
        stream, [entrant], passes=1, time_limit=60.0, heartbeat=lambda: None
    )
    [result] = evaluate_motion(ROBOT, stream, followings, name)

    distances, angles = errors_of(stream, joints)
    assert result.error.rms_m == pytest.approx(np.sqrt(np.mean(distances**2)), abs=1e-9)
    assert result.error.max_m == pytest.approx(distances.max(), abs=1e-9)
    assert result.error.rms_rad == pytest.approx(np.sqrt(np.mean(angles**2)), abs=1e-9)
    assert result.error.max_rad == pytest.approx(angles.max(), abs=1e-9)
    steps = np.diff(joints, axis=0, prepend=stream.start[None])
    largest_speed = np.max(np.abs(steps) / (ROBOT.period * ROBOT.max_velocity))
    assert result.shares.speed == pytest.approx(largest_speed, abs=1e-9)
