"""The loop of a live session: what it adds to the motion that it steps."""

from __future__ import annotations

import numpy as np

from simbridge.sessions.channel import LiveChannel
from simbridge.sessions.inputs import Input
from simbridge.sessions.loop import LiveLoop
from tests.sessions.trial import ROBOT, engage_motion

TWIST = np.array([0.05, 0.0, 0.0, 0.0, 0.0, 0.0])


def cause_names(rates, *, late):
    """Return the kinds of each period's causes while a twist is followed.

    Args:
        rates: Fractions of full speed, one for each period.
        late: For each period, whether late commands lowered the speed.
    """
    motion = engage_motion()
    channel = LiveChannel(None, ROBOT.n)
    lateness = iter(late)
    clock = iter(ROBOT.period * index for index in range(len(rates)))
    loop = LiveLoop(
        motion,
        channel,
        ROBOT.period,
        lambda: next(clock),
        timed=False,
        late=lambda: next(lateness),
    )
    channel.post(Input("twist", TWIST, 1, 1))

    for rate in rates:
        loop.next(rate)

    periods = channel.periods(motion.subjects)
    return [{cause.kind for cause in period.causes} for period in periods]


def test_a_lower_speed_is_the_sliders():
    names = cause_names([0.9] * 5, late=[False] * 5)

    assert names[-1] == {"speed_slider"}


def test_late_commands_are_not_the_sliders():
    names = cause_names([0.9] * 5, late=[True] * 5)

    assert names[-1] == {"late_commands"}


def test_late_commands_linger_by_their_name():
    names = cause_names([0.9] * 5 + [1.0] * 5, late=[True] * 5 + [False] * 5)

    assert names[-1] == {"late_commands"}
