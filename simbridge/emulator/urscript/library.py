"""Built-in functions that need no controller: mathematics, lists, strings, poses, matrices.

`FunctionGroup` says where their names, parameters and defaults come from.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin

from simbridge.emulator.arm import frame_of, pose_of
from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.arguments import (
    as_float,
    as_integer,
    as_list,
    as_pose,
    matrix_rows,
    number,
    numbers,
    text_of,
)
from simbridge.emulator.urscript.functions import (
    Builtin,
    FunctionGroup,
    Wait,
    describe_functions,
    script_function,
)
from simbridge.emulator.urscript.values import (
    MAX_ELEMENTS,
    Pose,
    Struct,
    check_size,
    check_string,
    kind_of,
    short,
    to_text,
    wrap,
)
from simbridge.errors import InvalidParameter

# Largest magnitude of interpolate_pose's alpha: the fraction of the way between two poses.
MAX_ALPHA = 1e6
# Cost of each number of a list that is read into an array and returned.
COST_PER_NUMBER = 5
# Characters that are shown of a text that is not a number.
MAX_SHOWN_TEXT = 40


def _evaluate(function: Callable[..., float], *values: Any) -> float:
    """Return a function of numbers; a fault where it has no value."""
    arguments = [as_float(value) for value in values]
    try:
        return function(*arguments)
    except (ValueError, OverflowError):
        shown = ", ".join(map(to_text, arguments))
        raise RuntimeFault(f"{function.__name__}({shown}) has no value.") from None


def _function_of_one(function: Callable[[float], float]) -> Callable[..., float]:
    """Return a built-in function of one number, `f` in scripts."""

    @script_function
    def evaluate(self: Library, _thread: Any, f: Any) -> float:
        return _evaluate(function, f)

    return evaluate


def _frame(name: str, pose: Any) -> pin.SE3:
    """Return a pose, or a list of its six numbers, as a frame."""
    return frame_of(numbers(name, pose, 6))


class Library(FunctionGroup):
    """The functions that need no controller."""

    # Mathematics

    sin = _function_of_one(math.sin)
    cos = _function_of_one(math.cos)
    tan = _function_of_one(math.tan)
    asin = _function_of_one(math.asin)
    acos = _function_of_one(math.acos)
    atan = _function_of_one(math.atan)
    sqrt = _function_of_one(math.sqrt)

    @script_function
    def atan2(self, _thread: Any, x: Any, y: Any) -> float:
        return _evaluate(math.atan2, x, y)

    @script_function
    def pow(self, _thread: Any, base: Any, exponent: Any) -> float:
        return _evaluate(math.pow, base, exponent)

    @script_function
    def d2r(self, _thread: Any, d: Any) -> float:
        return _evaluate(math.radians, d)

    @script_function
    def r2d(self, _thread: Any, r: Any) -> float:
        return _evaluate(math.degrees, r)

    @script_function
    def log(self, _thread: Any, b: Any, f: Any) -> float:
        return _evaluate(lambda base, number: math.log(number, base), b, f)

    @script_function
    def floor(self, _thread: Any, f: Any) -> int:
        return wrap(int(_evaluate(math.floor, f)))

    @script_function
    def ceil(self, _thread: Any, f: Any) -> int:
        return wrap(int(_evaluate(math.ceil, f)))

    @script_function
    def abs(self, _thread: Any, a: Any) -> Any:
        return abs(a) if type(a) is int else abs(as_float(a))

    @script_function
    def sign(self, _thread: Any, a: Any) -> int:
        value = as_float(a)
        return (value > 0) - (value < 0)

    @script_function
    def norm(self, thread: Any, a: Any) -> float:
        if isinstance(a, tuple):
            thread.charge(len(a))
            return math.hypot(*[as_float(item) for item in a])
        return abs(as_float(a))

    @script_function
    def random(self, _thread: Any) -> float:
        return random.random()

    @script_function
    def integer_to_binary_list(self, _thread: Any, x: int) -> tuple[bool, ...]:
        integer = as_integer(x)
        return tuple(bool(integer >> i & 1) for i in range(32))

    @script_function
    def binary_list_to_integer(self, _thread: Any, l: Any) -> int:  # noqa: E741
        if not isinstance(l, tuple) or len(l) > 32:
            raise RuntimeFault("A list of at most 32 booleans is needed.")
        return wrap(sum(bool(bit) << i for i, bit in enumerate(l)))

    # Lists and structs

    @script_function
    def length(self, _thread: Any, v: Any) -> int:
        if isinstance(v, tuple | str):
            return len(v)
        raise RuntimeFault(f"Only a list or a string has a length, not {kind_of(v)}.")

    get_list_length = length

    @script_function
    def str_len(self, thread: Any, str: Any) -> int:
        return self.length(thread, str)

    @script_function
    def size(self, thread: Any, v: Any) -> Any:
        is_matrix = type(v) is tuple and v and type(v[0]) is tuple
        if is_matrix:
            return len(v), len(v[0])
        return self.length(thread, v)

    @script_function
    def make_list(
        self, thread: Any, length: int, initial_value: Any, capacity: int = -1
    ) -> tuple[Any, ...]:
        count = as_integer(length)
        if not 0 <= count <= MAX_ELEMENTS:
            raise RuntimeFault(f"A list has from 0 to {MAX_ELEMENTS} elements, not {count}.")

        thread.charge(check_size((initial_value,)) * count)
        items = (initial_value,) * count
        check_size(items)
        return items

    # The thread is positional alone: a member may have its name.
    @script_function
    def struct(self, thread: Any, /, **members: Any) -> Struct:
        struct = Struct(members)
        thread.charge(struct.size)
        return struct

    # Strings

    @script_function
    def to_str(self, thread: Any, val: Any) -> str:
        return check_string(text_of(thread, val))

    @script_function
    def str_cat(self, thread: Any, op1: Any, op2: Any) -> str:
        return check_string(text_of(thread, op1) + text_of(thread, op2))

    @script_function
    def to_num(self, thread: Any, str: str) -> int | float:
        if isinstance(str, tuple):
            raise RuntimeFault(f"{kind_of(str)} is not a number.")
        thread.charge(len(text_of(thread, str)))

        try:
            value = float(str)
        except (TypeError, ValueError):
            value = math.nan
        # Python also reads "1_000", "inf" and "nan".
        if not math.isfinite(value) or "_" in str:
            raise RuntimeFault(f"{short(str)[:MAX_SHOWN_TEXT]!r} is not a number.")

        is_written_as_integer = "." not in str and "e" not in str.lower()
        if value.is_integer() and is_written_as_integer:
            return wrap(int(value))
        return value

    @script_function
    def str_at(self, _thread: Any, src: str, index: int) -> str:
        i = as_integer(index)
        if not isinstance(src, str) or not 0 <= i < len(src):
            raise RuntimeFault(f"There is no character {i} in {kind_of(src)}.")
        return src[i]

    @script_function
    def str_sub(self, thread: Any, src: str, index: int, len: int = -1) -> str:
        begin = as_integer(index)
        count = as_integer(len)
        # By length: the parameter hides Python's function.
        if not isinstance(src, str) or not 0 <= begin <= self.length(thread, src):
            raise RuntimeFault(f"There is no character {begin} in {kind_of(src)}.")

        part = src[begin:] if count < 0 else src[begin : begin + count]
        return text_of(thread, part)

    @script_function
    def str_find(self, thread: Any, src: str, target: str, start_from: int = 0) -> int:
        text = text_of(thread, src)
        searched_text = text_of(thread, target)
        return text.find(searched_text, max(as_integer(start_from), 0))

    @script_function
    def str_empty(self, _thread: Any, str: str) -> bool:
        return self.length(_thread, str) == 0

    # Poses, rotations and forces

    @script_function
    def pose_trans(self, _thread: Any, p_from: Any, p_from_to: Any) -> Pose:
        return as_pose(pose_of(_frame("p_from", p_from) * _frame("p_from_to", p_from_to)))

    @script_function
    def pose_inv(self, _thread: Any, p_from: Any) -> Pose:
        return as_pose(pose_of(_frame("p_from", p_from).inverse()))

    @script_function
    def pose_add(self, _thread: Any, p_1: Any, p_2: Any) -> Pose:
        a = _frame("p_1", p_1)
        b = _frame("p_2", p_2)
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation, a.translation + b.translation)))

    @script_function
    def pose_sub(self, _thread: Any, p_to: Any, p_from: Any) -> Pose:
        a = _frame("p_to", p_to)
        b = _frame("p_from", p_from)
        return as_pose(pose_of(pin.SE3(a.rotation @ b.rotation.T, a.translation - b.translation)))

    @script_function
    def pose_dist(self, _thread: Any, p_from: Any, p_to: Any) -> float:
        end = numbers("p_to", p_to, 6)
        begin = numbers("p_from", p_from, 6)
        return float(np.linalg.norm(end[:3] - begin[:3]))

    @script_function
    def point_dist(self, _thread: Any, p_from: Any, p_to: Any) -> float:
        return self.pose_dist(_thread, p_from, p_to)

    @script_function
    def interpolate_pose(self, _thread: Any, p_from: Any, p_to: Any, alpha: float) -> Pose:
        a = _frame("p_from", p_from)
        b = _frame("p_to", p_to)
        if abs(number("alpha", alpha)) > MAX_ALPHA:
            allowed = f"from {-MAX_ALPHA:g} to {MAX_ALPHA:g}"
            raise InvalidParameter("alpha", short(alpha), allowed)

        rotation = pin.exp3(alpha * pin.log3(b.rotation @ a.rotation.T)) @ a.rotation
        translation = a.translation + alpha * (b.translation - a.translation)
        return as_pose(pose_of(pin.SE3(rotation, translation)))

    @script_function
    def wrench_trans(self, _thread: Any, T_from_to: Any, w_from: Any) -> list[float]:
        frame = _frame("T_from_to", T_from_to).inverse()
        wrench = numbers("w_from", w_from, 6)
        force = frame.rotation @ wrench[:3]
        torque = frame.rotation @ wrench[3:] + np.cross(frame.translation, force)
        return as_list(np.concatenate([force, torque]))

    @script_function
    def rpy2rotvec(self, _thread: Any, rpy_vector: Any) -> list[float]:
        # Extrinsic rotations about x, y and z, in this order.
        rotation = pin.rpy.rpyToMatrix(numbers("rpy_vector", rpy_vector, 3))
        return as_list(pin.log3(rotation))

    @script_function
    def rotvec2rpy(self, _thread: Any, rotation_vector: Any) -> list[float]:
        rotation = pin.exp3(numbers("rotation_vector", rotation_vector, 3))
        return as_list(pin.rpy.matrixToRpy(rotation))

    # Vectors and matrices

    @script_function
    def normalize(self, thread: Any, v: Any) -> list[float]:
        count = len(v) if isinstance(v, tuple) else 0
        thread.charge(COST_PER_NUMBER * count)

        vector = numbers("v", v, count, most=1e150)
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            raise InvalidParameter("v", short(v), "a list of numbers that are not all zero")
        return as_list(vector / length)

    @script_function
    def transpose(self, thread: Any, m: Any) -> Any:
        if isinstance(m, tuple):
            thread.charge(COST_PER_NUMBER * check_size(m))

        is_vector = isinstance(m, tuple) and not any(isinstance(row, tuple) for row in m)
        if is_vector:
            return [[value] for value in m]
        return [list(column) for column in zip(*matrix_rows(m).tolist(), strict=True)]

    @script_function
    def inv(self, thread: Any, m: Any) -> Any:
        if isinstance(m, Pose):
            return self.pose_inv(thread, m)
        if isinstance(m, tuple):
            thread.charge(COST_PER_NUMBER * check_size(m))

        matrix = matrix_rows(m)
        thread.charge(len(matrix) ** 3)
        if matrix.shape[0] != matrix.shape[1] or np.linalg.matrix_rank(matrix) < len(matrix):
            raise InvalidParameter("m", short(m), "a square matrix that has an inverse")
        return np.linalg.inv(matrix)

    # Time

    @script_function
    def sync(self, _thread: Any) -> Wait:
        yield


LIBRARY = Library().table()


def describe(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Builtin]:
    """Return the descriptions of functions and of the library's, by name.

    Args:
        functions: Built-in functions of a controller; one of them may replace one of the library.
    """
    return describe_functions({**LIBRARY, **functions})
