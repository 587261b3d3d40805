"""For a task of positions, a rotation that nobody asked for is no error; one that the arm makes by
mistake is.
"""

from __future__ import annotations

import json

import numpy as np
import pinocchio as pin
import pytest

from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.over_time import error_panels
from simbridge.robot import load_robot
from simbridge.robot.kinematics import task_jacobians
from simbridge.robot.postures import movable_directions

pytestmark = pytest.mark.shares_setup

WORLD = pin.LOCAL_WORLD_ALIGNED
LOCAL = pin.LOCAL
# Of each task the rows: in which axes, and which of the six.
PARTS = {
    "pose": [(WORLD, slice(6))],
    "axis": [(WORLD, slice(3)), (LOCAL, slice(3, 5))],
    "position": [(WORLD, slice(3))],
}


@pytest.fixture(scope="module")
def late_run(tmp_path_factory, run_without_page, small):
    """A planar arm that trails its setpoints by some 0.2 s."""
    out = tmp_path_factory.mktemp("planar") / "late"
    lag = ["--servo-gain", "500", "--servo-lookahead", "0.2"]
    arm = ["--robot", "planar3r"]
    assert run_without_page(small["circle"], *arm, *lag, "--out", out) == 0
    return out


def test_in_the_summary_all_rotation_is_the_plants(late_run):
    summary = json.loads((late_run / "summary.json").read_text())

    for name in ("sampling_error", "solver_error", "limiter_error"):
        assert summary[name]["rotation_rad"]["max"] < 1e-12

    tracking, plant = (summary[name]["rotation_rad"] for name in ("tracking_error", "plant_error"))

    assert tracking == pytest.approx(plant, abs=1e-12)
    # The file's tool-down quaternion is half a turn from what a planar arm does.
    assert 0.0 < plant["max"] < np.radians(20.0)
    assert summary["delay_compensated"]["rotation_rad"]["rms"] < plant["rms"]


def test_reports_omit_the_free_rotation(late_run):
    run = Evaluation.of(RunDirectory.open(late_run))
    _, rotation = error_panels(run, run.tracking)

    assert rotation.lines[-1].name == "delay removed"
    assert max(line.values.max() for line in rotation.lines) < 20.0
    assert rotation.lines[-1].values.max() < rotation.lines[0].values.max()


def test_singularity_counts_the_tasks_rows(late_run):
    joints = RunDirectory.open(late_run).log().position
    angles = np.cumsum(joints, axis=1)
    links = np.array([0.75, 0.5, 0.25])
    # Of the tool's x and y by joint: every joint turns the links from itself on.
    x, y = (
        np.cumsum((links * turn(angles))[:, ::-1], axis=1)[:, ::-1] for turn in (np.cos, np.sin)
    )
    values = np.linalg.svd(np.stack([-y, x], axis=1), compute_uv=False)
    summary = json.loads((late_run / "summary.json").read_text())["near_singularity"]

    assert summary["smallest_singular_value"] == pytest.approx(values[:, 1].min(), rel=1e-9)
    assert summary["manipulability"] == pytest.approx(values.prod(axis=1).min(), rel=1e-9)
    assert summary["share"] == np.mean(values[:, 1] < summary["threshold"])


@pytest.mark.parametrize("task", ["pose", "axis", "position"])
def test_task_jacobians_are_pinocchios(task):
    robot = load_robot("ur10")
    joints = np.random.default_rng(3).uniform(-3.0, 3.0, (20, 6))
    data = robot.model.createData()
    tool = robot.model.getFrameId("tcp")
    whole = [
        np.vstack(
            [
                pin.computeFrameJacobian(robot.model, data, q, tool, axes)[rows]
                for axes, rows in PARTS[task]
            ]
        )
        for q in joints
    ]
    jacobians = task_jacobians(robot.placements, robot.prismatic, joints, task)
    np.testing.assert_allclose(jacobians, whole, atol=1e-13)

    assert movable_directions(robot.placements, robot.prismatic, task) == jacobians.shape[1]


def test_a_planar_arm_moves_in_two_directions():
    robot = load_robot("planar3r")

    assert movable_directions(robot.placements, robot.prismatic, "position") == 2
