"""Tables of poses as other programs write them: what is understood is the motion, and what is
ambiguous is refused.
"""

from __future__ import annotations

import re
import sys

import numpy as np
import pinocchio as pin
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from simbridge.errors import InputFileError, InvalidParameter, MissingPackage
from simbridge.robot import pose
from simbridge.trajectory import Trajectory, read_trajectory
from simbridge.trajectory.files import read_recording
from simbridge.trajectory.read_options import ReadOptions

same_directory = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15
)

COUNT = 40
STEP = 20_000_000
EPOCH = 1_764_097_182_123_456_789
NS = np.arange(COUNT) * STEP
TURNS = np.column_stack(
    [np.linspace(0.1, 1.0, COUNT), np.linspace(0.5, -0.3, COUNT), np.full(COUNT, 2.0)]
)
POSES = np.column_stack(
    [
        0.7 + 0.004 * np.arange(COUNT),
        0.1 - 0.001 * np.arange(COUNT),
        np.full(COUNT, 0.3),
        pose.quaternions(TURNS),
    ]
)


@pytest.fixture
def write(tmp_path):
    """Writes rows below lines of a header, and returns the path."""

    def write(rows, *header, separator=",", name="motion.csv"):
        lines = [*header, *(separator.join(map(str, row)) for row in rows)]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def rows(times, poses=POSES, order=range(7)):
    return [[time, *row] for time, row in zip(times, poses[:, list(order)].tolist(), strict=True)]


