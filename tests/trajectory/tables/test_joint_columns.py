"""Tables of joint positions: by the names of the joints, by numbers, and as `--columns` says."""

from __future__ import annotations

import numpy as np
import pytest

import simbridge
from simbridge.errors import InputFileError, InvalidParameter
from simbridge.robot.kinematics import tool_path
from tests.trajectory.tables.joint_tables import JOINTS, ROBOT, TIMES, read, write_table

NAMES = list(ROBOT.joint_names)


@pytest.fixture
def write(tmp_path):
    """Write a table of time and these columns of joint positions."""

    def write_file(names, joints=JOINTS, *, time="t", comment=""):
        columns = [TIMES, joints] if time else [joints]
        names = [time, *names] if time else names
        return write_table(tmp_path / "joints.csv", names, columns, comment=comment)

    return write_file


@pytest.mark.parametrize(
    "pattern",
    [
        "{}",
        "/joint_states/{}/position",
        "position.{}",
        "{}_pos",
        "left_{}",
        "{} [rad]",
        "{}_rad",
    ],
)
def test_joints_are_known_by_their_names(write, pattern):
    path = write([pattern.format(name) for name in NAMES])

    assert np.array_equal(read(path).joints, JOINTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        "q_{}",
        "q{}",
        "q[{}]",
        "joint_{}",
        "joint{}",
        "J{}",
        "joint_positions_{}",
        "jointPositions_{}",
        "joint_{}_position",
        "actual_q_{}",
        "robot.target_q.{}",
        "command_{}",
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_numbered_components_are_joints(write, pattern, first):
    path = write([pattern.format(first + joint) for joint in range(6)])

    assert np.array_equal(read(path).joints, JOINTS)


def test_the_order_of_names_does_not_matter(write):
    path = write(NAMES[::-1], JOINTS[:, ::-1])

    assert np.array_equal(read(path).joints, JOINTS)


def test_a_comment_may_name_the_joints(write):
    path = write([f"q{joint}" for joint in range(1, 7)], comment="# ")

    assert np.array_equal(read(path).joints, JOINTS)


def test_velocities_and_efforts_are_no_positions(tmp_path):
    quantities = ("effort", "position", "velocity")
    names = [f"/joint_states/{name}/{quantity}" for name in NAMES for quantity in quantities]
    columns = np.repeat(JOINTS, 3, axis=1) * np.tile([10.0, 1.0, 0.1], 6)
    path = write_table(tmp_path / "plot.csv", ["t", *names], [TIMES, columns])

    assert np.array_equal(read(path).joints, JOINTS)


@pytest.mark.parametrize("quantity", ["max_joint", "joint_velocity", "q_error", "tau_joint"])
def test_other_quantities_alone_are_no_joints(write, quantity):
    with pytest.raises(InputFileError):
        read(write([f"{quantity}_{joint}" for joint in range(6)]))


def test_the_poses_are_the_tools(write):
    motion = read(write(NAMES))

    assert motion.poses == pytest.approx(tool_path(ROBOT, JOINTS), abs=1e-12)


@pytest.mark.parametrize("pattern", ["{} [deg]", "{}_deg", "{} (degrees)", "{} [°]"])
def test_degrees_by_the_name(write, pattern):
    path = write([pattern.format(name) for name in NAMES], np.degrees(JOINTS))

    assert read(path).joints == pytest.approx(JOINTS, abs=1e-14)


def test_degrees_by_the_flag(write):
    path = write(NAMES, np.degrees(JOINTS))

    assert read(path, columns="j1[deg]").joints == pytest.approx(JOINTS, abs=1e-14)


def test_more_than_a_turn_needs_a_unit(write):
    path = write(NAMES, np.degrees(JOINTS))

    with pytest.raises(InputFileError) as refusal:
        read(path)

    assert "--columns j1[deg] or --columns j1[rad]" in refusal.value.reason


def test_turns_with_a_unit_are_read(write):
    turns = JOINTS + 2.0 * np.pi

    assert np.array_equal(read(write([f"{name} [rad]" for name in NAMES], turns)).joints, turns)


def test_a_unit_of_only_some_is_refused(write):
    path = write([f"{NAMES[0]} [rad]", *NAMES[1:]])

    with pytest.raises(
        InputFileError, match=r"State the units of all of them: --columns j1\[rad\]"
    ):
        read(path)

    assert np.array_equal(read(path, columns="j1[rad]").joints, JOINTS)


def test_columns_choose_joints(write):
    path = write(["a", "b", "c", "d", "e", "f"])

    motion = read(path, columns="j1=a,j2=b,j3=c,j4=d,j5=e,j6=f")

    assert np.array_equal(motion.joints, JOINTS)


def test_columns_of_too_few_joints_are_refused(write):
    with pytest.raises(InputFileError, match="needs j1 to j6"):
        read(write(["a", "b", "c", "d", "e", "f"]), columns="j1=a,j2=b")


def test_an_unknown_unit_of_a_joint_is_refused(write):
    with pytest.raises(InvalidParameter):
        read(write(NAMES), columns="j1[ms]")


def test_numbers_alone_are_joints_by_the_flag(tmp_path):
    path = write_table(tmp_path / "numbers.csv", [], [TIMES, JOINTS])

    motion = read(path, columns="t=1,j1=2,j2=3,j3=4,j4=5,j5=6,j6=7")

    assert np.array_equal(motion.joints, JOINTS)


def test_poses_go_before_joints(tmp_path):
    poses = tool_path(ROBOT, ROBOT.home[None]).repeat(len(TIMES), axis=0)
    names = ["t", *NAMES, "x", "y", "z", "qx", "qy", "qz", "qw"]
    path = write_table(tmp_path / "both.csv", names, [TIMES, JOINTS, poses])

    assert read(path).joints is None
    assert np.array_equal(read(path, column="joints").joints, JOINTS)


@pytest.mark.parametrize(
    ("names", "count"),
    [
        ([f"panda_joint{joint}" for joint in range(1, 8)], 7),
        (NAMES[:5], 5),
        (["joint_1", "joint_2"], 2),
    ],
)
def test_joints_of_another_arm_are_refused(write, names, count):
    path = write(names, np.zeros((len(TIMES), count)))

    with pytest.raises(InputFileError) as refusal:
        read(path)

    assert refusal.value.reason.startswith(f"its {count} joints are {names[0]}")
    assert "those of ur10e, whose 6 joints are shoulder_pan_joint" in refusal.value.reason


def test_a_longer_arm_is_not_read_in_part(tmp_path):
    """A planar arm's joint_1 and joint_2 are also the names of an arm's first two joints."""
    names = ["t", *(f"joint_{joint}" for joint in range(1, 7))]
    path = write_table(tmp_path / "six.csv", names, [TIMES, JOINTS])

    with pytest.raises(InputFileError, match="its 6 joints are joint_1"):
        read(path, simbridge.load_robot("planar2r"))


def test_two_sets_of_joints_are_refused(tmp_path):
    names = [f"{which}.{name}" for which in ("actual", "desired") for name in NAMES]
    path = write_table(tmp_path / "two.csv", ["t", *names], [TIMES, JOINTS, JOINTS + 0.1])

    with pytest.raises(InputFileError) as refusal:
        read(path)

    flag = refusal.value.reason.rsplit("--columns ", 1)[1]
    assert np.array_equal(read(path, columns=flag).joints, JOINTS + 0.1)


def test_a_repeated_name_is_refused(tmp_path):
    columns = [TIMES, JOINTS, JOINTS[:, 2]]
    path = write_table(tmp_path / "repeated.csv", ["t", *NAMES, NAMES[2]], columns)

    with pytest.raises(InputFileError, match="2 sets of joint positions"):
        read(path)


def test_numbers_of_a_joint_state_are_refused(write):
    """ROS's JointState lists joints in any order: UR's driver begins with the elbow."""
    with pytest.raises(InputFileError, match="may be in any order"):
        read(write([f"joint_states.position_{place}" for place in range(6)]))


@pytest.mark.parametrize(("robot", "count"), [("planar2r", 2), ("planar3r", 3)])
@pytest.mark.parametrize("pattern", ["q{}", "joint_{}", "joint_positions[{}]"])
def test_planar_arms_have_joints(write, robot, count, pattern):
    names = [pattern.format(joint) for joint in range(1, count + 1)]
    joints = JOINTS[:, :count]

    motion = read(write(names, joints), simbridge.load_robot(robot))

    assert np.array_equal(motion.joints, joints)


def test_a_rate_stands_for_the_time(write):
    motion = read(write(NAMES, time=""), rate=50.0)

    assert motion.times == pytest.approx(TIMES)


def test_joints_without_time_are_refused(write):
    with pytest.raises(InputFileError, match="add --rate HZ"):
        read(write(NAMES, time=""))


def test_milliseconds_are_judged_by_the_tools_speed(tmp_path):
    path = write_table(tmp_path / "ms.csv", ["t", *NAMES], [TIMES * 1e3, JOINTS])

    assert read(path).times == pytest.approx(TIMES)


def test_rows_of_nan_are_left_out(write):
    joints = JOINTS.copy()
    joints[[20, 21]] = np.nan

    with pytest.warns(UserWarning, match=r"2 lost samples left out \(lines 22 and 23\)"):
        motion = read(write(NAMES, joints))

    assert len(motion.joints) == len(JOINTS) - 2


def test_rows_without_joints_are_left_out(write):
    path = write(NAMES, JOINTS)
    lines = path.read_text().splitlines()
    lines[21] = lines[21].split(",")[0] + "," * len(NAMES)
    path.write_text("\n".join(lines))

    with pytest.warns(UserWarning, match=r"1 lost sample left out \(line 22\)"):
        motion = read(path)

    assert np.array_equal(motion.joints, np.delete(JOINTS, 20, axis=0))


def test_repeated_rows_are_left_out(tmp_path):
    path = write_table(
        tmp_path / "repeated.csv", ["t", *NAMES], [TIMES.repeat(2), JOINTS.repeat(2, axis=0)]
    )

    with pytest.warns(UserWarning, match="100 repeated rows left out"):
        motion = read(path)

    assert np.array_equal(motion.joints, JOINTS)


def test_a_gap_is_refused(tmp_path):
    kept = np.r_[0:30, 60:100]
    path = write_table(tmp_path / "gap.csv", ["t", *NAMES], [TIMES[kept], JOINTS[kept]])

    with pytest.raises(InputFileError, match="--gaps"):
        read(path)

    with pytest.warns(UserWarning, match="interpolated"):
        assert np.array_equal(read(path, gaps="interpolate").joints, JOINTS[kept])


@pytest.mark.parametrize("options", [{"frame": "base"}, {"anchor": "start"}])
def test_joints_are_placed_nowhere(write, options):
    with pytest.raises(InputFileError, match="recorded joint positions cannot be placed elsewhere"):
        read(write(NAMES), **options)


@pytest.mark.parametrize("name", ["q", "joint_positions", "actual_q"])
def test_arrays_of_joints_are_read(tmp_path, name):
    arrays = {"t": TIMES, name: JOINTS, "qd": JOINTS, "joint_velocities": JOINTS}
    np.savez(tmp_path / "joints.npz", **arrays)

    assert np.array_equal(read(tmp_path / "joints.npz").joints, JOINTS)


def test_matrices_of_poses_go_before_joints(tmp_path):
    matrices = np.tile(np.eye(4), (len(TIMES), 1, 1))
    matrices[:, :3, 3] = [0.5, 0.1, 0.4]
    np.savez(tmp_path / "both.npz", t=TIMES, q=JOINTS, T=matrices)

    assert read(tmp_path / "both.npz").joints is None
    assert np.array_equal(read(tmp_path / "both.npz", column="joints").joints, JOINTS)


def test_parquet_names_joints(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame(JOINTS, columns=NAMES, index=pandas.Index(TIMES, name="time"))
    table.to_parquet(tmp_path / "joints.parquet")

    assert np.array_equal(read(tmp_path / "joints.parquet").joints, JOINTS)


def test_the_line_on_reading_counts_joint_positions(write):
    motion = read(write([f"{name}_deg" for name in NAMES], np.degrees(JOINTS)))

    assert motion.read_as.startswith("100 joint positions, 50 Hz")
    assert "shoulder_pan_joint_deg.., deg" in motion.read_as
