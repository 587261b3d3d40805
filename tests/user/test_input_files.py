"""Files that users name: regular ones of a bounded size, TOML and YAML of a bounded depth; all else
is one sentence.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from simbridge.errors import InputFileError, NotARun, SimbridgeError
from simbridge.files.reading import MAX_TEXT
from simbridge.planning.scenario import load_scenario
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_directory import RunDirectory
from simbridge.robot.calibration_file import read_calibration
from simbridge.robot.cell_file import load_cell
from simbridge.robot.kinematics_source import with_kinematics
from simbridge.robot.load import load_robot
from simbridge.robot.ros_calibration_file import read_ros_calibration
from simbridge.servo.plant import load_plant
from simbridge.trajectory.files import read_bag, read_trajectory
from simbridge.trajectory.rtde_recording import read_joint_positions, read_rtde

UR10E = load_robot("ur10e")


def settings_of(path: Path) -> object:
    run = RunDirectory(path.parent)
    run.settings_file = path
    return run.settings()


TOML = {
    "robot": load_robot,
    "cell": load_cell,
    "calibration": read_calibration,
    "kinematics": lambda path: with_kinematics(UR10E, path),
    "plant": load_plant,
    "settings": settings_of,
}
READERS = {
    **{f"{name}.toml": read for name, read in TOML.items()},
    "arm.urdf": load_robot,
    "my_robot_calibration.yaml": read_ros_calibration,
    "poses.tum": read_trajectory,
    "poses.csv": lambda path: load_scenario(path, UR10E),
    "recording.csv": read_rtde,
    "joints.csv": read_joint_positions,
    "poses.bag": read_bag,
    "poses.mcap": read_bag,
    "poses.db3": read_bag,
    "log.mcap": read_log,
    "scenario.py": lambda path: load_scenario(path, UR10E),
}


@pytest.mark.parametrize("name", READERS)
def test_special_files_are_not_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)

    with pytest.raises(SimbridgeError, match=name):
        READERS[name](path)

    path.unlink()
    path.symlink_to("/dev/zero")

    with pytest.raises(SimbridgeError, match=name):
        READERS[name](path)

    path.unlink()
    path.mkdir()

    with pytest.raises(SimbridgeError, match=name):
        READERS[name](path)


HOSTILE_TOML = {
    "dotted header": "[" + ".".join("a" * 50_000) + "]",
    "dotted key": ".".join("a" * 50_000) + " = 1",
    "nested arrays": "a = " + "[" * 50_000 + "]" * 50_000,
    "nested tables": "a = " + "{a = " * 50_000 + "1" + "}" * 50_000,
    "nested behind a string that ends in four quotes": 'a = ["""a"""", '
    + "[" * 50_000
    + "]" * 50_000
    + ', "b"]',
    "long integer": "a = " + "9" * 6_000,
    "large": "# comment\n" * (MAX_TEXT // 10 + 1),
    "not TOML": "a = [",
}


@pytest.mark.parametrize("reader", TOML)
@pytest.mark.parametrize("text", HOSTILE_TOML)
def test_expensive_toml_is_refused(tmp_path: Path, reader: str, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HOSTILE_TOML[text])

    with pytest.raises((InputFileError, NotARun)) as refused:
        TOML[reader](path)

    assert len(str(refused.value)) < 500


def test_quoted_brackets_are_not_counted(tmp_path: Path) -> None:
    marks = "[{.\"'" * 50

    text = (Path(__file__).parents[2] / "robots" / "ur10e.toml").read_text()

    assert text.count('title = "') == 1

    text = text.replace('title = "', f"# {marks}\ntitle = '''{marks[:-1]}'''  # \"", 1)
    (tmp_path / "mine.toml").write_text(text)

    assert load_robot(tmp_path / "mine.toml").title == marks[:-1]


def test_an_arm_is_bounded(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "robots" / "ur10e.toml").read_text()
    names = ", ".join(f'"j{i}"' for i in range(65))
    begin = text.index("joint_names")
    end = text.index("]", text.index("joint_names")) + 1
    (tmp_path / "mine.toml").write_text(f"{text[:begin]}joint_names = [{names}]{text[end:]}")

    with pytest.raises(InputFileError, match=r"joint_names: an arm has at most 64 joints"):
        load_robot(tmp_path / "mine.toml")

    shape = "{ start = [0.0, 0.0, 0.0], end = [0.0, 0.0, 1.0], radius = 0.1 },"

    assert "shapes = [" in text

    (tmp_path / "mine.toml").write_text(text.replace("shapes = [", f"shapes = [{shape * 1_001}", 1))

    with pytest.raises(InputFileError, match="at most 1000 shapes"):
        load_robot(tmp_path / "mine.toml")


def test_a_cell_has_a_bounded_number_of_obstacles(tmp_path: Path) -> None:
    box = '[[keep_out_boxes]]\nname = "{}"\ncentre = [1.0, 0.0, 0.0]\nsize = [0.1, 0.1, 0.1]\n'
    (tmp_path / "mine.toml").write_text("".join(box.format(i) for i in range(1_001)))

    with pytest.raises(InputFileError, match="keep_out_boxes: must be at most 1000; got 1001"):
        load_cell(tmp_path / "mine.toml")


def body(name: str, kind: str, parent: str) -> str:
    inertia = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        "</inertial>"
    )
    limit = '<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/>'
    ends = f'<parent link="{parent}"/><child link="{name}"/>'
    return (
        f'<link name="{name}">{inertia}</link>'
        f'<joint name="to_{name}" type="{kind}">{ends}{limit}</joint>'
    )


@pytest.mark.parametrize(
    ("kind", "count", "reason"),
    [("fixed", 298, ""), ("fixed", 301, "300 links"), ("revolute", 65, "at most 64")],
)
def test_a_urdf_is_bounded(tmp_path: Path, kind: str, count: int, reason: str) -> None:
    chain = [
        body("l0", "revolute", "base_link"),
        *(body(f"l{i}", kind, f"l{i - 1}") for i in range(1, count)),
    ]
    (tmp_path / "mine.urdf").write_text(
        f'<robot name="x"><link name="base_link"/>{"".join(chain)}</robot>'
    )
    if not reason:
        assert load_robot(tmp_path / "mine.urdf").n == 1

        return

    with pytest.raises(InputFileError, match=reason):
        load_robot(tmp_path / "mine.urdf")


def test_urdf_entities_are_not_expanded(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    lines = [
        "<!DOCTYPE robot [",
        f'<!ENTITY e SYSTEM "file://{tmp_path}/secret">',
        '<!ENTITY a0 "aaaaaaaaaa">',
    ]
    lines += [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)]
    for use in ("&e;", "&a11;"):
        (tmp_path / "mine.urdf").write_text(
            "\n".join([*lines, f']><robot name="x">{use}<link name="a"/></robot>'])
        )
        began = time.monotonic()

        with pytest.raises(InputFileError) as refused:
            load_robot(tmp_path / "mine.urdf")

        assert "secret" not in refused.value.reason
        assert time.monotonic() - began < 5.0


HOSTILE_YAML = {
    "anchors that multiply": "a: &a {k: 1}\n"
    + "".join(
        f"{n}: &{n} {{<<: [{', '.join([f'*{chr(ord(n) - 1)}'] * 9)}]}}\n" for n in "bcdefghijk"
    ),
    "anchor behind a quoted key": '"a":&a {k: 1}',
    "python object": "kinematics: !!python/object/apply:os.system ['true']",
    "nested": "kinematics: " + "[" * 1_000,
    "nested blocks": "- " * 50_000,
    "long integer": "kinematics: " + "9" * 6_000,
    "impossible date": "kinematics: 2020-99-99",
    "large": "# comment\n" * 30_000,
}


@pytest.mark.parametrize("text", HOSTILE_YAML)
def test_yaml_with_tags_anchors_or_depth_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "my_robot_calibration.yaml"
    path.write_text(HOSTILE_YAML[text])

    with pytest.raises(InputFileError) as refused:
        read_ros_calibration(path)

    assert len(str(refused.value)) < 500
