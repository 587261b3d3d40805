"""The compiled functions of a robot, shared by all arms of one build: chains with the same places of zeros and ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simbridge.ik.kernels.cache import Store
from simbridge.ik.kernels.conditioning import Conditioning
from simbridge.ik.kernels.routine import Routine
from simbridge.ik.kernels.source import (
    conditioning_source,
    forward_dynamics_source,
    jacobians_source,
    look_source,
    poses_source,
    structure,
)
from simbridge.ik.twin import Twin
from simbridge.robot.pose import Array, Flags
from simbridge.robot.robot import Robot


class Module:
    """A generated module; of its functions, those that are asked for are compiled.

    Args:
        text: Its source.
        purpose: What it is for, as the note about compiling says it.
    """

    def __init__(self, text: str, purpose: str) -> None:
        self.text, self._purpose = text, purpose

    def routine(self, name: str) -> Routine:
        """A function of the module, compiled."""
        return Routine(name, self._purpose, self.text, lambda: self.function(name))

    def function(self, name: str, **others: Any) -> Callable[..., None]:
        """A function of the module, to be compiled; or to be run by Python, with others in the place of its helpers."""
        names: dict[str, Any] = {}
        exec(compile(self.text, Store(self.text).print(self.text), "exec"), names)
        names.update(others)
        made: Callable[..., None] = names[name]
        return made


class ForwardDynamicsKernel:
    """The loops of `loops.py` for chains of one structure."""

    def __init__(self, text: str) -> None:
        module = Module(text, "forward-dynamics solver for this build of arm")
        self.track, self.accumulate, self.solve = map(module.routine, ("track", "accumulate", "solve"))


def forward_dynamics_kernel(robot: Robot, task: str = "pose") -> ForwardDynamicsKernel:
    """The forward-dynamics loops for a robot and a task."""
    return _forward_dynamics(_build(robot.placements, robot.prismatic), task)


def look(robot: Robot, task: str) -> Module:
    """The module with the function `look`: the error and the Jacobian of a task."""
    return _look(_build(robot.placements, robot.prismatic), task)


def poses(placements: Array, prismatic: Flags) -> Routine:
    """The loop `poses` of `kinematics.py` for a chain: placements (n + 1, 4, 4), prismatic (n,)."""
    return _poses(_build(placements, prismatic))


def jacobians(placements: Array, prismatic: Flags, task: str) -> Routine:
    """The loop `jacobians` of `kinematics.py` for a chain and a task."""
    return _jacobians(_build(placements, prismatic), task)


def conditioning(
    placements: Array, prismatic: Flags, configurations: Array, conditioned: Twin, naive: Twin
) -> Conditioning:
    """Experiment A: how evenly the tool accelerates, over configurations.

    Args:
        placements, prismatic: The chain, as `Robot` has it.
        configurations: Joint positions (T, n), rad.
        conditioned, naive: The two twins.
    """
    mean, variance, matrices = np.zeros((3, 3, 6, 6))
    twins = np.array(conditioned.numbers), np.array(naive.numbers)
    _conditioning(_build(placements, prismatic))(placements, configurations, *twins, mean, variance, matrices)
    return Conditioning(mean, variance)


def mobility(placements: Array, prismatic: Flags, configurations: Array, twin: Twin) -> tuple[Array, Array]:
    """J J^T and J H^-1 J^T (6, 6, T) at joint positions (T, n), lower triangles, the rest zero.

    The generated code, run by numpy on all of them at once: for a few thousand that takes less than to compile it.
    """
    module = Module(conditioning_source(*_build(placements, prismatic).chain), "experiment")
    q, twice = np.ascontiguousarray(configurations.T), np.array(twin.numbers)
    plain, ours, same = np.zeros((3, 6, 6, len(configurations)))
    of_arrays = {"cosine_and_sine": lambda angle: (np.cos(angle), np.sin(angle))}
    module.function("mobility", **of_arrays)(placements, q, twice, twice, plain, ours, same)
    return plain, ours


class Build(NamedTuple):
    """What all arms of one build share: the structure of the frames, as bytes, and which joints slide."""

    frames: bytes
    slides: tuple[bool, ...]

    @property
    def chain(self) -> tuple[Array, tuple[bool, ...]]:
        """As the printers take it."""
        return np.frombuffer(self.frames).reshape(-1, 3, 4), self.slides


def _build(placements: Array, prismatic: Flags) -> Build:
    return _build_of(placements.tobytes(), prismatic.tobytes())


@lru_cache(maxsize=256)
def _build_of(placements: bytes, prismatic: bytes) -> Build:
    frames = structure(np.frombuffer(placements).reshape(-1, 4, 4))
    return Build(frames.tobytes(), tuple(np.frombuffer(prismatic, dtype=bool).tolist()))


@lru_cache(maxsize=64)
def _forward_dynamics(build: Build, task: str) -> ForwardDynamicsKernel:
    return ForwardDynamicsKernel(forward_dynamics_source(*build.chain, task))


@lru_cache(maxsize=64)
def _look(build: Build, task: str) -> Module:
    return Module(look_source(*build.chain, task), f"{task} error of this build of arm")


@lru_cache(maxsize=64)
def _poses(build: Build) -> Routine:
    return Module(poses_source(*build.chain), "forward kinematics of this build of arm").routine("poses")


@lru_cache(maxsize=64)
def _jacobians(build: Build, task: str) -> Routine:
    text = jacobians_source(*build.chain, task)
    return Module(text, "Jacobian of this build of arm").routine("jacobians")


@lru_cache(maxsize=64)
def _conditioning(build: Build) -> Routine:
    return Module(conditioning_source(*build.chain), "experiment for this build of arm").routine("accumulated")
