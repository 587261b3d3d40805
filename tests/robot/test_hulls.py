"""Convex hulls of points."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.robot.hulls import convex_hull


def test_a_flat_mesh_has_a_thin_hull():
    hull = convex_hull(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.5, 0]]))

    assert np.ptp(hull, axis=0) == pytest.approx([1.0, 1.0, 1e-3])
