"""What the colours of the page mean, and the lines of the error budget that they stand for.

A colour means one thing on the whole page. They are those of Okabe and Ito ("Color Universal Design", 2008), which can
be told apart with every kind of colour vision; grey and black stand for what is wanted and for the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

REFERENCE = "#9a9a9a"
SETPOINT = "#0072b2"
ATTAINED = "#d55e00"

SAMPLING = "#cc79a7"
SOLVER = "#009e73"
LIMITER = "#e69f00"
PLANT = "#56b4e9"
TRACKING = "#1a1a1a"

LIMIT = "#1a1a1a"
INK = "#333333"
GRID = "#e4e4e4"


@dataclass(frozen=True)
class BudgetLine:
    """A line of the error budget.

    Attributes:
        name: Its attribute in `ErrorBudget`; in the summary it is called `<name>_error`.
        colour: Of its curve and of its swatches.
        culprit: Who causes it, as a sentence names it.
        meaning: What it is, for the small print.
    """

    name: str
    colour: str
    culprit: str
    meaning: str

    @property
    def key(self) -> str:
        """Its key in the summary."""
        return f"{self.name}_error"

    @property
    def title(self) -> str:
        return self.name.capitalize()


PARTS = (
    BudgetLine(
        "sampling",
        SAMPLING,
        "sampling (a target held between two samples)",
        "Reference to target: what it costs to hold the last sample of a slow source.",
    ),
    BudgetLine(
        "solver",
        SOLVER,
        "the solver (inverse kinematics that has not converged yet)",
        "Target to solution: what the inverse kinematics had not reached yet.",
    ),
    BudgetLine(
        "limiter",
        LIMITER,
        "the limiter (setpoints changed to keep velocity and acceleration)",
        "Solution to setpoint: what was changed to keep velocity and acceleration within their limits.",
    ),
    BudgetLine(
        "plant",
        PLANT,
        "the plant (the controller and the arm)",
        "Setpoint to attained: the controller and the arm.",
    ),
)
"""The four parts of the tracking error, in the order in which they arise."""

WHOLE = BudgetLine("tracking", TRACKING, "", "Reference to attained: all of it. The parts add up as vectors.")
