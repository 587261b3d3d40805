"""Paths agree with their closed forms and are parametrised by arc length."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter
from simbridge.trajectory import ConstantSpeed, paths, square, trace

CENTRE = (0.7, 0.1, 0.3)


def ellipse_perimeter(a: float, b: float) -> float:
    """By the arithmetic-geometric mean (Gauss), which is independent of quadrature."""
    x = a
    y = b
    total = a * a
    weight = 0.5
    # Quadratic: after six steps only rounding is left.
    for _ in range(6):
        total -= weight * (x * x - y * y)
        x, y, weight = 0.5 * (x + y), math.sqrt(x * y), 2.0 * weight
    return 2.0 * math.pi * total / x


PATHS = {
    "line": paths.line((0.0, 0.0, 0.0), (0.3, 0.4, 0.0)),
    "corner": paths.polyline([(0, 0, 0), (0.3, 0, 0), (0.3, 0.4, 0)]),
    "circle": paths.circle(0.15, CENTRE),
    "tilted circle": paths.circle(0.15, CENTRE, normal=(1.0, 2.0, 3.0)),
    "helix": paths.helix(0.1, CENTRE, pitch=0.05, turns=2.5),
    "rounded square": paths.rounded_square(0.4, CENTRE, 0.05),
    "figure eight": paths.figure_eight(0.4, 0.2, CENTRE),
    "lissajous": paths.lissajous((0.2, 0.15, 0.05), (3, 2, 1), (0.5 * math.pi, 0.0, 0.0), CENTRE),
}


@pytest.mark.parametrize("name", PATHS)
def test_every_path_has_unit_speed(name: str) -> None:
    path = PATHS[name]
    inside = (np.arange(400) + 0.37) / 400 * path.length
    step = 1e-6
    slope = (path.position(inside + step) - path.position(inside - step)) / (2.0 * step)

    np.testing.assert_allclose(np.linalg.norm(slope, axis=1), 1.0, atol=1e-7)
    np.testing.assert_allclose(path.tangent(inside), slope, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in PATHS if PATHS[name].closed])
def test_a_closed_path_ends_at_its_start(name: str) -> None:
    path = PATHS[name]
    ends = np.array([0.0, path.length])

    np.testing.assert_allclose(*path.position(ends), atol=1e-12)
    np.testing.assert_allclose(*path.tangent(ends), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("line", 0.5),
        ("corner", 0.7),
        ("circle", 2.0 * math.pi * 0.15),
        ("helix", 2.5 * math.hypot(2.0 * math.pi * 0.1, 0.05)),
        ("rounded square", 4 * 0.3 + 2.0 * math.pi * 0.05),
    ],
)
def test_lengths_are_those_of_the_closed_forms(name: str, length: float) -> None:
    assert PATHS[name].length == pytest.approx(length, rel=1e-14)


@pytest.mark.slow
@given(a=st.floats(0.05, 1.0), ratio=st.floats(0.2, 1.0))
def test_an_ellipse_has_the_perimeter_of_gauss(a: float, ratio: float) -> None:
    path = paths.lissajous(
        (a, ratio * a, 0.0), (1, 1, 1), (0.5 * math.pi, 0.0, 0.0), (0.0, 0.0, 0.0)
    )

    assert path.length == pytest.approx(ellipse_perimeter(a, ratio * a), rel=1e-12)


def test_a_figure_eight_is_geronos_lemniscate() -> None:
    path = PATHS["figure eight"]

    np.testing.assert_allclose(path.position(np.array([0.5 * path.length]))[0], CENTRE, atol=1e-12)

    x, y, z = (path.position(np.linspace(0.0, path.length, 999)) - CENTRE).T
    u = x / 0.2

    np.testing.assert_allclose((y / 0.1) ** 2, 4.0 * u**2 * (1.0 - u**2), atol=1e-12)
    np.testing.assert_array_equal(z, 0.0)


def test_a_circle_turns_counter_clockwise_about_its_normal() -> None:
    path = paths.circle(0.1, (0.0, 0.0, 0.0), start=(1.0, 0.0, 0.0))
    quarter = path.position(np.array([0.25 * path.length]))[0]

    np.testing.assert_allclose(quarter, [0.0, 0.1, 0.0], atol=1e-15)


def test_a_helix_rises_by_its_pitch_each_turn() -> None:
    path = PATHS["helix"]

    turns = path.position(np.arange(3) * path.length / 2.5)

    np.testing.assert_allclose(np.diff(turns, axis=0), [[0.0, 0.0, 0.05]] * 2, atol=1e-13)


@pytest.mark.slow
@given(side=st.floats(0.05, 1.0), share=st.floats(0.01, 0.5))
def test_a_rounded_square_keeps_edges_and_radius(side: float, share: float) -> None:
    radius = share * side
    path = paths.rounded_square(side, (0.0, 0.0, 0.0), radius)
    x, y, _ = path.position(np.linspace(0.0, path.length, 501)).T
    inner = 0.5 * side - radius

    beyond = np.hypot(np.maximum(np.abs(x) - inner, 0.0), np.maximum(np.abs(y) - inner, 0.0))

    np.testing.assert_allclose(beyond, radius, atol=1e-12)


def test_a_rounded_square_never_turns_sharply() -> None:
    rounded = square(corner_radius=0.05, laps=2)
    steps = np.diff(rounded.poses[:, :3], axis=0)[:-1]

    assert rounded.duration == pytest.approx(2 * (4 * 0.3 + 2.0 * math.pi * 0.05) / 0.2)
    np.testing.assert_allclose(np.linalg.norm(steps, axis=1), 0.002, rtol=1e-3)

    directions = steps / np.linalg.norm(steps, axis=1, keepdims=True)

    # 2 mm on a radius of 50 mm are 0.04 rad.
    assert np.arccos(np.clip(np.sum(directions[1:] * directions[:-1], axis=1), -1, 1)).max() < 0.041


def test_laps_repeat_bit_for_bit() -> None:
    twice = trace(PATHS["circle"], ConstantSpeed(0.2), laps=2)

    np.testing.assert_array_equal(twice.poses[0], twice.poses[-1])
    assert twice.duration == pytest.approx(2 * PATHS["circle"].length / 0.2)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: paths.line((0, 0, 0), (0, 0, 0)), "points"),
        (lambda: paths.polyline([(0, 0, 0)]), "points"),
        (lambda: paths.line((0, 0, math.nan), (1, 0, 0)), "points"),
        (lambda: paths.circle(-0.1, CENTRE), "radius"),
        (lambda: paths.circle(0.1, CENTRE, normal=(0, 0, 0)), "normal"),
        (lambda: paths.circle(0.1, CENTRE, start=(0, 0, 2)), "start"),
        (lambda: paths.helix(0.1, CENTRE, pitch=math.inf), "pitch"),
        (lambda: paths.rounded_square(0.4, CENTRE, 0.21), "radius"),
        (lambda: paths.lissajous((0.1, 0.1, 0.0), (1, 1.5, 1), (0, 0, 0), CENTRE), "frequencies"),
        # A straight line there and back comes to a stop at its ends.
        (lambda: paths.lissajous((0.1, 0.1, 0.0), (1, 1, 1), (0, 0, 0), CENTRE), "curve"),
        (lambda: trace(PATHS["line"], ConstantSpeed(0.1), laps=2), "laps"),
        (lambda: trace(PATHS["line"], ConstantSpeed(0.1), rate=0.0), "rate"),
        (lambda: square(corner_radius=-0.1), "corner radius"),
    ],
)
def test_an_invalid_path_names_its_parameter(make, word: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        make()

    assert caught.value.name == word
