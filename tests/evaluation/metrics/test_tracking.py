"""The error budget, and the tracking part of summary.json: its keys, numbers and nulls."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simbridge.errors import SimbridgeError, UnusableSamples
from simbridge.evaluation.metrics.samples import PoseError
from simbridge.evaluation.metrics.tracking import (
    ErrorBudget,
    error_budget,
    error_shares,
    errors_and_delays,
    part_delays,
    pipeline_delays,
    rotation_delay_differs,
)
from simbridge.robot import pose
from tests.evaluation.metrics.random_poses import random_poses, rotation_matrices, turned

pytestmark = pytest.mark.slow

Array = NDArray[Any]
POSES = ["reference", "target", "solution", "setpoint", "attained", "predicted"]
ERRORS = ["tracking_error", "sampling_error", "solver_error", "limiter_error", "plant_error"]


def circle(t: Array) -> Array:
    """Radius 0.1 m, once in 4 s, the tool rocking by 0.1 rad."""
    phase = 0.5 * math.pi * t
    positions = np.stack([0.1 * np.cos(phase), 0.1 * np.sin(phase), 0.3 + 0.0 * t], axis=1)
    turns = np.stack([0.0 * t, 0.0 * t, 0.1 * np.sin(phase)], axis=1)
    return np.hstack([positions, pose.quaternions(turns)])


def budget_of(*poses: Array) -> ErrorBudget[PoseError]:
    """Return the error budget of poses (T, 7) in the order of `POSES`."""
    return error_budget(**dict(zip(POSES, poses, strict=False)))


def tracking_summary(t: Array, reference: Any, *poses: Any) -> dict[str, Any]:
    """Return the errors and delays of a run at the stamps t.

    Args:
        t: Stamps (T,), s.
        reference: Function from instants to poses of the path.
        poses: Target, solution, setpoint and attained poses, and predicted ones if known.
    """
    budget = budget_of(reference(t), *poses)
    delays = pipeline_delays(t, reference, (reference(t), *poses[:4]), *poses[4:])
    return {
        **errors_and_delays(
            t, reference, poses[3], budget=budget, delays=delays, shares=error_shares(budget)
        )
    }


def test_the_keys_are_those_of_summary_json() -> None:
    t = np.arange(500) * 0.008
    summary = tracking_summary(t, circle, circle(t), circle(t), circle(t), circle(t - 0.03))
    sources = ("sampling", "solver", "limiter", "plant", "servo_law", "rest")
    delays = ["delay_s", *(f"{source}_delay_s" for source in sources)]
    delays += ["rotation_delay_s", *(f"{source}_rotation_delay_s" for source in sources)]
    parts = ["servo_law_error", "rest_error"]

    assert list(summary) == [
        *ERRORS,
        *parts,
        "error_shares",
        "delay_of",
        *delays,
        "delay_compensated",
    ]
    assert [summary[key] for key in (*parts, "servo_law_delay_s", "rest_delay_s")] == [None] * 4
    for key in [*ERRORS, "delay_compensated"]:
        assert list(summary[key]) == ["position_m", "rotation_rad"]
        assert all(list(line) == ["rms", "mean", "p95", "max"] for line in summary[key].values())
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_solver_and_plant_delays_add_up() -> None:
    t = np.arange(1000) * 0.008
    setpoint = circle(t - 0.012)
    attained = circle(t - 0.050)

    summary = tracking_summary(t, circle, circle(t), setpoint, setpoint, attained)

    assert summary["solver_delay_s"] == pytest.approx(0.012, abs=3e-5)
    assert summary["plant_delay_s"] == pytest.approx(0.038, abs=3e-5)
    assert summary["delay_s"] == pytest.approx(0.050, abs=3e-5)


def test_a_late_circles_error_is_its_chord() -> None:
    """The error of a late circle is its chord, and vanishes when the delay is removed."""
    t = np.arange(1000) * 0.008
    summary = tracking_summary(t, circle, circle(t), circle(t), circle(t), circle(t - 0.05))

    chord = 2.0 * 0.1 * math.sin(0.5 * 0.5 * math.pi * 0.05)

    for name in ("rms", "mean", "p95", "max"):
        assert summary["tracking_error"]["position_m"][name] == pytest.approx(chord, rel=1e-9)
        assert summary["plant_error"]["position_m"][name] == pytest.approx(chord, rel=1e-9)
    assert summary["solver_error"]["position_m"]["max"] == 0.0
    # What is left is how finely the delay is located: 1 us at 0.157 m/s and 0.157 rad/s.
    assert summary["delay_compensated"]["position_m"]["max"] < 1e-6
    assert summary["delay_compensated"]["rotation_rad"]["max"] < 1e-6


def test_late_rotation_has_its_own_delay() -> None:
    """A tool that rotates later than it moves has two delays."""
    t = np.arange(1000) * 0.008
    attained = circle(t - 0.001)
    attained[:, 3:] = circle(t - 0.020)[:, 3:]

    summary = tracking_summary(t, circle, circle(t), circle(t), circle(t), attained)

    assert summary["delay_s"] == pytest.approx(0.001, abs=3e-5)
    assert summary["rotation_delay_s"] == pytest.approx(0.020, abs=3e-5)
    assert summary["delay_compensated"]["position_m"]["max"] < 1e-6
    assert summary["delay_compensated"]["rotation_rad"]["max"] < 1e-6


def test_position_and_rotation_delays_are_separate() -> None:
    """The delays of the solver and the plant are separate for position and rotation."""
    t = np.arange(1000) * 0.008
    setpoint = circle(t - 0.001)
    attained = circle(t - 0.004)
    setpoint[:, 3:] = circle(t - 0.015)[:, 3:]
    attained[:, 3:] = circle(t - 0.020)[:, 3:]
    summary = tracking_summary(t, circle, circle(t), setpoint, setpoint, attained)
    for part, expected in (
        ("position", (0.004, 0.001, 0.003)),
        ("rotation", (0.020, 0.015, 0.005)),
    ):
        delays = part_delays(summary, part)
        assert (delays.total, delays.solver, delays.plant) == pytest.approx(expected, abs=3e-5)


def test_the_delays_of_all_parts_add_up() -> None:
    t = np.arange(1000) * 0.008
    late = np.cumsum([0.004, 0.002, 0.003, 0.028, 0.0005])
    target, solution, setpoint, predicted, attained = (circle(t - each) for each in late)
    summary = tracking_summary(t, circle, target, solution, setpoint, attained, predicted)

    delays = part_delays(summary, "position")

    assert delays == pytest.approx((0.0375, 0.004, 0.002, 0.003, 0.0285, 0.028, 0.0005), abs=3e-5)

    parts = (delays.sampling, delays.solver, delays.limiter, delays.servo_law, delays.rest)

    assert sum(each or 0.0 for each in parts) == pytest.approx(delays.total, abs=5e-5)

    budget = error_budget(
        circle(t), target, solution, setpoint=setpoint, attained=attained, predicted=predicted
    )

    assert budget.servo_law is not None and budget.rest is not None
    assert np.allclose(
        budget.servo_law.translation + budget.rest.translation, budget.plant.translation, atol=1e-15
    )
    assert summary["rest_error"] == budget.rest.statistics()


def test_an_idle_part_delays_by_zero() -> None:
    """A part that changes nothing has a delay of 0 in motion, and None at rest."""
    t = np.arange(500) * 0.008
    moving = tracking_summary(t, circle, circle(t), circle(t), circle(t), circle(t - 0.02))

    assert [moving[key] for key in ("sampling_delay_s", "solver_delay_s", "limiter_delay_s")] == [
        0.0
    ] * 3

    still = np.tile(circle(t[:1]), (500, 1))
    resting = tracking_summary(t, lambda at: still[: len(at)], still, still, still, still)

    assert [resting[key] for key in ("sampling_delay_s", "solver_delay_s", "limiter_delay_s")] == [
        None
    ] * 3


def test_an_unrelated_position_has_no_delay() -> None:
    """A position that does not follow has no delay, even if the rotation has one."""
    t = np.arange(750) * 0.008
    attained = circle(t - 0.02)
    attained[:, :3] = np.random.default_rng(0).normal(0.0, 0.05, (len(t), 3))

    summary = tracking_summary(t, circle, circle(t), circle(t - 0.02), circle(t - 0.02), attained)

    assert (summary["delay_of"], summary["delay_s"], summary["plant_delay_s"]) == (
        "position",
        None,
        None,
    )
    assert summary["rotation_delay_s"] == pytest.approx(0.02, abs=3e-5)

    rest = summary["delay_compensated"]
    error = summary["tracking_error"]

    assert rest["position_m"] == error["position_m"]
    assert rest["rotation_rad"]["max"] < 1e-6 < error["rotation_rad"]["max"]
    assert rotation_delay_differs(summary)


def test_pure_rotation_has_its_rotations_delay() -> None:
    """A motion that only rotates has the delay of its rotation."""
    t = np.arange(1000) * 0.008

    def rocking(at: Array) -> Array:
        poses = circle(at)
        poses[:, :3] = 0.5
        return poses

    late = rocking(t - 0.03)
    summary = tracking_summary(t, rocking, rocking(t), rocking(t), rocking(t), late)
    delays = [summary[key] for key in ("delay_s", "rotation_delay_s", "plant_delay_s")]
    assert delays == pytest.approx([0.03] * 3, abs=3e-5)
    assert summary["delay_of"] == "rotation" and not rotation_delay_differs(summary)
    assert set(part_delays(summary, "position")) == {None}


def test_a_useless_shift_is_a_zero_delay() -> None:
    """If no shift reduces the error, the delay is 0 and the error stays."""
    # At rest except for a dash and back; the arm dashes farther: a shift in either direction
    # increases the error.
    t = np.arange(1000) * 0.008

    def dash(at: Array) -> Array:
        poses = np.tile([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], (len(at), 1))
        poses[:, 0] = 0.1 * np.exp(-(((at - 4.0) / 0.5) ** 2))
        return poses

    attained = dash(t)
    attained[:, 0] *= 1.01
    summary = tracking_summary(t, dash, dash(t), dash(t), dash(t), attained)
    assert summary["delay_s"] == 0.0
    assert summary["delay_compensated"] == summary["tracking_error"]


def test_the_errors_are_those_of_the_error_budget() -> None:
    t = np.arange(200) * 0.008
    sequences = [circle(t - late) for late in (0.001, 0.003, 0.007, 0.015)]
    summary = tracking_summary(t, circle, *sequences)

    budget = budget_of(circle(t), *sequences)

    for key in ERRORS:
        assert summary[key] == getattr(budget, key.removesuffix("_error")).statistics()


def test_a_resting_run_has_no_delays() -> None:
    """A run at rest has errors, but no delays."""
    t = np.arange(500) * 0.008
    still = np.tile(circle(t[:1]), (500, 1))
    low = still - np.array([0.0, 0.0, 0.002, 0.0, 0.0, 0.0, 0.0])

    summary = tracking_summary(t, lambda at: still[: len(at)], still, still, still, low)

    assert summary["plant_error"]["position_m"]["rms"] == pytest.approx(0.002)
    assert [
        summary[key] for key in ("delay_s", "solver_delay_s", "plant_delay_s", "delay_compensated")
    ] == [None] * 4


def test_a_stuck_arm_has_no_delay() -> None:
    """An arm that does not follow has no delay, even if the solver has one."""
    t = np.arange(1000) * 0.008
    setpoint = circle(t - 0.02)
    stuck = np.tile(setpoint[:1], (1000, 1))

    summary = tracking_summary(t, circle, circle(t), setpoint, setpoint, stuck)

    assert summary["solver_delay_s"] == pytest.approx(0.02, abs=3e-5)
    assert (summary["plant_delay_s"], summary["delay_s"], summary["delay_compensated"]) == (
        None,
        None,
        None,
    )


def test_a_single_sample_has_no_delays() -> None:
    """A run of one sample has errors, but no delays."""
    t = np.array([0.0])
    summary = tracking_summary(t, circle, circle(t), circle(t), circle(t), circle(t + 0.1))

    assert summary["tracking_error"]["position_m"]["rms"] > 0.0
    assert summary["delay_s"] is None


def test_a_run_without_samples_is_refused() -> None:
    nothing = np.empty((0, 7))

    with pytest.raises(UnusableSamples, match="times"):
        tracking_summary(np.empty(0), circle, nothing, nothing, nothing, nothing)


def test_a_part_is_its_poses_difference() -> None:
    x = np.array([0.0, 1.0, 3.0, 7.0, 15.0])
    sequences = [np.hstack([[[-value, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]]]) for value in x]
    budget = budget_of(*sequences)
    lines = (budget.sampling, budget.solver, budget.limiter, budget.plant, budget.tracking)

    assert [line.translation[0, 0] for line in lines] == [1.0, 2.0, 4.0, 8.0, 15.0]


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 20),
    spread=st.sampled_from([1e-6, 1e-2, 1.0, 3.0]),
)
def test_the_parts_of_a_budget_add_up(seed: int, count: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    reference = random_poses(seed, count)
    sequences = [reference]
    for _ in range(4):
        moved = turned(sequences[-1], rng.uniform(-spread, spread, (count, 3)))
        moved[:, :3] += rng.uniform(-spread, spread, (count, 3))
        sequences.append(moved)
    budget = budget_of(*sequences)
    parts = (budget.sampling, budget.solver, budget.limiter, budget.plant)

    np.testing.assert_allclose(
        sum(part.translation for part in parts), budget.tracking.translation, atol=1e-12
    )

    composed = np.tile(np.eye(3), (count, 1, 1))
    for part in parts:
        composed = composed @ rotation_matrices(part.rotation)

    np.testing.assert_allclose(composed, rotation_matrices(budget.tracking.rotation), atol=1e-12)


def test_unequal_lengths_are_named() -> None:
    poses = random_poses(7, 5)

    with pytest.raises(UnusableSamples, match=r"setpoint poses.*\(1, 7\).*\(5, 7\)") as caught:
        error_budget(poses, poses, poses, setpoint=poses[:1], attained=poses)
    assert caught.value.name == "setpoint poses"
    assert isinstance(caught.value, SimbridgeError)
    assert isinstance(caught.value, ValueError)


def test_a_non_finite_sample_is_named() -> None:
    poses = random_poses(8, 5)
    gap = poses.copy()
    gap[3, 2] = math.nan

    with pytest.raises(UnusableSamples, match=r"attained poses.*sample 3 is not finite") as caught:
        error_budget(poses, poses, poses, setpoint=poses, attained=gap)
    assert caught.value.index == 3
