"""The virtual twin of forward dynamics, and which gains it bears."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class Twin:
    """Where the virtual twin's mass is (section III-B of the paper; the defaults are its equation 17, conditioned).

    Attributes:
        tool_mass: At the tool's point, kg; may be zero, as the inertia.
        tool_inertia: Isotropic, at the tool's point, kg m^2.
        link_mass: At the origin of each joint, kg. 0.1 is smooth near singularities, at the cost of straightness.
        link_inertia: Isotropic, at the origin of each joint, kg m^2.
    """

    tool_mass: float = 1.0
    tool_inertia: float = 1.0
    link_mass: float = 1e-3
    link_inertia: float = 1e-6

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            light = name.startswith("tool") and value == 0.0
            if not (math.isfinite(value) and (value > 0.0 or light)):
                raise InvalidParameter(f"twin's {name}", value, "a positive number (of the tool also 0)")

    @classmethod
    def naive(cls, n: int) -> Twin:
        """1 kg and 1 kg m^2 spread evenly over the n joints, nothing at the tool: what experiment A compares with."""
        return cls(tool_mass=0.0, tool_inertia=0.0, link_mass=1.0 / n, link_inertia=1.0 / n)

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Tool mass, tool inertia, link mass, link inertia: what the kernels take."""
        return self.tool_mass, self.tool_inertia, self.link_mass, self.link_inertia


def effective_masses(twin: Twin, robot: Robot) -> tuple[float, float]:
    """Mass (kg) and inertia (kg m^2) that the tool is sure to have in every posture: what bounds the gains.

    With mass and inertia at the tool these. Otherwise the last link's, seen from the tool at a distance r: its
    compliance is X M^-1 X^T with X = [[1, -r x], [0, 1]], and both figures are one over the largest eigenvalue of that.
    The other links only make the tool heavier.
    """
    if twin.tool_mass > 0.0 and twin.tool_inertia > 0.0:
        return twin.tool_mass, twin.tool_inertia
    mass, inertia = twin.link_mass, twin.link_inertia
    distance = float(np.linalg.norm(robot.placements[-1, :3, 3]))
    if robot.prismatic[-1]:
        distance += max(abs(robot.position_min[-1]), abs(robot.position_max[-1]))
    if not math.isfinite(distance):
        return 0.0, 0.0
    # Across r the compliance is [[1/m + r^2/I, r/I], [r/I, 1/I]].
    compliance = [[1.0 / mass + distance**2 / inertia, distance / inertia], [distance / inertia, 1.0 / inertia]]
    least = 1.0 / float(np.linalg.eigvalsh(compliance)[-1])
    return max(least, twin.tool_mass), max(least, twin.tool_inertia)


def loads(
    dt: float, kp: Sequence[float], kd: Sequence[float], masses: tuple[float, float]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """kappa = dt^2 kp/m (6,), and dt kd/m (6,), translation first."""
    six = np.maximum(np.repeat(masses, 3), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        return dt**2 * np.array(kp) / six, dt * np.array(kd) / six


def accumulated_radius(kappa: float, damping: float) -> float:
    """How much an error grows in an iteration of velocity accumulation, in the long run; stable below 1.

    Of (e, dt v, dt v before): e+ = e - dt v; v+ = 0.9 (v + (kappa e - damping dt v before)/dt). Without damping it is
    stable for kappa below 1/9.
    """
    step = [[1.0, -1.0, 0.0], [0.9 * kappa, 0.9, -0.9 * damping], [0.0, 1.0, 0.0]]
    return float(np.abs(np.linalg.eigvals(step)).max()) if math.isfinite(kappa + damping) else math.inf
