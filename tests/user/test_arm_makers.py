"""Whether an arm is one of Universal Robots, which decides how it follows commands."""

from __future__ import annotations

import json

import pytest

from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from tests.user.test_panda import FILE as PANDA

pytestmark = [pytest.mark.usefixtures("without_pages"), pytest.mark.quick]


def test_the_arms_of_ur_are_known_by_their_series():
    assert load_robot("ur3e").is_from_ur
    assert not load_robot("planar3r").is_from_ur


@pytest.mark.slow
@pytest.mark.parametrize("prefix", [pytest.param("", marks=pytest.mark.soak), "left_"])
def test_a_urdf_of_ur_is_known_by_its_joints(tmp_path, prefix):
    text = load_robot("ur5e").urdf
    for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"):
        text = text.replace(f'"{name}_joint"', f'"{prefix}{name}_joint"')
    path = tmp_path / "arm.urdf"
    path.write_text(text)

    robot = load_robot(path)

    assert robot.series == ""
    assert robot.is_from_ur
    assert Options().servo_of(robot) == "servoj"


@pytest.mark.parametrize(
    ("options", "servo"),
    [
        (Options(), "ideal"),
        (Options(servo="servoj"), "servoj"),
        (Options(servo_gain=300.0), "servoj"),
        (Options(feedforward="on"), "servoj"),
    ],
)
def test_another_arm_has_servoj_where_it_is_asked_for(options, servo):
    assert options.servo_of(load_robot("planar3r")) == servo


@pytest.mark.slow
@pytest.mark.parametrize(
    "robot",
    [
        ("planar2r",),
        # That a Panda is not taken for an arm of UR is shown in test_panda.
        pytest.param((PANDA, "--tip", "panda_grasptarget"), marks=pytest.mark.soak),
    ],
)
def test_no_line_about_another_arm_speaks_of_ur(cli, robot, line, tmp_path):
    motion = (line, "--anchor", "start", "--robot", *robot)
    checked = cli("check", *motion)
    run = cli("run", *motion, "--out", tmp_path / "run")
    settings = (tmp_path / "run" / "settings.toml").read_text()
    summary = (tmp_path / "run" / "summary.json").read_text()

    assert "an ideal servo" in json.loads(summary)["plant_model"]
    for text in (checked.out, checked.err, run.out, run.err, settings, summary):
        assert "servoj" not in text
        assert "UR's" not in text
