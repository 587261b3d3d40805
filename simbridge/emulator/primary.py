"""Packages of the primary, secondary and real-time interfaces: robot state, messages, and the real-time package.

Source: Universal Robots, "Client Interfaces". A primary package is an int32 size, a type and its content. A robot
state consists of sub-packages of the same form; a message of a time stamp in microseconds, a source, its own type and
its text. The real-time package has grown: 1116 bytes from 5.4, 1140 from 5.9, 1220 with the payload from 5.10
(CB3: 3.10, 3.14 and 3.15). Everything is big-endian.
"""

from __future__ import annotations

import struct

import numpy as np

from simbridge.emulator.controller import Controller
from simbridge.ur.tables import URSIM_CHECKSUM, Message, PrimaryPackage, RuntimeState, SafetyMode, StatePart

PERIOD = 0.1  # s, of the robot state
MAX_TEXT = 4096

_CALIBRATED, _NOT_CALIBRATED = 0, 1
# Defaults of a new program: joint speed and acceleration, tool speed and acceleration, equivalent radius.
_DEFAULTS = (1.05, 1.4, 0.25, 1.2, 0.1)
# Reported limit of a joint without one (wrist 3 of the small arms), rad. What a real controller reports is not known.
_ENDLESS = 1e6
_CONTROLLER, _PROGRAM = -2, -1  # sources of messages
_WARNING = 2  # report level of an error code


def package(kind: int, payload: bytes) -> bytes:
    """A package, sub-package or message with its size and type."""
    return struct.pack(">iB", 5 + len(payload), kind) + payload


# The robot state


def robot_state(controller: Controller) -> bytes:
    """One robot state message."""
    parts = {
        StatePart.ROBOT_MODE: _robot_mode,
        StatePart.JOINTS: _joints,
        StatePart.TOOL: _tool,
        StatePart.MASTERBOARD: _masterboard,
        StatePart.CARTESIAN: _cartesian,
        StatePart.KINEMATICS: kinematics_info,
        StatePart.CONFIGURATION: configuration_data,
    }
    content = b"".join(package(kind, part(controller)) for kind, part in parts.items())
    return package(PrimaryPackage.ROBOT_STATE, content)


def _robot_mode(controller: Controller) -> bytes:
    s = controller.state
    return struct.pack(
        ">Q7?bB3dB",
        int(s.timestamp * 1e6),
        controller.kinematics_checksum != URSIM_CHECKSUM,
        s.powered,
        s.powered,
        s.emergency_stop,
        s.safety_mode == SafetyMode.PROTECTIVE_STOP,
        s.runtime_state in (RuntimeState.PLAYING, RuntimeState.RESUMING),
        s.runtime_state in (RuntimeState.PAUSED, RuntimeState.PAUSING),
        s.robot_mode,
        0,
        s.speed_slider,
        s.limiter_scaling,
        1.0,
        0,
    )


def _joints(controller: Controller) -> bytes:
    s = controller.state
    voltage = 48.0 if s.powered else 0.0
    joints = zip(s.actual_q.tolist(), s.target_q.tolist(), s.actual_qd.tolist(), s.actual_current.tolist(), strict=True)
    return b"".join(
        struct.pack(">3d4fB", q, target, qd, current, voltage, 30.0, 0.0, s.joint_mode)
        for q, target, qd, current in joints
    )


def _tool(controller: Controller) -> bytes:
    s = controller.state
    return struct.pack(">2B2dfB2fB", 0, 0, *s.analog_inputs[2:], 48.0 if s.powered else 0.0, 0, 0.0, 30.0, s.joint_mode)