def assert_same(read: Trajectory, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(read.elapsed, NS / 1e9, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(read.poses, POSES, rtol=0.0, atol=tolerance)


def refusal(path, **options) -> str:
    with pytest.raises(InputFileError) as caught:
        read_recording(path, ReadOptions(**options))
    return str(caught.value)


# Columns


def test_the_columns_of_pandas_are_known(write) -> None:
    read = read_trajectory(write(rows(NS / 1e9), "timestamp,px,py,pz,ox,oy,oz,ow"))

    assert_same(read)
    assert read.read_as == "40 poses, 50 Hz, header names px.., metres, xyzw, time in s"


@pytest.mark.parametrize("prefix", ["tcp", "tool", "ee", "pose"])
def test_positions_of_a_named_tool_are_known(write, prefix: str) -> None:
    places, turns = (
        ",".join(f"{prefix}_{axis}" for axis in axes)
        for axes in (("x", "y", "z"), ("qx", "qy", "qz", "qw"))
    )

    assert_same(read_trajectory(write(rows(NS / 1e9), f"t,{places},{turns}")))
    # Those of something else are not the tool's.
    assert_same(
        read_trajectory(
            write(
                [[*row, 1, 2, 3] for row in rows(NS / 1e9)],
                f"t,{places},{turns},force_x,vel_y,acc_z",
            )
        )
    )


@pytest.mark.parametrize(
    "time", ["ts", "seconds", "Time/s", "sim_time", "ros_time", "time_since_start"]
)
def test_further_time_names_come_second(write, time: str) -> None:
    assert_same(read_trajectory(write(rows(NS / 1e9), f"{time},x,y,z,qx,qy,qz,qw")))
    assert_same(
        read_trajectory(
            write([[1.0, *row] for row in rows(NS / 1e9)], f"{time},t,x,y,z,qx,qy,qz,qw")
        )
    )


@pytest.mark.parametrize("time", ["ts", "sec", "seconds", "sim_time"])
def test_a_rate_leaves_the_plainest_time(write, time: str) -> None:
    table = [[k % 7, *row] for k, row in enumerate(POSES)]

    assert_same(read_trajectory(write(table, f"{time},x,y,z,qx,qy,qz,qw"), rate=50.0))


def test_a_frames_length_is_no_time(write) -> None:
    table = rows(np.full(COUNT, 0.02))

    assert "does not name t;" in refusal(write(table, "frame_time,x,y,z,qx,qy,qz,qw"))
    assert_same(read_trajectory(write(table, "frame_time,x,y,z,qx,qy,qz,qw"), rate=50.0))


@pytest.mark.parametrize("rest", ["msec", "usec", "microsec", "milliseconds"])
def test_seconds_beside_a_fraction_are_ambiguous(write, rest: str) -> None:
    table = [[k, k % 4, *row] for k, row in enumerate(POSES)]

    assert f"more than one column is t: sec, {rest};" in refusal(
        write(table, f"sec,{rest},x,y,z,qx,qy,qz,qw")
    )


@pytest.mark.parametrize(
    ("pose", "others"),
    [
        ("x,y,z,qx,qy,qz,qw", "tcp_x,tcp_y,tcp_z"),
        ("px,py,pz,qx,qy,qz,qw", "tool_x,tool_y,tool_z"),
        ("position.x,position.y,position.z,qx,qy,qz,qw", "pose_x,pose_y,pose_z"),
        ("x,y,z,qx,qy,qz,qw", "object.x_pos,object.y_pos,object.z_pos"),
        ("x,y,z,qx,qy,qz,qw", "x_rot,y_rot,z_rot"),
        ("px,py,pz,qx,qy,qz,qw", "marker_xyz_0,marker_xyz_1,marker_xyz_2"),
        ("x,y,z,qx,qy,qz,qw", "time_stamp,recv_time,sec"),
    ],
)
def test_plain_names_are_preferred_to_further_ones(write, pose: str, others: str) -> None:
    assert_same(
        read_trajectory(write([[*row, 1, 2, 3] for row in rows(NS / 1e9)], f"t,{pose},{others}"))
    )


def test_a_rotation_vector_beats_further_names(write) -> None:
    table = [
        [t, *row[:3], *turn, 0, 0, 0, 1]
        for t, row, turn in zip(NS / 1e9, POSES, TURNS, strict=True)
    ]

    assert_same(read_trajectory(write(table, "t,x,y,z,rx,ry,rz,x_rot,y_rot,z_rot,w_rot")), 1e-9)


@pytest.mark.parametrize(
    "others", ["x_rot,y_rot,z_rot,w_rot", "rotvec[0],rotvec[1],rotvec[2],note"]
)
def test_a_numbered_quaternion_beats_further_names(write, others: str) -> None:
    header = f"t,x,y,z,quat_xyzw_0,quat_xyzw_1,quat_xyzw_2,quat_xyzw_3,{others}"

    assert_same(read_trajectory(write([[*row, 0, 0, 0, 1] for row in rows(NS / 1e9)], header)))


def test_all_candidates_of_further_names_are_named(write) -> None:
    path = write(
        [[*row, 1, 2, 3] for row in rows(NS / 1e9)],
        "t,p[0],p[1],p[2],qx,qy,qz,qw,tcp_x,tcp_y,tcp_z",
    )

    assert "more than one column is x: p[0], tcp_x;" in refusal(path)


def test_tx_beside_a_position_is_ambiguous(write) -> None:
    path = write(
        [[*row, 1, 2, 3] for row in rows(NS / 1e9)], "t,tcp_x,tcp_y,tcp_z,qx,qy,qz,qw,tx,ty,tz"
    )

    assert "more than one column is x: tcp_x, tx; y: tcp_y, ty; z: tcp_z, tz;" in refusal(path)


@pytest.mark.parametrize("name", ["p", "pos", "xyz", "joint_position"])
def test_six_numbered_columns_are_no_position(write, name: str) -> None:
    table = [[t, *row[3:], *range(6)] for t, row in zip(NS / 1e9, POSES, strict=True)]
    joints = ",".join(f"{name}_{k}" for k in range(6))

    assert "does not name x, y, z;" in refusal(write(table, f"t,qx,qy,qz,qw,{joints}"))


def test_three_p_columns_need_a_position(write) -> None:
    for name in ("position", "pos"):
        assert_same(
            read_trajectory(write(rows(NS / 1e9), f"t,{name}_0,{name}_1,{name}_2,qx,qy,qz,qw"))
        )
    assert "does not name x, y, z;" in refusal(write(rows(NS / 1e9), "t,p_0,p_1,p_2,qx,qy,qz,qw"))


@pytest.mark.parametrize("turns", ["rx,ry,rz,rw", "x_rot,y_rot,z_rot,w_rot"])
def test_axis_names_may_be_first_or_last(write, turns: str) -> None:
    for places in ("x_pos,y_pos,z_pos", "X-Position,Y-Position,Z-Position"):
        read = read_trajectory(write(rows(NS / 1e9), f"t,{places},{turns}"))

        assert_same(read)
        assert "xyzw" in read.read_as


def test_all_ambiguous_columns_are_named(write) -> None:
    wrench = [[*row, 0, 0, 0] for row in rows(NS / 1e9)]

    path = write(wrench, "t,x,y,z,qx,qy,qz,qw,tx,ty,tz")

    assert (
        "is x: x, tx; y: y, ty; z: z, tz; rename the others, or choose: "
        "--columns x=NAME,y=NAME,z=NAME"
    ) in refusal(path)
    assert_same(read_trajectory(path, columns="x=x,y=y,z=z"))


def test_tabs_allow_blanks_within_fields(write) -> None:
    poses = POSES * [1e3, 1e3, 1e3, 1, 1, 1, 1]
    header = "Time (s)\tPos X (mm)\tPos Y (mm)\tPos Z (mm)\tqx\tqy\tqz\tqw"

    assert_same(read_trajectory(write(rows(NS / 1e9, poses), header, separator="\t")))

    times = [str(np.datetime64(EPOCH + int(t), "ns")).replace("T", " ") for t in NS]

    read = read_trajectory(write(rows(times), separator="\t"))

    assert_same(read)
    assert read.epoch_ns == EPOCH


def test_a_tab_among_blanks_separates_like_them(write) -> None:
    lines = [f"{row[0]}\t{' '.join(map(str, row[1:]))}" for row in rows(NS / 1e9)]

    assert_same(read_trajectory(write([[line] for line in lines])))


def test_blanks_separate_where_tabs_do_not(write) -> None:
    plain = [
        [f"{t}\t{' '.join(map(str, row[:3]))}\t{' '.join(map(str, row[3:]))}"]
        for t, *row in rows(NS / 1e9)
    ]

    assert_same(read_trajectory(write(plain, "t\tx y z\tqx qy qz qw")))

    lines = ["\t".join(map(str, row)) for row in rows(NS / 1e9)]
    for k, separator in ((5, "\t\t"), (7, " ")):
        lines[k] = lines[k].replace("\t", separator)

    assert_same(read_trajectory(write([[line] for line in lines])))
    assert_same(read_trajectory(write([[line] for line in lines], "t\tx\ty\tz\tqx\tqy\tqz\tqw")))


def test_the_farther_readings_fault_is_named(write) -> None:
    table = rows(NS / 1e9)
    table[3][2] = ""

    assert "line 5, y: a number is missing" in refusal(
        write(table, "t\tx\ty\tz\tqx\tqy\tqz\tqw", separator="\t")
    )


def test_a_table_may_begin_with_any_column(write) -> None:
    for name in ("motion.json", "motion.mat", "motion.toml"):
        assert_same(read_trajectory(write(rows(NS / 1e9), "t,x,y,z,qx,qy,qz,qw", name=name)))

    path = write(rows(np.arange(COUNT)), "t,x,y,z,qx,qy,qz,qw", name="motion.json")

    assert "omit --rate" in refusal(path, rate=50.0)

    table = [[1, *row] for row in rows(NS / 1e9)]

    for first in ("joints", "devices", "trajectories"):
        assert_same(read_trajectory(write(table, f"{first},t,x,y,z,qx,qy,qz,qw")))


def test_fields_in_quotation_marks_are_read(write) -> None:
    quoted = [[f'"{value}"' for value in row] for row in rows(NS / 1e9)]

    assert_same(read_trajectory(write(quoted, '"timestamp","px","py","pz","ox","oy","oz","ow"')))


ECHO = (
    "%time,field.header.seq,field.header.stamp,field.header.frame_id,field.pose.position.x,"
    "field.pose.position.y,field.pose.position.z,field.pose.orientation.x,field.pose.orientation.y,"
    "field.pose.orientation.z,field.pose.orientation.w"
)


def test_rostopic_echo_has_stamps_and_frame(write) -> None:
    lines = [
        [EPOCH + t + 777, k, EPOCH + t, "map", *row]
        for k, (t, row) in enumerate(zip(NS, POSES, strict=True))
    ]

    recording = read_recording(write(lines, ECHO))

    assert_same(recording.trajectory)
    assert recording.trajectory.epoch_ns == EPOCH
    assert recording.frame == "map"


def test_a_changing_frame_is_refused_by_line(write) -> None:
    lines = [
        [t, k, t, "map" if k < 7 else "odom", *row]
        for k, (t, row) in enumerate(zip(NS, POSES, strict=True))
    ]

    assert re.search(
        r"line 9, frame_id: the frame is 'odom' here, 'map' before", refusal(write(lines, ECHO))
    )


ROS2 = {
    "PoseStamped": (["tool"], 0),
    "TransformStamped": (["base", "tool"], 0),
    "PoseWithCovarianceStamped": (["map"], 36),
    "Odometry": (["odom", ""], 36 + 6 + 36),
}


@pytest.mark.parametrize("message", ROS2)
def test_ros2_topic_echo_is_known_by_length(write, message: str) -> None:
    frames, more = ROS2[message]
    lines = [
        [*divmod(EPOCH + int(t), 10**9), *frames, *row, *[0.0] * more]
        for t, row in zip(NS, POSES, strict=True)
    ]

    recording = read_recording(write(lines))

    assert_same(recording.trajectory)
    assert recording.trajectory.epoch_ns == EPOCH
    assert recording.frame == frames[0]
    assert f"ros2 topic echo of {message}" in recording.trajectory.read_as


@pytest.mark.parametrize("count", [9, 14, 30])
def test_another_number_of_fields_is_refused(write, count: int) -> None:
    message = refusal(write([[0.1] * count] * 3))

    assert f"{count} columns" in message
    assert "PoseStamped (10)" in message
    assert "--columns t=1,x=2" in message


@pytest.mark.parametrize("header", ["t,x,y,z,roll,pitch,yaw", "time,px,py,pz", ""])
def test_euler_angles_are_refused_with_advice(write, header: str) -> None:
    count = header.count(",") + 1 if header else 4

    message = refusal(write(np.ones((3, count)).tolist(), *filter(None, [header])))

    assert "convert roll, pitch and yaw first" in message
    assert "give positions alone a constant quaternion" in message


@pytest.mark.parametrize(
    "header",
    [
        "header.stamp.sec,header.stamp.nanosec,pose.position.x,pose.position.y,pose.position.z,"
        "pose.orientation.x,pose.orientation.y,pose.orientation.z,pose.orientation.w",
        "secs,nsecs,pos_x,pos_y,pos_z,rot_x,rot_y,rot_z,rot_w",
    ],
)
def test_stamps_in_two_columns_are_exact(write, header: str) -> None:
    lines = [[*divmod(EPOCH + int(t), 10**9), *row] for t, row in zip(NS, POSES, strict=True)]

    read = read_trajectory(write(lines, header))

    assert_same(read)
    assert read.epoch_ns == EPOCH


def test_topic_paths_in_names_are_known(write) -> None:
    tool = "/tool/pose"
    header = [
        "__time",
        *(f"{tool}/position/{axis}" for axis in "xyz"),
        *(f"{tool}/orientation/{a}" for a in "xyzw"),
    ]

    assert_same(read_trajectory(write(rows(NS / 1e9), ",".join(header))))


def test_odometry_means_its_pose(write) -> None:
    header = (
        "stamp,pose.pose.position.x,pose.pose.position.y,pose.pose.position.z,"
        "pose.pose.orientation.x,pose.pose.orientation.y,pose.pose.orientation.z,"
        "pose.pose.orientation.w,twist.twist.linear.x"
    )

    assert_same(read_trajectory(write([[*row, 9.0] for row in rows(NS / 1e9)], header)))


def test_scalar_first_quaternions_are_known_by_their_names(write) -> None:
    read = read_trajectory(
        write(rows(NS / 1e9, order=(0, 1, 2, 6, 3, 4, 5)), "t,x,y,z,qw,qx,qy,qz")
    )

    assert_same(read)
    assert ", wxyz," in read.read_as


def test_a_numbered_quaternion_needs_a_flag(
    write,
) -> None:
    path = write(rows(NS / 1e9, order=(0, 1, 2, 6, 3, 4, 5)), "t,x,y,z,quat_0,quat_1,quat_2,quat_3")
    message = refusal(path)

    first, second = re.findall(r"--columns (\S+?)(?:;|$)", message)

    assert first == "qx=quat_0,qy=quat_1,qz=quat_2,qw=quat_3"
    assert_same(read_trajectory(path, columns=second))
    np.testing.assert_allclose(
        read_trajectory(path, columns=first).poses[:, 3:], np.roll(POSES[:, 3:], 1, axis=1)
    )


def test_an_order_in_a_name_is_evidence(write) -> None:
    names = ",".join(f"orientation_quat_wxyz_{k}" for k in range(4))

    assert_same(
        read_trajectory(write(rows(NS / 1e9, order=(0, 1, 2, 6, 3, 4, 5)), f"t,x,y,z,{names}"))
    )


def test_columns_are_chosen_by_name_or_number(write) -> None:
    path = write([[7, *row] for row in rows(NS / 1e9)], "marker,when,left,up,forth,a,b,c,d")

    assert "does not name t, x" in refusal(path)
    assert_same(read_trajectory(path, columns="t=when,x=left,y=up,z=forth,qx=a,qy=b,qz=c,qw=9"))

    bare = write([[7, *row] for row in rows(NS / 1e9)], name="bare.csv")

    assert_same(read_trajectory(bare, columns="t=2,x=3,y=4,z=5,qx=6,qy=7,qz=8,qw=9"))
    assert "there is no column 'whe'" in refusal(
        path, columns="t=whe,x=left,y=up,z=forth,qx=a,qy=b,qz=c,qw=d"
    )


@pytest.mark.parametrize("text", ["when", "t=", "k=when", "t[mm]=when", "x[s]", "t=a,,x=b"])
def test_an_empty_choice_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="choice of columns"):
        ReadOptions(columns=text)


# Units

CLOCKS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}
LENGTHS = {"m": 1.0, "cm": 100.0, "mm": 1000.0}


