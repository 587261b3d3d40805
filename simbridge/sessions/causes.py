"""The causes that slow a live arm down, hold it, or refuse its inputs; none is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict


class CauseQuantity(NamedTuple):
    """The quantity that the value of a cause measures.

    Attributes:
        unit: SI unit of the value; "" for a fraction or another number without a unit.
        form: Format in which the value is shown, with the unit that is shown.
        factor: Factor from the SI unit to the unit that is shown.
        symbol: Symbol of the quantity, shown before the value; "" for none.
    """

    unit: str
    form: str
    factor: float = 1.0
    symbol: str = ""


# Kind of a cause -> what its value measures; None for a kind without a value.
QUANTITIES: dict[str, CauseQuantity | None] = {
    # Fraction of the joint's limit.
    "joint_velocity": CauseQuantity("", "{:.2f}"),
    # Largest acceleration of a joint, where inputs ask for more than the joints have.
    "acceleration": CauseQuantity("rad/s^2", "{:.1f} rad/s²"),
    # Room to the end of the joint's range.
    "joint_limit": CauseQuantity("rad", "{:.3f} rad"),
    "tool_speed": CauseQuantity("m/s", "{:.2f} m/s"),
    # Smallest singular value of the Jacobian, whose rows are in m and rad.
    "singularity": CauseQuantity("", "{:.3f}", symbol="sigma"),
    # Distance between the two bodies.
    "obstacle": CauseQuantity("m", "{:.0f} mm", 1e3),
    # Distance of the target from the nearest pose in reach.
    "reach": CauseQuantity("m", "{:.0f} mm", 1e3),
    "reach_turn": CauseQuantity("rad", "{:.2f} rad"),
    # Distance of the target from the solver's solution, which still comes nearer.
    "solver_lag": CauseQuantity("m", "{:.0f} mm", 1e3),
    "solver_lag_turn": CauseQuantity("rad", "{:.2f} rad"),
    # Fraction of the limits that is used after a stall until the arm has caught up.
    "catching_up": CauseQuantity("", "{:.2f}"),
    # Time since the newest input.
    "stale": CauseQuantity("s", "{:.2f} s"),
    # Distance and angle from the arm of a source that came back after a stall.
    "engage_again": CauseQuantity("m", "{:.0f} mm", 1e3),
    "engage_again_turn": CauseQuantity("rad", "{:.2f} rad"),
    # Distance and angle of a rejected input from the one before.
    "max_jump": CauseQuantity("m", "{:.0f} mm", 1e3),
    "max_turn": CauseQuantity("rad", "{:.2f} rad"),
    # Duration of the solver's last step.
    "solver": CauseQuantity("s", "{:.1f} ms", 1e3),
    # Fractions of full speed.
    "speed_slider": CauseQuantity("", "{:.2f}"),
    "late_commands": CauseQuantity("", "{:.2f}"),
    # The controller's payload, where it differs from that at the beginning of the session.
    "payload": CauseQuantity("kg", "{:.2f} kg"),
    "not_engaged": None,
    "halted": None,
    "disengaged": None,
    "paused": None,
    # Time since the loop began its last period.
    "loop": CauseQuantity("s", "{:.2f} s"),
}
KINDS = tuple(QUANTITIES)
# The most causes that are recorded of a period: the strongest ones.
MAX_CAUSES = 3
# Numbers in the row of a cause: the indices of its kind and its subject, and its value.
NUMBERS_PER_CAUSE = 3
# The row that stands for no cause.
NO_CAUSE = (-1.0, -1.0, 0.0)
# Causes for which the arm brakes or stands; the others slow it down, or refuse an input.
STOPS = (
    "solver",
    "loop",
    "stale",
    "engage_again",
    "engage_again_turn",
    "halted",
    "disengaged",
    "paused",
)
# Causes that refuse an input.
REFUSALS = ("not_engaged", "max_jump", "max_turn", "engage_again", "engage_again_turn")
# A loop that has not begun a period for this long, s, stands still: on a controller, the script's
# watchdog then ends the script.
STANDSTILL = 0.1
# How long a cause is still named after it has acted, s.
LINGER_S = 0.1


class CauseRecord(TypedDict):
    """A cause in JSON: in replies to network clients, and in the record of a session.

    Attributes:
        kind: Kind of the cause, one of `KINDS`; or an order or input that changed the session's
            state.
        subject: The joint, pair of bodies or obstacle that it concerns; "" for none.
        value: Value of the cause in SI units; None for a kind without one.
        unit: The unit of the value; "" for none.
        text: The cause as it is shown, such as "reach 38 mm".
    """

    kind: str
    subject: str
    value: float | None
    unit: str
    text: str


class LiveCause(NamedTuple):
    """A cause that slows a live arm down, holds it, or refuses an input.

    It is shown as a kind, a subject and a number: `str(cause)` is "joint_limit elbow 0.001 rad".

    Attributes:
        kind: Kind of the cause, such as "joint_limit"; docs/live.md explains all of them.
        subject: The joint, pair of bodies or obstacle that it concerns; "" for none.
        value: Value of the cause in SI units, such as the room that is left; None for a kind
            without one.
        unit: The unit of the value, such as "rad"; "" for a fraction or no value.
    """

    kind: str
    subject: str = ""
    value: float | None = None
    unit: str = ""

    @classmethod
    def of(cls, kind: str, subject: str = "", value: float = 0.0) -> LiveCause:
        """Return a cause with the unit of its kind.

        Args:
            kind: Kind of the cause, such as "joint_limit".
            subject: The joint, pair of bodies or obstacle that it concerns; "" for none.
            value: Value of the cause in SI units; without meaning for a kind without one.
        """
        quantity = QUANTITIES[kind]
        if quantity is None:
            return cls(kind, subject)
        return cls(kind, subject, value, quantity.unit)

    @property
    def number(self) -> str:
        """The value as it is shown, such as "38 mm"; "" for a kind without one."""
        quantity = QUANTITIES[self.kind]
        if quantity is None or self.value is None:
            return ""
        return quantity.form.format(quantity.factor * self.value)

    @property
    def short_subject(self) -> str:
        """The subject as it is shown, such as "elbow" for the joint "elbow_joint"."""
        return self.subject.removesuffix("_joint")

    @property
    def text(self) -> str:
        """The cause as it is shown: "joint_velocity wrist_3 0.93", or "reach 38 mm"."""
        quantity = QUANTITIES[self.kind]
        symbol = "" if quantity is None else quantity.symbol
        parts = (self.kind, self.short_subject, symbol, self.number)
        return " ".join(part for part in parts if part)

    def __str__(self) -> str:
        return self.text

    def record(self) -> CauseRecord:
        """Return the cause as it is written in JSON."""
        return {
            "kind": self.kind,
            "subject": self.subject,
            "value": self.value,
            "unit": self.unit,
            "text": self.text,
        }


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
        Rows of the index of the kind, the index of the subject (-1 without one), and the value (0
        without one); `NO_CAUSE` in the rows that remain.
    """
    rows = []
    for cause in causes[:MAX_CAUSES]:
        kind_index = float(KINDS.index(cause.kind))
        subject_index = float(subjects.get(cause.subject, -1))
        value = 0.0 if cause.value is None else cause.value
        rows.append((kind_index, subject_index, value))
    return rows + [NO_CAUSE] * (MAX_CAUSES - len(rows))


