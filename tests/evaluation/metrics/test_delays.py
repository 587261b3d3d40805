"""The delay between two motions: known delays are recovered, and others have none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics import delays
from simbridge.evaluation.metrics.delays import compensate_delay, delay, motion_through
from simbridge.evaluation.metrics.samples import PoseError
from simbridge.robot import pose
from tests.properties import few_examples, variants

pytestmark = pytest.mark.slow

Array = NDArray[Any]
Motion = Callable[[Array], Array]

PRECISION = 0.03e-3


def poses(x: ArrayLike, y: ArrayLike, z: ArrayLike, turns: Array | None = None) -> Array:
    positions = np.stack(np.broadcast_arrays(x, y, z), axis=1)
    return np.hstack(
        [positions, pose.quaternions(np.zeros_like(positions) if turns is None else turns)]
    )


def minimum_jerk(t: Array) -> Array:
    u = np.clip(t, 0.0, 1.0)
    return 10.0 * u**3 - 15.0 * u**4 + 6.0 * u**5


def square(t: Array) -> Array:
    """A side of 0.2 m every 2 s at constant speed: the velocity jumps at the corners."""
    corners = np.arange(5.0) * 2.0
    return poses(
        np.interp(t, corners, [0, 0.2, 0.2, 0, 0]), np.interp(t, corners, [0, 0, 0.2, 0.2, 0]), 0.3
    )


def resting_square(t: Array) -> Array:
    """The same with a rest at every corner."""
    s = [minimum_jerk((t - start) / 1.5) for start in (0.3, 2.3, 4.3, 6.3)]
    return poses(0.2 * (s[0] - s[2]), 0.2 * (s[1] - s[3]), 0.3)


def circle(t: Array) -> Array:
    return poses(0.1 * np.cos(0.5 * math.pi * t), 0.1 * np.sin(0.5 * math.pi * t), 0.3)


def line(t: Array) -> Array:
    """0.3 m, minimum jerk, with rests before and after."""
    return poses(0.3 * minimum_jerk((t - 1.0) / 3.0), 0.0, 0.3)


def drift(t: Array) -> Array:
    """A line at constant speed: its velocity alone does not determine a delay."""
    return poses(0.1 * t, 0.0, 0.3)


def rocking(t: Array) -> Array:
    """The tool turns in place."""
    angles = np.stack([0.0 * t, 0.3 * np.sin(2.0 * t), 0.1 * np.cos(2.0 * t)], axis=1)
    return poses(0.4 * np.ones_like(t), 0.0, 0.3, angles)


def spinning(t: Array) -> Array:
    """The tool turns about one axis, more than a whole turn."""
    return poses(0.4 * np.ones_like(t), 0.0, 0.3, np.stack([0.0 * t, 0.0 * t, 1.2 * t], axis=1))


def screw(t: Array) -> Array:
    return poses(
        0.02 * t, 0.05 * np.sin(t), 0.3, np.stack([0.4 * np.sin(t), 0.0 * t, 0.2 * t], axis=1)
    )


def noisy(clean: Array, sigma: float, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.hstack([clean[:, :3] + sigma * rng.standard_normal((len(clean), 3)), clean[:, 3:]])


def held(motion: Motion, hold: float) -> Motion:
    return lambda t: motion(np.floor(t / hold + 1e-6) * hold)


MOTIONS = [square, resting_square, circle, line, drift, rocking, spinning, screw]
STAMPS = {0.002: np.arange(4000) * 0.002, 0.008: np.arange(1000) * 0.008}
# Four times as many samples take four times as long.
PERIODS = pytest.mark.parametrize("period", [pytest.param(0.002, marks=pytest.mark.soak), 0.008])


# Delays of a circle and a line are found in noise, below.
@PERIODS
@pytest.mark.parametrize("motion", variants(MOTIONS, *(set(MOTIONS) - {circle, line})))
def test_a_known_delay_is_recovered(motion: Motion, period: float) -> None:
    t = STAMPS[period]

    for known in (0.0, 0.0004, 0.0047, 0.008, 0.0333, 0.1, 0.2, -0.0029, -0.05, -0.2):
        assert delay(t, motion, motion(t - known)) == pytest.approx(known, abs=PRECISION)


@PERIODS
@pytest.mark.parametrize("motion", variants(MOTIONS, square, drift, screw))
def test_a_sampled_motion_gives_the_delay(motion: Motion, period: float) -> None:
    """A known delay is recovered, too, if the desired motion is known by samples."""
    t = STAMPS[period]

    for known in (0.0, 0.0047, 0.0333, 0.2, -0.05):
        assert delay(t, motion_through(t, motion(t)), motion(t - known)) == pytest.approx(
            known, abs=PRECISION
        )


@few_examples(10, soak=400)
@given(known=st.floats(-0.2, 0.2), motion=st.sampled_from(MOTIONS), start=st.floats(-1e3, 1e6))
def test_the_clocks_origin_does_not_matter(known: float, motion: Motion, start: float) -> None:
    t = STAMPS[0.008] + start

    assert delay(t, lambda at: motion(at - start), motion(t - start - known)) == pytest.approx(
        known, abs=PRECISION
    )


@PERIODS
@pytest.mark.parametrize("known", variants([-0.05, 0.0, 0.0333, 0.2], 0.0333))
@pytest.mark.parametrize("sigma", [1e-5, pytest.param(1e-4, marks=pytest.mark.soak), 1e-3])
@pytest.mark.parametrize("motion", [square, resting_square, circle, line])
def test_noise_costs_the_theoretical_precision(
    motion: Motion, sigma: float, known: float, period: float
) -> None:
    assert_theoretical_precision(motion, sigma, known, period)


@PERIODS
def test_noise_costs_a_lead_no_more_than_a_delay(period: float) -> None:
    assert_theoretical_precision(circle, 1e-3, -0.05, period)


def assert_theoretical_precision(motion: Motion, sigma: float, known: float, period: float) -> None:
    """Assert that a known delay, s, is found in noise of a standard deviation, m."""
    # No unbiased estimate varies less than sigma / (RMS speed sqrt(samples)), the Cramer-Rao bound.
    t = STAMPS[period]
    clean = motion(t - known)
    speed = np.linalg.norm(np.diff(clean[:, :3], axis=0), axis=1) / period
    bound = sigma / math.sqrt(np.mean(speed**2) * len(t))
    for seed in range(3):
        assert delay(t, motion, noisy(clean, sigma, seed)) == pytest.approx(
            known, abs=4.0 * bound + 1e-6
        )


@PERIODS
@pytest.mark.parametrize("known", variants([0.0, 0.037, 0.1003, 0.2], 0.037, 0.1003))
def test_a_noisy_square_gives_the_delay(known: float, period: float) -> None:
    """At 200 mm/s and with half a millimetre of noise, the delay is right to 0.5 ms."""
    t = STAMPS[period]

    def fast_square(at: Array) -> Array:
        return square(2.0 * at)

    for seed in range(5):
        lag = delay(t, fast_square, noisy(fast_square(t - known), 0.5e-3, seed))
        assert lag == pytest.approx(known, abs=0.5e-3)


def test_stamps_need_not_be_uniform() -> None:
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.001, 0.02, 700))

    gap = np.delete(STAMPS[0.008], slice(300, 420))

    for stamps in (t, gap):
        assert delay(stamps, circle, circle(stamps - 0.0333)) == pytest.approx(
            0.0333, abs=PRECISION
        )


# With 20,000 samples, below, it is as long for a rough search of fewer.
@pytest.mark.soak
def test_a_long_recording_is_as_precise() -> None:
    t = np.arange(100_000) * 0.002

    assert delay(t, circle, circle(t - 0.0471)) == pytest.approx(0.0471, abs=PRECISION)


def test_a_thinned_rough_search_is_as_precise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A recording longer than the rough search handles gives the delay as precisely."""
    monkeypatch.setattr(delays, "MAX_CORRELATED", 500)
    t = np.arange(20_000) * 0.002

    for known in (-0.2, 0.0471):
        assert delay(t, circle, circle(t - known)) == pytest.approx(known, abs=PRECISION)


