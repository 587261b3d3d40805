"""URScript's functions that move the arm, wait or act by forces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator import moves
from simbridge.emulator.arm import Hold, JointSpeed, Motion, Ramp, ToolSpeed, frame_of
from simbridge.emulator.builtins import ControllerFunctions
from simbridge.emulator.drive import ForceMode, Freedrive, JointTorque
from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.state import Event
from simbridge.emulator.urscript.arguments import (
    fraction,
    not_negative,
    number,
    numbers,
    positive,
)
from simbridge.emulator.urscript.functions import Wait
from simbridge.emulator.urscript.library import Library
from simbridge.emulator.urscript.values import short
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

OPTIMOVE_JOINTS = 10.0  # rad/s^2, at a=1
OPTIMOVE_TOOL = (5.0, 1.5)  # m/s^2 and m/s, at a=1 and v=1
# UR's error code for overlapping blends (C171), and its argument for each kind of move
OVERLAP, OVERLAPPING = 171, {"movec": 0, "movej": 4, "movep": 9, "movel": 11, "optimovel": 11}
# Of a move that is skipped: it has been planned, and the next statement follows in the same tick.
SKIPPED_COST = 5000
# A call of servoj that lasts less than this lasts as long: the law takes a step for each call.
SHORTEST_SERVOJ = 1e-4  # s
# Nobody waits for the end of such a time, and its number of ticks is finite.
LONGEST_WAIT = 1e12  # s
BRAKING = 20.0  # rad/s^2, for an arm that is still moving when a move begins
COST_PER_TICK = 20  # of tool_contact, for each tick of the contact
FREEDRIVE_BRAKING = 5.0  # rad/s^2, at the end of freedrive
_ALL_AXES = (1, 1, 1, 1, 1, 1)


def _moving(function: Callable[..., Wait]) -> Callable[..., Wait]:
    """Only one thread at a time may be in a function that moves the arm."""

    @functools.wraps(function)
    def exclusive(self: MotionFunctions, thread: Any, *arguments: Any, **named: Any) -> Wait:
        self._check_mover(thread)
        self._mover = thread
        try:
            return (yield from function(self, thread, *arguments, **named))
        finally:
            self._mover = None

    return exclusive


class MotionFunctions(ControllerFunctions):
    """Moves, speeds, servoing, stops; `sync` and `sleep`; forces."""

    _mover: Any = None
    _force_gain = 0.5
    _carried = 0.0  # s, of a timed motion's call that did not end with a tick

    def _check_mover(self, thread: Any) -> None:
        """Raise a fault if another thread is in a function that moves the arm."""
        if self._mover not in (None, thread):
            raise RuntimeFault("Another thread is already controlling the robot.")

    def _until_done(self, move: Motion, *, blend: bool = True) -> Wait:
        """Run a motion to its end, or to where the next one may take over."""
        drive = self._drive
        drive.motion = move
        try:
            while not (move.done or (blend and move.blending)) and drive.motion is move:
                yield
        finally:
            # The move of a killed thread ends with it; one that is done stands at its target.
            if drive.motion is move and not (move.done or move.blending):
                drive.motion = Hold()

    def _previous(self) -> moves.PathMove | None:
        """The move that the next one blends with."""
        current = self._drive.motion
        return current if isinstance(current, moves.PathMove) and current.blending else None

    def _start(self, previous: moves.PathMove | None) -> Array:
        """Where the path of the next move starts: joints (n,), rad."""
        here = self._state.target_q
        return here if previous is None else previous.joints(1.0, here)

    def _follow(
        self, thread: Any, make: Callable[[Array, moves.PathMove | None], moves.PathMove]
    ) -> Wait:
        """Run a move: `make` gets the joints where its path starts, and the move to blend with."""
        previous = self._previous()
        if (
            previous is None
            and np.abs(self._state.target_qd).max() > BRAKING * self._controller.period
        ):
            # A move starts at rest, and the joints are too fast to stop within a tick.
            yield from self._until_done(JointSpeed(np.zeros(6), BRAKING, stops=True))
        move = make(self._start(previous), previous)
        if move.skipped:
            thread.charge(SKIPPED_COST)
            number, argument = OVERLAP, OVERLAPPING[move.kind]
            text = f"Overlapping blends in a {move.kind}: a waypoint was skipped"
            self._controller.on_event(Event("safety", text, code=number, argument=argument))
            return
        if previous is not None and move.blend is None:  # it has no length
            yield from self._until_done(previous, blend=False)
        yield from self._until_done(move)

    @_moving
    def do_movej(
        self, thread: Any, q: Any, a: float = 1.4, v: float = 1.05, t: float = 0.0, r: float = 0.0
    ) -> Wait:
        pace = positive("a", a), positive("v", v), not_negative("t", t), not_negative("r", r)
        c = self._controller
        goal = yield from self._joints(thread, q, self._start(self._previous()))
        if ((goal < c.robot.position_min) | (goal > c.robot.position_max)).any():
            raise InvalidParameter(
                "movej's q", short(q), "joint positions within the joints' range"
            )
        limits = c.joint_speed_limits
        yield from self._follow(
            thread,
            lambda start, previous: moves.JointMove(c.arm, start, goal, limits, *pace, previous),
        )

    def _straight(self, thread: Any, kind: str, pose: Any, a: Any, v: Any, t: Any, r: Any) -> Wait:
        goal, c = self._frame("pose", pose), self._controller
        pace = (
            positive("a", a),
            positive("v", v),
            not_negative("t", t),
            c.joint_speed_limits,
            not_negative("r", r),
        )
        yield from self._follow(
            thread,
            lambda start, previous: moves.ToolMove(c.arm, start, goal, *pace, previous, kind),
        )

    @_moving
    def do_movel(
        self,
        thread: Any,
        pose: Any,
        a: float = 1.2,
        v: float = 0.25,
        t: float = 0.0,
        r: float = 0.0,
    ) -> Wait:
        yield from self._straight(thread, "movel", pose, a, v, t, r)

    # OptiMove takes its speed and acceleration as fractions of what the arm can do; its profiles are not modelled.

    @_moving
    def do_optimovej(
        self, thread: Any, goal: Any, a: float = 0.3, v: float = 0.3, r: float = 0.0
    ) -> Wait:
        speed = fraction("v", v) * float(self._controller.robot.max_velocity.min())
        yield from self.do_movej(thread, goal, fraction("a", a) * OPTIMOVE_JOINTS, speed, r=r)

    @_moving
    def do_optimovel(
        self, thread: Any, goal: Any, a: float = 0.3, v: float = 0.3, r: float = 0.0
    ) -> Wait:
        acceleration, speed = (
            fraction("a", a) * OPTIMOVE_TOOL[0],
            fraction("v", v) * OPTIMOVE_TOOL[1],
        )
        yield from self._straight(thread, "optimovel", goal, acceleration, speed, 0.0, r)

    @_moving
    def do_movep(
        self, thread: Any, pose: Any, a: float = 1.2, v: float = 0.25, r: float = 0.0
    ) -> Wait:
        yield from self._straight(thread, "movep", pose, a, v, 0.0, r)

    @_moving
    def do_movec(
        self,
        thread: Any,
        pose_via: Any,
        pose_to: Any,
        a: float = 1.2,
        v: float = 0.25,
        r: float = 0.0,
        mode: int = 0,
    ) -> Wait:
        via, goal = self._frame("pose_via", pose_via), self._frame("pose_to", pose_to)
        how = positive("a", a), positive("v", v), mode == 1, not_negative("r", r)
        arm = self._controller.arm
        yield from self._follow(
            thread, lambda start, previous: moves.CircleMove(arm, start, via, goal, *how, previous)
        )

    @_moving
    def do_servoj(
        self, _thread: Any, q: Any, a: float = 0.0, v: float = 0.0, t: float | None = None,
        lookahead_time: float = 0.1, gain: float = 300.0,
    ) -> Wait:  # fmt: skip
        duration = self._controller.period if t is None else max(positive("t", t), SHORTEST_SERVOJ)
        self._controller.servo(numbers("servoj's q", q, 6), duration, lookahead_time, gain)
        yield from (self._pass if self._controller.settings.servoj_follows_slider else self._wait)(
            duration
        )

    @_moving
    def do_servoc(
        self, _thread: Any, pose: Any, a: float = 1.2, v: float = 0.25, r: float = 0.0
    ) -> Wait:
        if r:
            self._controller.without_effect("servoc's r")
        goal = self._frame("pose", pose)
        here = self._controller.arm.tool(self._state.target_q)
        if np.linalg.norm(goal.translation - here.translation) < 1e-9 and np.allclose(
            goal.rotation, here.rotation
        ):
            yield
            return
        yield from self.do_movel(_thread, pose, a, v)

    @_moving
    def do_speedj(self, _thread: Any, qd: Any, a: float = 1.4, t: float | None = None) -> Wait:
        yield from self._speed(JointSpeed(numbers("speedj's qd", qd, 6), positive("a", a)), t)

    @_moving
    def do_speedl(
        self, _thread: Any, xd: Any, a: float = 1.2, t: float | None = None, aRot: float = 0.0
    ) -> Wait:
        acceleration = positive("a", a)
        angular = positive("aRot", aRot) if aRot else acceleration
        speed = numbers("speedl's xd", xd, 6)
        yield from self._speed(ToolSpeed(self._controller.arm, speed, acceleration, angular), t)

    def _speed(self, ramp: Ramp, duration: Any) -> Wait:
        """Begin a ramp and block for a time; without one, as UR's manual says, until it has reached its speed."""
        self._drive.motion = ramp
        if duration is not None:
            yield from self._pass(duration)
            return
        while self._drive.motion is ramp and not ramp.reached:
            yield

    @_moving
    def do_direct_torque(
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
        if type(self._drive.motion) is not JointTorque:
            self._drive.motion = JointTorque(self._controller.robot)
        self._drive.motion.aim(numbers("torque", torque, 6), compensation)
        yield

    do_torque_command = do_direct_torque

    def _wait(self, duration: float) -> Wait:
        """Block for a time, at least until the next tick."""
        period = self._controller.period
        ticks = round(min(number("time", duration), LONGEST_WAIT) / period)
        for _ in range(max(1, ticks)):
            yield

    def _pass(self, duration: float) -> Wait:
        """Block for a time of the motion, which passes as slowly as the arm moves: at a quarter of its speed, a call
        lasts four times as long. UR's manual does not say so; UR's own script reckons with it (docs/emulator.md)."""
        period, left = self._controller.period, number("time", duration) + self._carried
        while True:
            left -= period * self._state.speed_scaling
            yield
            if left < 0.5 * period:
                break
        self._carried = max(left, -0.5 * period)

    @_moving
    def do_stopj(self, _thread: Any, a: float = 2.0) -> Wait:
        yield from self._until_done(JointSpeed(np.zeros(6), positive("a", a), stops=True))

    @_moving
    def do_stopl(self, _thread: Any, a: float = 10.0, aRot: float = 0.0) -> Wait:
        deceleration = positive("a", a)
        angular = positive("aRot", aRot) if aRot else deceleration
        stop = ToolSpeed(self._controller.arm, np.zeros(6), deceleration, angular, stops=True)
        yield from self._until_done(stop)

    do_sync = (
        Library.do_sync
    )  # here too, so that it is among the functions that a secondary program may not call

    def do_sleep(self, _thread: Any, t: float) -> Wait:
        yield from self._wait(t)

    def do_get_steptime(self, _thread: Any) -> float:
        return self._controller.period

    # Force mode, freedrive, the force sensor, contacts

    def do_force_mode(
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
        s, drive = self._state, self._drive
        arguments = (
            frame_of(numbers("task_frame", task_frame, 6)), numbers("selection_vector", selection_vector, 6),
            numbers("wrench", wrench, 6), numbers("limits", limits, 6),
        )  # fmt: skip
        if drive.force_mode is None:
            drive.force_mode = ForceMode(self._controller.arm, s.target_q, s.target_qd)
        drive.force_mode.aim(s.target_q, *arguments, self._force_gain)

    def do_end_force_mode(self, _thread: Any) -> None:
        self._drive.release_force_mode()

    def do_force_mode_set_gain_scaling(self, _thread: Any, scaling: float) -> None:
        if not 0.0 <= number("gain scaling", scaling) <= 2.0:
            raise InvalidParameter("gain scaling", short(scaling), "from 0 to 2")
        self._force_gain = float(scaling)

    def do_force_mode_get_gain_scaling(self, _thread: Any) -> float:
        return self._force_gain

    def do_freedrive_mode(
        self, thread: Any, freeAxes: Any = _ALL_AXES, feature: Any = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    ) -> None:
        self._check_mover(thread)
        controller, free, turn = self._controller, numbers("freeAxes", freeAxes, 6), np.eye(3)
        if feature == "tool":
            turn = controller.arm.tool(self._state.target_q).rotation
        elif feature != "base":
            turn = pin.exp3(numbers("feature", feature, 6)[3:])
        self._drive.motion = Freedrive(controller.arm, self._drive.contact, free, turn)

    do_freedrive_mode_no_incorrect_payload_check = do_freedrive_mode

    def do_teach_mode(self, thread: Any) -> None:
        self.do_freedrive_mode(thread)

    def do_end_freedrive_mode(self, _thread: Any) -> None:
        if isinstance(self._drive.motion, Freedrive):
            self._drive.motion = JointSpeed(np.zeros(6), FREEDRIVE_BRAKING, stops=True)

    do_end_teach_mode = do_end_freedrive_mode

    def do_zero_ftsensor(self, _thread: Any) -> None:
        self._drive.contact.zero()

    def do_ft_rtde_input_enable(self, _thread: Any, enable: bool, *sensor: Any) -> None:
        if sensor:
            self._controller.without_effect("the mass and place of an external force sensor")
        self._drive.contact.from_client = bool(enable)

    do_enable_external_ft_sensor = do_ft_rtde_input_enable

    def do_tool_contact(self, thread: Any, direction: Any = None) -> int:
        towards: Array = np.zeros(6) if direction is None else numbers("direction", direction, 6)
        ticks = self._drive.contact.ticks_since(towards[:3])
        thread.charge(COST_PER_TICK * ticks)
        return ticks
