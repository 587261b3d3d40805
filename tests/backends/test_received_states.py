"""States that come to the servo loop in bursts, that cannot be, or that show another tool."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.backends.servo_loop import FORGET_S
from simbridge.backends.state_fields import SCRIPT_COUNTER, SCRIPT_NUMBER
from simbridge.backends.state_supply import WINDOW_S
from simbridge.backends.streamed_motion import PlanReplay
from simbridge.servo import law as servo_law
from simbridge.servo.feedforward import BRAKING
from simbridge.servo.law import ServojLaw
from simbridge.sessions.loop import LiveLoop
from simbridge.ur.errors import (
    ImplausibleState,
    LateStates,
    ProtectiveStop,
    StaleState,
    ToolChanged,
)
from tests.backends.fake_link import VirtualClock
from tests.backends.servo_bench import HOME, Bench, Nap, glide
from tests.properties import variants

pytestmark = pytest.mark.slow

PERIOD = 0.002
PLAN = glide(300, period=PERIOD)
LONG_PLAN = glide(3000, speed=0.1, period=PERIOD)


def in_bursts(interval, period=PERIOD):
    """Return the delays of states that arrive together every so many seconds."""
    together = round(interval / period)
    return lambda tick: period * (together - 1 - tick % together)


class Moving:
    """A live motion, which never ends; each period it makes a step at the requested rate."""

    finished = False
    slows_in_gaps = True
    payload_may_change = True

    def __init__(self):
        self.rates = []
        self._q = HOME.copy()

    def next(self, rate):
        self.rates.append(rate)
        self._q = self._q + 0.1 * rate * PERIOD
        return self._q, float(len(self.rates))


# ---- bursts


@pytest.mark.parametrize("interval", variants([0.012, 0.014, 0.016, 0.018], 0.012, 0.018))
def test_short_bursts_extend_a_replay_by_its_missed_periods(interval):
    bench = Bench(PERIOD, delay=in_bursts(interval))

    bench.run(PlanReplay(PLAN))

    assert np.array_equal(bench.wire[: len(PLAN)], PLAN)
    assert bench.loop.missed_deadlines > 0
    periods = round((bench.sent_at[len(PLAN) - 1] - bench.sent_at[0]) / PERIOD)
    assert periods <= len(PLAN) + bench.loop.missed_deadlines


@pytest.mark.parametrize("interval", variants([0.022, 0.03, 0.05, 0.09], 0.022, 0.09))
def test_a_replay_in_long_bursts_ends_by_name(interval):
    bench = Bench(PERIOD, delay=in_bursts(interval))

    error = bench.run_until_error(LateStates, PlanReplay(LONG_PLAN), slots=3000)

    assert error.fraction >= 0.5
    assert error.interval == pytest.approx(interval, rel=0.05)
    assert error.longest_interval == pytest.approx(interval, rel=0.05)
    assert bench.clock.now >= WINDOW_S


def test_bursts_end_a_replay_on_a_cb3_too():
    bench = Bench(0.008, delay=in_bursts(0.048, 0.008))

    error = bench.run_until_error(LateStates, PlanReplay(glide(2000, speed=0.1)), slots=2000)

    assert error.period == 0.008


def test_bursts_end_a_live_motion_by_name():
    bench = Bench(PERIOD, delay=in_bursts(0.05))

    error = bench.run_until_error(LateStates, Moving(), slots=3000)

    assert error.fraction >= 0.5


def test_a_live_motion_in_short_bursts_does_not_come_to_rest():
    motion = Moving()

    Bench(PERIOD, delay=in_bursts(0.012)).run(motion, 1500)

    assert min(motion.rates[1000:]) > 0.4


def test_a_gap_slows_a_live_motion_in_proportion():
    motion = Moving()
    bench = Bench(
        PERIOD,
        changes={100: {"target_speed_fraction": 0.5}},
        freezes={600: 0.008 + FORGET_S / 2.0},
    )

    bench.run(motion, 1000)

    slowest = min(motion.rates[400:])
    assert slowest == pytest.approx(0.25, abs=0.06)


def test_periods_at_a_speed_slider_of_zero_do_not_count():
    bench = Bench(PERIOD, delay=in_bursts(0.05), changes={1: {"target_speed_fraction": 0.0}})

    bench.run(PlanReplay(LONG_PLAN), 1500)

    assert not bench.loop.idle


def test_periods_of_a_pause_do_not_count():
    bench = Bench(PERIOD, delay=in_bursts(0.05), changes={30: {"runtime_state": 4}})

    bench.run(PlanReplay(LONG_PLAN), 1500)

    assert bench.loop.paused


def test_good_states_after_a_bad_second_end_nothing():
    burst = in_bursts(0.05)
    bench = Bench(PERIOD, delay=lambda tick: burst(tick) if tick < 400 else 0.0)
    plan = LONG_PLAN[:1000]

    bench.run(PlanReplay(plan))

    assert bench.recorded("position")[-1] == len(plan) - 1


# ---- states that cannot be

BAD = 160
NOW = BAD * PERIOD
IMPOSSIBLE = [
    ("timestamp", NOW + 0.25),
    ("timestamp", 5000.0),
    ("timestamp", 9e8),
    ("actual_q", (*HOME[:5], 1e8)),
    ("actual_q", (*HOME[:5], HOME[5] + 3.0)),
    ("actual_q", (float("nan"),) * 6),
    ("actual_q", (-float("inf"),) * 6),
    ("target_q", (1e300,) * 6),
    ("target_q", (float("nan"),) * 6),
    ("actual_qd", (1e5,) * 6),
    ("target_qdd", (1e9,) * 6),
    ("speed_scaling", float("nan")),
    ("speed_scaling", -3.0),
    ("target_speed_fraction", 1e5),
]
IMPOSSIBLE_CASES = pytest.mark.parametrize(
    ("field", "value"), IMPOSSIBLE, ids=lambda value: str(value)[:24]
)
FIELDS = [field for field, _ in IMPOSSIBLE]


def braked_case(number):
    """Return a case of BRAKED_CASES: not in soak if it is the first of its field, or NaN."""
    field, value = IMPOSSIBLE[number]
    is_soak = field in FIELDS[:number] and not np.isnan(value).any()
    return pytest.param(field, value, marks=[pytest.mark.soak] * is_soak)


# One value of each field, and NaN where positions can be NaN.
BRAKED_CASES = pytest.mark.parametrize(
    ("field", "value"),
    [braked_case(number) for number in range(len(IMPOSSIBLE))],
    ids=lambda value: str(value)[:24],
)


@IMPOSSIBLE_CASES
def test_an_impossible_state_is_refused_by_name(field, value):
    bench = Bench(PERIOD, corrupted={BAD: {field: value}})

    error = bench.run_until_error(ImplausibleState, PlanReplay(PLAN))

    assert error.field == field
    assert all(sent.tick < BAD for sent in bench.link.sent)


@BRAKED_CASES
def test_after_an_impossible_state_the_arm_is_braked(field, value):
    bench = Bench(PERIOD, law=ServojLaw(PERIOD), corrupted={BAD: {field: value}})
    bench.run_until_error(ImplausibleState, PlanReplay(PLAN))

    bench.loop.brake()

    assert np.abs(bench.link.motions[-1].qd).max() < 1e-2
    assert bench.accelerations[BAD:].max() <= 1.01 * BRAKING


def test_the_arm_is_braked_without_another_valid_state():
    future = {tick: {"timestamp": 5000.0} for tick in range(BAD, BAD + 500)}
    bench = Bench(PERIOD, law=ServojLaw(PERIOD), corrupted=future)
    bench.run_until_error(ImplausibleState, PlanReplay(PLAN))

    bench.loop.brake()

    assert np.abs(bench.link.motions[-1].qd).max() < 1e-2


def test_a_stop_is_named_although_impossible_states_follow():
    bench = Bench(
        PERIOD, changes={BAD: {"safety_mode": 3}}, corrupted={BAD + 1: {"timestamp": 5000.0}}
    )
    bench.link._delay = lambda tick: PERIOD if tick == BAD else 0.0

    bench.run_until_error(ProtectiveStop, PlanReplay(PLAN))


def test_a_clock_that_goes_on_during_a_standstill_is_stale():
    later = {tick: {"timestamp": tick * PERIOD + 0.5} for tick in range(BAD, BAD + 500)}
    bench = Bench(PERIOD, freezes={BAD: 0.5}, corrupted=later)
    bench.play(PlanReplay(PLAN))
    wait_for_states = bench.link.states

    def stand_still(timeout):
        # From here on nothing is looked at until half a second has passed.
        frozen = bench.link._tick == BAD
        return wait_for_states(0.6 if frozen else timeout)

    bench.link.states = stand_still

    with pytest.raises(StaleState):
        for _ in range(2000):
            bench.loop.run_period()


def counting(tick):
    """Return the registers of a control script that counts each tick."""
    return {SCRIPT_NUMBER: 77, SCRIPT_COUNTER: 1000 + tick}


def test_another_number_of_a_counting_script_is_refused():
    changes = {tick: counting(tick) for tick in range(500)}
    bench = Bench(PERIOD, changes=changes, corrupted={BAD: {SCRIPT_NUMBER: 78}})

    error = bench.run_until_error(ImplausibleState, PlanReplay(PLAN))

    assert error.field == SCRIPT_NUMBER


def test_another_script_that_counts_anew_is_no_corrupt_state():
    changes = {tick: counting(tick) for tick in range(BAD)}
    changes[BAD] = {SCRIPT_NUMBER: 78, SCRIPT_COUNTER: 1}
    bench = Bench(PERIOD, changes=changes)

    bench.run(PlanReplay(PLAN))

    assert bench.loop.idle


def test_a_state_that_is_older_than_the_last_is_ignored():
    bench = Bench(PERIOD, corrupted={BAD: {"timestamp": 0.1}})

    bench.run(PlanReplay(PLAN))

    assert np.array_equal(bench.wire[: len(PLAN)], PLAN)


def test_a_clock_that_goes_back_for_good_is_stale():
    back = {tick: {"timestamp": (tick - BAD) * PERIOD} for tick in range(BAD, BAD + 200)}
    bench = Bench(PERIOD, corrupted=back)

    bench.run_until_error(StaleState, PlanReplay(PLAN))


@pytest.mark.parametrize("lost", variants([10, 40, 48], 48))
def test_a_short_loss_of_states_ends_nothing(lost):
    bench = Bench(PERIOD, delay=lambda tick: None if BAD <= tick < BAD + lost else 0.0)

    bench.run(PlanReplay(PLAN))

    assert bench.recorded("position")[-1] == len(PLAN) - 1


@pytest.mark.parametrize("feedforward", [False, True])
def test_a_suspended_loop_compiles_nothing(feedforward, monkeypatch):
    monkeypatch.setattr(servo_law, "compiled_integrate", lambda: pytest.fail("the loop compiles"))
    bench = Bench(PERIOD, clock=VirtualClock(Nap(3.0, at=100)))

    bench.run(PlanReplay(np.repeat(HOME[np.newaxis], 500, axis=0)), feedforward=feedforward)

    assert not bench.loop.paused


# ---- the tool

NO_TOOL = {
    "tcp_offset": (0.0,) * 6,
    "payload": 1.0,
    "payload_cog": (0.0, 0.0, 0.1),
    "payload_inertia": (0.0,) * 6,
}
OTHER_TCP = {"tcp_offset": (0.0, 0.0, 0.05, 0.0, 0.0, 0.0)}


def test_another_tcp_ends_a_replay_by_name():
    bench = Bench(PERIOD, changes={0: NO_TOOL, 100: OTHER_TCP})

    error = bench.run_until_error(ToolChanged, PlanReplay(PLAN))

    assert error.what == "TCP"
    assert error.actual.split()[2] == "50.0"
    assert bench.link.sent[-1].tick == 99


def test_another_tcp_ends_a_live_motion_by_name():
    bench = Bench(PERIOD, changes={0: NO_TOOL, 100: OTHER_TCP})

    error = bench.run_until_error(ToolChanged, Moving())

    assert error.what == "TCP"


def test_after_another_tcp_the_arm_is_braked():
    bench = Bench(PERIOD, law=ServojLaw(PERIOD), changes={0: NO_TOOL, 200: OTHER_TCP})
    bench.run_until_error(ToolChanged, PlanReplay(PLAN))

    bench.loop.brake()

    assert np.abs(bench.link.motions[-1].qd).max() < 1e-2


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"payload": 2.5}, "payload"),
        ({"payload_cog": (0.0, 0.02, 0.1)}, "centre of gravity"),
        ({"payload_inertia": (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)}, "inertia"),
    ],
)
def test_another_payload_ends_a_replay_by_name(change, what):
    bench = Bench(PERIOD, changes={0: NO_TOOL, 100: change})

    error = bench.run_until_error(ToolChanged, PlanReplay(PLAN))

    assert error.what == what


def test_a_live_motion_keeps_each_payload():
    bench = Bench(PERIOD, changes={0: NO_TOOL, 100: {"payload": 2.5}, 200: {"payload": 1.0}})

    bench.run(Moving(), 300)

    assert [payload.mass for payload in bench.loop.tool.changes] == [2.5, 1.0]


def test_another_payload_lasts_until_the_first_returns():
    bench = Bench(PERIOD, changes={0: NO_TOOL, 100: {"payload": 2.5}})
    bench.run(Moving(), 150)
    assert bench.loop.tool.has_other_payload

    bench.link._fields.update(NO_TOOL)
    bench.loop.run_period()
    bench.loop.run_period()

    assert not bench.loop.tool.has_other_payload


def test_a_tool_that_is_not_reported_is_not_watched():
    bench = Bench(PERIOD)

    bench.run(PlanReplay(PLAN))

    assert bench.loop.idle


def test_a_live_session_goes_on_with_another_payload():
    assert LiveLoop.payload_may_change
    assert not PlanReplay.payload_may_change


def test_bursts_do_not_make_the_wire_faster_than_the_plan():
    bench = Bench(PERIOD, delay=in_bursts(0.016))

    bench.run(PlanReplay(PLAN))

    assert np.abs(bench.speeds).max() <= 0.3 + 1e-9
