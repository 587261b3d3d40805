"""Exports of Vicon's programs are read at the rate that they state."""

from __future__ import annotations

from simbridge.trajectory import read_trajectory
from simbridge.trajectory.files import read_recording
from tests.trajectory.tables.motions import POSES, TURNS, assert_same, refusal


def vicon(axes: str = "RX,RY,RZ,RW,TX,TY,TZ", units: str = ",,,,mm,mm,mm") -> list[str]:
    return [
        "Objects",
        "50",
        ",,lab:tool" + "," * axes.count(","),
        f"Frame,Sub Frame,{axes}",
        f",,{units}",
    ]


def test_vicon_quaternions_have_the_files_rate(write_table) -> None:
    table = [[k + 1, 0, *row[3:], *(1000.0 * row[:3])] for k, row in enumerate(POSES)]

    recording = read_recording(write_table([*table, [], ["Trajectories"], [50]], *vicon()))

    assert_same(recording.trajectory)
    assert recording.frame == "Vicon"


def test_rigid_bodies_are_found_below_other_sections(
    write_table,
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

    assert_same(read_trajectory(write_table(table, *markers, *vicon())))
    assert ("contains only trajectories: export objects or segments") in refusal(
        write_table([], *markers)
    )


def test_three_vicon_angles_need_a_flag(write_table) -> None:
    table = [
        [k + 1, 0, *turn, *(1000.0 * row[:3])]
        for k, (turn, row) in enumerate(zip(TURNS, POSES, strict=True))
    ]

    path = write_table(table, *vicon("RX,RY,RZ,TX,TY,TZ", "rad,rad,rad,mm,mm,mm"))

    assert "rotation vectors or Euler angles" in refusal(path)
    assert_same(read_trajectory(path, columns="rx=RX,ry=RY,rz=RZ"), 1e-9)


def test_a_sections_fault_has_the_files_line(write_table) -> None:
    markers = [
        "Trajectories",
        "100",
        ",,tool:m1,,",
        "Frame,Sub Frame,X,Y,Z",
        ",,mm,mm,mm",
        "1,0,1,2,3",
        "",
    ]

    path = write_table(
        [[1, 0, *range(6)]], *markers, *vicon("RX,RY,RZ,TX,TY,TZ", "rad,rad,rad,mm,mm,mm")
    )

    assert "line 11: RX RY RZ may be" in refusal(path)
    assert path.read_text().splitlines()[10].startswith("Frame,Sub Frame,RX")
