"""Setpoints that came late into force are counted from the controller's own record."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.bench.servo import StreamedStates, count_late_setpoints
from simbridge.emulator.record_file import Recorded

FIRST_TICK = 1000
COUNT = 50
# By how many ticks a controller usually takes a setpoint later than it is due.
USUAL_DELAY = 1


def streamed():
    """Return setpoints of two joints, one due at each tick."""
    commands = np.column_stack([np.arange(COUNT), -np.arange(COUNT)]).astype(float)
    return StreamedStates({}, commands, FIRST_TICK + 5 + np.arange(COUNT))


def record(delays):
    """Return the record of a controller, which holds each setpoint until the next is in force."""
    states = streamed()
    ticks = FIRST_TICK + np.arange(COUNT + 30)
    setpoints = np.full((len(ticks), 2), np.nan)
    for command, tick, delay in zip(states.commands, states.ticks, delays, strict=True):
        setpoints[tick + delay - FIRST_TICK :] = command
    inputs = np.zeros(0)
    return Recorded(ticks, setpoints, setpoints, setpoints, inputs, [])


@pytest.mark.parametrize("usual_delay", [0, USUAL_DELAY])
def test_punctual_setpoints_are_not_late(usual_delay):
    delays = np.full(COUNT, usual_delay)

    assert count_late_setpoints(streamed(), record(delays)) == 0


def test_a_setpoint_a_tick_later_is_late():
    delays = np.full(COUNT, USUAL_DELAY)
    delays[COUNT - 1] += 1

    assert count_late_setpoints(streamed(), record(delays)) == 1


def test_a_setpoint_that_was_never_in_force_is_late():
    delays = np.full(COUNT, USUAL_DELAY)
    # It comes in the same tick as the next one, which takes its place.
    delays[20] += 1

    assert count_late_setpoints(streamed(), record(delays)) == 1
