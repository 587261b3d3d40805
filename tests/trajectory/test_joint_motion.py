"""Joint positions between recorded samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.interpolate import CubicHermiteSpline

from simbridge.trajectory.joint_motion import interpolate_joints
from tests.properties import few_examples

STEPS = arrays(float, 9, elements=st.floats(1e-3, 1.0))
POSITIONS = arrays(float, (10, 3), elements=st.floats(-6.0, 6.0))


def instants_of(steps):
    return np.concatenate([[0.0], np.cumsum(steps)])


@few_examples(20)
@given(steps=STEPS, positions=POSITIONS)
def test_samples_are_met_bit_for_bit(steps, positions):
    times = instants_of(steps)

    assert np.array_equal(interpolate_joints(times, positions, times), positions)


@few_examples(20)
@given(steps=STEPS, positions=POSITIONS)
def test_it_is_a_cubic_hermite_spline(steps, positions):
    times = instants_of(steps)
    between = np.linspace(times[0], times[-1], 97)
    velocities = np.gradient(positions, times, axis=0, edge_order=2)

    joints = interpolate_joints(times, positions, between)

    expected = CubicHermiteSpline(times, positions, velocities)(between)
    assert joints == pytest.approx(expected, abs=1e-9 * (1.0 + np.abs(velocities).max()))


@few_examples(20)
@given(steps=STEPS)
def test_a_constant_velocity_stays_constant(steps):
    times = instants_of(steps)
    between = np.linspace(times[0], times[-1], 97)

    joints = interpolate_joints(times, times[:, None] * [1.0, -2.0], between)

    assert joints == pytest.approx(between[:, None] * [1.0, -2.0], abs=1e-12)


def test_outside_of_the_samples_it_rests():
    times = np.array([1.0, 2.0, 3.0])
    positions = np.array([[0.0], [1.0], [3.0]])

    joints = interpolate_joints(times, positions, [0.0, 4.0])

    assert joints.tolist() == [[0.0], [3.0]]


def test_a_single_sample_is_held():
    joints = interpolate_joints(np.zeros(1), np.array([[0.5, 1.0]]), [0.0, 0.1])

    assert joints.tolist() == [[0.5, 1.0], [0.5, 1.0]]


def test_two_samples_are_joined_evenly():
    joints = interpolate_joints(np.array([0.0, 1.0]), np.array([[0.0], [2.0]]), [0.25, 0.5])

    assert joints.ravel() == pytest.approx([0.5, 1.0])
