"""A bag's own tf places its poses; a frame that nothing relates to the arm is named first."""

from __future__ import annotations

import json

import pytest

from simbridge import load_robot
from tests.trajectory.ros_bags import EPOCH, STEP, Maker

DOWN = (1.0, 0.0, 0.0, 0.0)
LEVEL = (0.0, 0.0, 0.0, 1.0)
SOAK = pytest.mark.soak


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
        for k in range(10):
            position = make.of("geometry_msgs/msg/Point", x + 0.001 * k, 0.1, 0.3)
            rotation = make.of("geometry_msgs/msg/Quaternion", *DOWN)
            pose = make.of("geometry_msgs/msg/Pose", position, rotation)
            header = make.header(EPOCH + k * STEP, frame)
            messages.append(("/tool", make.of("geometry_msgs/msg/PoseStamped", header, pose)))
        return make.write(tmp_path / "bag", messages)

    return write


@pytest.mark.parametrize(
    "names", [("world", "base_link"), pytest.param(("/world", "/base_link"), marks=SOAK)]
)
def test_a_still_transform_to_the_base_needs_no_flag(cli, bag, names) -> None:
    path = bag(names[0], (*names, 1.0), x=1.7)

    checked = cli("check", path)

    assert checked.status == 0, checked.err
    text = " ".join(checked.out.split())
    assert "topic /tool, transformed from world to base_link by static tf" in text

    facts = json.loads(cli("inspect", path, "--json").out)

    assert facts["unknown_frame"] == ""
    assert facts["extent_min_m"][0] == pytest.approx(0.7)


@pytest.mark.parametrize("frame", [pytest.param("arm_base", marks=SOAK), "world"])
def test_the_base_may_have_the_urdfs_name(cli, bag, tmp_path, frame: str) -> None:
    robot = tmp_path / "arm.urdf"
    robot.write_text(load_robot("ur10").urdf.replace("base_link", "arm_base"))
    path = bag(frame, ("world", "arm_base", 1.0), x=1.7 if frame == "world" else 0.7)

    facts = json.loads(cli("inspect", path, "--robot", robot, "--json").out)

    assert facts["unknown_frame"] == ""
    assert facts["extent_min_m"][0] == pytest.approx(0.7)
    assert facts["reach"]["share"] == 1.0


@pytest.mark.parametrize(
    ("frame", "still", "x"),
    [
        ("base", [], -0.7),
        pytest.param("world", [("world", "base", 1.0)], 0.3, marks=SOAK),
        ("world", [("world", "table", 0.4), ("table", "base", 0.6)], 0.3),
    ],
)
def test_urs_base_frame_is_known_by_its_name(cli, bag, frame, still, x) -> None:
    path = bag(frame, *still, x=x)

    inspected = cli("inspect", path)

    remark = "where base is UR's base frame, half a turn about z from base_link"
    assert remark in " ".join(inspected.out.split())
    facts = json.loads(cli("inspect", path, "--json").out)
    assert facts["unknown_frame"] == ""
    assert facts["extent_max_m"][0] == pytest.approx(0.7)
    assert facts["extent_max_m"][1] == pytest.approx(-0.1)


def test_tf_has_priority_over_the_name_base(cli, bag) -> None:
    path = bag("base", ("base", "base_link", 1.0), x=1.7)

    facts = json.loads(cli("inspect", path, "--json").out)

    assert facts["extent_min_m"][0] == pytest.approx(0.7)
    assert "transformed from base to base_link by static tf" in facts["read_as"]


def test_base_is_unknown_for_another_arm(cli, bag) -> None:
    facts = json.loads(cli("inspect", bag("base"), "--robot", "planar3r", "--json").out)

    assert facts["unknown_frame"] == "base"


