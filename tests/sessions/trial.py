"""A live motion driven by a script of inputs and orders, and what the servo law and the guard make of its setpoints."""

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
# Of the servo loop: how fast missed periods lower the rate, s.
FORGET = 0.03


@functools.cache
def _collisions(robot):
    return CollisionModel(load_robot(robot))


@functools.cache
def _solver(robot, name):
    return SOLVERS[name]().build(load_robot(robot))


def engaged(
    robot=ROBOT, name="forward-dynamics", *, start=None, scene=None, law=None, **facts
) -> LiveMotion:
    """A motion that rests at `start` (home) and has been engaged; options of a session by their names."""
    options = {
        key: facts.pop(key) for key in tuple(facts) if key in LiveOptions.__dataclass_fields__
    }
    law = law or ServojLaw(robot.period)
    around = _collisions(robot.name) if scene is None else CollisionModel(robot, scene)
    made = _solver(robot.name, name)
    motion = LiveMotion(
        made,
        robot.period,
        LiveOptions(**options),
        servo=ServoModel(law),
        collisions=around,
        **facts,
    )
    motion.rest_at(robot.home if start is None else np.asarray(start))
    motion.order(Order.ENGAGE, engagement=1)
    return motion


def pose_of(q, robot=ROBOT):
    """The pose (7,) of the TCP."""
    return tool_path(robot, np.asarray(q)[None])[0]


def moved(pose, *by):
    """A pose (7,) moved by x, y, z, m."""
    return np.concatenate([pose[:3] + by, pose[3:]])


class Given(NamedTuple):
    """An input at a time, s."""

    at: float
    kind: str
    values: Any
    frame: str = "base_link"
    relative: bool = False
    engagement: int = 1


class Ordered(NamedTuple):
    """An order at a time, s."""

    at: float
    order: Order
    engagement: int = 0
    upto: int = 0


def repeated(kind, values, begin, end, every=0.05, **facts):
    """The same input again and again."""
    return [Given(at, kind, values, **facts) for at in np.arange(begin, end - 1e-9, every).tolist()]


class Trace(NamedTuple):
    """What a motion did.

    Attributes:
        robot: The arm.
        period: s.
        start: Where it began (n,), rad.
        times: Of each step (T,), s.
        steps: T of them.
        setpoints: (T, n), rad.
        rates: Given to each step (T,).
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
        """Of the setpoints (T, n), rad/s."""
        return np.diff(self.setpoints, axis=0, prepend=self.start[None]) / self.period

    @property
    def acceleration(self):
        """Of the setpoints (T, n), rad/s^2, for an arm that stands before."""
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
        """One after the other, without repeats."""
        found = [self.steps[0].phase]
        for step in self.steps:
            if step.phase is not found[-1]:
                found.append(step.phase)
        return found

    def arm(self, law) -> JointMotion:
        """What the servo law makes of the setpoints; a command that is missing leaves the last one in force."""
        return law.follow(self.sent, previous=self.start)

    @property
    def sent(self):
        """Commands in force in each cycle (N, n)."""
        before = np.vstack([self.start, self.setpoints[:-1]])
        parts = zip(before, self.setpoints, self.missed.tolist(), strict=True)
        return np.vstack([row for held, now, missed in parts for row in (*[held] * missed, now)])

    def names(self, k):
        """The causes of a step: name and subject."""
        return [(cause.name, cause.subject) for cause in self.steps[k].causes]

    def at(self, seconds):
        """The index of the step at a time."""
        return int(np.argmin(np.abs(self.times - seconds)))


def run(
    motion: LiveMotion,
    script: Iterable[Given | Ordered],
    seconds: float,
    *,
    robot=ROBOT,
    slider: Callable[[float], float] = lambda now: 1.0,
    stalls: dict[int, int] | None = None,
) -> Trace:
    """MotionStep a motion through a script.

    Args:
        motion: To step.
        script: In the order of time.
        seconds: How long.
        robot: Its arm.
        slider: The controller's speed slider at a time; followed as the servo loop does.
        stalls: MotionStep -> periods before it that are missed.
    """
    period = robot.period
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
        while pending and pending[0].at <= now + 1e-9:
            event = pending.pop(0)
            if isinstance(event, Ordered):
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
        rate = max(rate - stall * period / FORGET, 0.0)
        change = SCALING_RAMP * period
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


def refusal(trace: Trace, law: ServojLaw) -> GuardViolation | None:
    """What the guard refuses of the setpoints, with the arm where the servo law takes it; None for nothing."""
    guard = Guard(trace.robot, trace.period, law.lookahead)
    guard.reset(trace.start)
    arm = trace.arm(law)
    cycle = 0
    rate = 1.0
    try:
        guard.check(trace.start, trace.start)
        for k, (setpoint, stall) in enumerate(
            zip(trace.setpoints, trace.missed.tolist(), strict=True)
        ):
            if stall:
                guard.scale_speed(
                    max(rate - stall * trace.period / FORGET, 0.0) / rate if rate else 0.0
                )
            cycle += stall
            guard.check(setpoint, arm.q[cycle - 1] if cycle else trace.start)
            guard.check_predicted(arm.qd[cycle])
            cycle, rate = cycle + 1, trace.rates[k]
    except GuardViolation as error:
        return error
    return None


def cause_changes(trace, begin, end):
    """How often the causes change."""
    names = [frozenset(trace.names(k)) for k in range(trace.at(begin), trace.at(end))]
    return sum(before != after for before, after in itertools.pairwise(names))


def there_and_back(robot, twist, seconds=3.0, *, start=None, scene=None, kind="twist", **facts):
    """A motion one way for that long, and back for a second."""
    script = repeated(kind, twist, 0.0, seconds, **facts) + repeated(
        kind, -np.asarray(twist), seconds, seconds + 1.0, **facts
    )
    return run(engaged(robot, start=start, scene=scene), script, seconds + 1.0, robot=robot)
