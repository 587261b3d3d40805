"""URScript's built-in functions that do not move the arm: state, settings, registers, messages, poses, kinematics.

Each is called as `function(thread, *arguments)`. One that blocks is a generator that yields once a tick until it is
done. Angles in rad, lengths in m. Defaults are URScript's own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import Unreachable, frame_of, pose_of
from simbridge.emulator.controller import Controller
from simbridge.emulator.state import Event
from simbridge.emulator.urscript.library import FunctionGroup
from simbridge.emulator.urscript.values import Pose, Struct, short, to_text
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

Wait = Generator[None, None, Any]  # what a blocking function returns
ATTEMPT_COST = 4000  # of inverse kinematics, in units of a tick's budget
_ACTIVE = (None, "active_tcp")

# Arguments are checked by these; each raises InvalidParameter.


def numbers(name: str, values: Any, count: int, most: float = 1e6) -> Array:
    """An array of `count` numbers, none of them larger than `most`: larger ones do not stay finite."""
    try:
        array = np.array(values, dtype=float) if isinstance(values, Iterable) else np.zeros(0)
    except (TypeError, ValueError):  # texts, or lists of different lengths
        array = np.zeros(0)
    if array.shape != (count,) or not (np.abs(array) <= most).all():
        raise InvalidParameter(name, short(values), f"{count} finite numbers, from {-most:g} to {most:g}")
    return array


def number(name: str, value: Any) -> float:
    """A finite number."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidParameter(name, short(value), "a finite number")
    return float(value)


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value > 0.0):
        raise InvalidParameter(name, short(value), "a positive number")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """A finite number from zero up."""
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= 0.0):
        raise InvalidParameter(name, short(value), "a number, not negative")
    return float(value)


def fraction(name: str, value: Any) -> float:
    """A number above 0, up to 1."""
    if positive(name, value) > 1.0:
        raise InvalidParameter(name, short(value), "a fraction, above 0 and up to 1")
    return float(value)


def register(value: Any, count: int) -> int:
    """A register's number, 0 to count - 1."""
    if not isinstance(value, int) or not 0 <= value < count:
        raise InvalidParameter("register", short(value), f"a whole number from 0 to {count - 1}")
    return value


def as_list(values: Array) -> list[float]:
    return [float(v) for v in values]


def as_pose(values: Array) -> Pose:
    return Pose(as_list(values))


def _reads(attribute: str, convert: Callable[[Array], Any] = as_list) -> Callable[..., Any]:
    """A function that returns a vector of the controller's state."""

    def read(self: ControllerFunctions, _thread: Any) -> Any:
        return convert(getattr(self._state, attribute))

    return read


class ControllerFunctions(FunctionGroup):
    """Functions that read or set the state of a controller; those that move its arm are a subclass.

    Args:
        controller: The one they act on.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._state = controller.state

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
        goal = self._controller.motion.goal()
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
        self, _thread: Any, m: float, cog: Any = None, inertia: Any = None, transition_time: float = 0.0
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

    def do_get_target_payload(self, _thread: Any) -> float:
        return self._state.payload

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
            str(variable_name), number("min_frequency", min_frequency), str(action), self._state.timestamp
        )

    def do_textmsg(self, _thread: Any, s1: Any, s2: Any = "") -> None:
        self._controller.on_event(Event("text", to_text(s1) + to_text(s2)))

    def do_popup(
        self, _thread: Any, s: Any, title: str = "Popup", warning: bool = False, error: bool = False,
        blocking: bool = False,
    ) -> Wait:  # fmt: skip
        if title != "Popup" or warning or error:
            self._controller.without_effect("a popup's title and kind")
        self._controller.popup(to_text(s))
        while blocking and self._controller.popup_text:
            yield

    def _request(self, message: Any, answer: Any) -> Wait:
        """Show a question and wait: nobody can type an answer here, so closing it returns the type's zero."""
        yield from self.do_popup(None, message, blocking=True)
        return answer

    def do_request_boolean_from_primary_client(self, _thread: Any, message: Any) -> Wait:
        return (yield from self._request(message, False))

    def do_request_integer_from_primary_client(self, _thread: Any, message: Any) -> Wait:
        return (yield from self._request(message, 0))

    def do_request_float_from_primary_client(self, _thread: Any, message: Any) -> Wait:
        return (yield from self._request(message, 0.0))

    def do_request_string_from_primary_client(self, _thread: Any, message: Any) -> Wait:
        return (yield from self._request(message, ""))

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
        return as_list((yield from self._inverse(thread, target, self._q_or_actual(qnear, "qnear"))))

    def do_get_inverse_kin_has_solution(
        self, thread: Any, pose: Any, qnear: Any = None, maxPositionError: float = 1e-10,
        maxOrientationError: float = 1e-10, tcp: Any = None,
    ) -> Wait:  # fmt: skip
        try:
            yield from self.do_get_inverse_kin(thread, pose, qnear, maxPositionError, maxOrientationError, tcp)
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
            np.array(self.do_get_jacobian(thread, as_list(p), tcp)) for p in (joints + step, joints - step)
        )
        return [as_list(row) for row in (after - before) / 2e-5]

    def do_get_mass_matrix(
        self, _thread: Any, q: Any = None, include_rotors_inertia: bool = False
    ) -> list[list[float]]:
        model = self._controller.robot.model
        mass = pin.crba(model, model.createData(), self._q_or_actual(q))
        return [as_list(row) for row in np.triu(mass) + np.triu(mass, 1).T]

    def do_get_coriolis_and_centrifugal_torques(self, _thread: Any, q: Any = None, qd: Any = None) -> list[float]:
        joints = self._q_or_actual(q)
        speeds = self._state.actual_qd if qd is None else numbers("qd", qd, 6)
        model = self._controller.robot.model
        data = model.createData()
        return as_list(
            pin.nonLinearEffects(model, data, joints, speeds) - pin.computeGeneralizedGravity(model, data, joints)
        )
