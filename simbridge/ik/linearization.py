"""The look with which an iteration begins: how far the tool is from its target, and how the joints move it.

Its mathematics is generated, for each build of arm and each task (`codegen/source.py`); the loops that call it are
written once, for all of them. The compiler picks the look by the class of the chain, of which each build has its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from simbridge.ik.kernels import kernel, loops
from simbridge.ik.kernels.lazy import Choice, compiled
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot


class Chain(NamedTuple):
    """What the loops know of the arm: see `Robot.placements` and `Robot.prismatic`; joint limits (n,)."""

    placements: Array
    prismatic: Flags
    low: Array
    high: Array


class Linearization(NamedTuple):
    """Room for a look.

    Attributes:
        target: Position (3) and rotation matrix (9).
        error: Target minus tool (6,) in base axes, of which the task sees all: translation, then the Rodrigues vector.
            What the task masks is zero.
        pull: The clamped error in the task's rows (6,), the used ones first.
        jacobian: In the task's rows (n, 6), a row a joint.
    """

    target: Array
    error: Array
    pull: Array
    jacobian: Array


aim = compiled(loops.aim)
"""aim(pose, target): a pose [x y z qx qy qz qw] as position (3) and rotation matrix (9)."""

look = Choice("look")
"""look(chain, q, target, translation_clamp, rotation_clamp, error, pull, jacobian); see `Linearization`."""


def sight_for(n: int) -> Linearization:
    """Room for a look at a chain of n joints."""
    return Linearization(np.zeros(12), np.zeros(6), np.zeros(6), np.zeros((n, 6)))


def chain_of(robot: Robot, task: str) -> tuple[Chain, str]:
    """The chain, whose class says how it looks for a task, and the text of that look."""
    module = kernel.look(robot, task)
    made = _chain_class(module)
    return made(robot.placements, robot.prismatic, robot.position_min, robot.position_max), module.text


@lru_cache(maxsize=64)
def _chain_class(module: kernel.Module) -> type[Chain]:
    made = type("Chain", (Chain,), {"__slots__": ()})
    look.declare(made, lambda: module.function("look"))
    return made
