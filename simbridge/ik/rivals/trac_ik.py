"""TRAC-IK: KDL's Newton method and sequential quadratic programming, side by side.

It is called as the README of pytracik (https://github.com/chenhaox/pytracik) shows it, with the
defaults of TRAC-IK (https://bitbucket.org/traclabs/trac_ik).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pinocchio as pin

from simbridge.ik.checks import POSITIVE, choice_of
from simbridge.ik.parameters import setting
from simbridge.ik.rivals.rival import Rival, RivalParameters
from simbridge.robot.kinematic_urdf import kinematic_urdf_file
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# TRAC-IK's names for the ways to choose among solutions.
SOLVE_TYPES = ("Speed", "Distance", "Manip1", "Manip2")


@dataclass(frozen=True)
class TracIKParameters(RivalParameters):
    """Settings of TRAC-IK."""

    packages = (("trac_ik", "pytracik"),)
    timeout: float = setting(0.005, POSITIVE, unit="s")
    """Time after which a search without a solution ends, s."""
    epsilon: float = setting(1e-5, POSITIVE)
    """Error of each component of the pose at which it counts as attained, m and rad."""
    solve_type: Literal["Speed", "Distance", "Manip1", "Manip2"] = setting(
        "Speed", choice_of(*SOLVE_TYPES)
    )
    """Speed for the first solution; of those within the timeout, Distance the nearest."""

    def build(self, robot: Robot) -> TracIK:
        return TracIK(robot, self)


class TracIK(Rival):
    """TRAC-IK. Settings: see `TracIKParameters`."""

    name = "trac-ik"
    Parameters = TracIKParameters
    tasks = ("pose",)

    def load_arm(self) -> None:
        limits = (self.settings.timeout, self.settings.epsilon, self.settings.solve_type)
        with kinematic_urdf_file(self.robot, masses=False) as path:
            self._arm = self.modules["trac_ik"].TracIK("base_link", "tcp", path, *limits)

    def next_joints(self, q: Array, target: pin.SE3) -> Array | None:
        solution: Array | None = self._arm.ik(target.translation, target.rotation, q)
        return solution
