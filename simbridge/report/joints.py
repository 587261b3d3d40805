"""What every joint did and how near to its limits it came, in the units of people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simbridge.evaluation.evaluation import Evaluation
from simbridge.robot.pose import Array

# A robot's own number for "no limit".
NO_LIMIT = 1e6


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity of one joint over time.

    Attributes:
        name: "position", "velocity", "torque", "force" or "current".
        unit: Of everything here.
        values: Measured (T,).
        lower: Its limit; -inf for none.
        upper: Its limit; inf for none.
        wanted: What was sent (T,), where that is known.
        resolution: Differences below this are not worth drawing.
    """

    name: str
    unit: str
    values: Array
    lower: float
    upper: float
    resolution: float
    wanted: Array | None = None

    @cached_property
    def known(self) -> bool:
        """Whether there is any number at all."""
        return bool(np.isfinite(self.values).any())

    @cached_property
    def least(self) -> float:
        return float(np.nanmin(self._finite)) if self.known else np.nan

    @cached_property
    def most(self) -> float:
        return float(np.nanmax(self._finite)) if self.known else np.nan

    @property
    def peak(self) -> float:
        """The largest magnitude."""
        return max(abs(self.least), abs(self.most)) if self.known else np.nan

    @property
    def share(self) -> float | None:
        """The peak as a part of the limit; None without a limit or a number."""
        if not self.known or not np.isfinite(self.upper) or self.upper <= 0.0:
            return None
        return self.peak / self.upper

    @property
    def margin(self) -> float | None:
        """How far from the nearest limit it stayed; None without a limit or a number."""
        if not self.known or not (np.isfinite(self.lower) or np.isfinite(self.upper)):
            return None
        return min(self.upper - self.most, self.least - self.lower)

    @property
    def _finite(self) -> Array:
        return np.where(np.isfinite(self.values), self.values, np.nan)


@dataclass(frozen=True, eq=False)
class Joint:
    """One joint of the arm."""

    name: str
    position: Quantity
    velocity: Quantity
    effort: Quantity

    @property
    def quantities(self) -> tuple[Quantity, Quantity, Quantity]:
        return self.position, self.velocity, self.effort


def joints(evaluation: Evaluation) -> list[Joint]:
    """Every joint of the run: angles in degrees, lengths of prismatic joints in mm."""
    log, robot = evaluation.log, evaluation.settings["robot"]
    prismatic = evaluation.settings["kinematics"]["prismatic"]
    unit = evaluation.settings["backend"].get("effort_unit", "N m")
    return [
        _joint(
            name,
            bool(prismatic[i]),
            unit,
            log.position[:, i],
            log.setpoint[:, i],
            log.velocity[:, i],
            log.effort[:, i],
            (robot["position_min"][i], robot["position_max"][i], robot["max_velocity"][i], robot["max_effort"][i]),
        )
        for i, name in enumerate(log.joint_names)
    ]


def _joint(
    name: str,
    prismatic: bool,
    effort_unit: str,
    position: Array,
    setpoint: Array,
    velocity: Array,
    effort: Array,
    limits: tuple[float, float, float, float],
) -> Joint:
    scale, unit = (1e3, "mm") if prismatic else (float(np.degrees(1.0)), "°")
    lower, upper, fastest, strongest = (v if abs(v) < NO_LIMIT else math.copysign(math.inf, v) for v in limits)
    in_amperes = effort_unit == "A"
    if in_amperes:
        # The limit is a torque: a current cannot be held against it.
        strongest = np.inf
    kind = "current" if in_amperes else "force" if prismatic else "torque"
    return Joint(
        name,
        Quantity("position", unit, position * scale, lower * scale, upper * scale, 0.01, setpoint * scale),
        Quantity("velocity", f"{unit}/s", velocity * scale, -fastest * scale, fastest * scale, 0.01),
        Quantity(kind, "N" if kind == "force" else effort_unit, effort, -strongest, strongest, 0.01),
    )
