"""What solvers share whose steps are one compiled routine that goes on from where it was."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from simbridge.ik.inputs import Target, as_pose
from simbridge.ik.kernels.routine import Call
from simbridge.ik.solver import Solver
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot


class RoutineSolver(Solver):
    """A solver whose `step` and `track` are one routine; a subclass says which, and with what."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self._run: Call | None = None
        self._memory: Array | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy goes on from the same memory, in a call of its own.
        memory = None if self._memory is None else self._memory.copy()
        return {**self.__dict__, "_run": None, "_memory": memory}

    def reset(self, q: Array | Sequence[float]) -> None:
        super().reset(q)
        self._run = self._memory = None

    def step(self, target: Target) -> Array:
        goal = as_pose(target)
        if self._run is None:
            # The same arrays at every step: to hand over new ones would take longer than an iteration.
            self._goal, self._found = np.empty((1, 7)), np.empty((1, self.robot.n))
            if self._memory is None:
                self._memory = self._memory_at(self._q)
            self._run = self._bound(self._goal, self._memory, self._found)
        self._goal[0] = goal
        self._run()
        q = self._found[0].copy()
        self._stepped_to(q, goal)
        return q.copy()

    def _track(self, poses: Array, q0: Array) -> Array:
        out = np.empty((len(poses), self.robot.n))
        self._bound(poses, self._memory_at(q0), out)()
        return out

    def _memory_at(self, q: Array) -> Array:
        """What the routine keeps from one target to the next, of an arm at rest at q (n,): that and nothing else."""
        return q.copy()

    @abstractmethod
    def _bound(self, poses: Array, memory: Array, out: Array) -> Call:
        """The call that goes on to the poses (T, 7), memory with it, and leaves joint positions in out (T, n)."""
