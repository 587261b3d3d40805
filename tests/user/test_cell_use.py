"""A cell file as people use it: given with a scenario, applied, recorded, and never silently
overruled.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import simbridge
from simbridge.backends.pybullet import PyBulletBackend
from simbridge.errors import InvalidParameter
from simbridge.planning.options import Options
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import CellRecord
from simbridge.report.repeat_command import repeat_command
from simbridge.report.settings_list import important_settings
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell
from simbridge.robot.kinematics import tool_path
from simbridge.robot.obstacles import Box
from simbridge.running.run_setup import prepare, resolve_arm
from tests.refusals import refuses

# A box on the far side of the square's path (x from 0.68 to 0.82 m, z 0.3 m).
VICE = '[[keep_out_boxes]]\nname = "vice"\ncentre = [0.82, 0.164, 0.2]\nsize = [0.1, 0.1, 0.19]\n'


@pytest.fixture
def lab(tmp_path):
    """Writes a cell file, and returns its path."""

    def write(text, name="lab.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def square(small):
    """One lap of a square like that of the scenario square_tracking, with sides of 0.13 m."""
    return small["square_tracking"]


def test_a_box_on_the_path_is_named(cli, lab, square, tmp_path):
    answer = cli("run", square, "--cell", lab(VICE), "--out", tmp_path / "out")

    assert answer.status == 2

    for words in (
        "wrist_3_link would be",
        "the box 'vice'",
        "at sample",
        "a clearance of 5 mm is required",
        "cell file",
    ):
        assert words in answer.message

    assert not (tmp_path / "out").exists()


def test_check_names_the_box(cli, lab, square):
    assert "the box 'vice'" in cli("check", square, "--cell", lab(VICE)).message

    away = lab(VICE.replace("0.82, 0.164", "0.75, -0.9"))
    answer = cli("check", square, "--cell", away, "--json")

    assert answer.status == 0
    assert json.loads(answer.out)["clearance"]["distance_m"] > 0.005


def test_a_plane_across_the_path_is_named(cli, lab, square):
    plane = (
        '[[keep_out_planes]]\nname = "curtain"\npoint = [0.8, 0.0, 0.0]\n'
        "normal = [-1.0, 0.0, 0.0]\n"
    )

    assert "the plane 'curtain'" in cli("check", square, "--cell", lab(plane)).message


def test_the_tools_shape_is_what_touches(cli, lab, line):
    """The line's tool flies 0.3 m over the floor: what hangs 0.31 m below the flange touches."""
    tool = "[[tool_capsules]]\nstart = [0, 0, 0.1]\nend = [0, 0, 0.26]\nradius = 0.05\n"

    assert (
        "the tool would be 10 mm below the floor" in cli("check", line, "--cell", lab(tool)).message
    )
    assert cli("check", line, "--cell", lab(tool), "--floor", "-0.1").status == 0


def test_the_approach_keeps_out(tmp_path):
    """The plan itself is clear of the post; the straight way in joint space from home to its start
    is not.
    """
    robot = simbridge.load_robot("ur10")
    start = robot.home.copy()
    start[0] = 1.2
    between = robot.home.copy()
    between[0] = 0.6
    post = Box("post", tuple(tool_path(robot, between[None])[0, :3].tolist()), (0.1, 0.1, 0.1))
    cell = Cell(keep_out_boxes=(post,))
    _, robot, options = resolve_arm("pybullet", robot, None, simbridge.Options(cell=cell))
    with PyBulletBackend(robot, options) as arm:
        with refuses("keep-out") as caught:
            arm.move_to(start)
        assert caught.value.bodies[1] == "post"
        assert np.array_equal(arm.read().q, robot.home)


def test_a_live_arm_stops_before_a_box(tmp_path):
    robot = simbridge.load_robot("ur10")
    home = tool_path(robot, robot.home[None])[0]
    table = Box("table", (home[0], home[1], home[2] - 0.14), (0.5, 0.5, 0.2))
    top = home[2] - 0.04
    with simbridge.live(
        robot=robot,
        cell=Cell(keep_out_boxes=(table,)),
        out=tmp_path / "run",
        realtime=False,
        report=False,
    ) as session:
        session.engage()
        for _ in range(12):
            session.twist([0.0, 0.0, -0.1, 0.0, 0.0, 0.0])
            session.wait(0.08)
        causes = session.status.causes
        height = tool_path(robot, session.state.q[None])[0, 2]

    assert any(cause.kind == "obstacle" and "table" in cause.subject for cause in causes)
    assert top + 0.004 < height < top + 0.02


def test_a_cell_replaces_its_flags(cli, lab, line, tmp_path, without_pages):
    cell = lab(
        'robot = "ur10e"\ntcp = [0, 0, 0.1, 0, 0, 0]\npayload = 2\npayload_cog = [0, 0, 0.05]\n'
        'mounting = "ceiling"\n'
    )

    flags = ("--cell", cell, "--period", "0.008", "--out", tmp_path / "run", "--json")
    assert cli("run", line, *flags).status == 0

    robot = RunDirectory.open(tmp_path / "run").settings().robot

    assert robot.name == "ur10e"
    assert robot.payload == 2.0
    assert robot.payload_cog == [0.0, 0.0, 0.05]
    assert robot.tcp == [0.0, 0.0, 0.1, 0.0, 0.0, 0.0]
    assert robot.gravity == [0.0, 0.0, 9.81]


