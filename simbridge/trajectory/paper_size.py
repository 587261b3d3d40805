"""The size and place of the paper's motions on an arm.

The paper is Scherzinger, Roennau and Dillmann, "Inverse Kinematics with Forward Dynamics Solvers
for Sampled Motion Tracking". Its arm is a UR10, for which its motions have the scale 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.robot.kinematics import tool_path
from simbridge.robot.postures import span
from simbridge.robot.robot import Robot
from simbridge.robot.workspace import CENTRE, TOOL_DOWN, whole_scale

# UR's arms hold the flange at 0.56 to 0.59 of their span. An arm that stands upright or stretched
# at home counts as holding it at a fraction within these bounds.
MIN_SPAN_FRACTION = 0.5
MAX_SPAN_FRACTION = 0.75

# The largest scale, in steps of 0.05. The short last link of a planar arm, free to turn, has to
# swing fast at the corners of a full-sized square.
MAX_SCALE_STEPS = 20
MAX_PLANAR_SCALE_STEPS = 10


@dataclass(frozen=True)
class PaperSize:
    """Size and position of the paper's motions on an arm.

    Attributes:
        scale: Factor of all lengths and speeds; 1 on a UR10 and on larger arms, in steps of 0.05
            below; at most 0.5 on a planar arm.
        centre: Centre of the square (3,), in base_link, m.
        up: 1, or 0 on an arm that cannot leave its plane.
        orientation: The tool's (4,), downwards.
    """

    scale: float
    centre: tuple[float, float, float]
    up: float = 1.0
    orientation: tuple[float, ...] = tuple(TOOL_DOWN.tolist())

    @property
    def side(self) -> float:
        """Length of the square's edges, m."""
        return 0.4 * self.scale

    @property
    def speed(self) -> float:
        """Speed along the square, m/s."""
        return 0.2 * self.scale


def paper_size(robot: Robot) -> PaperSize:
    """Return the size and the place that suit an arm.

    The size is in proportion to the horizontal distance of the flange from the base, with the arm
    at the home of its file. That distance is bounded by two fractions of the arm's span,
    MIN_SPAN_FRACTION and MAX_SPAN_FRACTION.

    A planar arm works around the flange at home, at half the size at most. Any other works in front
    of the base, at CENTRE multiplied by the scale. If the arm's file has no home, size and place
    are those that were found together with a home (`Robot.workspace`).
    """
    if robot.workspace is not None:
        return PaperSize(
            robot.workspace.scale,
            robot.workspace.centre,
            up=0.0 if robot.planar else 1.0,
            orientation=robot.workspace.orientation,
        )

    # The home of the arm's file, and its flange, whatever home and tool are used.
    home = robot.home if robot.file_home is None else robot.file_home
    flange_robot = robot.with_tcp(pin.SE3.Identity())
    flange = tool_path(flange_robot, home[None])[0, :3]

    arm_span = span(robot)
    distance = float(np.hypot(flange[0], flange[1]))
    distance = max(distance, MIN_SPAN_FRACTION * arm_span)
    distance = min(distance, MAX_SPAN_FRACTION * arm_span)
    # Scales are counted in whole steps of 0.05.
    if robot.planar:
        scale = whole_scale(distance, MAX_PLANAR_SCALE_STEPS)
        return PaperSize(scale, tuple(flange.tolist()), up=0.0)

    scale = whole_scale(distance, MAX_SCALE_STEPS)
    return PaperSize(scale, (CENTRE[0] * scale, CENTRE[1] * scale, CENTRE[2] * scale))