def cause_of_row(row: Sequence[float], subjects: tuple[str, ...]) -> LiveCause | None:
    """Return the cause of a row as `cause_rows` makes it; None for `NO_CAUSE`.

    Args:
        row: Index of the kind, index of the subject, and value.
        subjects: The names that subjects of causes may have.
    """
    kind_index, subject_index, value = row
    # Also false for nan.
    if not kind_index >= 0.0:
        return None
    subject = subjects[int(subject_index)] if subject_index >= 0.0 else ""
    return LiveCause.of(KINDS[int(kind_index)], subject, value)


class LingeringCauses:
    """Names causes for a moment longer.

    While a limit is only just reached, its name must not flicker.
    """

    def __init__(self) -> None:
        # The causes that are named, and when each acted last, s.
        self._named: list[tuple[float, LiveCause]] = []

    def update(self, now: float, causes: list[LiveCause]) -> tuple[LiveCause, ...]:
        """Return the causes that act now, s, and after them those that did a moment ago."""
        acting = {(cause.kind, cause.subject) for cause in causes}
        recent = []
        for time, cause in self._named:
            if now - time < LINGER_S and (cause.kind, cause.subject) not in acting:
                recent.append((time, cause))

        self._named = [(now, cause) for cause in causes] + recent
        return tuple(cause for _, cause in self._named)
