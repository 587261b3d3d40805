"""A Panda with its gripper, from PyBullet's own data.

It is a branched tree, with fingers off the chain, meshes and seven joints.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from simbridge import Scenario, load_robot, run
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.errors import InputFileError, NoClosedForm
from simbridge.experiments.outcome import Plot
from simbridge.ik.reaching import reaching_solver
from simbridge.ik.settings import SOLVERS
from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeat_command import repeat_command
from simbridge.robot.arm_drawing import MAX_TRIANGLES, draw_arm
from simbridge.robot.collision import CollisionModel
from simbridge.robot.hulls import coal_hull
from simbridge.robot.kinematics import tool_path
from simbridge.robot.mesh_files import read_mesh
from simbridge.running.run_setup import prepare
from simbridge.trajectory import MinimumJerk, move, paper_size
from tests.robot.conftest import kept_mesh_process  # noqa: F401 (fixture)

# Its meshes take half a second to load.
pytestmark = [pytest.mark.shares_setup, pytest.mark.usefixtures("kept_mesh_process")]

# PyBullet's data have the arm.
pybullet_data = pytest.importorskip("pybullet_data", reason="PyBullet has no wheel here")
FILE = Path(pybullet_data.getDataPath(), "franka_panda", "panda.urdf")
TIP = "panda_grasptarget"


@pytest.fixture(scope="module")
def panda():
    """The arm up to the point between its fingers."""
    with pytest.warns(UserWarning, match="joints off it are fixed"):
        return load_robot(FILE, tip=TIP)


def short_line(robot):
    """Return a scenario: a line of 2 cm in the middle of the robot's workspace."""
    size = paper_size(robot)
    start = np.array([*size.centre, *size.orientation])
    end = start + np.array([0.0, 0.02, 0.0, 0.0, 0.0, 0.0, 0.0])
    return Scenario(move(start, end, MinimumJerk(0.2)), name="short")


def test_missing_tip_lists_the_ends():
    ends = "panda_leftfinger, panda_rightfinger, panda_grasptarget"

    with pytest.raises(InputFileError, match=rf"{ends}.*--tip LINK"):
        load_robot(FILE)


def test_circle_needs_only_the_tip(cli, panda, small):
    answer = cli("check", small["circle"], "--robot", FILE, "--tip", TIP, "--json")

    facts = json.loads(answer.out)
    notes = " ".join(facts["robot_notes"])
    assert answer.status == 0
    assert "panda_finger_joint1 at 0 m" in notes
    assert "panda_finger_joint2 at 0 m (mimics" in notes
    assert "The file defines no home" in notes
    assert facts["start"] is None
    # They name the home and the workspace, which are found again.
    assert facts["robot_notes"] == list(panda.notes)


@pytest.mark.python_kernels
def test_high_base_and_links_below_the_tip_keep_above_the_floor():
    # panda_link1 is 0.33 m above the foot: the floor, in its plane, is not reached into. The hand
    # and its fingers are on link 7: 0.2 m below a tip there.
    with pytest.warns(UserWarning, match="joints off it are fixed"):
        robot = load_robot(FILE, base="panda_link1", tip="panda_link7")

    assert prepare(short_line(robot), robot=robot).plan.samples > 0


@pytest.mark.python_kernels
def test_experiment_takes_a_tip(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(Plot, "save", lambda *_: None)
    command = ["experiment", "convergence", "--solver", "pseudoinverse", "--iterations", "5"]

    panda = cli(*command, "--out", tmp_path / "out", "--robot", FILE, "--tip", TIP, "--json")
    ur10 = cli(*command, "--out", tmp_path / "more", "--tip", TIP)

    assert panda.status == 0
    assert len(json.loads(panda.out)["arm"]["home"]) == 7
    assert ur10.status == 2
    assert f"a URDF or xacro file with --tip {TIP} (got ur10)" in ur10.message


def test_tip_and_mass_matrix_are_those_of_pinocchio(panda):
    # Pinocchio's own reduction, with the fingers locked.
    whole = pin.buildModelFromUrdf(str(FILE))
    fingers = [whole.getJointId(f"panda_finger_joint{i}") for i in (1, 2)]
    reference = pin.buildReducedModel(whole, fingers, pin.neutral(whole))
    reference_data = reference.createData()
    data = panda.model.createData()

    for q in np.random.default_rng(4).uniform(-1.5, 0.0, (10, 7)):
        pin.framesForwardKinematics(reference, reference_data, q)
        tip = reference_data.oMf[reference.getFrameId(TIP)].translation
        reference_mass = pin.crba(reference, reference_data, q)
        mass = pin.crba(panda.model, data, q)

        np.testing.assert_allclose(tool_path(panda, q[None])[0, :3], tip, atol=1e-9)
        np.testing.assert_allclose(np.triu(mass), np.triu(reference_mass), atol=1e-9)


def test_the_arm_is_not_taken_for_one_of_ur(panda):
    assert not panda.is_from_ur
    assert Options().servo_of(panda) == "ideal"


def test_home_is_clear(panda):
    clearance = CollisionModel(panda).clearance(panda.home)

    assert (panda.home >= panda.position_min).all()
    assert (panda.home <= panda.position_max).all()
    assert clearance is not None
    assert clearance.distance > 0.01


@pytest.mark.python_kernels
@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "closed-form"])
def test_solvers_follow_with_seven_joints(panda, name):
    solver = SOLVERS[name]().build(panda)
    poses = short_line(panda).trajectory.poses[::4]

    start = reaching_solver(solver).solve(poses[0], panda.home)
    attained = tool_path(panda, solver.track(poses, start.q))

    assert start.converged
    assert np.linalg.norm(attained[-1, :3] - poses[-1, :3]) < 5e-3


