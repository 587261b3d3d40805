"""Nearness to singular postures and to limits: a planar arm has closed forms, a UR10 its straight wrist and elbow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import simbridge
from simbridge.evaluation.metrics import dexterity, near_limits, near_singularity
from simbridge.robot.kinematics import task_jacobians

Array = NDArray[Any]


def planar(joints: Array) -> Array:
    """Two links of 1 m in the x-y plane; translation only, so that det J = sin(q2)."""
    jacobians = np.zeros((len(joints), 6, 2))
    first, both = joints[:, 0], joints.sum(axis=1)
    jacobians[:, 0, 1], jacobians[:, 1, 1] = -np.sin(both), np.cos(both)
    jacobians[:, 0, 0], jacobians[:, 1, 0] = -np.sin(first) - np.sin(both), np.cos(first) + np.cos(both)
    return jacobians


def ur10(joints: Array) -> Array:
    robot = simbridge.load_robot("ur10")
    return task_jacobians(robot.placements, robot.prismatic, joints, "pose")


def test_manipulability_of_a_planar_arm_is_the_sine_of_its_elbow() -> None:
    for elbow in (0.1, 1.0, 2.5):
        found = near_singularity([[0.3, elbow]], planar)
        assert found["manipulability"] == pytest.approx(abs(math.sin(elbow)))


def test_the_share_near_a_singularity_is_counted() -> None:
    # The smallest singular value falls with the elbow; it passes the threshold once on this sweep.
    elbows = np.linspace(0.0, 1.0, 1001)
    joints = np.column_stack([np.zeros(1001), elbows])
    least = np.linalg.svd(planar(joints), compute_uv=False)[:, -1]
    found = near_singularity(joints, planar, threshold=0.2)
    assert found["share"] == pytest.approx(np.count_nonzero(least < 0.2) / 1001)
    assert 0.0 < found["share"] < 1.0
    assert found["smallest_singular_value"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("joint", "near", "clear"), [(4, 0.2, 0.4), (2, 0.4, 0.5)])
def test_a_ur10_with_its_wrist_or_elbow_nearly_straight_is_near(joint: int, near: float, clear: float) -> None:
    home = simbridge.load_robot("ur10").home.copy()
    for value, share in ((near, 1.0), (clear, 0.0)):
        home[joint] = value
        assert near_singularity([home], ur10)["share"] == share


def test_a_long_recording_is_looked_at_in_evenly_spaced_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dexterity, "MAX_COMPARED", 100)
    monkeypatch.setattr(dexterity, "BLOCK", 30)
    joints = np.column_stack([np.zeros(1001), np.linspace(0.0, 1.0, 1001)])
    seen: list[int] = []

    def counted(q: Array) -> Array:
        seen.append(len(q))
        return planar(q)

    found = near_singularity(joints, counted, threshold=0.2)
    assert sum(seen) == 91 and max(seen) == 30
    assert found["share"] == pytest.approx(near_singularity(joints, planar, threshold=0.2)["share"], abs=0.02)


def test_near_an_end_of_its_range_a_joint_counts_and_an_endless_joint_never_does() -> None:
    q = np.array([[0.0, 0.0], [0.97, 0.0], [-0.97, 50.0], [0.95, 0.0]])
    still = np.zeros((4, 2))
    limits = {"position_min": [-1.0, -math.inf], "position_max": [1.0, math.inf], "max_velocity": [1.0, 1.0]}
    shares = near_limits(q, still, still, **limits, max_torque=[1.0, 1.0])
    assert shares == {"position": 0.5, "velocity": 0.0, "torque": 0.0}


def test_from_nine_tenths_of_a_limit_on_speed_and_torque_are_near() -> None:
    v = np.array([[0.0, 0.0], [-1.8, 0.0], [1.79, 0.0], [0.0, 0.5]])
    limits = {"position_min": [-9.0, -9.0], "position_max": [9.0, 9.0], "max_velocity": [2.0, 1.0]}
    shares = near_limits(0.0 * v, v, 10.0 * v, **limits, max_torque=[18.0, 100.0])
    assert (shares["velocity"], shares["torque"]) == (0.25, 0.5)
    torque = np.array([[20.0, 0.0], [math.nan, 0.0], [0.0, 0.0], [0.0, math.inf]])
    assert near_limits(0.0 * v, v, torque, **limits, max_torque=[18.0, 100.0])["torque"] == 0.5
    unknown = np.full_like(v, math.nan)
    assert near_limits(0.0 * v, v, unknown, **limits, max_torque=[18.0, 100.0])["torque"] is None
    assert near_limits(0.0 * v, v, None, **limits, max_torque=[18.0, 100.0])["torque"] is None
