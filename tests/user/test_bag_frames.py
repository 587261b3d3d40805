"""A bag's own tf places its poses; a frame that nothing relates to the arm is named first."""

from __future__ import annotations

import json

import pytest

from simbridge import load_robot
from tests.trajectory.ros_bags import EPOCH, STEP, Maker

DOWN = (1.0, 0.0, 0.0, 0.0)
LEVEL = (0.0, 0.0, 0.0, 1.0)


@pytest.fixture
def bag(tmp_path):
    """Writes a bag of a tool that moves at 50 mm/s in a frame, and of transforms that hold always.

    The transforms are (parent, child, x).
    """

    def write(frame: str, *still, x: float = 0.7):
        make = Maker()
        messages = []
        for parent, child, shift in still:
            link = (0, parent, child, (shift, 0.0, 0.0, *LEVEL))
            messages.append(("/tf_static", make.transforms(link)))
        for k in range(100):
            position = make.of("geometry_msgs/msg/Point", x + 0.001 * k, 0.1, 0.3)
            rotation = make.of("geometry_msgs/msg/Quaternion", *DOWN)
            pose = make.of("geometry_msgs/msg/Pose", position, rotation)
            header = make.header(EPOCH + k * STEP, frame)
            messages.append(("/tool", make.of("geometry_msgs/msg/PoseStamped", header, pose)))
        return make.write(tmp_path / "bag", messages)

    return write


@pytest.mark.parametrize("names", [("world", "base_link"), ("/world", "/base_link")])
def test_a_still_transform_to_the_base_needs_no_flag(cli, bag, names) -> None:
    path = bag(names[0], (*names, 1.0), x=1.7)

    checked = cli("check", path)

    assert checked.status == 0, checked.err
    assert "bag was read as 100 poses, 50 Hz, topic /tool, placed from world by static tf" in (
        " ".join(checked.out.split())
    )

    facts = json.loads(cli("inspect", path, "--json").out)

    assert facts["unknown_frame"] == ""
    assert facts["extent_min_m"][0] == pytest.approx(0.7)


@pytest.mark.parametrize("frame", ["arm_base", "world"])
def test_the_base_may_have_the_urdfs_name(cli, bag, tmp_path, frame: str) -> None:
    robot = tmp_path / "arm.urdf"
    robot.write_text(load_robot("ur10").urdf.replace("base_link", "arm_base"))
    path = bag(frame, ("world", "arm_base", 1.0), x=1.7 if frame == "world" else 0.7)

    facts = json.loads(cli("inspect", path, "--robot", robot, "--json").out)

    assert facts["unknown_frame"] == ""
    assert facts["extent_min_m"][0] == pytest.approx(0.7)
    assert facts["reach"]["share"] == 1.0


def test_inspect_names_an_unknown_frame_before_reach(cli, bag) -> None:
    path = bag("camera", ("world", "base_link", 1.0))

    lines = cli("inspect", path).out.splitlines()

    first_words = [line.partition(" ")[0] for line in lines]
    assert first_words.index("frame") < first_words.index("x") < first_words.index("reachable")
    assert "if 'camera' were base_link" in lines[first_words.index("reachable")]
    assert json.loads(cli("inspect", path, "--json").out)["unknown_frame"] == "camera"


def test_an_unknown_frame_is_refused_with_those_of_tf(cli, bag) -> None:
    refused = cli("check", bag("camera", ("world", "base_link", 1.0)))

    assert refused.status == 2
    assert "tf does not connect the frames 'base_link' and 'camera'" in refused.message
    assert "its frames are base_link, world" in refused.message


def test_a_suggested_placement_is_called_a_guess(cli, bag) -> None:
    path = bag("camera", x=3.7)

    assert "(a guess, not your cell):\n--transform" in cli("inspect", path).out


def test_what_tf_has_placed_gets_no_other_placement(cli, bag) -> None:
    path = bag("world", ("world", "base_link", -2.0), x=1.7)

    refused = cli("check", path)

    assert refused.status == 2
    assert "every target is out of reach" in refused.message
    assert "--transform" not in refused.err
    assert "--transform" not in cli("inspect", path).out
