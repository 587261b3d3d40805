"""Convex hulls of points, by coal."""

from __future__ import annotations

import coal
import numpy as np

from simbridge.robot.pose import Array

# The least thickness of a hull, m.
MIN_THICKNESS = 1e-3


def convex_hull(vertices: Array) -> Array:
    """Return the corners (K, 3) of the convex hull of points (V, 3), m.

    A flat one is made so thick that it has an inside.
    """
    centred = vertices - vertices.mean(axis=0)
    # The direction in which the points extend least.
    normal = np.linalg.svd(centred, full_matrices=False)[2][-1]
    if np.ptp(centred @ normal) < MIN_THICKNESS:
        half = 0.5 * MIN_THICKNESS * normal
        vertices = np.concatenate([vertices - half, vertices + half])
    return np.array(coal_hull(vertices).points())


def coal_hull(vertices: Array) -> coal.ConvexBase:
    """Return the convex hull of points (V, 3), not all in one plane, as coal takes it."""
    points = coal.StdVec_Vec3s()
    for vertex in vertices:
        points.append(vertex)
    return coal.Convex.convexHull(points, True, "Qt")
