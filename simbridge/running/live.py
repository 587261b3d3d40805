"""A live arm: one target per period passes through the same stages as a replayed plan."""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import Generator
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.backend import ArmState, Ask, Backend
from simbridge.errors import GuardViolation
from simbridge.ik.forward_dynamics import ForwardDynamics
from simbridge.ik.solver import Solver, Target
from simbridge.planning.limiter import Limiter
from simbridge.planning.options import Options
from simbridge.robot.collision import MARGIN, CollisionModel
from simbridge.robot.obstacles import BARE_FLOOR, CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.running.run_setup import resolve_arm
from simbridge.running.signals import ended_by_signals
from simbridge.servo.plant import Plant, controller_cycle


class LiveArm:
    """An arm that follows targets one per period, through solver, limiter and guard. A context manager.

    The solver starts at the arm's measured joints. Setpoints that exceed velocity, acceleration or tool speed are
    limited; one that comes closer than 5 mm to an obstacle or to the arm itself, or that the guard refuses, stops the
    arm.

    Args:
        backend: Not yet entered.
        solver: Made for the same arm.
        max_tool_speed: m/s; the robot's by default.
        plant: The servo law, for whose overshoot the limiter leaves room; None for the ideal servo.
    """

    def __init__(
        self,
        backend: Backend,
        solver: Solver,
        max_tool_speed: float | None = None,
        collision_scene: CollisionScene = BARE_FLOOR,
        plant: Plant | None = None,
    ) -> None:
        self._backend, self._solver = backend, solver
        robot, max_velocity = solver.robot, None
        if plant is not None:
            law = plant.law(controller_cycle(robot.period, backend.period))
            max_velocity = robot.max_velocity / law.velocity_gain(plant.phase).any
        speed = robot.max_tool_speed if max_tool_speed is None else max_tool_speed
        self._limiter = Limiter(robot, backend.period, speed, max_velocity)
        self._collisions = CollisionModel(robot, collision_scene)
        self._refused = False
        self._next = robot.home
        self._states: Generator[ArmState, None, None] | None = None

    @property
    def period(self) -> float:
        """Control period, s: one call of `servo` advances the arm by this time."""
        return self._backend.period

    def __enter__(self) -> LiveArm:
        with contextlib.ExitStack() as stack:
            stack.enter_context(ended_by_signals())
            stack.enter_context(self._backend)
            self._begin()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._end_stream()
        finally:
            self._stack.__exit__(kind, error, trace)

    def _begin(self) -> None:
        q = self._backend.read().q
        self._solver.reset(q)
        self._limiter.reset(q)

    def _end_stream(self) -> None:
        if self._states is not None:
            # Closing the stream stops the arm.
            self._states.close()
            self._states = None

    def read(self) -> ArmState:
        """The current state of the arm."""
        return self._backend.read()

    def move_to(self, q: Array) -> None:
        """Move to joint positions q (n,), rad, by a slow, checked joint motion.

        Raises:
            PlanRefused: The straight line in joint space violates a limit or collides.
        """
        self._end_stream()
        self._backend.move_to(np.asarray(q, dtype=float))
        self._begin()

    def servo(self, target: Target) -> ArmState:
        """Move for one control period towards a target pose of the TCP in base_link.

        Returns:
            The state at the end of the period; `setpoint` is what was sent.

        Raises:
            InvalidParameter: The target is not a pose, or the answer of a custom solver is no joint positions.
            ForeignSolverError: A custom solver failed.
            GuardViolation: The setpoint was refused and the arm was stopped; call `recover()` to start again.
        """
        if self._refused:
            raise GuardViolation(
                "The arm was stopped before a collision; call recover() first.", rule="latched"
            )
        setpoint, _ = self._limiter.next(self._solver.step(target))
        found = self._collisions.clearance(setpoint) if np.isfinite(setpoint).all() else None
        if found is not None and found.distance < MARGIN:
            self._refused = True
            self._end_stream()
            raise GuardViolation(
                f"A setpoint was refused and the arm stopped: {found.description}.",
                rule="collision",
                value=found.distance,
                limit=MARGIN,
            )
        self._next = setpoint
        if self._states is None:
            self._states = self._backend.stream(self._next for _ in itertools.count())
        try:
            return next(self._states)
        except BaseException:
            # A generator that raised is finished: after recover(), a new one is needed.
            self._states = None
            raise

    def recover(self) -> None:
        """After a stop: start again from the measured joints. Nothing moves before the next target."""
        self._end_stream()
        self._refused = False
        self._backend.recover()
        self._begin()


def connect(
    backend: str = SIMULATION,
    *,
    robot: Robot | str | os.PathLike[str] | None = None,
    solver: Solver | None = None,
    ask: Ask | None = None,
    **choices: Any,
) -> LiveArm:
    """A live arm, to be entered with `with`.

    On a controller, the state that `servo` returns is the newest, which belongs to the previous setpoint; if more than
    100 ms pass between two calls, the arm is stopped.

    Args:
        backend: A name in `BACKENDS`.
        robot: A `Robot`, a name or a file; the cell's, or else ur10, by default. Ignored if a solver is given: it has
            its own.
        solver: The paper's solver by default.
        ask: Displays facts and asks for confirmation before a real arm moves; without it, only a cell file can confirm.
        choices: Fields of `Options` that do not concern a scenario: host="192.168.1.10", cell=..., max_tool_speed=0.1.
            Feedforward, which needs a trajectory known in advance, is not used.

    Raises:
        UnknownName: There is no such backend or robot.
        InvalidParameter: An argument is invalid or contradicts the cell.
        ControllerError: One of its subclasses: the controller cannot be used.
    """
    controller, arm, options = resolve_arm(
        backend, None if solver is not None else robot, solver, Options(**choices)
    )
    if options.feedforward == "on":
        warnings.warn(
            "Feedforward is off in this live session: it needs to know where the targets go next. A trajectory that is "
            "known in advance can use it: simbridge.run.",
            stacklevel=2,
        )
        options = replace(options, feedforward="off")
    chosen = backend_class(backend)(arm, options, ask=ask)
    chosen.planned_for = controller
    return LiveArm(
        chosen,
        solver or ForwardDynamics(arm),
        options.max_tool_speed,
        options.collision_scene,
        options.plant_model if options.servo == "servoj" else None,
    )
