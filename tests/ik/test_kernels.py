"""Kinematics of any chain, compiled once, against pinocchio on random chains."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik import kernels


def random_chain(seed, n):
    rng = np.random.default_rng(seed)
    prismatic = rng.random(n) < 0.3
    placements = [pin.SE3(pin.exp3(rng.uniform(-2, 2, 3)), rng.uniform(-0.5, 0.5, 3)) for _ in range(n + 1)]
    return placements, prismatic, rng.uniform(-3.0, 3.0, n)


def as_pinocchio(placements, prismatic):
    model, parent = pin.Model(), 0
    for placement, slides in zip(placements[:-1], prismatic, strict=True):
        joint = pin.JointModelPZ() if slides else pin.JointModelRZ()
        parent = model.addJoint(parent, joint, placement, f"j{parent}")
    model.addFrame(pin.Frame("tool", parent, 0, placements[-1], pin.FrameType.OP_FRAME))
    return model


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_tool_and_jacobian_equal_pinocchio(seed, n):
    placements, prismatic, q = random_chain(seed, n)
    model = as_pinocchio(placements, prismatic)
    data, frame = model.createData(), model.getFrameId("tool")
    jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED).reshape(6, n)
    chain = np.array([p.homogeneous for p in placements])
    assert np.abs(kernels.tool_jacobian(chain, prismatic, q) - jacobian).max() < 1e-12
    pose = kernels.tool_poses(chain, prismatic, q[None])[0]
    assert np.abs(pin.XYZQUATToSE3(pose).homogeneous - data.oMf[frame].homogeneous).max() < 1e-12


def test_quaternion_signs_are_continuous_along_a_path():
    placements, _, q = random_chain(3, 6)
    path = q + np.linspace(0.0, 30.0, 4000)[:, None] * np.ones(6)
    poses = kernels.tool_poses(np.array([p.homogeneous for p in placements]), np.zeros(6, dtype=bool), path)
    assert (np.sum(poses[1:, 3:] * poses[:-1, 3:], axis=1) > 0.9).all()
    assert np.allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0, atol=1e-14)
