"""The primary interface's robot state: what a controller tells ten times a second on ports 30001 and 30002.

Source: Universal Robots, "Client Interfaces" (primary and secondary): a package is an int32 size, a type and
sub-packages, each with its own size and type; everything is big-endian.
"""

from __future__ import annotations

import struct

import numpy as np

from simbridge.emulator.commands import Machine
from simbridge.emulator.rtde_variables import joint_mode
from simbridge.emulator.state import RuntimeState, SafetyMode

ROBOT_STATE = 16
ROBOT_MODE_DATA, JOINT_DATA, TOOL_DATA, MASTERBOARD_DATA = 0, 1, 2, 3
CARTESIAN_INFO, KINEMATICS_INFO, CONFIGURATION_DATA = 4, 5, 6
PERIOD = 0.1  # s

_CALIBRATED, _NOT_CALIBRATED = 0, 1
# Defaults of a new program: joint speed and acceleration, tool speed and acceleration, equivalent radius.
_DEFAULTS = (1.05, 1.4, 0.25, 1.2, 0.1)
# What is told of a joint without end (wrist 3 of the small arms), rad: how a real controller puts it is not known.
_ENDLESS = 1e6


def package(kind: int, payload: bytes) -> bytes:
    """A package or a message with its size and type."""
    return struct.pack(">iB", 5 + len(payload), kind) + payload


def robot_state(machine: Machine) -> bytes:
    """One robot state message."""
    parts = (
        package(ROBOT_MODE_DATA, _robot_mode(machine)),
        package(JOINT_DATA, _joints(machine)),
        package(TOOL_DATA, _tool(machine)),
        package(MASTERBOARD_DATA, _masterboard(machine)),
        package(CARTESIAN_INFO, _cartesian(machine)),
        package(KINEMATICS_INFO, kinematics_info(machine)),
        package(CONFIGURATION_DATA, configuration_data(machine)),
    )
    return package(ROBOT_STATE, b"".join(parts))


def _robot_mode(machine: Machine) -> bytes:
    s = machine.state
    real = any(word != 0xFFFFFFFF for word in machine.kinematics_checksum)
    emergency = s.safety_mode in (SafetyMode.SYSTEM_EMERGENCY_STOP, SafetyMode.ROBOT_EMERGENCY_STOP)
    return struct.pack(
        ">Q7?bB3dB",
        int(s.timestamp * 1e6),
        real,
        s.powered,
        s.powered,
        emergency,
        s.safety_mode == SafetyMode.PROTECTIVE_STOP,
        s.runtime_state in (RuntimeState.PLAYING, RuntimeState.RESUMING),
        s.runtime_state in (RuntimeState.PAUSED, RuntimeState.PAUSING),
        s.robot_mode,
        0,
        s.speed_slider,
        s.speed_scaling,
        1.0,
        0,
    )


def _joints(machine: Machine) -> bytes:
    s = machine.state
    voltage, mode = (48.0 if s.powered else 0.0), joint_mode(machine)
    joints = zip(s.actual_q.tolist(), s.target_q.tolist(), s.actual_qd.tolist(), s.actual_current.tolist(), strict=True)
    return b"".join(struct.pack(">3d4fB", q, target, qd, i, voltage, 30.0, 0.0, mode) for q, target, qd, i in joints)


def _tool(machine: Machine) -> bytes:
    voltage = 48.0 if machine.state.powered else 0.0
    return struct.pack(">2B2dfB2fB", 0, 0, 0.0, 0.0, voltage, 0, 0.0, 30.0, joint_mode(machine))


def _masterboard(machine: Machine) -> bytes:
    s = machine.state
    data = struct.pack(
        ">2I2B2d2B2d4f3B",
        s.digital_inputs & 0xFFFFFFFF,
        s.digital_outputs & 0xFFFFFFFF,
        0,
        0,
        0.0,
        0.0,
        s.analog_output_types & 1,
        s.analog_output_types >> 1 & 1,
        *s.analog_outputs,
        30.0,
        48.0 if s.powered else 0.0,
        0.0,
        0.0,
        s.safety_mode,
        s.safety_mode == SafetyMode.REDUCED,
        0,
    )
    # No Euromap interface. The e-Series has a mode selector and an enabling device more than CB3.
    return data + bytes(4 if machine.profile.series == "CB3" else 7)


def _cartesian(machine: Machine) -> bytes:
    s = machine.state
    return struct.pack(">12d", *s.actual_tcp_pose.tolist(), *s.tcp_offset.tolist())


def kinematics_info(machine: Machine) -> bytes:
    """Checksum and full DH table of this very arm (not differences to the nominal one)."""
    theta, a, d, alpha = machine.dh
    real = any(word != 0xFFFFFFFF for word in machine.kinematics_checksum)
    status = _CALIBRATED if real else _NOT_CALIBRATED
    return struct.pack(">6I24dI", *machine.kinematics_checksum, *theta, *a, *d, *alpha, status)


def configuration_data(machine: Machine) -> bytes:
    """Limits, defaults, DH table and what robot this is."""
    robot = machine.robot
    theta, a, d, alpha = machine.dh
    ends = np.clip([(joint.position_min, joint.position_max) for joint in robot.joints], -_ENDLESS, _ENDLESS)
    limits = ends.ravel().tolist()
    speeds = [value for joint in robot.joints for value in (joint.max_velocity, robot.max_acceleration)]
    data = struct.pack(">53d", *limits, *speeds, *_DEFAULTS, *a, *d, *alpha, *theta)
    data += struct.pack(">4i", 4, 1, machine.robot_type, 0)
    return data + (bytes(4) if machine.profile.at_least((5, 23), (4, 0)) else b"")
