"""Curves in space as functions of arc length, without timing.

`trace` combines a path with a motion law and an orientation. Curves whose length has a closed form
use it; the others (figure eight, Lissajous, or a custom curve through `along`) are measured by
Gauss-Legendre quadrature, to about 1e-12 of their length. Every function raises InvalidParameter
for a parameter out of its range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.trajectory.parameters import check_positive, direction, vector

# Vectors (K, 3) at parameters (K,).
Curve = Callable[[Array], Array]

# Pieces in which a curve without a closed form is measured.
PIECES = 512
# Gauss-Legendre quadrature on each piece.
ABSCISSAE, WEIGHTS = np.polynomial.legendre.leggauss(8)
# Newton's steps from an arc length to the curve's parameter. The first error is 1e-5, and each step
# squares it.
NEWTON_STEPS = 3
# Below this sine of their angle, the start of an arc is along its normal.
MIN_SINE = 1e-9


@dataclass(frozen=True)
class GeometricPath:
    """A curve given by its arc length.

    Attributes:
        length: Length from the start of the curve to its end, m.
        position: Positions (K, 3) in m, from base_link, at arc lengths (K,) in m, from 0 to
            `length`.
        tangent: Unit tangents (K, 3) there; at a corner, the direction after it.
        corners: Arc lengths (C,) at which the direction jumps, without the ends.
        closed: Whether it ends at its start, so that it can be repeated.
    """

    length: float
    position: Curve
    tangent: Curve
    corners: tuple[float, ...] = ()
    closed: bool = False


def line(start: ArrayLike, end: ArrayLike) -> GeometricPath:
    """Return the straight line between two different points (3,) in m."""
    return polyline([start, end])  # type: ignore[list-item]


def polyline(points: Sequence[ArrayLike], *, closed: bool = False) -> GeometricPath:
    """Return straight lines through two or more points (P, 3) in m, no two equal in a row.

    If `closed`, a last line leads back to the first point.
    """
    vertices = np.array(points, dtype=float)
    is_list_of_points = vertices.ndim == 2 and vertices.shape[1] == 3 and len(vertices) >= 2
    if not is_list_of_points or not np.isfinite(vertices).all():
        raise InvalidParameter("points", points, "two or more points, each of three finite numbers")
    if closed:
        vertices = np.concatenate([vertices, vertices[:1]])

    legs = np.diff(vertices, axis=0)
    leg_lengths = np.linalg.norm(legs, axis=1)
    if not leg_lengths.all():
        raise InvalidParameter("points", points, "a list without consecutive duplicates")
    leg_ends = np.concatenate([[0.0], np.cumsum(leg_lengths)])
    leg_directions = legs / leg_lengths[:, None]

    def position(travelled: Array) -> Array:
        return np.stack([np.interp(travelled, leg_ends, axis) for axis in vertices.T], axis=1)

    def tangent(travelled: Array) -> Array:
        leg = np.searchsorted(leg_ends, travelled, side="right") - 1
        return leg_directions[np.clip(leg, 0, len(legs) - 1)]

    return GeometricPath(
        length=float(leg_ends[-1]),
        position=position,
        tangent=tangent,
        corners=tuple(leg_ends[1:-1].tolist()),
        closed=closed,
    )


def circle(
    radius: float,
    centre: ArrayLike,
    normal: ArrayLike = (0.0, 0.0, 1.0),
    start: ArrayLike = (-1.0, 0.0, 0.0),
) -> GeometricPath:
    """Return a circle, counter-clockwise seen from where its normal points.

    Args:
        radius: Radius, m.
        centre: Centre of the circle (3,) in base_link, m.
        normal: Normal (3,) of its plane.
        start: The direction (3,) from the centre in which it begins, projected onto the plane.
    """
    check_positive(radius=radius)
    return _arc_about(
        vector("centre", centre, 3),
        radius,
        normal=normal,
        start=start,
        angle=2.0 * math.pi,
        rise=0.0,
    )


def helix(
    radius: float,
    centre: ArrayLike,
    pitch: float,
    turns: float = 3.0,
    axis: ArrayLike = (0.0, 0.0, 1.0),
    start: ArrayLike = (-1.0, 0.0, 0.0),
) -> GeometricPath:
    """Return a helix of constant radius.

    Args:
        radius: Radius, m.
        centre: A point (3,) on its axis in base_link, m, in the plane where it begins.
        pitch: Rise along the axis in a turn, m; the helix descends if it is negative.
        turns: Need not be whole.
        axis: Axis (3,).
        start: The direction (3,) from the centre in which it begins, projected onto the plane.
    """
    check_positive(radius=radius, turns=turns)
    if not math.isfinite(pitch):
        raise InvalidParameter("pitch", pitch, "a finite number")
    return _arc_about(
        vector("centre", centre, 3),
        radius,
        normal=axis,
        start=start,
        angle=2.0 * math.pi * turns,
        rise=pitch / (2.0 * math.pi),
    )


def _arc_about(
    centre: Array, radius: float, *, normal: ArrayLike, start: ArrayLike, angle: float, rise: float
) -> GeometricPath:
    """Return the arc about an axis, over an angle, rad, that rises along the axis, m/rad."""
    # Unit vectors: along the axis, and in the plane towards the start and at right angles to it.
    axis = direction("normal", normal)
    first = direction("start", start)
    first = first - (first @ axis) * axis
    if np.linalg.norm(first) < MIN_SINE:
        raise InvalidParameter("start", start, "a direction that is not parallel to the normal")
    first /= np.linalg.norm(first)
    second = np.cross(axis, first)

    # Arc length per angle, m/rad.
    rate = math.hypot(radius, rise)

    def position(travelled: Array) -> Array:
        turned = (travelled / rate)[:, None]
        in_plane = np.cos(turned) * first + np.sin(turned) * second
        return centre + radius * in_plane + rise * turned * axis

    def tangent(travelled: Array) -> Array:
        turned = (travelled / rate)[:, None]
        in_plane = np.cos(turned) * second - np.sin(turned) * first
        return (radius * in_plane + rise * axis) / rate

    return GeometricPath(angle * rate, position, tangent, closed=rise == 0.0)


def rounded_square(side: float, centre: ArrayLike, radius: float) -> GeometricPath:
    """Return a square in the xy plane with its corners rounded to quarter circles.

    It begins in the middle of the edge with the smallest y and runs along +x, +y, -x and -y.

    Args:
        side: Length of an edge of the square without rounding, m.
        centre: Centre of the square (3,) in base_link, m.
        radius: Radius of the corners, m; at most half a side, which gives a circle.
    """
    check_positive(side=side, radius=radius)
    if radius > 0.5 * side:
        raise InvalidParameter("radius", radius, f"at most half a side, {0.5 * side:g} m")
    middle = vector("centre", centre, 3)
    half_side = 0.5 * side
    # A quarter of the path: half an edge, a corner, and half of the next edge.
    straight = side - 2.0 * radius
    arc = 0.5 * math.pi * radius
    quarter = straight + arc

    def corner_angle(travelled: Array) -> Array:
        """Return how far the direction has turned in its quarter (K,), rad."""
        in_quarter = travelled % quarter
        return np.clip((in_quarter - 0.5 * straight) / radius, 0.0, 0.5 * math.pi)

    def rotate_quarter(forward: Array, leftward: Array, travelled: Array) -> Array:
        """Return vectors (K, 3) in base_link, of those along a quarter's edge and to its left."""
        number = np.floor(travelled / quarter).astype(int) % 4
        cosine = np.array([1.0, 0.0, -1.0, 0.0])[number]
        sine = np.array([0.0, 1.0, 0.0, -1.0])[number]
        x = cosine * forward - sine * leftward
        y = sine * forward + cosine * leftward
        return np.stack([x, y, np.zeros_like(forward)], axis=1)

    def position(travelled: Array) -> Array:
        in_quarter = travelled % quarter
        angle = corner_angle(travelled)
        beyond_corner = np.maximum(in_quarter - 0.5 * straight - arc, 0.0)
        forward = np.minimum(in_quarter, 0.5 * straight) + radius * np.sin(angle)
        leftward = -half_side + radius * (1.0 - np.cos(angle)) + beyond_corner
        return middle + rotate_quarter(forward, leftward, travelled)

    def tangent(travelled: Array) -> Array:
        angle = corner_angle(travelled)
        return rotate_quarter(np.cos(angle), np.sin(angle), travelled)

    return GeometricPath(4.0 * quarter, position, tangent, closed=True)


