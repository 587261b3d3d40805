"""The virtual twin: the masses of the arm whose dynamics solve the inverse kinematics."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.robot import Robot


@dataclass(frozen=True)
class Twin:
    """The masses of the virtual twin (section III-B of the paper).

    The defaults are its equation 17, conditioned.

    Attributes:
        tool_mass: Mass at the tool's point, kg; may be zero.
        tool_inertia: Isotropic inertia at the tool's point, kg m^2; may be zero.
        link_mass: Mass at the origin of each joint, kg. 0.1 is smooth near singularities, at the
            cost of straightness.
        link_inertia: Isotropic inertia at the origin of each joint, kg m^2.

    Raises:
        InvalidParameter: A mass is negative or not finite, or a link has none.
    """

    tool_mass: float = 1.0
    tool_inertia: float = 1.0
    link_mass: float = 1e-3
    link_inertia: float = 1e-6

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            is_massless_tool = name.startswith("tool") and value == 0.0
            if not (math.isfinite(value) and (value > 0.0 or is_massless_tool)):
                needed = "a positive number (of the tool also 0)"
                raise InvalidParameter(f"twin's {name}", value, needed)

    @classmethod
    def naive(cls, n: int) -> Twin:
        """Return the naive twin of experiment A.

        1 kg and 1 kg m^2 are spread evenly over the n joints, with nothing at the tool.
        """
        return cls(tool_mass=0.0, tool_inertia=0.0, link_mass=1.0 / n, link_inertia=1.0 / n)

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Tool mass, tool inertia, link mass and link inertia, for the kernels."""
        return self.tool_mass, self.tool_inertia, self.link_mass, self.link_inertia


def effective_masses(twin: Twin, robot: Robot) -> tuple[float, float]:
    """Return lower bounds of the mass, kg, and the inertia, kg m^2, felt at the tool.

    They hold in every posture, and bound the gains. With mass and inertia at the tool, these are
    the bounds themselves. If one of them is zero, the last link moves the tool, at a distance r.
    The other links only make the tool heavier.

    The last link's compliance at the tool is taken as a matrix of numbers in SI units. In no
    direction is the compliance to a force or to a torque larger than the matrix's largest
    eigenvalue. So one over this eigenvalue bounds the mass in kg as well as the inertia in kg m^2.
    """
    if twin.tool_mass > 0.0 and twin.tool_inertia > 0.0:
        return twin.tool_mass, twin.tool_inertia

    # The largest distance r of the tool from the last joint, infinite for an unlimited slide.
    distance = float(np.linalg.norm(robot.placements[-1, :3, 3]))
    if robot.prismatic[-1]:
        distance += max(abs(robot.position_min[-1]), abs(robot.position_max[-1]))
    if not math.isfinite(distance):
        return 0.0, 0.0

    # Perpendicular to r the compliance is [[1/m + r^2/I, r/I], [r/I, 1/I]].
    mass = twin.link_mass
    inertia = twin.link_inertia
    compliance = [
        [1.0 / mass + distance**2 / inertia, distance / inertia],
        [distance / inertia, 1.0 / inertia],
    ]
    least_resistance = 1.0 / float(np.linalg.eigvalsh(compliance)[-1])

    # The mass or the inertia that the tool does have is a bound, too.
    return max(least_resistance, twin.tool_mass), max(least_resistance, twin.tool_inertia)
