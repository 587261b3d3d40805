from __future__ import annotations

import struct

import numpy as np
import pytest

from simbridge.emulator import primary
from simbridge.emulator.primary import robot_state
from simbridge.emulator.state import PROFILES, ControllerEvent
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.fake_controller import UR10_A, UR10_D, FakeController


def parts(package: bytes) -> dict[int, bytes]:
    """Sub-packages of a robot state message by type, without their headers."""
    size, kind = struct.unpack_from(">iB", package)
    assert (size, kind) == (len(package), 16)
    payloads = {}
    at = 5
    while at < size:
        length, kind = struct.unpack_from(">iB", package, at)
        payloads[kind] = package[at + 5 : at + length]
        at += length
    assert at == size
    return payloads


@pytest.mark.parametrize(
    ("polyscope", "configuration"), [("3.15", 445), ("5.9", 445), ("5.12", 445), ("5.25", 449)]
)
def test_sub_packages_have_documented_sizes(polyscope: str, configuration: int) -> None:
    sizes = {
        kind: len(data) + 5 for kind, data in parts(robot_state(FakeController(polyscope))).items()
    }

    assert sizes == {0: 47, 1: 251, 2: 37, 3: 75, 4: 101, 5: 225, 6: configuration}


def test_the_robot_mode_holds_power_stops_program_and_speed() -> None:
    controller = FakeController("5.12")
    s = controller.state
    s.timestamp = 2.5
    s.speed_slider = 0.5
    s.speed_scaling = 0.5
    s.limiter_scaling = 0.25
    s.safety_mode = SafetyMode.PROTECTIVE_STOP
    s.runtime_state = RuntimeState.PAUSED

    time, *flags, mode, control, fraction, scaling, limit, _ = struct.unpack(
        ">Q7?bB3dB", parts(robot_state(controller))[0]
    )

    assert (time, mode, control, fraction, scaling, limit) == (
        2_500_000,
        RobotMode.RUNNING,
        0,
        0.5,
        0.25,
        1.0,
    )
    assert flags == [False, True, True, False, True, False, True]


def test_an_arm_without_power_is_reported() -> None:
    controller = FakeController("5.12")
    controller.state.robot_mode = RobotMode.POWER_OFF

    packages = parts(robot_state(controller))

    assert packages[0][8:11] == bytes([False, False, False])
    assert packages[1][40::41] == bytes([239] * 6)


def test_joint_data_holds_the_actual_and_the_target_joints() -> None:
    controller = FakeController("5.12")
    controller.state.target_q = np.arange(6.0)

    joints = list(struct.iter_unpack(">3d4fB", parts(robot_state(controller))[1]))

    assert [joint[0] for joint in joints] == controller.state.actual_q.tolist()
    assert [joint[1] for joint in joints] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert {joint[-1] for joint in joints} == {253}


def test_the_cartesian_info_holds_pose_and_tcp() -> None:
    controller = FakeController("5.12")
    controller.state.actual_tcp_pose = np.arange(6.0)
    controller.state.tcp_offset = np.arange(6.0) / 10

    assert struct.unpack(">12d", parts(robot_state(controller))[4]) == (
        *np.arange(6.0),
        *(np.arange(6.0) / 10),
    )


@pytest.mark.parametrize(("checksum", "status"), [((0xFFFFFFFF,) * 6, 1), ((1, 2, 3, 4, 5, 6), 0)])
def test_the_kinematics_info_holds_the_table_of_the_arm(
    checksum: tuple[int, ...], status: int
) -> None:
    controller = FakeController("5.12")
    controller.kinematics_checksum = checksum

    values = struct.unpack(">6I24dI", parts(robot_state(controller))[5])

    assert values[:6] == checksum
    assert (values[12:18], values[18:24], values[30]) == (UR10_A, UR10_D, status)


def test_the_configuration_holds_limits_table_and_robot_type() -> None:
    values = struct.unpack(">53d4i", parts(robot_state(FakeController("5.12")))[6])
    robot = FakeController.robot

    assert values[0:12:2] == tuple(robot.position_min)
    assert values[1:12:2] == tuple(robot.position_max)
    assert values[12:24:2] == tuple(robot.max_velocity)
    assert (values[29:35], values[35:41]) == (UR10_A, UR10_D)
    assert values[55] == 2


def message(data: bytes) -> tuple[int, int, bytes]:
    """Its time in microseconds, its type and what it says."""
    size, kind, time, _, subtype = struct.unpack_from(">iBQbB", data)
    assert (size, kind) == (len(data), 20)
    return time, subtype, data[15:]


@pytest.mark.parametrize("polyscope", PROFILES)
def test_the_version_message_names_the_software(polyscope: str) -> None:
    controller = FakeController(polyscope)
    _, kind, output = message(primary.version_message(controller))

    major, minor, bugfix, build = struct.unpack_from(">2B2i", output, 10)

    assert (kind, output[:10], (major, minor, bugfix, build)) == (
        3,
        b"\x09URControl",
        controller.profile.version,
    )
    assert output[20:].decode() == controller.profile.date


def test_a_runtime_exception_has_line_column_and_text() -> None:
    controller = FakeController("5.12")
    controller.state.timestamp = 1.5

    time, kind, output = message(
        primary.message_of(controller, ControllerEvent("error", "name 'x' is not defined", 12, 3))
    )

    assert (time, kind, struct.unpack_from(">2i", output), output[8:]) == (
        1_500_000,
        10,
        (12, 3),
        b"name 'x' is not defined",
    )


def test_text_and_key_messages_contain_their_texts() -> None:
    controller = FakeController("5.12")

    assert message(primary.message_of(controller, ControllerEvent("text", "höllo")))[1:] == (
        0,
        "höllo".encode(),
    )

    key = primary.message_of(controller, ControllerEvent("started", "servo"))

    assert message(key)[1:] == (7, struct.pack(">2iB", 0, 0, 19) + b"PROGRAM_XXX_STARTEDservo")
