"""Facts of a controller for the checks of the doctor, and the verdict that a check should reach."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from simbridge.robot import load_robot
from simbridge.robot.calibration import nominal_dh
from simbridge.ur.controller_facts import PendantFacts, StateFacts, Survey
from simbridge.ur.errors import ConnectionLost
from simbridge.ur.primary import ArmDescription

UR10 = load_robot("ur10")
UR10E = load_robot("ur10e")
URSIM = (0xFFFFFFFF,) * 6
CALIBRATION = Path(__file__).parents[1] / "data" / "ur10e_calibration.toml"
TCP = (0.0, 0.01, 0.15, 0.0, 0.0, 1.5)
STATE = StateFacts((5, 12, 6), 10.0, 7, 1, 1, 1.0, np.zeros(6), 1.5, (0.0, 0.0, 0.05))
DASHBOARD = PendantFacts(
    version="5.12.6.1102099", serial_number="20261234567", remote_control=True, program=""
)
ARM = ArmDescription(
    kinematics=nominal_dh(UR10E),
    checksum=URSIM,
    limits=None,
    robot_type=2,
    tcp_offset=np.array(TCP),
)
READ = Survey("127.0.0.1", {}, STATE, DASHBOARD, ARM)
SILENT = Survey(
    "127.0.0.1",
    {
        port: ConnectionLost("127.0.0.1", port, "it is silent")
        for port in (29999, 30001, 30003, 30004)
    },
)


def with_state(**changes):
    return replace(READ, state=replace(STATE, **changes))


def with_pendant(**changes):
    return replace(READ, pendant=replace(DASHBOARD, **changes))


def with_arm(**changes):
    return replace(READ, arm=replace(ARM, **changes))


def assert_verdict(finding, status, *words):
    """Assert a status, words of the text, and that there is a fix for a warning or failure."""
    assert finding.status == status
    text = f"{finding.seen} {finding.fix}"
    assert all(word in text for word in words), text
    assert bool(finding.fix) is (status in ("warn", "fail"))
