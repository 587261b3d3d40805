"""The parts that a live motion is made of, and their way to the process of its loop."""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import dataclass, field

import numpy as np

from simbridge.backends import SIMULATION
from simbridge.errors import InvalidParameter
from simbridge.ik.callable_solver import (
    CallableSolver,
    SolverFunction,
    build_solver,
    make_custom_solver,
    name_of,
)
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.robot.collision import CollisionModel
from simbridge.robot.obstacles import CollisionScene
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.sessions.inputs import Input
from simbridge.sessions.limits import ServoModel
from simbridge.sessions.motion import LiveMotion
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.phases import Order

NEEDED_SOLVER = (
    "module:function, or an object that pickle can send to the loop's process: define it in a "
    "module of its own, not in the program that is run"
)
# Number of periods, for each kind of input, after which everything is compiled.
COMPILING_PERIODS = 3
# Time between the inputs of different kinds that compile everything, s: none grows stale.
COMPILING_INTERVAL_S = 0.1


@dataclass(frozen=True)
class MotionSetup:
    """The parts of which the process of a loop makes its live motion.

    Attributes:
        robot: The arm.
        solver: The solver, made for the arm; or a user's step or factory, or its name
            `module:function`, of which the loop's process makes one.
        period: Control period, s.
        options: How inputs are treated.
        servo: How the arm follows setpoints; None for an ideal servo.
        collision_scene: The obstacles around the arm.
        max_tool_speed: Limit of the tool's speed, m/s; None for the robot's.
        preview: Whether chunks are followed one lag of the servo law ahead.
        start: Joint positions (n,), rad, at which the simulated arm begins; None for home, and on a
            controller.
        run_options: Options of the simulated arm; None for the default ones.
        engine: The backend that simulates the arm; not used on a controller.
        directory: Working directory, from which modules are imported.
        paths: Further directories from which modules are imported.
    """

    robot: Robot
    solver: Solver | SolverFunction | str
    period: float
    options: LiveOptions
    servo: ServoModel | None
    collision_scene: CollisionScene
    max_tool_speed: float | None
    preview: bool
    start: Array | None = None
    run_options: Options | None = None
    engine: str = SIMULATION
    directory: str = field(default_factory=os.getcwd)
    paths: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))

    @property
    def solver_name(self) -> str:
        """The solver's name, as in messages."""
        if isinstance(self.solver, str):
            return self.solver
        return self.solver.name if isinstance(self.solver, Solver) else name_of(self.solver)

    def to_bytes(self) -> bytes:
        """Return the setup as bytes for another process, which `unpickle_setup` reads.

        Raises:
            InvalidParameter: The solver cannot be sent to another process.
        """
        # What the program that is run defines is in its module __main__, which is another module in
        # the other process: pickle would not notice. A custom solver's function counts, too.
        solver = self.solver
        class_module = "" if isinstance(solver, str) else type(solver).__module__
        function = solver.function if isinstance(solver, CallableSolver) else solver
        function_module = getattr(function, "__module__", "")
        if "__main__" in (class_module, function_module):
            raise InvalidParameter("solver", self.solver_name, NEEDED_SOLVER)

        # The setup is pickled by itself: to read it, its modules must be importable, for which the
        # other process needs the directories first.
        try:
            pickled_setup = pickle.dumps(self)
            return pickle.dumps((self.directory, self.paths, pickled_setup))
        except Exception as error:  # what cannot be pickled fails in many ways
            reason = f"{NEEDED_SOLVER} ({type(error).__name__}: {error})"
            raise InvalidParameter("solver", self.solver_name, reason) from None

    def motion(self) -> LiveMotion:
        """Return the motion, compiled: its first period takes no longer than the others."""
        solver = self.solver
        if isinstance(solver, str):
            solver = build_solver(self.robot, solver)
        elif not isinstance(solver, Solver):
            solver = make_custom_solver(self.robot, solver)

        # A motion that is thrown away compiles everything that a motion calls, with an input for
        # poses, for twists and for joints.
        trial = self.make_motion(solver)
        trial.order(Order.ENGAGE, engagement=1)
        home_pose = trial.step(0.0).target
        trial_inputs = (
            Input("pose", home_pose, number=1, engagement=1),
            Input("twist", np.zeros(6), number=2, engagement=1),
            Input("joints", self.robot.home, number=3, engagement=1),
        )
        for k, trial_input in enumerate(trial_inputs):
            now = COMPILING_INTERVAL_S * k
            for _ in range(COMPILING_PERIODS):
                trial.step(now, 1.0, trial_input)

        return self.make_motion(solver)

    def make_motion(self, solver: Solver) -> LiveMotion:
        """Return a motion with a solver, not compiled."""
        return LiveMotion(
            solver,
            self.period,
            self.options,
            servo=self.servo,
            collisions=CollisionModel(self.robot, self.collision_scene),
            max_tool_speed=self.max_tool_speed,
            preview=self.preview,
        )


def unpickle_setup(data: bytes) -> MotionSetup:
    """Return the setup that another process sent, and import from the same places as that one.

    Raises:
        InvalidParameter: The solver's module cannot be imported here.
    """
    directory, paths, pickled_setup = pickle.loads(data)
    sys.path.extend(path for path in paths if path not in sys.path)
    os.chdir(directory)
    try:
        setup: MotionSetup = pickle.loads(pickled_setup)
    except Exception as error:  # importing foreign code may fail in any way
        reason = f"{NEEDED_SOLVER} ({type(error).__name__}: {error})"
        raise InvalidParameter("solver", "the given one", reason) from None
    return setup
