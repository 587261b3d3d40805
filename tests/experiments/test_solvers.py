"""The comparison of solvers: the same tasks for all of them, judged by the residual."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simbridge.experiments import solvers
from simbridge.experiments.arm import make_solver, random_joints
from simbridge.ik.parameters import IterativeParameters
from simbridge.ik.settings import SOLVERS
from simbridge.robot import load_robot
from simbridge.robot.kinematics import tool_path
from simbridge.robot.postures import restart_postures

UR10 = load_robot("ur10")
TARGETS = solvers.scenario_targets(UR10, "square_tracking")


@pytest.mark.slow
def test_all_solvers_are_compared_unless_some_are_named(cli, tmp_path):
    exact = ("--jacobian", "exact", "--samples", 2)
    answer = cli("experiment", "solvers", *exact, "--out", tmp_path / "out", "--json")
    compared = json.loads(answer.out)["solvers"]

    assert list(compared) == list(SOLVERS)
    for name, figures in compared.items():
        assert figures["trajectory"]["rms"] < 0.005, name
        assert figures["trajectory"]["peak_speed"] < 1.0, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["damped-least-squares", pytest.param("", marks=pytest.mark.soak)])
def test_solvers_with_a_jacobian_have_both(cli, tmp_path, name):
    chosen = ("--solver", "closed-form", name) if name else ()
    answer = cli(
        "experiment", "solvers", *chosen, "--samples", 2, "--out", tmp_path / "out", "--json"
    )
    compared = json.loads(answer.out)["solvers"]
    for solver in (
        [name] if name else [n for n in SOLVERS if issubclass(SOLVERS[n], IterativeParameters)]
    ):
        exact, difference = (
            compared[kind]["trajectory"] for kind in (solver, f"{solver}, difference")
        )
        # The same motion, since each step begins where the one before has led; not to the last bit.
        assert difference["acceleration"] == pytest.approx(exact["acceleration"], rel=0.01)
        assert difference["acceleration"] != exact["acceleration"]

    assert "closed-form, difference" not in compared


def test_an_unsupported_solver_is_left_out(cli, tmp_path, monkeypatch):
    # Two of all solvers: each is compiled for this arm.
    monkeypatch.setattr(
        solvers, "SOLVERS", {name: SOLVERS[name] for name in ("feedback", "closed-form")}
    )
    chosen = ("--robot", "planar3r", "--jacobian", "exact", "--samples", 2)

    answer = cli("experiment", "solvers", *chosen, "--out", tmp_path / "out")

    assert answer.status == 0

    rows = [line.split()[0] for line in answer.out.splitlines() if line.strip()]
    assert "closed-form" not in rows
    assert "feedback" in rows
    assert "The closed-form solver does not support planar3r" in " ".join(answer.out.split())


def test_random_poses_are_reachable():
    random = np.random.default_rng((0, 1))
    joints = random_joints(UR10, 50, random)

    assert np.all(joints >= UR10.position_min)
    assert np.all(joints <= UR10.position_max)

    restarts = tool_path(UR10, restart_postures(UR10, 50))[:, :3]
    distances = np.linalg.norm(tool_path(UR10, joints)[:, None, :3] - restarts, axis=2)

    assert distances.min() > 1e-3


def test_the_closed_form_solves_every_pose_exactly():
    solver = make_solver(UR10, "closed-form")

    assert solvers.solve(UR10, solver, 50).success == 1.0

    targets = tool_path(UR10, random_joints(UR10, 50, np.random.default_rng((0, 1))))
    assert all(solver.solve(target).distance < 1e-9 for target in targets)


def test_success_is_judged_by_the_residual():
    # With one iteration per start no target is reached, whatever the solver claims.
    solver = make_solver(UR10, "feedback")
    solver.max_start_iterations = 1

    solved = solvers.solve(UR10, solver, 5)

    assert solved.success == 0.0
    assert solved.median_error_m is None


def test_the_peak_speed_is_the_exact_solutions():
    exact = solvers.track(UR10, make_solver(UR10, "closed-form"), TARGETS)
    iterative = solvers.track(UR10, make_solver(UR10, "forward-dynamics"), TARGETS)

    assert exact.rms < 1e-9
    assert iterative.peak_speed == pytest.approx(exact.peak_speed, rel=0.01)


def test_a_smoother_solver_errs_more():
    smooth = solvers.track(UR10, make_solver(UR10, "forward-dynamics", kp=(1.0,), dt=0.1), TARGETS)
    sharp = solvers.track(UR10, make_solver(UR10, "forward-dynamics"), TARGETS)

    assert smooth.acceleration < 0.8 * sharp.acceleration
    assert smooth.rms > 10.0 * sharp.rms


def test_there_is_one_target_per_control_period():
    # Two laps of 8 s, and the final instant.
    assert len(TARGETS) == 1 + round(16.0 / UR10.period)
