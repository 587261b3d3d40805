"""The packages of the primary and secondary interfaces: the robot's state, and messages.

Source: Universal Robots, "Client Interfaces". A primary package is an int32 size, a type and its
content. A robot state consists of sub-packages of the same form; a message of a time stamp in
microseconds, a source, its own type and its text. Everything is big-endian.
"""

from __future__ import annotations

import struct

import numpy as np

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.state import ControllerEvent
from simbridge.ur.tables import (
    READ_ONLY_CODE,
    URSIM_CHECKSUM,
    Message,
    PrimaryPackage,
    RuntimeState,
    SafetyMode,
    StatePart,
)

# Period of the robot state, s.
PERIOD = 0.1
# Longest text of a message, bytes.
MAX_TEXT = 4096
# Longest title of a message, bytes: its length is sent as one byte.
MAX_TITLE = 255

# Calibration status of the kinematics.
_CALIBRATED = 0
_NOT_CALIBRATED = 1
# Defaults of a new program.
_DEFAULT_JOINT_SPEED = 1.05
_DEFAULT_JOINT_ACCELERATION = 1.4
_DEFAULT_TOOL_SPEED = 0.25
_DEFAULT_TOOL_ACCELERATION = 1.2
_DEFAULT_EQUIVALENT_RADIUS = 0.1
# Reported limit of a joint without one (wrist 3 of the small arms), rad. What a real controller
# reports is not known.
_ENDLESS = 1e6
_MASTERBOARD_VERSION = 4
_CONTROLLER_BOX_TYPE = 1
_ROBOT_SUBTYPE = 0
# Sources of messages.
_CONTROLLER = -2
_PROGRAM = -1
# Report level of an error code.
_WARNING = 2

# Nominal values of what is not simulated: V, and degrees Celsius.
VOLTAGE = 48.0
TEMPERATURE = 30.0


def package(kind: int, payload: bytes) -> bytes:
    """Return a package, sub-package or message with its size and type."""
    return struct.pack(">iB", 5 + len(payload), kind) + payload


# The robot state


def robot_state(controller: EmulatedController) -> bytes:
    """Return one robot state message."""
    parts = {
        StatePart.ROBOT_MODE: _robot_mode(controller),
        StatePart.JOINTS: _joints(controller),
        StatePart.TOOL: _tool(controller),
        StatePart.MASTERBOARD: _masterboard(controller),
        StatePart.CARTESIAN: _cartesian(controller),
        StatePart.KINEMATICS: kinematics_info(controller),
        StatePart.CONFIGURATION: configuration_data(controller),
    }
    content = b"".join(package(kind, part) for kind, part in parts.items())
    return package(PrimaryPackage.ROBOT_STATE, content)


def _robot_mode(controller: EmulatedController) -> bytes:
    """Return the robot mode data: modes, stops and speed factors."""
    state = controller.state
    is_real = controller.kinematics_checksum != URSIM_CHECKSUM
    runs = state.runtime_state in (RuntimeState.PLAYING, RuntimeState.RESUMING)
    is_paused = state.runtime_state in (RuntimeState.PAUSED, RuntimeState.PAUSING)
    return struct.pack(
        ">Q7?bB3dB",
        int(state.timestamp * 1e6),
        is_real,
        state.powered,  # real robot enabled
        state.powered,
        state.emergency_stop,
        state.safety_mode == SafetyMode.PROTECTIVE_STOP,
        runs,
        is_paused,
        state.robot_mode,
        0,  # control mode
        state.speed_slider,
        state.limiter_scaling,
        1.0,  # limit of the target speed fraction
        0,  # reserved
    )


def _joints(controller: EmulatedController) -> bytes:
    """Return the joint data: positions, velocities, currents and mode of each joint."""
    state = controller.state
    voltage = VOLTAGE if state.powered else 0.0
    joints = zip(
        state.actual_q.tolist(),
        state.target_q.tolist(),
        state.actual_qd.tolist(),
        state.actual_current.tolist(),
        strict=True,
    )
    return b"".join(
        struct.pack(
            ">3d4fB",
            q,
            target,
            qd,
            current,
            voltage,
            TEMPERATURE,
            0.0,  # temperature of the microcontroller, no longer used
            state.joint_mode,
        )
        for q, target, qd, current in joints
    )


def _tool(controller: EmulatedController) -> bytes:
    """Return the tool data: the tool's analog inputs and its connector."""
    state = controller.state
    return struct.pack(
        ">2B2dfB2fB",
        0,  # range of the first analog input
        0,  # range of the second one
        *state.analog_inputs[2:],  # the tool's; the first two are those of the control box
        VOLTAGE if state.powered else 0.0,  # supply voltage of the tool
        0,  # output voltage of the tool connector
        0.0,  # current of the tool connector
        TEMPERATURE,  # temperature of the tool
        state.joint_mode,  # mode of the tool: the emulated one has that of the joints
    )