def figure_eight(width: float, height: float, centre: ArrayLike) -> GeometricPath:
    """Return Gerono's lemniscate in the xy plane: x = width/2 sin u, y = height/2 sin 2u.

    It begins at its crossing, the centre (3,) in base_link. All are in m.
    """
    check_positive(width=width, height=height)
    return lissajous((0.5 * width, 0.5 * height, 0.0), (1, 2, 1), (0.0, 0.0, 0.0), centre)


def lissajous(
    amplitudes: ArrayLike, frequencies: Sequence[int], phases: ArrayLike, centre: ArrayLike
) -> GeometricPath:
    """Return a Lissajous curve: on each axis, amplitude sin(frequency u + phase), u from 0 to 2 pi.

    Args:
        amplitudes: Amplitudes (3,) in m; zero for no motion along an axis.
        frequencies: Three whole numbers, 1 or more, best without a common divisor.
        phases: Phases (3,) in rad, for which the derivative is zero nowhere.
        centre: Centre (3,) in m, from base_link.
    """
    amplitude = vector("amplitudes", amplitudes, 3)
    phase = vector("phases", phases, 3)
    middle = vector("centre", centre, 3)
    frequency = vector("frequencies", frequencies, 3)
    if (frequency < 1.0).any() or (frequency != np.round(frequency)).any():
        raise InvalidParameter("frequencies", frequencies, "integers of 1 or more")

    def curve(u: Array) -> Array:
        return middle + amplitude * np.sin(u[:, None] * frequency + phase)

    def derivative(u: Array) -> Array:
        return amplitude * frequency * np.cos(u[:, None] * frequency + phase)

    return along(curve, derivative, 2.0 * math.pi, closed=True)


