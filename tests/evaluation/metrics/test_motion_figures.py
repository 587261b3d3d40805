"""Joint metrics in closed form; singularities of a planar arm and of a UR10; limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import simbridge
from simbridge.errors import UnusableSamples
from simbridge.evaluation.metrics import motion_figures as motion
from simbridge.evaluation.metrics.motion_figures import joint_effort, near_limits, near_singularity
from simbridge.evaluation.metrics.samples import derivatives, resample_uniform
from simbridge.robot.kinematics import task_jacobians

Array = NDArray[Any]


@pytest.mark.parametrize("period", [0.002, 0.008])
def test_a_quadratic_velocity_has_exact_derivatives(period: float) -> None:
    t = np.arange(200) * period
    v = np.stack([3.0 - 2.0 * t + 5.0 * t**2, 0.5 * t], axis=1)
    acceleration, jerk = derivatives(v, period)

    m = (len(t) - len(acceleration)) // 2

    np.testing.assert_allclose(acceleration[:, 0], -2.0 + 10.0 * t[m:-m], atol=1e-9)
    np.testing.assert_allclose(acceleration[:, 1], 0.5, atol=1e-10)
    np.testing.assert_allclose(jerk, np.tile([10.0, 0.0], (len(jerk), 1)), atol=1e-7)


def test_a_vibration_is_damped_as_documented() -> None:
    """A vibration keeps the documented part of its acceleration."""
    t = np.arange(5000) * 0.002
    for frequency in (1.0, 5.0, 10.0):
        omega = 2.0 * math.pi * frequency
        acceleration, _ = derivatives(np.sin(omega * t)[:, None] / omega, 0.002)
        assert acceleration.max() == pytest.approx(1.0 - (omega * 0.01) ** 2 / 10.0, abs=0.02)


def test_velocity_noise_is_attenuated() -> None:
    noise = 1e-3 * np.random.default_rng(0).standard_normal((20_000, 1))
    acceleration, _ = derivatives(noise, 0.002)

    # sigma / (dt sqrt(sum k^2)) over eleven samples; the plain central difference has
    # sigma / (dt sqrt(2)).
    assert acceleration.std() == pytest.approx(1e-3 / (0.002 * math.sqrt(110.0)), rel=0.03)


def test_a_swinging_joint_has_closed_forms() -> None:
    """Peak, RMS and used part of a swinging joint have closed forms."""
    t = np.arange(10_001) * 0.002
    v = 0.8 * np.sin(math.pi * t)

    effort = joint_effort(
        t,
        np.stack([v, 0.5 * v], axis=1),
        np.stack([10.0 * v, -20.0 * v], axis=1),
        max_velocity=[2.0, 1.0],
        max_acceleration=20.0,
        max_torque=[100.0, 20.0],
    )

    assert effort["velocity"]["peak"] == pytest.approx([0.8, 0.4])
    assert effort["velocity"]["rms"] == pytest.approx(
        [0.8 / math.sqrt(2.0), 0.4 / math.sqrt(2.0)], rel=1e-3
    )
    assert effort["velocity"]["used"] == pytest.approx(0.4)
    assert effort["acceleration"]["peak"] == pytest.approx([0.8 * math.pi, 0.4 * math.pi], rel=1e-3)
    assert effort["acceleration"]["limit"] == [20.0, 20.0]
    assert effort["jerk"]["peak"] == pytest.approx([0.8 * math.pi**2, 0.4 * math.pi**2], rel=1e-3)
    assert effort["jerk"]["limit"] is None
    assert effort["torque"]["peak"] == pytest.approx([8.0, 16.0])
    assert effort["torque"]["used"] == pytest.approx(0.8)


def test_unknown_quantities_are_none() -> None:
    """Without torques, or with few samples, the quantity is None."""
    effort = joint_effort([0.0, 0.002], [[0.1], [0.2]], None, max_velocity=[1.0])

    assert effort["velocity"]["peak"] == [0.2]
    assert (effort["acceleration"], effort["jerk"], effort["torque"]) == (None, None, None)
    assert joint_effort([0.0], [[0.1]], None, max_velocity=[1.0])["acceleration"] is None


def test_torques_that_are_not_finite_are_left_out() -> None:
    torque = np.array([[1.0], [np.nan], [3.0], [np.inf]])
    effort = joint_effort(
        np.arange(4.0), np.zeros((4, 1)), torque, max_velocity=[1.0], max_torque=[6.0]
    )

    assert effort["torque"] == {"peak": [3.0], "rms": [math.sqrt(5.0)], "limit": [6.0], "used": 0.5}

    nothing = joint_effort(
        np.arange(4.0), np.zeros((4, 1)), np.full((4, 1), np.nan), max_velocity=[1.0]
    )

    assert nothing["torque"] is None


def test_missing_samples_are_interpolated() -> None:
    t = np.delete(np.arange(100) * 0.002, [40, 41])
    period, even = resample_uniform(t, (3.0 * t)[:, None])

    assert (period, len(even)) == (pytest.approx(0.002), 100)
    np.testing.assert_allclose(even[:, 0], 3.0 * np.arange(100) * 0.002, atol=1e-12)


def test_unusable_input_is_named_in_the_error() -> None:
    with pytest.raises(UnusableSamples, match="joint torques"):
        joint_effort([0.0, 0.1], [[0.0], [0.0]], [[0.0]], max_velocity=[1.0])
    with pytest.raises(UnusableSamples, match="a rate needs two"):
        resample_uniform([0.0], [[1.0]])


def planar(joints: Array) -> Array:
    """Two links of 1 m in the x-y plane; translation only, so that det J = sin(q2)."""
    jacobians = np.zeros((len(joints), 6, 2))
    first = joints[:, 0]
    both = joints.sum(axis=1)
    jacobians[:, 0, 1] = -np.sin(both)
    jacobians[:, 1, 1] = np.cos(both)
    jacobians[:, 0, 0] = -np.sin(first) - np.sin(both)
    jacobians[:, 1, 0] = np.cos(first) + np.cos(both)
    return jacobians


def ur10(joints: Array) -> Array:
    robot = simbridge.load_robot("ur10")
    return task_jacobians(robot.placements, robot.prismatic, joints, "pose")


def test_planar_manipulability_is_the_elbows_sine() -> None:
    for elbow in (0.1, 1.0, 2.5):
        singularity = near_singularity([[0.3, elbow]], planar)
        assert singularity["manipulability"] == pytest.approx(abs(math.sin(elbow)))


def test_time_near_a_singularity_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(motion, "NEAR_SINGULAR", 0.2)
    # The smallest singular value falls with the elbow; it passes the threshold once on this sweep.
    elbows = np.linspace(0.0, 1.0, 1001)
    joints = np.column_stack([np.zeros(1001), elbows])
    least = np.linalg.svd(planar(joints), compute_uv=False)[:, -1]

    singularity = near_singularity(joints, planar)

    assert singularity["share"] == pytest.approx(np.count_nonzero(least < 0.2) / 1001)
    assert 0.0 < singularity["share"] < 1.0
    assert singularity["smallest_singular_value"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("joint", "near", "clear"), [(4, 0.2, 0.4), (2, 0.4, 0.5)])
def test_a_straight_ur10_is_singular(joint: int, near: float, clear: float) -> None:
    """A UR10 with a nearly straight wrist or elbow is near a singularity."""
    home = simbridge.load_robot("ur10").home.copy()
    for value, share in ((near, 1.0), (clear, 0.0)):
        home[joint] = value
        assert near_singularity([home], ur10)["share"] == share


def test_a_long_recording_is_thinned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A long recording is evaluated at evenly spaced samples."""
    monkeypatch.setattr(motion, "NEAR_SINGULAR", 0.2)
    monkeypatch.setattr(motion, "MAX_COMPARED", 100)
    monkeypatch.setattr(motion, "BLOCK", 30)
    joints = np.column_stack([np.zeros(1001), np.linspace(0.0, 1.0, 1001)])
    seen: list[int] = []

    def counted(q: Array) -> Array:
        seen.append(len(q))
        return planar(q)

    singularity = near_singularity(joints, counted)
    assert sum(seen) == 91 and max(seen) == 30
    assert singularity["share"] == pytest.approx(
        near_singularity(joints, planar)["share"], abs=0.02
    )


