"""URScript's built-in functions: what a program may ask of the controller.

Each is called as `function(thread, *arguments)`; one that blocks is a generator that yields once a tick until it is
done.
Angles in rad, lengths in m. Defaults are URScript's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Unreachable, frame_of, pose_of
from simbridge.emulator.motion import (
    CircleMove,
    Hold,
    JointMove,
    JointSpeed,
    JointStop,
    Motion,
    ToolMove,
    ToolSpeed,
    ToolStop,
)
from simbridge.emulator.state import Array
from simbridge.emulator.urscript.values import Pose, to_text
from simbridge.errors import InvalidParameter

if TYPE_CHECKING:
    from simbridge.emulator.controller import Controller

Wait = Generator[None, None, Any]


def _numbers(what: str, values: Any, count: int) -> Array:
    array = np.array(values, dtype=float) if isinstance(values, Iterable) else np.zeros(0)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise InvalidParameter(what, values, f"{count} finite numbers")
    return array


def _list(values: Array) -> list[float]:
    return [float(v) for v in values]


def _pose(values: Array) -> Pose:
    return Pose(_list(values))


class Builtins:
    """The functions, over one controller.

    Args:
        controller: On which they act.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._state = controller.state

    def table(self) -> Mapping[str, Callable[..., Any]]:
        """Every function by its name in URScript."""
        return {name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")}

    # Motion

    def _joints(self, target: Any) -> Array:
        """Joint positions (6,) of a target given as joints or as a pose."""
        if isinstance(target, Pose):
            return self._controller.arm.any_joints(self._frame("pose", target), self._state.target_q)
        return _numbers("joint positions", target, 6)

    def _frame(self, what: str, target: Any) -> pin.SE3:
        if not isinstance(target, Pose):
            return self._controller.arm.tool(_numbers(what, target, 6))
        return frame_of(_numbers(what, target, 6))

    def _until_done(self, motion: Motion) -> Wait:
        controller = self._controller
        controller.motion = motion
        try:
            while not motion.done and controller.motion is motion:
                yield
        finally:
            # A killed move does not go on by itself.
            if controller.motion is motion:
                controller.motion = Hold()

    def do_movej(self, _thread: Any, q: Any, a: float = 1.4, v: float = 1.05, t: float = 0.0, r: float = 0.0) -> Wait:
        goal = self._joints(q)
        acceleration, speed, duration = _positive("a", a), _positive("v", v), _not_negative("t", t)
        yield from self._until_done(JointMove(self._state.target_q, goal, acceleration, speed, duration))

    def do_movel(
        self, _thread: Any, pose: Any, a: float = 1.2, v: float = 0.25, t: float = 0.0, r: float = 0.0
    ) -> Wait:
        goal = self._frame("pose", pose)
        arm = self._controller.arm
        motion = ToolMove(arm, self._state.target_q, goal, _positive("a", a), _positive("v", v), _not_negative("t", t))
        yield from self._until_done(motion)

    def do_movep(self, _thread: Any, pose: Any, a: float = 1.2, v: float = 0.25, r: float = 0.0) -> Wait:
        yield from self.do_movel(_thread, pose, a, v)

    def do_movec(
        self, _thread: Any, pose_via: Any, pose_to: Any, a: float = 1.2, v: float = 0.25, r: float = 0.0, mode: int = 0
    ) -> Wait:
        via, goal = self._frame("pose_via", pose_via), self._frame("pose_to", pose_to)
        arm = self._controller.arm
        motion = CircleMove(arm, self._state.target_q, via, goal, _positive("a", a), _positive("v", v))
        yield from self._until_done(motion)

    def do_servoj(
        self,
        _thread: Any,
        q: Any,
        a: float = 0.0,
        v: float = 0.0,
        t: float = 0.002,
        lookahead_time: float = 0.1,
        gain: float = 300.0,
    ) -> Wait:
        self._controller.servo(_numbers("servoj's q", q, 6), lookahead_time, gain)
        yield from self._for(t)

    def do_servoc(self, _thread: Any, pose: Any, a: float = 1.2, v: float = 0.25, r: float = 0.0) -> Wait:
        goal = self._frame("pose", pose)
        here = self._controller.arm.tool(self._state.target_q)
        if np.linalg.norm(goal.translation - here.translation) < 1e-9 and np.allclose(goal.rotation, here.rotation):
            yield
            return
        yield from self.do_movel(_thread, pose, a, v)

    def do_speedj(self, _thread: Any, qd: Any, a: float = 1.4, t: float = 0.0) -> Wait:
        self._controller.motion = JointSpeed(_numbers("speedj's qd", qd, 6), _positive("a", a))
        yield from self._for(t)

    def do_speedl(self, _thread: Any, xd: Any, a: float = 1.2, t: float = 0.0, aRot: float = 0.0) -> Wait:
        s, speed = self._state, _numbers("speedl's xd", xd, 6)
        motion = self._controller.motion
        if type(motion) is ToolSpeed:
            motion.aim(speed, _positive("a", a))
        else:
            arm = self._controller.arm
            self._controller.motion = ToolSpeed(arm, s.target_q, s.target_qd, speed, _positive("a", a))
        yield from self._for(t)

    def _for(self, duration: float) -> Wait:
        """Block for a time, at least until the next tick."""
        period = self._controller.period
        for _ in range(max(1, round(float(duration) / period))):
            yield

    def do_stopj(self, _thread: Any, a: float = 2.0) -> Wait:
        yield from self._until_done(JointStop(_positive("a", a)))

    def do_stopl(self, _thread: Any, a: float = 10.0, aRot: float = 0.0) -> Wait:
        s = self._state
        yield from self._until_done(ToolStop(self._controller.arm, s.target_q, s.target_qd, _positive("a", a)))

    def do_sync(self, _thread: Any) -> Wait:
        yield

    def do_sleep(self, _thread: Any, t: float) -> Wait:
        yield from self._for(t)

    def do_get_steptime(self, _thread: Any) -> float:
        return self._controller.period

    # Kinematics

    def do_get_forward_kin(self, _thread: Any, q: Any = None, tcp: Any = None) -> Pose:
        arm = self._controller.arm
        joints = self._state.actual_q if q is None else _numbers("q", q, 6)
        if tcp is None:
            return _pose(arm.pose(joints))
        flange = arm.tool(joints) * frame_of(arm.tcp).inverse()
        return _pose(pose_of(flange * self._frame("tcp", tcp)))

    def do_get_inverse_kin(
        self, _thread: Any, x: Any, qnear: Any = None, maxPositionError: float = 1e-10,
        maxOrientationError: float = 1e-10, tcp: Any = None,
    ) -> list[float]:  # fmt: skip
        target = self._frame("x", x)
        arm = self._controller.arm
        if tcp is not None:
            target = target * self._frame("tcp", tcp).inverse() * frame_of(arm.tcp)
        near = self._state.actual_q if qnear is None else _numbers("qnear", qnear, 6)
        return _list(arm.any_joints(target, near))

    def do_get_inverse_kin_has_solution(self, _thread: Any, x: Any, *more: Any) -> bool:
        try:
            self.do_get_inverse_kin(_thread, x, *more)
        except Unreachable:
            return False
        return True

    def do_is_within_safety_limits(self, _thread: Any, q: Any) -> bool:
        robot = self._controller.robot
        try:
            joints = self._joints(q)
        except Unreachable:
            return False
        return bool((joints >= robot.position_min).all() and (joints <= robot.position_max).all())

    def do_get_jacobian(self, _thread: Any, q: Any = None, tcp: Any = None) -> list[list[float]]:
        joints = self._state.actual_q if q is None else _numbers("q", q, 6)
        return [_list(row) for row in self._controller.arm.jacobian(joints)]

    def do_get_mass_matrix(
        self, _thread: Any, q: Any = None, include_rotors_inertia: bool = False
    ) -> list[list[float]]:
        joints = self._state.actual_q if q is None else _numbers("q", q, 6)
        model = self._controller.robot.model
        mass = pin.crba(model, model.createData(), joints)
        return [_list(row) for row in np.triu(mass) + np.triu(mass, 1).T]

    def do_get_coriolis_and_centrifugal_torques(self, _thread: Any, q: Any = None, qd: Any = None) -> list[float]:
        joints = self._state.actual_q if q is None else _numbers("q", q, 6)
        speeds = self._state.actual_qd if qd is None else _numbers("qd", qd, 6)
        model = self._controller.robot.model
        data = model.createData()
        return _list(
            pin.nonLinearEffects(model, data, joints, speeds) - pin.computeGeneralizedGravity(model, data, joints)
        )

    # Poses

    def do_pose_trans(self, _thread: Any, p_from: Any, p_from_to: Any) -> Pose:
        return _pose(pose_of(frame_of(_numbers("p_from", p_from, 6)) * frame_of(_numbers("p_from_to", p_from_to, 6))))

    def do_pose_inv(self, _thread: Any, p_from: Any) -> Pose:
        return _pose(pose_of(frame_of(_numbers("p_from", p_from, 6)).inverse()))

    def do_pose_add(self, _thread: Any, p_1: Any, p_2: Any) -> Pose:
        a, b = frame_of(_numbers("p_1", p_1, 6)), frame_of(_numbers("p_2", p_2, 6))
        return _pose(pose_of(pin.SE3(a.rotation @ b.rotation, a.translation + b.translation)))

    def do_pose_sub(self, _thread: Any, p_to: Any, p_from: Any) -> Pose:
        a, b = frame_of(_numbers("p_to", p_to, 6)), frame_of(_numbers("p_from", p_from, 6))
        return _pose(pose_of(pin.SE3(a.rotation @ b.rotation.T, a.translation - b.translation)))

    def do_pose_dist(self, _thread: Any, pose_from: Any, pose_to: Any) -> float:
        return float(np.linalg.norm(_numbers("pose_to", pose_to, 6)[:3] - _numbers("pose_from", pose_from, 6)[:3]))

    def do_point_dist(self, _thread: Any, p_from: Any, p_to: Any) -> float:
        return self.do_pose_dist(_thread, p_from, p_to)

    def do_interpolate_pose(self, _thread: Any, p_from: Any, p_to: Any, alpha: float) -> Pose:
        a, b = frame_of(_numbers("p_from", p_from, 6)), frame_of(_numbers("p_to", p_to, 6))
        turn = pin.exp3(alpha * pin.log3(b.rotation @ a.rotation.T))
        return _pose(pose_of(pin.SE3(turn @ a.rotation, a.translation + alpha * (b.translation - a.translation))))

    def do_wrench_trans(self, _thread: Any, t_from_to: Any, w_from: Any) -> list[float]:
        frame, w = frame_of(_numbers("T_from_to", t_from_to, 6)).inverse(), _numbers("w_from", w_from, 6)
        force = frame.rotation @ w[:3]
        return _list(np.concatenate([force, frame.rotation @ w[3:] + np.cross(frame.translation, force)]))

    # State

    def do_get_actual_joint_positions(self, _thread: Any) -> list[float]:
        return _list(self._state.actual_q)

    def do_get_actual_joint_positions_history(self, _thread: Any, steps: int = 0) -> list[float]:
        ticks = self._controller.record.ticks
        back = min(max(int(steps), 0), len(ticks) - 1)
        return _list(ticks[-1 - back][3]) if ticks else _list(self._state.actual_q)

    def do_get_actual_joint_speeds(self, _thread: Any) -> list[float]:
        return _list(self._state.actual_qd)

    def do_get_target_joint_positions(self, _thread: Any) -> list[float]:
        return _list(self._state.target_q)

    def do_get_target_joint_speeds(self, _thread: Any) -> list[float]:
        return _list(self._state.target_qd)

    def do_get_target_joint_accelerations(self, _thread: Any) -> list[float]:
        return _list(self._state.target_qdd)

    def do_get_actual_tcp_pose(self, _thread: Any) -> Pose:
        return _pose(self._state.actual_tcp_pose)

    def do_get_target_tcp_pose(self, _thread: Any) -> Pose:
        return _pose(self._state.target_tcp_pose)

    def do_get_actual_tcp_speed(self, _thread: Any) -> list[float]:
        return _list(self._state.actual_tcp_speed)

    def do_get_target_tcp_speed(self, _thread: Any) -> list[float]:
        return _list(self._state.target_tcp_speed)

    def do_get_actual_tool_flange_pose(self, _thread: Any) -> Pose:
        arm = self._controller.arm
        return _pose(pose_of(arm.tool(self._state.actual_q) * frame_of(arm.tcp).inverse()))

    def do_get_target_waypoint(self, _thread: Any) -> Pose:
        goal = self._controller.motion.goal()
        return _pose(self._state.target_tcp_pose) if goal is None else _pose(goal)

    def do_get_joint_torques(self, _thread: Any) -> list[float]:
        return _list(self._state.target_moment)

    def do_get_tcp_force(self, _thread: Any) -> list[float]:
        return [0.0] * 6

    def do_get_tcp_offset(self, _thread: Any) -> Pose:
        return _pose(self._state.tcp_offset)

    def do_is_steady(self, _thread: Any) -> bool:
        return not self._state.target_qd.any()

    def do_tool_contact(self, _thread: Any, direction: Any = None) -> int:
        # Nothing is there to be touched.
        return 0

    # Settings

    def do_set_tcp(self, _thread: Any, pose: Any, name: str = "") -> None:
        self._controller.set_tcp(_numbers("TCP", pose, 6))

    def do_set_payload(self, _thread: Any, m: float, cog: Any = None) -> None:
        self._state.payload = _not_negative("payload", m)
        if cog is not None:
            self._state.payload_cog = _numbers("centre of gravity", cog, 3)

    def do_set_target_payload(
        self, _thread: Any, m: float, cog: Any = None, inertia: Any = None, transition: float = 0.0
    ) -> None:
        self.do_set_payload(_thread, m, cog)
        if inertia is not None:
            self._state.payload_inertia = _numbers("inertia", inertia, 6)

    def do_set_payload_mass(self, _thread: Any, m: float) -> None:
        self._state.payload = _not_negative("payload", m)

    def do_set_payload_cog(self, _thread: Any, cog: Any) -> None:
        self._state.payload_cog = _numbers("centre of gravity", cog, 3)

    def do_get_target_payload(self, _thread: Any) -> float:
        return self._state.payload

    def do_get_target_payload_cog(self, _thread: Any) -> list[float]:
        return _list(self._state.payload_cog)

    def do_get_target_payload_inertia(self, _thread: Any) -> list[float]:
        return _list(self._state.payload_inertia)

    def do_set_gravity(self, _thread: Any, d: Any) -> None:
        self._state.gravity = _numbers("gravity", d, 3)

    # Registers

    def _write(self, registers: list[Any], index: Any, value: Any) -> None:
        registers[_index(index, len(registers))] = value

    def do_read_input_integer_register(self, _thread: Any, address: int) -> int:
        return self._state.input_int[_index(address, 48)]

    def do_read_input_float_register(self, _thread: Any, address: int) -> float:
        return self._state.input_double[_index(address, 48)]

    def do_read_input_boolean_register(self, _thread: Any, address: int) -> bool:
        return self._state.input_bit[_index(address, 128)]

    def do_read_output_integer_register(self, _thread: Any, address: int) -> int:
        return self._state.output_int[_index(address, 48)]

    def do_read_output_float_register(self, _thread: Any, address: int) -> float:
        return self._state.output_double[_index(address, 48)]

    def do_read_output_boolean_register(self, _thread: Any, address: int) -> bool:
        return self._state.output_bit[_index(address, 128)]

    def do_write_output_integer_register(self, _thread: Any, address: int, value: int) -> None:
        # A register is 32 bits wide and wraps.
        self._write(self._state.output_int, address, (int(value) + 2**31) % 2**32 - 2**31)

    def do_write_output_float_register(self, _thread: Any, address: int, value: float) -> None:
        self._write(self._state.output_double, address, float(value))

    def do_write_output_boolean_register(self, _thread: Any, address: int, value: bool) -> None:
        self._write(self._state.output_bit, address, bool(value))

    def do_set_digital_out(self, _thread: Any, n: int, b: bool) -> None:
        bit = 1 << _index(n, 18)
        s = self._state
        s.digital_outputs = s.digital_outputs | bit if b else s.digital_outputs & ~bit

    do_set_standard_digital_out = do_set_digital_out

    def do_get_digital_in(self, _thread: Any, n: int) -> bool:
        return bool(self._state.digital_inputs >> _index(n, 18) & 1)

    do_get_standard_digital_in = do_get_digital_in

    # The program and people

    def do_rtde_set_watchdog(
        self, _thread: Any, variable_name: str, min_frequency: float, action: str = "pause"
    ) -> None:
        self._controller.watch(str(variable_name), float(min_frequency), str(action))

    def do_textmsg(self, _thread: Any, s1: Any, s2: Any = "") -> None:

        self._controller.on_message("text", to_text(s1) + to_text(s2), 0)

    def do_popup(
        self,
        _thread: Any,
        s: Any,
        title: str = "Popup",
        warning: bool = False,
        error: bool = False,
        blocking: bool = False,
    ) -> Wait:
        self._controller.popup(str(s))
        while blocking and self._controller.popup_text:
            yield
        return None
        yield

    def do_protective_stop(self, _thread: Any) -> Wait:
        self._controller.protective_stop("the program asked for it")
        yield

    # What is accepted and has no effect on an arm without forces

    def _nothing(self, _thread: Any, *_arguments: Any, **_named: Any) -> None:
        return None

    do_force_mode = do_end_force_mode = do_force_mode_set_damping = do_force_mode_set_gain_scaling = _nothing
    do_freedrive_mode = do_end_freedrive_mode = do_teach_mode = do_end_teach_mode = _nothing
    do_zero_ftsensor = do_ft_rtde_input_enable = do_enable_external_ft_sensor = _nothing

    def do_get_freedrive_status(self, _thread: Any) -> int:
        return 0


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value > 0.0):
        raise InvalidParameter(name, value, "a positive number")
    return float(value)


def _not_negative(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= 0.0):
        raise InvalidParameter(name, value, "a number, not negative")
    return float(value)


def _index(value: Any, count: int) -> int:
    if not isinstance(value, int) or not 0 <= value < count:
        raise InvalidParameter("register", value, f"a whole number from 0 to {count - 1}")
    return value
