"""What solvers share whose steps are one compiled routine that goes on from where it was."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from simbridge.ik.codegen.routine import Call
from simbridge.ik.solver import Array, Solver, Target, as_pose
from simbridge.robot import Robot


class RoutineSolver(Solver):
    """A solver whose `step` and `track` are one routine; a subclass says which, and with what."""

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self._run: Call | None = None

    def reset(self, q: Array | Sequence[float]) -> None:
        super().reset(q)
        self._run = None

    def step(self, target: Target) -> Array:
        goal = as_pose(target)
        if self._run is None:
            # The same arrays at every step: to hand over new ones would take longer than an iteration.
            self._goal, self._found = np.empty((1, 7)), np.empty((1, self.robot.n))
            self._run = self._bound(self._goal, self._q, self._found)
        self._goal[0] = goal
        self._run()
        q = self._found[0].copy()
        self._stepped_to(q, goal)
        return q.copy()

    def track(self, poses: Array, q0: Array) -> Array:
        out = np.empty((len(poses), self.robot.n))
        self._bound(np.ascontiguousarray(poses, dtype=float), q0, out)()
        return out

    @abstractmethod
    def _bound(self, poses: Array, q0: Array, out: Array) -> Call:
        """The call that goes on from q0 to the poses (T, 7), and leaves joint positions in out (T, n)."""
