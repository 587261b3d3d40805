"""The paper's scenarios on arms of every size: on a UR10 exactly as published, on smaller arms smaller and nearer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.trajectory.shapes import CENTRE

# From the vertical through the base to the flange of an arm that is as large as a UR10, at home, m. Chosen so that no
# arm of UR's comes near the border between two steps: the few millimetres of a calibration change no path.
_FULL = 0.775
_STEP = 0.05
# UR's arms hold it at 0.56 to 0.59 of the farthest that they get. One that stands upright or stretched at home, as a
# URDF's does in the middle of its joints' ranges, counts as holding it at these parts of that at least and at most.
_LEAST, _MOST = 0.5, 0.75
# Postures that are looked at for how far an arm gets.
_POSTURES = 1000


@dataclass(frozen=True)
class PaperSize:
    """How large the paper's motions are on an arm, and where.

    Attributes:
        scale: Of all lengths and speeds; 1 on a UR10 and on larger arms, in steps of 0.05 below; at most 0.5 on a
            planar arm.
        centre: Of the square (3,), m, from base_link.
        up: 1, or 0 on an arm that cannot leave its plane.
    """

    scale: float
    centre: tuple[float, float, float]
    up: float = 1.0

    @property
    def side(self) -> float:
        """Of the square, m."""
        return 0.4 * self.scale

    @property
    def speed(self) -> float:
        """Along the square, m/s."""
        return 0.2 * self.scale


def paper_size(robot: Robot) -> PaperSize:
    """What suits an arm: in proportion to how far from its base its file's home holds the flange.

    Where that is no sensible place, in proportion to how far the arm gets. A planar arm works around the flange at
    home, at half the size at most; any other in front of the base at CENTRE, brought nearer by the scale.
    """
    home = _flange_at_home(robot)
    farthest = span(robot)
    held = min(max(float(np.hypot(home[0], home[1])), _LEAST * farthest), _MOST * farthest)
    steps = round(held / _FULL / _STEP)
    # The short last link of a planar arm, free to turn, has to swing fast at the corners of a full-sized square.
    most = 10 if robot.planar else 20
    # Of whole steps, for 20 * 0.05 to be 1 exactly.
    scale = min(max(steps, 1), most) / 20
    if robot.planar:
        return PaperSize(scale, (float(home[0]), float(home[1]), float(home[2])), up=0.0)
    return PaperSize(scale, (CENTRE[0] * scale, CENTRE[1] * scale, CENTRE[2] * scale))


def span(robot: Robot) -> float:
    """How far from the vertical through its base an arm gets its flange, m, whichever tool it is given."""
    from simbridge.ik.forward_dynamics import restart_postures

    flange = tool_path(robot.with_tcp(pin.SE3.Identity()), restart_postures(robot, _POSTURES))
    return float(np.hypot(flange[:, 0], flange[:, 1]).max())


def _flange_at_home(robot: Robot) -> Array:
    """Of the arm's own home (3,), whichever home and tool the run is given."""
    own = robot.home if robot.file_home is None else robot.file_home
    return tool_path(robot.with_tcp(pin.SE3.Identity()), own[None])[0, :3]
