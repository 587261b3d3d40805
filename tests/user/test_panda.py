"""A Panda with its gripper, from PyBullet's own data.

It is a branched tree, with fingers off the chain, meshes and seven joints.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pinocchio as pin
import pybullet_data
import pytest

from simbridge import Scenario, load_robot
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.cli.command_line import main
from simbridge.errors import InputFileError, NoClosedForm
from simbridge.ik.reaching import reaching_solver
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options
from simbridge.robot.arm_drawing import MAX_TRIANGLES, draw_arm
from simbridge.robot.collision import CollisionModel
from simbridge.robot.hulls import coal_hull
from simbridge.robot.kinematics import tool_path
from simbridge.robot.mesh_files import read_mesh
from simbridge.running.run_setup import prepare
from simbridge.trajectory import MinimumJerk, move, paper_size

FILE = Path(pybullet_data.getDataPath(), "franka_panda", "panda.urdf")
TIP = "panda_grasptarget"


@pytest.fixture(scope="module")
def panda():
    with pytest.warns(UserWarning, match="joints off it are fixed"):
        return load_robot(FILE, tip=TIP)


def short(robot):
    """A line of 4 cm in the middle of its workspace."""
    size = paper_size(robot)
    start = np.array([*size.centre, *size.orientation])
    end = start + np.array([0.0, 0.04, 0.0, 0.0, 0.0, 0.0, 0.0])
    return Scenario(move(start, end, MinimumJerk(0.2)), name="short")


def test_without_a_tip_one_refusal_lists_the_ends_and_the_flag():
    with pytest.raises(
        InputFileError, match=r"panda_leftfinger, panda_rightfinger, panda_grasptarget.*--tip LINK"
    ):
        load_robot(FILE)


def test_circle_needs_nothing_but_the_tip_and_what_was_decided_is_said(capfd):
    assert main(["check", "circle", "--robot", str(FILE), "--tip", TIP, "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    notes = " ".join(facts["robot_notes"])
    for said in (
        "panda_finger_joint1 at 0 m",
        "panda_finger_joint2 at 0 m (mimics",
        "The file has no home",
    ):
        assert said in notes
    assert facts["start"] is None


def test_a_chain_that_begins_high_up_works_above_its_base():
    """panda_link1 is 0.33 m above the foot: the floor, in its plane, is not reached into."""
    with pytest.warns(UserWarning, match="joints off it are fixed"):
        robot = load_robot(FILE, base="panda_link1", tip="panda_hand")
    assert prepare("circle", robot=robot).plan.samples > 0


def test_what_hangs_below_the_tip_stays_above_the_floor():
    """The hand and its fingers are on link 7: 0.2 m below a tip there."""
    with pytest.warns(UserWarning, match="joints off it are fixed"):
        robot = load_robot(FILE, tip="panda_link7")
    assert prepare("circle", robot=robot).plan.samples > 0


def test_an_experiment_takes_base_tip_and_packages(tmp_path, capfd):
    words = [
        "experiment",
        "convergence",
        "--solver",
        "pseudoinverse",
        "--iterations",
        "5",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main([*words, "--robot", str(FILE), "--tip", TIP, "--json"]) == 0
    assert len(json.loads(capfd.readouterr().out)["arm"]["home"]) == 7
    assert main([*words[:-1], str(tmp_path / "more"), "--tip", TIP]) == 2
    assert "must be left out for ur10, which is not a URDF" in " ".join(
        capfd.readouterr().err.split()
    )


def test_tip_and_mass_matrix_are_pinocchios_with_the_fingers_locked(panda):
    whole = pin.buildModelFromUrdf(str(FILE))
    fingers = [whole.getJointId(f"panda_finger_joint{i}") for i in (1, 2)]
    model = pin.buildReducedModel(whole, fingers, pin.neutral(whole))
    data, ours = model.createData(), panda.model.createData()
    for q in np.random.default_rng(4).uniform(-1.5, 0.0, (10, 7)):
        pin.framesForwardKinematics(model, data, q)
        place = pin.SE3ToXYZQUAT(data.oMf[model.getFrameId(TIP)])
        np.testing.assert_allclose(tool_path(panda, q[None])[0, :3], place[:3], atol=1e-9)
        np.testing.assert_allclose(
            np.triu(pin.crba(panda.model, ours, q)), np.triu(pin.crba(model, data, q)), atol=1e-9
        )


def test_its_home_is_the_same_in_every_call_and_keeps_clear_of_itself(panda):
    again = load_robot(FILE, tip=TIP)
    assert np.array_equal(again.home, panda.home) and again.workspace == panda.workspace
    # Elbow up: no joint is lower than the first link's.
    assert (panda.home >= panda.position_min).all() and (panda.home <= panda.position_max).all()
    clearance = CollisionModel(panda).clearance(panda.home)
    assert clearance is not None and clearance.distance > 0.01


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "closed-form"])
def test_every_solver_that_can_follows_with_seven_joints(panda, name):
    solver = SOLVERS[name]().build(panda)
    trajectory = short(panda).trajectory
    start = reaching_solver(solver).solve(trajectory.start, panda.home)
    assert start.converged
    attained = tool_path(panda, solver.track(trajectory.poses, start.q))
    assert np.linalg.norm(attained[-1, :3] - trajectory.poses[-1, :3]) < 5e-3


def test_the_closed_form_says_why_it_cannot(panda):
    with pytest.raises(NoClosedForm, match="it has 7 joints"):
        SOLVERS["closed-form"]().build(panda)


def test_hulls_contain_their_meshes(panda):
    mesh = panda.links[4].meshes[-1]
    assert mesh.hull is not None and not mesh.drawn
    hull = coal_hull(mesh.hull)
    normals, offsets = np.array(hull.normals()), np.array(hull.offsets())
    vertices = read_mesh(mesh.file)[0] @ mesh.placement.rotation.T + mesh.placement.translation
    assert (vertices @ normals.T + offsets.ravel() < 1e-6).all()


def test_views_draw_simplified_meshes(panda):
    drawing = draw_arm(panda)
    assert (
        sum(len(mesh.triangles) for mesh in drawing.meshes)
        <= 1.01 * MAX_TRIANGLES
        < drawing.triangles
    )
    assert {mesh.body for mesh in drawing.meshes} == set(range(8))
    assert "simplified" in drawing.simplification_note


def test_a_run_keeps_its_meshes_and_the_replay_says_how_far_they_are_simplified(
    panda, tmp_path, monkeypatch
):
    from simbridge import run
    from simbridge.recording.run_directory import RunDirectory
    from simbridge.report.repeat_command import repeat_command

    finished = run(short(panda), robot=panda, out=tmp_path / "run")
    monkeypatch.setattr("simbridge.robot.arm_drawing.read_mesh", None)
    assert main(["report", str(finished.directory)]) == 0
    recorded = RunDirectory(finished.directory).settings()
    assert recorded.robot.tip == TIP
    recorded.scenario.file = "x"
    assert f"--tip {TIP}" in str(repeat_command(recorded, tmp_path))
    kept, page = (
        RunDirectory(finished.directory).meshes(),
        (finished.directory / "replay.html").read_bytes(),
    )
    assert kept.triangles == 102_759 and len(kept.meshes) == 11
    assert b"The meshes of the arm are simplified" in page and len(page) < 3e6


def test_the_window_of_pybullet_shows_the_meshes(panda, monkeypatch):
    # Without a display, the window is opened as DIRECT.
    monkeypatch.setenv("DISPLAY", ":0")
    backend = PyBulletBackend(panda, Options(gui=True))
    import pybullet

    monkeypatch.setattr(pybullet, "GUI", pybullet.DIRECT)
    with backend:
        shown = pybullet.getVisualShapeData(backend._body, physicsClientId=backend._client)
    assert sum(part[2] == pybullet.GEOM_MESH for part in shown) == len(draw_arm(panda).meshes)


def test_a_plan_on_it_is_planned_and_checked(panda):
    plan = prepare(short(panda), robot=panda)
    assert plan.peaks.clearance is not None and plan.plan.start is None
