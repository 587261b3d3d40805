"""The compiled functions of a robot."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from simbridge.ik.codegen.cache import Module
from simbridge.ik.codegen.conditioning import Conditioning
from simbridge.ik.codegen.source import conditioning_source, forward_dynamics_source, structure
from simbridge.robot import Robot

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_FLOAT, _COUNT = types.float64, types.int64


def _given(dimensions: int) -> types.Array:
    """An array that is only read, so that read-only ones may be given as well."""
    return types.Array(_FLOAT, dimensions, "C", readonly=True)


_OUT = {dimensions: types.Array(_FLOAT, dimensions, "C") for dimensions in (1, 2, 3)}
_TRACK = (_given(3), _given(2), _given(2), _OUT[1], _given(1), _COUNT, _OUT[2])
_SOLVE = (_given(3), _given(1), _given(2), _given(2), _given(1), _COUNT, _given(1), types.boolean)
_CONDITIONING = (_given(3), _given(2), _given(1), _given(1), _OUT[3], _OUT[3], _OUT[3])


class ForwardDynamicsKernel:
    """The loops of `loops.py` for chains of one structure; each is compiled when it is first used."""

    def __init__(self, text: str) -> None:
        self._module = Module(text, "forward-dynamics solver for this build of arm")

    @cached_property
    def track(self) -> Any:
        """`loops.track`."""
        return self._module.function("track", _TRACK)

    @cached_property
    def accumulate(self) -> Any:
        """`loops.accumulate`."""
        return self._module.function("accumulate", _TRACK)

    @cached_property
    def solve(self) -> Any:
        """`loops.solve`."""
        return self._module.function("solve", _SOLVE)


def forward_dynamics_kernel(robot: Robot, task: str = "pose") -> ForwardDynamicsKernel:
    """The forward-dynamics loops for a robot and a task; arms of one build share them, whatever their TCP."""
    return _forward_dynamics(structure(robot.placements).tobytes(), tuple(robot.prismatic.tolist()), task)


@lru_cache(maxsize=64)
def _forward_dynamics(frames: bytes, slides: tuple[bool, ...], task: str) -> ForwardDynamicsKernel:
    return ForwardDynamicsKernel(forward_dynamics_source(_placements(frames), slides, task))


@lru_cache(maxsize=64)
def _conditioning(frames: bytes, slides: tuple[bool, ...]) -> Any:
    text = conditioning_source(_placements(frames), slides)
    return Module(text, "experiment for this build of arm").function("accumulated", _CONDITIONING)


def _placements(frames: bytes) -> Array:
    return np.frombuffer(frames).reshape(-1, 3, 4)


def conditioning(robot: Robot, configurations: Array, conditioned: Array, naive: Array) -> Conditioning:
    """Experiment A: how evenly the tool accelerates, over configurations.

    Args:
        robot: The arm.
        configurations: Joint positions (T, n), rad.
        conditioned, naive: Tool mass, tool inertia, link mass, link inertia (4,) of the two twins.
    """
    mean, variance = np.zeros((3, 6, 6)), np.zeros((3, 6, 6))
    diagonals = np.empty((3, len(configurations), 6))
    run = _conditioning(structure(robot.placements).tobytes(), tuple(robot.prismatic.tolist()))
    run(robot.placements, configurations, conditioned, naive, mean, variance, diagonals)
    return Conditioning(mean, variance, diagonals)
