"""The samples of a run as a table, for exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simbridge.recording.log import LogColumns
from simbridge.robot.pose import Array

_POSE = ("x_m", "y_m", "z_m", "qx", "qy", "qz", "qw")
_VECTOR = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class RunSamples:
    """What is exported of a run with T samples of n joints.

    Attributes:
        errors: Translation (T, 3), m, and rotation vector (T, 3), rad, of the tracking error and its parts.
    """

    log: LogColumns
    poses: Mapping[str, Array]  # reference, target, solution, setpoint and attained (T, 7) in base_link
    errors: Mapping[str, tuple[Array, Array]]
    origins: Array  # of the joints' frames (T, n, 3) in base_link, m
    prismatic: NDArray[np.bool_]  # which joints are prismatic (n,)
    effort_unit: str = "N m"  # of revolute joints: "N m", or "A" where the controller reports currents

    def unit(self, quantity: str, prismatic: bool) -> str:
        """The unit of a joint's position, velocity or effort, as at the end of a column's name."""
        if quantity == "effort":
            return "a" if self.effort_unit == "A" else "n" if prismatic else "n_m"
        return ("m" if prismatic else "rad") + ("_per_s" if quantity == "velocity" else "")

    def units(self, quantity: str) -> str:
        """That of all joints: "rad", or "rad_or_m" where there are joints of both kinds."""
        return "_or_".join(sorted({self.unit(quantity, each) for each in self.prismatic.tolist()}, reverse=True))

    def table(self) -> dict[str, Array]:
        """Columns (T,) by name. Each name ends in its unit; components of quaternions, shares and flags have none.

        Stamps, poses, the tracking error and its parts, the joints, and the origin of each joint's frame in base_link.
        A link goes from one origin to the next, the last one to `attained`.
        """
        log = self.log
        columns: dict[str, Array] = {"stamp_s": log.stamp, "plan_time_s": log.plan_time}
        for name, values in self.poses.items():
            columns |= {f"{name}_{axis}": values[:, i] for i, axis in enumerate(_POSE)}
        for name, (translation, rotation) in self.errors.items():
            columns |= {f"{name}_error_{axis}_m": translation[:, i] for i, axis in enumerate(_VECTOR)}
            columns |= {f"{name}_error_r{axis}_rad": rotation[:, i] for i, axis in enumerate(_VECTOR)}
        joints = [*enumerate(zip(log.joint_names, self.prismatic.tolist(), strict=True))]
        for name in ("solution", "setpoint", "position", "velocity", "effort"):
            values = getattr(log, name)
            columns |= {f"{joint}_{name}_{self.unit(name, slides)}": values[:, i] for i, (joint, slides) in joints}
        for i, joint in enumerate(log.joint_names):
            columns |= {f"{joint}_origin_{axis}_m": self.origins[:, i, k] for k, axis in enumerate(_VECTOR)}
        columns["limited"] = log.limited.astype(float)
        columns["speed_scaling"] = log.speed_scaling
        columns["host_monotonic_s"] = log.host_monotonic
        return columns


Samples = Callable[[slice], RunSamples]
"""Reads these samples of a run, as far as there are any."""

ALL = slice(None)
