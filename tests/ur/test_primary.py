"""The client of the primary interface, with bytes packed here and with the emulator's servers."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.robot.calibration import calibrate, nominal_dh
from simbridge.robot.kinematics import tool_path
from simbridge.ur.errors import ConnectionLost
from simbridge.ur.packages import MalformedPackage, PackageBuffer
from simbridge.ur.primary import DescriptionReader, is_ursim, read_arm_description, sub_packages
from tests.controllers import loopback
from tests.emulator.fake_controller import UR10_D, stand
from tests.patience import PATIENCE

HOST = loopback(81)
CHECKSUM = (1, 2, 3, 4, 5, 0xFFFFFFFF)
THETA, A, D, ALPHA = (tuple(row) for row in (np.arange(24.0).reshape(4, 6) / 7.0).tolist())
TCP_POSE = (0.1, -0.2, 0.3, 0.4, -0.5, 0.6)
TCP_OFFSET = (0.0, 0.0, 0.15, 0.0, 0.0, 1.5)
RANGES = [(-6.2 - i, 6.1 + i) for i in range(6)]
RATES = [(2.0 + i, 10.0 + i) for i in range(6)]


def packed(kind: int, content: bytes) -> bytes:
    return struct.pack(">IB", 5 + len(content), kind) + content


ROBOT_MODE = packed(0, struct.pack(">Q7?2B3d", 1_500_000, *[True] * 7, 7, 0, 1.0, 0.5, 1.0) + b"\0")
CARTESIAN = packed(4, struct.pack(">12d", *TCP_POSE, *TCP_OFFSET))
KINEMATICS = packed(5, struct.pack(">6I24dI", *CHECKSUM, *THETA, *A, *D, *ALPHA, 3))
CONFIGURATION = packed(
    6,
    struct.pack(">24d", *sum(RANGES, ()), *sum(RATES, ()))
    + struct.pack(">29d4i", *[0.5] * 29, 4, 1, 2, 9),
)
VERSION = packed(
    20,
    struct.pack(">QbB", 7, -2, 3)
    + b"\x09URControl"
    + struct.pack(">2B2i", 5, 12, 6, 42)
    + b"May 14",
)


def state(*parts: bytes) -> bytes:
    return packed(16, b"".join(parts))


WHOLE = VERSION + state(
    ROBOT_MODE, packed(99, b"of the future"), CARTESIAN, KINEMATICS, CONFIGURATION
)


def described(*chunks: bytes):
    reader = DescriptionReader()
    for chunk in chunks:
        reader.receive(chunk)
    assert reader.complete
    return reader.description()


@pytest.mark.parametrize("length", [0, 9, 10, 11, 20, 21])
def test_a_truncated_version_message_reports_no_version(length) -> None:
    content = VERSION[5 : 5 + length]

    arm = described(packed(20, content), WHOLE[len(VERSION) :])

    assert arm.software is None


def test_the_packed_sub_packages_have_the_documented_sizes() -> None:
    assert [len(part) for part in (ROBOT_MODE, CARTESIAN, KINEMATICS, CONFIGURATION)] == [
        47,
        101,
        225,
        445,
    ]


def test_every_value_comes_from_its_documented_place() -> None:
    arm = described(WHOLE)
    table = arm.kinematics

    assert table.theta == THETA
    assert table.a == A
    assert table.d == D
    assert table.alpha == ALPHA
    assert arm.checksum == CHECKSUM
    assert arm.limits is not None
    assert list(zip(arm.limits.position_min, arm.limits.position_max, strict=True)) == RANGES
    assert list(zip(arm.limits.max_velocity, arm.limits.max_acceleration, strict=True)) == RATES
    assert arm.robot_type == 2
    assert arm.software == (5, 12)
    assert tuple(arm.tcp_offset) == TCP_OFFSET

    with pytest.raises(ValueError, match="read-only"):
        arm.tcp_offset[0] = 1.0


@given(st.integers(1, len(WHOLE)))
def test_the_stream_may_come_in_any_pieces(size: int) -> None:
    assert (
        described(*(WHOLE[i : i + size] for i in range(0, len(WHOLE), size))).checksum == CHECKSUM
    )


def test_longer_sub_packages_are_understood() -> None:
    longer = [
        packed(part[4], part[5:] + b"appended")
        for part in (ROBOT_MODE, CARTESIAN, KINEMATICS, CONFIGURATION)
    ]

    arm = described(VERSION + state(*longer))

    assert arm.robot_type == 2
    assert arm.kinematics.alpha == ALPHA


def test_an_older_version_has_no_type() -> None:
    arm = described(
        VERSION + state(ROBOT_MODE, CARTESIAN, KINEMATICS, packed(6, CONFIGURATION[5:-12]))
    )

    assert arm.limits is not None
    assert arm.robot_type is None


def test_no_configuration_means_no_limits() -> None:
    reader = DescriptionReader()
    for _ in range(3):
        assert not reader.complete

        reader.receive(state(ROBOT_MODE, CARTESIAN, KINEMATICS))

    assert reader.complete

    arm = reader.description()

    assert arm.limits is None
    assert arm.robot_type is None


def test_sub_packages_may_come_in_different_states() -> None:
    arm = described(VERSION, state(KINEMATICS, CONFIGURATION), state(ROBOT_MODE, CARTESIAN))

    assert arm.checksum == CHECKSUM
    assert tuple(arm.tcp_offset) == TCP_OFFSET


def test_missing_kinematics_are_refused() -> None:
    reader = DescriptionReader()

    reader.receive(VERSION + state(ROBOT_MODE, CARTESIAN, CONFIGURATION) * 9)

    assert not reader.complete

    with pytest.raises(MalformedPackage, match="no kinematics"):
        reader.description()


@pytest.mark.parametrize(
    "bytes_",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        struct.pack(">iB", 4, 16),
        struct.pack(">iB", -1, 16),
        struct.pack(">iB", (1 << 20) + 1, 16),
        packed(16, struct.pack(">IB", 100, 5) + b"too few"),
        packed(16, struct.pack(">IB", 3, 5) + b"four"),
        packed(16, b"\0\0"),
    ],
)
def test_what_no_controller_sends_is_malformed(bytes_: bytes) -> None:
    with pytest.raises(MalformedPackage):
        DescriptionReader().receive(bytes_)


@pytest.mark.parametrize(
    "short", [KINEMATICS, CARTESIAN, CONFIGURATION], ids=lambda part: f"type {part[4]}"
)
def test_a_short_sub_package_is_malformed(short: bytes) -> None:
    parts = [part for part in (KINEMATICS, CARTESIAN, CONFIGURATION) if part is not short]
    reader = DescriptionReader()
    reader.receive(VERSION + state(*parts, packed(short[4], short[5:17])))

    with pytest.raises(MalformedPackage, match="too few"):
        reader.description()


def test_numbers_that_are_not_finite_are_malformed() -> None:
    reader = DescriptionReader()
    bad = struct.pack(">6I24dI", *CHECKSUM, *THETA, *A, float("nan"), *D[1:], *ALPHA, 0)
    reader.receive(state(ROBOT_MODE, CARTESIAN, packed(5, bad)))

    with pytest.raises(MalformedPackage, match="not finite"):
        reader.description()


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60), st.sampled_from([WHOLE, WHOLE[:300], KINEMATICS, VERSION])
        ),
        max_size=6,
    )
)
def test_any_bytes_are_understood_or_malformed(chunks: list[bytes]) -> None:
    reader = DescriptionReader()
    with contextlib.suppress(MalformedPackage):
        for chunk in chunks:
            reader.receive(chunk)
        reader.description()


@given(
    st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=40)), max_size=8), st.integers(1, 50)
)
def test_packages_come_out_as_they_went_in(sent: list[tuple[int, bytes]], size: int) -> None:
    data = b"".join(packed(kind, content) for kind, content in sent)
    buffer = PackageBuffer(struct.Struct(">iB"), 1 << 20)
    parts = [
        package for i in range(0, len(data), size) for package in buffer.feed(data[i : i + size])
    ]

    assert parts == sub_packages(data) == sent


def test_only_a_checksum_of_all_ones_is_ursim() -> None:
    assert is_ursim((0xFFFFFFFF,) * 6)
    assert not is_ursim(CHECKSUM)


@contextlib.contextmanager
def serving(answer: Callable[[socket.socket, threading.Event], object]) -> Iterator[int]:
    """The port of a server that treats its one client so."""
    done = threading.Event()
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                client, _ = server.accept()
                with client:
                    answer(client, done)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            done.set()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("polyscope", ["3.15", "5.9", "5.12", "5.25"])
def test_the_emulators_arm_is_described(polyscope: str) -> None:
    with stand(polyscope, HOST, run=True) as served:
        with served.lock:
            served.controller.state.tcp_offset = np.array(TCP_OFFSET)
        arm = read_arm_description(HOST, port=served.servers.ports[30001], timeout=PATIENCE)
        robot = served.controller.robot

    assert arm.kinematics == nominal_dh(robot)
    assert arm.kinematics.d == UR10_D
    assert is_ursim(arm.checksum)
    assert arm.limits is not None
    assert np.array_equal(arm.limits.position_min, robot.position_min)
    assert np.array_equal(arm.limits.position_max, robot.position_max)
    assert np.array_equal(arm.limits.max_velocity, served.controller.joint_speed_limits)
    assert arm.robot_type == 2
    assert tuple(arm.tcp_offset) == TCP_OFFSET


def test_a_calibrated_arm_is_not_ursim() -> None:
    with stand("5.12", HOST) as served:
        served.controller.kinematics_checksum = CHECKSUM
        served.controller.dh = (THETA, A, D, ALPHA)
        served.run()
        arm = read_arm_description(HOST, port=served.servers.ports[30002], timeout=PATIENCE)

    assert arm.checksum == CHECKSUM
    assert arm.kinematics.theta == THETA
    assert arm.kinematics.d == D
    assert not is_ursim(arm.checksum)


def test_a_calibrated_tool_is_where_reported(e_series) -> None:
    robot = load_robot("ur10e")
    arm = read_arm_description(e_series.host, timeout=PATIENCE)
    state = e_series.state()
    joints = state["actual_q"]
    tcp = np.array(state["tcp_pose"])
    pose = pin.XYZQUATToSE3(tool_path(calibrate(robot, arm.kinematics), [joints])[0])

    # The pendant's base is base_link turned by half a turn about z.
    reported = pin.SE3(pin.exp3(tcp[3:]), tcp[:3])

    assert (
        np.abs(pose.homogeneous - np.diag([-1.0, -1.0, 1.0, 1.0]) @ reported.homogeneous).max()
        < 1e-9
    )
    assert np.linalg.norm(tool_path(robot, [joints])[0, :3] - pose.translation) > 5e-4


def test_a_port_where_nothing_listens_is_named() -> None:
    message = (
        f"No connection to the controller at {HOST}, port 30001 (primary): Connection refused. "
    )

    with pytest.raises(ConnectionLost, match=re.escape(message)) as caught:
        read_arm_description(HOST)

    assert caught.value.reason == "Connection refused"
    assert not caught.value.was_connected
    assert caught.value.host == HOST
    assert caught.value.port == 30001


@pytest.mark.parametrize("host", ["no such host", "x" * 80])
def test_an_unknown_host_is_lost(host: str) -> None:
    with pytest.raises(ConnectionLost, match="No connection to the controller"):
        read_arm_description(host)


def test_a_silent_port_ends_at_the_deadline() -> None:
    with (
        serving(lambda client, done: done.wait()) as port,
        pytest.raises(ConnectionLost, match=r"within 0\.2 s it sent no TCP and no kinematics"),
    ):
        read_arm_description(HOST, timeout=0.2, port=port)


def test_the_deadline_covers_everything_and_not_each_byte() -> None:
    def trickle(client: socket.socket, done: threading.Event) -> None:
        while not done.wait(0.02):
            client.sendall(VERSION)

    with serving(trickle) as port, pytest.raises(ConnectionLost, match="sent no TCP"):
        read_arm_description(HOST, timeout=0.3, port=port)


@pytest.mark.slow
def test_a_late_description_lacks_its_limits() -> None:
    def once(client: socket.socket, done: threading.Event) -> None:
        client.sendall(VERSION + state(ROBOT_MODE, CARTESIAN, KINEMATICS))
        done.wait()

    with serving(once) as port:
        # Long enough for what the server sends at once.
        arm = read_arm_description(HOST, timeout=2.0, port=port)

    assert arm.checksum == CHECKSUM
    assert arm.limits is None


def test_a_connection_closed_in_the_middle_is_lost() -> None:
    with (
        serving(lambda client, done: client.sendall(WHOLE[:700])) as port,
        pytest.raises(ConnectionLost, match="closed the connection before describing its arm"),
    ):
        read_arm_description(HOST, timeout=PATIENCE, port=port)


def test_another_server_is_lost() -> None:
    with (
        serving(lambda client, done: client.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")) as port,
        pytest.raises(ConnectionLost, match="not UR's primary interface"),
    ):
        read_arm_description(HOST, timeout=PATIENCE, port=port)
