"""The generated code against pinocchio: as floats, and as source run by Python."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.ik.kernels import mathematics
from simbridge.ik.kernels.generation import generate_move, structure_of
from simbridge.robot import chain as kinematics
from simbridge.robot.load import load_robot
from tests.properties import few_examples

pytestmark = pytest.mark.slow

CLAMP = np.full(2, np.inf)


def chain(seed, n):
    """A chain whose transforms hold many of the zeros and ones of built arms, its twin, and its
    pinocchio model.
    """
    rng = np.random.default_rng(seed)
    slides = rng.random(n) < 0.3
    quarter = pin.exp3(np.array([np.pi / 2, 0.0, 0.0]))
    placements = []
    for _ in range(n + 1):
        rotation = [np.eye(3), quarter, quarter.T, pin.exp3(rng.uniform(-2, 2, 3))][rng.integers(4)]
        placements.append(pin.SE3(rotation, rng.uniform(-0.5, 0.5, 3) * (rng.random(3) < 0.5)))
    q = rng.uniform(-3.0, 3.0, n)
    twin = rng.uniform([0.5, 0.5, 1e-2, 1e-3], [2.0, 2.0, 0.2, 1e-2])
    model = pin.Model()
    parent = 0
    for i in range(n):
        joint = pin.JointModelPZ() if slides[i] else pin.JointModelRZ()
        parent = model.addJoint(parent, joint, placements[i], f"j{i}")
        # A link's mass stays where its joint begins, wherever a slide has gone: there it is q
        # behind the joint's frame.
        origin = np.array([0.0, 0.0, -q[i] if slides[i] else 0.0])
        model.inertias[parent] = pin.Inertia(twin[2], origin, twin[3] * np.eye(3))
    model.inertias[parent] += placements[-1].act(
        pin.Inertia(twin[0], np.zeros(3), twin[1] * np.eye(3))
    )
    model.addFrame(pin.Frame("tool", parent, 0, placements[-1], pin.FrameType.OP_FRAME))
    return np.array([p.homogeneous for p in placements]), slides, q, twin, model


def expected(model, q):
    """Tool frame, Jacobian (6, n) and mass matrix (n, n) by pinocchio."""
    data = model.createData()
    frame = model.getFrameId("tool")
    n = len(q)
    jacobian = (
        pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        .reshape(6, n)
        .copy()
    )
    tool = data.oMf[frame].copy()
    mass = np.triu(pin.crba(model, model.createData(), q).reshape(n, n))
    return tool, jacobian, mass + np.triu(mass, 1).T


def generated_move(placements, slides):
    """The generated function `move`, run by Python."""
    text, calls = generate_move(structure_of(placements, slides), "pose")
    namespace = {function.__name__: function for function in calls}
    exec(text, namespace)
    return namespace["move"]


def moved(move, placements, q, twin, target, kp):
    error = np.zeros(6)
    pull = np.zeros(6)
    motion = np.zeros(len(q) + 1)
    frame = np.concatenate([target.translation, target.rotation.ravel()])
    move(placements, q, frame, kp, np.zeros(6), twin, CLAMP, 0.0, pull, error, motion)
    return error, motion


@given(
    st.one_of(
        st.floats(-1e6, 1e6),
        st.integers(-60_000, 60_000).map(lambda quarters: quarters * np.pi / 2),
    )
)
def test_cosine_and_sine_are_the_c_librarys(angle):
    for ours, theirs in zip(
        mathematics.cosine_and_sine(angle), (np.cos(angle), np.sin(angle)), strict=True
    ):
        assert abs(ours - theirs) <= 2.0 * np.spacing(abs(theirs))


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_mathematics_over_floats_equals_pinocchio(seed, n):
    placements, slides, q, twin, model = chain(seed, n)
    tool, jacobian, mass = expected(model, q)
    at = kinematics.frames(
        placements[:, :3].tolist(), slides, q.tolist(), kinematics.cosine_and_sine
    )

    assert np.abs(np.array(at.rotation) - tool.rotation).max() < 1e-12
    assert np.abs(np.array(at.position) - tool.translation).max() < 1e-12
    twists = kinematics.jacobian(at, slides)
    assert np.abs(np.array(twists).T - jacobian).max() < 1e-12
    rows = mathematics.mass_matrix(at, twists, twin.tolist())
    ours = np.array([row + [0.0] * (n - len(row)) for row in rows])
    assert np.abs(ours - np.tril(mass)).max() < 1e-12


@few_examples(15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_generated_source_equals_pinocchio(seed, n):
    placements, slides, q, twin, model = chain(seed, n)
    tool, jacobian, mass = expected(model, q)
    rng = np.random.default_rng(seed)
    target = pin.SE3(pin.exp3(rng.uniform(-1.0, 1.0, 3)) @ tool.rotation, rng.uniform(-1.0, 1.0, 3))
    kp = rng.uniform(0.5, 2.0, 6)
    error, motion = moved(generated_move(placements, slides), placements, q, twin, target, kp)
    wanted = np.concatenate(
        [target.translation - tool.translation, pin.log3(target.rotation @ tool.rotation.T)]
    )

    assert np.abs(error - wanted).max() < 1e-12
    torque = jacobian.T @ (kp * wanted)
    # The residual, so that a badly conditioned mass matrix cannot blur the comparison.
    assert np.abs(mass @ motion[:n] - torque).max() < 1e-12 * max(1.0, np.abs(motion).max())
    assert motion[n] == pytest.approx(motion[:n] @ torque, rel=1e-12, abs=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_the_mobility_over_columns_equals_pinocchio(seed, n):
    placements, slides, q, twin, model = chain(seed, n)
    _, jacobian, mass = expected(model, q)
    # The second column, so that a mixture of samples would show.
    plain, one = mathematics.mobility(placements, slides, np.array([q + 1.0, q]), [twin.tolist()])
    weighted = jacobian @ np.linalg.solve(mass, jacobian.T)

    assert np.abs(plain[1] - jacobian @ jacobian.T).max() < 1e-12
    assert np.abs(one[1] - weighted).max() < 1e-11 * np.abs(weighted).max()


def test_arms_of_one_structure_share_a_module():
    texts = set()
    for name in ("ur10", "ur10e"):
        robot = load_robot(name)
        for arm in (robot, robot.with_tcp(pin.SE3(pin.exp3(np.ones(3)), np.ones(3)))):
            texts.add(generate_move(structure_of(arm.placements, arm.prismatic), "pose").text)

    assert len(texts) == 1
