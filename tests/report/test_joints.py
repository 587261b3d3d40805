"""Joints of a run: what their errors move, and their charts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simbridge.report.drawing import drawing_style
from simbridge.report.joints import (
    joint_chart,
    joint_contributions,
    joint_results,
    largest_contributor,
)
from tests.report.made_up_run import MadeUp


def test_one_joint_makes_the_plant_error(tmp_path: Path) -> None:
    evaluation = MadeUp(plant_offset=1e-4).evaluation(tmp_path)

    displacements, rotations = joint_contributions(evaluation)

    assert np.allclose(displacements[:, 0], evaluation.budget.plant.distance, rtol=1e-3)
    assert np.allclose(rotations[:, 0], 1e-4)
    assert np.allclose(displacements[:, 1:], 0.0, atol=1e-15)
    assert largest_contributor(joint_results(evaluation)).startswith("joint_1 contributes most")


def test_joints_at_their_setpoints_contribute_nothing(tmp_path: Path) -> None:
    evaluation = MadeUp().evaluation(tmp_path)

    text = largest_contributor(joint_results(evaluation))

    assert text == "Every joint was at its setpoint."


@pytest.mark.slow
def test_single_sample_peak_is_drawn(measured: Any) -> None:
    effort = np.zeros((6000, 3))
    effort[2345, 2] = 70.0
    evaluation, _ = measured(samples=6000, period=0.002, effort=effort)

    with drawing_style():
        chart = joint_chart(joint_results(evaluation)[2], evaluation.log.stamp, 2)

    # The axes reach up to the limit at 100; a curve without its peak would be a straight line.
    drawing = chart.split("joint_3: position")[1]
    curve = re.findall(r'<path d="([^"]*)" clip-path[^>]*#d55e00', drawing)[-1]
    heights = {height for _, height in re.findall(r"([\d.]+) ([\d.]+)", curve)}
    assert len(heights) > 1
