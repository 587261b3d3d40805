"""Stops end a motion of the servo loop, and pauses interrupt it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.backends.streamed_motion import PlanReplay
from simbridge.errors import GuardViolation
from simbridge.servo.feedforward import MAX_ACCELERATION
from simbridge.servo.law import ServojLaw
from simbridge.ur.errors import (
    ArmNotReady,
    EmergencyStop,
    ProgramPaused,
    ProgramStopped,
    ProtectiveStop,
    SafeguardStop,
    SafetyFault,
)
from tests.backends.fake_link import VirtualClock
from tests.backends.servo_bench import HOME, JOINT_RATIOS, Bench, Nap, glide, minimum_jerk
from tests.properties import few_examples

pytestmark = pytest.mark.quick


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"safety_mode": 3}, ProtectiveStop),
        ({"safety_mode": 3, "runtime_state": 4}, ProtectiveStop),
        ({"safety_mode": 3, "runtime_state": 1}, ProtectiveStop),
        ({"safety_status_bits": 1 << 2}, ProtectiveStop),
        ({"safety_mode": 5, "runtime_state": 4}, SafeguardStop),
        ({"safety_mode": 6, "robot_mode": 3, "runtime_state": 1}, EmergencyStop),
        ({"safety_mode": 7, "robot_mode": 3}, EmergencyStop),
        ({"safety_status_bits": 1 << 7}, EmergencyStop),
        ({"safety_mode": 8}, SafetyFault),
        ({"safety_mode": 9}, SafetyFault),
        ({"robot_mode": 5}, ArmNotReady),
        ({"runtime_state": 1}, ProgramStopped),
        ({"runtime_state": 0}, ProgramStopped),
    ],
)
def test_a_stop_ends_the_stream_in_the_error_of_its_name(changes, kind):
    bench = Bench(changes={100: changes})

    error = bench.run_until_error(kind, PlanReplay(glide(400)))

    assert error.host == "arm"
    assert error.robot_mode == changes.get("robot_mode", 7)
    assert error.safety_mode == changes.get("safety_mode", 1)
    assert error.runtime_state == changes.get("runtime_state", 2)
    assert all(sent.tick < 100 for sent in bench.link.sent)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"safety_status_bits": 2049}, {"safety_mode": 21, "safety_status_bits": 2049}],
)
def test_newer_numbers_of_a_ready_arm_end_no_stream(changes):
    bench = Bench(changes={100: changes})

    bench.run(PlanReplay(glide(400)))

    assert bench.link.sent[-1].tick >= 400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("later", "kind"),
    [
        ({"safety_mode": 3}, ProtectiveStop),
        ({"safety_mode": 7}, EmergencyStop),
        ({"safety_mode": 5}, SafeguardStop),
    ],
)
@pytest.mark.parametrize("first", [{"runtime_state": 1}, {"robot_mode": 5}])
def test_a_safety_stop_is_named_even_if_its_effects_come_first(first, later, kind):
    bench = Bench(changes={100: first, 105: later})

    bench.run_until_error(kind, PlanReplay(glide(400)))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [({"safety_mode": 3}, ProtectiveStop), ({"runtime_state": 1}, ProgramStopped)],
)
def test_states_after_a_refused_setpoint_give_the_cause(changes, kind):
    # The states show the stop 20 ms after the controller has stopped accepting setpoints.
    bench = Bench(0.002, delay=lambda tick: 0.0 if tick < 100 else 0.02, changes={100: changes})

    bench.run_until_error(kind, PlanReplay(glide(400, period=0.002)))

    assert [sent.tick for sent in bench.link.sent if sent.tick >= 100] == [100]


def test_a_stop_of_one_state_is_a_stop():
    # Three states arrive at once, and only the first of them shows it.
    bench = Bench(
        delay=lambda tick: 0.008 * (2 - tick % 3),
        changes={99: {"safety_mode": 5}, 100: {"safety_mode": 1}},
    )

    bench.run_until_error(SafeguardStop, PlanReplay(glide(400)))


def test_a_reduced_safety_mode_is_no_stop():
    plan = glide(200)
    bench = Bench(changes={100: {"safety_mode": 2}})

    bench.run(PlanReplay(plan))

    assert np.array_equal(bench.wire[:200], plan)


def test_an_arm_that_is_not_at_its_setpoints_is_stopped():
    bench = Bench(changes={150: {"actual_q": tuple(HOME - 0.5)}})

    error = bench.run_until_error(GuardViolation, PlanReplay(glide(400)))

    assert error.rule == "distance"


@pytest.mark.parametrize(
    ("nap", "cause"),
    [(0.095, "No setpoint had been sent"), (0.0, "The log on the pendant gives the reason")],
)
def test_a_program_ended_by_its_watchdog_was_not_stopped(nap, cause):
    bench = Bench(0.002, clock=VirtualClock(Nap(nap, at=100)), changes={170: {"runtime_state": 1}})

    error = bench.run_until_error(ProgramStopped, PlanReplay(glide(400, period=0.002)))

    assert cause in str(error)
    assert error.unsent == pytest.approx(nap, abs=0.01)


def test_where_a_pause_is_to_end_the_run_it_does():
    bench = Bench(changes={200: {"runtime_state": 4}}, wait_in_pause=False)

    bench.run_until_error(ProgramPaused, PlanReplay(glide(400)))


@pytest.mark.slow
@few_examples(3)
@given(
    period=st.sampled_from([0.008, 0.002]),
    begin=st.floats(0.3, 1.2),
    extra_length=st.floats(0.0, 0.6),
    feedforward=st.booleans(),
)
def test_after_a_pause_the_plan_goes_on_from_rest(period, begin, extra_length, feedforward):
    stop = round(begin / period)
    resume = round((begin + 0.2 + extra_length) / period)
    u = np.arange(round(1.6 / period))[:, np.newaxis] * period / 1.6
    plan = HOME + 0.4 * minimum_jerk(u) * JOINT_RATIOS
    bench = Bench(
        period,
        law=ServojLaw(period),
        changes={stop: {"runtime_state": 4}, resume: {"runtime_state": 2}},
    )

    bench.run(PlanReplay(plan), feedforward=feedforward)

    position = bench.recorded("position")
    assert position[-1] == len(plan) - 1
    assert (np.diff(position) >= 0.0).all()
    # In the pause the plan stands still.
    ticks = np.round(bench.recorded("timestamp") / period)
    assert np.ptp(position[(ticks > stop + 1) & (ticks < resume)]) == 0.0
    # What is sent in the pause is where the controller has stopped the arm, so nothing moves when
    # the program is resumed.
    before = np.flatnonzero(ticks == resume - 1)[0]
    arm = bench.recorded("controller_target")[before]
    sent = bench.recorded("setpoint")[before]
    assert np.abs(sent - arm).max() < 1e-7
    assert bench.accelerations[stop + 1 :].max() <= MAX_ACCELERATION
