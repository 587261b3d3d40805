"""A joint at the end of its range: not only the commands stay within it, but what the servo law makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.robot import load_robot
from simbridge.servo.law import ServojLaw
from simbridge.sessions.inputs import Input
from simbridge.sessions.limits import ServoModel
from simbridge.sessions.motion import LiveMotion
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.phases import Order
from tests.sessions.trial import engaged, repeated, run

ROBOT = load_robot("ur10e")
PERIOD = ROBOT.period


@pytest.mark.parametrize("tuning", [(2000.0, 0.03), (300.0, 0.1)])
def test_an_arm_that_is_driven_to_the_end_of_a_range_does_not_overshoot_it(tuning):
    law = ServojLaw(PERIOD, *tuning)
    motion = LiveMotion(ForwardDynamics(ROBOT), PERIOD, LiveOptions(), servo=ServoModel(law))
    begin = ROBOT.home + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 5.0])
    motion.rest_at(begin)
    motion.order(Order.ENGAGE, engagement=1)
    fast = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 10.0])
    setpoints = [
        motion.step(k * PERIOD, 1.0, Input("jog", fast, k + 1, 1)).setpoint
        for k in range(round(2.0 / PERIOD))
    ]
    attained = law.follow(np.array(setpoints), previous=begin).q[:, 5]
    end = ROBOT.position_max[5]
    assert end - 0.005 < attained[-1] <= attained.max() <= end


def test_an_arm_that_rests_at_the_end_of_a_range_stays_there_until_it_is_moved_away():
    start = ROBOT.home.copy()
    start[5] = ROBOT.position_max[5]
    script = repeated("jog", [0, 0, 0, 0, 0, 0.5], 0.0, 0.2) + repeated(
        "jog", [0, 0, 0, 0, 0, -0.5], 0.2, 0.6
    )
    trace = run(engaged(ROBOT, law=ServojLaw(ROBOT.period), start=start), script, 0.6, robot=ROBOT)
    assert np.ptp(trace.setpoints[: trace.at(0.19), 5]) == 0.0
    assert trace.velocity[-1, 5] == pytest.approx(-0.5, abs=0.01)
    assert np.abs(trace.acceleration).max() <= ROBOT.max_acceleration