@same_directory
@given(
    order=st.permutations(range(8)),
    clock=st.sampled_from(sorted(CLOCKS)),
    length=st.sampled_from(sorted(LENGTHS)),
    began=st.integers(0, 10**18),
)
def test_stated_units_read_back(write, order, clock, length, began) -> None:
    poses = POSES * np.array([LENGTHS[length]] * 3 + [1.0] * 4)
    whole = clock == "ns"
    times = [int(t) + began if whole else round(int(t) / CLOCKS[clock], 6) for t in NS]
    names = [f"t [{clock}]", *(f"{axis}_{length}" for axis in "xyz"), "qx", "qy", "qz", "qw"]
    table = rows(times, poses)

    read = read_trajectory(
        write([[row[k] for k in order] for row in table], ",".join(names[k] for k in order))
    )

    assert_same(read)


@pytest.mark.parametrize(
    "began", [0, EPOCH // STEP * STEP], ids=["since its beginning", "since 1970"]
)
@pytest.mark.parametrize("unit", CLOCKS)
@pytest.mark.parametrize("length", ["m", "mm"])
def test_units_that_nothing_states_follow_from_the_numbers(
    write, unit: str, length: str, began: int
) -> None:
    times = [
        repr((int(t) + began) / CLOCKS[unit])
        if unit == "s"
        else (int(t) + began) // int(CLOCKS[unit])
        for t in NS
    ]
    poses = POSES * np.array([LENGTHS[length]] * 3 + [1.0] * 4)

    read = read_trajectory(write(rows(times, poses), "t,x,y,z,qx,qy,qz,qw"))

    np.testing.assert_allclose(read.elapsed, NS / 1e9, rtol=0.0, atol=5e-7)
    np.testing.assert_allclose(read.poses, POSES, rtol=0.0, atol=1e-12)
    assert f"time in {unit}" in read.read_as
    assert f"{'metres' if length == 'm' else 'millimetres'}, " in read.read_as


def test_way_points_seconds_apart_stay_in_seconds(write) -> None:
    read = read_trajectory(
        write([[5 * k, 0.1 * k, 0.0, 0.3, 0, 0, 0, 1] for k in range(8)], "t,x,y,z,qx,qy,qz,qw")
    )

    np.testing.assert_array_equal(read.times, 5.0 * np.arange(8))


def test_seconds_or_milliseconds_need_a_flag(write) -> None:
    # 5 mm/s with a sample every 2 s, or 5 m/s with one every 2 ms.
    path = write(
        [[2 * k, 0.01 * k, 0.0, 0.3, 0, 0, 0, 1] for k in range(20)], "t,x,y,z,qx,qy,qz,qw"
    )

    message = refusal(path)

    assert "samples may be 2.00 s (s) or 0.00200 s (ms) apart" in message
    assert "--columns t[s] or --columns t[ms]" in message
    assert read_trajectory(path, columns="t[ms]").duration == pytest.approx(0.038)


def test_metres_or_millimetres_need_a_flag(write) -> None:
    path = write([[0.1 * k, 12.0, 0.0, 0.3, 0, 0, 0, 1] for k in range(3)], "t,x,y,z,qx,qy,qz,qw")

    assert "may be 12.0 m or 12.0 mm. Say which: --columns x[m] or --columns x[mm]" in refusal(path)
    assert read_trajectory(path, columns="x[mm]").start[0] == pytest.approx(0.012)
    assert read_trajectory(path, columns="x[m]").start[0] == 12.0


def test_a_partial_unit_is_refused(write) -> None:
    message = refusal(write(rows(NS / 1e9), "t,x_mm,y,z,qx,qy,qz,qw"))

    assert "some of these have a unit, others none: x_mm, y, z" in message

    table = [[t, *p, *turn] for t, p, turn in zip(NS / 1e9, POSES[:, :3], TURNS, strict=True)]

    assert "others none: rx_deg, ry, rz" in refusal(write(table, "t,x,y,z,rx_deg,ry,rz"))


def test_tum_has_its_units_with_a_note(write) -> None:
    path = write(rows(NS), separator=" ", name="motion.tum")

    with pytest.warns(
        UserWarning,
        match=r"in seconds and metres, as \.tum says.*20\.0 ms in ns; then add --columns t\[ns\]",
    ):
        assert read_trajectory(path).times[1] == STEP

    assert_same(read_trajectory(path, columns="t[ns]"))


def test_tum_in_millimetres_is_noted(write) -> None:
    path = write(
        rows(NS / 1e9, POSES * np.array([1e3] * 3 + [1.0] * 4)), separator=" ", name="motion.tum"
    )

    with pytest.warns(
        UserWarning,
        match=r"a position is 856 m from the origin\. If it is 856 mm, add --columns x\[mm\]",
    ):
        assert read_trajectory(path).start[0] == 700.0

    assert_same(read_trajectory(path, columns="x[mm]"))


def test_degrees_are_asked_for(write) -> None:
    table = [
        [t, *p, *turn] for t, p, turn in zip(NS / 1e9, POSES[:, :3], np.degrees(TURNS), strict=True)
    ]

    path = write(table, "t,x,y,z,rx,ry,rz")

    assert "--columns rx[deg]" in refusal(path)

    read = read_trajectory(path, columns="rx[deg]")

    np.testing.assert_allclose(read.poses, POSES, atol=1e-9)
    assert "rotation vector in deg" in read.read_as


@pytest.mark.parametrize("form", ["{}Z", "{}+00:00", '"{}"', "{}"])
def test_wall_clock_time_is_read_to_the_nanosecond(write, form: str) -> None:
    times = [form.format(np.datetime64(EPOCH + int(t), "ns")) for t in NS]

    read = read_trajectory(write(rows(times), "time,x,y,z,qx,qy,qz,qw"))

    assert_same(read)
    assert read.epoch_ns == EPOCH
    assert "wall clock" in read.read_as


def test_utc_offsets_and_blanks_are_read(write) -> None:
    times = [f"2025-11-25 19:00:0{k}.5+05:30" for k in range(3)]

    read = read_trajectory(write(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

    assert read.epoch_ns == int(np.datetime64("2025-11-25T13:30:00.5", "ns").astype(int))
    np.testing.assert_array_equal(read.times, [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    "form",
    [
        "2025/11/25 19:00:0{}.5",
        "2025-11-25 19:00:0{}.5 UTC",
        "2025-11-25 20:00:0{}.5+01",
        "2025-11-25 19:00:0{},5",
    ],
)
def test_other_year_first_dates_are_read(write, form: str) -> None:
    times = [form.format(k) for k in range(3)]

    read = read_trajectory(write(rows(times, POSES[:3]), "time;x;y;z;qx;qy;qz;qw", separator=";"))

    assert read.epoch_ns == int(np.datetime64("2025-11-25T19:00:00.5", "ns").astype(int))
    np.testing.assert_array_equal(read.times, [0.0, 1.0, 2.0])


def test_date_and_time_are_one_time(write) -> None:
    table = [["2025-11-25", *row] for row in rows([f"19:00:0{k}.5" for k in range(3)], POSES[:3])]

    read = read_trajectory(write(table, "date,time,x,y,z,qx,qy,qz,qw"))

    assert read.epoch_ns == int(np.datetime64("2025-11-25T19:00:00.5", "ns").astype(int))
    np.testing.assert_array_equal(read.times, [0.0, 1.0, 2.0])


def test_a_measurements_stamp_beats_date_and_time(write) -> None:
    stamps = EPOCH + NS
    table = [
        ["2025-11-25", "19:00:00", *divmod(int(t), 10**9), *row]
        for t, row in zip(stamps, POSES, strict=True)
    ]

    read = read_trajectory(
        write(table, "date,time,header.stamp.sec,header.stamp.nanosec,x,y,z,qx,qy,qz,qw")
    )

    assert_same(read)
    assert read.epoch_ns == EPOCH

    table = [["2025-11-25", "19:00:00", *row] for row in rows(NS / 1e9)]

    assert_same(read_trajectory(write(table, "date,time,header.stamp,x,y,z,qx,qy,qz,qw")))


@pytest.mark.parametrize("time", [185900 + np.arange(COUNT), 10 * np.arange(COUNT), EPOCH + NS])
def test_whole_number_dates_need_a_choice(write, tmp_path, time) -> None:
    table = [[20251125, *row] for row in rows(time)]

    path = write(table, "date,time,x,y,z,qx,qy,qz,qw")

    assert "is not a time; times of day are read as 2026-11-25 18:59:42.5" in refusal(path)
    assert "if time counts seconds: --columns t=time" in refusal(path)

    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    arrays = {
        "date": np.full(COUNT, 20251125),
        "time": time,
        **dict(zip(names, POSES.T, strict=True)),
    }

    np.savez(tmp_path / "a.npz", **arrays)

    assert f"'20251125 {time[0]}' is not a time" in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("offset", ["-99", "+1401", "-15:00"])
def test_an_offset_that_no_clock_has_is_refused(write, offset: str) -> None:
    times = [f"2025-11-25T19:00:0{k}{offset}" for k in range(3)]

    assert "is not a time" in refusal(write(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

    times = [f"2025-11-25T19:00:0{k}+14" for k in range(3)]

    assert read_trajectory(write(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw")).duration == 2.0


@pytest.mark.parametrize(
    "word", ["11/25/2025 19:00:00", "25.11.2025 19:00:00", "19:00:00.5", "2025-11-25 19:00:00 CEST"]
)
def test_another_time_of_day_is_refused(write, recwarn, word: str) -> None:
    message = refusal(write(rows([word] * 3, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

    assert f"line 2, time: '{word}' is not a" in message
    assert "read as 2026-11-25 18:59:42.5" in message
    assert not recwarn.list


def test_a_nameless_time_is_chosen_by_number(write) -> None:
    times = [str(np.datetime64(EPOCH + int(t), "ns")) for t in NS]

    path = write(rows(times), ",px,py,pz,qx,qy,qz,qw")

    assert "a column without a name is chosen by its number: t=1" in refusal(path)
    assert_same(read_trajectory(path, columns="t=1"))


def test_a_later_kind_of_time_is_refused(write) -> None:
    for word in ("noon", "1764097182", "NaT"):
        times = ["2025-11-25T19:00:00", "2025-11-25T19:00:01", word]

        message = refusal(write(rows(times, POSES[:3]), "time,x,y,z,qx,qy,qz,qw"))

        assert f"line 4, time: '{word}' is not a time" in message


# Without time


def test_kitti_needs_the_rate(write) -> None:
    table = [[1, 0, 0, 0.7, 0, -1, 0, 0.1, 0, 0, -1, 0.3 + 0.01 * k] for k in range(5)]

    path = write(table, separator=" ", name="00.txt")

    assert "12 numbers a line, as in KITTI's files, have no time: add --rate HZ" in refusal(path)

    read = read_trajectory(path, rate=50.0)

    np.testing.assert_allclose(read.times, np.arange(5) / 50.0)
    np.testing.assert_allclose(read.poses[2], [0.7, 0.1, 0.32, 1.0, 0.0, 0.0, 0.0], atol=1e-12)


def test_twelve_numbers_that_are_no_pose_are_refused(write) -> None:
    assert "not a rotation matrix" in refusal(write([[1.0] * 12] * 3), rate=50.0)


def test_a_rate_replaces_only_the_time(write) -> None:
    path = write(POSES.tolist(), "px,py,pz,qx,qy,qz,qw")

    assert "does not name t;" in refusal(path)
    assert "--rate HZ" in refusal(path)
    assert_same(read_trajectory(path, rate=50.0))
    assert "it has times (t); omit --rate" in refusal(
        write(rows(NS / 1e9), name="timed.csv"), rate=50.0
    )


def test_seven_bare_numbers_are_ambiguous(write) -> None:
    path = write(POSES.tolist())

    message = refusal(path)

    assert "may be t x y z rx ry rz, or x y z qx qy qz qw without time" in message
    assert_same(read_trajectory(path, rate=50.0))
    assert len(read_trajectory(path, columns="t=1,x=2,y=3,z=4,rx=5,ry=6,rz=7").times) == COUNT


# Motion capture


def motive(names=("Tool",), unit="Millimeters", kind="Quaternion", label=",Type") -> list[str]:
    """The header of an export of Motive, with markers between the rigid bodies."""
    width = [
        ("Rigid Body", "Rotation", "XYZW"),
        ("Rigid Body", "Position", "XYZ"),
        ("Rigid Body Marker", "Position", "XYZ"),
    ]
    kinds = []
    titles = []
    groups = []
    axes = []
    for name in names:
        for what, group, letters in width:
            title = name if what == "Rigid Body" else f"{name}:Marker1"
            for axis in letters:
                (
                    kinds.append(what),
                    titles.append(f'"{title}"'),
                    groups.append(group),
                    axes.append(axis),
                )
    about = (
        "Format Version,1.23,Take Name,Take 1,Capture Frame Rate,120.000000,"
        "Export Frame Rate,50.000000"
    )
    return [
        f"{about},Rotation Type,{kind},Length Units,{unit},Coordinate Space,Global",
        "",
        f"{label},{','.join(kinds)}",
        f",{'Name' if label != ',' else ''},{','.join(titles)}",
        f",ID,{','.join('AF3' for _ in kinds)}",
        f",,{','.join(groups)}",
        f"Frame,Time (Seconds),{','.join(axes)}",
    ]


def captured(scale: float = 1000.0) -> list[list[object]]:
    """Frame, time, rotation, position, marker."""
    return [
        [k, f"{t / 1e9:.6f}", *row[3:], *(scale * row[:3]), 1.0, 2.0, 3.0]
        for k, (t, row) in enumerate(zip(NS, POSES, strict=True))
    ]


@pytest.mark.parametrize(
    ("unit", "scale"), [("Millimeters", 1000.0), ("Centimeters", 100.0), ("Meters", 1.0)]
)
@pytest.mark.parametrize("label", [",Type", ","])
def test_a_motive_body_has_its_own_frame(write, unit: str, scale: float, label: str) -> None:
    recording = read_recording(write(captured(scale), *motive(unit=unit, label=label)))

    assert_same(recording.trajectory)
    assert recording.frame == "OptiTrack"
    assert "Motive, 'Tool'" in recording.trajectory.read_as


def test_of_several_rigid_bodies_one_is_chosen(write) -> None:
    rows = [[*row, *row[2:5], 1.0, *row[6:9], 0.0, 0.0, 0.0] for row in captured()]

    path = write(rows, *motive(("Tool", "Base")))

    assert "it has 2 rigid bodies; choose one with --topic: Tool, Base" in refusal(path)
    assert_same(read_recording(path, ReadOptions(topic="Tool")).trajectory)


def test_lost_frames_are_left_out(write) -> None:
    table = captured()
    table[5][2:] = [""] * 10

    with pytest.warns(UserWarning, match="1 row without a pose left out"):
        read = read_trajectory(write(table, *motive()))

    np.testing.assert_allclose(np.diff(read.times)[4], 0.04)


def test_euler_angles_of_motive_are_refused(write) -> None:
    assert "rotations are of the type 'XYZ'; export it with the type Quaternion" in refusal(
        write([], *motive(kind="XYZ"))
    )


def vicon(axes: str = "RX,RY,RZ,RW,TX,TY,TZ", units: str = ",,,,mm,mm,mm") -> list[str]:
    return [
        "Objects",
        "50",
        ",,lab:tool" + "," * axes.count(","),
        f"Frame,Sub Frame,{axes}",
        f",,{units}",
    ]


def test_vicon_quaternions_have_the_files_rate(write) -> None:
    table = [[k + 1, 0, *row[3:], *(1000.0 * row[:3])] for k, row in enumerate(POSES)]

    recording = read_recording(write([*table, [], ["Trajectories"], [50]], *vicon()))

    assert_same(recording.trajectory)
    assert recording.frame == "Vicon"


def test_rigid_bodies_are_found_below_other_sections(
    write,
) -> None:
    table = [[k + 1, 0, *row[3:], *(1000.0 * row[:3])] for k, row in enumerate(POSES)]
    markers = [
        "Trajectories",
        "100",
        ",,tool:m1,,",
        "Frame,Sub Frame,X,Y,Z",
        ",,mm,mm,mm",
        "1,0,1,2,3",
        "",
    ]

    assert_same(read_trajectory(write(table, *markers, *vicon())))
    assert "has trajectories only: export objects or segments" in refusal(write([], *markers))


def test_three_vicon_angles_need_a_flag(write) -> None:
    table = [
        [k + 1, 0, *turn, *(1000.0 * row[:3])]
        for k, (turn, row) in enumerate(zip(TURNS, POSES, strict=True))
    ]

    path = write(table, *vicon("RX,RY,RZ,TX,TY,TZ", "rad,rad,rad,mm,mm,mm"))

    assert "rotation vectors or Euler angles" in refusal(path)
    assert_same(read_trajectory(path, columns="rx=RX,ry=RY,rz=RZ"), 1e-9)


def test_a_sections_fault_has_the_files_line(write) -> None:
    markers = [
        "Trajectories",
        "100",
        ",,tool:m1,,",
        "Frame,Sub Frame,X,Y,Z",
        ",,mm,mm,mm",
        "1,0,1,2,3",
        "",
    ]

    path = write([[1, 0, *range(6)]], *markers, *vicon("RX,RY,RZ,TX,TY,TZ", "rad,rad,rad,mm,mm,mm"))

    assert "line 11: RX RY RZ may be" in refusal(path)
    assert path.read_text().splitlines()[10].startswith("Frame,Sub Frame,RX")


# Arrays


def test_npz_with_named_quaternions_is_read(tmp_path) -> None:
    path = tmp_path / "motion.npz"
    np.savez(path, timestamps=EPOCH + NS, positions=POSES[:, :3], quat_xyzw=POSES[:, 3:])

    read = read_trajectory(path)

    assert_same(read)
    assert read.epoch_ns == EPOCH


def test_npz_with_rotation_vectors_is_read(tmp_path) -> None:
    for place in ("p", "xyz"):
        np.savez(tmp_path / "a.npz", **{"t": NS / 1e9, place: POSES[:, :3], "rotvec": TURNS})

        assert_same(read_trajectory(tmp_path / "a.npz"), 1e-9)


@pytest.mark.parametrize("timed", [False, True])
def test_whole_poses_need_an_order(tmp_path, timed: bool) -> None:
    arrays = (
        {"log": np.column_stack([NS / 1e9, POSES])}
        if timed
        else {"times": NS / 1e9, "poses": POSES}
    )
    np.savez(tmp_path / "a.npz", **arrays)

    message = refusal(tmp_path / "a.npz")

    assert f"{[*arrays][-1]} has {8 if timed else 7} numbers a row" in message

    xyzw, wxyz = re.findall(r"--columns (\S+?)(?=;|$)", message.removesuffix("."))

    assert_same(read_trajectory(tmp_path / "a.npz", columns=xyzw))

    reordered = read_trajectory(tmp_path / "a.npz", columns=wxyz)

    np.testing.assert_array_equal(reordered.poses[:, 3:], POSES[:, [4, 5, 6, 3]])


def test_joints_are_not_whole_poses(tmp_path) -> None:
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    np.savez(tmp_path / "a.npz", q=np.zeros((COUNT, 7)), **dict(zip(names, POSES.T, strict=True)))

    message = refusal(tmp_path / "a.npz")

    assert "numbers a row" not in message
    assert "a table without time needs --rate HZ" in message
    assert_same(read_trajectory(tmp_path / "a.npz", rate=50.0))

    for joints in ("q", "q_actual", "joints", "joint_positions"):
        np.savez(tmp_path / "b.npz", t=NS / 1e9, **{joints: np.zeros((COUNT, 7))})

        assert "numbers a row" not in refusal(tmp_path / "b.npz")


def test_whole_poses_without_times_need_the_rate_too(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", q=np.zeros((COUNT, 7)), poses=POSES)

    message = refusal(tmp_path / "a.npz")

    assert "without a time it needs --rate HZ, too" in message

    xyzw = re.findall(r"--columns (\S+?)(?=;|$)", message)[0]

    assert_same(read_trajectory(tmp_path / "a.npz", columns=xyzw, rate=50.0))


def test_npz_of_matrices_is_read(tmp_path) -> None:
    matrices = np.tile(np.diag([1.0, -1.0, -1.0, 1.0]), (5, 1, 1))
    matrices[:, :3, 3] = POSES[:5, :3]
    np.savez(tmp_path / "a.npz", t=NS[:5] / 1e9, poses=matrices)

    read = read_trajectory(tmp_path / "a.npz")

    np.testing.assert_allclose(
        read.poses, np.column_stack([POSES[:5, :3], np.tile([1.0, 0, 0, 0], (5, 1))]), atol=1e-12
    )


def test_npz_of_rotation_matrices_beside_positions_is_read(tmp_path) -> None:
    turns = np.array([pin.Quaternion(row[3:]).toRotationMatrix() for row in POSES])
    np.savez(tmp_path / "a.npz", t=NS / 1e9, R=turns, p=POSES[:, :3])

    read = read_trajectory(tmp_path / "a.npz")

    np.testing.assert_allclose(
        np.abs((read.poses[:, 3:] * POSES[:, 3:]).sum(axis=1)), 1.0, atol=1e-12
    )
    np.testing.assert_array_equal(read.poses[:, :3], POSES[:, :3])

    # Beside a quaternion, (T, 3, 3) is something else, such as a covariance.
    np.savez(
        tmp_path / "b.npz",
        t=NS / 1e9,
        position=POSES[:, :3],
        quat_xyzw=POSES[:, 3:],
        covariance=0.0 * turns,
    )

    assert_same(read_trajectory(tmp_path / "b.npz"))


@pytest.mark.parametrize("name", ["velocity", "euler", "force", "omega"])
def test_beside_matrices_a_position_needs_its_name(tmp_path, name: str) -> None:
    turns = np.array([pin.Quaternion(row[3:]).toRotationMatrix() for row in POSES])
    vectors = {name: 0.5 * POSES[:, :3]}

    np.savez(tmp_path / "a.npz", t=NS / 1e9, R=turns, **vectors)

    message = refusal(tmp_path / "a.npz")

    assert "a table with the matrices R but it does not name x, y, z;" in message

    np.savez(tmp_path / "b.npz", t=NS / 1e9, R=turns, position=POSES[:, :3], **vectors)

    np.testing.assert_array_equal(read_trajectory(tmp_path / "b.npz").poses[:, :3], POSES[:, :3])

    # Columns of a pose are read as without the matrices, whatever these are.
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), POSES.T, strict=True))
    for matrices in ({"R": turns}, {"covariance": np.tile(1e-6 * np.eye(3), (COUNT, 1, 1))}):
        np.savez(tmp_path / "c.npz", t=NS / 1e9, **columns, **matrices, **vectors)

        assert_same(read_trajectory(tmp_path / "c.npz"))


def test_a_covariance_beside_positions_is_no_rotation(tmp_path) -> None:
    np.savez(
        tmp_path / "a.npz",
        t=NS / 1e9,
        position=POSES[:, :3],
        covariance=np.tile(np.eye(3), (COUNT, 1, 1)),
    )

    assert "does not name qx, qy, qz, qw;" in refusal(tmp_path / "a.npz")


def test_an_arrays_unit_holds_for_its_columns(tmp_path) -> None:
    turns = np.array([pin.Quaternion(row[3:]).toRotationMatrix() for row in POSES])
    for name in ("p_mm", "position_mm"):
        np.savez(tmp_path / "a.npz", t=NS / 1e9, R=turns, **{name: POSES[:, :3]})

        np.testing.assert_allclose(
            read_trajectory(tmp_path / "a.npz").poses[:, :3], POSES[:, :3] / 1e3, rtol=1e-12
        )


def test_a_structured_array_is_read_by_fields(tmp_path) -> None:
    columns = dict(
        zip(("t", "x", "y", "z", "qx", "qy", "qz", "qw"), [NS / 1e9, *POSES.T], strict=True)
    )
    table = np.zeros(COUNT, dtype=[(name, float) for name in columns])
    for name, values in columns.items():
        table[name] = values

    np.savez(tmp_path / "a.npz", log=table)

    assert_same(read_trajectory(tmp_path / "a.npz"))


def structured(shift: float):
    columns = dict(
        zip(("t", "x", "y", "z", "qx", "qy", "qz", "qw"), [NS / 1e9, *POSES.T], strict=True)
    )
    table = np.zeros(COUNT, dtype=[(name, float) for name in columns])
    for name, values in columns.items():
        table[name] = values
    table["x"] += shift
    return table


def test_one_structured_array_can_be_chosen(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", target=structured(0.0), actual=structured(0.2))

    message = refusal(tmp_path / "a.npz")

    assert "does not name t, x, y, z;" in message
    assert "target.t, target.x" in message
    assert "actual.t, actual.x" in message

    roles = ("t", "x", "y", "z", "qx", "qy", "qz", "qw")

    assert_same(
        read_trajectory(
            tmp_path / "a.npz", columns=",".join(f"{role}=target.{role}" for role in roles)
        )
    )


def test_a_structured_array_replaces_no_columns(tmp_path) -> None:
    columns = dict(
        zip(("t", "x", "y", "z", "qx", "qy", "qz", "qw"), [NS / 1e9, *POSES.T], strict=True)
    )

    np.savez(tmp_path / "a.npz", target=structured(0.2), **columns)

    assert_same(read_trajectory(tmp_path / "a.npz"))

    np.savez(
        tmp_path / "b.npz",
        t=NS / 1e9,
        position=POSES[:, :3],
        quat_xyzw=POSES[:, 3:],
        imu=structured(0.2),
    )

    assert_same(read_trajectory(tmp_path / "b.npz"))

    # Beside other arrays as long, it is one of several.
    for others in (
        {"poses": POSES},
        {"R": np.tile(np.eye(3), (COUNT, 1, 1))},
        {"force": POSES[:, :3]},
    ):
        np.savez(tmp_path / "d.npz", actual=structured(0.0), **others)

        assert "does not name t, x, y, z;" in refusal(
            tmp_path / "d.npz"
        ) or "poses has 7" in refusal(tmp_path / "d.npz")

    np.savez(tmp_path / "d.npz", actual=structured(0.0), camera=np.eye(3), home=np.zeros(6))

    assert_same(read_trajectory(tmp_path / "d.npz"))

    # Of two times one may be another clock's.
    np.savez(tmp_path / "c.npz", t=NS / 5e8, actual=structured(0.0))

    assert "does not name x, y, z, qx, qy, qz, qw;" in refusal(tmp_path / "c.npz")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.npy", "save CSV, Parquet or npz"),
        ("a.xlsx", "save CSV"),
        ("arm.urdf", "--robot FILE"),
        ("c.toml", "--cell"),
        ("a.csv.gz", "decompress"),
    ],
)
def test_other_kinds_are_refused_with_advice(tmp_path, name: str, words: str) -> None:
    (tmp_path / name).write_bytes(b"content")

    assert words in refusal(tmp_path / name)


def test_npz_with_objects_is_refused(tmp_path) -> None:
    np.savez(tmp_path / "a.npz", t=np.array([{}], dtype=object))

    assert "cannot be read as npz" in refusal(tmp_path / "a.npz")

    (tmp_path / "b.npz").write_bytes(b"PK\3\4 and no more")

    assert "cannot be read as npz" in refusal(tmp_path / "b.npz")


def test_parquet_of_pandas_has_wall_time(tmp_path) -> None:
    names = ("px", "py", "pz", "qx", "qy", "qz", "qw")
    columns = {
        "time": (EPOCH + NS).astype("datetime64[ns]"),
        **dict(zip(names, POSES.T, strict=True)),
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    read = read_trajectory(tmp_path / "a.parquet")

    assert_same(read)
    assert read.epoch_ns == EPOCH
    assert "wall clock" in read.read_as


def test_an_infinite_number_is_refused_by_row(tmp_path) -> None:
    poses = POSES.copy()
    poses[3, 1] = np.nan

    np.savez(tmp_path / "a.npz", t=NS / 1e9, position=poses[:, :3], quat_xyzw=poses[:, 3:])

    assert "row 4: nan is not a finite number" in refusal(tmp_path / "a.npz")


def test_a_repeated_row_is_left_out(write) -> None:
    table = rows(NS / 1e9)

    with pytest.warns(UserWarning, match="1 repeated row left out"):
        assert_same(
            read_trajectory(write([*table[:9], table[8], *table[9:]], "t,x,y,z,qx,qy,qz,qw"))
        )


@pytest.mark.parametrize("uptime_s", [1_800, 10 * 86_400])
def test_relative_nanoseconds_are_no_date(write, uptime_s: int) -> None:
    read = read_trajectory(write(rows(NS + uptime_s * 10**9), "t,x,y,z,qx,qy,qz,qw"))

    assert_same(read)
    assert "time in ns" in read.read_as


def test_every_backward_row_is_counted(write) -> None:
    times = (NS / 1e9).tolist()
    times[7] = times[7] - 0.5
    times[20] = times[20] - 0.1

    message = refusal(write(rows(times), "t,x,y,z,qx,qy,qz,qw"))

    assert "line 9, time: time -0.36 s is not after 0.12 s of the previous sample" in message
    assert "2 rows in all; sort the file by time" in message


def test_parquet_needs_its_extra(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")

    assert "cannot be read as Parquet" in refusal(tmp_path / "a.parquet")

    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingPackage, match=r'pip install "simbridge\[parquet\]"'):
        read_trajectory(tmp_path / "a.parquet")


def test_parquet_of_durations_is_read(tmp_path) -> None:
    names = ("px", "py", "pz", "qx", "qy", "qz", "qw")
    columns = {"time": NS.astype("timedelta64[ns]"), **dict(zip(names, POSES.T, strict=True))}

    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    assert_same(read_trajectory(tmp_path / "a.parquet"))


def parquet_of(path, **times):
    columns = dict(zip(("px", "py", "pz", "qx", "qy", "qz", "qw"), POSES.T, strict=True))
    parquet.write_table(pyarrow.table({**columns, **times}), path)
    return path


@pytest.mark.parametrize("name", ["time", "time_ms", "time [ns]", "elapsed"])
@pytest.mark.parametrize("step", [STEP, 10**9])
def test_durations_need_no_unit(tmp_path, name: str, step: int) -> None:
    durations = (step * np.arange(COUNT)).astype("timedelta64[ns]")

    read = read_trajectory(parquet_of(tmp_path / "a.parquet", **{name: durations}))

    np.testing.assert_array_equal(read.times, step * np.arange(COUNT) / 1e9)
    assert read.read_as.endswith("durations")


@pytest.mark.parametrize("plain_name", ["t", "timestamp", "stamp", "header.stamp"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("elapsed", "timedelta64[ns]"),
        ("__index_level_0__", "timedelta64[ns]"),
        ("__index_level_0__", "datetime64[ns]"),
    ],
)
def test_a_duration_is_time_without_plain_names(tmp_path, plain_name, name, kind) -> None:
    later = {name: (NS * 2).astype(kind)}

    both = parquet_of(tmp_path / "a.parquet", **{plain_name: NS / 1e9}, **later)

    alone = parquet_of(tmp_path / "b.parquet", **later)

    assert_same(read_trajectory(both))
    assert_same(read_trajectory(alone, rate=50.0))
    np.testing.assert_array_equal(read_trajectory(alone).times, NS * 2 / 1e9)


def test_a_missing_duration_is_refused_by_row(tmp_path) -> None:
    durations = NS.astype("timedelta64[ns]")

    durations[5] = np.timedelta64("NaT")

    assert "row 6 has no time" in refusal(parquet_of(tmp_path / "a.parquet", time=durations))


def test_a_nameless_pandas_index_is_the_time(tmp_path) -> None:
    columns = dict(zip(("px", "py", "pz", "qx", "qy", "qz", "qw"), POSES.T, strict=True))
    columns["__index_level_0__"] = (EPOCH + NS).astype("datetime64[ns]")
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    read = read_trajectory(tmp_path / "a.parquet")

    assert_same(read)
    assert read.epoch_ns == EPOCH


def test_parquet_of_lists_is_read(tmp_path) -> None:
    columns = {
        "t": NS / 1e9,
        "position": list(POSES[:, :3]),
        "quat_xyzw": list(POSES[:, 3:]),
        "name": ["a"] * COUNT,
    }

    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    assert_same(read_trajectory(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    "names", ["t[s],x[m],y[m],z[m],qx[],qy[],qz[],qw[]", "[t],[x],[y],[z],[qx],[qy],[qz],[qw]"]
)
def test_brackets_without_numbers_are_no_indices(write, names: str) -> None:
    assert_same(read_trajectory(write(rows(NS / 1e9), names)))


def test_turns_in_degrees_are_a_rotation_vector(write) -> None:
    table = [
        [time, 0.4 + 0.001 * k, 0.1, 0.3, 0.0, 0.0, 10.0, 5.0] for k, time in enumerate(NS / 1e9)
    ]

    read = read_trajectory(write(table, "t,x,y,z,r_x [deg],r_y [deg],r_z [deg],rw"))

    assert read.poses[0, 3:] == pytest.approx(
        [0.0, 0.0, np.sin(np.radians(5.0)), np.cos(np.radians(5.0))]
    )


def test_three_angles_are_no_quaternion(write) -> None:
    table = [[*row[:4], 0.0, 0.0, 10.0] for row in rows(NS / 1e9)]

    assert "does not name qx, qy, qz, qw" in refusal(write(table, "t,x,y,z,x_rot,y_rot,z_rot"))


def test_an_index_beside_a_time_is_ambiguous(tmp_path) -> None:
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    times = pyarrow.array(EPOCH + NS, pyarrow.timestamp("ns"))
    columns = {
        **dict(zip(names, POSES.T, strict=True)),
        "sec": NS // 10**9,
        "__index_level_0__": times,
    }

    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")

    assert "more than one column is t: sec, index time" in refusal(tmp_path / "a.parquet")

    del columns["__index_level_0__"]
    columns["elapsed"] = pyarrow.array(NS, pyarrow.duration("ns"))

    parquet.write_table(pyarrow.table(columns), tmp_path / "b.parquet")

    assert_same(read_trajectory(tmp_path / "b.parquet"))


def test_a_fault_under_another_suffix_is_named(write, tmp_path) -> None:
    table = rows(NS / 1e9)
    table[3][2] = "oops"

    path = write(table, "t,x,y,z,qx,qy,qz,qw").rename(tmp_path / "a.json")

    assert "line 5, y: 'oops' is not a number" in refusal(path)
