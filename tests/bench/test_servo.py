"""Setpoints that came late into force are counted from the controller's own record."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from simbridge.bench import servo
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


LOOP = {
    "period_mean_s": 0.002,
    "period_std_s": 0.0001,
    "period_p999_s": 0.0025,
    "period_max_s": 0.004,
    "missed_deadlines": 2,
    "missed_states": 1,
    "state_age_mean_s": 0.0004,
}


@pytest.fixture
def measured(monkeypatch):
    """In place of what takes minutes, the same timing through each link under each condition."""

    def measure_loop(_condition, link, _seconds):
        late = {"ur_rtde": 3, "rtde": 1}[link]
        return servo.LoopMeasurement(link, LOOP, late, np.array([0.0001, 0.002]))

    monkeypatch.setattr(servo, "_measure_loop", measure_loop)
    monkeypatch.setattr(servo, "_emulator", lambda: mock.MagicMock())
    monkeypatch.setattr(servo, "measure_calls", lambda *_: np.full(100, 2e-5))
    monkeypatch.setattr(servo, "_own_pacing_rows", lambda *_: [])
    monkeypatch.setattr(servo, "is_ur_rtde_installed", lambda: True)


def test_each_figure_of_the_own_link_stands_beside_ur_rtdes(measured):
    rows = {figure: (value, other, others) for figure, value, other, others in servo.measure(60.0)}

    late = rows["setpoints, ordinary priority, rtde: late of 30000"]
    jitter = rows["setpoints, real-time priority, rtde: std"]
    assert late == ("1", "ur_rtde", "3")
    assert jitter == ("0.100 ms", "ur_rtde", "0.100 ms")
    assert rows["sending a setpoint, rtde: median"][0] == "0.020 ms"


def test_without_ur_rtde_the_own_link_alone_is_measured(measured, monkeypatch):
    monkeypatch.setattr(servo, "is_ur_rtde_installed", lambda: False)

    figures = [row[0] for row in servo.measure(60.0)]

    assert figures
    assert not any("ur_rtde" in figure for figure in figures)


def test_a_refused_priority_is_one_row(measured, monkeypatch):
    monkeypatch.setattr(servo, "_measure_loop", lambda *_: None)

    rows = servo.measure(60.0)

    assert ("setpoints, real-time priority", "refused by the system", "how to fix it",
            "simbridge doctor") in rows  # fmt: skip