def along(curve: Curve, derivative: Curve, end: float, *, closed: bool = False) -> GeometricPath:
    """Return a smooth curve of any parameter u from 0 to `end`, reparametrised by arc length.

    Args:
        curve: Positions (K, 3) in m at u (K,).
        derivative: Derivatives of the positions (K, 3) by u, finite and nowhere zero.
        end: The last u.
        closed: Whether it ends at its start, in the same direction.
    """
    check_positive(end=end)
    nodes = np.linspace(0.0, end, PIECES + 1)

    def rate(u: Array) -> Array:
        """Return the arc length per u (K,), m."""
        return np.linalg.norm(derivative(u), axis=1)

    node_rates = rate(nodes)
    if not (np.isfinite(node_rates).all() and node_rates.min() > 1e-9 * node_rates.max()):
        raise InvalidParameter(
            "curve",
            "a curve that is not",
            "finite, with a derivative that is never zero",
        )

    def measure(begin: Array, until: Array) -> Array:
        """Return arc lengths (K,), m, from each `begin` to each `until`, both on one piece."""
        half = 0.5 * (until - begin)
        samples = (begin + half)[:, None] + half[:, None] * ABSCISSAE
        return half * (rate(samples.ravel()).reshape(samples.shape) @ WEIGHTS)

    lengths_to_nodes = np.concatenate([[0.0], np.cumsum(measure(nodes[:-1], nodes[1:]))])

    def parameter(travelled: Array) -> Array:
        """Return the curve's parameters (K,) at arc lengths (K,), m, by Newton's method."""
        piece = np.searchsorted(lengths_to_nodes, travelled, side="right") - 1
        piece = np.clip(piece, 0, PIECES - 1)
        begin = nodes[piece]

        u = np.interp(travelled, lengths_to_nodes, nodes)
        for _ in range(NEWTON_STEPS):
            excess = lengths_to_nodes[piece] + measure(begin, u) - travelled
            u = np.clip(u - excess / rate(u), 0.0, end)
        return u

    def position(travelled: Array) -> Array:
        return curve(parameter(travelled))

    def tangent(travelled: Array) -> Array:
        slope = derivative(parameter(travelled))
        return slope / np.linalg.norm(slope, axis=1, keepdims=True)

    return GeometricPath(float(lengths_to_nodes[-1]), position, tangent, closed=closed)
