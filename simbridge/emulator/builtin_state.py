"""URScript's built-in functions that do not move the arm: state, settings, inputs and outputs, messages, kinematics.

Each is called as `function(thread, *arguments)`. One that blocks is a generator that yields once a tick until it is
done. Angles in rad, lengths in m. Defaults are URScript's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Unreachable, frame_of, pose_of
from simbridge.emulator.emulated_controller import Controller
from simbridge.emulator.rtde_variables import output_variables
from simbridge.emulator.state import Event
from simbridge.emulator.urscript.arguments import (
    as_list,
    as_pose,
    not_negative,
    number,
    numbers,
    text_of,
)
from simbridge.emulator.urscript.functions import FunctionGroup, Wait
from simbridge.emulator.urscript.values import Pose, Struct, short, wrap
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

ATTEMPT_COST = 4000  # of inverse kinematics, in units of a tick's budget
_ACTIVE = (None, "active_tcp")


def _register(value: Any, count: int) -> int:
    """A register's number, 0 to count - 1."""
    if not isinstance(value, int) or not 0 <= value < count:
        raise InvalidParameter("register", short(value), f"a whole number from 0 to {count - 1}")
    return value


def _reads(attribute: str, convert: Callable[[Array], Any] = as_list) -> Callable[..., Any]:
    """A function that returns a part of the controller's state."""

    def read(self: ControllerFunctions, _thread: Any) -> Any:
        return convert(getattr(self._state, attribute))

    return read


def _reads_register(attribute: str) -> Callable[..., Any]:
    def read(self: ControllerFunctions, _thread: Any, address: int) -> Any:
        registers = getattr(self._state, attribute)
        return registers[_register(address, len(registers))]

    return read


def _writes_register(attribute: str, convert: Callable[[Any], Any]) -> Callable[..., Any]:
    def write(self: ControllerFunctions, _thread: Any, address: int, value: Any) -> None:
        registers = getattr(self._state, attribute)
        registers[_register(address, len(registers))] = convert(value)

    return write


def _reads_bit(attribute: str, first: int = 0, count: int = 18) -> Callable[..., Any]:
    def read(self: ControllerFunctions, _thread: Any, n: int) -> bool:
        return bool(getattr(self._state, attribute) >> first + _register(n, count) & 1)

    return read


def _writes_bit(first: int = 0, count: int = 18) -> Callable[..., Any]:
    def write(self: ControllerFunctions, _thread: Any, n: int, b: bool) -> None:
        bit = 1 << first + _register(n, count)
        outputs = self._state.digital_outputs
        self._state.digital_outputs = outputs | bit if b else outputs & ~bit

    return write


def _asks(zero: Any) -> Callable[..., Wait]:
    """A function that shows a question and waits: nobody can type an answer here, so closing it returns a zero."""

    def ask(self: ControllerFunctions, thread: Any, message: Any) -> Wait:
        yield from self.do_popup(thread, message, blocking=True)
        return zero

    return ask