def _masterboard(controller: EmulatedController) -> bytes:
    """Return the masterboard data: inputs and outputs of the control box, and safety mode."""
    state = controller.state
    data = struct.pack(
        ">2I2B2d2B2d4f3B",
        state.digital_inputs & 0xFFFFFFFF,
        state.digital_outputs & 0xFFFFFFFF,
        0,  # range of the first analog input
        0,  # range of the second one
        *state.analog_inputs[:2],  # the control box's; the others are those of the tool
        state.analog_output_types & 1,  # 1 if the first analog output is a voltage, 0 for a current
        state.analog_output_types >> 1 & 1,  # the same of the second one
        *state.analog_outputs,
        TEMPERATURE,  # temperature of the masterboard
        VOLTAGE if state.powered else 0.0,  # robot voltage
        0.0,  # robot current
        0.0,  # current of inputs and outputs
        state.safety_mode,
        state.safety_mode == SafetyMode.REDUCED,
        0,  # no Euromap interface
    )
    # Four bytes for UR's software, a mode selector, an enabling device, one byte for UR's software.
    # UR's client library reads these seven on CB3 too, from 3.14.3.
    return data + bytes(7)


def _cartesian(controller: EmulatedController) -> bytes:
    """Return the Cartesian data: the TCP in the pendant's base, and in the flange."""
    state = controller.state
    return struct.pack(">12d", *state.actual_tcp_pose.tolist(), *state.tcp_offset.tolist())


def kinematics_info(controller: EmulatedController) -> bytes:
    """Return checksum and full DH table of this individual arm.

    The table holds the parameters themselves, not their differences from the nominal ones.
    """
    theta, a, d, alpha = controller.dh
    is_nominal = controller.kinematics_checksum == URSIM_CHECKSUM
    status = _NOT_CALIBRATED if is_nominal else _CALIBRATED
    return struct.pack(">6I24dI", *controller.kinematics_checksum, *theta, *a, *d, *alpha, status)


def configuration_data(controller: EmulatedController) -> bytes:
    """Return the configuration data: limits, defaults of programs, DH table and robot type."""
    robot = controller.robot
    # The lower and the upper limit of each joint's position.
    ranges = [(joint.position_min, joint.position_max) for joint in robot.joints]
    limits = np.clip(ranges, -_ENDLESS, _ENDLESS).ravel().tolist()

    # The largest speed and acceleration of each joint.
    rates: list[float] = []
    for speed in controller.joint_speed_limits:
        rates += [float(speed), robot.max_acceleration]

    theta, a, d, alpha = controller.dh
    data = struct.pack(
        ">53d",
        *limits,
        *rates,
        _DEFAULT_JOINT_SPEED,
        _DEFAULT_JOINT_ACCELERATION,
        _DEFAULT_TOOL_SPEED,
        _DEFAULT_TOOL_ACCELERATION,
        _DEFAULT_EQUIVALENT_RADIUS,
        *a,
        *d,
        *alpha,
        *theta,
    )
    data += struct.pack(
        ">4i", _MASTERBOARD_VERSION, _CONTROLLER_BOX_TYPE, controller.robot_type, _ROBOT_SUBTYPE
    )

    # From these versions on, four more bytes end the configuration data.
    has_four_more = controller.profile.at_least((5, 23), (4, 0), (10, 11))
    return data + (bytes(4) if has_four_more else b"")


# Messages


def version_message(controller: EmulatedController) -> bytes:
    """Return the first message to every client of ports 30001 and 30002."""
    version = struct.pack(">2B2i", *controller.profile.version)
    payload = _encode_title("URControl") + version + controller.profile.date.encode("ascii")
    return _message(controller, _CONTROLLER, Message.VERSION, payload=payload)


def read_only_message(controller: EmulatedController) -> bytes:
    """Return the error of PolyScope X for a script in local control: C210."""
    text = "The primary interface is read-only: the robot is not in remote control"
    event = ControllerEvent("safety", text, code=READ_ONLY_CODE)
    return message_of(controller, event)


def message_of(controller: EmulatedController, event: ControllerEvent) -> bytes:
    """Return the message about an event for the clients of the primary interface."""
    text = _encode(event.text)
    match event.kind:
        case "text":
            return _message(controller, _PROGRAM, Message.TEXT, payload=text)

        case "error":
            position = struct.pack(">2i", event.line, event.column)
            return _message(
                controller, _PROGRAM, Message.RUNTIME_EXCEPTION, payload=position + text
            )

        case "safety":
            code = struct.pack(">3i2I", event.code, event.argument, _WARNING, 0, 0)
            return _message(controller, _CONTROLLER, Message.ERROR_CODE, payload=code + text)

        case "safety mode":
            mode = struct.pack(">2iB2I", 0, 0, controller.state.safety_mode, 0, 0)
            message = _message(controller, _CONTROLLER, Message.SAFETY_MODE, payload=mode)
            # A client that reads the message may look at the state that came last.
            return robot_state(controller) + message

    # A program was started or stopped.
    title = _encode_title(f"PROGRAM_XXX_{event.kind.upper()}")
    code = struct.pack(">2i", 0, 0)
    return _message(controller, _CONTROLLER, Message.KEY, payload=code + title + text)


def _message(
    controller: EmulatedController, source: int, kind: Message, *, payload: bytes
) -> bytes:
    """Return a message with its header."""
    head = struct.pack(">QbB", int(controller.state.timestamp * 1e6), source, kind)
    return package(PrimaryPackage.ROBOT_MESSAGE, head + payload)


def _encode(text: str) -> bytes:
    """Return a text as bytes, shortened to the most that a message has."""
    return text.encode("utf-8", errors="replace")[:MAX_TEXT]


def _encode_title(title: str) -> bytes:
    """Return a title with its length before it."""
    encoded = _encode(title)[:MAX_TITLE]
    return bytes([len(encoded)]) + encoded
