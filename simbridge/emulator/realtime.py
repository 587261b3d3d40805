"""The real-time interface: one package a tick.

Source: Universal Robots, "Client Interfaces". The package has grown: 1116 bytes from 5.4, 1140 from
5.9, 1220 with the payload from 5.10 (CB3: 3.10, 3.14 and 3.15). Everything is big-endian.
"""

from __future__ import annotations

import struct

import numpy as np

from simbridge.emulator.emulated_controller import EmulatedController
from simbridge.emulator.primary import TEMPERATURE, VOLTAGE

_WITH_PAYLOAD = struct.Struct(">i152d")
_WITHOUT_PAYLOAD = struct.Struct(">i142d")

_SIX_ZEROS = [0.0] * 6
_THREE_ZEROS = [0.0] * 3
_TEMPERATURES = [TEMPERATURE] * 6


def realtime_package(controller: EmulatedController) -> bytes:
    """Return the real-time package of this tick.

    It has 1220 bytes, and 1140 before the payload was added to it.
    """
    state = controller.state
    layout = _WITHOUT_PAYLOAD
    payload: list[float] = []
    if controller.profile.at_least((5, 10), (3, 15)):
        layout = _WITH_PAYLOAD
        payload = [
            state.payload,
            *state.payload_cog.tolist(),
            *state.payload_inertia.tolist(),
        ]

    # Joints, then currents, then the tool.
    motion = np.concatenate(
        [
            state.target_q,
            state.target_qd,
            state.target_qdd,
            state.target_current,
            state.target_moment,
            state.actual_q,
            state.actual_qd,
            state.actual_current,
            state.target_current,
            state.actual_tcp_pose,
            state.actual_tcp_speed,
            state.tcp_force,
            state.target_tcp_pose,
            state.target_tcp_speed,
        ]
    )
    voltage = VOLTAGE if state.powered else 0.0

    return layout.pack(
        layout.size,
        state.timestamp,
        *motion.tolist(),
        state.digital_inputs,
        *_TEMPERATURES,
        0.0,  # execution time
        0.0,  # used by UR's software
        state.robot_mode,
        *[state.joint_mode] * 6,
        state.safety_mode,
        *_SIX_ZEROS,  # used by UR's software
        *_THREE_ZEROS,  # tool accelerometer
        *_SIX_ZEROS,  # used by UR's software
        state.limiter_scaling,
        *_THREE_ZEROS,  # momentum, and two used by UR's software
        VOLTAGE,  # of the main supply
        voltage,
        0.0,  # robot current
        *[voltage] * 6,
        state.digital_outputs,
        state.runtime_state,
        *_SIX_ZEROS,  # elbow position and velocity
        state.safety_mode,  # safety status, the same numbers
        *_THREE_ZEROS,  # used by UR's software
        *payload,
    )
