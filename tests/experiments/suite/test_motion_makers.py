"""What the suite asks of an arm can be done where it says so: pinocchio decides."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simbridge.experiments.arm import dexterity, within_limits
from simbridge.experiments.suite.motion_makers import make_motions
from simbridge.experiments.suite.poses import make_pose_sets
from simbridge.experiments.suite.stage import set_stage
from simbridge.experiments.suite.streams import make_streams
from simbridge.experiments.suite.suite_motion import PoseSet, SuiteMotion
from simbridge.robot import load_robot
from tests.experiments.pinocchio_following import TOLERANCE, follow

pytestmark = pytest.mark.shares_setup

UR10 = load_robot("ur10")
PLANAR = load_robot("planar3r")

# Every how many samples of a motion are solved, and if there is nothing to find between them.
STRIDE = 10
LONG_STRIDE = 40

ArmMotions = tuple[dict[str, SuiteMotion], dict[str, PoseSet], list[str]]


@cache
def motions_of(robot_name: str) -> ArmMotions:
    motions, pose_sets, notes = make_motions(load_robot(robot_name), seed=0)
    by_name = {motion.name: motion for motion in motions}
    return by_name, {poses.name: poses for poses in pose_sets}, notes


@pytest.mark.parametrize("name", ["ur10", "planar3r"])
def test_targets_in_reach_are_attained(name):
    robot = load_robot(name)
    motions, _, _ = motions_of(name)

    for motion in motions.values():
        targets = motion.targets[motion.in_reach][::LONG_STRIDE]
        joints, errors = follow(robot, targets, motion.start)
        assert errors.max() < TOLERANCE, motion.name
        assert within_limits(robot, joints), motion.name


@pytest.mark.parametrize("name", ["ur10", "planar3r"])
def test_every_motion_starts_at_its_first_target(name):
    robot = load_robot(name)
    motions, _, _ = motions_of(name)

    for motion in motions.values():
        joints, errors = follow(robot, motion.targets[:1], motion.start)
        assert errors[0] < TOLERANCE, motion.name
        np.testing.assert_allclose(joints[0], motion.start, atol=1e-4, err_msg=motion.name)


def test_a_ur_arm_makes_every_motion():
    motions, pose_sets, notes = motions_of("ur10")

    assert notes == []
    assert list(pose_sets) == ["random_poses", "near_singularities", "out_of_reach"]
    assert {"square", "corners", "figure_eight", "helix", "lissajous", "iso_cube"} <= set(motions)
    assert {"wrist_singularity", "elbow_singularity", "shoulder_singularity"} <= set(motions)
    assert {"past_the_edge", "closed_loop", "joint_limit"} <= set(motions)
    assert {"stream_30_hz", "stream_10_hz", "stream_5_hz", "dropouts", "noise"} <= set(motions)
    assert {"far_step", "turn_beyond_pi"} <= set(motions)
    assert {"hand_transport", "hand_wiping", "hand_screwing"} <= set(motions)


def test_what_a_planar_arm_cannot_do_is_noted():
    motions, _, notes = motions_of("planar3r")

    left_out = [note.split()[0] for note in notes]
    assert left_out == ["iso_cube", "joint_limit", "turn_beyond_pi"]
    assert not set(left_out) & set(motions)
    for motion in motions.values():
        assert np.ptp(motion.targets[:, 2]) == pytest.approx(0.0, abs=1e-12), motion.name


@pytest.mark.parametrize("part", ["wrist", "elbow", "shoulder"])
def test_dexterity_falls_at_a_singularity(part):
    motion = motions_of("ur10")[0][f"{part}_singularity"]

    joints, _ = follow(UR10, motion.targets[::STRIDE], motion.start)
    ratios = dexterity(UR10, joints)

    nearest = int(np.argmin(ratios))
    assert 0 < nearest < len(ratios) - 1
    assert ratios[nearest] < 0.03
    assert ratios[nearest] < 0.5 * min(ratios[0], ratios[-1])


@pytest.mark.parametrize("name", ["ur10", "planar3r"])
def test_the_edge_is_crossed_and_crossed_back(name):
    motion = motions_of(name)[0]["past_the_edge"]

    crossings = np.flatnonzero(np.diff(motion.in_reach.astype(int)))
    assert motion.in_reach[0]
    assert motion.in_reach[-1]
    assert len(crossings) == 2

    beyond = motion.targets[~motion.in_reach]
    _, errors = follow(load_robot(name), beyond[len(beyond) // 2 :][:1], motion.start)
    assert errors[0] > 1e-3


def test_a_joint_moves_along_its_limit():
    motion = motions_of("ur10")[0]["joint_limit"]

    joints, _ = follow(UR10, motion.targets, motion.start)

    distances = np.minimum(UR10.position_max - joints, joints - UR10.position_min)
    assert distances.min() == pytest.approx(0.002, abs=1e-4)


def test_laps_are_equal():
    motion = motions_of("ur10")[0]["closed_loop"]

    samples_per_lap = (len(motion.targets) - 1) // motion.loops
    ends = motion.targets[::samples_per_lap]

    assert motion.loops == 10
    assert len(ends) == 11
    np.testing.assert_allclose(ends, np.tile(ends[0], (11, 1)), atol=1e-9)


def test_a_stream_is_held_between_samples():
    motion = motions_of("ur10")[0]["stream_10_hz"]

    new = np.flatnonzero(np.any(np.diff(motion.targets, axis=0) != 0.0, axis=1))
    intervals = np.diff(new) * UR10.period

    assert motion.reference is not None
    assert np.mean(intervals) == pytest.approx(0.1, rel=0.1)
    assert np.std(intervals) > 0.005


def test_the_tool_turns_by_more_than_pi_with_either_sign():
    motion = motions_of("ur10")[0]["turn_beyond_pi"]
    assert motion.reference is not None

    quaternions = motion.reference[:, 3:]
    cosines = np.abs(np.einsum("ij,ij->i", quaternions[1:], quaternions[:-1]))
    turned = 2.0 * np.arccos(np.clip(cosines, 0.0, 1.0)).sum()
    products = np.einsum("ij,ij->i", motion.targets[1:, 3:], motion.targets[:-1, 3:])

    assert turned > np.pi
    assert (products < 0.0).any()
    assert (products > 0.0).any()


def test_tremor_is_not_in_the_reference_of_a_hand():
    motion = motions_of("ur10")[0]["hand_transport"]
    assert motion.reference is not None

    # It is at rest before it reaches for something.
    still = motion.reference[:20]
    trembling = motion.targets[:20]

    assert np.ptp(still[:, 0]) < 1e-9
    assert 1e-4 < np.ptp(trembling[:, 0]) < 3e-3


def test_the_same_seed_makes_the_same_motions():
    first, first_poses, _ = motions_of("planar3r")
    stage = set_stage(PLANAR)
    # The other motions take no seed.
    again = make_streams(stage, seed=0, notes=[])
    poses_again = make_pose_sets(PLANAR, seed=0, notes=[])
    other = make_streams(stage, seed=1, notes=[])

    assert {"dropouts", "noise"} <= {motion.name for motion in again} < first.keys()
    assert [poses.name for poses in poses_again] == list(first_poses)
    for motion in again:
        np.testing.assert_array_equal(motion.targets, first[motion.name].targets)
    for poses in poses_again:
        np.testing.assert_array_equal(poses.targets, first_poses[poses.name].targets)
        np.testing.assert_array_equal(poses.starts, first_poses[poses.name].starts)
    noise = next(motion for motion in other if motion.name == "noise")
    assert not np.array_equal(noise.targets, first["noise"].targets)


# Those that take a seed, in test_the_same_seed_makes_the_same_motions.
@pytest.mark.soak
def test_every_motion_is_the_same_once_more():
    first, first_poses, first_notes = motions_of("planar3r")
    again, poses_again, notes = make_motions(PLANAR, seed=0)

    assert notes == first_notes
    assert [motion.name for motion in again] == list(first)
    assert [poses.name for poses in poses_again] == list(first_poses)
    for motion in again:
        np.testing.assert_array_equal(motion.targets, first[motion.name].targets)
    for poses in poses_again:
        np.testing.assert_array_equal(poses.targets, first_poses[poses.name].targets)
        np.testing.assert_array_equal(poses.starts, first_poses[poses.name].starts)


def test_poses_out_of_reach_are_just_out_of_reach():
    poses = motions_of("ur10")[1]["out_of_reach"]

    assert not poses.reachable
    for target, start in zip(poses.targets[:3], poses.starts[:3], strict=True):
        _, errors = follow(UR10, target[None], start)
        assert errors[0] > 1e-3


def test_a_gantry_only_shifts_its_tool(tmp_path):
    slides = ""
    parent = "base_link"
    for number, axis in enumerate(("1 0 0", "0 1 0", "0 0 1"), start=1):
        slides += f"""
  <link name="link_{number}"><inertial><mass value="1"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="slide_{number}" type="prismatic"><parent link="{parent}"/>
    <child link="link_{number}"/><axis xyz="{axis}"/>
    <limit lower="-0.5" upper="0.5" velocity="1" effort="100"/></joint>"""
        parent = f"link_{number}"
    path = tmp_path / "gantry.urdf"
    path.write_text(f'<robot name="gantry"><link name="base_link"/>{slides}</robot>')

    with pytest.warns(UserWarning, match="no home posture"):
        robot = load_robot(str(path))

    motions, pose_sets, notes = make_motions(robot, seed=0)

    names = {motion.name for motion in motions}
    assert {"square", "iso_cube", "joint_limit", "noise", "hand_wiping"} <= names
    assert not any("singularity" in name for name in names)
    assert pose_sets[0].name == "random_poses"
    for motion in motions:
        assert np.ptp(motion.targets[:, 3:], axis=0).max() < 1e-9, motion.name
    assert any(note.startswith("turn_beyond_pi is left out") for note in notes)
