"""Trajectory files read back bit for bit, and every error names line and column."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from evo.tools import file_interface
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pinocchio import Quaternion, exp3

from simbridge.errors import InputFileError, InvalidTrajectory, UnknownName
from simbridge.robot import pose
from simbridge.trajectory import Trajectory, read_trajectory, square, write_csv, write_tum

same_directory = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

TABLE = [
    ["0.0", "0.5", "-0.1", "0.3", "1.0", "0.0", "0.0", "0.0"],
    ["0.01", "0.51", "-0.1", "3e-1", "0.0", "1.0", "0.0", "0.0"],
    ["0.02", "0.52", "-0.1", "0.3", "0.0", "0.0", "-1.0", "0.0"],
]
EXPECTED = np.array(TABLE, dtype=float)


@pytest.fixture
def write(tmp_path: Path):
    """Writes text (or bytes) to a file and returns its path."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "motion.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def text(separator: str = " ", rows: list[list[str]] = TABLE) -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def assert_is_the_table(trajectory: Trajectory) -> None:
    np.testing.assert_array_equal(np.column_stack([trajectory.times, trajectory.poses]), EXPECTED)


# What is read


@st.composite
def samples(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    count = draw(st.integers(1, 8))
    times = np.unique(draw(arrays(float, count, elements=st.floats(-2e9, 2e9))))
    assume((np.diff(times - times[0]) > 0.0).all())
    positions = draw(
        arrays(float, (len(times), 3), elements=st.floats(allow_nan=False, allow_infinity=False))
    )
    quaternions = draw(arrays(float, (len(times), 4), elements=st.floats(-1.0, 1.0)))
    assume((np.linalg.norm(quaternions, axis=1) > 1e-3).all())
    return times, np.column_stack([positions, pose.normalize(quaternions)])


@same_directory
@given(samples())
def test_what_is_written_reads_back(tmp_path: Path, motion: tuple[np.ndarray, np.ndarray]) -> None:
    times, poses = motion
    write_tum(tmp_path / "motion.tum", times, poses)

    again = read_trajectory(tmp_path / "motion.tum")

    assert again.times.tobytes() == times.tobytes()
    assert again.poses.tobytes() == poses.tobytes()


def test_evo_reads_the_same_doubles(tmp_path: Path) -> None:
    trajectory = square(speed=0.3)
    write_tum(tmp_path / "square.tum", trajectory.times, trajectory.poses)

    seen = file_interface.read_tum_trajectory_file(tmp_path / "square.tum")

    np.testing.assert_array_equal(seen.timestamps, trajectory.times)
    np.testing.assert_array_equal(seen.positions_xyz, trajectory.poses[:, :3])
    np.testing.assert_array_equal(
        np.roll(seen.orientations_quat_wxyz, -1, axis=1), trajectory.poses[:, 3:]
    )


def test_a_file_written_by_evo_is_read(tmp_path: Path) -> None:
    trajectory = square()
    write_tum(tmp_path / "square.tum", trajectory.times, trajectory.poses)
    seen = file_interface.read_tum_trajectory_file(tmp_path / "square.tum")

    file_interface.write_tum_trajectory_file(tmp_path / "evo.tum", seen)

    np.testing.assert_allclose(
        read_trajectory(tmp_path / "evo.tum").poses, trajectory.poses, atol=1e-9
    )


def test_one_line_is_written_a_sample(tmp_path: Path) -> None:
    write_tum(tmp_path / "two.tum", [0.0, 0.1], [[0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]] * 2)

    assert (tmp_path / "two.tum").read_text() == (
        "0.0 0.1 0.2 0.3 0.0 0.0 0.0 1.0\n0.1 0.1 0.2 0.3 0.0 0.0 0.0 1.0\n"
    )


def test_unequal_lengths_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidTrajectory, match=r"\(3,\) and \(2, 7\)"):
        write_tum(tmp_path / "x.tum", np.arange(3.0), np.zeros((2, 7)))

    assert not (tmp_path / "x.tum").exists()


@pytest.mark.parametrize("separator", [" ", "\t", "   ", ",", ", ", ";", " ; "])
def test_commas_semicolons_and_blanks_separate(write, separator: str) -> None:
    assert_is_the_table(read_trajectory(write(text(separator))))


