"""A recorded live session as the scenario of a run: the arm and options that it had, and its inputs solved again."""

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
from simbridge.ik.settings import SOLVERS, is_function
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
from simbridge.trajectory.files import ReadOptions
from simbridge.trajectory.trajectory import Trajectory

# The only backend that keeps a tool speed of its own, below the robot's.
_SLOW = "real"
# Share of the acceleration with which a record that ends in motion is ended.
_OF_ACCELERATION = 0.9


@dataclass(frozen=True)
class RecordedSession:
    """The directory of a live session (path), and its record."""

    path: Path
    record: SessionRecord

    @staticmethod
    def at(path: str | os.PathLike[str]) -> RecordedSession | None:
        """The session in a directory; None where there is none.

        Raises:
            NotARun: It is broken.
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
            SimbridgeError: It was never engaged.
        """
        run = Evaluation.read(self.path)
        missing = 0 if run.session is None else run.session.missing_periods
        if missing:
            warnings.warn(
                f"The log of {self.path} lacks {counted(missing, 'control period')}, whose states never arrived: what "
                "is replayed differs from what was sent there.",
                stacklevel=2,
            )
        return run

    def arm(self, home: list[float] | None = None, links: Mapping[str, Any] | None = None) -> Robot:
        """The arm of the session, without TCP and payload.

        Args:
            home: Joint positions (n,), rad; the session's by default.
            links: Those of `Options.links` that are given replace the session's.

        Raises:
            InvalidParameter: The calling program had defined it, or it has no links to choose.
        """
        robot = self.record.robot
        if not robot.is_built_in and not Path(robot.source).is_file():
            needed = f"given: the arm of {self.path} was defined by a program, or its file is gone"
            raise InvalidParameter("robot", robot.name, needed)
        recorded_links = {"base": robot.base, "tip": robot.tip, "packages": robot.package or ()}
        chosen_links = {name: value for name, value in (links or {}).items() if value}
        return load_robot(
            robot.name if robot.is_built_in else robot.source,
            home=home or robot.home,
            **{**recorded_links, **chosen_links},
        )

    def options(self, options: Options, backend: str) -> Options:
        """The options of a run, completed from the session.

        Raises:
            InvalidParameter: One of them does not apply to a session.
            InputFileError: The session's cell cannot be read.
        """
        scenario, robot, arm = self.record.scenario, self.record.robot, self.record.backend
        reading = ["options of reading a file"] if options.reading != ReadOptions() else []
        if given := [*planning_flags(options), *reading]:
            raise InvalidParameter(
                "session", self.path, f"repeated as it was, without {' and '.join(given)}"
            )
        file = None if self.record.cell is None else self.record.cell.file
        if options.cell is None and file:
            options = replace(options, cell=load_cell(file))
        found: dict[str, Any] = {
            "period": arm.period,
            "floor": "none" if scenario.floor is None else scenario.floor,
        }
        if options.cell is None:
            found |= {
                "tcp": tuple(robot.tcp) if any(robot.tcp) else (),
                "payload": robot.payload or None,
            }
        if backend != _SLOW:
            found["max_tool_speed"] = robot.max_tool_speed
        if options.kinematics_source is None and self.record.kinematics.is_calibrated:
            found["kinematics"] = self.path
        if (options.plant, options.servo_gain, options.servo_lookahead) == (None, None, None):
            found |= _servo(arm, options)
        missing = {
            name: value for name, value in found.items() if getattr(options, name) in (None, ())
        }
        return replace(options, **missing, servo=found.get("servo", options.servo))

    @property
    def solver(self) -> SolverParameters | str:
        """The settings of the session's solver, or the name `module:function` of a custom one.

        Raises:
            InvalidParameter: It was given as an object.
        """
        name = self.record.solver.name
        if name in SOLVERS:
            return SOLVERS[name](**self.record.solver.parameters)
        if is_function(name):
            return name
        needed = f"given (--solver): that of {self.path} was an object of a program, and cannot be made again"
        raise InvalidParameter("solver", name, needed)

    def scenario(self, *, solved: bool) -> Scenario:
        """The targets of the session as a scenario.

        Args:
            solved: Whether the inputs are solved again: then it has the session's solver, unless that is a function.
        """
        words = f"The inputs of a live session on {self.record.backend.name}."
        solver: dict[str, Any] = {}
        if solved and not isinstance(made := self.solver, str):
            solver["solver"] = made
        return Scenario(
            self.run.plan.trajectory,
            words,
            hold="zero-order",
            on_limits="limit",
            name=self.record.scenario.name,
            file=self.path.resolve(),
            **solver,
        )

    def solved_again(self, solver: Solver, options: Options) -> Plan:
        """The recorded inputs solved again with completed options, each at the period that used it; not checked yet.

        With the session's solver and settings the setpoints are the recorded ones, bit for bit. An engagement begins at
        its recorded joints; where the arm had not been moved since the one before, at those where this one left it.

        Raises:
            NotARun, LogReadError: A part of the session is missing or broken.
            SimbridgeError: It was never engaged.
        """
        log = self.run.log
        live = log.live
        period = self.run.plan.period
        motion = self._motion(solver, options)
        inputs = {record.number: record for record in read_inputs(self.path) if record.number}

        stamps: list[float] = []
        steps: list[MotionStep] = []
        for k, stamp in enumerate(log.stamp.tolist()):
            order = Order(int(live["order"][k]))
            now = float(live["now"][k])
            if order is Order.ENGAGE:
                # Another solver may need longer to come to rest.
                while motion.phase is LivePhase.DISENGAGING and stamps[-1] + 1.5 * period < stamp:
                    stamps.append(stamps[-1] + period)
                    steps.append(motion.step(now))
            if _is_placed(log, k, order):
                motion.rest_at(log.setpoint[k])
            if order is not Order.NONE:
                motion.order(order, engagement=int(live["engagement"][k]))

            number = int(live["input"][k])
            if number and number not in inputs:
                lacks = f"The record of {self.path} does not hold input {number}"
                warnings.warn(f"{lacks}: the session is solved again until then.", stacklevel=2)
                break
            newest = _input(inputs[number]) if number else None
            stamps.append(stamp)
            steps.append(motion.step(now, float(live["rate"][k]), newest))

        solution = np.array([step.solution for step in steps])
        setpoints = np.array([step.setpoint for step in steps])
        poses = np.array([step.target for step in steps])
        targets = Trajectory(np.array(stamps), poses, source="live inputs")
        plan = Plan(
            solver.robot.checksum,
            period,
            targets,
            "zero-order",
            targets.elapsed.copy(),
            solution,
            setpoints,
            (solution != setpoints).any(axis=1),
        )
        return _to_rest(plan, solver.robot)

    def recorded_plan(self, robot: Robot) -> Plan:
        """The recorded setpoints; where the record ends in motion, the arm is braked.

        Raises:
            NotARun, LogReadError: A part of the session is missing or broken.
            SimbridgeError: It was never engaged.
        """
        return _to_rest(self.run.plan, robot)

    def _motion(self, solver: Solver, options: Options) -> LiveMotion:
        live, period = self.record.live, self.record.backend.period
        if options.period != period:
            raise InvalidParameter(
                "period", f"{options.period} s", f"the session's, {period} s (--period)"
            )
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


