"""The real-time interface: one fixed package every control period on port 30003.

Source: Universal Robots, "Client Interfaces", real-time sheets. The package has grown with the software: 1116 bytes
from 5.4, 1140 from 5.9, 1220 with the payload from 5.10 (CB3: 3.10, 3.14 and 3.15). Every number is a double.
"""

from __future__ import annotations

import struct

import numpy as np

from simbridge.emulator.commands import Machine
from simbridge.emulator.rtde_variables import joint_mode

_DOUBLES = struct.Struct(">i152d")
_SIX = [0.0] * 6
_THREE = [0.0] * 3
_TEMPERATURES = [30.0] * 6


def realtime_package(machine: Machine) -> bytes:
    """The package of this tick (1220 bytes: all profiles know the payload)."""
    s = machine.state
    voltage = 48.0 if s.powered else 0.0
    joints = (s.target_q, s.target_qd, s.target_qdd, s.target_current, s.target_moment, s.actual_q, s.actual_qd)
    currents = (s.actual_current, s.target_current)
    tool = (s.actual_tcp_pose, s.actual_tcp_speed, s.tcp_force, s.target_tcp_pose, s.target_tcp_speed)
    return _DOUBLES.pack(
        _DOUBLES.size,
        s.timestamp,
        *np.concatenate(joints + currents + tool).tolist(),
        s.digital_inputs,
        *_TEMPERATURES,
        0.0,  # execution time
        0.0,  # used by UR's software
        s.robot_mode,
        *[joint_mode(machine)] * 6,
        s.safety_mode,
        *_SIX,  # used by UR's software
        *_THREE,  # tool accelerometer
        *_SIX,  # used by UR's software
        s.speed_scaling,
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
        s.payload,
        *s.payload_cog.tolist(),
        *s.payload_inertia.tolist(),
    )
