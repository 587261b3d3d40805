"""Marks of tests that need a package without a wheel for some Pythons or machines."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_ur_rtde = pytest.mark.skipif(
    find_spec("rtde_control") is None, reason="ur_rtde has no wheel for this Python or machine"
)