def _is_placed(log: LogColumns, k: int, order: Order) -> bool:
    """Return whether the arm of a recorded session was put where it is at sample k, by a pause or a stop.

    An engagement goes on from where the one before left the arm, if nothing moved it between them.
    """
    if order in (Order.PAUSE, Order.RESUME) or log.live["phase"][k] == LivePhase.PAUSED:
        return True
    if order is not Order.ENGAGE:
        return False
    return k == 0 or not np.array_equal(log.setpoint[k], log.setpoint[k - 1])


def planning_flags(options: Options) -> list[str]:
    """The options given that make a plan another one, as flags: what replays a plan refuses them."""
    flags: dict[str, Any] = {"--speed-scale": options.speed_scale != 1.0, "--hold": options.hold}
    flags |= {
        "--on-limits": options.on_limits,
        "sampling": options.sampling is not None,
        "--start": options.start,
    }
    return [flag for flag, given in flags.items() if given]


def _to_rest(plan: Plan, robot: Robot) -> Plan:
    """A plan that ends at rest: a record may end in motion, as that of a session that was killed."""
    setpoints, step = [plan.setpoints[-1]], _OF_ACCELERATION * robot.max_acceleration * plan.period
    velocity = (
        (plan.setpoints[-1] - plan.setpoints[-2]) / plan.period
        if plan.samples > 1
        else np.zeros(robot.n)
    )
    while (fastest := float(np.abs(velocity).max())) > 0.0:
        velocity = max(0.0, 1.0 - step / fastest) * velocity
        setpoints.append(setpoints[-1] + velocity * plan.period)
    more = np.array(setpoints[1:]).reshape(-1, robot.n)
    path, later = plan.trajectory, plan.period * np.arange(1, len(more) + 1)
    poses = np.concatenate([path.poses, np.repeat(path.poses[-1:], len(more), axis=0)])
    return replace(
        plan,
        trajectory=replace(
            path, times=np.concatenate([path.times, path.times[-1] + later]), poses=poses
        ),
        trajectory_times=np.concatenate([plan.trajectory_times, plan.trajectory_times[-1] + later]),
        solution=np.concatenate([plan.solution, more]),
        setpoints=np.concatenate([plan.setpoints, more]),
        limited=np.concatenate([plan.limited, np.ones(len(more), dtype=bool)]),
    )


def _live_options(record: LiveRecord) -> LiveOptions:
    """The options of a session that its record holds."""
    return LiveOptions(
        hold=cast(LiveHold, record.hold),
        timeout=record.timeout,
        max_jump=(record.max_jump[0], record.max_jump[1]),
        filter=cast(Filter, record.filter),
        filter_cutoff=record.filter_cutoff,
        lead=record.lead,
    )


def _servo(record: BackendRecord, options: Options) -> dict[str, Any]:
    """The options of the servo that a session had."""
    if record.servo == "ideal":
        return {} if options.feedforward == "on" else {"servo": "ideal"}
    plant = record.plant_file or ""
    return {
        "servo_gain": record.servo_gain,
        "servo_lookahead": record.servo_lookahead,
        "plant": plant if Path(plant).is_file() else None,
    }


def _input(record: InputRecord) -> Input:
    kind, frame = cast(InputKind, record.kind), cast(TwistFrame, record.frame)
    values = np.array(record.values, dtype=float)
    return Input(
        kind, values, record.number, record.engagement, frame, record.relative, record.sent
    )