@pytest.mark.parametrize("name", ["base", "/base"])
def test_a_table_names_urs_base_frame_too(cli, tmp_path, name: str) -> None:
    rows = [f"{0.02 * k},{name},{-0.7 - 0.001 * k},0.1,0.3,1,0,0,0" for k in range(100)]
    path = tmp_path / "poses.csv"
    path.write_text("\n".join(["t,frame_id,x,y,z,qx,qy,qz,qw", *rows]) + "\n")

    facts = json.loads(cli("inspect", path, "--json").out)

    assert facts["unknown_frame"] == ""
    assert facts["extent_min_m"][0] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("frame", "still", "x", "flags"),
    [
        pytest.param("world", ["left_base_link"], 1.7, "--base-frame left_base_link", marks=SOAK),
        pytest.param("left/base_link", [], 0.7, "--base-frame left/base_link", marks=SOAK),
        ("/ur/base_link", [], 0.7, "--base-frame ur/base_link"),
        ("world", ["left_base"], 0.3, "--base-frame left_base --frame base"),
        (
            "world",
            ["left_base_link", "right_base_link"],
            1.7,
            "--base-frame left_base_link or --base-frame right_base_link",
        ),
    ],
)
def test_a_prefixed_base_is_offered_and_read(cli, bag, frame, still, x, flags) -> None:
    path = bag(frame, *(("world", name, 1.0) for name in still), x=x)

    refused = cli("check", path)
    inspected = cli("inspect", path)
    placed = cli("inspect", path, "--json", *flags.partition(" or ")[0].split())

    assert refused.status == 2
    assert f"add {flags};" in refused.message
    assert flags.replace(" or ", ", ") in " ".join(inspected.out.split())
    facts = json.loads(placed.out)
    assert facts["unknown_frame"] == ""
    near_end = facts["extent_max_m"] if "--frame base" in flags else facts["extent_min_m"]
    assert near_end[0] == pytest.approx(0.7)


def test_a_frame_of_another_name_is_the_base_by_choice(cli, bag) -> None:
    path = bag("world", ("world", "pedestal", 1.0), x=1.7)

    assert cli("check", path).status == 2

    answer = cli("check", path, "--base-frame", "/pedestal")

    assert answer.status == 0, answer.err
    assert "transformed from world to pedestal by static tf" in " ".join(answer.out.split())


def test_a_base_frame_that_is_not_there_is_refused(cli, bag, tmp_path) -> None:
    answer = cli("check", bag("world"), "--base-frame", "pedestal")

    assert answer.status == 2
    assert "its poses are in the frame 'world'" in answer.message

    poses = tmp_path / "poses.tum"
    poses.write_text("".join(f"{0.1 * k} 0.7 0.1 0.3 1 0 0 0\n" for k in range(5)))

    answer = cli("check", poses, "--base-frame", "pedestal")

    assert answer.status == 2
    assert "it does not name the frame of its poses; omit --base-frame" in answer.message


def test_inspect_names_an_unknown_frame_before_reach(cli, bag) -> None:
    path = bag("camera", ("world", "base_link", 1.0))

    lines = cli("inspect", path).out.splitlines()

    first_words = [line.partition(" ")[0] for line in lines]
    assert first_words.index("frame") < first_words.index("extent") < first_words.index("reachable")
    assert "if 'camera' were base_link" in lines[first_words.index("reachable")]
    assert json.loads(cli("inspect", path, "--json").out)["unknown_frame"] == "camera"


def test_an_unknown_frame_is_refused_with_those_of_tf(cli, bag) -> None:
    refused = cli("check", bag("camera", ("world", "base_link", 1.0)))

    assert refused.status == 2
    assert "tf does not connect the frames 'base_link' and 'camera'" in refused.message
    assert "its frames are base_link, world" in refused.message


def test_a_suggested_placement_is_called_a_guess(cli, bag) -> None:
    path = bag("camera", x=3.7)

    assert "(a guess, not taken from your cell):\n--transform" in cli("inspect", path).out


def test_what_tf_has_placed_gets_no_other_placement(cli, bag) -> None:
    path = bag("world", ("world", "base_link", -2.0), x=1.7)

    refused = cli("check", path)

    assert refused.status == 2
    assert "every target is out of reach" in refused.message
    assert "--transform" not in refused.err
    assert "--transform" not in cli("inspect", path).out
