"""The samples of a run with their poses and errors: what is exported, also as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simbridge.recording.samples import LogColumns
from simbridge.robot.pose import Array

# Parts of the names of a table's columns.
POSE_PARTS = ("x_m", "y_m", "z_m", "qx", "qy", "qz", "qw")
AXES = ("x", "y", "z")

JOINT_QUANTITIES = (
    "solution",
    "setpoint",
    "command",
    "controller_target",
    "controller_target_velocity",
    "controller_target_acceleration",
    "position",
    "velocity",
    "effort",
)
"""The fields of a sample that the table has for each joint."""

EXPORTED_POSES = ("reference", "target", "setpoint", "attained")
"""The poses that are exported as trajectories."""

CONTROLLER_STATES = ("robot_mode", "safety_mode", "runtime_state")
"""The states of the controller that are exported, in the numbers of RTDE."""

ALL = slice(None)
"""All samples of a run."""


@dataclass(frozen=True, eq=False)
class RunSamples:
    """The T samples of a run with n joints, with the poses and errors that are exported.

    Attributes:
        log: The samples.
        poses: Reference, target, solution, setpoint and attained (T, 7), in base_link.
        errors: Translation (T, 3), m, and rotation vector (T, 3), rad, of the tracking error and
            its parts.
        origins: Origins of the joints' frames (T, n, 3), in base_link, m.
        prismatic: True for each joint that is prismatic (n,).
        effort_unit: Unit of a revolute joint's effort: "N m", or "A" where the controller reports
            currents.
    """

    log: LogColumns
    poses: Mapping[str, Array]
    errors: Mapping[str, tuple[Array, Array]]
    origins: Array
    prismatic: NDArray[np.bool_]
    effort_unit: str = "N m"

    def unit(self, quantity: str, prismatic: bool) -> str:
        """Return the unit of a quantity of a joint, as at a column name's end."""
        if quantity == "effort":
            if self.effort_unit == "A":
                return "a"
            return "n" if prismatic else "n_m"

        length = "m" if prismatic else "rad"
        if quantity.endswith("velocity"):
            return f"{length}_per_s"
        return f"{length}_per_s2" if quantity.endswith("acceleration") else length

    def units(self, quantity: str) -> str:
        """Return the unit of all joints: "rad", or "rad_or_m" where there are both kinds."""
        units = {self.unit(quantity, prismatic) for prismatic in self.prismatic.tolist()}
        return "_or_".join(sorted(units, reverse=True))

    def table(self) -> dict[str, Array]:
        """Return columns (T,) by name.

        They are stamps, poses, the tracking error and its parts, the joints, and the origin of each
        joint's frame in base_link. For a drawing of the arm, a line from each origin to the next
        stands for a link; the last line ends at the TCP, `attained`. Each name ends in its unit;
        components of quaternions, ratios, flags and states of the controller have none.
        """
        log = self.log
        columns: dict[str, Array] = {"stamp_s": log.stamp, "plan_time_s": log.plan_time}

        # The poses, and the tracking error with its parts.
        for name, poses in self.poses.items():
            for i, part in enumerate(POSE_PARTS):
                columns[f"{name}_{part}"] = poses[:, i]
        for name, (translation, rotation) in self.errors.items():
            for i, axis in enumerate(AXES):
                columns[f"{name}_error_{axis}_m"] = translation[:, i]
            for i, axis in enumerate(AXES):
                columns[f"{name}_error_r{axis}_rad"] = rotation[:, i]

        # The joints.
        for quantity in JOINT_QUANTITIES:
            values = getattr(log, quantity)
            for i, joint in enumerate(log.joint_names):
                unit = self.unit(quantity, bool(self.prismatic[i]))
                columns[f"{joint}_{quantity}_{unit}"] = values[:, i]
        for i, joint in enumerate(log.joint_names):
            for k, axis in enumerate(AXES):
                columns[f"{joint}_origin_{axis}_m"] = self.origins[:, i, k]

        columns["limited"] = log.limited.astype(float)
        columns["speed_scaling"] = log.speed_scaling
        for name in CONTROLLER_STATES:
            columns[name] = getattr(log, name).astype(float)
        columns["host_monotonic_s"] = log.host_monotonic
        return columns


ReadSamples = Callable[[slice], RunSamples]
"""Reads the samples of a run in a slice, as far as there are any."""
