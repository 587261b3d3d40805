"""The primary, secondary and real-time interfaces: robot state, messages, the real-time package; programs received.

Source: Universal Robots, "Client Interfaces". A primary package is an int32 size, a type and its content. A robot
state consists of sub-packages of the same form; a message of a time stamp in microseconds, a source, its own type and
its text. The real-time package has grown: 1116 bytes from 5.4, 1140 from 5.9, 1220 with the payload from 5.10
(CB3: 3.10, 3.14 and 3.15). Everything is big-endian.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.errors import ProtocolViolation
from simbridge.emulator.scripts import ScriptBuffer, is_secondary
from simbridge.emulator.state import Event
from simbridge.ur.tables import (
    URSIM_CHECKSUM,
    Message,
    PrimaryPackage,
    RuntimeState,
    SafetyMode,
    StatePart,
)

PERIOD = 0.1  # s, of the robot state
MAX_TEXT = 4096

_CALIBRATED, _NOT_CALIBRATED = 0, 1
# Defaults of a new program: joint speed and acceleration, tool speed and acceleration, equivalent radius.
_DEFAULTS = (1.05, 1.4, 0.25, 1.2, 0.1)
# Reported limit of a joint without one (wrist 3 of the small arms), rad. What a real controller reports is not known.
_ENDLESS = 1e6
_CONTROLLER, _PROGRAM = -2, -1  # sources of messages
_WARNING = 2  # report level of an error code
# How urx sets an output, undocumented, too.
_SET_OUTPUT = re.compile(r"\Adigital_out\[(\d+)\]\s*=\s*(True|False)\s*\Z")
_SET_SPEED = re.compile(r"set speed (\d*\.?\d+)")
_ENDS_PROGRAM = ("stop program", "power off")


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
    joints = zip(
        s.actual_q.tolist(),
        s.target_q.tolist(),
        s.actual_qd.tolist(),
        s.actual_current.tolist(),
        strict=True,
    )
    return b"".join(
        struct.pack(">3d4fB", q, target, qd, current, voltage, 30.0, 0.0, s.joint_mode)
        for q, target, qd, current in joints
    )


def _tool(controller: Controller) -> bytes:
    s = controller.state
    return struct.pack(
        ">2B2dfB2fB",
        0,
        0,
        *s.analog_inputs[2:],
        48.0 if s.powered else 0.0,
        0,
        0.0,
        30.0,
        s.joint_mode,
    )


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
    ranges = np.clip(
        [(joint.position_min, joint.position_max) for joint in robot.joints], -_ENDLESS, _ENDLESS
    )
    limits = ranges.ravel().tolist()
    speeds = [
        value
        for speed in controller.joint_speed_limits
        for value in (float(speed), robot.max_acceleration)
    ]
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


def message_of(controller: Controller, event: Event) -> bytes:
    """What the primary interface's clients are sent of an event."""
    text = _text(event.text)
    match event.kind:
        case "text":
            return _message(controller, _PROGRAM, Message.TEXT, text)
        case "error":
            place = struct.pack(">2i", event.line, event.column)
            return _message(controller, _PROGRAM, Message.RUNTIME_EXCEPTION, place + text)
        case "safety":
            code = struct.pack(">3i2I", event.code, event.argument, _WARNING, 0, 0)
            return _message(controller, _CONTROLLER, Message.ERROR_CODE, code + text)
        case "safety mode":
            # A client that reads the message may look at the state that came last.
            mode = struct.pack(">2iB2I", 0, 0, controller.state.safety_mode, 0, 0)
            return robot_state(controller) + _message(
                controller, _CONTROLLER, Message.SAFETY_MODE, mode
            )
    title = _title(f"PROGRAM_XXX_{event.kind.upper()}")  # started or stopped
    return _message(controller, _CONTROLLER, Message.KEY, struct.pack(">2i", 0, 0) + title + text)


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
    payload = (
        (s.payload, *s.payload_cog.tolist(), *s.payload_inertia.tolist()) if with_payload else ()
    )
    voltage = 48.0 if s.powered else 0.0
    joints = (
        s.target_q,
        s.target_qd,
        s.target_qdd,
        s.target_current,
        s.target_moment,
        s.actual_q,
        s.actual_qd,
    )
    currents = (s.actual_current, s.target_current)
    tool = (
        s.actual_tcp_pose,
        s.actual_tcp_speed,
        s.tcp_force,
        s.target_tcp_pose,
        s.target_tcp_speed,
    )
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


# What clients send


class ScriptSession:
    """The receiving side of the ports 30001 to 30003: programs are run, nothing is answered. An e-Series that is not in
    remote control ignores them."""

    finished = False

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._buffer = ScriptBuffer()
        # Words instead of a program. UR does not document them; its own client library, and others that control real
        # arms ("set speed"), send them.
        self._commands: dict[str, Callable[[], object]] = {
            "power on": controller.power_on,
            "power off": controller.power_off,
            "set robotmode run": controller.brake_release,
            "set unlock protective stop": controller.release_protective_stop,
            "stop program": controller.stop_program,
        }

    def receive(self, data: bytes) -> bytes:
        try:
            programs = self._buffer.receive(data)
        except ProtocolViolation:
            self._buffer = ScriptBuffer()  # said once: `close` finds nothing unfinished
            raise
        if self._controller.profile.series == "CB3" or self._controller.remote_control:
            # The main program. One that is replaced or stopped at once would never run a tick, and compiling it would
            # cost time with the lock held.
            main = ""
            for program in programs:
                text = program.strip()
                if command := self._commands.get(text):
                    main = "" if text in _ENDS_PROGRAM else main
                    command()
                elif speed := _SET_SPEED.fullmatch(text):
                    self._controller.set_speed_slider(float(speed[1]))
                elif is_secondary(program):
                    self._load(program)
                else:
                    main = program
            if main:
                self._load(main)
        elif programs:
            self._ignored("the robot is not in remote control", data)
        return b""

    def _load(self, program: str) -> None:
        self._controller.load_script(_SET_OUTPUT.sub(r"set_digital_out(\1, \2)", program))

    def close(self) -> None:
        """An unfinished program is dropped."""
        if rest := self._buffer.rest.strip():
            self._ignored(
                "the client left before its end (a line end, or the `end` of a block, is missing)",
                rest,
            )

    def _ignored(self, reason: str, data: bytes) -> None:
        self._controller.on_event(
            Event("unknown", f"script: a program is ignored: {reason}", data=data)
        )