@pytest.mark.parametrize(
    "content",
    [
        text().encode(),
        text().rstrip("\n").encode(),
        b"\xef\xbb\xbf" + text(",").encode(),
        text(",").replace("\n", "\r\n").encode(),
        text(",").replace("\n", "\r").encode(),
        b"# recorded at 5 \xc2\xb5s, in the lab; by hand\n\n"
        + text().replace("\n", " # remark\n  \n").encode(),
        text().replace(" ", "  ").replace("\n", "  \n ").encode(),
    ],
    ids=[
        "plain",
        "no newline at the end",
        "BOM",
        "CRLF",
        "CR",
        "comments and empty lines",
        "blanks around",
    ],
)
def test_text_files_of_every_program_are_read(write, content: bytes) -> None:
    assert_is_the_table(read_trajectory(write(content)))


@pytest.mark.parametrize(
    "header",
    [
        "t,x,y,z,qx,qy,qz,qw",
        "time, px, py, pz, qx, qy, qz, qw",
        "timestamp;tx;ty;tz;qx;qy;qz;qw",
        "stamp pos_x pos_y pos_z quat_x quat_y quat_z quat_w",
        (
            '"Time","position_x","position_y","position_z","orientation_x","orientation_y",'
            '"orientation_z","orientation_w"'
        ),
        "# timestamp tx ty tz qx qy qz qw",
    ],
)
def test_headers_of_other_programs_are_read(write, header: str) -> None:
    assert_is_the_table(read_trajectory(write(f"{header}\n{text(',')}")))


@same_directory
@given(order=st.permutations(range(10)), separator=st.sampled_from([",", ";", " "]))
def test_a_header_allows_any_order(write, order: list[int], separator: str) -> None:
    names = ["t", "x", "y", "z", "qx", "qy", "qz", "qw", "label", "Torque_1"]
    rows = [names] + [[*row, "a_word", "nan"] for row in TABLE]

    content = text(separator, [[row[k] for k in order] for row in rows])

    assert_is_the_table(read_trajectory(write(content)))


@given(order=st.permutations(range(8)))
@same_directory
def test_a_comment_of_names_is_a_header(write, order: list[int]) -> None:
    rows = [["t", "x", "y", "z", "qx", "qy", "qz", "qw"], *TABLE]

    assert_is_the_table(
        read_trajectory(write("# " + text(",", [[row[k] for k in order] for row in rows])))
    )


def test_a_quaternion_goes_before_a_rotation_vector(write) -> None:
    rows = [["t", "x", "y", "z", "qx", "qy", "qz", "qw", "rx", "ry", "rz"]] + [
        [*row, "9", "9", "9"] for row in TABLE
    ]

    assert_is_the_table(read_trajectory(write(text(",", rows))))


@same_directory
@given(turn=arrays(float, 3, elements=st.floats(-3.6, 3.6)))
def test_rotation_vectors_and_quaternions_give_the_same_motion(write, turn: np.ndarray) -> None:
    assume(np.linalg.norm(turn) <= 2 * math.pi)
    quaternion = Quaternion(exp3(turn)).coeffs()
    vectors = read_trajectory(write("0 0.1 0.2 0.3 " + " ".join(map(repr, turn.tolist()))))
    named = read_trajectory(
        write("rz,ry,rx,z,y,x,t\n" + ",".join(map(repr, [*turn[::-1].tolist(), 0.3, 0.2, 0.1, 0])))
    )

    quaternions = read_trajectory(
        write("0 0.1 0.2 0.3 " + " ".join(map(repr, quaternion.tolist())))
    )

    np.testing.assert_array_equal(vectors.poses, named.poses)
    np.testing.assert_array_equal(vectors.poses[:, :3], quaternions.poses[:, :3])
    assert np.linalg.norm(pose.error(vectors.poses, quaternions.poses)[1]) < 1e-7


def test_pendant_poses_come_out_in_base_link(write) -> None:
    # Half a turn about z: x and y change their signs, and the tool rotates with them.
    path = write("0 -0.5 0.1 0.3 0 0 0\n")

    np.testing.assert_array_equal(
        read_trajectory(path, frame="base").poses, [[0.5, -0.1, 0.3, 0.0, 0.0, 1.0, 0.0]]
    )
    np.testing.assert_array_equal(
        read_trajectory(path, frame="base_link").poses, [[-0.5, 0.1, 0.3, 0.0, 0.0, 0.0, 1.0]]
    )


def test_an_unknown_frame_is_refused(write) -> None:
    with pytest.raises(UnknownName, match="base, base_link"):
        read_trajectory(write(text()), frame="world")  # type: ignore[arg-type]


def test_a_trajectory_knows_its_file(write) -> None:
    path = write(text())

    assert read_trajectory(path).source == str(path)
    assert read_trajectory(str(path)).source == str(path)


def test_a_single_line_is_a_trajectory(write) -> None:
    assert len(read_trajectory(write(text(rows=TABLE[:1]))).times) == 1


