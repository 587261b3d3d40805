"""Why a live arm is slower than asked, or stands: a name, of what, and a number; none is guessed."""

from __future__ import annotations

from typing import NamedTuple

# Name -> how its number is shown: factor and format.
_SHOWN = {
    "joint_velocity": (1.0, "{:.2f}"),  # share of the joint's limit
    "joint_limit": (1.0, "{:.3f} rad"),  # room that is left
    "tool_speed": (1.0, "{:.2f} m/s"),
    "singularity": (1.0, "sigma {:.3f}"),
    "obstacle": (1e3, "{:.0f} mm"),
    "reach": (1e3, "{:.0f} mm"),  # of the target that is left
    "stale": (1.0, "{:.2f} s"),
    "max_jump": (1e3, "{:.0f} mm"),
    "max_turn": (1.0, "{:.2f} rad"),
    "solver": (1e3, "{:.1f} ms"),
    "speed_slider": (1.0, "{:.2f}"),
    "late_commands": (1.0, "{:.2f}"),
    "not_engaged": (1.0, ""),
    "halted": (1.0, ""),
    "disengaged": (1.0, ""),
    "paused": (1.0, ""),
}
NAMES = tuple(_SHOWN)
STOPS = ("solver", "stale", "halted", "disengaged", "paused")
"""Those for which the arm brakes or stands; the others slow it down, or refuse an input."""


class Cause(NamedTuple):
    """A reason.

    Attributes:
        name: One of `NAMES`.
        subject: The joint, bodies or obstacle; "" for none.
        value: In SI units.
    """

    name: str
    subject: str = ""
    value: float = 0.0

    @property
    def text(self) -> str:
        """As in `joint_velocity wrist_3 0.93` or `reach 38 mm`."""
        factor, form = _SHOWN[self.name]
        words = (self.name, self.subject.removesuffix("_joint"), form.format(factor * self.value))
        return " ".join(word for word in words if word)


def cause_row(cause: Cause, subjects: dict[str, int]) -> tuple[float, float, float]:
    """A cause as numbers.

    Args:
        cause: The cause.
        subjects: The index of each name that subjects may have.
    """
    return float(NAMES.index(cause.name)), float(subjects.get(cause.subject, -1)), cause.value


def cause_of_row(row: tuple[float, float, float], subjects: tuple[str, ...]) -> Cause | None:
    """The cause of such numbers; None where the name is negative."""
    name, subject, value = row
    if not name >= 0.0:
        return None
    return Cause(NAMES[int(name)], subjects[int(subject)] if subject >= 0.0 else "", value)
