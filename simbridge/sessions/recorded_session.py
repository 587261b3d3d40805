"""A recorded live session as the scenario of a run: arm, options, and inputs solved again."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.evaluation.evaluation import Evaluation
from simbridge.ik.parameters import SolverParameters
from simbridge.ik.settings import ALL_SOLVERS, is_function
from simbridge.ik.solver import Solver
from simbridge.planning.options import Options
from simbridge.planning.plan import Plan
from simbridge.planning.scenario import Scenario
from simbridge.recording.run_directory import RunDirectory
from simbridge.recording.run_record import BackendRecord, LiveRecord, SessionRecord
from simbridge.recording.samples import LogColumns
from simbridge.robot.cell_file import load_cell
from simbridge.robot.collision import CollisionModel
from simbridge.robot.load import load_robot
from simbridge.robot.robot import Robot
from simbridge.servo.plant import controller_cycle
from simbridge.sessions.inputs import Input, InputKind, TwistFrame
from simbridge.sessions.limits import ServoModel
from simbridge.sessions.motion import LiveMotion, MotionStep
from simbridge.sessions.options import Filter, LiveHold, LiveOptions
from simbridge.sessions.phases import LivePhase, Order
from simbridge.sessions.record import InputRecord, read_inputs
from simbridge.text import counted
from simbridge.trajectory.read_options import ReadOptions
from simbridge.trajectory.trajectory import Trajectory

# The only backend that keeps a tool speed of its own, below the robot's.
SLOW_BACKEND = "real"
# Fraction of the largest acceleration with which the arm is braked where a record ends in motion.
BRAKING_FRACTION = 0.9


@dataclass(frozen=True)
class RecordedSession:
    """A live session on disk.

    Attributes:
        path: Directory of the session.
        record: What was recorded of its settings.
    """

    path: Path
    record: SessionRecord

    @staticmethod
    def at(path: str | os.PathLike[str]) -> RecordedSession | None:
        """Return the session in a directory; None if there is none.

        Raises:
            NotARun: The session is broken.
        """
        directory = RunDirectory(Path(path))
        if not directory.settings_file.is_file():
            return None
        record = directory.settings()
        if not isinstance(record, SessionRecord):
            return None
        return RecordedSession(directory.path, record)

    @cached_property
    def run(self) -> Evaluation:
        """The session, read back; where its log lacks periods, this warns.

        Raises:
            NotARun, LogReadError: A part is missing or broken.
            SimbridgeError: The session was never engaged.
        """
        run = Evaluation.read(self.path)
        missing = 0 if run.session is None else run.session.missing_periods
        if missing:
            warnings.warn(
                f"The log of {self.path} lacks {counted(missing, 'control period')}, whose states "
                "never arrived: in those, the replay differs from what was sent.",
                stacklevel=2,
            )
        return run

    def arm(self, home: list[float] | None = None, links: Mapping[str, Any] | None = None) -> Robot:
        """Return the arm of the session, without TCP and payload.

        Args:
            home: Joint positions (n,), rad; the session's by default.
            links: Choice of links, as in `Options.links`; a link that is named replaces the
                session's.

        Raises:
            InvalidParameter: The calling program had defined the arm, or it has no links to choose.
        """
        robot = self.record.robot
        if not robot.is_built_in and not Path(robot.source).is_file():
            needed = f"given: the arm of {self.path} was defined by a program, or its file is gone"
            raise InvalidParameter("robot", robot.name, needed)

        recorded_links = {
            "base": robot.base,
            "tip": robot.tip,
            "packages": robot.package or (),
            "xacro_args": robot.xacro_arg or (),
        }
        chosen_links = {name: value for name, value in (links or {}).items() if value}
        return load_robot(
            robot.name if robot.is_built_in else robot.source,
            home=home or robot.home,
            **{**recorded_links, **chosen_links},
        )

    def options(self, options: Options, backend: str) -> Options:
        """Return the options of a run, completed from the session.

        Raises:
            InvalidParameter: An option does not apply to a session.
            InputFileError: The session's cell cannot be read.
        """
        refused = planning_flags(options)
        if options.reading != ReadOptions():
            refused.append("options of reading a file")
        if refused:
            needed = f"repeated as it was, without {' and '.join(refused)}"
            raise InvalidParameter("session", self.path, needed)

        cell_file = None if self.record.cell is None else self.record.cell.file
        if options.cell is None and cell_file:
            options = replace(options, cell=load_cell(cell_file))

        # The session completes the options that are not set.
        missing = {}
        for name, value in self._recorded_options(options, backend).items():
            if getattr(options, name) in (None, ()):
                missing[name] = value
        return replace(options, **missing)

    def _recorded_options(self, options: Options, backend: str) -> dict[str, Any]:
        """Return the options of the session that apply to a run.

        The run may set the period, the floor and the tool's speed itself. Tool, kinematics, and
        servo with its tuning are left out if the run names its own.

        Args:
            options: The options of the run, which decide what applies.
            backend: The name of the run's backend.
        """
        floor = self.record.scenario.floor
        robot = self.record.robot
        recorded: dict[str, Any] = {
            "period": self.record.backend.period,
            "floor": "none" if floor is None else floor,
        }
        # A cell says itself what is mounted on the arm.
        if options.cell is None:
            recorded["tcp"] = tuple(robot.tcp) if any(robot.tcp) else ()
            recorded["payload"] = robot.payload or None
        if backend != SLOW_BACKEND:
            recorded["max_tool_speed"] = robot.max_tool_speed

        # Any kinematics, another servo, and any tuning of it, that the run names replace the
        # session's.
        if options.kinematics_source is None and self.record.kinematics.is_calibrated:
            recorded["kinematics"] = self.path
        has_same_servo = options.servo in (None, self.record.backend.servo)
        tuning = (options.plant, options.servo_gain, options.servo_lookahead)
        if has_same_servo and all(value is None for value in tuning):
            recorded |= _servo_options(self.record.backend, options)

        return recorded

    @property
    def solver(self) -> SolverParameters | str:
        """The settings of the session's solver, or the name `module:function` of a custom one.

        Raises:
            InvalidParameter: The solver was an object of a program.
        """
        name = self.record.solver.name
        if name in ALL_SOLVERS:
            return ALL_SOLVERS[name](**self.record.solver.parameters)
        if is_function(name):
            return name
        needed = (
            f"given with --solver: that of {self.path} was an object of a program, and cannot be "
            "made again"
        )
        raise InvalidParameter("solver", name, needed)

    def scenario(self, *, solved: bool) -> Scenario:
        """Return the targets of the session as a scenario.

        Args:
            solved: Whether the inputs are solved again: then the scenario has the session's solver,
                unless that is a function.
        """
        chosen_solver: dict[str, Any] = {}
        if solved and not isinstance(self.solver, str):
            chosen_solver["solver"] = self.solver

        description = f"The inputs of a live session on {self.record.backend.name}."
        return Scenario(
            self.run.plan.trajectory,
            description,
            hold="zero-order",
            on_limits="limit",
            name=self.record.scenario.name,
            file=self.path.resolve(),
            **chosen_solver,
        )

    def solve_again(self, solver: Solver, options: Options) -> Plan:
        """Return the plan of the recorded inputs, solved again with completed options.

        Each input is taken at the period that used it; the plan is not checked yet. With the
        session's solver and settings the setpoints are the recorded ones, bit for bit. An
        engagement begins at its recorded joints if something else had moved the arm before it;
        otherwise it goes on from where the engagement before, solved again, has left the arm.

        Args:
            solver: The solver, made for the arm of the run.
            options: The options of the run, completed from the session.

        Raises:
            NotARun, LogReadError: A part of the session is missing or broken.
            SimbridgeError: The session was never engaged.
        """
        log = self.run.log
        live = log.live
        period = self.run.plan.period
        motion = self._motion(solver, options)
        # An input without a number was refused when it was given: no period took it.
        inputs = {record.number: record for record in read_inputs(self.path) if record.number}

        # The stamp of each period, s, and its step.
        stamps: list[float] = []
        steps: list[MotionStep] = []
        for k, stamp in enumerate(log.stamp.tolist()):
            now = float(live["now"][k])

            # With another solver the arm may need longer to come to rest than it did: use the time
            # before the next engagement, of which the log has no samples. Another period fits in
            # if more than half a one is left between it and the sample of the engagement.
            if live["order"][k] == Order.ENGAGE:
                while motion.phase is LivePhase.DISENGAGING and stamps[-1] + 1.5 * period < stamp:
                    stamps.append(stamps[-1] + period)
                    steps.append(motion.step(now))
            _repeat_order(motion, log, k)

            # The input that this period took, if any.
            number = int(live["input"][k])
            if number and number not in inputs:
                warnings.warn(
                    f"The record of {self.path} does not hold input {number}: the session is "
                    "solved again until then.",
                    stacklevel=2,
                )
                break
            newest = _input_of(inputs[number]) if number else None

            # The period itself.
            stamps.append(stamp)
            steps.append(motion.step(now, float(live["rate"][k]), newest))

        return _brake_at_end(_plan_of_steps(solver.robot, period, stamps, steps), solver.robot)

    def recorded_plan(self, robot: Robot) -> Plan:
        """Return the plan of the recorded setpoints.

        If the record ends in motion, the arm is braked.

        Raises:
            NotARun, LogReadError: A part of the session is missing or broken.
            SimbridgeError: The session was never engaged.
        """
        return _brake_at_end(self.run.plan, robot)

    def _motion(self, solver: Solver, options: Options) -> LiveMotion:
        """Return what makes setpoints of inputs as in the session, with a run's solver and options.

        Args:
            solver: The solver of the run.
            options: The options of the run, completed from the session.

        Raises:
            InvalidParameter: The run has another period.
        """
        live = self.record.live
        period = self.record.backend.period
        if options.period != period:
            raise InvalidParameter(
                "period", f"{options.period} s", f"the session's, {period} s (--period)"
            )

        # The law of the run's servoj limits the setpoints, too. An ideal servo has none.
        plant = options.plant_model
        servo = None
        if options.servo == "servoj":
            law = plant.law(controller_cycle(solver.robot.period, period))
            servo = ServoModel(law, plant.phase)

        return LiveMotion(
            solver,
            period,
            _live_options(live),
            servo=servo,
            collisions=CollisionModel(solver.robot, options.collision_scene),
            max_tool_speed=options.max_tool_speed,
            preview=live.preview,
        )


def _repeat_order(motion: LiveMotion, log: LogColumns, k: int) -> None:
    """Let a motion do what the recorded one was asked to at sample k, besides inputs.

    Args:
        motion: The motion that solves the inputs again.
        log: The log of the session.
        k: Index of the sample.
    """
    order = Order(int(log.live["order"][k]))
    if _is_placed(log, k, order):
        motion.rest_at(log.setpoint[k])
    if order is not Order.NONE:
        motion.order(order, engagement=int(log.live["engagement"][k]))


def _is_placed(log: LogColumns, k: int, order: Order) -> bool:
    """Return whether something else than the session had put its arm where it is at sample k.

    Args:
        log: The log of the session.
        k: Index of the sample.
        order: The order that was taken in it.
    """
    # A pause at the pendant stops the arm where it is.
    if order in (Order.PAUSE, Order.RESUME) or log.live["phase"][k] == LivePhase.PAUSED:
        return True
    if order is not Order.ENGAGE:
        return False

    # A loop begins with the arm placed where it is. Within a loop, an engagement goes on from where
    # the one before left the arm, unless a stop moved it.
    begins_loop = k == 0 or log.live["period"][k] < log.live["period"][k - 1]
    return bool(begins_loop) or not np.array_equal(log.setpoint[k], log.setpoint[k - 1])


def _plan_of_steps(
    robot: Robot, period: float, stamps: list[float], steps: list[MotionStep]
) -> Plan:
    """Return the plan of the steps of a motion, with their stamps in s."""
    solution = np.array([step.solution for step in steps])
    setpoints = np.array([step.setpoint for step in steps])
    poses = np.array([step.target for step in steps])
    targets = Trajectory(np.array(stamps), poses, source="live inputs")

    return Plan(
        checksum=robot.checksum,
        period=period,
        trajectory=targets,
        hold="zero-order",
        trajectory_times=targets.elapsed.copy(),
        solution=solution,
        setpoints=setpoints,
        limited=(solution != setpoints).any(axis=1),
    )


def planning_flags(options: Options) -> list[str]:
    """Return the options that are set and would change a plan, as flags.

    Where a plan is only replayed, they are refused.
    """
    is_set = {
        "--speed-scale": options.speed_scale != 1.0,
        "--hold": bool(options.hold),
        "--on-limits": bool(options.on_limits),
        "sampling": options.sampling is not None,
        "--start": bool(options.start),
    }
    return [flag for flag in is_set if is_set[flag]]


def _brake_at_end(plan: Plan, robot: Robot) -> Plan:
    """Return a plan that ends at rest.

    A record may end in motion, as that of a session that was killed.

    Args:
        plan: The recorded plan.
        robot: The arm, whose limit of acceleration holds while it brakes.
    """
    # The joints' velocities (n,), rad/s (m/s for a prismatic joint), in the last period.
    velocity = np.zeros(robot.n)
    if plan.samples > 1:
        velocity = (plan.setpoints[-1] - plan.setpoints[-2]) / plan.period

    # Brake all joints in proportion: the fastest one loses the most that it may in a period.
    max_change = BRAKING_FRACTION * robot.max_acceleration * plan.period
    setpoint = plan.setpoints[-1]
    setpoints = []
    fastest = float(np.abs(velocity).max())
    while fastest > 0.0:
        velocity = max(0.0, 1.0 - max_change / fastest) * velocity
        setpoint = setpoint + velocity * plan.period
        setpoints.append(setpoint)
        fastest = float(np.abs(velocity).max())

    # The last target is held meanwhile, one pose a period.
    count = len(setpoints)
    elapsed = plan.period * np.arange(1, count + 1)
    trajectory = plan.trajectory
    held_poses = np.repeat(trajectory.poses[-1:], count, axis=0)
    extended_trajectory = replace(
        trajectory,
        times=np.concatenate([trajectory.times, trajectory.times[-1] + elapsed]),
        poses=np.concatenate([trajectory.poses, held_poses]),
    )
    trajectory_times = plan.trajectory_times
    extended_times = np.concatenate([trajectory_times, trajectory_times[-1] + elapsed])

    # Append the setpoints. They count as limited: the arm is kept from the held target. No solver
    # has been asked, so that the solution is the setpoints.
    braking = np.array(setpoints).reshape(count, robot.n)
    return replace(
        plan,
        trajectory=extended_trajectory,
        trajectory_times=extended_times,
        solution=np.concatenate([plan.solution, braking]),
        setpoints=np.concatenate([plan.setpoints, braking]),
        limited=np.concatenate([plan.limited, np.ones(count, dtype=bool)]),
    )


def _live_options(record: LiveRecord) -> LiveOptions:
    """Return the options of a session that its record holds."""
    return LiveOptions(
        hold=cast(LiveHold, record.hold),
        timeout=record.timeout,
        max_jump=(record.max_jump[0], record.max_jump[1]),
        catch_up=record.catch_up,
        filter=cast(Filter, record.filter),
        filter_cutoff=record.filter_cutoff,
        lead=record.lead,
    )


def _servo_options(record: BackendRecord, options: Options) -> dict[str, Any]:
    """Return the options of the servo that a session had."""
    if record.servo == "ideal":
        return {} if options.feedforward == "on" else {"servo": "ideal"}
    plant_file = record.plant_file or ""
    return {
        "servo_gain": record.servo_gain,
        "servo_lookahead": record.servo_lookahead,
        "plant": plant_file if Path(plant_file).is_file() else None,
    }


def _input_of(record: InputRecord) -> Input:
    """Return the input of a record."""
    return Input(
        cast(InputKind, record.kind),
        np.array(record.values, dtype=float),
        record.number,
        record.engagement,
        cast(TwistFrame, record.frame),
        record.relative,
        record.sent,
    )