def test_a_run_records_its_cell(cli, lab, line, tmp_path, without_pages):
    cell = lab(
        VICE.replace("0.164, 0.2", "1.5, 0.2")
        + "[[tool_capsules]]\nstart=[0,0,0]\nend=[0,0,0.05]\nradius=0.04\n"
    )

    assert cli("run", line, "--cell", cell, "--out", tmp_path / "one", "--json").status == 0

    settings = RunDirectory.open(tmp_path / "one").settings()

    assert settings.cell.file == str(cell)
    assert settings.cell.values["keep_out_boxes"][0]["name"] == "vice"
    assert settings.cell.values["tool_capsules"] == [
        {"start": [0, 0, 0], "end": [0, 0, 0.05], "radius": 0.04}
    ]
    assert ("Cell", str(cell)) in important_settings(settings, 51)

    command = repeat_command(settings, tmp_path / "one")

    assert cli(*shlex.split(command)[1:], "--out", tmp_path / "two", "--json").status == 0

    plans = [np.load(tmp_path / name / "plan.npz")["setpoints"] for name in ("one", "two")]

    assert np.array_equal(*plans)


def test_an_unsaved_cell_promises_no_command(tmp_path, line, without_pages):
    run = simbridge.run(line, out=tmp_path / "run", options=Options(cell=Cell(payload=1.0)))
    settings = run.evaluation().settings

    assert settings.cell == CellRecord("", {"payload": 1.0})

    settings.scenario.name = "square_tracking"

    assert repeat_command(settings, run.directory) is None


@pytest.mark.parametrize(
    ("text", "flags", "words"),
    [
        ("payload = 2.0", "--payload 3", ("got 3.0", "2.0", "--payload")),
        ("payload = 2.0", "--payload 0", ("got 0.0", "2.0")),
        (
            "tcp = [0, 0, 0.1, 0, 0, 0]",
            "--tcp 0 0 0.2 0 0 0",
            ("got [0.0, 0.0, 0.2", "[0.0, 0.0, 0.1", "--tcp"),
        ),
        ('robot = "ur10e"', "--robot ur10", ("got ur10", "ur10e", "--robot")),
        ("floor = -0.8", "--floor 0", ("got 0.0", "-0.8", "--floor")),
        ("floor = -0.8", "--floor none", ("got none", "-0.8")),
        ('floor = "none"', "--floor 0", ("got 0.0", "none")),
    ],
)
def test_a_contradicting_flag_is_refused(cli, lab, square, text, flags, words):
    answer = cli("check", square, "--cell", lab(text), *flags.split())

    assert answer.status == 2

    for part in (*words, "lab.toml"):
        assert part in answer.message


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("payload = 2.0", "--payload 2 --tcp 0 0 0.1 0 0 0 --floor -0.2"),
        ("tcp = [0, 0, 0.1, 0, 0, 0]", "--payload 2 --tcp 0 0 0.1 0 0 0"),
        ("", "--robot ur10e --payload 2 --floor none"),
    ],
)
def test_a_flag_may_complete_the_cell(cli, lab, line, text, flags):
    assert cli("check", line, "--cell", lab(text), *flags.split()).status == 0


@pytest.mark.parametrize(("flags", "used"), [((), "on"), (("--feedforward", "off"), "off")])
def test_a_cell_may_turn_feedforward_on(cli, lab, line, flags, used, tmp_path, without_pages):
    out = tmp_path / "out"
    cell = lab('feedforward = "on"')

    answer = cli("run", line, "--cell", cell, *flags, "--out", out, "--json")

    assert (answer.status, json.loads(answer.out)["feedforward"]) == (0, used == "on")
    assert RunDirectory.open(out).settings().scenario.feedforward == used


def test_a_solver_must_have_the_cells_tcp(line):
    flange = simbridge.load_robot("ur10")
    options = Options(
        cell=Cell(tcp=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0), payload=1.0, mounting="ceiling")
    )

    with pytest.raises(InvalidParameter, match="TCP and payload"):
        prepare(line, solver=simbridge.ForwardDynamics(flange), options=options)

    prepared = prepare(
        line, solver=simbridge.ForwardDynamics(options.equip(flange)), options=options
    )

    assert prepared.robot.payload == 1.0
    assert prepared.robot.gravity[2] == 9.81


def test_the_documented_example_is_loaded_word_for_word(tmp_path):
    text = (Path(__file__).parents[2] / "docs/cell.md").read_text(encoding="utf-8")
    example = text.split("```toml\n")[1].split("```")[0]
    (tmp_path / "lab.toml").write_text(example, encoding="utf-8")
    (tmp_path / "ur10e_calibration.toml").touch()
    cell = load_cell(tmp_path / "lab.toml")

    for name, value in vars(cell).items():
        assert value not in (None, ()), f"the example leaves out {name}"
        assert name == "source" or f"`{name}`" in text or f"`[[{name}]]`" in text

    assert [box.name for box in cell.keep_out_boxes] == ["table", "camera"]
    assert cell.calibration == tmp_path / "ur10e_calibration.toml"


def test_the_documented_cell_can_be_run(tmp_path, line):
    """A motion over the documented table, with its gripper: clear as it stands, refused when the
    table is higher.
    """
    text = (Path(__file__).parents[2] / "docs/cell.md").read_text(encoding="utf-8")
    example = text.split("```toml\n")[1].split("```")[0].replace("calibration =", "# calibration =")
    (tmp_path / "lab.toml").write_text(example, encoding="utf-8")

    prepared = prepare(line, options=Options(cell=load_cell(tmp_path / "lab.toml")))

    assert prepared.robot.name == "ur10e"
    assert prepared.peaks.clearance.distance > 0.005

    (tmp_path / "lab.toml").write_text(
        example.replace("0.9, 0.0, -0.4", "0.9, 0.0, -0.1"), encoding="utf-8"
    )

    with refuses("keep-out", match="the box 'table'"):
        prepare(line, options=Options(cell=load_cell(tmp_path / "lab.toml")))