def _masterboard(controller: Controller) -> bytes:
    s = controller.state
    data = struct.pack(
        ">2I2B2d2B2d4f3B",
        s.digital_inputs & 0xFFFFFFFF,
        s.digital_outputs & 0xFFFFFFFF,
        0,
        0,
        *s.analog_inputs[:2],
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
    # No Euromap interface. Then four bytes for UR's software, a mode selector, an enabling device, one byte for UR's
    # software. UR's client library reads these seven on CB3 too, from 3.14.3.
    return data + bytes(7)


def _cartesian(controller: Controller) -> bytes:
    s = controller.state
    return struct.pack(">12d", *s.actual_tcp_pose.tolist(), *s.tcp_offset.tolist())


def kinematics_info(controller: Controller) -> bytes:
    """Checksum and full DH table of this individual arm (not differences to the nominal one)."""
    theta, a, d, alpha = controller.dh
    status = _NOT_CALIBRATED if controller.kinematics_checksum == URSIM_CHECKSUM else _CALIBRATED
    return struct.pack(">6I24dI", *controller.kinematics_checksum, *theta, *a, *d, *alpha, status)


def configuration_data(controller: Controller) -> bytes:
    """Limits, defaults, DH table and robot type."""
    robot = controller.robot
    theta, a, d, alpha = controller.dh
    ranges = np.clip([(joint.position_min, joint.position_max) for joint in robot.joints], -_ENDLESS, _ENDLESS)
    limits = ranges.ravel().tolist()
    speeds = [value for speed in controller.joint_speed_limits for value in (float(speed), robot.max_acceleration)]
    data = struct.pack(">53d", *limits, *speeds, *_DEFAULTS, *a, *d, *alpha, *theta)
    data += struct.pack(">4i", 4, 1, controller.robot_type, 0)
    return data + (bytes(4) if controller.profile.at_least((5, 23), (4, 0)) else b"")


# Messages


def _message(controller: Controller, source: int, kind: Message, payload: bytes) -> bytes:
    head = struct.pack(">QbB", int(controller.state.timestamp * 1e6), source, kind)
    return package(PrimaryPackage.ROBOT_MESSAGE, head + payload)


def _text(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")[:MAX_TEXT]


def _title(title: str) -> bytes:
    encoded = _text(title)[:255]
    return bytes([len(encoded)]) + encoded


def version_message(controller: Controller) -> bytes:
    """The first message to every client of ports 30001 and 30002."""
    version = struct.pack(">2B2i", *controller.profile.version)
    payload = _title("URControl") + version + controller.profile.date.encode("ascii")
    return _message(controller, _CONTROLLER, Message.VERSION, payload)


def text_message(controller: Controller, text: str) -> bytes:
    """A line that `textmsg` writes into the log."""
    return _message(controller, _PROGRAM, Message.TEXT, _text(text))


def popup_message(controller: Controller, text: str, title: str = "Popup", *, error: bool = False) -> bytes:
    """The box that `popup` shows."""
    flags = struct.pack(">IB3?", 0, 0, False, error, False)
    return _message(controller, _PROGRAM, Message.POPUP, flags + _title(title) + _text(text))


def key_message(controller: Controller, title: str, text: str, code: int = 0, argument: int = 0) -> bytes:
    """An event by its key, such as PROGRAM_XXX_STARTED and PROGRAM_XXX_STOPPED with the program's name as text."""
    payload = struct.pack(">2i", code, argument) + _title(title) + _text(text)
    return _message(controller, _CONTROLLER, Message.KEY, payload)


def error_code_message(controller: Controller, code: int, argument: int, text: str) -> bytes:
    """The safety system's reason for a protective stop; C209A0 has code 209 and argument 0."""
    payload = struct.pack(">3i2I", code, argument, _WARNING, 0, 0) + _text(text)
    return _message(controller, _CONTROLLER, Message.ERROR_CODE, payload)


def safety_mode_message(controller: Controller) -> bytes:
    """The safety mode, sent when it has changed."""
    return _message(
        controller, _CONTROLLER, Message.SAFETY_MODE, struct.pack(">2iB2I", 0, 0, controller.state.safety_mode, 0, 0)
    )


def runtime_exception(controller: Controller, line: int, column: int, text: str) -> bytes:
    """A program's error, with its place in the script."""
    return _message(controller, _PROGRAM, Message.RUNTIME_EXCEPTION, struct.pack(">2i", line, column) + _text(text))


# The real-time interface

_REALTIME, _WITHOUT_PAYLOAD = struct.Struct(">i152d"), struct.Struct(">i142d")
_SIX = [0.0] * 6
_THREE = [0.0] * 3
_TEMPERATURES = [30.0] * 6


def realtime_package(controller: Controller) -> bytes:
    """The real-time package of this tick: 1220 bytes, and 1140 before the payload was added to it."""
    s = controller.state
    with_payload = controller.profile.at_least((5, 10), (3, 15))
    layout = _REALTIME if with_payload else _WITHOUT_PAYLOAD
    payload = (s.payload, *s.payload_cog.tolist(), *s.payload_inertia.tolist()) if with_payload else ()
    voltage = 48.0 if s.powered else 0.0
    joints = (s.target_q, s.target_qd, s.target_qdd, s.target_current, s.target_moment, s.actual_q, s.actual_qd)
    currents = (s.actual_current, s.target_current)
    tool = (s.actual_tcp_pose, s.actual_tcp_speed, s.tcp_force, s.target_tcp_pose, s.target_tcp_speed)
    return layout.pack(
        layout.size,
        s.timestamp,
        *np.concatenate(joints + currents + tool).tolist(),
        s.digital_inputs,
        *_TEMPERATURES,
        0.0,  # execution time
        0.0,  # used by UR's software
        s.robot_mode,
        *[s.joint_mode] * 6,
        s.safety_mode,
        *_SIX,  # used by UR's software
        *_THREE,  # tool accelerometer
        *_SIX,  # used by UR's software
        s.limiter_scaling,
        *_THREE,  # momentum, and two used by UR's software
        48.0,
        voltage,
        0.0,  # robot current
        *[voltage] * 6,
        s.digital_outputs,
        s.runtime_state,
        *_SIX,  # elbow position and velocity
        s.safety_mode,  # safety status, the same numbers
        *_THREE,  # used by UR's software
        *payload,
    )
