"""ISO 9283-style figures: exact on cycles made with a known bias and spread."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.metrics import iso9283
from simbridge.evaluation.metrics.iso9283 import (
    corner_figures,
    figure,
    path_figures,
    plane_crossings,
    pose_figures,
    stabilisation_figures,
    velocity_figures,
)

Array = NDArray[Any]

BIAS = np.array([3e-4, -4e-4, 1.2e-3])


def on_axes(radii: list[float]) -> Array:
    """Return cycles (2 k, 3) around the origin, at each radius one either way.

    Their mean is the origin.
    """
    axes = np.eye(3)[np.arange(len(radii)) % 3]
    points = np.array(radii)[:, None] * axes
    return np.concatenate([points, -points])


def repeatability(lengths: list[float]) -> float:
    return float(np.mean(lengths) + 3.0 * np.std(lengths, ddof=1))


def test_pose_figures_are_bias_and_spread() -> None:
    """Accuracy is the bias of the cycles, and repeatability is their spread."""
    radii = [1e-4, 2e-4, 3e-4]
    commanded = np.array([0.7, 0.1, 0.4])

    accuracy, spread = pose_figures(commanded, commanded + BIAS + on_axes(radii))

    assert accuracy == figure("AP", pytest.approx(1.3e-3), "m", cycles=6, asked=30)
    assert spread == figure("RP", pytest.approx(repeatability(radii * 2)), "m", cycles=6, asked=30)


def test_equal_distances_are_the_repeatability() -> None:
    """Cycles equally far from their mean have that distance as repeatability."""
    _, spread = pose_figures([0.0, 0.0, 0.0], on_axes([2e-4] * 15))

    assert (spread["value"], spread["cycles"]) == (pytest.approx(2e-4), 30)


def test_one_cycle_has_no_repeatability() -> None:
    accuracy, spread = pose_figures([0.0, 0.0, 0.0], [BIAS])

    assert (accuracy["value"], spread["value"]) == (pytest.approx(1.3e-3), None)

    points = np.zeros((2, 3))

    assert path_figures(points, points[None])[1]["value"] is None
    assert velocity_figures(0.2, [[0.2, 0.2]])[1]["value"] is None


def test_path_figures_are_the_largest() -> None:
    """Accuracy is the largest bias along the path, and repeatability is the largest spread."""
    points = np.stack([np.linspace(0.0, 0.2, 5), np.zeros(5), np.zeros(5)], axis=1)
    sideways = on_axes([1e-4, 1e-4, 1e-4]) * [0.0, 1.0, 1.0]
    scale = np.array([1.0, 2.0, 5.0, 2.0, 1.0])
    bias = np.array([1e-4, 7e-4, 2e-4, 1e-4, 0.0])[:, None] * [0.0, 0.6, 0.8]
    cycles = points + bias + scale[:, None] * sideways[:, None]
    accuracy, spread = path_figures(points, cycles)

    lengths = (5.0 * np.linalg.norm(sideways, axis=1)).tolist()

    assert accuracy == figure("AT", pytest.approx(7e-4), "m", cycles=6, asked=10)
    assert spread == figure("RT", pytest.approx(repeatability(lengths)), "m", cycles=6, asked=10)


def test_a_plane_that_is_missed_is_omitted() -> None:
    """A plane that one cycle does not cross is left out of the figures."""
    points = np.zeros((2, 3))
    cycles = np.zeros((2, 2, 3))
    cycles[:, 0, 1] = 1e-3
    cycles[1, 1] = math.nan

    assert path_figures(points, cycles)[0]["value"] == pytest.approx(1e-3)
    with pytest.raises(UnusableSamples, match="no plane"):
        path_figures(points, np.full((2, 2, 3), math.nan))


def test_a_late_motion_crosses_at_its_points() -> None:
    """A late and uneven motion crosses the planes at the points of its path."""
    t = np.arange(0.0, 3.0, 0.01)
    attained = np.stack([0.1 * (t - 0.0437), 1e-3 * np.sin(t), 0.0 * t], axis=1)
    points = np.stack([np.linspace(0.05, 0.2, 7), np.zeros(7), np.zeros(7)], axis=1)

    crossings = plane_crossings(
        points, np.tile([1.0, 0.0, 0.0], (7, 1)), points[:, 0] / 0.1, times=t, attained=attained
    )

    np.testing.assert_allclose(crossings[:, 0], points[:, 0], atol=1e-15)
    np.testing.assert_allclose(
        crossings[:, 1], 1e-3 * np.sin(points[:, 0] / 0.1 + 0.0437), atol=2e-8
    )


def test_the_crossing_nearest_its_time_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of several forward crossings, the one closest to its expected time counts."""
    # Laps of a circle go through the plane x = 0 forwards at the bottom, backwards at the top.
    t = np.arange(0.0, 20.0, 0.01)
    laps = np.stack([np.sin(t), -np.cos(t), 0.01 * t], axis=1)
    due = [2.0 * math.pi + 0.2, 4.0 * math.pi - 0.2]

    crossings = plane_crossings(
        np.zeros((2, 3)), [[1.0, 0.0, 0.0]] * 2, due, times=t, attained=laps
    )

    np.testing.assert_allclose(crossings[:, 1], -1.0, atol=1e-4)
    np.testing.assert_allclose(crossings[:, 2], [0.02 * math.pi, 0.04 * math.pi], atol=1e-4)

    monkeypatch.setattr(iso9283, "WINDOW", 0.3)
    missing = plane_crossings(
        np.zeros((1, 3)), [[1.0, 0.0, 0.0]], [math.pi], times=t, attained=laps
    )

    assert np.isnan(missing).all()