def test_a_first_order_lag_delays_by_phase() -> None:
    """A circle that passes a first-order lag is delayed by its phase."""
    omega = 0.5 * math.pi
    t = STAMPS[0.008]
    for constant in (0.02, 0.2, 1.0):
        phase = math.atan(omega * constant)
        late = circle(t - phase / omega)
        late[:, :2] *= math.cos(phase)
        assert delay(t, circle, late) == pytest.approx(phase / omega, abs=PRECISION)


def test_a_step_is_delayed_to_its_half() -> None:
    """The delay of a step is the time in which the response reaches half of it."""
    t = STAMPS[0.008]
    step = poses(np.where(t > 1.0, 0.1, 0.0), 0.0, 0.3)
    for constant in (0.05, 0.2, 0.6):
        response = poses(0.1 * -np.expm1(-np.maximum(t - 1.0, 0.0) / constant), 0.0, 0.3)
        assert delay(t, motion_through(t, step), response) == pytest.approx(
            constant * math.log(2.0), abs=0.008
        )


@pytest.mark.parametrize("hold", [0.1, 0.5])
def test_a_held_target_lags_by_its_age(hold: float) -> None:
    """A held target lags the reference by the mean age of its samples."""
    period = 0.01
    t = np.arange(800) * period

    lag = delay(t, circle, held(circle, hold)(t))

    assert lag == pytest.approx(0.5 * (hold - period), abs=0.01 * hold)


