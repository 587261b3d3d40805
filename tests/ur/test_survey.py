"""Reading a controller before anything moves: with the emulator, ur_rtde, and fake ports."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

from simbridge.backends.registers import REGISTERS
from simbridge.emulator.rtde_variables import input_variables
from simbridge.emulator.state import profile
from simbridge.robot.calibration_file import read_calibration
from simbridge.ur.errors import ConnectionLost, UnsupportedController
from simbridge.ur.survey import claimed_registers, read_controller, survey
from simbridge.ur.tables import BRIDGE_PORTS, REALTIME
from tests.controllers import loopback
from tests.emulator.fake_controller import stand
from tests.optional_packages import needs_ur_rtde
from tests.ur.conftest import CALIBRATION, CB3, E_SERIES
from tests.ur.fake_ports import listening, robot_api, rtde
from tests.ur.registers import take

FAKE = loopback(87)
ROBOT_API = "/universal-robots/robot-api"
# Without the real-time port a controller can be driven, but not through ur_rtde.
NEEDED_PORTS = [port for port in BRIDGE_PORTS if port != REALTIME]
INPUTS = REGISTERS["lower"].inputs_of("ur_rtde")
FOREVER = "def forever():\n  while True:\n    sync()\n  end\nend\n"
CLIENT = """
import os, sys, rtde_control
interface = rtde_control.RTDEControlInterface
flags = interface.FLAG_UPLOAD_SCRIPT | getattr(interface, sys.argv[2])
arm = interface(sys.argv[1], 500.0, int(flags))
print("connected", flush=True)
sys.stdin.read()
os._exit(0)
"""
SIX = struct.pack(">6d", *[0.0] * 6)
VARIABLES = {
    "timestamp": ("DOUBLE", struct.pack(">d", 1.0)),
    "robot_mode": ("INT32", struct.pack(">i", 7)),
    "safety_mode": ("INT32", struct.pack(">i", 1)),
    "runtime_state": ("UINT32", struct.pack(">I", 1)),
    "target_speed_fraction": ("DOUBLE", struct.pack(">d", 1.0)),
    "speed_scaling": ("DOUBLE", struct.pack(">d", 1.0)),
    "actual_q": ("VECTOR6D", SIX),
}


def test_a_calibrated_e_series_arm_is_described(e_series):
    facts = read_controller(E_SERIES)

    table, checksum = read_calibration(CALIBRATION)

    assert facts.host == E_SERIES
    assert facts.state.version == (5, 12, 6)
    assert facts.state.series == "e-Series"
    assert facts.state.period == 0.002
    assert facts.models == ("UR10e", "UR12e")
    assert not facts.ursim
    assert facts.pendant.remote_control
    assert facts.pendant.serial_number.isdigit()
    assert facts.pendant.version.startswith("5.12.6.")
    assert facts.state.robot_mode == 7
    assert facts.state.safety_mode == 1
    assert facts.state.runtime_state == 1
    assert facts.arm.kinematics == table
    assert facts.arm.checksum == checksum
    assert facts.state.payload == 0.0
    assert facts.state.payload_cog == (0.0, 0.0, 0.0)
    assert facts.state.q.tolist() == e_series.state()["actual_q"]

    with pytest.raises(ValueError, match="read-only"):
        facts.state.q[0] = 1.0


def test_a_cb3_controller_without_power_is_described(cb3):
    facts = read_controller(CB3)

    assert facts.state.version == (3, 15, 8)
    assert facts.state.series == "CB3"
    assert facts.state.period == 0.008
    assert facts.models == ("UR10",)
    assert facts.ursim
    assert facts.pendant.remote_control is None
    assert facts.state.robot_mode == 3


def test_the_slider_and_local_control_are_seen(e_series):
    e_series.do("slider", fraction=0.3)
    e_series.do("remote_control", on=False)
    try:
        e_series.wait_for("speed_scaling", 0.3)

        facts = read_controller(E_SERIES)

        assert facts.state.slider == 0.3
        assert not facts.pendant.remote_control
    finally:
        e_series.do("slider", fraction=1.0)
        e_series.do("remote_control", on=True)


def test_a_running_program_is_seen_and_continues(e_series):
    e_series.do("run_script", source=FOREVER)
    e_series.wait_for("runtime_state", "PLAYING")
    try:
        assert read_controller(E_SERIES).state.runtime_state == 2
        assert claimed_registers(E_SERIES, INPUTS) == ()
        assert e_series.state()["runtime_state"] == "PLAYING"
    finally:
        e_series.do("stop_program")
        e_series.wait_for("runtime_state", "STOPPED")


def test_reading_writes_nothing_and_runs_nothing(cb3):
    read_controller(CB3)
    claimed_registers(CB3, INPUTS)

    record = cb3.record()

    assert record.inputs == []
    assert np.isnan(record.setpoint).all()
    assert cb3.state()["runtime_state"] == "STOPPED"


def test_registers_that_another_client_has_claimed_are_named(e_series):
    assert claimed_registers(E_SERIES, INPUTS) == ()

    take(e_series, "input_double_register_3", "input_double_register_20")
    try:
        assert claimed_registers(E_SERIES, INPUTS) == ("input_double_register_3",)
    finally:
        e_series.do("release_registers")

    assert claimed_registers(E_SERIES, INPUTS) == ()


def test_registers_of_a_gone_client_are_free(e_series):
    take(e_series, "input_double_register_3")
    leaving = threading.Timer(0.1, e_series.do, ["release_registers"])
    leaving.start()
    try:
        assert claimed_registers(E_SERIES, INPUTS) == ()
    finally:
        leaving.join()


@needs_ur_rtde
@pytest.mark.parametrize(
    ("half", "flag"),
    [("lower", "FLAG_UPLOAD_SCRIPT"), ("upper", "FLAG_UPPER_RANGE_REGISTERS")],
)
def test_claimed_registers_are_those_of_ur_rtde(half, flag, e_series):
    inputs = REGISTERS[half].inputs_of("ur_rtde")
    others = sorted(set(input_variables(profile("5.12"))) - set(inputs))
    command = [sys.executable, "-c", CLIENT, E_SERIES, flag]

    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        try:
            assert client.stdout.readline() == "connected\n"
            assert claimed_registers(E_SERIES, inputs) == inputs
            assert e_series.do("take_registers", names=others) == []
        finally:
            client.communicate()
            e_series.do("release_registers")
            e_series.do("stop_program")
    e_series.wait_for("runtime_state", "STOPPED")


@pytest.mark.parametrize("port", BRIDGE_PORTS)
def test_a_silent_port_hides_no_other(cb3, port):
    cb3.do("mute", port=port)
    try:
        # Long enough for the other ports, however busy the machine is.
        read = survey(CB3, timeout=4.0)
    finally:
        cb3.do("mute", port=port, muted=False)

    assert list(read.lost) == [port]
    parts = {29999: read.pendant, 30001: read.arm, 30004: read.state}
    silent = [number for number, part in parts.items() if part is None]
    assert silent == [number for number in parts if number == port]
    assert read.lost[port].port == port


def test_only_ur_rtde_needs_the_realtime_port(cb3):
    cb3.do("refuse", port=REALTIME)
    try:
        facts = read_controller(CB3)
    finally:
        cb3.do("refuse", port=REALTIME, refused=False)

    assert facts.realtime_error.port == REALTIME


@pytest.mark.parametrize("port", NEEDED_PORTS)
def test_a_port_where_nothing_listens_is_named(cb3, port):
    cb3.do("refuse", port=port)
    try:
        with pytest.raises(ConnectionLost, match=f"port {port}"):
            read_controller(CB3)
    finally:
        cb3.do("refuse", port=port, refused=False)


def test_without_any_controller_rtde_is_named():
    assert sorted(survey(FAKE).lost) == sorted(BRIDGE_PORTS)

    with pytest.raises(ConnectionLost, match="port 30004"):
        read_controller(FAKE)


def test_an_invalid_host_name_is_a_lost_connection():
    with pytest.raises(ConnectionLost):
        read_controller("192.168..10")


def test_a_polyscope_x_before_the_oldest_is_refused():
    server = listening(FAKE, 30004, rtde((10, 6, 0, 0), VARIABLES))

    with server, pytest.raises(UnsupportedController, match=r"from 10\.7 on") as refused:
        read_controller(FAKE)

    assert refused.value.version == "10.6.0"


@pytest.mark.parametrize(
    ("polyscope", "remote_control", "serial_number"),
    [("10.7", None, None), ("10.12", True, None), ("10.14", True, "20261234567")],
)
def test_polyscope_x_reports_more_from_version_to_version(polyscope, remote_control, serial_number):
    with stand(polyscope, FAKE, {}, run=True):
        facts = read_controller(FAKE)

    assert facts.state.is_polyscope_x
    assert facts.state.version_text == f"{polyscope}.0"
    assert facts.state.period == 0.002
    assert facts.pendant.remote_control is remote_control
    assert facts.pendant.serial_number == serial_number


def test_local_is_read_from_the_robot_api():
    with stand("10.12", FAKE, {80: 8080}, run=True) as served:
        served.controller.remote_control = False

        facts = read_controller(FAKE, rest_port=8080)

    assert facts.pendant.remote_control is False


def test_local_is_read_although_the_serial_number_is_not():
    api = robot_api(
        {
            f"{ROBOT_API}/openapi.json": {"info": {"version": "5.0.107"}},
            f"{ROBOT_API}/system/v1/controlmode": {"mode": "LOCAL"},
        }
    )

    with (
        listening(FAKE, 30004, rtde((10, 14, 0, 0), VARIABLES)),
        listening(FAKE, 8080, api),
    ):
        pendant = survey(FAKE, rest_port=8080).pendant

    assert pendant.remote_control is False
    assert "HTTP status 404" in pendant.serial_number_obstacle


def test_a_closed_robot_api_is_the_reason_that_local_is_unknown():
    with listening(FAKE, 30004, rtde((10, 12, 0, 0), VARIABLES)):
        pendant = survey(FAKE, rest_port=8080).pendant

    assert pendant.remote_control is None
    assert "refused" in pendant.remote_control_obstacle
    assert "10.14" in pendant.serial_number_obstacle


def test_polyscope_x_can_be_driven_without_its_robot_api():
    with stand("10.14", FAKE, {}, run=True) as served:
        served.servers.refuse(80)

        read = survey(FAKE)

    assert list(read.lost) == [80]
    assert read.complete().pendant.remote_control is None


@pytest.mark.parametrize("port", [30001, 30004])
def test_polyscope_x_is_known_by_any_of_its_ports(port):
    with stand("10.12", FAKE, {}, run=True) as served:
        served.servers.refuse(port)

        read = survey(FAKE)

    assert read.is_polyscope_x
    assert read.needed_ports == (30001, 30004)
    assert list(read.lost) == [port]
    with pytest.raises(ConnectionLost, match=f"port {port}"):
        read.complete()


def test_polyscope_x_is_known_by_its_robot_api_alone():
    with stand("10.12", FAKE, {}, run=True) as served:
        served.servers.refuse(30001)
        served.servers.refuse(30004)

        read = survey(FAKE)

    assert read.is_polyscope_x
    assert list(read.lost) == [30004, 30001]


def test_a_missing_variable_is_named():
    known = {name: value for name, value in VARIABLES.items() if name != "target_speed_fraction"}
    server = listening(FAKE, 30004, rtde((3, 0, 1, 0), known))

    with server, pytest.raises(UnsupportedController, match="target_speed_fraction"):
        read_controller(FAKE)


def test_newer_safety_numbers_are_read_from_the_wire():
    newer = {
        **VARIABLES,
        "safety_mode": ("INT32", struct.pack(">i", 21)),
        "safety_status_bits": ("UINT32", struct.pack(">I", 2049)),
    }

    with listening(FAKE, 30004, rtde((5, 25, 1, 0), newer)):
        state = survey(FAKE, timeout=0.5).state

    assert state.safety_mode == 21
    assert state.safety_status_bits == 2049


def test_an_unreported_payload_is_none():
    with listening(FAKE, 30004, rtde((3, 5, 1, 0), VARIABLES)):
        state = survey(FAKE, timeout=0.5).state

    assert state.version == (3, 5, 1)
    assert state.payload is None
    assert state.payload_cog is None
