"""The causes that slow a live arm down, hold it, or refuse its inputs; none is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class NumberForm(NamedTuple):
    """The unit and format in which the number of a cause is shown.

    Attributes:
        factor: Factor from SI units to the units that are shown.
        form: Format of the number, with its unit; "" for a cause without a number.
    """

    factor: float
    form: str


# Name of a cause -> how its number is shown.
NUMBER_FORMS = {
    # Fraction of the joint's limit.
    "joint_velocity": NumberForm(1.0, "{:.2f}"),
    # Room to the end of the joint's range.
    "joint_limit": NumberForm(1.0, "{:.3f} rad"),
    "tool_speed": NumberForm(1.0, "{:.2f} m/s"),
    "singularity": NumberForm(1.0, "sigma {:.3f}"),
    "obstacle": NumberForm(1e3, "{:.0f} mm"),
    # Distance of the target from the nearest pose in reach.
    "reach": NumberForm(1e3, "{:.0f} mm"),
    "stale": NumberForm(1.0, "{:.2f} s"),
    "max_jump": NumberForm(1e3, "{:.0f} mm"),
    "max_turn": NumberForm(1.0, "{:.2f} rad"),
    "solver": NumberForm(1e3, "{:.1f} ms"),
    "speed_slider": NumberForm(1.0, "{:.2f}"),
    "late_commands": NumberForm(1.0, "{:.2f}"),
    # The controller's payload, where it differs from that at the beginning of the session.
    "payload": NumberForm(1.0, "{:.2f} kg"),
    "not_engaged": NumberForm(1.0, ""),
    "halted": NumberForm(1.0, ""),
    "disengaged": NumberForm(1.0, ""),
    "paused": NumberForm(1.0, ""),
    # Time since the loop began its last period.
    "loop": NumberForm(1.0, "{:.2f} s"),
}
NAMES = tuple(NUMBER_FORMS)
# The most causes that are recorded of a period: the strongest ones.
MAX_CAUSES = 3
# Numbers in the row of a cause: the indices of its name and its subject, and its value.
NUMBERS_PER_CAUSE = 3
# The row that stands for no cause.
NO_CAUSE = (-1.0, -1.0, 0.0)
# Causes for which the arm brakes or stands; the others slow it down, or refuse an input.
STOPS = ("solver", "loop", "stale", "halted", "disengaged", "paused")
# A loop that has not begun a period for this long, s, stands still: on a controller, the script's
# watchdog then ends the script.
STANDSTILL = 0.1
# How long a cause is still named after it has acted, s.
LINGER_S = 0.1


class LiveCause(NamedTuple):
    """A cause that slows a live arm down, holds it, or refuses an input.

    Attributes:
        name: One of `NAMES`.
        subject: The joint, pair of bodies or obstacle that it concerns; "" for none.
        value: Its number, in SI units: see `NUMBER_FORMS`.
    """

    name: str
    subject: str = ""
    value: float = 0.0

    @property
    def text(self) -> str:
        """The cause as it is shown: `joint_velocity wrist_3 0.93`, or `reach 38 mm`."""
        factor, form = NUMBER_FORMS[self.name]
        subject = self.subject.removesuffix("_joint")
        number = form.format(factor * self.value)
        return " ".join(part for part in (self.name, subject, number) if part)


def index_subjects(names: Sequence[str]) -> dict[str, int]:
    """Return the index of each name that subjects of causes may have; the first of equal names."""
    indices: dict[str, int] = {}
    for index, name in enumerate(names):
        indices.setdefault(name, index)
    return indices


def cause_rows(
    causes: Sequence[LiveCause], subjects: Mapping[str, int]
) -> list[tuple[float, float, float]]:
    """Return the causes of a period as `MAX_CAUSES` rows of numbers.

    Args:
        causes: The strongest first; more than `MAX_CAUSES` are cut off.
        subjects: The index of each name that subjects may have.

    Returns:
        Rows of the index of the name, the index of the subject (-1 without one), and the value;
        `NO_CAUSE` in the rows that remain.
    """
    rows = []
    for cause in causes[:MAX_CAUSES]:
        name_index = float(NAMES.index(cause.name))
        subject_index = float(subjects.get(cause.subject, -1))
        rows.append((name_index, subject_index, cause.value))
    return rows + [NO_CAUSE] * (MAX_CAUSES - len(rows))


def cause_of_row(row: Sequence[float], subjects: tuple[str, ...]) -> LiveCause | None:
    """Return the cause of a row as `cause_rows` makes it; None for `NO_CAUSE`.

    Args:
        row: Index of the name, index of the subject, and value.
        subjects: The names that subjects of causes may have.
    """
    name_index, subject_index, value = row
    # Also false for nan.
    if not name_index >= 0.0:
        return None
    subject = subjects[int(subject_index)] if subject_index >= 0.0 else ""
    return LiveCause(NAMES[int(name_index)], subject, value)


class LingeringCauses:
    """Names causes for a moment longer.

    Where a limit is just reached, its name must not flicker.
    """

    def __init__(self) -> None:
        # The causes that are named, and when each acted last, s.
        self._named: list[tuple[float, LiveCause]] = []

    def update(self, now: float, causes: list[LiveCause]) -> tuple[LiveCause, ...]:
        """Return the causes that act now, s, and after them those that did a moment ago."""
        acting = {(cause.name, cause.subject) for cause in causes}
        recent = []
        for time, cause in self._named:
            if now - time < LINGER_S and (cause.name, cause.subject) not in acting:
                recent.append((time, cause))

        self._named = [(now, cause) for cause in causes] + recent
        return tuple(cause for _, cause in self._named)
