"""The compiled functions of a robot."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simbridge.ik.codegen.cache import Store
from simbridge.ik.codegen.conditioning import Conditioning
from simbridge.ik.codegen.routine import Routine
from simbridge.ik.codegen.source import conditioning_source, forward_dynamics_source, structure
from simbridge.robot import Robot

Array = NDArray[np.float64]


class Module:
    """A generated module; of its functions, those that are asked for are compiled.

    Args:
        text: Its source.
        purpose: What it is for, as the note about compiling says it.
    """

    def __init__(self, text: str, purpose: str) -> None:
        self._text, self._purpose = text, purpose

    def routine(self, name: str) -> Routine:
        """A function of the module."""
        return Routine(name, self._purpose, self._text, lambda: self._run()[name])

    def _run(self) -> dict[str, Any]:
        names: dict[str, Any] = {}
        exec(compile(self._text, Store(self._text).print(self._text), "exec"), names)
        return names


class ForwardDynamicsKernel:
    """The loops of `loops.py` for chains of one structure."""

    def __init__(self, text: str) -> None:
        module = Module(text, "forward-dynamics solver for this build of arm")
        self.track, self.accumulate, self.solve = map(module.routine, ("track", "accumulate", "solve"))


def forward_dynamics_kernel(robot: Robot, task: str = "pose") -> ForwardDynamicsKernel:
    """The forward-dynamics loops for a robot and a task; arms of one build share them, whatever their TCP."""
    return _forward_dynamics(structure(robot.placements).tobytes(), tuple(robot.prismatic.tolist()), task)


@lru_cache(maxsize=64)
def _forward_dynamics(frames: bytes, slides: tuple[bool, ...], task: str) -> ForwardDynamicsKernel:
    return ForwardDynamicsKernel(forward_dynamics_source(_placements(frames), slides, task))


@lru_cache(maxsize=64)
def _conditioning(frames: bytes, slides: tuple[bool, ...]) -> Routine:
    text = conditioning_source(_placements(frames), slides)
    return Module(text, "experiment for this build of arm").routine("accumulated")


def _placements(frames: bytes) -> Array:
    return np.frombuffer(frames).reshape(-1, 3, 4)


def conditioning(robot: Robot, configurations: Array, conditioned: Array, naive: Array) -> Conditioning:
    """Experiment A: how evenly the tool accelerates, over configurations.

    Args:
        robot: The arm.
        configurations: Joint positions (T, n), rad.
        conditioned, naive: Tool mass, tool inertia, link mass, link inertia (4,) of the two twins.
    """
    mean, variance, matrices = np.zeros((3, 3, 6, 6))
    run = _conditioning(structure(robot.placements).tobytes(), tuple(robot.prismatic.tolist()))
    run(robot.placements, configurations, conditioned, naive, mean, variance, matrices)
    return Conditioning(mean, variance)