# What is refused


def refused(path: Path, **kwargs) -> InputFileError:
    with pytest.raises(InputFileError) as caught:
        read_trajectory(path, **kwargs)
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    if caught.value.line is not None:
        assert f"line {caught.value.line}" in str(caught.value)
    return caught.value


def table_with(row: int, column: int, word: str) -> list[list[str]]:
    rows = [list(line) for line in TABLE]
    rows[row][column] = word
    return rows


@pytest.mark.parametrize("separator", [" ", ",", ";"])
@pytest.mark.parametrize(
    ("row", "column", "word", "field", "reason"),
    [
        (1, 2, "left", "y", "'left' is not a number"),
        (0, 7, "one", "qw", "'one' is not a number"),
        (2, 0, "12:30", "t", "'12:30' is not a number"),
        (1, 1, "1_5", "x", "'1_5' is not a number"),
        (2, 3, "nan", "z", "nan is not a finite number"),
        (1, 4, "-inf", "qx", "-inf is not a finite number"),
        (0, 0, "NaN", "t", "nan is not a finite number"),
        (2, 1, "1e999", "x", "inf is not a finite number"),
        (2, 0, "0.01", "time", "time 0.01 s is not after 0.01 s"),
        (1, 0, "-3", "time", "time -3.0 s is not after 0.0 s"),
        (0, 4, "0.0", "quaternion", "is zero"),
        (2, 6, "0.9", "quaternion", "norm 0.9"),
    ],
)
def test_a_fault_has_line_and_column(
    write, separator: str, row: int, column: int, word: str, field: str, reason: str
) -> None:
    content = "# a remark\n\n" + text(separator, table_with(row, column, word))

    fault = refused(write(content))

    assert fault.line == row + 3
    assert fault.field == field
    assert reason in str(fault)


def test_a_deep_fault_is_found(write) -> None:
    lines = [f"{k} 0 0 0 0 0 0 1" for k in range(20_000)]
    lines[15_000] = "15000 0 zero 0 0 0 0 1"

    fault = refused(write("\r\n".join(lines)))

    assert fault.line == 15_001
    assert fault.field == "y"


def test_a_fault_names_the_headers_column(write) -> None:
    content = "qw;qx;qy;qz;time;pos_x;pos_y;pos_z\n1;0;0;0;0;0;0;0\n1;0;0;0;1;0;up;0\n"

    fault = refused(write(content))

    assert fault.line == 3
    assert fault.field == "pos_y"


def test_a_line_of_units_is_refused(write) -> None:
    fault = refused(write("t,x,y,z,rx,ry,rz\ns,m,m,m,rad,rad,rad\n0,0,0,0,0,0,0\n"))

    assert fault.line == 2
    assert fault.field == "t"
    assert "'s' is not a number" in str(fault)


def test_a_decimal_comma_is_refused_with_the_remedy(write) -> None:
    fault = refused(write(text(";").replace(".", ",")))

    assert fault.line == 1
    assert fault.field == "t"
    assert "'0,0' is not a number; write it with a decimal point" in str(fault)


def test_an_empty_field_is_refused(write) -> None:
    fault = refused(write(text(",", table_with(1, 3, ""))))

    assert fault.line == 2
    assert fault.field == "z"
    assert "a number is missing; leave such rows out" in str(fault)


@pytest.mark.parametrize(("separator", "extra"), [(" ", " 7"), (",", ",7"), (",", ","), (";", ";")])
def test_a_column_too_many_is_refused(write, separator: str, extra: str) -> None:
    lines = text(separator).splitlines()
    lines[2] += extra

    fault = refused(write("\n".join(lines)))

    assert fault.line == 3
    assert "9 columns where 8 are expected, as in line 1" in str(fault)


def test_a_column_too_few_is_refused(write) -> None:
    fault = refused(write("# log\n" + text(rows=[*TABLE, TABLE[0][:7]])))

    assert fault.line == 5
    assert "7 columns where 8 are expected, as in line 2" in str(fault)


def test_a_truncated_last_line_is_refused(write) -> None:
    fault = refused(write(text()[:-12]))

    assert fault.line == 3


@pytest.mark.parametrize("comment", ["", "# "])
def test_a_line_unlike_its_header_is_refused(write, comment: str) -> None:
    fault = refused(write(f"{comment}t,x,y,z,qx,qy,qz,qw\n0,0,0,0,0,0,0\n"))

    assert fault.line == 2
    assert "7 columns where 8 are expected, as the" in str(fault)
    assert "in line 1 names" in str(fault)


