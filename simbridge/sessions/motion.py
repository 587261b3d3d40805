"""A live motion: one control period at a time from the newest input to a setpoint within limits.

    input -> target -> solver -> limiter -> setpoint

The target is held and filtered (aim.py); the limiter keeps velocity and acceleration, and slows
down towards singularities and obstacles (approach.py). What the solver leaves open is decided here:
when an input counts, when it is stale, how the arm comes to rest, and what it is slowed down by.
The clock is an argument.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.ik.faults import check_answer, name_failures
from simbridge.ik.solver import Solver
from simbridge.ik.targets import adopt_free_components
from simbridge.planning.limiter import Limiter
from simbridge.robot.collision import CollisionModel
from simbridge.robot.pose import Array, align_quaternion
from simbridge.servo.feedforward import SCALING_RAMP
from simbridge.sessions.aim import Aim, make_aim
from simbridge.sessions.approach import ApproachLimit
from simbridge.sessions.catch_up import CatchUp
from simbridge.sessions.causes import LingeringCauses, LiveCause
from simbridge.sessions.filters import filter_delay
from simbridge.sessions.inputs import Fate, Input
from simbridge.sessions.lasting_acceleration import LastingAcceleration
from simbridge.sessions.limits import ServoModel, setpoint_limits
from simbridge.sessions.options import LiveOptions
from simbridge.sessions.phases import Happening, LivePhase, Order, next_phase
from simbridge.sessions.settling import REACHED_ANGLE, REACHED_DISTANCE
from simbridge.sessions.spaces import POSES

# Room at the end of a range, as a factor of the overshoot after steady braking: other ways to rest
# overshoot by more.
OVERSHOOT_FACTOR = 1.25
# How long the refusal of an input to an arm that stands is named, s, unless another is accepted.
REFUSAL_SHOWN_S = 0.5
# At a fraction of full speed below this the arm holds.
MIN_RATE = 1e-3
# A rate that falls faster than this many times the slider's ramp falls because the arm was braked.
RAMP_FACTOR = 1.5
# Slowed down below this factor towards a target that stays, the arm has come as near as it can.
BLOCKED_FACTOR = 0.2
# While a danger holds the arm, the solver begins anew at the setpoint whenever the target has moved
# by more than this, m or rad.
RESTART_DISTANCE = 0.05
RESTART_ANGLE = 0.2
# A joint counts as braking for the end of its range within this many times its braking distance ...
BRAKING_DISTANCES = 1.2
# ... and this much more, rad, within which it rests there.
END_TOLERANCE = 1e-3
# Fraction of the limit from which a joint or the tool counts as being at it.
AT_LIMIT = 0.98
# From this fraction on, the speed counts as full: controllers report it with some noise.
FULL_RATE = 0.999
# A joint step smaller than this, rad, counts as no motion.
NO_STEP = 1e-12
# A setpoint that differs from the wanted joint positions by no more than this, rad, is not limited.
ROUNDING = 1e-6
# While the target moves, the solver lags behind it in any case. Its lag is named from this
# distance, m, and from this angle, rad, on.
NAMED_LAG_DISTANCE = 5e-3
NAMED_LAG_ANGLE = 0.05
# Order that stops the arm -> what it does to the phase, and the name of the cause.
STOPPING_ORDERS = {
    Order.HALT: (Happening.STOP, "halted"),
    Order.DISENGAGE: (Happening.DISENGAGE, "disengaged"),
    Order.TOO_SLOW: (Happening.DISENGAGE, "solver"),
    Order.PAUSE: (Happening.PAUSE, "paused"),
}
# Kind of the cause for an input that is too far away -> the cause after a stall, where only a new
# engagement lets the arm follow its source again.
CAUSES_OF_FAR_RETURN = {"max_jump": "engage_again", "max_turn": "engage_again_turn"}


class MotionStep(NamedTuple):
    """One period.

    Attributes:
        setpoint: Joint positions (n,), rad, to send.
        solution: Joint positions (n,), rad, that the solver found.
        target: Pose (7,) towards which the solver was stepped; the setpoint's while the arm holds.
        phase: The phase after the period.
        causes: What slows the arm down or holds it, the strongest first.
        speed: Fraction of the wanted joint step that was made, 0 to 1.
        number: Number of the input that was taken in this period; 0 if none was.
        fate: Fate of that input.
    """

    setpoint: Array
    solution: Array
    target: Array
    phase: LivePhase
    causes: tuple[LiveCause, ...]
    speed: float
    number: int
    fate: Fate


class InputAnswer(NamedTuple):
    """The fate of an input in this period, and the reason if it was refused.

    Attributes:
        number: Number of the input; 0 if there was no new one.
        fate: What became of it.
        refusal: Why it was refused; None if it was not.
    """

    number: int
    fate: Fate
    refusal: LiveCause | None


class LiveMotion:
    """The only owner of solver, limiter and collision check of a live session.

    Args:
        solver: The solver, made for the arm.
        period: Control period, s.
        options: How inputs are treated.
        servo: How the arm follows setpoints; None for an ideal servo.
        collisions: The bodies and obstacles that may not touch; by default the arm's own bodies.
        max_tool_speed: Limit of the tool's speed, m/s; the robot's by default.
        preview: Whether chunks are followed one lag of the servo law ahead.

    Attributes:
        engagement: Number of the present engagement, from 1; 0 before the first.
        phase: The present phase.
        solving: One number (1,): 1 while the solver is at work, else 0. It may be in memory that
            another process reads.
    """

    def __init__(
        self,
        solver: Solver,
        period: float,
        options: LiveOptions,
        *,
        servo: ServoModel | None = None,
        collisions: CollisionModel | None = None,
        max_tool_speed: float | None = None,
        preview: bool = False,
    ) -> None:
        robot = solver.robot
        self._robot = robot
        self._solver = solver
        self._solver.period = period
        self._period = period
        self._options = options
        # How far ahead of the clock chunks are followed, s.
        self._preview = servo.law.lag if preview and servo is not None else 0.0

        # The limits of setpoints.
        tool_speed = robot.max_tool_speed if max_tool_speed is None else max_tool_speed
        limits = setpoint_limits(robot, servo, tool_speed, lead=options.lead)
        self._limits = limits

        # Setpoints that stop at the end of a joint's range must not carry the arm beyond it: the
        # servo law overshoots, unless its inverse is sent.
        margin = 0.0
        if servo is not None and not options.lead:
            margin = OVERSHOOT_FACTOR * servo.law.overshoot(limits.acceleration)
        self._limiter = Limiter(
            robot,
            period,
            max_tool_speed=limits.tool_speed,
            max_velocity=limits.velocity,
            max_acceleration=limits.acceleration,
            margin=margin,
        )

        # Slowing down towards singularities and obstacles.
        braking_time = float(limits.velocity.max()) / limits.acceleration
        self._approach = ApproachLimit(
            robot,
            collisions or CollisionModel(robot),
            period,
            task=solver.task,
            braking_time=braking_time,
        )
        # Names the limit of acceleration where inputs ask for more than the arm can do.
        self._acceleration = LastingAcceleration(2.0 * braking_time)
        self._catch_up = CatchUp(
            options.catch_up, filter_delay(options.filter, options.filter_cutoff)
        )
        # Pinocchio's working memory, and its number of the TCP's frame.
        self._data = robot.model.createData()
        self._tcp = robot.model.getFrameId("tcp")

        self.solving = np.zeros(1)
        self.engagement = 0
        self.phase = LivePhase.IDLE
        # Inputs up to this number are ignored, as an order demanded: they were given before it.
        self._ignored = 0
        # Number of the newest input that was seen: each is taken once.
        self._seen = 0
        # When the last input was refused, s, and why; None once another was accepted.
        self._refusal: tuple[float, LiveCause] | None = None
        # Why the arm brakes or stands; None while it tracks.
        self._stopped_by: LiveCause | None = None
        # The target (7,) of the last period, with the sign of its quaternion.
        self._shown_target: Array | None = None
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
        self._change_phase(Happening.RESET)
        self._limiter.reset(self._setpoint)
        # Fraction of full speed in the last period.
        self._rate = 1.0
        self._catch_up.reset()
        self._begin_here()

    def _begin_here(self) -> None:
        """Forget the inputs; the next one goes on from the setpoint."""
        self._solver.reset(self._setpoint)
        self._solution = self._setpoint
        self._target = self._pose(self._setpoint)
        # How far the solution is from the target, m and rad.
        self._lag = (0.0, 0.0)

        # The input in force; None before the first.
        self._input: Input | None = None
        # The aim that makes targets of it; None before the first.
        self._aim: Aim | None = None
        # The instant from which the input's age counts, s: it is stale a timeout later.
        self._input_end = 0.0

        # Factor by which the last step was shortened towards singularities and obstacles.
        self._slow_factor = 1.0
        # The dangers that shortened it.
        self._slow_causes: tuple[LiveCause, ...] = ()
        # The causes that are named, for a moment longer than they act.
        self._lingering = LingeringCauses()
        # The target (7,) when the solver was last restarted at the setpoint.
        self._restart_target = self._target
        # The solution (n,), rad, towards which the arm has come as near as it can; None otherwise.
        self._blocked: Array | None = None

    def order(self, order: Order, *, engagement: int = 0, upto: int = 0, took: float = 0.0) -> None:
        """Take an order.

        Args:
            order: The order.
            engagement: Number of the engagement that begins, with `ENGAGE`.
            upto: Number of the last input that is ignored from now on.
            took: Duration of the last step, s, with `TOO_SLOW`.
        """
        self._ignored = max(self._ignored, upto)
        if order is Order.ENGAGE:
            self.engagement = engagement
            self._engaged_at = self._pose(self._setpoint)
            self._begin_here()
            self._stopped_by = LiveCause.of("halted")
            self._change_phase(Happening.ENGAGE)
        elif order in STOPPING_ORDERS:
            happening, name = STOPPING_ORDERS[order]
            self._stopped_by = LiveCause.of(name, "", took if order is Order.TOO_SLOW else 0.0)
            self._change_phase(happening)
        elif order is Order.RESUME:
            self._change_phase(Happening.RESUME)

    def _change_phase(self, happening: Happening) -> None:
        """Go to the phase after something happened."""
        self.phase = next_phase(self.phase, happening)

    def step(
        self,
        now: float,
        rate: float = 1.0,
        newest: Input | None = None,
        *,
        rate_cause: str = "speed_slider",
    ) -> MotionStep:
        """Make one control period.

        Args:
            now: The loop's clock, s; an input that is new counts as received now.
            rate: Fraction of full speed, 0 to 1, that follows the controller's speed slider, and
                falls at once where setpoints were not sent in time.
            newest: The newest input so far; None before the first.
            rate_cause: The name of the cause if `rate` is below full speed.
        """
        # A rate that falls faster than the slider's ramp: the arm was braked, and goes on at the
        # speed that it has.
        if rate < self._rate - RAMP_FACTOR * SCALING_RAMP * self._period:
            self._limiter.scale_speed(rate / self._rate)
        self._rate = rate

        # Inputs: the one in force may have grown stale, and the newest is taken or refused. In this
        # order, an input that follows a stall is seen as one, even if it comes in the same period.
        self._stop_if_stale(now)
        answer = self._take(now, newest)
        refusal = self._shown_refusal(now, answer)

        # The setpoint, and what slows the arm down or holds it. It rests in all other phases.
        causes: tuple[LiveCause, ...] = ()
        speed = 1.0
        if self.phase is LivePhase.TRACKING:
            speed, causes = self._track(now, rate, rate_cause)
        elif self.phase in (LivePhase.BRAKING, LivePhase.DISENGAGING):
            causes = self._brake(now)
        elif self.phase is not LivePhase.ENGAGED and self._stopped_by is not None:
            causes = (self._cause_of_rest(now),)
        if refusal is not None:
            causes = (refusal, *causes)

        # Each rotation has two quaternions: keep to the one that the last period had.
        if self._shown_target is None:
            self._shown_target = self._target
        self._shown_target = align_quaternion(self._target, self._shown_target)

        return MotionStep(
            setpoint=self._setpoint,
            solution=self._solution,
            target=self._shown_target,
            phase=self.phase,
            causes=causes,
            speed=speed,
            number=answer.number,
            fate=answer.fate,
        )

    def _take(self, now: float, newest: Input | None) -> InputAnswer:
        """Make the newest input the one that the arm follows, if it is new and may move the arm.

        Args:
            now: The loop's clock, s.
            newest: The newest input; None before the first.

        Returns:
            What became of the input.
        """
        if newest is None or newest.number <= max(self._seen, self._ignored):
            return InputAnswer(0, Fate.NONE, None)
        number = newest.number
        self._seen = number
        if not self.phase.takes_inputs or newest.engagement != self.engagement:
            return InputAnswer(number, Fate.NOT_ENGAGED, LiveCause.of("not_engaged"))

        # An input of the kind that is tracked goes on with its aim; another kind, and the first
        # input after a stop, begin a new aim at the setpoint.
        aim = self._aim
        goes_on = (
            self.phase is LivePhase.TRACKING
            and self._input is not None
            and self._input.kind == newest.kind
        )
        if aim is None or not goes_on:
            aim = make_aim(newest, self._options, self._period, self._engaged_at)
            aim.begin(self._setpoint, self._pose(self._setpoint))

        # Refuse an input that is too far from the one before. If its source had stalled before it,
        # the engagement ends, too.
        distance, angle = aim.jump(newest)
        too_far = self._excess_jump(distance, angle)
        if too_far is not None:
            came_back = not goes_on and self._is_stalled
            return self._refuse_far_input(number, too_far, came_back=came_back)

        # Accept the input.
        is_late = self._input is not None and self._is_stale(now, self._input)
        if aim is not self._aim:
            self._solver.reset(self._setpoint)
            is_other_kind = self._input is not None and self._input.kind != newest.kind
            self._catch_up.begin(
                now, newest, distance=distance, angle=angle, is_other_kind=is_other_kind
            )
        aim.take(now, newest)
        self._aim = aim
        self._input = newest
        # The age of a chunk counts from its last stamp on.
        duration = float(newest.values[-1, 0]) if newest.is_chunk else 0.0
        self._input_end = now + duration
        self._stopped_by = None
        self._change_phase(Happening.INPUT)
        return InputAnswer(number, Fate.LATE if is_late else Fate.ACCEPTED, None)

    def _refuse_far_input(self, number: int, refusal: LiveCause, *, came_back: bool) -> InputAnswer:
        """Refuse an input that is too far away; after a stall, end the engagement, too.

        Args:
            number: Number of the input.
            refusal: How far away it is.
            came_back: Whether it is the first input of a source that had stalled. It may have gone
                anywhere meanwhile, and the arm must not go there by itself.
        """
        if not came_back:
            return InputAnswer(number, Fate.TOO_FAR, refusal)
        kind = CAUSES_OF_FAR_RETURN[refusal.kind]
        self._stopped_by = refusal._replace(kind=kind)
        self._change_phase(Happening.DISENGAGE)
        return InputAnswer(number, Fate.TOO_FAR, None)

    @property
    def _is_stalled(self) -> bool:
        """True if the arm brakes or stands because no input came."""
        return self._stopped_by is not None and self._stopped_by.kind == "stale"

    def _excess_jump(self, distance: float, angle: float) -> LiveCause | None:
        """Return the cause that refuses an input so far away, m and rad; None if it is near."""
        max_distance, max_angle = self._options.max_jump
        if distance > max_distance:
            return LiveCause.of("max_jump", "", distance)
        if angle > max_angle:
            return LiveCause.of("max_turn", "", angle)
        return None

    def _shown_refusal(self, now: float, answer: InputAnswer) -> LiveCause | None:
        """Return the last refusal, as long as it lasts or whoever gives the inputs needs to see it.

        While the arm tracks, the refused input is not followed until another one is accepted.
        """
        if answer.refusal is not None:
            self._refusal = now, answer.refusal
        elif answer.number:
            # An input was accepted.
            self._refusal = None

        if self._refusal is None:
            return None
        refused_at, refusal = self._refusal
        lasts = self.phase is LivePhase.TRACKING or now - refused_at < REFUSAL_SHOWN_S
        return refusal if lasts else None

    def _is_stale(self, now: float, item: Input) -> bool:
        """Return whether the input in force has passed the timeout of its kind."""
        return now - self._input_end > self._options.timeout_of(item.kind)

    def _stop_if_stale(self, now: float) -> None:
        """Let the arm brake if the input in force is stale."""
        if self.phase is not LivePhase.TRACKING or self._input is None:
            return
        if self._is_stale(now, self._input):
            self._stopped_by = LiveCause.of("stale", "", now - self._input_end)
            self._catch_up.note_stall()
            self._change_phase(Happening.STOP)

    def _track(
        self, now: float, rate: float, rate_cause: str
    ) -> tuple[float, tuple[LiveCause, ...]]:
        """Make the next setpoint towards the target.

        Returns:
            Fraction of the wanted joint step that was made, and what slowed it down.
        """
        assert self._aim is not None and self._input is not None
        aim = self._aim
        before = self._setpoint
        if rate < MIN_RATE:
            self._setpoint = self._limiter.brake()
            return 0.0, (LiveCause.of(rate_cause, "", rate),)

        desired_joints = self._solve(aim, self._input, now, rate)
        velocity_before = self._limiter.velocity

        # Bring the wanted joint positions within the limits; the approach to dangers is one. After
        # a stall, only a fraction of the limits of velocity may be used.
        catch_up_fraction = self._catch_up.fraction
        limit_rate = rate * catch_up_fraction
        if desired_joints is self._blocked:
            self._setpoint = self._limiter.brake()
            limited = True
        else:
            self._slow_causes = ()
            self._slow_factor = 1.0
            self._setpoint, limited = self._limiter.next(
                desired_joints, limit_rate, self._approach_factor
            )
            # Let the arm rest from the next period on if a danger holds it before the final
            # solution. Otherwise it might slide on along an obstacle, or along singular postures,
            # for a long time.
            is_blocked = desired_joints is aim.final_solution and self._slow_factor < BLOCKED_FACTOR
            self._blocked = aim.final_solution if is_blocked else None

        # Let a twist's target wait for the arm. The solver begins anew where the aim does.
        if aim.is_twist:
            pose = self._pose(self._setpoint)
            begins_anew = aim.follow(pose, limited=limited, blocked=self._slow_factor < 1.0)
            if begins_anew:
                self._solver.reset(self._setpoint)

        speed = _step_fraction(desired_joints - before, self._setpoint - before)

        # What slowed it down, and whether the arm has caught up.
        is_held_back = float(np.abs(desired_joints - self._setpoint).max()) > ROUNDING
        causes = list(self._slow_causes)
        if is_held_back:
            causes += self._limit_causes(desired_joints, limit_rate)
            if not causes:
                velocity_change = np.abs(self._limiter.velocity - velocity_before)
                acceleration = float(velocity_change.max()) / self._period
                causes += self._acceleration.update(now, acceleration)
        causes += self._solver_causes(aim, is_held_back=is_held_back)
        if rate < FULL_RATE:
            causes.append(LiveCause.of(rate_cause, "", rate))
        named_causes = self._lingering.update(now, causes)
        if catch_up_fraction < 1.0:
            named_causes = (LiveCause.of("catching_up", "", catch_up_fraction), *named_causes)

        distance, angle = self._lag
        self._catch_up.update(
            now, self._input, limited=is_held_back, distance=distance, angle=angle
        )
        return speed, named_causes

    def _solve(self, aim: Aim, item: Input, now: float, rate: float) -> Array:
        """Return the joint positions (n,), rad, that are wanted in this period."""
        timeout = self._options.timeout_of(item.kind)
        time = now + self._preview if item.is_chunk else now

        # Inputs in joint space need no solver.
        desired_joints = aim.joints(time, rate, self._setpoint, timeout)
        if desired_joints is not None:
            self._solution = desired_joints
            self._target = self._pose(desired_joints)
            self._lag = (0.0, 0.0)
            return desired_joints

        self._target = aim.target(time, rate, timeout)
        self._solution = self._solve_target(aim, now)
        return self._solution

    def _solve_target(self, aim: Aim, now: float) -> Array:
        """Return the solution (n,), rad, for the target of this period."""
        if aim.final_solution is not None:
            return aim.final_solution

        # While a danger holds the arm, the solver may have gone on to where the arm cannot follow,
        # such as beyond a singularity: begin anew at the setpoint when the target has moved.
        if aim.has_changed and self._slow_factor < BLOCKED_FACTOR:
            distance, angle = POSES.size(POSES.difference(self._restart_target, self._target))
            if distance > RESTART_DISTANCE or angle > RESTART_ANGLE:
                self._solver.reset(self._setpoint)
                self._restart_target = self._target

        # Step the solver. Once its solutions come no nearer to the target, the nearest one holds,
        # and the solver goes on from there when the target moves.
        solution = self._step_solver()
        self._lag = self._residual(solution, self._target)
        desired_joints = aim.settle(now, solution, self._lag)
        if desired_joints is not solution:
            self._lag = self._residual(desired_joints, self._target)
        if aim.final_solution is not None:
            self._solver.reset(desired_joints)
        return desired_joints

    def _step_solver(self) -> Array:
        """Step the solver to its next joint positions (n,), rad.

        Raises:
            ForeignSolverError: A custom solver failed.
            InvalidParameter: Its answer is not joint positions.
        """
        solver = self._solver
        self.solving[0] = 1.0
        try:
            with name_failures(solver):
                answer = solver.step(self._target)
        finally:
            self.solving[0] = 0.0
        return check_answer(solver.name, answer, self._robot.n)

    def _approach_factor(self, q: Array, proposed: Array) -> float:
        """Return the factor by which a step is shortened towards dangers; see `ApproachLimit`."""
        assert self._aim is not None
        self._slow_factor, self._slow_causes = self._approach.speed(
            q, proposed, cartesian=not self._aim.in_joints
        )
        return self._slow_factor

    def _limit_causes(self, desired_joints: Array, rate: float) -> list[LiveCause]:
        """Return the limits that keep the setpoint from the wanted joint positions.

        Args:
            desired_joints: The wanted joint positions (n,), rad.
            rate: Fraction of its speed at which the motion advances, which the limits are
                multiplied with.
        """
        causes = []

        # The joint that moves fastest in proportion to the setpoints' limit. The number that is
        # shown is a fraction of the robot's limit.
        limit_fractions = np.abs(self._limiter.velocity) / (rate * self._limits.velocity)
        joint = int(np.argmax(limit_fractions))
        if limit_fractions[joint] > AT_LIMIT:
            fraction = abs(self._limiter.velocity[joint]) / self._robot.max_velocity[joint]
            name = self._robot.joint_names[joint]
            causes.append(LiveCause.of("joint_velocity", name, float(fraction)))

        causes += self._range_causes(desired_joints)

        tool_speed = self._limiter.tool_speed
        if tool_speed > AT_LIMIT * rate * self._limits.tool_speed:
            causes.append(LiveCause.of("tool_speed", "", tool_speed))
        return causes

    def _solver_causes(self, aim: Aim, *, is_held_back: bool) -> list[LiveCause]:
        """Return the cause that says how far the solver's solution is from the target.

        There is none if the solution is at the target; nor while limits hold the arm, unless the
        target is out of reach.

        Args:
            aim: The present aim.
            is_held_back: Whether limits keep the setpoint from the solution.
        """
        # The target is out of reach: the solver finds no solution nearer to it.
        unreachable = aim.out_of_reach()
        if unreachable is not None:
            distance, angle = unreachable
            if distance > REACHED_DISTANCE:
                return [LiveCause.of("reach", "", distance)]
            return [LiveCause.of("reach_turn", "", angle)]

        # While limits hold the arm, they are the cause.
        if is_held_back:
            return []

        # The solver is still on its way.
        distance, angle = self._lag
        is_moving = aim.has_changed or aim.is_twist
        if distance > (NAMED_LAG_DISTANCE if is_moving else REACHED_DISTANCE):
            return [LiveCause.of("solver_lag", "", distance)]
        if angle > (NAMED_LAG_ANGLE if is_moving else REACHED_ANGLE):
            return [LiveCause.of("solver_lag_turn", "", angle)]
        return []

    def _range_causes(self, desired_joints: Array) -> list[LiveCause]:
        """Return the joints that are wanted beyond their range, and are at its end or brake for it.

        Args:
            desired_joints: The wanted joint positions (n,), rad.
        """
        # The ends that setpoints keep to leave room for the servo law's overshoot.
        q = self._setpoint
        low = self._limiter.position_min
        high = self._limiter.position_max

        # A jog wants to go on in its direction, the others to the wanted joint positions.
        is_beyond = np.maximum(low - desired_joints, desired_joints - high) > 0.0
        if self._input is not None and self._input.kind == "jog":
            to_nearer_end = np.where(high - q < q - low, 1.0, -1.0)
            is_beyond |= to_nearer_end * self._input.values > 0.0

        # The room to the nearer end, and in how much of it a joint counts as braking, rad: its
        # braking distance v^2 / (2 a), and some more.
        room = np.minimum(q - low, high - q)
        braking = BRAKING_DISTANCES * 0.5 * self._limiter.velocity**2 / self._limits.acceleration
        is_near_end = room <= braking + END_TOLERANCE

        # The room that is named is that to the end of the joint's range.
        names = self._robot.joint_names
        named_room = np.minimum(q - self._robot.position_min, self._robot.position_max - q)
        joints = np.flatnonzero(is_beyond & is_near_end).tolist()
        return [LiveCause.of("joint_limit", names[j], float(named_room[j])) for j in joints]

    def _brake(self, now: float) -> tuple[LiveCause, ...]:
        """Make the next setpoint on the way to rest; return why the arm brakes."""
        self._setpoint = self._limiter.brake()
        self._solution = self._setpoint
        self._target = self._pose(self._setpoint)
        cause = self._cause_of_rest(now)

        # Once the arm rests, the next input begins anew from there. Only the last input is kept, so
        # that its age can be shown and the next one can be recognized as late.
        if not self._limiter.velocity.any():
            last_input = self._input
            last_input_end = self._input_end
            self._begin_here()
            self._input = last_input
            self._input_end = last_input_end
            self._change_phase(Happening.RESTS)
        return (cause,)

    def _cause_of_rest(self, now: float) -> LiveCause:
        """Return why the arm brakes or stands."""
        cause = self._stopped_by or LiveCause.of("disengaged")
        return cause._replace(value=now - self._input_end) if cause.kind == "stale" else cause

    def _pose(self, q: Array) -> Array:
        """Return the pose (7,) of the TCP at joint positions q (n,), rad."""
        pin.forwardKinematics(self._robot.model, self._data, q)
        placement = pin.updateFramePlacement(self._robot.model, self._data, self._tcp)
        pose: Array = pin.SE3ToXYZQUAT(placement)
        return pose

    def _residual(self, q: Array, target: Array) -> tuple[float, float]:
        """Return how far the TCP at joint positions q is from a target, m and rad.

        Components that the solver's task leaves free count as reached.
        """
        pose = self._pose(q)
        tool = pin.XYZQUATToSE3(pose)
        goal = pin.XYZQUATToSE3(adopt_free_components(self._solver.task, target, pose))
        angle = float(np.linalg.norm(pin.log3(goal.rotation @ tool.rotation.T)))
        return float(np.linalg.norm(goal.translation - tool.translation)), angle


def _step_fraction(wanted_step: Array, step: Array) -> float:
    """Return the fraction of a wanted joint step (n,) that was made, by the joints that move most.

    Args:
        wanted_step: The wanted step (n,), rad.
        step: The step that was made (n,), rad.
    """
    wanted_size = float(np.abs(wanted_step).max())
    if wanted_size < NO_STEP:
        return 1.0
    return min(1.0, float(np.abs(step).max()) / wanted_size)
