"""Recorded joint positions are the plan, on their own branch: no solver takes part."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simbridge
from simbridge.errors import InvalidParameter, PlanRefused
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare

ROBOT = simbridge.load_robot("ur10e")
PERIOD = 0.02
# Elbow down, wrist 2 positive, wrist 3 beyond half a turn: nothing that is solved from home.
START = np.array([0.5, -1.9, -1.8, 0.6, 1.4, -3.5])
MOTION = np.array([0.4, 0.3, 0.2, -0.2, 0.1, 0.5])


def recorded_joints(duration=4.0):
    times = np.arange(0.0, duration + PERIOD / 2.0, PERIOD)
    progress = times / duration
    smooth = progress**3 * (10.0 - 15.0 * progress + 6.0 * progress**2)
    return times, START + np.outer(smooth, MOTION)


@pytest.fixture
def recording(tmp_path):
    """A recording of actual_q at 50 Hz, which begins at 1000 s of the controller's clock."""
    times, joints = recorded_joints()
    header = ",".join(["timestamp", *(f"actual_q_{joint}" for joint in range(6))])
    path = tmp_path / "q.csv"
    rows = np.column_stack([1000.0 + times, joints])
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=header, comments="")
    return path


@pytest.fixture
def options():
    return simbridge.Options(column="actual_q")


def test_the_plan_passes_through_the_samples(recording, options):
    _, joints = recorded_joints()

    prepared = prepare(str(recording), robot=ROBOT, options=options)

    assert prepared.plan.setpoints[::10] == pytest.approx(joints, abs=1e-10)


def test_the_reference_is_the_tools_pose_at_them(recording, options):
    prepared = prepare(str(recording), robot=ROBOT, options=options)
    plan = prepared.plan

    assert np.array_equal(plan.targets, tool_path(ROBOT, plan.solution))


def test_the_solvers_error_is_zero(cli, recording, tmp_path):
    answer = cli(
        "run", recording, "--from", "actual_q", "--robot", "ur10e", "--out", tmp_path / "run"
    )

    assert answer.status == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["solver_error"]["position_m"]["max"] == 0.0


def test_a_solver_is_refused(recording, options):
    with pytest.raises(InvalidParameter) as refusal:
        prepare(str(recording), robot=ROBOT, options=options, solver_name="damped-least-squares")

    assert refusal.value.name == "solver"
    assert refusal.value.value == "damped-least-squares"


@pytest.mark.parametrize(
    "flags", [["--sample-rate", "20"], ["--hold", "zero-order"], ["--anchor", "start"]]
)
def test_what_only_targets_have_is_refused(cli, recording, flags):
    answer = cli("check", recording, "--from", "actual_q", "--robot", "ur10e", *flags)

    assert answer.status == 2
    assert "recorded joint positions" in " ".join(answer.err.split())


def test_joints_of_another_arm_are_refused(cli, recording):
    answer = cli("check", recording, "--from", "actual_q", "--robot", "planar3r")

    assert answer.status == 2
    assert "its 6 joints are not those of planar3r" in " ".join(answer.err.split())


def test_a_motion_too_fast_is_refused(recording):
    fast = simbridge.Options(column="actual_q", speed_scale=30.0)

    with pytest.raises(PlanRefused):
        prepare(str(recording), robot=ROBOT, options=fast)


def test_a_motion_too_fast_is_limited(recording):
    fast = simbridge.Options(column="actual_q", speed_scale=30.0, on_limits="limit")

    prepared = prepare(str(recording), robot=ROBOT, options=fast)

    assert prepared.plan.limited.any()
    assert prepared.plan.setpoints[-1] == pytest.approx(START + MOTION, abs=1e-6)


def test_the_plan_is_replayed(cli, recording, tmp_path):
    command = ["run", recording, "--from", "actual_q", "--robot", "ur10e"]
    first = cli(*command, "--out", tmp_path / "first")

    again = cli(*command, "--plan", tmp_path / "first", "--out", tmp_path / "again")

    assert (first.status, again.status) == (0, 0)
    plans = [np.load(tmp_path / name / "plan.npz") for name in ("first", "again")]
    assert np.array_equal(plans[0]["setpoints"], plans[1]["setpoints"])
