"""Joint torques of a program accelerate the arm, and friction slows it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from simbridge.emulator.joint_torque import COMPENSATED_TIME, FRICTION_TIME
from tests.emulator.bench import ROBOT
from tests.emulator.calls import run

pytestmark = pytest.mark.slow

SIX = "[0, 0, 0, 0, 0, 0]"


def test_torque_accelerates_as_the_model():
    torque = [0.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    source = (
        f"def f():\n i = 0\n while i < 50:\n  direct_torque({torque})\n  i = i + 1\n end\n"
        " sleep(1)\nend\n"
    )
    moving = run(source, 40)
    ended = run(source, 200)
    mass = pin.crba(ROBOT.model, ROBOT.model.createData(), ROBOT.home)
    mass = (
        np.triu(mass) + np.triu(mass, 1).T + np.diag([6.03, 6.05, 1.94, 0.61, 0.61, 0.61])
    )  # the rotors
    expected = np.linalg.solve(mass, torque)
    # Friction takes its part, though it is compensated.
    reached = COMPENSATED_TIME * (1.0 - np.exp(-0.08 / COMPENSATED_TIME))

    assert moving.state.target_qd[5] == pytest.approx(reached * expected[5], rel=0.02)
    assert not ended.state.target_qd.any()


def test_friction_slows_a_free_joint():
    """Compensated friction slows it less."""
    push = (
        "def f():\n i = 0\n while i < 25:\n  direct_torque([0, 0, 0, 0, 0, 9], %s)\n  i = i + 1\n"
        " end\n"
    )
    coast = f" while i < 425:\n  direct_torque({SIX}, %s)\n  i = i + 1\n end\nend\n"
    for flag, seconds in (("True", COMPENSATED_TIME), ("False", FRICTION_TIME)):
        source = (push + coast) % (flag, flag)
        pushed, later = (run(source, ticks).state.target_qd[5] for ticks in (30, 280))
        assert later == pytest.approx(pushed * np.exp(-0.5 / seconds), rel=0.05)
