"""A live arm: one target a period goes through the same parts as a replayed plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType

import numpy as np

from simbridge.backends import ArmState, Backend
from simbridge.collision import MARGIN, CollisionModel
from simbridge.errors import GuardViolation
from simbridge.ik.solver import Array, Solver, Target
from simbridge.limiter import Limiter
from simbridge.robot import Robot, load_robot


class LiveArm:
    """An arm that follows targets as they come: solver, limiter and guard inside. A context manager.

    The solver begins at the arm's measured joints. Setpoints past velocity, acceleration or tool speed are limited;
    one that comes closer than 5 mm to the floor or to the arm itself, or that the guard refuses, stops the arm.

    Args:
        backend: Not yet entered.
        solver: Made for the same arm.
        max_tool_speed: m/s; the robot's by default.
        floor: Height of the floor in base_link, m; None for no floor.
    """

    def __init__(
        self, backend: Backend, solver: Solver, max_tool_speed: float | None = None, floor: float | None = 0.0
    ) -> None:
        self._backend = backend
        self._solver = solver
        robot = solver.robot
        speed = robot.max_tool_speed if max_tool_speed is None else max_tool_speed
        self._limiter = Limiter(robot, backend.period, speed)
        self._collisions = CollisionModel(robot, floor)
        self._refused = False
        self._next = robot.home
        self._states: Iterator[ArmState] | None = None

    @property
    def period(self) -> float:
        """Control period, s: one call of `servo` takes the arm this much further."""
        return self._backend.period

    def __enter__(self) -> LiveArm:
        self._backend.__enter__()
        try:
            self._begin()
        except BaseException as error:
            self._backend.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end_stream()
        finally:
            self._backend.__exit__(kind, error, trace)

    def _begin(self) -> None:
        q = self._backend.read().q
        self._solver.reset(q)
        self._limiter.reset(q)

    def _end_stream(self) -> None:
        if self._states is not None:
            # Closing the stream stops the arm.
            self._states.close()  # type: ignore[attr-defined]
            self._states = None

    def _setpoints(self) -> Iterator[Array]:
        while True:
            yield self._next

    def read(self) -> ArmState:
        """The arm as it is now."""
        return self._backend.read()

    def move_to(self, q: Array) -> None:
        """Bring the arm to joint positions q (n,), rad, by a slow, checked joint move.

        Raises:
            PlanRefused: The straight way there in joint space breaks a limit or touches something.
        """
        self._end_stream()
        self._backend.move_to(np.asarray(q, dtype=float))
        self._begin()

    def servo(self, target: Target) -> ArmState:
        """Go one control period towards a target pose of the TCP in base_link.

        Returns:
            The state at the end of the period; `setpoint` is what was really sent.

        Raises:
            InvalidParameter: The target is not a pose.
            GuardViolation: The setpoint was not let out. The arm was stopped; `recover()` begins anew.
        """
        if self._refused:
            raise GuardViolation("The arm was stopped before a collision; call recover() first.", rule="latched")
        setpoint, _ = self._limiter.next(self._solver.step(target))
        self._check_clearance(setpoint)
        self._next = setpoint
        if self._states is None:
            self._states = self._backend.stream(self._setpoints())
        try:
            return next(self._states)
        except BaseException:
            # A generator that raised is finished; the next setpoint needs a new one, after recover().
            self._states = None
            raise

    def _check_clearance(self, setpoint: Array) -> None:
        found = self._collisions.clearance(setpoint) if np.isfinite(setpoint).all() else None
        if found is None or found.distance >= MARGIN:
            return
        self._refused = True
        self._end_stream()
        raise GuardViolation(
            f"A setpoint was refused and the arm stopped: {found.bodies[0]} would come within "
            f"{found.distance * 1e3:.0f} mm of {found.bodies[1]}; {MARGIN * 1e3:.0f} mm are kept.",
            rule="collision",
            value=found.distance,
            limit=MARGIN,
        )

    def recover(self) -> None:
        """After a stop: begin anew from the measured joints. Nothing moves before the next target."""
        self._end_stream()
        self._refused = False
        self._backend.recover()
        self._begin()


def connect(
    backend: str = "pybullet",
    *,
    robot: Robot | str | os.PathLike[str] = "ur10",
    solver: Solver | None = None,
    period: float | None = None,
    max_tool_speed: float | None = None,
    realtime: bool = False,
    gui: bool = False,
    floor: float | None = 0.0,
) -> LiveArm:
    """A live arm, to be entered with `with`.

    Args:
        backend: "pybullet".
        robot: A `Robot`, a name or a file; ignored when a solver is given, which has its own.
        solver: The paper's solver by default.
        period: Control period, s; the robot's by default.
        max_tool_speed: m/s; the robot's by default.
        realtime: Pace simulated time by the wall clock.
        gui: Open the simulator's window.
        floor: Height of the floor in base_link, m; None for no floor.

    Raises:
        UnknownName: There is no such backend or robot.
    """
    from simbridge.ik.forward_dynamics import ForwardDynamics
    from simbridge.options import Options
    from simbridge.runner import open_backend

    arm = solver.robot if solver is not None else robot if isinstance(robot, Robot) else load_robot(robot)
    options = Options(period=period, realtime=realtime, gui=gui, floor=floor)
    return LiveArm(open_backend(backend, arm, options), solver or ForwardDynamics(arm), max_tool_speed, floor)
