"""Experiments A to D on a UR10 give the known figures, and on other arms what theory predicts."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from simbridge.experiments import (
    PAPER_SOLVERS,
    convergence,
    homogenization,
    interpolation,
    tracking,
)
from simbridge.experiments.arm import make_solver
from simbridge.experiments.homogenization import CONDITIONED, NAIVE, TRANSPOSE
from simbridge.experiments.layout import MovingSquare, choose_layout, step_target
from simbridge.experiments.tracking_plots import plot_laps
from simbridge.robot import load_robot

UR10 = load_robot("ur10")
OTHERS = ("ur5e", "planar3r")


def assert_expected(figures, expected):
    for known in expected:
        measured = figures[known.figure]
        assert known.low <= measured <= known.high, f"{known.figure}: {measured}, {known.text}"


def around(robot):
    """The moving square, at 0.2 m/s on a UR10."""
    return MovingSquare.of(choose_layout(robot))


def slow_sweep(robot, gains, names=(), rate=10.0, noise=0.002):
    """Laps with these gains, and of these solvers, on slow, noisy targets."""
    square = around(robot)
    targets = tracking.slow_targets(robot, square, rate, noise)
    return tracking.sweep(robot, tracking.swept_solvers(names), gains, true=square, targets=targets)


def steps_of(robot, **more):
    solvers = papers_solvers(robot, dt=1.0, iterations=1, kp=(1.0,))
    return convergence.measure(robot, solvers, step_target(robot)[0], **more)


def papers_solvers(robot, **settings):
    return {name: make_solver(robot, name, **settings) for name in PAPER_SOLVERS}


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
    response = homogenization.response(UR10, solver, 200, seed=1).mean
    matrix = homogenization.measure(UR10, 200, seed=1)[CONDITIONED].mean

    np.testing.assert_allclose(response, matrix / (np.trace(matrix) / 6.0), atol=1e-3)


def test_b_converges_as_known():
    steps = steps_of(UR10)

    assert_expected(convergence.figures(steps), convergence.EXPECTED)


def test_c_is_as_straight_as_known():
    edges = interpolation.measure(
        UR10, papers_solvers(UR10, dt=0.1, iterations=50, kp=(1.0,)), choose_layout(UR10)
    )

    assert_expected(interpolation.figures(edges), interpolation.EXPECTED)


def test_d_tracks_as_known():
    laps = tracking.sweep(UR10, PAPER_SOLVERS, (5.0, 10.0, 20.0, 50.0), true=around(UR10))

    assert_expected(tracking.figures(laps), tracking.EXPECTED)


def test_solvers_without_the_papers_gain_are_tracked_once():
    laps = tracking.sweep(UR10, ["feedback", "closed-form"], (5.0, 10.0), true=around(UR10))

    assert [(lap.solver, lap.kp) for lap in laps] == [("feedback", None), ("closed-form", None)]
    assert all(lap.rms < 1e-6 for lap in laps)


def test_a_solver_without_gain_shares_the_axes():
    laps = tracking.sweep(UR10, ["closed-form", "forward-dynamics"], (5.0, 50.0), true=around(UR10))
    figure = Figure()
    plot_laps(laps).draw(figure)
    FigureCanvasAgg(figure).draw()
    panels = np.reshape(figure.axes, (2, 3))
    fixed, swept = panels[:, 2]

    assert (fixed.get_xscale(), fixed.get_xlim(), fixed.get_ylim()) == (
        "log",
        swept.get_xlim(),
        swept.get_ylim(),
    )
    assert [label.get_text() for label in fixed.get_xticklabels()] == ["5", "50"]

    offsets = [
        axis.get_offset_text().get_text()
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
    ]
    assert not any(offsets)


@pytest.mark.parametrize("name", OTHERS)
def test_the_lag_follows_from_rho(name):
    robot = load_robot(name)
    for kp, tolerance in ((5.0, 0.01), (20.0, 0.01), (50.0, 0.04)):
        (lap,) = tracking.sweep(robot, ["forward-dynamics"], [kp], true=around(robot))
        rho = (1.0 - 0.1**2 * kp / 4.0) ** 50
        speed = np.linalg.norm(np.diff(lap.points + lap.errors[:, :3], axis=0)[10]) * 100.0
        assert lap.rms == pytest.approx(speed * 0.01 * rho / (1.0 - rho), rel=tolerance)


@pytest.mark.parametrize("name", OTHERS)
def test_forward_dynamics_is_straighter_than_the_transpose(name):
    robot = load_robot(name)
    solvers = papers_solvers(robot, dt=0.1, iterations=50, kp=(1.0,))
    edges = interpolation.measure(robot, solvers, choose_layout(robot), steps=200)
    straight, bent = (max(edge.deviation for edge in edges[solver]) for solver in PAPER_SOLVERS)

    assert straight < 0.1 * bent


@pytest.mark.parametrize("name", OTHERS)
def test_on_other_arms_the_step_arrives_without_overshoot(name):
    robot = load_robot(name)
    step = steps_of(robot)["forward-dynamics"]

    assert step.arrival < 25
    assert step.overshoot < 1e-4


def test_what_never_arrives_has_no_arrival():
    steps = steps_of(UR10, iterations=3)

    assert all(math.isnan(step.arrival) for step in steps.values())


def test_the_gain_trades_delay_for_smoothness():
    laps = slow_sweep(UR10, (0.5, 2.0, 10.0, 50.0))

    assert np.all(np.diff([lap.delay for lap in laps]) < 0.0)
    assert np.all(np.diff([lap.acceleration for lap in laps]) > 0.0)
    # Held for 100 ms, exact targets are 45 ms old on average at the solver's instants.
    assert laps[-1].delay == pytest.approx(0.045, abs=0.01)


def test_a_medium_gain_stays_closest():
    too_smooth, best, exact = (lap.path_error for lap in slow_sweep(UR10, (0.2, 1.0, 50.0)))

    assert best < 0.8 * exact < too_smooth


def test_a_high_gain_needs_no_noise():
    (exact,) = slow_sweep(UR10, [50.0], rate=100.0, noise=0.0)

    assert exact.path_error < 1e-5


@pytest.mark.parametrize("name", OTHERS)
def test_any_solver_compares_with_the_sweep(name):
    robot = load_robot(name)
    (kp, fixed) = slow_sweep(robot, [50.0], ["feedback", "jacobian-transpose"])

    # The transpose has a gain, so it is not compared; an exact solver is like the highest gain.
    assert (kp.solver, kp.kp, fixed.solver, fixed.kp) == (
        "forward-dynamics",
        50.0,
        "feedback",
        None,
    )
    assert fixed.path_error == pytest.approx(kp.path_error, rel=0.02)
    assert fixed.delay == pytest.approx(kp.delay, abs=0.005)


def test_a_planar_response_stays_in_its_plane():
    robot = load_robot("planar2r")
    spread = homogenization.response(robot, make_solver(robot, "closed-form"), 30, seed=1)

    # An exact planar arm responds in two of six directions, so dividing by the mean of six gives
    # three.
    np.testing.assert_allclose(spread.mean[:2, :2], 3.0 * np.eye(2), atol=0.05)
    assert np.abs(spread.mean[2]).max() < 1e-9