def test_only_a_bounded_joint_nears_its_limits() -> None:
    """A joint near an end of its range counts, and an endless joint never does."""
    q = np.array([[0.0, 0.0], [0.97, 0.0], [-0.97, 50.0], [0.95, 0.0]])
    still = np.zeros((4, 2))
    limits = {
        "position_min": [-1.0, -math.inf],
        "position_max": [1.0, math.inf],
        "max_velocity": [1.0, 1.0],
    }

    shares = near_limits(q, still, still, **limits, max_torque=[1.0, 1.0])

    assert shares == {"position": 0.5, "velocity": 0.0, "torque": 0.0}


def test_nine_tenths_are_near_a_limit() -> None:
    """Speed and torque are near a limit from nine tenths of it on."""
    v = np.array([[0.0, 0.0], [-1.8, 0.0], [1.79, 0.0], [0.0, 0.5]])
    limits = {"position_min": [-9.0, -9.0], "position_max": [9.0, 9.0], "max_velocity": [2.0, 1.0]}

    shares = near_limits(0.0 * v, v, 10.0 * v, **limits, max_torque=[18.0, 100.0])

    assert (shares["velocity"], shares["torque"]) == (0.25, 0.5)

    torque = np.array([[20.0, 0.0], [math.nan, 0.0], [0.0, 0.0], [0.0, math.inf]])

    assert near_limits(0.0 * v, v, torque, **limits, max_torque=[18.0, 100.0])["torque"] == 0.5

    unknown = np.full_like(v, math.nan)

    assert near_limits(0.0 * v, v, unknown, **limits, max_torque=[18.0, 100.0])["torque"] is None
    assert near_limits(0.0 * v, v, None, **limits, max_torque=[18.0, 100.0])["torque"] is None
