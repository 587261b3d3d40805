"""What the servo loop sends, when, and which state it is compared with, on a simulated clock."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simbridge.backends.received_states import STALE_S
from simbridge.backends.servo_loop import AHEAD_S, FORGET_S, ServoLoop
from simbridge.backends.streamed_motion import PlanReplay
from simbridge.errors import GuardViolation, SimbridgeError
from simbridge.planning.check import check_setpoints
from simbridge.planning.guard import Guard
from simbridge.robot import load_robot
from simbridge.robot.collision import CollisionModel
from simbridge.robot.obstacles import CollisionScene
from simbridge.servo.feedforward import MAX_ACCELERATION, SCALING_RAMP
from simbridge.servo.law import ServojLaw
from simbridge.ur.errors import (
    ArmNotReady,
    EmergencyStop,
    ProgramPaused,
    ProgramStopped,
    ProtectiveStop,
    SafeguardStop,
    SafetyFault,
    SpeedScaled,
    StaleState,
)
from tests.backends.fake_link import FakeLink, VirtualClock
from tests.properties import few_examples

UR10 = load_robot("ur10")
HOME = UR10.home
NO_FLOOR = CollisionModel(UR10, CollisionScene(floor=None))
PERIODS = pytest.mark.parametrize("period", [0.008, 0.002])


class Bench:
    """A servo loop, its fake controller, and the states that were recorded."""

    def __init__(self, period=0.008, *, clock=None, follow=True, wait_in_pause=True, **controller):
        self.period = period
        self.clock = clock or VirtualClock()
        self.link = FakeLink(self.clock, HOME, period, **controller)
        law = controller.get("law") or ServojLaw(period)
        guard = Guard(UR10, period, law.lookahead)
        self.loop = ServoLoop(
            self.link,
            guard,
            "arm",
            law,
            follow_scaling=follow,
            wait_in_pause=wait_in_pause,
            clock=self.clock,
        )
        self.states = []

    def play(self, motion, **options):
        self.loop.play(
            motion, lambda scalars, vectors: self.states.append((scalars, vectors)), **options
        )

    def run(self, motion, slots=None, **options):
        """Play a motion for so many periods, or to its end."""
        self.play(motion, **options)
        count = 0
        while not self.loop.idle if slots is None else count < slots:
            self.loop.slot()
            count += 1
            assert count < 200_000, "the motion does not end"
        return self

    def ends_in(self, kind, motion, slots=2000):
        with pytest.raises(kind) as raised:
            self.run(motion, slots)
        assert type(raised.value) is kind
        return raised.value

    @property
    def wire(self):
        """The setpoints that left (K, n)."""
        return np.array([sent.setpoint for sent in self.link.sent])

    @property
    def sent_at(self):
        return np.array([sent.time for sent in self.link.sent])

    def recorded(self, name):
        names = [
            "sequence",
            "position",
            "sent",
            "received",
            "timestamp",
            "scaling",
            "robot",
            "safety",
            "runtime",
        ]
        if name in names:
            return np.array([scalars[names.index(name)] for scalars, _ in self.states])
        vectors = [
            "q",
            "qd",
            "effort",
            "controller_target",
            "target velocity",
            "target acceleration",
            "setpoint",
        ]
        return np.array([v[vectors.index(name)] for _, v in self.states])


def glide(count, speed=0.3, period=0.008):
    """Setpoints (count, n) from home, every joint accelerating to a constant speed within 0.3 s."""
    t = np.arange(count) * period
    way = speed * np.where(t < 0.3, t**2 / 0.6, t - 0.15)
    return HOME + way[:, None] * np.array([1.0, 0.5, -0.5, 0.3, -0.8, 0.6])


def speeds(bench):
    """Of joint 1 on the wire, rad/s."""
    return np.diff(bench.wire[:, 0]) / bench.period


class Whatever:
    """A motion that returns the given objects, which need not be setpoints."""

    finished, slows_in_gaps, payload_may_change = False, False, False

    def __init__(self, setpoints):
        self._setpoints = iter(setpoints)

    def pause(self, q):
        return 0.0

    def next(self, rate):
        return next(self._setpoints), 0.0

    def lead_back(self, q, hold, period):
        return [next(self._setpoints)]


# ---- what may reach the wire

NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
ODD = st.one_of(
    st.lists(NUMBERS, min_size=0, max_size=8),
    st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=2),
    st.sampled_from([None, "q", {}, 0.0, [[], [0.0]]]),
)
STEPS = st.lists(st.floats(-1.1, 1.1), min_size=6, max_size=6)  # in largest steps
FIELDS = st.sampled_from(
    [
        {"target_speed_fraction": 0.0},
        {"target_speed_fraction": 0.3},
        {"target_speed_fraction": 1.0},
        {"runtime_state": 4},
        {"runtime_state": 2},
        {"runtime_state": 1},
        {"safety_mode": 3, "runtime_state": 4},
        {"safety_mode": 5},
        {"safety_mode": 7},
        {"robot_mode": 5},
        {"actual_q": (float("nan"),) * 6},
        {"actual_q": tuple(HOME + 0.5)},
    ]
)
CONTROLLERS = st.fixed_dictionaries(
    {
        "changes": st.dictionaries(st.integers(1, 150), FIELDS, max_size=4),
        "freezes": st.dictionaries(st.integers(1, 150), st.floats(0.0, 0.15), max_size=3),
        "drift": st.floats(-1e-3, 1e-3),
    }
)


def wandering(period, steps, odd):
    """Live setpoints, each one step from the last, with invalid objects in some places."""
    q = HOME.copy()
    for index in range(120):
        q = q + np.array(steps[index % len(steps)]) * UR10.max_velocity * period
        yield odd.get(index, q)


def carelessly(bench, motion):
    """Play a motion, ignore every error, and continue."""
    bench.play(motion)
    for _ in range(200):
        with contextlib.suppress(SimbridgeError, StopIteration):
            bench.loop.slot()


def check_wire(bench):
    wire = bench.wire.reshape(-1, 6)
    assert np.isfinite(wire).all()
    assert (wire >= UR10.position_min - 1e-9).all() and (wire <= UR10.position_max + 1e-9).all()
    steps = np.abs(np.diff(np.vstack([HOME, wire]), axis=0))
    assert (steps <= UR10.max_velocity * bench.period * (1.0 + 1e-4)).all()


@PERIODS
@given(
    steps=st.lists(STEPS, min_size=1, max_size=5),
    odd=st.dictionaries(st.integers(0, 119), ODD, max_size=2),
    controller=CONTROLLERS,
    seed=st.integers(0, 2**32),
    lost=st.floats(0.0, 0.5),
    jitter=st.floats(0.0, 0.02),
    late=st.floats(0.0, 0.02),
)
@example(
    steps=[[0.1] * 6],
    odd={},
    controller={
        "changes": {1: {"runtime_state": 4}, 2: {"runtime_state": 2}},
        "freezes": {},
        "drift": 0.0,
    },
    seed=0,
    lost=0.0,
    jitter=0.0,
    late=0.0,
)
def test_no_setpoint_outside_the_limits_not_finite_or_too_far_from_the_last_reaches_the_wire(
    period, steps, odd, controller, seed, lost, jitter, late
):
    chance = random.Random(seed)
    bench = Bench(
        period,
        clock=VirtualClock(lambda: late * chance.random() ** 8),
        delay=lambda tick: (
            None if tick > 3 and chance.random() < lost else jitter * chance.random() ** 4
        ),
        **controller,
    )
    carelessly(bench, Whatever(wandering(period, steps, odd)))
    check_wire(bench)


@PERIODS
@given(st.lists(STEPS, min_size=2, max_size=60), CONTROLLERS)
def test_no_plan_sends_a_setpoint_that_the_guard_refuses(period, steps, controller):
    plan = HOME + np.cumsum(np.array(steps) * UR10.max_velocity * period, axis=0)
    bench = Bench(period, **controller)
    carelessly(bench, PlanReplay(plan))
    check_wire(bench)


@pytest.mark.parametrize(
    "odd", [[float("nan")] * 6, [float("inf")] * 6, [0.0] * 5, [[0.0] * 6], None, HOME + 0.5]
)
def test_after_an_invalid_setpoint_nothing_more_is_sent(odd):
    bench = Bench()
    bench.ends_in(GuardViolation, Whatever([HOME, HOME, odd, HOME, HOME]))
    for _ in range(2):
        with pytest.raises(GuardViolation):
            bench.loop.slot()
    assert np.array_equal(bench.wire, [HOME, HOME])


# ---- a plan at full speed


@PERIODS
def test_at_full_speed_the_whole_plan_is_sent_bit_for_bit_and_in_order(period):
    plan = glide(500, period=period)
    bench = Bench(period).run(PlanReplay(plan))
    assert np.array_equal(bench.wire[: len(plan)], plan)
    assert (bench.wire[len(plan) :] == plan[-1]).all()
    assert np.allclose(np.diff(bench.sent_at), period, atol=1e-9)


@PERIODS
def test_the_state_of_a_sample_is_stamped_one_period_after_its_setpoint_was_sent(period):
    plan = glide(500, period=period)
    bench = Bench(period).run(PlanReplay(plan))
    assert np.array_equal(bench.recorded("sequence"), np.arange(500))
    assert np.array_equal(bench.recorded("setpoint"), plan)
    due = (np.array([sent.tick for sent in bench.link.sent[:500]]) + 1) * period
    assert np.allclose(bench.recorded("timestamp"), due, atol=1e-12)
    # This arm is where its setpoint is one tick after it was sent.
    assert np.array_equal(bench.recorded("q"), plan)
    assert np.array_equal(bench.recorded("position"), np.arange(500))
    assert bench.loop.missed_states == bench.loop.missed_deadlines == 0


def test_after_the_end_the_last_setpoint_is_held_and_the_next_motion_starts_from_it():
    bench = Bench().run(PlanReplay(glide(50)))
    for _ in range(10):
        bench.loop.slot()
    assert len(bench.wire) >= 60 and (bench.wire[50:] == bench.wire[49]).all()
    bench.run(PlanReplay(bench.wire[49] + np.zeros((3, 1))))
    held = len(bench.wire)
    bench.ends_in(GuardViolation, PlanReplay(np.array([HOME + 0.5])))
    assert len(bench.wire) == held


def test_nothing_is_sent_before_the_first_motion():
    bench = Bench()
    for _ in range(20):
        bench.loop.slot()
    assert not bench.link.sent


# ---- the controller's speed


def test_at_thirty_percent_the_plan_is_replayed_at_that_speed():
    plan = glide(400)
    time_scaled = Bench(changes={100: {"target_speed_fraction": 0.3}}).run(PlanReplay(plan))
    after = speeds(time_scaled)[150 : len(time_scaled.states) - 2]
    assert after == pytest.approx(0.3 * 0.3, rel=1e-6)
    # The samples record their position within the plan.
    position = time_scaled.recorded("position")
    assert np.diff(position)[150:-2] == pytest.approx(0.3)
    at = np.array([np.interp(position, np.arange(400), joint) for joint in plan.T]).T
    assert np.allclose(time_scaled.recorded("setpoint"), at, atol=1e-12)
    assert np.array_equal(time_scaled.wire[len(time_scaled.states) - 1], plan[-1])
    assert time_scaled.recorded("scaling").min() == pytest.approx(0.3)


@PERIODS
@pytest.mark.parametrize(
    ("halt", "braking"),
    [
        (({"target_speed_fraction": 0.0}, {"target_speed_fraction": 1.0}), 1.0 / SCALING_RAMP),
        (({"speed_scaling": 0.0}, {"speed_scaling": 1.0}), 1.0 / SCALING_RAMP),
    ],
    ids=["slider", "scaling"],
)
def test_while_the_controller_stands_still_the_plan_holds_and_then_resumes_with_a_ramp(
    period, halt, braking
):
    stop, go = round(1.0 / period), round(1.5 / period)
    bench = Bench(period, changes={stop: halt[0], go: halt[1]}).run(
        PlanReplay(glide(round(3.0 / period), period=period))
    )
    ticks = np.array([sent.tick for sent in bench.link.sent])[1:]
    speed = speeds(bench)
    held = stop + round(braking / period)
    assert (speed[(ticks >= held) & (ticks < go)] == 0.0).all()
    assert np.diff(speed[(ticks >= stop) & (ticks < held)]) == pytest.approx(
        -0.3 * SCALING_RAMP * period, rel=1e-3
    )
    ramp = speed[ticks >= go][: round(0.25 / period)]
    assert np.diff(ramp) == pytest.approx(0.3 * SCALING_RAMP * period, rel=1e-3)
    assert ramp[0] == pytest.approx(
        0.3 * SCALING_RAMP * period, rel=1e-3
    ) and speed.max() == pytest.approx(0.3)
    assert bench.recorded("position")[-1] == round(3.0 / period) - 1
    assert bench.recorded("scaling").min() == 0.0


def test_a_plan_that_requires_full_speed_ends_in_speed_scaled():
    bench = Bench(changes={100: {"target_speed_fraction": 0.3}}, follow=False)
    assert bench.ends_in(SpeedScaled, PlanReplay(glide(400))).scaling == pytest.approx(0.3)
    assert bench.link.sent[-1].tick == 99


# ---- missing states


def silent_from(tick):
    return lambda k: None if k >= tick else 0.0


@PERIODS
def test_setpoints_are_sent_for_at_most_eight_milliseconds_without_a_newer_state(period):
    bench = Bench(period, delay=silent_from(100))
    bench.ends_in(StaleState, PlanReplay(glide(400, period=period)))
    newest = 99
    answered = np.array([sent.time for sent in bench.link.sent]) > newest * period
    # One responds to the last state; the others are sent without a newer one.
    assert (answered.sum() - 1) * period == pytest.approx(AHEAD_S)


@PERIODS
def test_after_a_tenth_of_a_second_without_a_newer_state_the_loop_gives_up(period):
    bench = Bench(period, delay=silent_from(100))
    error = bench.ends_in(StaleState, PlanReplay(glide(400, period=period)))
    assert error.timestamp == pytest.approx(99 * period)
    assert STALE_S < error.waited <= STALE_S + 2.0 * period
    assert bench.clock.now - 99 * period == pytest.approx(error.waited)


@PERIODS
def test_a_controller_that_repeats_the_same_state_is_stale(period):
    bench = Bench(period)
    bench.play(PlanReplay(glide(400, period=period)))
    frozen = dict(bench.loop.state)
    bench.link.states = lambda timeout: bench.clock.sleep(min(timeout, period)) or [frozen]
    with pytest.raises(StaleState):
        for _ in range(400):
            bench.loop.slot()


def test_a_controller_that_never_sends_a_state_is_stale():
    with pytest.raises(StaleState):
        Bench(delay=lambda tick: None)


@PERIODS
def test_after_a_standstill_the_plan_resumes_with_a_ramp_where_it_was(period):
    bench = Bench(period, freezes={round(1.0 / period): FORGET_S + 0.05})
    bench.run(PlanReplay(glide(round(3.0 / period), period=period)))
    gap = int(np.argmax(np.diff(bench.sent_at)))
    assert np.diff(bench.sent_at)[gap] > 0.05
    speed = speeds(bench)
    assert speed[gap] == pytest.approx(0.3 * SCALING_RAMP * period, rel=1e-2)
    assert np.diff(speed[gap : gap + round(0.2 / period)]) == pytest.approx(
        0.3 * SCALING_RAMP * period, rel=1e-2
    )
    assert bench.recorded("position")[-1] == round(3.0 / period) - 1
    assert bench.loop.missed_deadlines >= 0.05 / period


@PERIODS
@pytest.mark.parametrize("length", [0.004, 0.01, 0.05, 0.09])
def test_after_a_standstill_samples_belong_to_the_next_state_again(period, length):
    begin = round(1.0 / period)
    bench = Bench(period, freezes={begin: length}).run(
        PlanReplay(glide(round(3.0 / period), period=period))
    )
    timestamps = bench.recorded("timestamp")
    assert bench.loop.missed_states == 0 and (np.diff(timestamps) > 0.0).all()
    # During the standstill a few more were sent, and the controller uses only the last of them.
    apart = np.flatnonzero((bench.recorded("q") != bench.recorded("setpoint")).any(axis=1))
    assert len(apart) <= AHEAD_S / period
    assert (
        (timestamps[apart] >= 1.0 - period / 2) & (timestamps[apart] <= 1.0 + AHEAD_S + period)
    ).all()


@PERIODS
@pytest.mark.parametrize("every", [7, 50])
def test_a_missing_state_is_counted_and_the_plan_continues(period, every):
    plan = glide(500, period=period)
    bench = Bench(period, delay=lambda tick: None if tick % every == every - 1 else 0.0).run(
        PlanReplay(plan)
    )
    assert np.array_equal(bench.wire[:500], plan)
    sequence = bench.recorded("sequence").astype(int)
    assert bench.loop.missed_states == 500 - len(sequence) > 0
    assert np.array_equal(bench.recorded("setpoint"), plan[sequence])
    assert np.array_equal(bench.recorded("q"), plan[sequence])


def test_states_that_arrive_in_bursts_are_all_matched_to_their_setpoints():
    # Three states at a time, as after a lost packet.
    plan = glide(500, period=0.002)
    bench = Bench(0.002, delay=lambda tick: 0.002 * (2 - tick % 3)).run(PlanReplay(plan))
    assert np.array_equal(bench.recorded("sequence"), np.arange(500))
    assert np.array_equal(bench.wire[:500], plan)
    assert bench.loop.missed_states == 0


def test_a_few_late_states_do_not_cost_a_punctual_loop_a_period():
    plan = glide(500, period=0.002)
    bench = Bench(0.002, delay=lambda tick: 0.001 if tick in (200, 201, 202, 300) else 0.0).run(
        PlanReplay(plan)
    )
    assert bench.loop.missed_deadlines == bench.loop.missed_states == 0
    assert np.abs(np.diff(bench.sent_at[:500]) - 0.002).max() < 1e-4
    assert np.array_equal(bench.recorded("setpoint"), plan) and np.array_equal(
        bench.recorded("q"), plan
    )


def test_the_counts_are_those_of_the_current_motion():
    bench = Bench(delay=lambda tick: None if tick % 10 == 9 and tick < 90 else 0.0)
    bench.run(PlanReplay(np.repeat(HOME[None], 100, axis=0)))
    assert bench.loop.missed_states > 0
    bench.run(PlanReplay(np.repeat(HOME[None], 50, axis=0)))
    assert bench.loop.missed_states == bench.loop.missed_deadlines == 0


# ---- time


class Still:
    """A motion that never ends and never moves."""

    finished = False
    payload_may_change = False

    def next(self, rate):
        return HOME, 0.0


@PERIODS
def test_setpoints_are_sent_more_regularly_than_states_arrive(period):
    chance = random.Random(4)
    bench = Bench(period, delay=lambda tick: 0.3 * period * chance.random())
    bench.run(Still(), 5000)
    arriving = np.diff(bench.link.arrivals).std()
    assert np.diff(bench.sent_at)[500:].std() < 0.2 * arriving
    assert bench.loop.missed_deadlines == bench.loop.missed_states == 0


@pytest.mark.parametrize("drift", [5e-5, -5e-5])
@pytest.mark.parametrize("slots", [10_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_the_phase_stays_constant_although_the_controllers_clock_drifts(slots, drift):
    # By the end the clocks differ by half a period, or by five.
    period = 0.002
    bench = Bench(period, drift=drift)
    bench.run(Still(), slots)
    ticks = np.array([sent.tick for sent in bench.link.sent])
    assert (np.diff(ticks) == 1).all()
    phase = bench.sent_at - ticks * period / (1.0 + drift)
    drifted = bench.sent_at - bench.sent_at[0] - (ticks - ticks[0]) * period
    assert abs(drifted[-1]) > 4e-5 * slots * period
    assert np.abs(phase - phase[0]).max() < 0.01 * period
    assert bench.loop.missed_deadlines == bench.loop.missed_states == 0


@PERIODS
def test_setpoints_follow_a_growing_delay_of_the_states(period):
    bench = Bench(period, delay=lambda tick: 0.0 if tick < 100 else 0.4 * period)
    bench.run(Still(), 1000)
    assert np.diff(bench.sent_at).min() > 0.999 * period
    before, after = (bench.sent_at[at] - bench.link.sent[at].tick * period for at in (50, -1))
    assert after - before == pytest.approx(0.4 * period, rel=1e-2)


class Nap:
    """One wait, of many, that takes longer by this much."""

    def __init__(self, length, at=300):
        self._length, self._left = length, at

    def __call__(self):
        self._left -= 1
        return 0.0 if self._left else self._length


@PERIODS
@pytest.mark.parametrize(
    ("slept", "missed"), [(0.3, 0), (0.7, 0), (0.8, 1), (0.98, 1), (1.3, 1), (3.6, 3)]
)
def test_missed_deadlines_are_counted_and_the_plan_continues_without_a_jump(period, slept, missed):
    plan = glide(500, period=period)
    bench = Bench(period, clock=VirtualClock(Nap(slept * period))).run(PlanReplay(plan))
    assert np.array_equal(bench.wire[:500], plan)
    assert (bench.loop.missed_deadlines, bench.loop.missed_states) == (missed, 0)
    # As many ticks have no setpoint of their own, and none has two.
    assert sorted(np.diff([sent.tick for sent in bench.link.sent[:500]]))[-2:] == [1, 1 + missed]
    assert np.array_equal(bench.recorded("q"), plan)


@PERIODS
@few_examples(30)
@given(st.floats(0.0, 0.09))
def test_after_any_delay_a_sample_is_measured_when_its_setpoint_is_in_force(period, nap):
    plan = glide(200, period=period)
    bench = Bench(period, clock=VirtualClock(Nap(nap, at=100))).run(PlanReplay(plan))
    sequence = bench.recorded("sequence").astype(int)
    assert len(sequence) >= 198
    at = np.minimum(bench.recorded("position"), len(plan) - 1.0)
    index = at.astype(int)
    due = plan[index] + (at - index)[:, None] * (
        plan[np.minimum(index + 1, len(plan) - 1)] - plan[index]
    )
    assert np.allclose(bench.recorded("setpoint"), due, rtol=0.0, atol=1e-12)
    assert np.array_equal(bench.recorded("q"), bench.recorded("setpoint"))
    assert nap > 0.9 * FORGET_S or np.array_equal(bench.recorded("setpoint"), plan[sequence])


@PERIODS
@pytest.mark.parametrize("nap", [0.04, 0.09])
def test_after_a_delay_in_which_the_arm_came_to_rest_the_plan_resumes_from_rest(period, nap):
    # At constant speed, which it has after 0.3 s.
    plan, at = (glide(600), 300) if period == 0.008 else (glide(1000, period=period), 500)
    bench = Bench(period, clock=VirtualClock(Nap(nap, at=at))).run(PlanReplay(plan))
    after = int(np.argmax(np.diff(bench.sent_at)))
    assert np.diff(bench.sent_at)[after] > 0.9 * nap
    before, resumed = speeds(bench)[after - 2], speeds(bench)[after:]
    assert before > 0.1
    assert np.abs(resumed[0]) <= 1.01 * SCALING_RAMP * period * 0.3
    assert (
        np.abs(np.diff(resumed[: int(0.5 / (SCALING_RAMP * period))])).max()
        <= 1.01 * SCALING_RAMP * period * 0.3 + 1e-9
    )
    assert np.array_equal(bench.wire[-1], plan[-1])


# ---- what stops the arm


@pytest.mark.parametrize(
    ("seen", "kind"),
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
def test_a_stop_ends_the_stream_in_the_error_of_its_name(seen, kind):
    bench = Bench(changes={100: seen})
    error = bench.ends_in(kind, PlanReplay(glide(400)))
    assert (error.host, error.robot_mode) == ("arm", seen.get("robot_mode", 7))
    assert (error.safety_mode, error.runtime_state) == (
        seen.get("safety_mode", 1),
        seen.get("runtime_state", 2),
    )
    assert all(sent.tick < 100 for sent in bench.link.sent)


@pytest.mark.parametrize(
    ("later", "kind"),
    [
        ({"safety_mode": 3}, ProtectiveStop),
        ({"safety_mode": 7}, EmergencyStop),
        ({"safety_mode": 5}, SafeguardStop),
    ],
)
@pytest.mark.parametrize("first", [{"runtime_state": 1}, {"robot_mode": 5}])
def test_a_safety_stop_is_named_even_if_its_effects_are_seen_first(first, later, kind):
    Bench(changes={100: first, 105: later}).ends_in(kind, PlanReplay(glide(400)))


@pytest.mark.parametrize(
    ("seen", "kind"), [({"safety_mode": 3}, ProtectiveStop), ({"runtime_state": 1}, ProgramStopped)]
)
def test_after_a_refused_setpoint_no_other_is_sent_and_later_states_give_the_cause(seen, kind):
    # The states show the stop 20 ms after the controller has stopped accepting setpoints.
    bench = Bench(0.002, delay=lambda tick: 0.0 if tick < 100 else 0.02, changes={100: seen})
    bench.ends_in(kind, PlanReplay(glide(400, period=0.002)))
    assert [sent.tick for sent in bench.link.sent if sent.tick >= 100] == [100]


def test_a_stop_that_is_over_in_the_next_state_is_still_a_stop():
    # Three states arrive at once, and only the first of them shows it.
    bench = Bench(
        delay=lambda tick: 0.008 * (2 - tick % 3),
        changes={99: {"safety_mode": 5}, 100: {"safety_mode": 1}},
    )
    bench.ends_in(SafeguardStop, PlanReplay(glide(400)))


def test_a_reduced_safety_mode_is_no_stop():
    plan = glide(200)
    assert np.array_equal(
        Bench(changes={100: {"safety_mode": 2}}).run(PlanReplay(plan)).wire[:200], plan
    )


def test_an_arm_that_is_not_where_its_setpoints_are_is_stopped():
    bench = Bench(changes={150: {"actual_q": tuple(HOME - 0.5)}})
    assert bench.ends_in(GuardViolation, PlanReplay(glide(400))).rule == "distance"


@pytest.mark.parametrize(
    ("nap", "cause"),
    [(0.095, "No setpoint had been sent"), (0.0, "The log at the pendant says why")],
)
def test_a_program_ended_by_its_watchdog_is_distinguished_from_one_that_was_stopped(nap, cause):
    bench = Bench(0.002, clock=VirtualClock(Nap(nap, at=100)), changes={170: {"runtime_state": 1}})
    error = bench.ends_in(ProgramStopped, PlanReplay(glide(400, period=0.002)))
    assert cause in str(error)
    assert error.unsent == pytest.approx(nap, abs=0.01)


def test_where_a_pause_is_to_end_the_run_it_does():
    bench = Bench(changes={200: {"runtime_state": 4}}, wait_in_pause=False)
    bench.ends_in(ProgramPaused, PlanReplay(glide(400)))


PAUSES = st.tuples(st.floats(0.3, 2.0), st.floats(0.0, 1.0))


@few_examples(4)
@given(st.sampled_from([0.008, 0.002]), PAUSES, st.booleans())
def test_after_a_pause_the_plan_goes_on_from_rest_where_the_controller_stopped_the_arm(
    period, pause, feedforward
):
    stop, go = round(pause[0] / period), round((pause[0] + 0.2 + pause[1]) / period)
    u = np.arange(round(2.5 / period))[:, np.newaxis] * period / 2.5
    plan = HOME + 0.4 * u**3 * (10.0 - 15.0 * u + 6.0 * u**2) * np.array(
        [1.0, 0.5, -0.5, 0.3, -0.8, 0.6]
    )
    bench = Bench(
        period,
        law=ServojLaw(period),
        changes={stop: {"runtime_state": 4}, go: {"runtime_state": 2}},
    )
    bench.run(PlanReplay(plan), feedforward=feedforward)
    position, stamp = bench.recorded("position"), np.round(bench.recorded("timestamp") / period)
    assert position[-1] == len(plan) - 1 and (np.diff(position) >= 0.0).all()
    assert np.ptp(position[(stamp > stop + 1) & (stamp < go)]) == 0.0
    # What is sent in the pause is where the arm was stopped, so nothing moves when the program is resumed.
    arm, sent = bench.recorded("controller_target"), bench.recorded("setpoint")
    before = np.flatnonzero(stamp == go - 1)[0]
    assert np.abs(sent[before] - arm[before]).max() < 1e-7
    motions = np.array([motion.qdd for motion in bench.link.motions])
    assert np.abs(motions[stop + 1 :]).max() <= MAX_ACCELERATION


# ---- velocity jumps, and what servoj makes of them

JUMPS = st.lists(st.tuples(st.floats(-1.0, 1.0), st.integers(1, 12)), min_size=1, max_size=30)


def jumping(parts, period, fastest):
    """Setpoints (T, 6) of joint 6 from rest to rest: its velocity changes by these jumps, rad/s, and is then kept."""
    velocity, velocities = 0.0, [0.0]
    for jump, count in parts:
        velocity = min(max(velocity + jump, -fastest), fastest)
        velocities += [velocity] * count
    while abs(velocity) > 1.0:
        velocity -= np.sign(velocity)
        velocities.append(velocity)
    return HOME + period * np.cumsum([*velocities, 0.0])[:, np.newaxis] * np.eye(6)[5]


@PERIODS
@few_examples(10)
@given(
    parts=JUMPS,
    slider=st.dictionaries(st.integers(1, 200), st.floats(0.0, 1.0), max_size=5),
    pauses=st.dictionaries(st.integers(1, 200), st.integers(1, 60), max_size=2),
    seed=st.integers(0, 2**32),
    lost=st.floats(0.0, 0.4),
    late=st.floats(0.0, 0.05),
)
def test_the_guard_refuses_no_plan_that_the_check_accepts_whatever_the_speed_slider_and_the_timing(
    period, parts, slider, pauses, seed, lost, late
):
    law, chance = ServojLaw(period), random.Random(seed)
    plan = jumping(parts, period, UR10.max_velocity[5] / law.velocity_gain().any)
    changes = {tick: {"target_speed_fraction": fraction} for tick, fraction in slider.items()}
    for tick, length in pauses.items():
        changes[tick] = changes.get(tick, {}) | {"runtime_state": 4}
        changes[tick + length] = changes.get(tick + length, {}) | {
            "runtime_state": 2,
            "target_speed_fraction": 1.0,
        }
    check_setpoints(UR10, plan, period, max_tool_speed=10.0, collisions=NO_FLOOR)
    bench = Bench(
        period,
        clock=VirtualClock(lambda: late * chance.random() ** 8),
        delay=lambda tick: None if tick > 3 and chance.random() < lost else 0.0,
        changes=changes,
    )
    # A controller that is not heard of for too long ends the run, too.
    with contextlib.suppress(StaleState):
        bench.run(PlanReplay(plan), 600)
    assert len(bench.wire)


def test_setpoints_of_which_servoj_would_make_too_high_a_velocity_are_refused_before_they_are_sent():
    period, law = 0.002, ServojLaw(0.002)
    velocity = np.minimum(np.arange(100), 3.14)
    plan = HOME + period * np.cumsum(velocity)[:, np.newaxis] * np.eye(6)[5]
    bench = Bench(period, law=law)
    error = bench.ends_in(GuardViolation, PlanReplay(plan))
    assert (error.rule, error.joint) == ("predicted velocity", UR10.joint_names[5])
    fastest = np.abs(law.follow(bench.wire, previous=HOME).qd[:, 5]).max()
    assert 0.99 * UR10.max_velocity[5] < fastest <= 1.001 * UR10.max_velocity[5] < error.value
