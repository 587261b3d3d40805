"""The part of an arm's workspace in which the ready-made motions fit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simbridge.robot.pose import read_only

CENTRE = (0.75, 0.164, 0.30)
"""Centre of the ready-made motions, in front of a UR10 at a comfortable height, m."""
TOOL_DOWN = read_only([math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0])
"""The tool's z axis points along -z of base_link: quaternion (4,)."""

# Distance from the vertical through the base to the flange at home of an arm as large as a UR10, m.
# Chosen so that no UR arm is near the border between two steps: the few millimetres of a
# calibration change no path.
FULL_SIZE_M = 0.775
# The step between two scales.
SCALE_STEP = 0.05
STEPS_PER_UNIT = 20


@dataclass(frozen=True)
class Workspace:
    """The size and the place of the ready-made motions on an arm.

    Attributes:
        scale: Size of the motions, 1 on a UR10.
        centre: Centre of the motions in base_link (3,), m.
        orientation: Quaternion (4,) of the tool, downwards.
    """

    scale: float
    centre: tuple[float, float, float]
    orientation: tuple[float, ...]


def whole_scale(length: float, largest: int = STEPS_PER_UNIT) -> float:
    """Return the scale of motions for an arm, in whole steps.

    Args:
        length: How far from the base it holds its flange, m.
        largest: The largest scale, in steps.
    """
    steps = min(max(round(length / FULL_SIZE_M / SCALE_STEP), 1), largest)
    # Counted in whole steps, so that 20 * 0.05 is exactly 1.
    return steps / STEPS_PER_UNIT