@pytest.mark.parametrize("hold", [0.1, 0.5, 1.0])
def test_a_late_held_target_has_the_delay(hold: float) -> None:
    """A held target that is followed late shows the delay."""
    t = np.arange(800) * 0.01
    staircase = held(circle, hold)

    assert delay(t, motion_through(t, staircase(t)), staircase(t - 0.04)) == pytest.approx(
        0.04, abs=PRECISION
    )


def test_long_rests_do_not_hide_the_delay() -> None:
    def nod(t: Array) -> Array:
        return poses(0.0, 0.0, 0.05 * np.sin(math.pi * np.clip(t - 6.0, 0.0, 1.0)))

    t = STAMPS[0.008]
    assert delay(t, nod, nod(t - 0.043)) == pytest.approx(0.043, abs=PRECISION)


def test_a_lateral_offset_keeps_the_delay() -> None:
    t = STAMPS[0.008]
    attained = line(t - 0.05)
    attained[:, 2] -= 0.004

    assert delay(t, line, attained) == pytest.approx(0.05, abs=PRECISION)


def steady_laps(t: Array) -> Array:
    """A lap every second, under way before the recording and after it."""
    return circle(4.0 * t)


def resting_laps(t: Array) -> Array:
    """A lap every half second, from rest to rest."""
    return circle(8.0 * np.clip(t - 0.5, 0.0, 6.0))


@pytest.mark.parametrize("laps", [steady_laps, resting_laps])
def test_a_periodic_motion_keeps_its_cycle(laps: Motion) -> None:
    """A periodic motion is not matched to another of its cycles."""
    slowing = np.cumsum(np.linspace(0.002, 0.02, 727))

    for t in (STAMPS[0.008], slowing):
        for known in (-0.3, 0.1, 0.4):
            assert delay(t, laps, laps(t - known)) == pytest.approx(known, abs=PRECISION)


