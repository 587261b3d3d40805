"""A live motion is driven by a script of inputs and orders, and its setpoints are traced."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from simbridge.errors import GuardViolation
from simbridge.ik.settings import SOLVERS
from simbridge.planning.guard import Guard
from simbridge.robot import load_robot
from simbridge.robot.collision import CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.servo.feedforward import SCALING_RAMP
from simbridge.servo.law import JointMotion, ServojLaw
from simbridge.sessions.inputs import Input
from simbridge.sessions.limits import ServoModel
from simbridge.sessions.motion import LiveMotion, MotionStep
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.phases import Order

ROBOT = load_robot("ur10e")
# How fast missed periods lower the rate in the servo loop, s.
FORGET_S = 0.03


@functools.cache
def _load_collisions(robot):
    """Return the collision model of a robot, by its name."""
    return CollisionModel(load_robot(robot))


@functools.cache
def _make_solver(robot, name):
    """Return a solver for a robot, both by their names."""
    return SOLVERS[name]().build(load_robot(robot))


def engage_motion(
    robot=ROBOT, name="forward-dynamics", *, start=None, scene=None, law=None, **facts
) -> LiveMotion:
    """Return a motion that is at rest and has been engaged.

    Args:
        robot: The arm.
        name: The solver's name.
        start: Where it rests (n,), rad; home by default.
        scene: Obstacles; the floor by default.
        law: The law of servoj; that of the default tuning without one.
        facts: Options of a session by their names, and other arguments of `LiveMotion`.
    """
    options = {}
    arguments = {}
    for key, value in facts.items():
        if key in LiveOptions.__dataclass_fields__:
            options[key] = value
        else:
            arguments[key] = value

    if scene is None:
        collisions = _load_collisions(robot.name)
    else:
        collisions = CollisionModel(robot, scene)
    motion = LiveMotion(
        _make_solver(robot.name, name),
        robot.period,
        LiveOptions(**options),
        servo=ServoModel(law or ServojLaw(robot.period)),
        collisions=collisions,
        **arguments,
    )
    motion.rest_at(robot.home if start is None else np.asarray(start))
    motion.order(Order.ENGAGE, engagement=1)
    return motion


def pose_of(q, robot=ROBOT):
    """Return the pose (7,) of the TCP at joint positions (n,), rad."""
    return tool_path(robot, np.asarray(q)[None])[0]


def shift_pose(pose, *offset):
    """Return a pose (7,) moved by x, y, z, m."""
    return np.concatenate([pose[:3] + offset, pose[3:]])


class TimedInput(NamedTuple):
    """An input at a time, s."""

    time: float
    kind: str
    values: Any
    frame: str = "base_link"
    relative: bool = False
    engagement: int = 1


class TimedOrder(NamedTuple):
    """An order at a time, s."""

    time: float
    order: Order
    engagement: int = 0
    upto: int = 0


def repeat_input(kind, values, begin, end, every=0.05, **facts):
    """Return the same input again and again, from a time until another, s."""
    times = np.arange(begin, end - 1e-9, every).tolist()
    return [TimedInput(time, kind, values, **facts) for time in times]


class Trace(NamedTuple):
    """The steps of a motion.

    Attributes:
        robot: The arm.
        period: Control period, s.
        start: Where it began (n,), rad.
        times: Time of each step (T,), s.
        steps: The T steps.
        setpoints: Setpoints (T, n), rad.
        rates: Fractions of full speed of each step (T,).
        missed: Periods without a setpoint before each step (T,).
    """

    robot: Any
    period: float
    start: np.ndarray
    times: np.ndarray
    steps: list[MotionStep]
    setpoints: np.ndarray
    rates: np.ndarray
    missed: np.ndarray

    @property
    def velocity(self):
        """Velocities of the setpoints (T, n), rad/s."""
        return np.diff(self.setpoints, axis=0, prepend=self.start[None]) / self.period

    @property
    def acceleration(self):
        """Accelerations of the setpoints (T, n), rad/s^2, for an arm at rest before them."""
        return np.diff(self.velocity, axis=0, prepend=0.0 * self.start[None]) / self.period

    @property
    def tool(self):
        """Poses (T, 7) of the setpoints."""
        return tool_path(self.robot, self.setpoints)

    @property
    def twist_speed(self):
        """Speed of the setpoints' TCP (T - 1,), m/s."""
        return np.linalg.norm(np.diff(self.tool[:, :3], axis=0), axis=1) / self.period

    @property
    def phases(self):
        """The phases, one after the other, without repeats."""
        phases = [self.steps[0].phase]
        for step in self.steps:
            if step.phase is not phases[-1]:
                phases.append(step.phase)
        return phases

    def follow(self, law) -> JointMotion:
        """Return the motion of an arm that follows the setpoints by the servo law.

        A command that is missing leaves the last one in force.
        """
        return law.follow(self.sent, previous=self.start)

    @property
    def sent(self):
        """Commands in force in each cycle (N, n)."""
        commands = []
        in_force = self.start
        for setpoint, missed in zip(self.setpoints, self.missed.tolist(), strict=True):
            commands += [in_force] * missed
            commands.append(setpoint)
            in_force = setpoint
        return np.vstack(commands)

    def cause_names(self, k):
        """Return name and subject of the causes of a step."""
        return [(cause.kind, cause.subject) for cause in self.steps[k].causes]

    def index_at(self, seconds):
        """Return the index of the step at a time, s."""
        return int(np.argmin(np.abs(self.times - seconds)))


