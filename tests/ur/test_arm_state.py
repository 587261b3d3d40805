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


# Bit 0 normal, bit 1 reduced, bit 10 stopped, bit 11 enabling input: 2049 is a normal arm.
READY = 1 | 1 << 11


@pytest.mark.parametrize("safety_mode", [1, 2, 21, 23, 99])
@pytest.mark.parametrize("bits", [READY, 1, 2 | 1 << 11, READY | 1 << 15])
def test_newer_numbers_on_a_ready_arm_are_no_stop(safety_mode, bits):
    assert safety_stop(safety_mode, bits) is None


@pytest.mark.parametrize("bits", [0, 1 << 10, READY | 1 << 10, 1 << 11])
def test_an_unknown_mode_without_readiness_is_a_stop(bits):
    assert safety_stop(21, bits) is SafetyFault


@pytest.mark.parametrize("safety_mode", [12, 13, 14, 16, 18, 19, 22])
def test_newer_safeguard_modes_are_safeguard_stops(safety_mode):
    assert safety_stop(safety_mode, READY) is SafeguardStop
