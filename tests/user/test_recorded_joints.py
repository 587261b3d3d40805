"""Recorded joint positions are the plan, on their own branch: no solver takes part."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import simbridge
from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.errors import InvalidParameter, PlanRefused
from simbridge.robot.kinematics import tool_path
from simbridge.running.run_setup import prepare
from tests.ports import free_port
from tests.program import answer_to
from tests.report.pages import leave_out_drawings

pytestmark = pytest.mark.shares_setup

ROBOT = simbridge.load_robot("ur10e")
PERIOD = 0.02
# With a quarter of the samples of the controller's cycle.
COARSE = ("--robot", "ur10e", "--period", "0.008")
# Elbow down, wrist 2 positive, wrist 3 beyond half a turn: nothing that is solved from home.
START = np.array([0.5, -1.9, -1.8, 0.6, 1.4, -3.5])
MOTION = np.array([0.4, 0.3, 0.2, -0.2, 0.1, 0.5])


def recorded_joints(duration=1.0):
    times = np.arange(0.0, duration + PERIOD / 2.0, PERIOD)
    progress = times / duration
    smooth = progress**3 * (10.0 - 15.0 * progress + 6.0 * progress**2)
    return times, START + np.outer(smooth, MOTION)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A recording of actual_q at 50 Hz, which begins at 1000 s of the controller's clock."""
    times, joints = recorded_joints()
    header = ",".join(["timestamp", *(f"actual_q_{joint}" for joint in range(6))])
    path = tmp_path_factory.mktemp("recording") / "q.csv"
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


def run_and_print(path, column, out):
    """Run recorded joints, and return the directory and what was printed."""
    answer = answer_to("run", path, "--from", column, *COARSE, "--out", out)
    assert answer.status == 0
    return out, answer.out


@pytest.fixture(scope="module")
def recorded_run(recording, tmp_path_factory):
    """A run of the recording, whose page has no drawings: its directory, and what it printed."""
    with pytest.MonkeyPatch.context() as patch:
        leave_out_drawings(patch)
        return run_and_print(recording, "actual_q", tmp_path_factory.mktemp("run") / "first")


def test_the_solvers_error_is_zero(recorded_run):
    run, _ = recorded_run
    summary = json.loads((run / "summary.json").read_text())

    assert summary["solver_error"]["position_m"]["max"] == 0.0


def test_a_solver_is_refused(recording, options):
    with pytest.raises(InvalidParameter) as refusal:
        prepare(str(recording), robot=ROBOT, options=options, solver="damped-least-squares")

    assert refusal.value.name == "solver"
    assert refusal.value.value == "damped-least-squares"


@pytest.mark.parametrize(
    "flags",
    [
        ["--sample-rate", "20"],
        ["--hold", "zero-order"],
        ["--anchor", "start"],
        ["--start", "auto"],
        ["--home", "0", "-1.57", "1.57", "-1.57", "-1.57", "0"],
    ],
)
def test_what_only_targets_have_is_refused(cli, recording, flags):
    answer = cli("check", recording, "--from", "actual_q", "--robot", "ur10e", *flags)

    assert answer.status == 2
    assert "recorded joint positions" in " ".join(answer.err.split())


def test_joints_of_another_arm_are_refused(cli, recording):
    answer = cli("check", recording, "--from", "actual_q", "--robot", "planar3r")

    assert answer.status == 2
    assert "its 6 joints do not match those of planar3r" in " ".join(answer.err.split())


def test_joints_out_of_range_name_no_move(recording, options):
    far = simbridge.load_robot("ur10e")
    joints = list(far.joints)
    joints[5] = dataclasses.replace(joints[5], position_min=-3.0)
    narrow = dataclasses.replace(far, joints=tuple(joints))

    with pytest.raises(PlanRefused, match="wrist_3_joint would be at") as refusal:
        prepare(str(recording), robot=narrow, options=options)

    assert "Move the trajectory" not in str(refusal.value)
    assert "--robot" in str(refusal.value)


def test_a_motion_too_fast_is_refused(recording):
    fast = simbridge.Options(column="actual_q", speed_scale=30.0)

    with pytest.raises(PlanRefused):
        prepare(str(recording), robot=ROBOT, options=fast)


