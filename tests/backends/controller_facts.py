"""The facts that a controller with a UR10e reports, for tests that let it report others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simbridge.robot import load_robot
from simbridge.robot.calibration import nominal_dh
from simbridge.ur.controller_facts import ControllerFacts, PendantFacts, StateFacts
from simbridge.ur.primary import ArmDescription

UR10 = load_robot("ur10")
UR10E = load_robot("ur10e")
UR5E = replace(UR10E, name="ur5e", ur_model="UR5e")
SERIAL_NUMBER = "20261234567"
TCP = (0.0, 0.01, 0.15, 0.0, 0.0, 1.5)
FACTS = ControllerFacts(
    "192.0.2.7",
    StateFacts((5, 12, 6), 10.0, 7, 1, 1, 1.0, np.zeros(6), 1.5, (0.0, 0.0, 0.05)),
    PendantFacts(
        version="5.12.6.1102099",
        serial_number=SERIAL_NUMBER,
        remote_control=True,
        program="lift.urp",
    ),
    ArmDescription(
        kinematics=nominal_dh(UR10E),
        checksum=(1, 2, 3, 4, 5, 6),
        limits=None,
        robot_type=2,
        tcp_offset=np.array(TCP),
    ),
)
# A simulated controller has no calibration.
URSIM = replace(FACTS, arm=replace(FACTS.arm, checksum=(0xFFFFFFFF,) * 6))
POLYSCOPE_X = replace(
    FACTS,
    state=replace(FACTS.state, version=(10, 14, 0)),
    pendant=PendantFacts(version="", serial_number=SERIAL_NUMBER, remote_control=True, program=""),
)


def facts_with_state(**changes):
    """Return the facts with other values of the controller's state."""
    return replace(FACTS, state=replace(FACTS.state, **changes))


def facts_with_arm(**changes):
    """Return the facts with other values of the arm's description."""
    return replace(FACTS, arm=replace(FACTS.arm, **changes))


def facts_with_pendant(**changes):
    """Return the facts with other answers of the dashboard."""
    return replace(FACTS, pendant=replace(FACTS.pendant, **changes))
