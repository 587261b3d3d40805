"""The numbers that pages show of an instant."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.browser.setup import StudioSetup
from simbridge.browser.snapshot import out_of_reach


@pytest.mark.parametrize(("point", "excess"), [([0.0, 1.7, 0.0], 0.2), ([0.5, 0.5, 0.0], 0.0)])
def test_a_point_beyond_the_arms_length_is_out_of_reach(point, excess):
    arm = StudioSetup("planar3r").arm

    assert out_of_reach(arm, np.array(point)) == pytest.approx(excess)