def test_velocity_figures_are_those_of_known_speeds() -> None:
    accuracy, repeat, fluctuation = velocity_figures(0.2, [[0.19, 0.21], [0.2, 0.22], [0.21, 0.21]])

    # Cycle means 0.20, 0.21, 0.21.
    assert accuracy == figure(
        "AV", pytest.approx(100.0 * (0.62 / 3.0 - 0.2) / 0.2), "%", cycles=3, asked=10
    )
    assert repeat == figure(
        "RV",
        pytest.approx(300.0 * np.std([0.20, 0.21, 0.21], ddof=1) / 0.2),
        "%",
        cycles=3,
        asked=10,
    )
    assert fluctuation == figure("FV", pytest.approx(0.02), "m/s", cycles=3, asked=10)


def ringing(first: float, beyond: float, last: float) -> tuple[Array, Array]:
    """Return a motion along x, from 10 mm at 10 mm/s.

    It leaves a band of 1 mm at `first`, goes as far as `beyond`, and is back at `last`.
    """
    peak = 0.5 * (first + last)
    times = np.array([0.0, 1.0, first, peak, last, last + 1.0])
    x = np.interp(times, times, [1e-2, 0.0, -1e-3, -beyond, -1e-3, 0.0])
    grid = np.unique(np.concatenate([np.linspace(0.0, last + 1.0, 777), times]))
    return grid, np.stack([np.interp(grid, times, x), 0.0 * grid, 0.0 * grid], axis=1)


def test_stabilisation_lasts_to_the_last_entry() -> None:
    """Stabilisation lasts from the first entry into the band to the last."""
    # The band is entered at 0.9 s.
    lasting, overshoot = stabilisation_figures(
        [ringing(1.2, 3e-3, 1.6), ringing(1.2, 2e-3, 1.8)], 1e-3
    )

    assert lasting == figure(
        "stabilisation time", pytest.approx(0.5 * (0.7 + 0.9)), "s", cycles=2, asked=3
    )
    assert overshoot == figure("OV", pytest.approx(3e-3), "m", cycles=2, asked=3)


def test_a_direct_arrival_has_no_overshoot() -> None:
    """A band that is not left again has a stabilisation time and an overshoot of 0."""
    t = np.linspace(0.0, 1.0, 101)
    approach = np.stack([1e-2 * (1.0 - t), 0.0 * t, 0.0 * t], axis=1)

    lasting, overshoot = stabilisation_figures([(t, approach)], 1e-3)

    assert (lasting["value"], overshoot["value"]) == (0.0, 0.0)


