"""The tf of a bag places its poses in the arm's base, at the instants at which it is known."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.errors import InputFileError
from simbridge.trajectory.files import read_recording
from simbridge.trajectory.read_options import ReadOptions
from tests.trajectory.ros_bags import EPOCH, STEP, Maker

pytestmark = pytest.mark.slow

QUARTER = (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))
LEVEL = (0.0, 0.0, 0.0, 1.0)
COUNT = 100


def read(path, base: str = "base_link", **options):
    """The recording in a bag, for an arm."""
    return read_recording(path, ReadOptions(**options), bases=(base,))


def tool_in(frame: str, make: Maker):
    """Poses of a tool that moves along x at 50 Hz."""
    return [("/tool", make.stamped(EPOCH + k * STEP, 0.01 * k, frame=frame)) for k in range(COUNT)]


def cart(make: Maker, samples, offset: int = 0):
    """A base that moves along x in world, so many ns after each of the samples of 50 Hz."""
    return [
        (
            "/tf",
            make.transforms(
                (EPOCH + k * STEP + offset, "world", "base_link", (0.01 * k, 0.0, 0.0, *LEVEL))
            ),
        )
        for k in samples
    ]


@pytest.mark.parametrize("ros1", [True, False])
def test_still_tf_places_poses_over_several_frames(tmp_path, ros1: bool) -> None:
    make = Maker(ros1)
    table = (0, "/world", "/table", (1.0, 0.0, 0.0, *QUARTER))
    arm = (0, "/table", "/base_link", (0.0, 0.5, 0.2, *QUARTER))
    still = [("/tf_static", make.transforms(table, arm))]
    path = make.write(tmp_path / ("a.bag" if ros1 else "a"), [*still, *tool_in("/world", make)])

    recording = read(path)

    quarter = pin.Quaternion(np.array(QUARTER)).matrix()
    in_world = pin.SE3(quarter, np.array([1.0, 0.0, 0.0]))
    base = in_world * pin.SE3(quarter, np.array([0.0, 0.5, 0.2]))
    for k, values in enumerate(recording.trajectory.poses):
        expected = base.inverse() * pin.SE3(np.eye(3), np.array([0.01 * k, 0.1, 0.3]))

        np.testing.assert_allclose(values[:3], expected.translation, atol=1e-9)
        np.testing.assert_allclose(
            pin.Quaternion(values[3:]).matrix(), expected.rotation, atol=1e-9
        )
    assert recording.is_placed_by_file
    assert recording.trajectory.read_as.endswith("transformed from world to base_link by static tf")


def test_the_urdfs_base_may_have_another_name(tmp_path) -> None:
    make = Maker()
    still = (0, "base_link", "panda_link0", (1.0, 0.0, 0.0, *LEVEL))
    path = make.write(
        tmp_path / "a", [("/tf_static", make.transforms(still)), *tool_in("base_link", make)]
    )

    recording = read(path, base="panda_link0")

    np.testing.assert_allclose(recording.trajectory.poses[:, 0], 0.01 * np.arange(COUNT) - 1.0)


def test_moving_tf_is_used_at_the_time_of_each_pose(tmp_path) -> None:
    make = Maker()
    # Known between the poses' instants: interpolated, the tool stands still in the base.
    moving = cart(make, range(-1, COUNT), offset=STEP // 2)
    path = make.write(tmp_path / "a", [*moving, *tool_in("world", make)])

    recording = read(path)

    # The base is half a sample behind its number.
    np.testing.assert_allclose(recording.trajectory.poses[:, 0], 0.005, atol=1e-9)
    assert recording.trajectory.read_as.endswith("transformed from world to base_link by moving tf")


@pytest.mark.parametrize(
    ("ros1", "base_is_parent"),
    [
        (True, True),
        (False, False),
        pytest.param(True, False, marks=pytest.mark.soak),
        pytest.param(False, True, marks=pytest.mark.soak),
    ],
)
def test_still_and_moving_tf_are_chained(tmp_path, ros1: bool, base_is_parent: bool) -> None:
    make = Maker(ros1)

    def rail(seconds: float) -> pin.SE3:
        """The rail in world: it turns and slides evenly, so that interpolation is exact."""
        return pin.SE3(pin.exp3(np.array([0, 0, 0.4 * seconds])), np.array([0, 0.3 * seconds, 0]))

    mount = pin.SE3(pin.Quaternion(np.array(QUARTER)).matrix(), np.array([0.2, 0.0, 0.5]))
    names = ("base_link", "rail") if base_is_parent else ("rail", "base_link")
    still = make.transforms((0, *names, tuple(pin.SE3ToXYZQUAT(mount).tolist())))
    moving = []
    for k in range(60):
        values = tuple(pin.SE3ToXYZQUAT(rail(0.035 * k)).tolist())
        link = (EPOCH + 35_000_000 * k, "world", "rail", values)
        moving.append(("/tf", make.transforms(link)))
    messages = [("/tf_static", still), *moving, *tool_in("world", make)]

    recording = read(make.write(tmp_path / ("a.bag" if ros1 else "a"), messages))

    assert len(recording.trajectory.times) == COUNT
    for k, values in enumerate(recording.trajectory.poses):
        base = rail(0.02 * k) * (mount.inverse() if base_is_parent else mount)
        expected = base.inverse() * pin.SE3(np.eye(3), np.array([0.01 * k, 0.1, 0.3]))
        np.testing.assert_allclose(values[:3], expected.translation, atol=1e-9)
        np.testing.assert_allclose(
            pin.Quaternion(values[3:]).matrix(), expected.rotation, atol=1e-9
        )


def test_poses_without_a_transform_are_left_out(tmp_path) -> None:
    make = Maker()
    known = [*range(5, 30), *range(55, 96)]
    path = make.write(tmp_path / "a", [*cart(make, known), *tool_in("world", make)])

    with pytest.warns(UserWarning) as notes:
        recording = read(path)

    (note,) = map(str, (note.message for note in notes))
    name = "from world to base_link left out"
    assert f"5 poses before the first transform {name} (messages 1 to 5)" in note
    assert f"4 poses after the last transform {name} (messages 97 to 100)" in note
    assert f"more than 10 periods of the transforms {name} (messages 31 to 55)" in note
    np.testing.assert_allclose(recording.trajectory.times, 0.02 * (np.array(known) - 5))
    np.testing.assert_allclose(recording.trajectory.poses[:, 0], 0.0, atol=1e-9)


def test_a_short_gap_of_tf_is_noted(tmp_path) -> None:
    make = Maker()
    known = [*range(30), *range(33, COUNT)]
    path = make.write(tmp_path / "a", [*cart(make, known), *tool_in("world", make)])

    with pytest.warns(
        UserWarning, match=r"base_link have 1 gap: 0\.0800 s after 0\.5800 s, interpolated"
    ):
        recording = read(path)

    assert len(recording.trajectory.times) == COUNT


def test_late_and_repeated_transforms_are_noted(tmp_path) -> None:
    make = Maker()
    moving = cart(make, [*range(COUNT), 3, 4])
    path = make.write(tmp_path / "a", [*moving, *tool_in("world", make)])

    with pytest.warns(
        UserWarning,
        match=r"/tf:world>base_link: samples sorted .* 2 messages .* \(messages 101 and 102\); "
        r"/tf:world>base_link: 2 repeated poses left out",
    ):
        read(path)


def test_tf_of_other_times_is_refused(tmp_path) -> None:
    make = Maker()
    moving = cart(make, range(1000, 1010))
    path = make.write(tmp_path / "a", [*moving, *tool_in("world", make)])

    with pytest.raises(InputFileError, match="they do not overlap in time"):
        read(path)


def test_a_still_transform_that_changes_is_refused(tmp_path) -> None:
    make = Maker()
    places = [(0, "world", "base_link", (x, 0.0, 0.0, *LEVEL)) for x in (1.0, 1.0, 1.1)]
    still = [("/tf_static", make.transforms(place)) for place in places]
    path = make.write(tmp_path / "a", [*still, *tool_in("world", make)])

    with pytest.raises(InputFileError, match="its message 3 has another pose than message 1"):
        read(path)


def test_two_ways_between_frames_are_refused(tmp_path) -> None:
    make = Maker()
    first = (0, "world", "base_link", (1.0, 0.0, 0.0, *LEVEL))
    others = [
        (0, "world", "table", (0, 0, 0, *LEVEL)),
        (0, "table", "base_link", (2, 0, 0, *LEVEL)),
    ]
    path = make.write(
        tmp_path / "a", [("/tf_static", make.transforms(first, *others)), *tool_in("world", make)]
    )

    recording = read(path)

    assert recording.frame == "world"
    assert "in more than one way" in recording.tf_fault


@pytest.mark.parametrize(
    "options", [{"transform": (0.0,) * 6 + (1.0,)}, {"anchor": "start"}, {"frame": "base"}]
)
def test_a_placement_by_flag_replaces_tf(tmp_path, options) -> None:
    make = Maker()
    still = ("/tf_static", make.transforms((0, "world", "base_link", (1.0, 0.0, 0.0, *LEVEL))))
    path = make.write(tmp_path / "a", [still, *tool_in("world", make)])

    recording = read(path, **options)

    assert recording.frame == "world"
    np.testing.assert_allclose(recording.trajectory.poses[:, 0], 0.01 * np.arange(COUNT))


def test_a_frame_of_tf_is_placed_too(tmp_path) -> None:
    make = Maker()
    still = ("/tf_static", make.transforms((0, "world", "base_link", (1.0, 0.0, 0.0, *LEVEL))))
    moving = [
        (
            "/tf",
            make.transforms((EPOCH + k * STEP, "world", "tool", (2.0 + 0.01 * k, 0, 0, *LEVEL))),
        )
        for k in range(COUNT)
    ]
    path = make.write(tmp_path / "a", [still, *moving])

    for options in ({}, {"frames": ("world", "tool")}, {"topic": "/tf:tool"}):
        motion = read(path, **options).trajectory

        np.testing.assert_allclose(motion.poses[:, 0], 1.0 + 0.01 * np.arange(COUNT))