def test_the_motion_is_called_within_its_times() -> None:
    """The desired motion is called only within the range of the times."""
    t = STAMPS[0.008] + 3.0
    asked: list[Array] = []

    def watched(at: Array) -> Array:
        asked.append(at)
        return circle(at)

    for known in (-0.1, 0.1):
        lag = delay(t, watched, circle(t - known))
        assert lag is not None
        compensate_delay(t, watched, circle(t - known), lag=lag, part="position")
    assert min(at.min() for at in asked) >= t[0]
    assert max(at.max() for at in asked) <= t[-1]


def test_a_tiny_motion_has_no_delay() -> None:
    t = STAMPS[0.008]
    for amplitude, is_known in ((0.4e-4, False), (0.6e-4, True)):

        def wobble(at: Array, amplitude: float = amplitude) -> Array:
            return poses(amplitude * np.cos(at), amplitude * np.sin(at), 0.3)

        lag = delay(t, wobble, wobble(t - 0.02))
        assert lag == (pytest.approx(0.02, abs=PRECISION) if is_known else None)


def test_a_tiny_rotation_has_no_delay() -> None:
    t = STAMPS[0.008]
    for amplitude, is_known in ((0.9e-3, False), (1.1e-3, True)):

        def tremble(at: Array, amplitude: float = amplitude) -> Array:
            return poses(
                0.0 * at, 0.0, 0.3, np.stack([amplitude * np.sin(at), 0.0 * at, 0.0 * at], axis=1)
            )

        lag = delay(t, tremble, tremble(t - 0.02))
        assert lag == (pytest.approx(0.02, abs=PRECISION) if is_known else None)


@pytest.mark.parametrize("sigma", [0.0, 1e-5, 1e-3, 1e-2])
def test_an_arm_at_rest_has_no_delay(sigma: float) -> None:
    t = STAMPS[0.008]
    standing = noisy(poses(0.1 * np.ones_like(t), 0.0, 0.3), sigma, seed=1)

    for motion in (square, circle, line, rocking):
        assert delay(t, motion, standing) is None


def test_noise_has_no_delay_against_noise() -> None:
    t = STAMPS[0.008]
    still = poses(np.zeros_like(t), 0.0, 0.3)

    for seed in range(10):
        assert (
            delay(t, motion_through(t, noisy(still, 1e-3, seed)), noisy(still, 1e-3, seed + 100))
            is None
        )


@pytest.mark.parametrize("motion", [square, line])
def test_an_opposite_motion_has_no_delay(motion: Motion) -> None:
    t = STAMPS[0.008]
    mirrored = motion(t)
    mirrored[:, :2] *= -1.0

    assert delay(t, motion, mirrored) is None


@pytest.mark.parametrize(
    ("limit", "late", "expected"),
    [(0.25, 0.3, None), (0.35, 0.3, 0.3), (2.0, 2.5, None), (10.0, 2.5, 2.5), (0.25, -0.3, None)],
)
def test_a_delay_is_never_clipped(
    monkeypatch: pytest.MonkeyPatch, limit: float, late: float, expected: float | None
) -> None:
    """A delay beyond the limit is none, not the limit."""
    monkeypatch.setattr(delays, "MAX_DELAY", limit)
    t = STAMPS[0.008]

    assert delay(t, line, line(t - late)) == (
        None if expected is None else pytest.approx(expected, abs=PRECISION)
    )


def test_too_few_samples_have_no_delay() -> None:
    for count in range(1, 10):
        t = np.arange(count) * 0.008
        assert delay(t, circle, circle(t - 0.008)) is None


def test_a_long_gap_leaves_no_delay() -> None:
    """A few samples on either side of a long gap have no delay."""
    t = np.append(np.arange(12) * 0.008, 1000.0)

    assert delay(t, drift, drift(t - 0.02)) is None