def test_a_motion_too_fast_is_limited(recording):
    fast = simbridge.Options(column="actual_q", speed_scale=30.0, on_limits="limit")

    prepared = prepare(str(recording), robot=ROBOT, options=fast)

    assert prepared.plan.limited.any()
    assert prepared.plan.setpoints[-1] == pytest.approx(START + MOTION, abs=1e-6)


@pytest.mark.usefixtures("without_pages")
def test_the_plan_is_replayed(cli, recording, recorded_run, tmp_path):
    first, _ = recorded_run
    command = ["run", recording, "--from", "actual_q", *COARSE]

    again = cli(*command, "--plan", first, "--out", tmp_path / "again")

    assert again.status == 0
    plans = [np.load(run / "plan.npz") for run in (first, tmp_path / "again")]
    assert np.array_equal(plans[0]["setpoints"], plans[1]["setpoints"])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The same motion by the names of the joints, without any flag."""
    times, joints = recorded_joints()
    header = ",".join(["time", *ROBOT.joint_names])
    path = tmp_path_factory.mktemp("table") / "joints.csv"
    rows = np.column_stack([times, joints])
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=header, comments="")
    return path


def test_a_table_of_joints_needs_no_flag(table):
    _, joints = recorded_joints()

    plan = prepare(str(table), robot=ROBOT).plan

    assert plan.setpoints[::10] == pytest.approx(joints, abs=1e-10)


def test_inspect_measures_the_tools_path(cli, table):
    answer = cli("inspect", table, "--robot", "ur10e", "--json")

    facts = json.loads(answer.out)
    positions = tool_path(ROBOT, recorded_joints()[1])[:, :3]
    length = np.linalg.norm(np.diff(positions, axis=0), axis=1).sum()
    assert facts["length_m"] == pytest.approx(length, rel=1e-9)
    assert facts["reach"]["share"] == 1.0


def test_nothing_speaks_of_a_solver(recorded_run):
    run, printed = recorded_run
    page = (run / "report.html").read_text()

    assert "solver" not in printed
    assert "Solver" not in page
    assert "Error budget: sampling, limiter, plant, delay" in page


def test_the_run_keeps_the_choice_of_joints(recorded_run):
    run, _ = recorded_run

    assert "--from actual_q" in (run / "report.html").read_text()


# By the name of a column in test_the_plan_is_replayed, and in the test above.
@pytest.mark.soak
def test_the_choice_of_a_tables_joints_is_kept(cli, table, tmp_path):
    run, _ = run_and_print(table, "joints", tmp_path / "first")

    command = ["run", table, "--from", "joints", *COARSE, "--plan", run]
    again = cli(*command, "--out", tmp_path / "again")

    assert again.status == 0
    assert "--from joints" in (run / "report.html").read_text()


@pytest.mark.parametrize(
    "solver",
    [simbridge.CallableSolver(ROBOT, lambda q, target: q), lambda q, target: q],
    ids=["object", "function"],
)
def test_a_solver_from_python_is_refused(table, tmp_path, solver):
    with pytest.raises(InvalidParameter) as refusal:
        simbridge.run(table, solver=solver, robot=ROBOT, out=tmp_path / "run")

    assert refusal.value.name == "solver"
    assert not (tmp_path / "run").exists()


def test_settings_of_a_solver_are_refused(cli, table):
    answer = cli("check", table, "--robot", "ur10e", "--solver.kp", "3")

    assert answer.status == 2
    assert "solver.kp" in answer.err


def test_a_sweep_varies_the_speed(cli, table, tmp_path, at_once):
    grid = ["--grid", "robot=ur10e", "--grid", "speed_scale=0.5,1"]

    answer = cli("sweep", table, *grid, "--plan-only", "--out", tmp_path / "sweep")

    assert answer.status == 0
    assert "2 points" in answer.out


def test_the_studio_refuses_recorded_joints(table):
    with pytest.raises(InvalidParameter) as refusal:
        Studio(StudioSetup(robot="ur10e"), port=free_port(), scenario=str(table))

    assert refusal.value.name == "scenario"