@pytest.mark.parametrize("count", [1, 6, 9])
def test_another_number_of_columns_needs_a_header(write, count: int) -> None:
    fault = refused(write(" ".join(["0"] * count)))

    assert fault.line == 1
    assert (
        f"{count} columns; without a header 8 or 7 are expected: "
        "'t x y z qx qy qz qw' or 't x y z rx ry rz'"
    ) in str(fault)


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("t,x,y,qx,qy,qz,qw,label", "does not name z;"),
        ("t,x,y,z,roll,pitch,yaw", "does not name qx, qy, qz, qw;"),
        ("t,x,y,z,rx,ry,angle", "does not name rz;"),
        ("moment x y z qx qy qz qw", "does not name t;"),
        ("My first trajectory", "does not name t, x, y, z, qx, qy, qz, qw;"),
    ],
)
def test_a_missing_column_is_listed(write, header: str, missing: str) -> None:
    fault = refused(write(f"\n{header}\n{text(',')}"))

    assert fault.line == 2
    assert missing in str(fault)
    assert "'t x y z qx qy qz qw' or 't x y z rx ry rz'" in str(fault)


def test_a_repeated_column_is_refused(write) -> None:
    fault = refused(write("t,x,px,y,z,rx,ry,rz\n0,0,0,0,0,0,0,0\n"))

    assert fault.line == 1
    assert "more than one column is x: x, px" in str(fault)


def test_rotation_vectors_in_degrees_are_refused(write) -> None:
    fault = refused(write("0 0 0 0 0 3.14 0\n1 0 0 0 0 180 0\n"))

    assert fault.line == 2
    assert fault.field == "rotation vector"
    assert "180 rad is more than a full turn" in str(fault)


@pytest.mark.parametrize(
    "content", ["", "\n \n", "# only a remark\n", "t x y z qx qy qz qw\n", "\ufeff"]
)
def test_a_file_without_samples_is_refused(write, content: str) -> None:
    fault = refused(write(content))

    assert fault.line is None
    assert "no samples" in str(fault)


def test_binary_files_are_refused(write) -> None:
    assert "binary" in str(refused(write(b"\x89MCAP0\r\n\0\0\0\1")))
    assert "UTF-16" in str(refused(write(text().encode("utf-16"))))


def test_another_encoding_is_refused_by_line(write) -> None:
    fault = refused(write(text().encode() + "# \u00b5m".encode("latin-1")))

    assert fault.line == 4
    assert "UTF-8" in str(fault)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "no such file" in str(refused(tmp_path / "nowhere.csv"))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "is a directory" in str(refused(tmp_path))


def test_an_unreadable_file_is_refused(write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(text())

    def forbidden(_: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)

    assert "cannot be read: Permission denied" in str(refused(path))


def test_a_csv_file_reads_back_with_units(tmp_path: Path) -> None:
    trajectory = square()

    write_csv(tmp_path / "square.csv", trajectory.times, trajectory.poses)

    assert (tmp_path / "square.csv").read_text().startswith("t [s],x [m],y [m],z [m],qx,qy,qz,qw\n")

    again = read_trajectory(tmp_path / "square.csv")

    np.testing.assert_array_equal(again.times, trajectory.times)
    np.testing.assert_array_equal(again.poses, trajectory.poses)


def test_other_units_are_converted(write) -> None:
    read = read_trajectory(
        write(
            "stamp_ns,x [mm],y (cm),z_m,rx [deg],ry (deg),rz_rad\n0,125,10,0.5,0,90,0\n"
            "10000000,1,1,1,0,0,0\n"
        )
    )

    np.testing.assert_array_equal(read.times, [0.0, 0.01])
    np.testing.assert_allclose(
        read.start, [0.125, 0.1, 0.5, 0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)], atol=1e-15
    )


def test_an_unknown_unit_is_refused(write) -> None:
    fault = refused(write("t [min],x,y,z,qx,qy,qz,qw\n0,0,0,0,0,0,0,1\n"))

    assert fault.line == 1
    assert "'t [min]' has the unit min; known for t are s, ms, us, ns" in str(fault)


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_a_long_files_poses_keep_their_instants(tmp_path, count) -> None:
    file = tmp_path / "long.tum"
    file.write_text("".join(f"{k}e-3 0.{k % 1000:03} 0.1 0.3 0 1 0 0\n" for k in range(count)))

    long = read_trajectory(file)

    np.testing.assert_array_equal(long.times, np.arange(count) / 1e3)
    np.testing.assert_array_equal(long.poses[:, 0], (np.arange(count) % 1000) / 1e3)
    assert (long.poses[:, 1:] == [0.1, 0.3, 0.0, 1.0, 0.0, 0.0]).all()
