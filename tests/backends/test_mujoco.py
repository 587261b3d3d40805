"""MuJoCo simulates the same plant as PyBullet, to rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simbridge.backends import ENGINES, backend_class
from simbridge.backends.mujoco import make_model
from simbridge.errors import InvalidParameter
from simbridge.planning.options import Options
from simbridge.resources import scenario_files
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare
from tests.optional_packages import needs_pybullet

pytestmark = pytest.mark.slow

UR10 = load_robot("ur10")
UR10E = load_robot("ur10e")
# All built-in ones, except that whose plan is refused.
SCENARIOS = sorted(set(scenario_files()) - {"past_the_edge"})


def tracked(engine, prepared, **options):
    """Return where an engine's arm was through a plan (T, n), rad, and its torques, N m."""
    with backend_class(engine)(prepared.robot, Options(**options)) as arm:
        arm.move_to(prepared.plan.sent[0])
        states = list(arm.stream(prepared.plan.sent))
    joints = np.array([state.q for state in states])
    effort = np.array([state.effort for state in states])
    return joints, effort


@needs_pybullet
def test_both_engines_agree_on_a_line(line):
    assert_engines_agree(line)


@needs_pybullet
@pytest.mark.soak
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_engines_agree_on_a_scenario(scenario):
    assert_engines_agree(scenario)


def assert_engines_agree(scenario):
    """Assert that both engines move a loaded arm in the same way, with the same torques."""
    prepared = prepare(scenario, robot=UR10E)

    bullet, bullet_effort = tracked("pybullet", prepared, unmodelled_payload=2.0)
    mujoco, mujoco_effort = tracked("mujoco", prepared, unmodelled_payload=2.0)

    bullet_tool = tool_path(UR10E, bullet)[:, :3]
    mujoco_tool = tool_path(UR10E, mujoco)[:, :3]
    assert np.linalg.norm(bullet_tool - mujoco_tool, axis=1).max() <= 1e-9
    np.testing.assert_allclose(bullet_effort, mujoco_effort, rtol=0.0, atol=1e-6)


@needs_pybullet
def test_engines_agree_on_an_arm_that_sags():
    # 30 kg are more than the halved torque limits of a stretched arm can hold.
    joints = tuple(replace(joint, max_effort=0.5 * joint.max_effort) for joint in UR10.joints)
    stretched = np.array([0.0, -0.3, 0.3, -1.5, -1.57, 0.0])
    weak = replace(UR10, joints=joints, home=stretched)

    positions = []
    for engine in ENGINES:
        with backend_class(engine)(weak, Options(unmodelled_payload=30.0, servo="ideal")) as arm:
            states = list(arm.stream(np.tile(stretched, (10, 1))))
            positions.append(arm.read().q)

    assert np.abs(positions[0] - stretched).max() > 0.005
    assert np.abs(states[-1].effort)[1] == weak.max_effort[1]
    np.testing.assert_allclose(positions[0], positions[1], rtol=0.0, atol=1e-9)


def test_the_model_has_no_damping_friction_or_stops():
    model = make_model(UR10E)

    for quantity in ("dof_damping", "dof_frictionloss", "dof_armature", "jnt_stiffness"):
        assert not np.any(getattr(model, quantity)), quantity
    assert not np.any(model.jnt_limited)
    assert model.ngeom == 0


def test_a_diverging_arm_writes_no_log(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    with backend_class("mujoco")(UR10E, Options()) as backend:
        for _ in range(500):
            backend._step_engine(1e9 * UR10E.max_effort)
        position, _ = backend._measure()

    assert np.isfinite(position).all()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_window_is_refused():
    with pytest.raises(InvalidParameter, match="PyBullet"):
        backend_class("mujoco")(UR10E, Options(gui=True))
