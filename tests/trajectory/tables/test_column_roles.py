"""The names of columns tell what they are; other names are no evidence."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from tests.trajectory.tables.motions import (
    COUNT,
    EPOCH,
    NS,
    POSES,
    TURNS,
    assert_same,
    refusal,
    rows,
)


@pytest.mark.parametrize("prefix", ["tcp", "tool", "ee", "pose"])
def test_positions_of_a_named_tool_are_known(write_table, prefix: str) -> None:
    places, turns = (
        ",".join(f"{prefix}_{axis}" for axis in axes)
        for axes in (("x", "y", "z"), ("qx", "qy", "qz", "qw"))
    )

    assert_same(read_trajectory(write_table(rows(NS / 1e9), f"t,{places},{turns}")))
    # Those of something else are not the tool's.
    assert_same(
        read_trajectory(
            write_table(
                [[*row, 1, 2, 3] for row in rows(NS / 1e9)],
                f"t,{places},{turns},force_x,vel_y,acc_z",
            )
        )
    )


@pytest.mark.parametrize(
    "time", ["ts", "seconds", "Time/s", "sim_time", "ros_time", "time_since_start"]
)
def test_further_time_names_come_second(write_table, time: str) -> None:
    assert_same(read_trajectory(write_table(rows(NS / 1e9), f"{time},x,y,z,qx,qy,qz,qw")))
    assert_same(
        read_trajectory(
            write_table([[1.0, *row] for row in rows(NS / 1e9)], f"{time},t,x,y,z,qx,qy,qz,qw")
        )
    )


@pytest.mark.parametrize("time", ["ts", "sec", "seconds", "sim_time"])
def test_a_rate_leaves_the_plainest_time(write_table, time: str) -> None:
    table = [[k % 7, *row] for k, row in enumerate(POSES)]

    assert_same(read_trajectory(write_table(table, f"{time},x,y,z,qx,qy,qz,qw"), rate=50.0))


def test_a_frames_length_is_no_time(write_table) -> None:
    table = rows(np.full(COUNT, 0.02))

    assert "does not name t" in refusal(write_table(table, "frame_time,x,y,z,qx,qy,qz,qw"))
    assert_same(read_trajectory(write_table(table, "frame_time,x,y,z,qx,qy,qz,qw"), rate=50.0))


@pytest.mark.parametrize("rest", ["msec", "usec", "microsec", "milliseconds"])
def test_seconds_beside_a_fraction_and_a_time_are_ambiguous(write_table, rest: str) -> None:
    table = [[k, k % 4, k, *row] for k, row in enumerate(POSES)]

    assert f"more than one column may be t: sec, ts, {rest}" in refusal(
        write_table(table, f"sec,{rest},ts,x,y,z,qx,qy,qz,qw")
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
def test_plain_names_are_preferred_to_further_ones(write_table, pose: str, others: str) -> None:
    assert_same(
        read_trajectory(
            write_table([[*row, 1, 2, 3] for row in rows(NS / 1e9)], f"t,{pose},{others}")
        )
    )


def test_a_rotation_vector_beats_further_names(write_table) -> None:
    table = [
        [t, *row[:3], *turn, 0, 0, 0, 1]
        for t, row, turn in zip(NS / 1e9, POSES, TURNS, strict=True)
    ]

    assert_same(
        read_trajectory(write_table(table, "t,x,y,z,rx,ry,rz,x_rot,y_rot,z_rot,w_rot")), 1e-9
    )


@pytest.mark.parametrize(
    "others", ["x_rot,y_rot,z_rot,w_rot", "rotvec[0],rotvec[1],rotvec[2],note"]
)
def test_a_numbered_quaternion_beats_further_names(write_table, others: str) -> None:
    header = f"t,x,y,z,quat_xyzw_0,quat_xyzw_1,quat_xyzw_2,quat_xyzw_3,{others}"

    assert_same(
        read_trajectory(write_table([[*row, 0, 0, 0, 1] for row in rows(NS / 1e9)], header))
    )


def test_all_candidates_of_further_names_are_named(write_table) -> None:
    path = write_table(
        [[*row, 1, 2, 3] for row in rows(NS / 1e9)],
        "t,p[0],p[1],p[2],qx,qy,qz,qw,tcp_x,tcp_y,tcp_z",
    )

    assert "more than one column may be x: p[0], tcp_x" in refusal(path)


def test_tx_beside_a_position_is_ambiguous(write_table) -> None:
    path = write_table(
        [[*row, 1, 2, 3] for row in rows(NS / 1e9)], "t,tcp_x,tcp_y,tcp_z,qx,qy,qz,qw,tx,ty,tz"
    )

    assert "more than one column may be x: tcp_x, tx; y: tcp_y, ty; z: tcp_z, tz" in refusal(path)


@pytest.mark.parametrize("name", ["p", "pos", "xyz"])
def test_six_numbered_columns_are_no_position(write_table, name: str) -> None:
    table = [[t, *row[3:], *range(6)] for t, row in zip(NS / 1e9, POSES, strict=True)]
    joints = ",".join(f"{name}_{k}" for k in range(6))

    assert "does not name x, y, z" in refusal(write_table(table, f"t,qx,qy,qz,qw,{joints}"))


def test_three_p_columns_need_a_position(write_table) -> None:
    for name in ("position", "pos"):
        assert_same(
            read_trajectory(
                write_table(rows(NS / 1e9), f"t,{name}_0,{name}_1,{name}_2,qx,qy,qz,qw")
            )
        )
    assert "does not name x, y, z" in refusal(
        write_table(rows(NS / 1e9), "t,p_0,p_1,p_2,qx,qy,qz,qw")
    )


@pytest.mark.parametrize("turns", ["rx,ry,rz,rw", "x_rot,y_rot,z_rot,w_rot"])
def test_axis_names_may_be_first_or_last(write_table, turns: str) -> None:
    for places in ("x_pos,y_pos,z_pos", "X-Position,Y-Position,Z-Position"):
        read = read_trajectory(write_table(rows(NS / 1e9), f"t,{places},{turns}"))

        assert_same(read)
        assert "xyzw" in read.read_as


def test_topic_paths_in_names_are_known(write_table) -> None:
    tool = "/tool/pose"
    header = [
        "__time",
        *(f"{tool}/position/{axis}" for axis in "xyz"),
        *(f"{tool}/orientation/{a}" for a in "xyzw"),
    ]

    assert_same(read_trajectory(write_table(rows(NS / 1e9), ",".join(header))))


def test_odometry_means_its_pose(write_table) -> None:
    header = (
        "stamp,pose.pose.position.x,pose.pose.position.y,pose.pose.position.z,"
        "pose.pose.orientation.x,pose.pose.orientation.y,pose.pose.orientation.z,"
        "pose.pose.orientation.w,twist.twist.linear.x"
    )

    assert_same(read_trajectory(write_table([[*row, 9.0] for row in rows(NS / 1e9)], header)))


def test_scalar_first_quaternions_are_known_by_their_names(write_table) -> None:
    read = read_trajectory(
        write_table(rows(NS / 1e9, order=(0, 1, 2, 6, 3, 4, 5)), "t,x,y,z,qw,qx,qy,qz")
    )

    assert_same(read)
    assert ", wxyz," in read.read_as


def test_an_order_in_a_name_is_evidence(write_table) -> None:
    names = ",".join(f"orientation_quat_wxyz_{k}" for k in range(4))

    assert_same(
        read_trajectory(
            write_table(rows(NS / 1e9, order=(0, 1, 2, 6, 3, 4, 5)), f"t,x,y,z,{names}")
        )
    )


def test_a_measurements_stamp_beats_date_and_time(write_table) -> None:
    stamps = EPOCH + NS
    table = [
        ["2025-11-25", "19:00:00", *divmod(int(t), 10**9), *row]
        for t, row in zip(stamps, POSES, strict=True)
    ]

    read = read_trajectory(
        write_table(table, "date,time,header.stamp.sec,header.stamp.nanosec,x,y,z,qx,qy,qz,qw")
    )

    assert_same(read)
    assert read.epoch_ns == EPOCH

    table = [["2025-11-25", "19:00:00", *row] for row in rows(NS / 1e9)]

    assert_same(read_trajectory(write_table(table, "date,time,header.stamp,x,y,z,qx,qy,qz,qw")))


@pytest.mark.parametrize(
    "names", ["t[s],x[m],y[m],z[m],qx[],qy[],qz[],qw[]", "[t],[x],[y],[z],[qx],[qy],[qz],[qw]"]
)
def test_brackets_without_numbers_are_no_indices(write_table, names: str) -> None:
    assert_same(read_trajectory(write_table(rows(NS / 1e9), names)))


def test_turns_in_degrees_are_a_rotation_vector(write_table) -> None:
    table = [
        [time, 0.4 + 0.001 * k, 0.1, 0.3, 0.0, 0.0, 10.0, 5.0] for k, time in enumerate(NS / 1e9)
    ]

    read = read_trajectory(write_table(table, "t,x,y,z,r_x [deg],r_y [deg],r_z [deg],rw"))

    assert read.poses[0, 3:] == pytest.approx(
        [0.0, 0.0, np.sin(np.radians(5.0)), np.cos(np.radians(5.0))]
    )


def test_three_angles_are_no_quaternion(write_table) -> None:
    table = [[*row[:4], 0.0, 0.0, 10.0] for row in rows(NS / 1e9)]

    assert "does not name qx, qy, qz, qw" in refusal(
        write_table(table, "t,x,y,z,x_rot,y_rot,z_rot")
    )