def test_inside_the_band_the_first_stamp_counts() -> None:
    """If the cycle starts inside the band, the time counts from the first stamp."""
    t = np.array([2.0, 3.0, 4.0, 5.0])
    x = np.array([[0.0, 0, 0], [2e-3, 0, 0], [0.0, 0, 0], [0.0, 0, 0]])

    lasting, overshoot = stabilisation_figures([(t, x)], 1e-3)

    assert (lasting["value"], overshoot["value"]) == (pytest.approx(1.5), pytest.approx(2e-3))


def test_stabilisation_ends_around_the_given_pose() -> None:
    """The pose need not be a sample, but each cycle must end in the band around it."""
    cycles = [ringing(1.2, 3e-3, 1.6)]
    mean = [[2e-4, 0.0, 0.0]]

    lasting, overshoot = stabilisation_figures(cycles, 1e-3, mean)

    assert overshoot["value"] == pytest.approx(3.2e-3)
    # The band reaches from -0.8 to 1.2 mm: entered at 0.88 s; left for the last time between 1.6
    # and 2.6 s, at -0.8 mm.
    assert lasting["value"] == pytest.approx(1.6 + 0.2 - 0.88)
    with pytest.raises(UnusableSamples, match="cycle 1 ends 2 mm from its pose"):
        stabilisation_figures(cycles, 1e-3, [[2e-3, 0.0, 0.0]])


def test_a_rounded_corner_has_its_arcs_error() -> None:
    """The round-off error is that of the arc, and there is no overshoot."""
    # An arc of 10 mm radius in the corner at the origin, from leg 1 (along x) to leg 2 (along y).
    angle = np.linspace(-0.5 * math.pi, 0.0, 4001)
    arc = 0.01 * np.stack([np.cos(angle) - 1.0, np.sin(angle) + 1.0, 0.0 * angle], axis=1)
    path = np.concatenate([[[-0.1, 0.0, 0.0]], arc, [[0.0, 0.1, 0.0]]])

    cut, beyond = corner_figures([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [path])

    assert cut == figure(
        "CR", pytest.approx(0.01 * (math.sqrt(2.0) - 1.0), rel=1e-6), "m", cycles=1, asked=3
    )
    assert beyond == figure("CO", pytest.approx(0.0, abs=1e-12), "m", cycles=1, asked=3)


def test_a_corners_overshoot_is_beyond_its_leg() -> None:
    """The overshoot is the largest deviation beyond the second leg."""
    far = [
        np.array([[-0.1, 0, 0], [x, 0.0, 0], [0.0, 0.03, 0], [-5e-3, 0.06, 0]])
        for x in (2e-3, 4e-3)
    ]
    cut, beyond = corner_figures([0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.5, 0.0], far)

    assert cut["value"] == pytest.approx(0.0, abs=1e-15)
    assert beyond["value"] == pytest.approx(3e-3)


def test_a_corner_is_nearest_between_samples() -> None:
    """The point nearest to a corner may lie between two samples."""
    cut, _ = corner_figures(
        [0.0, 0.0, 0.0], [1, 0, 0], [0, 1, 0], [[[-0.02, 0.0, 0.0], [0.0, 0.02, 0.0]]]
    )

    assert cut["value"] == pytest.approx(0.02 / math.sqrt(2.0))


def test_no_cycles_and_impossible_settings_are_refused() -> None:
    with pytest.raises(UnusableSamples, match="cycles"):
        pose_figures([0.0, 0.0, 0.0], np.empty((0, 3)))
    with pytest.raises(UnusableSamples, match="cycles"):
        velocity_figures(0.2, [])
    with pytest.raises(UnusableSamples, match="cycles"):
        velocity_figures(0.2, [[0.2], []])
    with pytest.raises(UnusableSamples, match="cycles"):
        stabilisation_figures([], 1e-3)
    with pytest.raises(UnusableSamples, match="attained paths"):
        path_figures(np.zeros((3, 3)), np.zeros((2, 4, 3)))
    with pytest.raises(InvalidParameter, match="commanded speed"):
        velocity_figures(0.0, [[0.2]])
    with pytest.raises(InvalidParameter, match="limit band"):
        stabilisation_figures([ringing(1.2, 3e-3, 1.6)], 0.0)
