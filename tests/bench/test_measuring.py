"""A bare timer, with which timing is compared."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.bench.measuring import wake_ups


def test_a_timer_wakes_at_whole_periods():
    period = 0.002

    deadlines, woken = np.transpose(wake_ups(0.05, period))

    steps = np.diff(deadlines) / period
    assert steps == pytest.approx(np.round(steps), abs=1e-6)
    assert steps.min() > 0.5
    assert (woken >= deadlines).all()