@few_examples(15, soak=600)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 40),
    scale=st.sampled_from([0.0, 1e-9, 1e-4, 0.1, 10.0]),
    staircase=st.booleans(),
)
def test_a_delay_is_bounded_or_none(seed: int, count: int, scale: float, staircase: bool) -> None:
    """The delay of any two motions is finite and within bounds, or None."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(1e-4, 0.1, count))
    desired, attained = (
        np.hstack(
            [
                scale * rng.standard_normal((count, 3)),
                pose.normalize(rng.standard_normal((count, 4))),
            ]
        )
        for _ in range(2)
    )
    if staircase:
        desired[:] = desired[np.arange(count) // 7 * 7]

    lag = delay(t, motion_through(t, desired), attained)

    assert lag is None or (type(lag) is float and abs(lag) < 0.5 * (t[-1] - t[0]))


def test_compensating_a_pure_delay_leaves_no_error() -> None:
    t = STAMPS[0.008]
    for part in ("position", "rotation"):
        left = compensate_delay(t, square, square(t - 0.05), lag=0.05, part=part)
        np.testing.assert_allclose(left.error, 0.0, atol=1e-14)
        assert left.delay == 0.05


@pytest.mark.parametrize(
    ("shift", "left_out"), [(0.0, 0), (0.1, 10), (-0.1, 10), (0.104, 11), (-0.104, 11)]
)
def test_samples_without_a_counterpart_are_left_out(shift: float, left_out: int) -> None:
    t = np.arange(100) / 100.0
    left = compensate_delay(t, circle, circle(t - shift), lag=shift, part="position")

    assert (len(left.error), left.kept.sum()) == (100 - left_out, 100 - left_out)


def test_a_useless_shift_leaves_the_error() -> None:
    """A shift that increases the error, or is unknown, leaves the error as it is."""
    t = STAMPS[0.008]
    attained = circle(t - 0.01)
    for late in (0.05, None, 1e3):
        left = compensate_delay(t, circle, attained, lag=late, part="position")
        np.testing.assert_array_equal(left.error, PoseError.between(circle(t), attained).distance)
        assert (left.delay, left.kept.all()) == (0.0, True)


def test_compensation_leaves_an_offset_as_it_is() -> None:
    t = STAMPS[0.008]
    attained = circle(t - 0.05)
    attained[:, 2] -= 0.004

    lag = delay(t, circle, attained)

    assert lag is not None

    left = compensate_delay(t, circle, attained, lag=lag, part="position")

    np.testing.assert_allclose(left.error, 0.004, rtol=1e-6)


def test_a_sampled_motion_is_interpolated_linearly() -> None:
    """It is linear between the samples, and constant outside."""
    ends = poses([0.0, 1.0], 0.0, 0.0, np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    between = motion_through([0.0, 2.0], ends)(np.array([-1.0, 0.5, 3.0]))

    np.testing.assert_allclose(between[:, 0], [0.0, 0.25, 1.0])
    np.testing.assert_allclose(pose.rotation_vectors(between[:, 3:])[:, 2], [0.0, 0.25, 1.0])


def test_unusable_input_is_named_in_the_error() -> None:
    t = STAMPS[0.008]
    good = circle(t)
    bad = good.copy()
    bad[17, 4] = math.inf

    with pytest.raises(UnusableSamples, match=r"attained poses.*sample 17"):
        delay(t, circle, bad)
    with pytest.raises(UnusableSamples, match="attained poses"):
        delay(t, circle, good[:-1])
    with pytest.raises(UnusableSamples, match="desired poses"):
        delay(t, lambda at: circle(at)[:, :3], good)
    with pytest.raises(UnusableSamples, match="desired poses"):
        delay(t, lambda at: circle(at) * math.nan, good)
    with pytest.raises(UnusableSamples, match="sampled poses"):
        motion_through(t, good[:5])
    with pytest.raises(UnusableSamples, match=r"sample 2 .* is not later than sample 1") as caught:
        motion_through([0.0, 1.0, 1.0], good[:3])
    assert caught.value.index == 2
    for times in ([], [[0.0]], [0.0, math.nan]):
        with pytest.raises(UnusableSamples, match="times"):
            delay(times, circle, good)
