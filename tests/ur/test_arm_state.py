"""Which stop each state of a controller means, and how its modes are named."""

from __future__ import annotations

import pytest

from simbridge.ur.arm_state import safety_stop
from simbridge.ur.errors import EmergencyStop, ProtectiveStop, SafeguardStop, SafetyFault
from simbridge.ur.tables import RobotMode, RuntimeState, SafetyMode, mode_label


@pytest.mark.parametrize("mode", [mode for mode in SafetyMode if mode > SafetyMode.REDUCED])
def test_every_safety_mode_has_its_stop(mode):
    kinds = {
        "EMERGENCY": EmergencyStop,
        "SAFEGUARD": SafeguardStop,
        "ENABLING": SafeguardStop,
        "PROTECTIVE": ProtectiveStop,
    }

    assert safety_stop(mode) is next(
        (kind for word, kind in kinds.items() if word in mode.name), SafetyFault
    )


@pytest.mark.parametrize(
    ("bits", "kind"), [(0b1, None), (0b10, None), (1 << 2, ProtectiveStop), (1 << 4, SafeguardStop),
                       (1 << 5, EmergencyStop), (1 << 6, EmergencyStop), (1 << 7, EmergencyStop)]
)  # fmt: skip
def test_safety_bits_show_a_stop_first(bits, kind):
    assert safety_stop(1, bits) is kind


def test_modes_are_named_with_their_numbers():
    assert mode_label(7, RobotMode) == "running (7)"
    assert mode_label(3, RobotMode) == "power off (3)"
    assert mode_label(4, RuntimeState) == "paused (4)"
    assert mode_label(13, SafetyMode) == "system three-position enabling stop (13)"
    assert mode_label(15, SafetyMode) == "IMMI emergency stop (15)"
    assert mode_label(17, SafetyMode) == "PROFIsafe waiting for parameters (17)"
    assert mode_label(22, SafetyMode) == "safety API safeguard stop (22)"
    assert mode_label(21, SafetyMode) == "unknown (21)"
