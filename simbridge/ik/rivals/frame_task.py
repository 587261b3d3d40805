"""Settings of the task "pose of the TCP", which Pink and mink call a frame task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simbridge.ik.checks import NOT_NEGATIVE
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.rival import RivalParameters

# Cost of a radian about x, y and z of the tool, by task.
ORIENTATION_COSTS = {"pose": (1.0, 1.0, 1.0), "axis": (1.0, 1.0, 0.0), "position": (0.0, 0.0, 0.0)}


@dataclass(frozen=True)
class FrameTaskParameters(RivalParameters):
    """Settings of a frame task of Pink or mink."""

    lm_damping: float = setting(1.0, NOT_NEGATIVE)
    """Levenberg-Marquardt damping of the pose, in proportion to its squared error."""

    @property
    def costs(self) -> dict[str, Any]:
        """Costs of a metre and of a radian, and the damping, as named arguments of `FrameTask`."""
        return {
            "position_cost": 1.0,
            "orientation_cost": ORIENTATION_COSTS[self.task],
            "lm_damping": self.lm_damping,
        }
