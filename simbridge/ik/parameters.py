"""The solvers' settings as the command line and a scenario give them: plain data, quick to import."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simbridge.errors import InvalidParameter

if TYPE_CHECKING:
    from simbridge.ik.solver import Solver
    from simbridge.robot import Robot

Gain = tuple[float, float, float, float, float, float]


def expand_gain(name: str, value: float | Sequence[float]) -> Gain:
    """Six gains, translation first, from six numbers or from one, of which the rotation gets a tenth (equation 18)."""
    try:
        numbers = [float(v) for v in (value if isinstance(value, Sequence) else [value])]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) == 1:
        numbers = [numbers[0]] * 3 + [0.1 * numbers[0]] * 3
    if len(numbers) != 6 or not all(math.isfinite(v) and v >= 0.0 for v in numbers):
        raise InvalidParameter(f"solver's {name}", value, "one number, or six, none of them negative")
    return (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5])


@dataclass(frozen=True)
class ForwardDynamicsParameters:
    """Settings of the forward-dynamics solver (Scherzinger, Roennau and Dillmann)."""

    dt: float = 0.1
    """Virtual time step, s."""
    iterations: int = 50
    """Iterations per control period (N in the paper)."""
    kp: tuple[float, ...] = (50.0,)
    """Stiffness: one number for translation (rotation gets a tenth) or six."""
    kd: tuple[float, ...] = (0.0,)
    """Damping, likewise."""
    tool_mass: float = 1.0
    """Virtual mass at the tool, kg."""
    tool_inertia: float = 1.0
    """Virtual inertia at the tool, kg m^2."""
    link_mass: float = 1e-3
    """Virtual mass of each link, kg; 0.1 is smooth near singularities."""
    link_inertia: float = 1e-6
    """Virtual inertia of each link, kg m^2."""
    error_clamp: tuple[float, ...] = (0.2, 0.5)
    """Largest error that pulls, m and rad; inf inf is the paper's plain algorithm."""
    step_clamp: float = 0.1
    """Largest joint motion in an iteration, rad; inf for none."""

    def build(self, robot: Robot) -> Solver:
        """The solver with these settings.

        Raises:
            UnstableSolver: At or past the stability bound.
            InvalidParameter: A setting makes no sense.
        """
        from simbridge.ik.forward_dynamics import ForwardDynamics, Twin

        if len(self.error_clamp) != 2:
            raise InvalidParameter("solver's error_clamp", self.error_clamp, "two numbers: m and rad")
        return ForwardDynamics(
            robot,
            dt=self.dt,
            iterations=self.iterations,
            kp=self.kp,
            kd=self.kd,
            twin=Twin(self.tool_mass, self.tool_inertia, self.link_mass, self.link_inertia),
            error_clamp=self.error_clamp,
            step_clamp=self.step_clamp,
        )


SOLVERS = {"forward-dynamics": ForwardDynamicsParameters}
"""Every solver by its name at the command line."""
