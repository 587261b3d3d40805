"""Robots: one description of an arm, from which every other form of it is generated."""

from typing import Literal

import lazy_loader

# Imported on first use: pinocchio takes most of the time to start, and listing the robots does not
# need it.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"load": ["load_robot"], "parts": ["Joint", "Link", "Shape"], "robot": ["Robot"]},
)

# Plain values in files, flags and arms.
Vector = tuple[float, float, float]
Six = tuple[float, float, float, float, float, float]
Task = Literal["pose", "axis", "position"]
"""The part of a target that a solver is to attain, from the most demanding to the least."""

# The largest arm that is read: movable joints, and shapes of all its links together.
MAX_JOINTS = 64
MAX_SHAPES = 1000
