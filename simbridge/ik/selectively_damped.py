"""Selectively damped least squares: each singular direction of the Jacobian is damped by as much as it needs.

Buss and Kim, "Selectively damped least squares for inverse kinematics", Journal of Graphics Tools 10(3), 2005: no
damping constant is chosen; a direction may turn no joint further than moves the tool by about what is asked.
"""

from __future__ import annotations

from typing import NamedTuple

from simbridge.ik.iterative import IterativeSolver
from simbridge.ik.iterative_settings import SelectivelyDampedParameters
from simbridge.ik.stepping import step_for
from simbridge.ik.steps.selectively_damped import step


class SelectiveSettings(NamedTuple):
    """gamma_max, rad."""

    largest_angle: float


@step_for(SelectiveSettings)
def selective_step(settings, jacobian, error, rows, q, work, dq, drift, held):  # type: ignore[no-untyped-def]
    """`steps.selectively_damped.step`, with the first three rows as translation."""
    step(jacobian, error, rows, q, 3, settings.largest_angle, work, dq)


class SelectivelyDamped(IterativeSolver):
    """Selectively damped least squares. Settings: see `SelectivelyDampedParameters`."""

    name = "selectively-damped"
    Parameters = SelectivelyDampedParameters
    settings: SelectivelyDampedParameters

    def kernel_settings(self) -> SelectiveSettings:
        return SelectiveSettings(float(self.settings.largest_angle))
