"""Built-in functions that need no controller: mathematics, lists, strings, poses, matrices.

The checks of arguments are here, too, and the descriptions of all functions, which the compiler gets.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.compiler import CALL_COST, Builtin
from simbridge.emulator.urscript.values import (
    COPIED,
    MAX_ELEMENTS,
    Pose,
    Struct,
    bounded,
    check_size,
    kind_of,
    short,
    to_text,
    wrap,
)
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array

Wait = Generator[None, None, Any]  # what a blocking function returns
# What a call costs of the budget of a tick, if it is more than any call.
_COSTS = {
    20: "get_actual_joint_positions get_joint_positions get_target_joint_positions get_actual_joint_positions_history"
    " get_actual_joint_speeds get_target_joint_speeds get_actual_tcp_pose get_target_tcp_pose get_actual_tcp_speed"
    " get_target_tcp_speed get_tcp_force get_tcp_offset get_target_waypoint force is_steady",
    200: "get_forward_kin get_actual_tool_flange_pose pose_trans pose_inv pose_add pose_sub pose_dist point_dist"
    " rpy2rotvec rotvec2rpy tool_contact force_mode get_rtde_value set_payload set_target_payload set_gravity",
    50: "integer_to_binary_list binary_list_to_integer str_find to_num eip_reader_factory eip_writer_factory",
    100: "textmsg popup",
    500: "get_jacobian get_mass_matrix get_coriolis_and_centrifugal_torques set_tcp wrench_trans interpolate_pose"
    " freedrive_mode freedrive_mode_no_incorrect_payload_check teach_mode",
    1000: "get_jacobian_time_derivative socket_open rpc_factory",
}  # fmt: skip
_LARGEST_SHARE = 1e6  # of the way between two poses
_PER_NUMBER = 5  # of a list that is read into an array and returned
COSTS = {name: cost for cost, names in _COSTS.items() for name in names.split()}


class FunctionGroup:
    """A group of built-in functions: the methods whose names begin with `do_`."""

    def table(self) -> Mapping[str, Callable[..., Any]]:
        """Every function by its name in URScript."""
        return {
            name.removeprefix("do_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("do_")
        }


# Arguments are checked by these; each raises InvalidParameter.


def numbers(name: str, values: Any, count: int, most: float = 1e6) -> Array:
    """An array of `count` numbers, none of them larger than `most`: larger ones do not stay finite."""
    try:
        array = np.array(values, dtype=float) if isinstance(values, Iterable) else np.zeros(0)
    except (TypeError, ValueError):  # texts, or lists of different lengths
        array = np.zeros(0)
    if array.shape != (count,) or not (np.abs(array) <= most).all():
        raise InvalidParameter(
            name, short(values), f"{count} finite numbers, from {-most:g} to {most:g}"
        )
    return array


def number(
    name: str, value: Any, least: float = -math.inf, needed: str = "a finite number"
) -> float:
    """A finite number from the least one up."""
    if not isinstance(value, (int, float)) or not (math.isfinite(value) and value >= least):
        raise InvalidParameter(name, short(value), needed)
    return float(value)


def not_negative(name: str, value: Any) -> float:
    return number(name, value, 0.0, "a number, not negative")


def positive(name: str, value: Any) -> float:
    if number(name, value, 0.0, "a positive number") == 0.0:
        raise InvalidParameter(name, short(value), "a positive number")
    return float(value)


def fraction(name: str, value: Any) -> float:
    if positive(name, value) > 1.0:
        raise InvalidParameter(name, short(value), "a fraction, above 0 and up to 1")
    return float(value)


def as_list(values: Array) -> list[float]:
    return [float(v) for v in values]


def as_pose(values: Array) -> Pose:
    return Pose(as_list(values))


def _frame(name: str, pose: Any) -> pin.SE3:
    return frame_of(numbers(name, pose, 6))


def _rows(matrix: Any) -> Array:
    """A matrix as an array (rows, columns)."""
    array = np.array(matrix, dtype=float) if isinstance(matrix, tuple) else np.zeros(0)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise InvalidParameter(
            "matrix", short(matrix), "a list of lists of finite numbers, all of one length"
        )
    return array


def _number(value: Any) -> float:
    if type(value) in (int, float):
        return float(value)
    raise RuntimeFault(f"A number is needed, not {kind_of(value)}.")


def _integer(value: Any) -> int:
    number = _number(value)
    if not number.is_integer():
        raise RuntimeFault(f"An integer is needed, not {number}.")
    return int(number)


def text_of(thread: Any, value: Any) -> str:
    """A value as text; a long one is charged to the thread."""
    text = to_text(value)
    cost = len(text) >> COPIED if type(value) is str else len(text)
    # Short ones are part of what the call costs.
    if cost > CALL_COST:
        thread.charge(cost)
    return text


def _evaluate(function: Callable[..., float], *values: Any) -> float:
    numbers = [_number(value) for value in values]
    try:
        return function(*numbers)
    except (ValueError, OverflowError):
        shown = ", ".join(map(to_text, numbers))
        raise RuntimeFault(f"{function.__name__}({shown}) has no value.") from None


def _of_one(function: Callable[[float], float]) -> Callable[..., float]:
    return lambda self, _thread, f: _evaluate(function, f)


def _of_two(function: Callable[[float, float], float]) -> Callable[..., float]:
    return lambda self, _thread, x, y: _evaluate(function, x, y)


class Library(FunctionGroup):
    do_sin, do_cos, do_tan = _of_one(math.sin), _of_one(math.cos), _of_one(math.tan)
    do_asin, do_acos, do_atan = _of_one(math.asin), _of_one(math.acos), _of_one(math.atan)
    do_atan2, do_sqrt, do_pow = _of_two(math.atan2), _of_one(math.sqrt), _of_two(math.pow)
    do_d2r, do_r2d = _of_one(math.radians), _of_one(math.degrees)

    def do_log(self, _thread: Any, b: Any, f: Any) -> float:
        return _evaluate(lambda base, number: math.log(number, base), b, f)

    def do_floor(self, _thread: Any, f: Any) -> int:
        return wrap(int(_evaluate(math.floor, f)))

    def do_ceil(self, _thread: Any, f: Any) -> int:
        return wrap(int(_evaluate(math.ceil, f)))

    def do_abs(self, _thread: Any, a: Any) -> Any:
        return abs(a) if type(a) is int else abs(_number(a))

    def do_sign(self, _thread: Any, a: Any) -> int:
        number = _number(a)
        return (number > 0) - (number < 0)

    def do_norm(self, thread: Any, a: Any) -> float:
        if isinstance(a, tuple):
            thread.charge(len(a))
            return math.hypot(*[_number(item) for item in a])
        return abs(_number(a))

    def do_random(self, _thread: Any) -> float:
        return random.random()

    def do_length(self, _thread: Any, v: Any) -> int:
        if isinstance(v, tuple | str):
            return len(v)
        raise RuntimeFault(f"Only a list or a string has a length, not {kind_of(v)}.")

    do_get_list_length = do_str_len = do_length

    def do_make_list(
        self, thread: Any, length: int, initial_value: Any, capacity: int = -1
    ) -> tuple[Any, ...]:
        count = _integer(length)
        if not 0 <= count <= MAX_ELEMENTS:
            raise RuntimeFault(f"A list has from 0 to {MAX_ELEMENTS} elements, not {count}.")
        thread.charge(check_size((initial_value,)) * count)
        made = (initial_value,) * count
        check_size(made)
        return made

    def do_size(self, thread: Any, v: Any) -> Any:
        if type(v) is tuple and v and type(v[0]) is tuple:
            return len(v), len(v[0])
        return self.do_length(thread, v)

    def do_struct(self, thread: Any, /, **members: Any) -> Struct:
        made = Struct(members)
        thread.charge(made.size)
        return made

    def do_to_str(self, thread: Any, val: Any) -> str:
        return bounded(text_of(thread, val))

    def do_str_cat(self, thread: Any, op1: Any, op2: Any) -> str:
        return bounded(text_of(thread, op1) + text_of(thread, op2))

    def do_to_num(self, thread: Any, str: str) -> int | float:
        if isinstance(str, tuple):
            raise RuntimeFault(f"{kind_of(str)} is not a number.")
        thread.charge(len(text_of(thread, str)))
        try:
            number = float(str)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or "_" in str:
            raise RuntimeFault(f"{short(str)[:40]!r} is not a number.")
        return (
            wrap(int(number))
            if number.is_integer() and "." not in str and "e" not in str.lower()
            else number
        )

    def do_str_at(self, _thread: Any, src: str, index: int) -> str:
        i = _integer(index)
        if not isinstance(src, str) or not 0 <= i < len(src):
            raise RuntimeFault(f"There is no character {i} in {kind_of(src)}.")
        return src[i]

    def do_str_sub(self, thread: Any, src: str, index: int, len: int = -1) -> str:
        i, count = _integer(index), _integer(len)
        if not isinstance(src, str) or not 0 <= i <= self.do_length(thread, src):
            raise RuntimeFault(f"There is no character {i} in {kind_of(src)}.")
        part = src[i:] if count < 0 else src[i : i + count]
        return text_of(thread, part)

    def do_str_find(self, thread: Any, src: str, target: str, start_from: int = 0) -> int:
        text, wanted = text_of(thread, src), text_of(thread, target)
        return text.find(wanted, max(_integer(start_from), 0))

    def do_str_empty(self, _thread: Any, str: str) -> bool:
        return self.do_length(_thread, str) == 0

    def do_integer_to_binary_list(self, _thread: Any, x: int) -> tuple[bool, ...]:
        number = _integer(x)
        return tuple(bool(number >> i & 1) for i in range(32))

    def do_binary_list_to_integer(self, _thread: Any, bits: Any) -> int:
        if not isinstance(bits, tuple) or len(bits) > 32:
            raise RuntimeFault("A list of at most 32 booleans is needed.")
        return wrap(sum(bool(bit) << i for i, bit in enumerate(bits)))

    # Poses, rotations, vectors and matrices

    def do_pose_trans(self, _thread: Any, p_from: Any, p_from_to: Any) -> Pose:
        return as_pose(pose_of(_frame("p_from", p_from) * _frame("p_from_to", p_from_to)))

    def do_pose_inv(self, _thread: Any, p_from: Any) -> Pose:
        return as_pose(pose_of(_frame("p_from", p_from).inverse()))

    def do_pose_add(self, _thread: Any, p_1: Any, p_2: Any) -> Pose:
        a, b = _frame("p_1", p_1), _frame("p_2", p_2)
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation, a.translation + b.translation)))

    def do_pose_sub(self, _thread: Any, p_to: Any, p_from: Any) -> Pose:
        a, b = _frame("p_to", p_to), _frame("p_from", p_from)
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation.T, a.translation - b.translation)))

    def do_pose_dist(self, _thread: Any, pose_from: Any, pose_to: Any) -> float:
        return float(
            np.linalg.norm(
                numbers("pose_to", pose_to, 6)[:3] - numbers("pose_from", pose_from, 6)[:3]
            )
        )

    def do_point_dist(self, _thread: Any, p_from: Any, p_to: Any) -> float:
        return self.do_pose_dist(_thread, p_from, p_to)

    def do_interpolate_pose(self, _thread: Any, p_from: Any, p_to: Any, alpha: float) -> Pose:
        a, b = _frame("p_from", p_from), _frame("p_to", p_to)
        if abs(number("alpha", alpha)) > _LARGEST_SHARE:
            raise InvalidParameter(
                "alpha", short(alpha), f"from {-_LARGEST_SHARE:g} to {_LARGEST_SHARE:g}"
            )
        rotation = pin.exp3(alpha * pin.log3(b.rotation @ a.rotation.T)) @ a.rotation
        return as_pose(
            pose_of(pin.SE3(rotation, a.translation + alpha * (b.translation - a.translation)))
        )

    def do_wrench_trans(self, _thread: Any, T_from_to: Any, w_from: Any) -> list[float]:
        frame, w = _frame("T_from_to", T_from_to).inverse(), numbers("w_from", w_from, 6)
        force = frame.rotation @ w[:3]
        return as_list(
            np.concatenate([force, frame.rotation @ w[3:] + np.cross(frame.translation, force)])
        )

    def do_rpy2rotvec(self, _thread: Any, rpy_vector: Any) -> list[float]:
        # Extrinsic rotations about x, y and z, in this order.
        return as_list(pin.log3(pin.rpy.rpyToMatrix(numbers("rpy_vector", rpy_vector, 3))))

    def do_rotvec2rpy(self, _thread: Any, rotation_vector: Any) -> list[float]:
        return as_list(
            pin.rpy.matrixToRpy(pin.exp3(numbers("rotation_vector", rotation_vector, 3)))
        )

    def do_normalize(self, thread: Any, v: Any) -> list[float]:
        count = len(v) if isinstance(v, tuple) else 0
        thread.charge(_PER_NUMBER * count)
        vector = numbers("v", v, count, most=1e150)
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            raise InvalidParameter("v", short(v), "a list of numbers that are not all zero")
        return as_list(vector / length)

    def do_transpose(self, thread: Any, m: Any) -> Any:
        if isinstance(m, tuple):
            thread.charge(_PER_NUMBER * check_size(m))
        if isinstance(m, tuple) and not any(isinstance(row, tuple) for row in m):
            return [[value] for value in m]
        return [list(column) for column in zip(*_rows(m).tolist(), strict=True)]

    def do_inv(self, thread: Any, m: Any) -> Any:
        if isinstance(m, Pose):
            return self.do_pose_inv(thread, m)
        if isinstance(m, tuple):
            thread.charge(_PER_NUMBER * check_size(m))
        matrix = _rows(m)
        thread.charge(len(matrix) ** 3)
        if matrix.shape[0] != matrix.shape[1] or np.linalg.matrix_rank(matrix) < len(matrix):
            raise InvalidParameter("m", short(m), "a square matrix that has an inverse")
        return np.linalg.inv(matrix)

    def do_sync(self, _thread: Any) -> Wait:
        yield


LIBRARY = Library().table()


def describe(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Builtin]:
    """Descriptions of these functions and of the library's, by name."""
    return {
        name: Builtin(
            inspect.signature(function),
            inspect.isgeneratorfunction(function),
            COSTS.get(name, CALL_COST),
        )
        for name, function in {**LIBRARY, **functions}.items()
    }
