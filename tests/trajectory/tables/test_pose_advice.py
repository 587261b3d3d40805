"""A refused table of poses gets flags that read it at once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from tests.properties import variants
from tests.trajectory.tables.advice import follow_advice
from tests.trajectory.tables.motions import NS, POSES, TURNS, assert_same, refusal, rows

TIMES = NS / 1e9
AXES = ("x", "y", "z", "qx", "qy", "qz", "qw")
# The same motion, 50 mm aside.
ASIDE = POSES + np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
# The numbers of a pose in a file with w first.
W_FIRST = (0, 1, 2, 6, 3, 4, 5)


def names_of(pattern: str) -> list[str]:
    return [pattern.format(axis) for axis in AXES]


# Separators, and what a header begins with.
LAYOUTS = list(itertools.product((",", ";", "\t"), ("", "# ")))


@pytest.mark.slow
@pytest.mark.parametrize("layout", variants(LAYOUTS, (",", ""), ("\t", "# ")))
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("hand_{}", "elbow_{}"),
        ("{}_hand", "{}_elbow"),
        ("left_arm.{}", "right_arm.{}"),
        ("{}1", "{}2"),
        ("/tracker_1/pose/{}", "/tracker_2/pose/{}"),
        ("{}_L", "{}_R"),
        ("actual_{}", "desired_{}"),
    ],
)
def test_of_two_bodies_each_has_a_flag(write_table, first, second, layout) -> None:
    separator, mark = layout
    table = np.column_stack([TIMES, POSES, ASIDE]).tolist()
    header = separator.join(["t", *names_of(first), *names_of(second)])
    path = write_table(table, mark + header, separator=separator)

    one, other = follow_advice(path)

    assert_same(one)
    assert np.array_equal(other.poses, ASIDE)


@pytest.mark.slow
def test_many_bodies_are_counted(write_table) -> None:
    names = [name for body in range(20) for name in names_of(f"object{body}_{{}}")]
    path = write_table(np.column_stack([TIMES, *[POSES] * 20]).tolist(), ",".join(["t", *names]))

    motions = follow_advice(path)

    assert len(motions) == 6
    assert "and 14 more in the same way: object6, object7" in refusal(path)


def test_a_rotation_vector_belongs_to_its_body(write_table) -> None:
    vector = np.column_stack([POSES[:, :3], TURNS])
    axes = ("x", "y", "z", "rx", "ry", "rz")
    names = ["t", *(f"{body}_{axis}" for body in ("hand", "elbow") for axis in axes)]
    path = write_table(np.column_stack([TIMES, vector, vector + 0.1]).tolist(), ",".join(names))

    one, _ = follow_advice(path)

    assert_same(one, 1e-9)


def test_velocities_are_no_poses(write_table) -> None:
    names = ["t", *names_of("hand_{}"), *(f"hand_vel_{axis}" for axis in "xyz")]
    path = write_table(np.column_stack([TIMES, POSES, POSES[:, :3]]).tolist(), ",".join(names))

    (motion,) = follow_advice(path)

    assert_same(motion)


@pytest.mark.parametrize(
    "components",
    ["w i j k", "q_w q_i q_j q_k", "qr qi qj qk", "quatReal quatI quatJ quatK"],
)
def test_w_i_j_k_is_a_quaternion(write_table, components: str) -> None:
    header = ",".join(["t", "x", "y", "z", *components.split()])

    assert_same(read_trajectory(write_table(rows(TIMES, order=W_FIRST), header)))


@pytest.mark.parametrize("name", ["qwxyz[{}]", "q_wxyz_{}", "quatwxyz{}"])
def test_an_order_in_the_name_is_the_order(write_table, name: str) -> None:
    header = ",".join(["t", "x", "y", "z", *(name.format(i) for i in range(4))])

    assert_same(read_trajectory(write_table(rows(TIMES, order=W_FIRST), header)))


@pytest.mark.parametrize("time", ["camera_stamp", "Zeit", ""])
@pytest.mark.parametrize("position", ["{}", "hand_{}"])
def test_a_numbered_quaternion_gets_both_orders_whole(write_table, time, position) -> None:
    names = [*(position.format(axis) for axis in "xyz"), *(f"q{i}" for i in range(1, 5))]
    path = write_table(rows(TIMES, order=W_FIRST), ",".join([time, *names]))

    w_last, w_first = follow_advice(path)

    assert_same(w_first)
    assert np.array_equal(w_last.poses[:, 3:], POSES[:, [6, 3, 4, 5]])


def test_a_table_without_time_gets_the_rate_with_the_columns(write_table) -> None:
    path = write_table(
        np.column_stack([POSES, ASIDE]).tolist(),
        ",".join([*names_of("hand_{}"), *names_of("elbow_{}")]),
    )

    one, other = follow_advice(path)

    assert_same(one)
    assert np.array_equal(other.poses, ASIDE)


def test_two_unknown_times_are_offered(write_table) -> None:
    table = [[t, t + 0.1, *row] for t, row in zip(TIMES, POSES, strict=True)]
    path = write_table(table, ",".join(["time_sent", "time_received", *AXES]))

    sent, received = follow_advice(path)

    assert sent.times[0] == 0.0
    assert received.times[0] == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["frame_time", "exposure_time", "cycle_time"])
def test_a_length_of_time_is_not_offered(write_table, name: str) -> None:
    path = write_table(rows([0.02] * len(TIMES)), ",".join([name, *AXES]))

    assert refusal(path).endswith("A table without a time column needs --rate HZ")


@pytest.mark.parametrize(
    "names", ["t,x,y,z", "t,hand_x,hand_y,hand_z", "t,x,y,z,roll,pitch,yaw", "t,x,y,z,A,B,C"]
)
def test_without_a_rotation_no_flag_is_offered(write_table, names: str) -> None:
    path = write_table(np.ones((5, names.count(",") + 1)).tolist(), names)

    assert follow_advice(path) == []
    assert "A pose needs a rotation" in refusal(path)


@pytest.mark.parametrize("time", ["camera_stamps", "t"])
def test_arrays_get_whole_advice(tmp_path, time: str) -> None:
    arrays = {time: TIMES, "hand": POSES[:, :3], "hand_quat": POSES[:, 3:]}
    np.savez(tmp_path / "a.npz", **arrays)

    w_last, _ = follow_advice(tmp_path / "a.npz")

    assert_same(w_last)


def test_an_array_of_six_numbers_has_two_readings(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", stamp_a=TIMES, data=np.column_stack([POSES[:, :3], TURNS]))

    pose, joints = follow_advice(tmp_path / "a.npz")

    assert_same(pose, 1e-9)
    assert joints.joints is not None


@pytest.fixture
def matrices():
    """Matrices of the poses (T, 4, 4), without their rotations."""
    matrices = np.tile(np.eye(4), (len(POSES), 1, 1))
    matrices[:, :3, 3] = POSES[:, :3]
    return matrices


def test_of_two_arrays_of_matrices_one_is_chosen(tmp_path, matrices) -> None:
    np.savez(tmp_path / "a.npz", t=TIMES, T_hand=matrices, T_elbow=2.0 * matrices - np.eye(4))

    hand, elbow = follow_advice(tmp_path / "a.npz")

    assert np.array_equal(hand.poses[:, :3], POSES[:, :3])
    assert np.allclose(elbow.poses[:, :3], 2.0 * POSES[:, :3])


def test_a_time_is_chosen_beside_matrices(tmp_path, matrices) -> None:
    np.savez(tmp_path / "a.npz", camera_stamps=TIMES, poses=matrices)

    (motion,) = follow_advice(tmp_path / "a.npz")

    assert motion.times == pytest.approx(TIMES)


def test_unknown_names_in_a_comment_are_not_ignored(write_table) -> None:
    """Eight numbers a line below such a comment are not TUM's."""
    path = write_table(rows(TIMES), "# a,b,c,d,e,f,g,h")

    motion, _ = follow_advice(path)

    assert_same(motion)
