"""Kinematics and mass matrix of the compiled chain against pinocchio, on random chains."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given
from hypothesis import strategies as st

from simbridge.ik import kernels
from simbridge.ik.chain import chain_frames


def random_chain(seed, n):
    rng = np.random.default_rng(seed)
    prismatic = rng.random(n) < 0.3
    placements = [pin.SE3(pin.exp3(rng.uniform(-2, 2, 3)), rng.uniform(-0.5, 0.5, 3)) for _ in range(n + 1)]
    q = rng.uniform(-3.0, 3.0, n)
    twin = rng.uniform([0.5, 0.5, 1e-4, 1e-7], [2.0, 2.0, 0.2, 1e-2])
    return placements, prismatic, q, twin


def as_pinocchio(placements, prismatic, twin):
    """The twin as a pinocchio model: masses at the origins of the joints' frames, the tool's at the end."""
    model, parent = pin.Model(), 0
    for placement, slides in zip(placements[:-1], prismatic, strict=True):
        joint = pin.JointModelPZ() if slides else pin.JointModelRZ()
        parent = model.addJoint(parent, joint, placement, f"j{parent}")
    model.addFrame(pin.Frame("tool", parent, 0, placements[-1], pin.FrameType.OP_FRAME))
    tool = placements[-1].act(pin.Inertia(twin[0], np.zeros(3), twin[1] * np.eye(3)))
    model.appendBodyToJoint(parent, tool, pin.SE3.Identity())
    return model


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_tool_and_jacobian_equal_pinocchio(seed, n):
    placements, prismatic, q, twin = random_chain(seed, n)
    model = as_pinocchio(placements, prismatic, twin)
    data, frame = model.createData(), model.getFrameId("tool")
    jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED).reshape(6, n)
    chain = np.array([p.homogeneous for p in placements])
    assert np.abs(kernels.tool_jacobian(chain, prismatic, q) - jacobian).max() < 1e-12 * n
    pose = kernels.tool_poses(chain, prismatic, q[None])[0]
    assert np.abs(pin.XYZQUATToSE3(pose).homogeneous - data.oMf[frame].homogeneous).max() < 1e-12 * n


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_twins_mass_matrix_equals_crba(seed, n):
    placements, prismatic, q, twin = random_chain(seed, n)
    # Slides carry their link's mass at the frame before they slide: crba puts it after, so keep to turns here.
    prismatic = np.zeros(n, dtype=bool)
    model = as_pinocchio(placements, prismatic, twin)
    for joint in range(1, n + 1):
        model.inertias[joint] += pin.Inertia(twin[2], np.zeros(3), twin[3] * np.eye(3))
    expected = pin.crba(model, model.createData(), q).reshape(n, n)
    chain = np.array([p.homogeneous for p in placements])
    origins, axes, tool = np.empty((n, 3)), np.empty((n, 3)), np.empty((3, 4))
    jacobian, mass = np.empty((n, 6)), np.empty((n, n))
    chain_frames(chain, prismatic, q, origins, axes, tool)
    kernels._mass_matrix(prismatic, origins, axes, tool, twin, jacobian, mass)
    assert np.abs(np.tril(mass) - np.triu(expected).T).max() < 1e-11


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_symmetric_solve_equals_numpy(seed, n):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    matrix = root @ root.T + n * np.eye(n)
    right = rng.normal(size=n)
    solution = right.copy()
    kernels._solve_symmetric(np.tril(matrix), solution)
    assert np.allclose(solution, np.linalg.solve(matrix, right), rtol=1e-10, atol=1e-12)


def test_quaternion_signs_are_continuous_along_a_path():
    placements, prismatic, q, _ = random_chain(3, 6)
    prismatic = np.zeros(6, dtype=bool)
    path = q + np.linspace(0.0, 30.0, 4000)[:, None] * np.ones(6)
    poses = kernels.tool_poses(np.array([p.homogeneous for p in placements]), prismatic, path)
    assert (np.sum(poses[1:, 3:] * poses[:-1, 3:], axis=1) > 0.9).all()
    assert np.allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0, atol=1e-14)