def test_closed_form_refuses_seven_joints(panda):
    with pytest.raises(NoClosedForm, match="it has 7 joints"):
        SOLVERS["closed-form"]().build(panda)


def test_hulls_contain_their_meshes(panda):
    mesh = panda.links[4].meshes[-1]
    assert mesh.hull is not None
    assert not mesh.drawn
    hull = coal_hull(mesh.hull)
    normals = np.array(hull.normals())
    offsets = np.array(hull.offsets()).ravel()
    vertices = read_mesh(mesh.file)[0] @ mesh.placement.rotation.T + mesh.placement.translation

    distances = vertices @ normals.T + offsets

    assert (distances < 1e-6).all()


def test_views_draw_simplified_meshes(panda):
    drawing = draw_arm(panda)

    triangles = sum(len(mesh.triangles) for mesh in drawing.meshes)
    assert triangles <= 1.01 * MAX_TRIANGLES
    assert drawing.triangles > 1.01 * MAX_TRIANGLES
    assert {mesh.body for mesh in drawing.meshes} == set(range(8))
    assert "simplified" in drawing.simplification_note


def test_run_keeps_its_meshes(cli, panda, short_pages, tmp_path, monkeypatch):
    directory = run(short_line(panda), robot=panda, out=tmp_path / "run").directory
    # From here on no file of a mesh can be read.
    monkeypatch.setattr("simbridge.robot.arm_drawing.read_mesh", None)

    answer = cli("report", directory)

    page = (directory / "replay.html").read_bytes()
    assert answer.status == 0
    assert b"The meshes of the arm are simplified" in page
    assert len(page) < 3e6

    meshes = RunDirectory(directory).meshes()
    assert meshes.triangles == 102_759
    assert len(meshes.meshes) == 11

    record = RunDirectory(directory).settings()
    record.scenario.file = "x"
    assert record.robot.tip == TIP
    assert f"--tip {TIP}" in str(repeat_command(record, tmp_path))


def test_pybullets_window_shows_the_meshes(panda, monkeypatch):
    # Without a display, the window is opened as DIRECT.
    monkeypatch.setenv("DISPLAY", ":0")
    pybullet = importlib.import_module("pybullet")
    backend = PyBulletBackend(panda, Options(gui=True))
    monkeypatch.setattr(pybullet, "GUI", pybullet.DIRECT)

    with backend:
        parts = pybullet.getVisualShapeData(backend._body, physicsClientId=backend._client)

    meshes = [part for part in parts if part[2] == pybullet.GEOM_MESH]
    assert len(meshes) == len(draw_arm(panda).meshes)


def test_recorded_joints_are_those_of_the_arm(panda, tmp_path):
    """Its seven joints, beside the fingers that are no joints of the arm."""
    times = np.arange(0.0, 2.01, 0.01)
    turn = 0.2 * (1.0 - np.cos(np.pi * times / 2.0))[:, None]
    joints = np.array([0.1, -0.6, 0.2, -2.1, 0.1, 1.6, 0.7]) + turn * np.linspace(0.5, 1.0, 7)
    names = [f"panda_joint{joint}" for joint in range(1, 8)]
    header = ",".join(["t", *names, "panda_finger_joint1", "panda_finger_joint2"])
    fingers = np.full((len(times), 2), 0.02)
    rows = np.column_stack([times, joints, fingers])
    path = tmp_path / "panda.csv"
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=header, comments="")

    prepared = prepare(str(path), robot=panda)

    assert "joint positions" in prepared.scenario.trajectory.read_as
    assert prepared.plan.samples == 251
    assert prepared.plan.setpoints[-1] == pytest.approx(joints[-1], abs=1e-10)


def test_plan_is_made_and_checked(panda):
    plan = prepare(short_line(panda), robot=panda)

    assert plan.peaks.clearance is not None
    assert plan.plan.start is None
