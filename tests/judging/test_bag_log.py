"""Bags of joint states and of a trajectory controller's state as logs."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import InputFileError
from simbridge.judging.log import LogSource
from simbridge.judging.read_log import LogOptions, read_log
from simbridge.robot.load import load_robot
from simbridge.ur.tables import RuntimeState, SafetyMode
from tests.judging.controller_bags import JOINTS, ControllerBag, moving

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("ros1", "generation"),
    [
        (True, "desired"),
        pytest.param(False, "desired", marks=pytest.mark.soak),
        pytest.param(False, "desired and multi-dof", marks=pytest.mark.soak),
        (False, "humble"),
        pytest.param(False, "jazzy", marks=pytest.mark.soak),
        (False, "kilted"),
    ],
)
def test_each_generation_of_the_state_is_read(tmp_path, ros1, generation):
    motion = moving()
    bag = ControllerBag(ros1, generation)
    for time, reference, actual in zip(motion.times, motion.reference, motion.actual, strict=True):
        bag.state(time, reference, actual, qd=np.full(6, 0.1))
    path = bag.write(tmp_path / ("a.bag" if ros1 else "bag"))

    log = read_log(path)

    assert log.source is (LogSource.ROS1_BAG if ros1 else LogSource.ROS2_BAG)
    assert np.array_equal(log.reference.q, motion.reference)
    assert np.array_equal(log.reference.actual_q, motion.actual)
    assert np.allclose(log.reference.error, motion.reference - motion.actual)
    assert np.array_equal(log.reference.qd, np.full((20, 6), 0.1))
    assert (log.reference.output is None) == (generation.startswith("desired"))
    assert log.times == pytest.approx(motion.times)


def test_a_compressed_bag_is_known_by_its_description(tmp_path):
    bag = ControllerBag()
    for time in (0.0, 0.01, 0.02):
        bag.joint_state(time, np.full(6, time))
    path = bag.write(tmp_path / "bag")
    for file in path.glob("*.db3"):
        file.rename(file.with_suffix(".db3.zstd"))

    # The file is not compressed, which its reader says: it is not taken for a run.
    with pytest.raises(InputFileError, match="ROS bag"):
        read_log(path)


def test_a_truncated_bag_says_how_to_restore_it(tmp_path):
    bag = ControllerBag(ros1=True, generation="desired")
    for time in (0.0, 0.01, 0.02):
        bag.joint_state(time, np.full(6, time))
    path = bag.write(tmp_path / "a.bag")
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(InputFileError, match="`rosbag reindex` may restore"):
        read_log(path)


def test_joints_are_mapped_by_name(tmp_path):
    motion = moving()
    shuffled = [3, 1, 5, 0, 2, 4]
    bag = ControllerBag()
    for time, reference, actual in zip(motion.times, motion.reference, motion.actual, strict=True):
        names = [f"left_{JOINTS[i]}" for i in shuffled]
        bag.joint_state(time, [*actual[shuffled], 0.7], [*names, "finger_joint"])
        bag.state(time, reference[::-1], actual[::-1], [f"left_{name}" for name in JOINTS[::-1]])

    log = read_log(bag.write(tmp_path / "bag"))

    assert log.joint_names == tuple(f"left_{name}" for name in JOINTS)
    assert np.array_equal(log.actual_q, motion.actual)
    assert np.array_equal(log.reference.q, motion.reference)


def test_two_arms_need_a_prefix(tmp_path):
    motion = moving()
    bag = ControllerBag()
    for time, actual in zip(motion.times, motion.actual, strict=True):
        bag.joint_state(time, actual, [f"left_{name}" for name in JOINTS])
        bag.joint_state(time, -actual, [f"right_{name}" for name in JOINTS])
    path = bag.write(tmp_path / "bag")

    with pytest.raises(InputFileError, match="--prefix"):
        read_log(path)
    assert np.array_equal(read_log(path, LogOptions(prefix="right_")).q, -motion.actual)


@pytest.mark.parametrize("prefix", ["left_", "/left"])
def test_only_the_states_of_the_chosen_arm_are_read(tmp_path, prefix):
    path = bag_of_two_arms(prefix).write(tmp_path / "bag")

    log = read_log(path, LogOptions(prefix=prefix))

    assert log.speed_scaling.values.tolist() == [1.0]
    assert log.safety_mode is None
    assert not log.results


def test_arms_in_namespaces_need_a_prefix(tmp_path):
    path = bag_of_two_arms("/left").write(tmp_path / "bag")

    with pytest.raises(InputFileError, match="--prefix: /left, /right") as refusal:
        read_log(path)
    assert refusal.value.field == "joint states"
    assert np.array_equal(read_log(path, LogOptions(prefix="/right")).q, -moving().actual)


def test_states_of_no_known_arm_are_noted(tmp_path):
    bag = bag_of_two_arms("left_")
    bag.value(0.05, "/speed_scaling_factor", "std_msgs/msg/Float64", 0.4)

    log = read_log(bag.write(tmp_path / "bag"), LogOptions(prefix="left_"))

    assert log.speed_scaling.values.tolist() == [1.0]
    assert any("/speed_scaling_factor" in note for note in log.notes)


def test_columns_of_a_bag_cannot_be_named(tmp_path):
    path = bag_of_states().write(tmp_path / "bag")

    with pytest.raises(InputFileError, match="--columns"):
        read_log(path, LogOptions(columns=("t",)))


def test_another_arm_than_the_named_one_is_refused(tmp_path):
    motion = moving()
    bag = ControllerBag()
    for time, actual in zip(motion.times, motion.actual, strict=True):
        bag.joint_state(time, actual)
    path = bag.write(tmp_path / "bag")

    with pytest.raises(InputFileError, match="shoulder_pan_joint") as refusal:
        read_log(path, LogOptions(robot=load_robot("planar3r")))
    assert refusal.value.field == "joint names"


@pytest.mark.parametrize(
    ("topic", "published"),
    [
        ("/speed_scaling_state_broadcaster/speed_scaling", 40.0),
        ("/speed_scaling_factor", 0.4),
    ],
)
def test_speed_scaling_of_either_driver_is_a_fraction(tmp_path, topic, published):
    bag = bag_of_states()
    bag.value(0.05, topic, "std_msgs/msg/Float64", published)

    log = read_log(bag.write(tmp_path / "bag"))

    assert log.speed_scaling.values == pytest.approx([0.4])
    assert log.speed_scaling.times == pytest.approx([0.05])


def test_the_speed_scaling_of_a_controllers_state_is_read(tmp_path):
    bag = ControllerBag(generation="kilted")
    for time, scaling in ((0.0, 1.0), (0.01, 0.3)):
        bag.state(time, np.zeros(6), np.zeros(6), scaling=scaling)

    log = read_log(bag.write(tmp_path / "bag"))

    assert log.speed_scaling.values == pytest.approx([1.0, 0.3])
    assert log.speed_scaling.times == pytest.approx([0.0, 0.01])


@pytest.mark.parametrize("ros1", [True, False])
def test_states_of_the_driver_are_kept(tmp_path, ros1):
    bag = bag_of_states(ros1)
    node = "/ur_hardware_interface" if ros1 else "/io_and_status_controller"
    bag.value(0.02, f"{node}/safety_mode", "ur_dashboard_msgs/msg/SafetyMode", 3)
    bag.value(0.03, f"{node}/robot_mode", "ur_dashboard_msgs/msg/RobotMode", 7)
    bag.value(0.04, f"{node}/robot_program_running", "std_msgs/msg/Bool", False)

    log = read_log(bag.write(tmp_path / ("a.bag" if ros1 else "bag")))

    assert log.safety_mode.values == [SafetyMode.PROTECTIVE_STOP]
    assert log.robot_mode.values == [7]
    assert log.program_state.values == [RuntimeState.STOPPED]


def test_goals_and_results_of_ros1_are_read(tmp_path):
    bag = bag_of_states(ros1=True)
    points = [(0.0, np.zeros(6)), (2.0, np.ones(6))]
    bag.ros1_goal(0.01, "goal 1", points, path_tolerance=0.2, names=JOINTS[::-1])
    bag.ros1_result(0.15, "goal 1", 4, -4, "shoulder_pan_joint path error 0.21")

    log = read_log(bag.write(tmp_path / "a.bag"))

    (goal,) = log.goals
    (result,) = log.results
    assert goal.goal_id == result.goal_id == "goal 1"
    assert goal.received == pytest.approx(0.01)
    assert goal.times == pytest.approx([0.0, 2.0])
    assert np.array_equal(goal.path_tolerance, np.full(6, 0.2))
    assert goal.goal_time_tolerance == 0.5
    assert (result.outcome, result.error) == ("aborted", "PATH_TOLERANCE_VIOLATED")
    assert result.time == pytest.approx(0.15)


def test_stamps_of_a_simulation_place_all_messages(tmp_path):
    bag = bag_of_states()
    # Recorded an epoch after the stamps.
    for index, (_, topic, kind, message) in enumerate(bag.messages):
        message.header.stamp.sec = 5
        message.header.stamp.nanosec = 10_000_000 * index
        bag.messages[index] = (0.01 * index, topic, kind, message)
    bag.value(0.05, "/speed_scaling_factor", "std_msgs/msg/Float64", 0.5)

    log = read_log(bag.write(tmp_path / "bag"))

    assert log.start == 5.0
    assert log.speed_scaling.times == pytest.approx([0.05])


def test_a_bag_without_joints_names_its_topics(tmp_path):
    bag = ControllerBag()
    bag.value(0.0, "/speed_scaling_factor", "std_msgs/msg/Float64", 0.5)

    with pytest.raises(InputFileError, match="/speed_scaling_factor"):
        read_log(bag.write(tmp_path / "bag"))


@pytest.mark.parametrize("order", ["from the base", "alphabetical"])
def test_commands_without_names_are_put_in_order(tmp_path, order):
    motion = moving()
    posture = np.array([0.0, -1.5, 1.2, -1.6, -1.5, 0.3])
    bag = ControllerBag()
    names = JOINTS if order == "from the base" else sorted(JOINTS)
    columns = [JOINTS.index(name) for name in names]
    for time, reference, actual in zip(motion.times, motion.reference, motion.actual, strict=True):
        bag.joint_state(time, posture + actual)
        command = (posture + reference)[columns]
        bag.array(time, "/forward_position_controller/commands", command)

    log = read_log(bag.write(tmp_path / "bag"))

    assert np.array_equal(log.position_commands.values, posture + motion.reference)
    assert log.position_commands.times == pytest.approx(motion.times)
    assert log.speed_commands is None


def test_commands_in_no_clear_order_are_noted(tmp_path):
    bag = bag_of_states()
    bag.array(0.05, "/forward_position_controller/commands", np.zeros(6))

    log = read_log(bag.write(tmp_path / "bag"))

    assert log.position_commands is None
    assert any("order of its joints" in note for note in log.notes)


def test_velocities_to_a_controller_are_read(tmp_path):
    motion = moving()
    bag = ControllerBag()
    for time, actual in zip(motion.times, motion.actual, strict=True):
        bag.joint_state(time, actual, qd=motion.actual_qd[0])
        bag.array(time, "/forward_velocity_controller/commands", motion.actual_qd[0])

    log = read_log(bag.write(tmp_path / "bag"))

    assert np.array_equal(log.speed_commands.values[0], motion.actual_qd[0])


def test_a_status_of_ros2_ends_a_goal(tmp_path):
    bag = bag_of_states()
    bag.ros2_status(0.02, {1: 2})
    bag.ros2_status(0.12, {1: 6})
    bag.ros2_status(0.15, {1: 6, 2: 2})

    (result,) = read_log(bag.write(tmp_path / "bag")).results

    assert result.outcome == "aborted"
    assert result.time == pytest.approx(0.12)


def test_the_log_of_a_controller_says_why_a_goal_was_aborted(tmp_path):
    bag = bag_of_states()
    bag.ros2_status(0.02, {1: 2})
    bag.logged(0.05, "Goal request accepted")
    bag.logged(0.11, "State tolerances failed for joint 2:")
    bag.logged(0.11, "Position Error: 0.2134, Position Tolerance: 0.200000")
    bag.logged(0.111, "Aborted due to state tolerance violation")
    bag.ros2_status(0.12, {1: 6})

    (result,) = read_log(bag.write(tmp_path / "bag")).results

    assert result.error == "PATH_TOLERANCE_VIOLATED"
    assert result.tolerance_rad == 0.2
    assert "joint 2" in result.text


def test_an_abort_that_was_only_logged_is_a_result(tmp_path):
    bag = bag_of_states()
    bag.logged(0.1, "Aborted due to goal_time_tolerance exceeding by 0.5 seconds")

    (result,) = read_log(bag.write(tmp_path / "bag")).results

    assert (result.outcome, result.error) == ("aborted", "GOAL_TOLERANCE_VIOLATED")
    assert result.time == pytest.approx(0.1)


def bag_of_states(ros1: bool = False) -> ControllerBag:
    """A bag with a little motion of the measured joints."""
    motion = moving()
    bag = ControllerBag(ros1, "desired" if ros1 else "jazzy")
    for time, actual in zip(motion.times, motion.actual, strict=True):
        bag.joint_state(time, actual)
    return bag


def bag_of_two_arms(prefix: str) -> ControllerBag:
    """Two arms, told apart by joint names or by topics; the right one stops and gives up."""
    motion = moving()
    bag = ControllerBag()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        names = JOINTS if prefix.startswith("/") else [f"{side}_{name}" for name in JOINTS]
        for time, actual in zip(motion.times, motion.actual, strict=True):
            bag.joint_state(time, sign * actual, names, topic=f"/{side}/joint_states")
    scaling = "std_msgs/msg/Float64"
    bag.value(0.01, "/left/speed_scaling", scaling, 100.0)
    for time in (0.01, 0.05):
        bag.value(time, "/right/speed_scaling", scaling, 30.0)
    safety = "ur_dashboard_msgs/msg/SafetyMode"
    bag.value(0.05, "/right/safety_mode", safety, SafetyMode.PROTECTIVE_STOP)
    bag.logged(0.1, "Aborted due to state tolerance violation", name="right.arm_controller")
    return bag