class ControllerFunctions(FunctionGroup):
    """Functions that read or set the state of a controller; those that move its arm are a subclass.

    Args:
        controller: The one they act on.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._state, self._drive = controller.state, controller.drive

    def _joints(self, thread: Any, target: Any, near: Array) -> Wait:
        """Joint positions (6,) of a target given as joints, or as a pose: then those found first, from nearby ones."""
        if isinstance(target, Pose):
            return (yield from self._inverse(thread, self._frame("pose", target), near))
        return numbers("joint positions", target, 6)

    def _inverse(self, thread: Any, target: pin.SE3, near: Array) -> Wait:
        for found in self._controller.arm.any_joints(target, near):
            yield from thread.work(ATTEMPT_COST)
            if found is not None:
                return found

    def _frame(self, name: str, target: Any) -> pin.SE3:
        if not isinstance(target, Pose):
            return self._controller.arm.tool(numbers(name, target, 6))
        return frame_of(numbers(name, target, 6))

    # What the arm does and is commanded to do

    do_get_actual_joint_positions = do_get_joint_positions = _reads("actual_q")
    do_get_actual_joint_speeds = _reads("actual_qd")
    do_get_target_joint_positions = _reads("target_q")
    do_get_target_joint_speeds = _reads("target_qd")
    do_get_target_joint_accelerations = do_get_actual_joint_accelerations = _reads("target_qdd")
    do_get_actual_tcp_pose = do_tool_pose = _reads("actual_tcp_pose", as_pose)
    do_get_target_tcp_pose = do_get_target_tcp_pose_along_path = _reads("target_tcp_pose", as_pose)
    do_get_actual_tcp_speed = _reads("actual_tcp_speed")
    do_get_target_tcp_speed = do_get_target_tcp_speed_along_path = _reads("target_tcp_speed")
    do_get_joint_torques = _reads("target_moment")
    do_get_tcp_offset = _reads("tcp_offset", as_pose)

    def do_get_actual_joint_positions_history(self, _thread: Any, steps: int = 0) -> list[float]:
        return as_list(self._controller.record.past_q(int(steps)))

    def do_get_actual_tool_flange_pose(self, _thread: Any) -> Pose:
        arm = self._controller.arm
        return as_pose(pose_of(arm.tool(self._state.actual_q) * frame_of(arm.tcp).inverse()))

    def do_get_target_waypoint(self, _thread: Any) -> Pose:
        goal = self._drive.motion.goal()
        return as_pose(self._state.target_tcp_pose) if goal is None else as_pose(goal)

    do_get_tcp_force = _reads("tcp_force")

    def do_force(self, _thread: Any) -> float:
        return float(np.linalg.norm(self._state.tcp_force[:3]))

    def do_is_steady(self, _thread: Any) -> bool:
        return not self._state.target_qd.any()

    # Tool centre point, payload, gravity

    def do_set_tcp(self, _thread: Any, pose: Any, name: str = "") -> None:
        self._controller.set_tcp(numbers("TCP", pose, 6))

    def do_set_payload(self, _thread: Any, m: float, cog: Any = None) -> None:
        self._state.payload = not_negative("payload", m)
        if cog is not None:
            self._state.payload_cog = numbers("centre of gravity", cog, 3)

    def do_set_target_payload(
        self,
        _thread: Any,
        m: float,
        cog: Any = None,
        inertia: Any = None,
        transition_time: float = 0.0,
    ) -> None:
        self.do_set_payload(_thread, m, cog)
        if transition_time:
            self._controller.without_effect("set_target_payload's transition_time")
        if inertia is not None:
            self._state.payload_inertia = numbers("inertia", inertia, 6)

    def do_set_payload_mass(self, _thread: Any, m: float) -> None:
        self._state.payload = not_negative("payload", m)

    def do_set_payload_cog(self, _thread: Any, cog: Any) -> None:
        self._state.payload_cog = numbers("centre of gravity", cog, 3)

    do_get_target_payload = _reads("payload", float)
    do_get_target_payload_cog = _reads("payload_cog")
    do_get_target_payload_inertia = _reads("payload_inertia")
    do_get_gravity = _reads("gravity")

    def do_set_gravity(self, _thread: Any, d: Any) -> None:
        self._state.gravity = numbers("gravity", d, 3)

    # Messages, popups, the watchdog, a protective stop

    def do_rtde_set_watchdog(
        self, _thread: Any, variable_name: str, min_frequency: float, action: str = "pause"
    ) -> None:
        self._controller.watchdog.set(
            str(variable_name),
            number("min_frequency", min_frequency),
            action=str(action),
            now=self._state.timestamp,
        )

    def do_textmsg(self, thread: Any, s1: Any, s2: Any = "") -> None:
        self._controller.on_event(Event("text", text_of(thread, s1) + text_of(thread, s2)))

    def do_popup(
        self, thread: Any, s: Any, title: str = "Popup", warning: bool = False, error: bool = False,
        blocking: bool = False,
    ) -> Wait:  # fmt: skip
        if title != "Popup" or warning or error:
            self._controller.without_effect("a popup's title and kind")
        self._controller.popup(text_of(thread, s))
        while blocking and self._controller.popup_text:
            yield

    do_request_boolean_from_primary_client = _asks(False)
    do_request_integer_from_primary_client = _asks(0)
    do_request_float_from_primary_client = _asks(0.0)
    do_request_string_from_primary_client = _asks("")

    def do_time(self, _thread: Any, mode: int = 0) -> Struct:
        nanoseconds = time.time_ns() if mode else round(1e9 * self._state.timestamp)
        return Struct({"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9})

    def do_powerdown(self, thread: Any) -> None:
        self._controller.power_off()
        thread.check_ended()

    def do_protective_stop(self, thread: Any) -> None:
        # The program is paused before its next tick; one that has nothing left to do has ended, as UR's tests expect.
        self._controller.protective_stop("the program asked for it")
        thread.check_ended()

    # General-purpose registers, 48 integers and floats and 128 bits in each direction; digital inputs and outputs

    do_read_input_integer_register = _reads_register("input_int")
    do_read_input_float_register = _reads_register("input_double")
    do_read_input_boolean_register = _reads_register("input_bit")
    do_read_output_integer_register = _reads_register("output_int")
    do_read_output_float_register = _reads_register("output_double")
    do_read_output_boolean_register = _reads_register("output_bit")
    do_write_output_integer_register = _writes_register(
        "output_int", lambda value: wrap(int(number("value", value)))
    )
    do_write_output_float_register = _writes_register(
        "output_double", lambda value: number("value", value)
    )
    do_write_output_boolean_register = _writes_register("output_bit", bool)

    do_get_digital_in, do_get_digital_out = (
        _reads_bit("digital_inputs"),
        _reads_bit("digital_outputs"),
    )
    do_set_digital_out = _writes_bit()
    do_get_standard_digital_in, do_get_standard_digital_out = do_get_digital_in, do_get_digital_out
    do_set_standard_digital_out = do_set_digital_out
    do_get_configurable_digital_in = _reads_bit("digital_inputs", 8, 8)
    do_get_configurable_digital_out = _reads_bit("digital_outputs", 8, 8)
    do_set_configurable_digital_out = _writes_bit(8, 8)
    do_get_tool_digital_in = _reads_bit("digital_inputs", 16, 2)
    do_get_tool_digital_out = _reads_bit("digital_outputs", 16, 2)
    do_set_tool_digital_out = _writes_bit(16, 2)

    # Analog inputs and outputs, in A or V

    def do_get_analog_in(self, _thread: Any, n: int) -> float:
        return self._state.analog_inputs[_register(n, 4)]

    do_get_standard_analog_in = do_get_analog_in

    def do_get_tool_analog_in(self, _thread: Any, n: int) -> float:
        return self._state.analog_inputs[2 + _register(n, 2)]

    def do_get_analog_out(self, _thread: Any, n: int) -> float:
        i = _register(n, 2)
        voltage = self._state.analog_output_types >> i & 1
        return self._state.analog_outputs[i] * (1.0 if voltage else 1e-3)

    def do_set_analog_out(self, _thread: Any, n: int, f: float) -> None:
        self._state.set_analog_output(_register(n, 2), not_negative("f", f))

    def do_set_analog_outputdomain(self, thread: Any, port: int, domain: int) -> None:
        i = _register(port, 2)
        types = self._state.analog_output_types
        self._state.analog_output_types = types & ~(1 << i) | bool(domain) << i

    do_get_standard_analog_out, do_set_standard_analog_out = do_get_analog_out, do_set_analog_out

    def do_set_tool_voltage(self, _thread: Any, voltage: int) -> None:
        if voltage not in (0, 12, 24):
            raise InvalidParameter("voltage", short(voltage), "0, 12 or 24")
        self._state.tool_voltage = int(voltage)

    def do_get_flag(self, _thread: Any, n: int) -> bool:
        return self._state.flags[_register(n, len(self._state.flags))]

    def do_set_flag(self, _thread: Any, n: int, b: bool) -> None:
        self._state.flags[_register(n, len(self._state.flags))] = bool(b)

    def do_get_rtde_value(self, _thread: Any, key: str) -> Any:
        variables = output_variables(self._controller.profile)
        if key not in variables:
            raise InvalidParameter("key", short(key), "the name of an RTDE output of this version")
        return variables[key].access(self._state)

    # Forward and inverse kinematics, Jacobian, mass matrix

    def _q_or_actual(self, q: Any, name: str = "q") -> Array:
        return self._state.actual_q if q is None else numbers(name, q, 6)

    def do_get_forward_kin(self, _thread: Any, q: Any = None, tcp: Any = None) -> Pose:
        arm, joints = self._controller.arm, self._q_or_actual(q)
        if tcp in _ACTIVE:
            return as_pose(arm.pose(joints))
        flange = arm.tool(joints) * frame_of(arm.tcp).inverse()
        return as_pose(pose_of(flange * self._frame("tcp", tcp)))

    def do_get_inverse_kin(
        self, thread: Any, x: Any, qnear: Any = None, maxPositionError: float = 1e-10,
        maxOrientationError: float = 1e-10, tcp: Any = None,
    ) -> Wait:  # fmt: skip
        target = self._frame("x", x)
        arm = self._controller.arm
        if tcp not in _ACTIVE:
            target = target * self._frame("tcp", tcp).inverse() * frame_of(arm.tcp)
        return as_list(
            (yield from self._inverse(thread, target, self._q_or_actual(qnear, "qnear")))
        )

    def do_get_inverse_kin_has_solution(
        self, thread: Any, pose: Any, qnear: Any = None, maxPositionError: float = 1e-10,
        maxOrientationError: float = 1e-10, tcp: Any = None,
    ) -> Wait:  # fmt: skip
        try:
            yield from self.do_get_inverse_kin(
                thread, pose, qnear, maxPositionError, maxOrientationError, tcp
            )
        except Unreachable:
            return False
        return True

    def do_is_within_safety_limits(self, thread: Any, pose: Any, qnear: Any = None) -> Wait:
        robot = self._controller.robot
        try:
            joints = yield from self._joints(thread, pose, self._q_or_actual(qnear, "qnear"))
        except Unreachable:
            return False
        return bool((joints >= robot.position_min).all() and (joints <= robot.position_max).all())

    def do_get_jacobian(self, _thread: Any, q: Any = None, tcp: Any = None) -> list[list[float]]:
        arm = self._controller.arm.snapshot()
        if tcp not in _ACTIVE:
            arm.set_tcp(pose_of(self._frame("tcp", tcp)))
        return [as_list(row) for row in arm.jacobian(self._q_or_actual(q))]

    def do_get_jacobian_time_derivative(
        self, thread: Any, q: Any = None, qd: Any = None, tcp: Any = None
    ) -> list[list[float]]:
        joints = self._q_or_actual(q)
        step = 1e-5 * (self._state.actual_qd if qd is None else numbers("qd", qd, 6))
        after, before = (
            np.array(self.do_get_jacobian(thread, as_list(p), tcp))
            for p in (joints + step, joints - step)
        )
        return [as_list(row) for row in (after - before) / 2e-5]

    def do_get_mass_matrix(
        self, _thread: Any, q: Any = None, include_rotors_inertia: bool = False
    ) -> list[list[float]]:
        model = self._controller.robot.model
        mass = pin.crba(model, model.createData(), self._q_or_actual(q))
        return [as_list(row) for row in np.triu(mass) + np.triu(mass, 1).T]

    def do_get_coriolis_and_centrifugal_torques(
        self, _thread: Any, q: Any = None, qd: Any = None
    ) -> list[float]:
        joints = self._q_or_actual(q)
        speeds = self._state.actual_qd if qd is None else numbers("qd", qd, 6)
        model = self._controller.robot.model
        data = model.createData()
        return as_list(
            pin.nonLinearEffects(model, data, joints, speeds)
            - pin.computeGeneralizedGravity(model, data, joints)
        )
