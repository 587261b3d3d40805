"""With lead=True the inverse of the servo law is sent: the arm is where the setpoints are, within limits."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.robot import load_robot
from simbridge.servo.feedforward import MAX_ACCELERATION, MAX_LEAD
from simbridge.servo.inverse import InverseServoj
from simbridge.servo.law import ServojLaw
from tests.sessions.test_limits import moving_slider, stream
from tests.sessions.trial import engaged, repeated, run

ROBOT = load_robot("ur10")


def led(trace, law):
    """Commands (T, n) that bring the arm to the setpoints, and what the servo law makes of them."""
    inverse = InverseServoj(law, trace.start)
    commands = np.array([inverse.command(setpoint) for setpoint in trace.setpoints])
    return commands, law.follow(commands, previous=trace.start)


@pytest.mark.parametrize("tuning", [(2000.0, 0.03), (300.0, 0.1), (100.0, 0.03), (100.0, 0.2)])
@pytest.mark.parametrize("seed", [1, 2])
def test_commands_lead_by_no_more_than_allowed_and_the_arm_is_at_the_setpoints(tuning, seed):
    law, rng = ServojLaw(ROBOT.period, *tuning), np.random.default_rng(seed)
    motion = engaged(ROBOT, law=law, lead=True, max_jump=(5.0, 5.0))
    trace = run(motion, stream(rng, ROBOT, 1.5), 1.5, robot=ROBOT, slider=moving_slider(rng))
    commands, arm = led(trace, law)
    # A command's lead is from where the arm is to be when it has acted: as the guard checks it.
    assert np.abs(commands - trace.setpoints).max() <= MAX_LEAD
    assert np.abs(arm.qdd).max() <= MAX_ACCELERATION
    # Commands are single precision.
    assert arm.q == pytest.approx(trace.setpoints, abs=1e-5)
    assert (np.abs(arm.qd) <= ROBOT.max_velocity).all()


def test_with_lead_the_arm_does_not_trail_a_twist():
    law = ServojLaw(ROBOT.period)
    script = repeated("twist", [0, 0.2, 0, 0, 0, 0], 0.0, 1.0)
    trace = run(engaged(ROBOT, law=law, lead=True), script, 1.0, robot=ROBOT)
    behind = {
        "lead": np.abs(led(trace, law)[1].q[-1] - trace.setpoints[-1]).max(),
        "without": np.abs(trace.arm(law).q[-1] - trace.setpoints[-1]).max(),
    }
    assert behind["lead"] < 1e-6
    assert behind["without"] == pytest.approx(law.lag * np.abs(trace.velocity[-1]).max(), rel=0.1)
