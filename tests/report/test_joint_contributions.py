"""What each joint's following error does to the tool."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simbridge.report.joint_contributions import largest_contributor, shares_of_joints
from tests.report.conftest import MadeUp


def test_one_joint_that_is_off_makes_the_whole_plant_error(tmp_path: Path) -> None:
    evaluation = MadeUp(plant_offset=1e-4).evaluation(tmp_path)
    positions, rotations = shares_of_joints(evaluation)
    assert np.allclose(positions[:, 0], evaluation.budget.plant.distance, rtol=1e-3)
    assert np.allclose(rotations[:, 0], 1e-4)
    assert np.allclose(positions[:, 1:], 0.0, atol=1e-15)
    assert largest_contributor(evaluation.log.joint_names, positions).startswith("joint_1 does most")


def test_joints_that_are_where_they_were_sent_are_not_blamed(tmp_path: Path) -> None:
    evaluation = MadeUp().evaluation(tmp_path)
    positions, _ = shares_of_joints(evaluation)
    assert largest_contributor(evaluation.log.joint_names, positions) == "Every joint was where it was sent."
