"""IKPy: least squares by SciPy's trust-region method, from the present joint positions.

It is called as the README and the tutorial "Orientation" of IKPy's repository
(https://github.com/Phylliade/ikpy) show it, with its default optimizer and tolerances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.ik.rivals.rival import Rival, RivalParameters
from simbridge.robot.kinematic_urdf import kinematic_urdf_file
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# IKPy's name for the part of the rotation that each task attains.
ORIENTATION_MODES = {"pose": "all", "axis": "Z", "position": None}


@dataclass(frozen=True)
class IkpyParameters(RivalParameters):
    """IKPy has no settings but its task."""

    packages = (("ikpy.chain", "ikpy"),)

    def build(self, robot: Robot) -> Ikpy:
        return Ikpy(robot, self)


class Ikpy(Rival):
    """IKPy with its NumPy backend."""

    name = "ikpy"
    Parameters = IkpyParameters

    def load_arm(self) -> None:
        # The names of the links and joints from the base to the TCP, in turn.
        path = ["base_link"]
        for joint, link in zip(self.robot.joints, self.robot.links, strict=True):
            path += [joint.name, link.name]
        path += [f"{path[-1]}-tcp_fixed_joint", "tcp"]
        # The origin and the TCP are links that do not move.
        is_active = [False, *[True] * self.robot.n, False]
        chain_class = self.modules["ikpy.chain"].Chain
        with kinematic_urdf_file(self.robot) as file:
            self._chain = chain_class.from_urdf_file(
                file, base_elements=path, active_links_mask=is_active
            )

    def next_joints(self, q: Array, target: pin.SE3) -> Array:
        # IKPy also has positions for the origin and the TCP, which do not move.
        positions = np.concatenate([[0.0], q, [0.0]])
        solution = self._chain.inverse_kinematics_frame(
            target.homogeneous, positions, orientation_mode=ORIENTATION_MODES[self.task]
        )
        return np.array(solution[1:-1])
