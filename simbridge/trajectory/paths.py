"""Curves in space as functions of arc length, without timing, and the checks of their and of others' parameters.

`trace` combines a path with a motion law and an orientation. Curves whose length has a closed form use it; the others
(figure eight, Lissajous, or a custom curve through `along`) are measured by Gauss-Legendre quadrature, to about 1e-12
of their length. Every function raises InvalidParameter for a parameter out of its range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

Curve = Callable[[Array], Array]

# Number of pieces in which a curve without a closed form is measured, and abscissae in each.
_PIECES = 512
_ABSCISSAE, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def check_positive(**parameters: float) -> None:
    for name, value in parameters.items():
        if not (math.isfinite(value) and value > 0.0):
            raise InvalidParameter(name.replace("_", " "), value, "a positive number")


def check_not_negative(**parameters: float) -> None:
    for name, value in parameters.items():
        if not (math.isfinite(value) and value >= 0.0):
            raise InvalidParameter(name.replace("_", " "), value, "zero or a positive number")


def check_laps(laps: int) -> None:
    if not isinstance(laps, (int, np.integer)) or laps < 1:
        raise InvalidParameter("laps", laps, "a whole number, 1 or more")


def vector(name: str, values: ArrayLike, length: int) -> Array:
    """The values as an array (length,), checked to be finite numbers."""
    array = np.array(values, dtype=float)
    if array.shape != (length,) or not np.isfinite(array).all():
        raise InvalidParameter(name, values, f"{length} finite numbers")
    return array


def direction(name: str, values: ArrayLike) -> Array:
    """The unit vector (3,) along three values, not all of them zero."""
    array = vector(name, values, 3)
    length = float(np.linalg.norm(array))
    if length == 0.0:
        raise InvalidParameter(name, values, "a vector other than zero")
    return array / length


@dataclass(frozen=True)
class Path:
    """A curve given by its arc length.

    Attributes:
        length: From its start to its end, m.
        position: Positions (K, 3) in m, from base_link, at arc lengths (K,) in m, from 0 to `length`.
        tangent: Unit tangents (K, 3) there; at a corner, the direction after it.
        corners: Arc lengths (C,) at which the direction jumps, without the ends.
        closed: Whether it ends at its start, so that it can be repeated.
    """

    length: float
    position: Curve
    tangent: Curve
    corners: tuple[float, ...] = ()
    closed: bool = False


def line(start: ArrayLike, end: ArrayLike) -> Path:
    """The straight line between two different points (3,) in m."""
    return polyline([start, end])  # type: ignore[list-item]


def polyline(points: Sequence[ArrayLike], *, closed: bool = False) -> Path:
    """Straight lines through two or more points (P, 3) in m, no two equal in a row; back to the first if closed."""
    vertices = np.array(points, dtype=float)
    if (
        vertices.ndim != 2
        or vertices.shape[1] != 3
        or len(vertices) < 2
        or not np.isfinite(vertices).all()
    ):
        raise InvalidParameter("points", points, "two points or more, of three finite numbers each")
    if closed:
        vertices = np.concatenate([vertices, vertices[:1]])
    legs = np.diff(vertices, axis=0)
    lengths = np.linalg.norm(legs, axis=1)
    if not lengths.all():
        raise InvalidParameter("points", points, "each different from the one before")
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    directions = legs / lengths[:, None]

    def leg(travelled: Array) -> Array:
        return np.clip(np.searchsorted(ends, travelled, side="right") - 1, 0, len(legs) - 1)

    def position(travelled: Array) -> Array:
        return np.stack([np.interp(travelled, ends, axis) for axis in vertices.T], axis=1)

    return Path(
        float(ends[-1]), position, lambda s: directions[leg(s)], tuple(ends[1:-1].tolist()), closed
    )


def circle(
    radius: float,
    centre: ArrayLike,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    start: ArrayLike = (-1.0, 0.0, 0.0),
) -> Path:
    """A circle around a centre (3,) in base_link, m, counter-clockwise seen from where the normal (3,) points.

    It begins in the direction `start` (3,) from the centre, which is projected onto the plane.
    """
    check_positive(radius=radius)
    return _arc_about(vector("centre", centre, 3), radius, normal, start, 2.0 * math.pi, 0.0)


def helix(
    radius: float,
    centre: ArrayLike,
    pitch: float,
    turns: float = 3.0,
    axis: ArrayLike = (0.0, 0.0, 1.0),
    start: ArrayLike = (-1.0, 0.0, 0.0),
) -> Path:
    """A helix of constant radius that rises along its axis (3,) by `pitch` m a turn; it descends if that is negative.

    It begins in the plane of `centre` (3,), in base_link, m, in the direction `start` (3,) from there, which is
    projected onto the plane. The turns need not be whole.
    """
    check_positive(radius=radius, turns=turns)
    if not math.isfinite(pitch):
        raise InvalidParameter("pitch", pitch, "a finite number")
    return _arc_about(
        vector("centre", centre, 3),
        radius,
        axis,
        start,
        2.0 * math.pi * turns,
        pitch / (2.0 * math.pi),
    )


def _arc_about(
    centre: Array, radius: float, normal: ArrayLike, start: ArrayLike, angle: float, rise: float
) -> Path:
    n = direction("normal", normal)
    u = direction("start", start)
    u = u - (u @ n) * n
    if np.linalg.norm(u) < 1e-9:
        raise InvalidParameter("start", start, "a direction that is not along the normal")
    u /= np.linalg.norm(u)
    v = np.cross(n, u)
    rate = math.hypot(radius, rise)

    def position(travelled: Array) -> Array:
        a = (travelled / rate)[:, None]
        return centre + radius * (np.cos(a) * u + np.sin(a) * v) + rise * a * n

    def tangent(travelled: Array) -> Array:
        a = (travelled / rate)[:, None]
        return (radius * (np.cos(a) * v - np.sin(a) * u) + rise * n) / rate

    return Path(angle * rate, position, tangent, closed=rise == 0.0)


def rounded_square(side: float, centre: ArrayLike, radius: float) -> Path:
    """A square in the xy plane with its corners rounded to quarter circles.

    It begins in the middle of the edge with the smallest y and runs along +x, +y, -x and -y.

    Args:
        side: Length of an edge of the square without rounding, m.
        centre: (3,) in base_link, m.
        radius: Of the corners, m; at most half a side, which gives a circle.
    """
    check_positive(side=side, radius=radius)
    if radius > 0.5 * side:
        raise InvalidParameter("radius", radius, f"at most half a side, {0.5 * side:g} m")
    middle = vector("centre", centre, 3)
    half, straight, arc = 0.5 * side, side - 2.0 * radius, 0.5 * math.pi * radius
    quarter = straight + arc

    def on_quarter(travelled: Array) -> tuple[Array, Array, Array, Array]:
        """Position and direction, along the edge and to the left, from the middle of the edge."""
        s = travelled % quarter
        angle = np.clip((s - 0.5 * straight) / radius, 0.0, 0.5 * math.pi)
        beyond = np.maximum(s - 0.5 * straight - arc, 0.0)
        along = np.minimum(s, 0.5 * straight) + radius * np.sin(angle)
        left = -half + radius * (1.0 - np.cos(angle)) + beyond
        return along, left, np.cos(angle), np.sin(angle)

    def turned(along: Array, left: Array, travelled: Array) -> Array:
        k = np.floor(travelled / quarter).astype(int) % 4
        cosine, sine = np.array([1.0, 0.0, -1.0, 0.0])[k], np.array([0.0, 1.0, 0.0, -1.0])[k]
        return np.stack(
            [cosine * along - sine * left, sine * along + cosine * left, np.zeros_like(along)],
            axis=1,
        )

    def position(travelled: Array) -> Array:
        along, left, _, _ = on_quarter(travelled)
        return middle + turned(along, left, travelled)

    def tangent(travelled: Array) -> Array:
        _, _, cosine, sine = on_quarter(travelled)
        return turned(cosine, sine, travelled)

    return Path(4.0 * quarter, position, tangent, closed=True)


def figure_eight(width: float, height: float, centre: ArrayLike) -> Path:
    """Gerono's lemniscate in the xy plane: x = width/2 sin u, y = height/2 sin 2u, from its crossing, the centre (3,).

    All are in m, the centre in base_link.
    """
    check_positive(width=width, height=height)
    return lissajous((0.5 * width, 0.5 * height, 0.0), (1, 2, 1), (0.0, 0.0, 0.0), centre)


def lissajous(
    amplitudes: ArrayLike, frequencies: Sequence[int], phases: ArrayLike, centre: ArrayLike
) -> Path:
    """A Lissajous curve: on each axis, amplitude * sin(frequency u + phase), for u from 0 to 2 pi.

    Args:
        amplitudes: (3,) in m; zero for no motion along an axis.
        frequencies: Three whole numbers, 1 or more, best without a common divisor.
        phases: (3,) in rad, for which the derivative is zero nowhere.
        centre: (3,) in m, from base_link.
    """
    a, phase = vector("amplitudes", amplitudes, 3), vector("phases", phases, 3)
    middle, f = vector("centre", centre, 3), vector("frequencies", frequencies, 3)
    if (f < 1.0).any() or (f != np.round(f)).any():
        raise InvalidParameter("frequencies", frequencies, "whole numbers, 1 or more")
    return along(
        lambda u: middle + a * np.sin(u[:, None] * f + phase),
        lambda u: a * f * np.cos(u[:, None] * f + phase),
        2.0 * math.pi,
        closed=True,
    )


def along(curve: Curve, derivative: Curve, end: float, *, closed: bool = False) -> Path:
    """A smooth curve of any parameter u from 0 to `end`, reparametrised by arc length.

    Args:
        curve: Positions (K, 3) in m at u (K,).
        derivative: Their derivatives (K, 3) by u, finite and nowhere zero.
        end: The last u.
        closed: Whether it ends at its start, in the same direction.
    """
    check_positive(end=end)
    nodes = np.linspace(0.0, end, _PIECES + 1)

    def rate(u: Array) -> Array:
        return np.linalg.norm(derivative(u), axis=1)

    def measured(begin: Array, until: Array) -> Array:
        """Arc lengths from each `begin` to each `until`, both on one piece."""
        half = 0.5 * (until - begin)
        at = (begin + half)[:, None] + half[:, None] * _ABSCISSAE
        return half * (rate(at.ravel()).reshape(at.shape) @ _WEIGHTS)

    speeds = rate(nodes)
    if not (np.isfinite(speeds).all() and speeds.min() > 1e-9 * speeds.max()):
        raise InvalidParameter(
            "curve", "given by a parameter", "finite, with a derivative that is nowhere zero"
        )
    ends = np.concatenate([[0.0], np.cumsum(measured(nodes[:-1], nodes[1:]))])

    def parameter(travelled: Array) -> Array:
        piece = np.clip(np.searchsorted(ends, travelled, side="right") - 1, 0, _PIECES - 1)
        begin = nodes[piece]
        u = np.interp(travelled, ends, nodes)
        # Newton's method: the derivative of the length by u is the rate. The first error is 1e-5; each step squares it.
        for _ in range(3):
            u = np.clip(u - (ends[piece] + measured(begin, u) - travelled) / rate(u), 0.0, end)
        return u

    def tangent(travelled: Array) -> Array:
        slope = derivative(parameter(travelled))
        return slope / np.linalg.norm(slope, axis=1, keepdims=True)

    return Path(float(ends[-1]), lambda s: curve(parameter(s)), tangent, closed=closed)
