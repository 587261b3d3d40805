"""URScript's functions that move the arm, wait or act by forces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import frame_of
from simbridge.emulator.builtin_state import ControllerFunctions
from simbridge.emulator.compliance import ForceMode, ForceTask, Freedrive
from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.joint_torque import JointTorque
from simbridge.emulator.motions import ArmMotion, HoldMotion, JointSpeed, Ramp, ToolSpeed
from simbridge.emulator.moves import CircleMove, JointMove, Pace, PathMove, ToolMove
from simbridge.emulator.state import ControllerEvent
from simbridge.emulator.urscript.arguments import (
    fraction,
    not_negative,
    number,
    numbers,
    positive,
)
from simbridge.emulator.urscript.functions import Wait, script_function
from simbridge.emulator.urscript.library import Library
from simbridge.emulator.urscript.values import short
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
from simbridge.servo.integration import EDGE_TOLERANCE

# Accelerations of OptiMove at a=1, rad/s^2 and m/s^2, and its speed at v=1, m/s.
OPTIMOVE_JOINT_ACCELERATION = 10.0
OPTIMOVE_TOOL_ACCELERATION = 5.0
OPTIMOVE_TOOL_SPEED = 1.5

# UR's error code for overlapping blends (C171), and its argument for each kind of move.
OVERLAP_CODE = 171
OVERLAP_ARGUMENTS = {"movec": 0, "movej": 4, "movep": 9, "movel": 11, "optimovel": 11}
# Cost of a move that is skipped, in units of a tick's budget: it has been planned, and the next
# statement follows in the same tick.
SKIPPED_COST = 5000
# Cost of tool_contact for each tick of the contact, in units of a tick's budget.
COST_PER_TICK = 20

# Shortest call of servoj, s: the law takes a step for each call.
SHORTEST_SERVOJ = 1e-4
# Longest wait, s. In practice it never ends, but its number of ticks is finite.
LONGEST_WAIT = 1e12

# Deceleration of an arm that is still moving when a move begins, rad/s^2.
BRAKING = 20.0
# Deceleration at the end of freedrive, rad/s^2.
FREEDRIVE_BRAKING = 5.0
# servoc does not move a tool that is this close to its goal, m.
SERVOC_TOLERANCE = 1e-9

ALL_AXES = (1, 1, 1, 1, 1, 1)
ZERO_POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def exclusive(function: Callable[..., Wait]) -> Callable[..., Wait]:
    """Let only one thread at a time be in a function that moves the arm."""

    @functools.wraps(function)
    def move(self: MotionFunctions, thread: Any, *arguments: Any, **named: Any) -> Wait:
        self._check_mover(thread)
        self._mover = thread
        try:
            return (yield from function(self, thread, *arguments, **named))
        finally:
            self._mover = None

    return move


class MotionFunctions(ControllerFunctions):
    """Moves, speeds, servoing, stops; `sync` and `sleep`; forces."""

    # The thread that is in a function that moves the arm.
    _mover: Any = None
    # Scaling of force mode, as a program has set it.
    _force_gain = 0.5
    # Remainder of the last timed call, s, which adds to the next: calls end with a tick. It is
    # negative where the call took too long.
    _carried_time = 0.0
    # When the last call of servoj ends, s by the controller's clock.
    _servoj_end = 0.0

    def _check_mover(self, thread: Any) -> None:
        """Raise a fault if another thread is in a function that moves the arm."""
        if self._mover not in (None, thread):
            raise RuntimeFault("Another thread is already controlling the robot.")

    def _until_done(self, motion: ArmMotion, *, blend: bool = True) -> Wait:
        """Run a motion to its end, or to where the next one may take over.

        Args:
            motion: The motion, which replaces the present one.
            blend: Whether the next motion may take over before its end.
        """
        drive = self._drive
        drive.motion = motion
        try:
            while drive.motion is motion:
                if motion.done or (blend and motion.blending):
                    return
                yield
        finally:
            # A killed thread takes its motion with it; a completed motion holds its target.
            if drive.motion is motion and not (motion.done or motion.blending):
                drive.motion = HoldMotion()

    def _previous_move(self) -> PathMove | None:
        """Return the move that the next one blends with."""
        motion = self._drive.motion
        return motion if isinstance(motion, PathMove) and motion.blending else None

    def _next_start(self, previous: PathMove | None) -> Array:
        """Return the joints (n,), rad, at which the path of the next move starts."""
        q = self._state.target_q
        return q if previous is None else previous.joints(1.0, q)

    def _follow(self, thread: Any, make_move: Callable[[Array, PathMove | None], PathMove]) -> Wait:
        """Run a move.

        Args:
            thread: The thread that runs the move; it pays for a skipped one.
            make_move: Makes the move, from the joints (n,), rad, at which its path starts, and the
                previous move to blend with; None without one.
        """
        previous = self._previous_move()
        if previous is None:
            fastest = np.abs(self._state.target_qd).max()
            if fastest > BRAKING * self._controller.period:
                # A move starts at rest, and the joints are too fast to stop within a tick.
                yield from self._until_done(JointSpeed(np.zeros(6), BRAKING, stops=True))

        move = make_move(self._next_start(previous), previous)
        if move.skipped:
            thread.charge(SKIPPED_COST)
            text = f"Overlapping blends in a {move.kind}: a waypoint was skipped"
            argument = OVERLAP_ARGUMENTS[move.kind]
            self._controller.on_event(
                ControllerEvent("safety", text, code=OVERLAP_CODE, argument=argument)
            )
            return

        if previous is not None and move.blend is None:
            # A move of zero length cannot blend, so let the previous move run to its end.
            yield from self._until_done(previous, blend=False)
        yield from self._until_done(move)

    @script_function
    @exclusive
    def movej(
        self, thread: Any, q: Any, a: float = 1.4, v: float = 1.05, t: float = 0.0, r: float = 0.0
    ) -> Wait:
        pace = _pace(a, v, t, r)
        start = self._next_start(self._previous_move())
        goal = yield from self._joints(thread, q, start)

        robot = self._controller.robot
        if ((goal < robot.position_min) | (goal > robot.position_max)).any():
            needed = "joint positions within the joints' range"
            raise InvalidParameter("movej's q", short(q), needed)

        arm = self._controller.arm
        limits = self._controller.joint_speed_limits

        def make_move(start: Array, previous: PathMove | None) -> PathMove:
            return JointMove(arm, start, goal, limits=limits, pace=pace, previous=previous)

        yield from self._follow(thread, make_move)

    def _move_straight(self, thread: Any, kind: str, *, goal: pin.SE3, pace: Pace) -> Wait:
        """Move the tool in a straight line.

        Args:
            thread: The caller.
            kind: "movel", "movep" or "optimovel".
            goal: Pose of the TCP in the pendant's base.
            pace: Speed and blend, in m/s^2 and m/s.
        """
        arm = self._controller.arm
        limits = self._controller.joint_speed_limits

        def make_move(start: Array, previous: PathMove | None) -> PathMove:
            return ToolMove(
                arm, start, goal, pace=pace, limits=limits, previous=previous, kind=kind
            )

        yield from self._follow(thread, make_move)

    @script_function
    @exclusive
    def movel(
        self,
        thread: Any,
        pose: Any,
        a: float = 1.2,
        v: float = 0.25,
        t: float = 0.0,
        r: float = 0.0,
    ) -> Wait:
        goal = self._frame("pose", pose)
        pace = _pace(a, v, t, r)
        yield from self._move_straight(thread, "movel", goal=goal, pace=pace)

    # OptiMove takes its speed and acceleration as fractions of what the arm can do; its profiles
    # are not modelled.

    @script_function
    @exclusive
    def optimovej(
        self, thread: Any, goal: Any, a: float = 0.3, v: float = 0.3, r: float = 0.0
    ) -> Wait:
        speed = fraction("v", v) * float(self._controller.robot.max_velocity.min())
        acceleration = fraction("a", a) * OPTIMOVE_JOINT_ACCELERATION
        yield from self.movej(thread, goal, acceleration, speed, r=r)

    @script_function
    @exclusive
    def optimovel(
        self, thread: Any, goal: Any, a: float = 0.3, v: float = 0.3, r: float = 0.0
    ) -> Wait:
        acceleration = fraction("a", a) * OPTIMOVE_TOOL_ACCELERATION
        speed = fraction("v", v) * OPTIMOVE_TOOL_SPEED
        frame = self._frame("pose", goal)
        pace = _pace(acceleration, speed, 0.0, r)
        yield from self._move_straight(thread, "optimovel", goal=frame, pace=pace)

    @script_function
    @exclusive
    def movep(
        self, thread: Any, pose: Any, a: float = 1.2, v: float = 0.25, r: float = 0.0
    ) -> Wait:
        goal = self._frame("pose", pose)
        pace = _pace(a, v, 0.0, r)
        yield from self._move_straight(thread, "movep", goal=goal, pace=pace)

    @script_function
    @exclusive
    def movec(
        self,
        thread: Any,
        pose_via: Any,
        pose_to: Any,
        a: float = 1.2,
        v: float = 0.25,
        r: float = 0.0,
        mode: int = 0,
    ) -> Wait:
        via = self._frame("pose_via", pose_via)
        goal = self._frame("pose_to", pose_to)
        pace = _pace(a, v, 0.0, r)
        arm = self._controller.arm

        def make_move(start: Array, previous: PathMove | None) -> PathMove:
            return CircleMove(
                arm, start, via, goal=goal, pace=pace, fixed=mode == 1, previous=previous
            )

        yield from self._follow(thread, make_move)

    @script_function
    @exclusive
    def servoj(
        self,
        _thread: Any,
        q: Any,
        a: float = 0.0,
        v: float = 0.0,
        t: float | None = None,
        lookahead_time: float = 0.1,
        gain: float = 300.0,
    ) -> Wait:
        duration = self._controller.period if t is None else max(positive("t", t), SHORTEST_SERVOJ)
        setpoint = numbers("servoj's q", q, 6)
        self._controller.servo(setpoint, duration, lookahead=lookahead_time, gain=gain)
        if self._controller.settings.servoj_follows_slider:
            yield from self._pass_motion_time(duration)
        else:
            yield from self._pass_servoj_time(duration)

    @script_function
    @exclusive
    def servoc(
        self, _thread: Any, pose: Any, a: float = 1.2, v: float = 0.25, r: float = 0.0
    ) -> Wait:
        if r:
            self._controller.without_effect("servoc's r")

        goal = self._frame("pose", pose)
        tool = self._controller.arm.tool(self._state.target_q)
        distance = np.linalg.norm(goal.translation - tool.translation)
        if distance < SERVOC_TOLERANCE and np.allclose(goal.rotation, tool.rotation):
            yield
            return
        yield from self.movel(_thread, pose, a, v)

    @script_function
    @exclusive
    def speedj(self, _thread: Any, qd: Any, a: float, t: float | None = None) -> Wait:
        yield from self._run_ramp(JointSpeed(numbers("speedj's qd", qd, 6), positive("a", a)), t)

    @script_function
    @exclusive
    def speedl(
        self, _thread: Any, xd: Any, a: float, t: float | None = None, aRot: float = 0.0
    ) -> Wait:
        acceleration = positive("a", a)
        angular_acceleration = positive("aRot", aRot) if aRot else acceleration
        speed = numbers("speedl's xd", xd, 6)
        arm = self._controller.arm
        ramp = ToolSpeed(
            arm, speed, acceleration=acceleration, angular_acceleration=angular_acceleration
        )
        yield from self._run_ramp(ramp, t)

    def _run_ramp(self, ramp: Ramp, duration: Any) -> Wait:
        """Begin a ramp and block for a time, s.

        Without a time, block until the ramp has attained its speed, as UR's manual says.
        """
        self._drive.motion = ramp
        if duration is not None:
            yield from self._pass_motion_time(duration)
            return
        while self._drive.motion is ramp and not ramp.is_attained:
            yield

    @script_function
    @exclusive
    def direct_torque(
        self,
        _thread: Any,
        torque: Any,
        friction_comp: Any = True,
        viscous_scale: Any = None,
        coulomb_scale: Any = None,
    ) -> Wait:
        if coulomb_scale is not None:
            self._controller.without_effect("direct_torque's compensation of Coulomb friction")

        compensation = np.full(6, float(friction_comp))
        if viscous_scale is not None:
            compensation = np.clip(numbers("viscous_scale", viscous_scale, 6), 0.0, 1.0)

        motion = self._drive.motion
        if not isinstance(motion, JointTorque):
            motion = JointTorque(self._controller.robot)
            self._drive.motion = motion
        motion.aim(numbers("torque", torque, 6), compensation)
        yield

    torque_command = direct_torque

    def _wait(self, duration: float) -> Wait:
        """Block for a time, s, at least until the next tick."""
        seconds = min(number("time", duration), LONGEST_WAIT)
        ticks = round(seconds / self._controller.period)
        for _ in range(max(1, ticks)):
            yield

    def _pass_servoj_time(self, duration: float) -> Wait:
        """Block until the tick in which a call of servoj ends.

        The call begins where the one before ended, if that was inside this tick. The next may begin
        inside a tick, too.

        Args:
            duration: Duration of the call, s.
        """
        now = self._state.timestamp
        self._servoj_end = max(self._servoj_end, now) + min(duration, LONGEST_WAIT)
        ticks = int((self._servoj_end - now) / self._controller.period + EDGE_TOLERANCE)
        for _ in range(ticks):
            yield

    def _pass_motion_time(self, duration: float) -> Wait:
        """Block for a time of the motion, s, which slows down with the arm.

        At a quarter of its speed, a call lasts four times as long. UR's manual does not say so;
        UR's own script relies on it (docs/emulator_fidelity.md).
        """
        period = self._controller.period
        remaining = number("time", duration) + self._carried_time
        while True:
            remaining -= period * self._state.speed_scaling
            yield
            if remaining < 0.5 * period:
                break
        self._carried_time = max(remaining, -0.5 * period)

    @script_function
    @exclusive
    def stopj(self, _thread: Any, a: float) -> Wait:
        yield from self._until_done(JointSpeed(np.zeros(6), positive("a", a), stops=True))

    @script_function
    @exclusive
    def stopl(self, _thread: Any, a: float, aRot: float = 0.0) -> Wait:
        deceleration = positive("a", a)
        angular_acceleration = positive("aRot", aRot) if aRot else deceleration
        stop = ToolSpeed(
            self._controller.arm,
            np.zeros(6),
            acceleration=deceleration,
            angular_acceleration=angular_acceleration,
            stops=True,
        )
        yield from self._until_done(stop)

    # Repeated here, so that it is among the functions that a secondary program may not call.
    sync = Library.sync

    @script_function
    def sleep(self, _thread: Any, t: float) -> Wait:
        yield from self._wait(t)

    @script_function
    def get_steptime(self, _thread: Any) -> float:
        return self._controller.period

    # Force mode, freedrive, the force sensor, contacts

    @script_function
    def force_mode(
        self,
        _thread: Any,
        task_frame: Any,
        selection_vector: Any,
        wrench: Any,
        type: int,
        limits: Any,
    ) -> None:
        if type not in (1, 2, 3):
            raise InvalidParameter("force_mode's type", short(type), "1, 2 or 3")
        if type != 2:
            self._controller.without_effect(f"force_mode's type {type} (it is taken for 2)")

        task = ForceTask(
            frame=frame_of(numbers("task_frame", task_frame, 6)),
            axes=numbers("selection_vector", selection_vector, 6),
            wrench=numbers("wrench", wrench, 6),
            limits=numbers("limits", limits, 6),
            gain=self._force_gain,
        )
        state = self._state
        drive = self._drive
        if drive.force_mode is None:
            drive.force_mode = ForceMode(self._controller.arm, state.target_q, state.target_qd)
        drive.force_mode.aim(state.target_q, task)

    @script_function
    def end_force_mode(self, _thread: Any) -> None:
        self._drive.release_force_mode()

    @script_function
    def force_mode_set_gain_scaling(self, _thread: Any, scaling: float) -> None:
        if not 0.0 <= number("gain scaling", scaling) <= 2.0:
            raise InvalidParameter("gain scaling", short(scaling), "from 0 to 2")
        self._force_gain = float(scaling)

    @script_function
    def force_mode_get_gain_scaling(self, _thread: Any) -> float:
        return self._force_gain

    @script_function
    def freedrive_mode(
        self, thread: Any, freeAxes: Any = ALL_AXES, feature: Any = ZERO_POSE
    ) -> None:
        self._check_mover(thread)
        controller = self._controller
        axes = numbers("freeAxes", freeAxes, 6)

        if feature == "tool":
            orientation = controller.arm.tool(self._state.target_q).rotation
        elif feature == "base":
            orientation = np.eye(3)
        else:
            orientation = pin.exp3(numbers("feature", feature, 6)[3:])
        self._drive.motion = Freedrive(
            controller.arm, self._drive.contact, axes=axes, feature=orientation
        )

    @script_function
    def teach_mode(self, thread: Any) -> None:
        self.freedrive_mode(thread)

    freedrive_mode_no_incorrect_payload_check = teach_mode

    @script_function
    def end_freedrive_mode(self, _thread: Any) -> None:
        if isinstance(self._drive.motion, Freedrive):
            self._drive.motion = JointSpeed(np.zeros(6), FREEDRIVE_BRAKING, stops=True)

    end_teach_mode = end_freedrive_mode

    @script_function
    def zero_ftsensor(self, _thread: Any) -> None:
        self._drive.contact.zero()

    @script_function
    def ft_rtde_input_enable(
        self,
        _thread: Any,
        enable: bool,
        sensor_mass: float = 0.0,
        sensor_measuring_offset: Any = (0.0, 0.0, 0.0),
        sensor_cog: Any = (0.0, 0.0, 0.0),
    ) -> None:
        if sensor_mass or any(sensor_measuring_offset) or any(sensor_cog):
            self._controller.without_effect("the mass and place of an external force sensor")
        self._drive.contact.from_client = bool(enable)

    enable_external_ft_sensor = ft_rtde_input_enable

    @script_function
    def tool_contact(self, thread: Any, direction: Any = None) -> int:
        motion: Array = np.zeros(6)
        if direction is not None:
            motion = numbers("direction", direction, 6)
        ticks = self._drive.contact.ticks_since(motion[:3])
        thread.charge(COST_PER_TICK * ticks)
        return ticks


def _pace(a: Any, v: Any, t: Any, r: Any) -> Pace:
    """Return the pace of a move by its arguments in URScript; else raise InvalidParameter."""
    return Pace(
        acceleration=positive("a", a),
        speed=positive("v", v),
        duration=not_negative("t", t),
        radius=not_negative("r", r),
    )
