"""Marks of tests that need a package without a wheel for some Pythons or machines."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

HAS_UR_RTDE = find_spec("rtde_control") is not None
needs_ur_rtde = pytest.mark.skipif(
    not HAS_UR_RTDE, reason="ur_rtde has no wheel for this Python or machine"
)
needs_pybullet = pytest.mark.skipif(
    find_spec("pybullet") is None, reason="PyBullet has no wheel for this Python or machine"
)
# The physics engines, as parameters.
ENGINES = (pytest.param("pybullet", marks=needs_pybullet), "mujoco")
# The links to a controller, as parameters.
LINKS = (pytest.param("ur_rtde", marks=needs_ur_rtde), "rtde")
# The link that is named where the default would be another one, of which a note would be printed.
LINK = None if HAS_UR_RTDE else "rtde"
LINK_FLAGS = () if HAS_UR_RTDE else ("--link", "rtde")
