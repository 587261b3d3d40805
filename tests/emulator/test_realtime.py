"""The package of the real-time interface."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from simbridge.emulator.realtime import realtime_package
from simbridge.emulator.state import PROFILES
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode
from tests.emulator.fake_controller import FakeController

# PolyScope X has no real-time interface.
VERSIONS = [name for name, profile in PROFILES.items() if not profile.is_polyscope_x]


@pytest.mark.parametrize("polyscope", VERSIONS)
def test_real_time_values_stand_where_documented(polyscope: str) -> None:
    controller = FakeController(polyscope)
    s = controller.state
    s.timestamp = 3.25
    s.target_q = np.arange(6.0)
    s.actual_tcp_pose = np.arange(6.0) + 10
    s.target_tcp_speed = np.arange(6.0) + 20
    s.digital_inputs = 5
    s.digital_outputs = 9
    s.speed_scaling = 0.5
    s.limiter_scaling = 0.75
    s.runtime_state = RuntimeState.PLAYING
    s.payload = 1.5
    s.payload_inertia = np.arange(6.0) + 30
    package = realtime_package(controller)
    size = 1140 if polyscope == "5.9" else 1220

    assert struct.unpack_from(">i", package) == (len(package),) == (size,)

    def double(place: int, count: int = 1) -> list[float]:
        # UR's sheets number the doubles from 1: the time.
        return list(struct.unpack_from(f">{count}d", package, 4 + 8 * (place - 1)))

    assert double(1) == [3.25]
    assert double(2, 6) == s.target_q.tolist()
    assert double(32, 6) == s.actual_q.tolist()
    assert double(56, 6) == s.actual_tcp_pose.tolist()
    assert double(80, 6) == s.target_tcp_speed.tolist()
    assert double(86) == [5]
    assert double(95) == [RobotMode.RUNNING]
    assert double(96, 6) == [253] * 6
    assert double(102) == [SafetyMode.NORMAL]
    assert double(118) == [0.75]
    assert double(131, 2) == [9, RuntimeState.PLAYING]
    assert double(139) == [SafetyMode.NORMAL]

    if size == 1220:
        assert double(143) == [1.5]
        assert double(147, 6) == s.payload_inertia.tolist()
