"""Exports of OptiTrack's Motive are read as quaternions in Motive's own frame."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.trajectory import read_trajectory
from simbridge.trajectory.files import read_recording
from simbridge.trajectory.read_options import ReadOptions
from tests.trajectory.tables.motions import NS, POSES, assert_same, refusal


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
def test_a_motive_body_has_its_own_frame(write_table, unit: str, scale: float, label: str) -> None:
    recording = read_recording(write_table(captured(scale), *motive(unit=unit, label=label)))

    assert_same(recording.trajectory)
    assert recording.frame == "OptiTrack"
    assert "Motive, 'Tool'" in recording.trajectory.read_as


def test_of_several_rigid_bodies_one_is_chosen(write_table) -> None:
    rows = [[*row, *row[2:5], 1.0, *row[6:9], 0.0, 0.0, 0.0] for row in captured()]

    path = write_table(rows, *motive(("Tool", "Base")))

    assert "it has 2 rigid bodies; choose one with --topic: Tool, Base" in refusal(path)
    assert_same(read_recording(path, ReadOptions(topic="Tool")).trajectory)


def test_lost_frames_are_left_out(write_table) -> None:
    table = captured()
    table[5][2:] = [""] * 10

    with pytest.warns(UserWarning, match="1 lost sample left out"):
        read = read_trajectory(write_table(table, *motive()))

    np.testing.assert_allclose(np.diff(read.times)[4], 0.04)


def test_euler_angles_of_motive_are_refused(write_table) -> None:
    assert "rotations have the type 'XYZ'; export them with the type Quaternion" in refusal(
        write_table([], *motive(kind="XYZ"))
    )
