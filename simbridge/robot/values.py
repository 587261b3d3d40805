"""Types of plain values in files, flags and arms."""

from typing import Literal

Vector = tuple[float, float, float]
Six = tuple[float, float, float, float, float, float]
Task = Literal["pose", "axis", "position"]
"""What part of a target is asked for, most first."""
