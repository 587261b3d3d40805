"""Forward dynamics with tasks of less than a pose, against the same algorithm on pinocchio and
closed forms.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.twin import Twin
from simbridge.robot import load_robot, pose
from simbridge.robot.kinematics import tool_path

UR10 = load_robot("ur10")
PLANAR3R = load_robot("planar3r")


def plain(robot, task, **changes):
    """The paper's algorithm without clamps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ForwardDynamics(robot, task=task, error_clamp=None, step_clamp=None, **changes)


def turn_between(a, b):
    """The smallest Rodrigues vector that turns the unit vector a into b."""
    across = np.cross(a, b)
    sine = np.linalg.norm(across)
    return across * (math.atan2(sine, a @ b) / sine if sine > 0.0 else 1.0)


def on_pinocchio(robot, solver, target, q, count):
    """As many iterations towards one target (7,): joint positions (n,)."""
    twin = solver.twin
    model = robot.model.copy()
    for joint in range(1, robot.n + 1):
        model.inertias[joint] = pin.Inertia(
            twin.link_mass, np.zeros(3), twin.link_inertia * np.eye(3)
        )
    # A tool whose rotation is free is a point.
    inertia = 0.0 if solver.task == "position" else twin.tool_inertia
    model.inertias[robot.n] += robot.tool0.act(
        pin.Inertia(twin.tool_mass, np.zeros(3), inertia * np.eye(3))
    )
    data = model.createData()
    frame = model.getFrameId("tcp")
    wanted = pin.XYZQUATToSE3(target)
    last = None
    for _ in range(count):
        jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
        tool = data.oMf[frame]
        rotation = (
            np.zeros(3)
            if solver.task == "position"
            else turn_between(tool.rotation[:, 2], wanted.rotation[:, 2])
        )
        error = np.concatenate([wanted.translation - tool.translation, rotation])
        slope = (error - (error if last is None else last)) / solver.dt
        force = np.array(solver.kp) * error + np.array(solver.kd) * slope
        upper = np.triu(pin.crba(model, data, q))
        mass = upper + np.triu(upper, 1).T
        q = q + 0.25 * solver.dt**2 * np.linalg.solve(mass, jacobian.T @ force)
        last = error
    return q


@pytest.mark.parametrize(
    ("robot", "task"), [(UR10, "axis"), (UR10, "position"), (PLANAR3R, "position")]
)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_it_equals_the_same_algorithm_on_pinocchio(robot, task, seed):
    rng = np.random.default_rng(seed)
    solver = plain(
        robot, task, iterations=10, kp=20.0, kd=0.2, twin=Twin(link_mass=1e-2, link_inertia=1e-4)
    )
    q = robot.home + rng.uniform(-0.3, 0.3, robot.n)
    target = tool_path(robot, (q + rng.uniform(-0.3, 0.3, robot.n))[None])[0]
    expected = on_pinocchio(robot, solver, target, q, 10)

    assert np.abs(solver.track(target[None], q)[0] - expected).max() < 1e-10


def axis_angle(target, at):
    """Between the z axes of two poses, rad."""
    a, b = (pose.rotate(p[3:], np.array([0.0, 0.0, 1.0])) for p in (target, at))
    return math.atan2(np.linalg.norm(np.cross(a, b)), a @ b)


@pytest.mark.parametrize("task", ["axis", "position"])
@settings(max_examples=30)
@given(kappa=st.floats(0.05, 3.9), seed=st.integers(0, 2**32 - 1))
def test_constrained_components_shrink_by_kappa(task, kappa, seed):
    """Near the target, with all mass at the tool; free components neither pull nor hold back."""
    rng = np.random.default_rng(seed)
    q = UR10.home + rng.uniform(-0.3, 0.3, 6)
    twin = Twin(link_mass=1e-8, link_inertia=1e-10)
    solver = plain(UR10, task, dt=1.0, iterations=1, kp=(kappa,) * 6, twin=twin)
    start = tool_path(UR10, q[None])[0]
    target = start.copy()
    target[:3] += 1e-5 * rng.uniform(-1.0, 1.0, 3)
    target[3:] = pose.multiply(pose.quaternions(1e-5 * rng.uniform(-1.0, 1.0, 3)), start[3:])
    after = tool_path(UR10, solver.track(target[None], q))[0]
    left = 1.0 - kappa / 4.0

    assert np.abs(target[:3] - after[:3] - left * (target[:3] - start[:3])).max() < 2e-8

    if task == "axis":
        assert axis_angle(target, after) == pytest.approx(
            left * axis_angle(target, start), abs=2e-8
        )


def test_components_that_the_task_leaves_free_are_ignored():
    start = UR10.home
    target = tool_path(UR10, (start + 0.3)[None])[0]
    rng = np.random.default_rng(0)

    for task, turns in (
        ("axis", [[0.0, 0.0, angle] for angle in (0.5, -3.0, math.pi)]),
        ("position", rng.normal(size=(3, 3))),
    ):
        joints = ForwardDynamics(UR10, task=task).track(target[None], start)
        for turn in turns:
            other = target.copy()
            other[3:] = pose.multiply(target[3:], pose.quaternions(turn))
            assert (
                np.abs(ForwardDynamics(UR10, task=task).track(other[None], start) - joints).max()
                < 1e-12
            )


def test_an_opposite_tool_is_turned():
    """Half a turn about any perpendicular axis would do; it is the same one each time."""
    target = tool_path(UR10, UR10.home[None])[0]

    for half in (
        pose.quaternions([math.pi, 0.0, 0.0]),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.array([0.0, 1.0, 0.0, 0.0]),
    ):
        opposite = target.copy()
        opposite[3:] = pose.multiply(target[3:], half)
        solution = ForwardDynamics(UR10, task="axis").solve(opposite)
        assert solution.converged
        assert axis_angle(opposite, tool_path(UR10, solution.q[None])[0]) < 1e-9
        assert np.array_equal(solution.q, ForwardDynamics(UR10, task="axis").solve(opposite).q)
