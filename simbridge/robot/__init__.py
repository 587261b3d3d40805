"""Robots: one description of an arm, from which every other form of it is generated."""

from __future__ import annotations

import importlib
from typing import Any, Literal

# Imported on first use: pinocchio takes most of the time to start, and listing the robots does not need it.
_PUBLIC = {"Joint": "parts", "Link": "parts", "Robot": "robot", "Shape": "parts", "load_robot": "load"}

__all__ = list(_PUBLIC)

# Of plain values in files, flags and arms.
Vector = tuple[float, float, float]
Six = tuple[float, float, float, float, float, float]
Task = Literal["pose", "axis", "position"]
"""What part of a target is asked for, most first."""


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PUBLIC[name]}"), name)
