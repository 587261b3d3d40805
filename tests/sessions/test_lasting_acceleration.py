"""When the limit of acceleration counts as a hindrance of a live arm."""

from __future__ import annotations

import numpy as np
import pytest

from tests.properties import variants
from tests.sessions.trial import ROBOT, TimedInput, engage_motion, repeat_input, run

pytestmark = pytest.mark.slow

SECONDS = 0.6


@pytest.mark.parametrize("speed", variants([0.2, 1.0, -1.5], -1.5))
def test_a_start_has_no_cause(speed):
    script = repeat_input("jog", [0, 0, 0, 0, 0, speed], 0.0, SECONDS)

    trace = run(engage_motion(), script, SECONDS)

    assert not any(step.causes for step in trace.steps)


def test_a_turn_has_no_cause():
    there = repeat_input("jog", [0, 0, 0, 0, 0, 1.5], 0.0, 0.3)
    back = repeat_input("jog", [0, 0, 0, 0, 0, -1.5], 0.3, SECONDS)

    trace = run(engage_motion(), there + back, SECONDS)

    assert not any(step.causes for step in trace.steps)


def test_a_motion_that_asks_for_more_acceleration_is_hindered():
    rate = 30.0
    amplitude = 2.0 * ROBOT.max_acceleration / rate**2
    direction = np.array([0, 0, 0, 0, 0, 1.0])
    script = []
    for time in np.arange(0.0, SECONDS, ROBOT.period):
        joints = ROBOT.home + amplitude * np.sin(rate * time) * direction
        script.append(TimedInput(time, "joints", joints))

    trace = run(engage_motion(), script, SECONDS)

    kinds = [{cause.kind for cause in step.causes} for step in trace.steps]
    assert all("acceleration" in kind for kind in kinds[trace.index_at(0.4) :])
    assert trace.steps[-1].causes[0].value > 0.5 * ROBOT.max_acceleration
