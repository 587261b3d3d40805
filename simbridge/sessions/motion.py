"""A live motion: one control period at a time from the newest input to a setpoint within limits.

    input -> target (held, filtered) -> solver -> limiter (velocity, acceleration, singularities, obstacles) -> setpoint

What the solver leaves open is decided here: when an input counts, when it is stale, how the arm comes to rest, and what
it is slowed down by. The clock is an argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.ik.faults import checked_answer, named_failures
from simbridge.ik.solver import Solver
from simbridge.ik.targets import freed
from simbridge.planning.limiter import Limiter
from simbridge.robot.collision import CollisionModel
from simbridge.robot.pose import Array
from simbridge.servo.feedforward import SCALING_RAMP
from simbridge.servo.law import ServojLaw
from simbridge.sessions.aim import POSES, Aim, make_aim
from simbridge.sessions.causes import LiveCause
from simbridge.sessions.inputs import Fate, Input
from simbridge.sessions.limits import Approach, margins
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.phases import Happening, LivePhase, Order, next_phase

# Room at the end of a range, as a share of the overshoot after steady braking: other ways to rest overshoot by more.
_OVERSHOOT = 1.25
# How long the refusal of an input is named, s, unless another is accepted.
_REFUSED = 0.5
# At a speed factor below this the arm holds.
_STANDS = 1e-3
# Slowed down by more than this towards a target that stays, the arm has come as near as it can.
_BLOCKED = 0.2
# While it is held, the solver begins anew where the arm is each time the target has moved so far, m and rad.
_ANEW = (0.05, 0.2)
# A joint brakes towards its end within so many times its braking distance, and rests within so many rad of it.
_BRAKES, _END = 1.2, 1e-3
# A cause is named until it has not been found for so long, s.
_LINGER = 0.1
# Share of the limit from which a joint or the tool counts as being at it.
_AT_LIMIT = 0.98
# Orders that stop the arm: what happens, and the cause's name.
_STOPPING = {
    Order.HALT: (Happening.STOP, "halted"),
    Order.DISENGAGE: (Happening.DISENGAGE, "disengaged"),
    Order.TOO_SLOW: (Happening.DISENGAGE, "solver"),
    Order.PAUSE: (Happening.PAUSE, "paused"),
}


class Step(NamedTuple):
    """One period.

    Attributes:
        setpoint, solution: Joint positions (n,), rad.
        number, fate: Of the input that was taken in this period; 0 if none was.
    """

    setpoint: Array
    solution: Array
    target: Array  # what the solver was stepped towards (7,); where the arm is sent while it holds
    phase: LivePhase  # after the period
    causes: tuple[LiveCause, ...]  # what slows the arm down or holds it, the strongest first
    speed: float  # share of the wanted joint step that was made, 0 to 1
    number: int
    fate: Fate


class LiveMotion:
    """The only owner of solver, limiter and collision check of a live session.

    Args:
        solver: Made for the arm.
        period: Control period, s.
        law: The servo law, for whose overshoot the limits leave room; None for an ideal servo.
        phase: How long after a controller's cycle begins commands arrive, s.
        collisions: With its obstacles; by default only the arm's own.
        max_tool_speed: m/s; the robot's by default.
        preview: Whether chunks are followed one lag of the servo law ahead.

    Attributes:
        solving: (1,): 1 while the solver is at work, else 0. It may be in memory that another process reads.
    """

    def __init__(
        self,
        solver: Solver,
        period: float,
        options: LiveOptions,
        *,
        law: ServojLaw | None = None,
        phase: float = 0.0,
        collisions: CollisionModel | None = None,
        max_tool_speed: float | None = None,
        preview: bool = False,
    ) -> None:
        robot = solver.robot
        self._robot, self._solver, self._period, self._options = robot, solver, period, options
        self._ahead = law.lag if preview and law is not None else 0.0
        tool_speed = robot.max_tool_speed if max_tool_speed is None else max_tool_speed
        self._most = most = margins(robot, law, tool_speed, phase, options.lead)
        # What stops at the end of a joint's range must not carry the arm beyond it.
        kept = 0.0 if law is None or options.lead else _OVERSHOOT * law.overshoot(most.acceleration)
        self._limiter = Limiter(
            robot, period, most.tool_speed, most.velocity, most.acceleration, kept
        )
        braking = float(most.velocity.max()) / most.acceleration
        self._approach = Approach(
            robot, collisions or CollisionModel(robot), period, solver.task, braking
        )
        self._data, self._tcp = robot.model.createData(), robot.model.getFrameId("tcp")
        self.solving = np.zeros(1)
        self.engagement, self.phase = 0, LivePhase.IDLE
        self._ignored = self._seen = 0
        self._refusal: tuple[float, LiveCause] | None = None
        self._stopped_by: LiveCause | None = None
        self.rest_at(robot.home)

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names that subjects of causes may have."""
        return (*self._robot.joint_names, *self._approach.bodies)

    @property
    def setpoint(self) -> Array:
        """The last setpoint (n,), rad."""
        return self._setpoint.copy()

    def rest_at(self, q: Array) -> None:
        """Begin at rest at joint positions q (n,), rad; nothing moves until it is engaged."""
        self._setpoint = np.array(q, dtype=float)
        self._happens(Happening.RESET)
        self._limiter.reset(self._setpoint)
        self._rate = 1.0
        self._begin_here()

    def _begin_here(self) -> None:
        """Forget the inputs; the next one goes on from the setpoint."""
        self._aim: Aim | None = None
        self._solver.reset(self._setpoint)
        self._solution, self._target = self._setpoint, self._pose(self._setpoint)
        self._input: Input | None = None
        self._input_end = 0.0
        self._slow_causes: tuple[LiveCause, ...] = ()
        self._factor = 1.0
        self._found: list[tuple[float, LiveCause]] = []
        self._restarted = self._target
        self._blocked: Array | None = None

    def order(self, order: Order, *, engagement: int = 0, upto: int = 0, took: float = 0.0) -> None:
        """Take an order.

        Args:
            engagement: With `ENGAGE`: its number.
            upto: Inputs up to this number are ignored.
            took: With `TOO_SLOW`: how long the last step took, s.
        """
        self._ignored = max(self._ignored, upto)
        if order is Order.ENGAGE:
            self.engagement = engagement
            self._engaged_at = self._pose(self._setpoint)
            self._begin_here()
            self._stopped_by = LiveCause("halted")
            self._happens(Happening.ENGAGE)
        elif order in _STOPPING:
            happening, name = _STOPPING[order]
            self._stopped_by = LiveCause(name, "", took if order is Order.TOO_SLOW else 0.0)
            self._happens(happening)
        elif order is Order.RESUME:
            self._happens(Happening.RESUME)

    def _happens(self, happening: Happening) -> None:
        self.phase = next_phase(self.phase, happening)

    def step(self, now: float, rate: float = 1.0, given: Input | None = None) -> Step:
        """One control period.

        Args:
            now: The loop's clock, s; what was not given before counts as received now.
            rate: Share of full speed, 0 to 1, that follows the controller's speed slider, and falls at once where
                setpoints were not sent in time.
            given: The newest input so far; None before the first.
        """
        if rate < self._rate - 1.5 * SCALING_RAMP * self._period:
            # It falls faster than the slider's ramp: the arm has been braked, and goes on from there.
            self._limiter.slowed(rate / self._rate)
        self._rate = rate
        number, fate, refused = self._take(now, given)
        if refused is not None:
            self._refusal = now, refused
        elif number:
            self._refusal = None
        # Long enough to be seen by who gives inputs.
        refused = (
            self._refusal[1]
            if self._refusal is not None and now - self._refusal[0] < _REFUSED
            else None
        )
        if self.phase is LivePhase.TRACKING and self._input is not None:
            age = now - self._input_end
            if age > self._options.timeout_of(self._input.kind):
                self._stopped_by = LiveCause("stale", "", age)
                self._happens(Happening.STOP)
        causes: tuple[LiveCause, ...] = ()
        speed = 1.0
        if self.phase is LivePhase.TRACKING:
            speed, causes = self._track(now, rate)
        elif self.phase in (LivePhase.BRAKING, LivePhase.DISENGAGING):
            causes = self._brake(now)
        elif self.phase is not LivePhase.ENGAGED and self._stopped_by is not None:
            causes = (self._held_by(now),)
        causes = causes if refused is None else (refused, *causes)
        return Step(
            self._setpoint, self._solution, self._target, self.phase, causes, speed, number, fate
        )

    def _take(self, now: float, given: Input | None) -> tuple[int, Fate, LiveCause | None]:
        """The number and fate of a new input, and why it was refused."""
        if given is None or given.number <= max(self._seen, self._ignored):
            return 0, Fate.NONE, None
        self._seen = given.number
        if not self.phase.takes_inputs or given.engagement != self.engagement:
            return given.number, Fate.NOT_ENGAGED, LiveCause("not_engaged")
        # A new kind, and the first after a stop, go on from the setpoint.
        aim = self._aim
        fresh = (
            self.phase is not LivePhase.TRACKING
            or self._input is None
            or self._input.kind != given.kind
        )
        if fresh or aim is None:
            aim = make_aim(given, self._options, self._period, self._engaged_at)
            aim.begin(self._setpoint, self._pose(self._setpoint))
        jump = aim.jump(given)
        if jump[0] > self._options.max_jump[0] or jump[1] > self._options.max_jump[1]:
            far = jump[0] > self._options.max_jump[0]
            return (
                given.number,
                Fate.TOO_FAR,
                LiveCause("max_jump", "", jump[0]) if far else LiveCause("max_turn", "", jump[1]),
            )
        late = self._input is not None and now - self._input_end > self._options.timeout_of(
            self._input.kind
        )
        if aim is not self._aim:
            self._solver.reset(self._setpoint)
        aim.take(now, given)
        self._aim, self._input, self._stopped_by = aim, given, None
        self._input_end = now + (float(given.values[-1, 0]) if given.is_chunk else 0.0)
        self._happens(Happening.INPUT)
        return given.number, Fate.LATE if late else Fate.ACCEPTED, None

    def _track(self, now: float, rate: float) -> tuple[float, tuple[LiveCause, ...]]:
        """The next setpoint towards the target; by how much it was slowed down, and why."""
        assert self._aim is not None and self._input is not None
        aim, before = self._aim, self._setpoint
        if rate < _STANDS:
            self._setpoint = self._limiter.brake()
            return 0.0, (LiveCause("speed_slider", "", rate),)
        timeout = self._options.timeout_of(self._input.kind)
        at = now + self._ahead if self._input.is_chunk else now
        wanted = aim.joints(at, rate, before, timeout)
        if wanted is None:
            self._target = aim.target(at, rate, timeout)
            self._solution = wanted = self._solved(aim, now)
        else:
            self._solution, self._target = wanted, self._pose(wanted)
        if wanted is self._blocked:
            self._setpoint, limited = self._limiter.brake(), True
        else:
            self._slow_causes, self._factor = (), 1.0
            self._setpoint, limited = self._limiter.next(wanted, rate, self._slower)
            # Otherwise the arm might slide on along an obstacle, or along singular postures, for a long time.
            self._blocked = (
                aim.given_up if wanted is aim.given_up and self._factor < _BLOCKED else None
            )
        if aim.is_twist and aim.attained(self._pose(self._setpoint), limited, self._factor < 1.0):
            self._solver.reset(self._setpoint)
        asked = float(np.abs(wanted - before).max())
        made = (
            1.0 if asked < 1e-12 else min(1.0, float(np.abs(self._setpoint - before).max()) / asked)
        )
        return made, self._causes(now, wanted, limited, rate, aim)

    def _solved(self, aim: Aim, now: float) -> Array:
        if (nearest := aim.given_up) is not None:
            return nearest
        if aim.changed and self._factor < _BLOCKED:
            distance, angle = POSES.size(POSES.difference(self._restarted, self._target))
            if distance > _ANEW[0] or angle > _ANEW[1]:
                # The solver may have gone on to where the arm cannot follow, such as beyond a singularity.
                self._solver.reset(self._setpoint)
                self._restarted = self._target
        solution = self._step_solver()
        wanted = aim.settled(now, solution, self._residual(solution, self._target))
        if aim.given_up is not None:
            # From there the solver goes on when the target moves.
            self._solver.reset(wanted)
        return wanted

    def _step_solver(self) -> Array:
        """The solution (n,), rad, for the target of this period.

        Raises:
            ForeignSolverError: A custom solver failed.
            InvalidParameter: Its answer is no joint positions.
        """
        solver = self._solver
        self.solving[0] = 1.0
        try:
            with named_failures(solver):
                answer = solver.step(self._target)
        finally:
            self.solving[0] = 0.0
        return checked_answer(solver.name, answer, self._robot.n)

    def _slower(self, q: Array, proposed: Array) -> float:
        assert self._aim is not None
        self._factor, self._slow_causes = self._approach.speed(
            q, proposed, cartesian=not self._aim.in_joints
        )
        return self._factor

    def _causes(
        self, now: float, wanted: Array, limited: bool, rate: float, aim: Aim
    ) -> tuple[LiveCause, ...]:
        causes = list(self._slow_causes)
        if limited:
            shares = np.abs(self._limiter.velocity) / (rate * self._most.velocity)
            joint = int(np.argmax(shares))
            if shares[joint] > _AT_LIMIT:
                share = abs(self._limiter.velocity[joint]) / self._robot.max_velocity[joint]
                causes.append(
                    LiveCause("joint_velocity", self._robot.joint_names[joint], float(share))
                )
            causes += self._ends(wanted)
            speed = self._limiter.tool_speed
            if speed > _AT_LIMIT * rate * self._most.tool_speed:
                causes.append(LiveCause("tool_speed", "", speed))
        if (left := aim.out_of_reach()) is not None:
            causes.append(LiveCause("reach", "", left))
        if rate < _AT_LIMIT:
            causes.append(LiveCause("speed_slider", "", rate))
        return self._steady(now, causes)

    def _ends(self, wanted: Array) -> list[LiveCause]:
        """Joints that are wanted beyond their range, and rest at its end or brake towards it."""
        q, low, high = self._setpoint, self._robot.position_min, self._robot.position_max
        room = np.minimum(q - low, high - q)
        braking = _BRAKES * 0.5 * self._limiter.velocity**2 / self._most.acceleration + _END
        at_end = (np.maximum(low - wanted, wanted - high) > 0.0) & (room <= braking)
        names = self._robot.joint_names
        return [
            LiveCause("joint_limit", names[i], float(room[i]))
            for i in np.flatnonzero(at_end).tolist()
        ]

    def _steady(self, now: float, found: list[LiveCause]) -> tuple[LiveCause, ...]:
        """What was found, and what was found a moment ago: where a limit is just reached, its name must not flicker."""
        known = {(cause.name, cause.subject) for cause in found}
        past = [
            (at, cause)
            for at, cause in self._found
            if now - at < _LINGER and cause[:2] not in known
        ]
        self._found = [*((now, cause) for cause in found), *past]
        return tuple(cause for _, cause in self._found)

    def _brake(self, now: float) -> tuple[LiveCause, ...]:
        self._setpoint = self._limiter.brake()
        self._solution, self._target = self._setpoint, self._pose(self._setpoint)
        cause = self._held_by(now)
        if not self._limiter.velocity.any():
            end, given = self._input_end, self._input
            self._begin_here()
            # Kept for the age of the input, and to know a late one.
            self._input_end, self._input = end, given
            self._happens(Happening.RESTS)
        return (cause,)

    def _held_by(self, now: float) -> LiveCause:
        cause = self._stopped_by or LiveCause("disengaged")
        return cause._replace(value=now - self._input_end) if cause.name == "stale" else cause

    def _pose(self, q: Array) -> Array:
        pin.forwardKinematics(self._robot.model, self._data, q)
        pose: Array = pin.SE3ToXYZQUAT(
            pin.updateFramePlacement(self._robot.model, self._data, self._tcp)
        )
        return pose

    def _residual(self, q: Array, target: Array) -> tuple[float, float]:
        pose = self._pose(q)
        there, goal = (
            pin.XYZQUATToSE3(pose),
            pin.XYZQUATToSE3(freed(self._solver.task, target, pose)),
        )
        angle = float(np.linalg.norm(pin.log3(goal.rotation @ there.rotation.T)))
        return float(np.linalg.norm(goal.translation - there.translation)), angle
