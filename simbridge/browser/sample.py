"""What the studio shows of an instant, as plain data."""

from __future__ import annotations

from typing import NamedTuple

from simbridge.robot.pose import Array

SOURCES = ("sampling", "solver", "limiter", "servo law", "rest")
"""The sources of the error between the goal and the arm, in the order of the data."""


class Sample(NamedTuple):
    """What the page shows of an instant.

    Attributes:
        time: On the session's clock, s.
        q, qd: Of the arm (n,), rad and rad/s.
        solution: The solver's joint positions (n,), rad.
        target: What the solver was given (7,).
        errors: Distance by source, m: see `SOURCES`.
        distance, angle: Between the goal and the arm, m and rad, in what the task constrains.
        causes: What limits the arm now, in words.
    """

    time: float
    q: Array
    qd: Array
    solution: Array
    target: Array
    errors: tuple[float, ...]
    distance: float
    angle: float
    causes: tuple[str, ...]