def run(
    motion: LiveMotion,
    script: Iterable[TimedInput | TimedOrder],
    seconds: float,
    *,
    robot=ROBOT,
    slider: Callable[[float], float] = lambda now: 1.0,
    stalls: dict[int, int] | None = None,
) -> Trace:
    """Step a motion through a script.

    Args:
        motion: The motion to step.
        script: Inputs and orders in the order of time.
        seconds: Duration, s.
        robot: Its arm.
        slider: Returns the controller's speed slider at a time; followed as the servo loop does.
        stalls: Numbers of missed periods, by the step before which they are missed.
    """
    period = robot.period
    change = SCALING_RAMP * period
    start = motion.setpoint
    pending = list(script)
    newest = None
    number = 0
    rate = 1.0
    clock = 0
    steps = []
    times = []
    rates = []
    missed = []
    for k in range(round(seconds / period)):
        stall = (stalls or {}).get(k, 0)
        clock += stall
        now = clock * period

        # Take the orders and the newest input.
        while pending and pending[0].time <= now + 1e-9:
            event = pending.pop(0)
            if isinstance(event, TimedOrder):
                motion.order(event.order, engagement=event.engagement, upto=event.upto)
            else:
                number += 1
                newest = Input(
                    event.kind,
                    np.array(event.values, float),
                    number,
                    event.engagement,
                    event.frame,
                    event.relative,
                )

        # Follow the slider as the servo loop does.
        rate = max(rate - stall * period / FORGET_S, 0.0)
        rate = max(min(slider(now), rate + change), rate - change, 0.0)

        steps.append(motion.step(now, rate, newest))
        times.append(now)
        rates.append(rate)
        missed.append(stall)
        clock += 1

    setpoints = np.array([step.setpoint for step in steps])
    return Trace(
        robot, period, start, np.array(times), steps, setpoints, np.array(rates), np.array(missed)
    )


def find_refusal(trace: Trace, law: ServojLaw) -> GuardViolation | None:
    """Return the guard's refusal of the setpoints, or None.

    The arm is where the servo law takes it.
    """
    guard = Guard(trace.robot, trace.period, law.lookahead)
    guard.reset(trace.start)
    arm = trace.follow(law)
    stalls = trace.missed.tolist()
    cycle = 0
    rate = 1.0
    try:
        guard.check(trace.start, trace.start)
        for k, stall in enumerate(stalls):
            if stall:
                slower = max(rate - stall * trace.period / FORGET_S, 0.0)
                guard.scale_speed(slower / rate if rate else 0.0)
            cycle += stall
            guard.check(trace.setpoints[k], arm.q[cycle - 1] if cycle else trace.start)
            guard.check_predicted(arm.qd[cycle])
            cycle += 1
            rate = trace.rates[k]
    except GuardViolation as error:
        return error
    return None


def count_cause_changes(trace, begin, end):
    """Return how often the causes change between two times, s."""
    names = [
        frozenset(trace.cause_names(k)) for k in range(trace.index_at(begin), trace.index_at(end))
    ]
    return sum(before != after for before, after in itertools.pairwise(names))


def run_there_and_back(robot, twist, seconds=3.0, *, start=None, scene=None, kind="twist", **facts):
    """Run a motion one way for that long, and back for a second."""
    there = repeat_input(kind, twist, 0.0, seconds, **facts)
    back = repeat_input(kind, -np.asarray(twist), seconds, seconds + 1.0, **facts)
    script = there + back
    return run(engage_motion(robot, start=start, scene=scene), script, seconds + 1.0, robot=robot)
