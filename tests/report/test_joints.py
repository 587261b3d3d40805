"""How far each joint's following error moves the tool."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simbridge.report.joints import joint_contributions, joints, largest_contributor
from tests.report.conftest import MadeUp


def test_one_joint_makes_the_plant_error(tmp_path: Path) -> None:
    evaluation = MadeUp(plant_offset=1e-4).evaluation(tmp_path)

    displacements, rotations = joint_contributions(evaluation)

    assert np.allclose(displacements[:, 0], evaluation.budget.plant.distance, rtol=1e-3)
    assert np.allclose(rotations[:, 0], 1e-4)
    assert np.allclose(displacements[:, 1:], 0.0, atol=1e-15)
    assert largest_contributor(joints(evaluation)).startswith("joint_1 contributes most")


def test_joints_at_their_setpoints_contribute_nothing(tmp_path: Path) -> None:
    evaluation = MadeUp().evaluation(tmp_path)

    text = largest_contributor(joints(evaluation))

    assert text == "Every joint was at its setpoint."
