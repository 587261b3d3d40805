"""Experiment A gives the known figures on a UR10, and pinocchio's on any arm."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.experiments import (
    homogenization,
)
from simbridge.experiments.arm import make_solver
from simbridge.experiments.homogenization import CONDITIONED, NAIVE, TRANSPOSE
from simbridge.robot import load_robot
from tests.experiments.paper import OTHERS, UR10, assert_expected

pytestmark = pytest.mark.slow


def spread_by_pinocchio(robot, q, link_mass, link_inertia, tool_mass, tool_inertia):
    """J H^-1 J^T with Jacobian and mass matrix from pinocchio; and J J^T."""
    model = robot.model.copy()
    for joint in range(1, model.njoints):
        model.inertias[joint] = pin.Inertia(link_mass, np.zeros(3), link_inertia * np.eye(3))
    tcp = robot.tool0 * robot.tcp
    model.inertias[model.njoints - 1] += tcp.act(
        pin.Inertia(tool_mass, np.zeros(3), tool_inertia * np.eye(3))
    )
    data = model.createData()
    frame = model.getFrameId("tcp")
    jacobian = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
    mass = np.triu(pin.crba(model, data, q))
    mass = mass + np.triu(mass, 1).T
    return jacobian @ np.linalg.solve(mass, jacobian.T), jacobian @ jacobian.T


def test_a_gives_the_known_means_variances_and_alpha():
    assert_expected(
        homogenization.figures(homogenization.measure(UR10, 100_000)), homogenization.EXPECTED
    )


@pytest.mark.parametrize("name", ["ur10", *OTHERS])
def test_a_agrees_with_pinocchio(name):
    robot = load_robot(name)
    responses = homogenization.measure(robot, 40, seed=3)
    joints = homogenization.configurations(robot, 40, seed=3)
    weight = 1.0 / robot.n
    naive = [spread_by_pinocchio(robot, q, weight, weight, 1e-12, 1e-12) for q in joints]
    conditioned = [spread_by_pinocchio(robot, q, 1e-3, 1e-6, 1.0, 1.0) for q in joints]
    known = {
        TRANSPOSE: np.array([jjt for _, jjt in naive]),
        NAIVE: np.array([mapped for mapped, _ in naive]),
        CONDITIONED: np.array([mapped for mapped, _ in conditioned]),
    }

    for matrix, samples in known.items():
        np.testing.assert_allclose(responses[matrix].mean, samples.mean(axis=0), atol=1e-7)
        np.testing.assert_allclose(responses[matrix].variance, samples.var(axis=0), atol=1e-7)


def test_the_seed_determines_the_numbers():
    first, again, reseeded = (
        homogenization.measure(UR10, 50, seed)[TRANSPOSE].mean for seed in (1, 1, 2)
    )

    assert first.tobytes() == again.tobytes() != reseeded.tobytes()


def test_an_exact_solvers_response_is_the_identity():
    # None of these postures is so stretched that the error would be out of reach.
    spread = homogenization.response(UR10, make_solver(UR10, "closed-form"), 30, seed=1)

    np.testing.assert_allclose(spread.mean, np.eye(6), atol=1e-4)
    assert spread.variance.max() < 1e-6


def test_forward_dynamics_responds_by_the_conditioned_matrix():
    solver = make_solver(UR10, "forward-dynamics", iterations=1, dt=0.1, kp=(1.0,) * 6)
    response = homogenization.response(UR10, solver, 50, seed=1).mean
    matrix = homogenization.measure(UR10, 50, seed=1)[CONDITIONED].mean

    np.testing.assert_allclose(response, matrix / (np.trace(matrix) / 6.0), atol=1e-3)


def test_a_planar_response_stays_in_its_plane():
    robot = load_robot("planar2r")
    spread = homogenization.response(robot, make_solver(robot, "closed-form"), 30, seed=1)

    # An exact planar arm responds in two of six directions, so dividing by the mean of six gives
    # three.
    np.testing.assert_allclose(spread.mean[:2, :2], 3.0 * np.eye(2), atol=0.05)
    assert np.abs(spread.mean[2]).max() < 1e-9
