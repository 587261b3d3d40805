"""What keeps an arm, by the numbers of its states."""

from __future__ import annotations

import pytest

from simbridge.ur.errors import EmergencyStop, ProtectiveStop, SafeguardStop, SafetyFault
from simbridge.ur.stops import safety_stop
from simbridge.ur.tables import SAFETY_MODES


@pytest.mark.parametrize(
    ("mode", "name"), [pair for pair in SAFETY_MODES.items() if pair[1] not in ("normal", "reduced")]
)
def test_every_safety_mode_has_the_stop_of_its_name(mode, name):
    kinds = {
        "emergency": EmergencyStop,
        "safeguard": SafeguardStop,
        "enabling": SafeguardStop,
        "protective": ProtectiveStop,
    }
    assert safety_stop(mode) is next((kind for word, kind in kinds.items() if word in name), SafetyFault)


@pytest.mark.parametrize(
    ("bits", "kind"), [(0b1, None), (0b10, None), (1 << 2, ProtectiveStop), (1 << 4, SafeguardStop),
                       (1 << 5, EmergencyStop), (1 << 6, EmergencyStop), (1 << 7, EmergencyStop)]
)  # fmt: skip
def test_the_safety_bits_name_a_stop_that_the_mode_does_not_show_yet(bits, kind):
    assert safety_stop(1, bits) is kind
