"""Built-in functions that need no controller: mathematics, lists and strings; and the compiler's descriptions of all.

The compiler gets descriptions only, because it runs in another process.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.values import MAX_ELEMENTS, Struct, bounded, check_size, kind_of, short, to_text, wrap

# What a call costs of the budget of a tick: 1 is about 0.1 microseconds.
CALL_COST = 3
_COSTS = {
    20: "get_actual_joint_positions get_joint_positions get_target_joint_positions get_actual_joint_positions_history"
    " get_actual_joint_speeds get_target_joint_speeds get_actual_tcp_pose get_target_tcp_pose get_actual_tcp_speed"
    " get_target_tcp_speed get_tcp_force get_tcp_offset get_target_waypoint force is_steady",
    200: "get_forward_kin get_actual_tool_flange_pose pose_trans pose_inv pose_add pose_sub pose_dist point_dist"
    " rpy2rotvec rotvec2rpy tool_contact force_mode get_rtde_value set_payload set_target_payload set_gravity",
    500: "get_jacobian get_mass_matrix get_coriolis_and_centrifugal_torques set_tcp wrench_trans interpolate_pose"
    " freedrive_mode freedrive_mode_no_incorrect_payload_check teach_mode",
    1000: "get_jacobian_time_derivative",
}  # fmt: skip
COSTS = {name: cost for cost, names in _COSTS.items() for name in names.split()}


@dataclass(frozen=True)
class Builtin:
    """The description of a built-in function.

    Attributes:
        signature: Its parameters; the first is the calling thread.
        blocks: Whether it may have to wait: it is a generator function.
        cost: Of a call, in units of the budget.
    """

    signature: inspect.Signature
    blocks: bool
    cost: int = CALL_COST


class FunctionGroup:
    """A group of built-in functions: the methods whose names begin with `do_`."""

    def table(self) -> Mapping[str, Callable[..., Any]]:
        """Every function by its name in URScript."""
        return {name.removeprefix("do_"): getattr(self, name) for name in dir(self) if name.startswith("do_")}


def _number(value: Any) -> float:
    if type(value) in (int, float):
        return float(value)
    raise RuntimeFault(f"A number is needed, not {kind_of(value)}.")


def _integer(value: Any) -> int:
    number = _number(value)
    if not number.is_integer():
        raise RuntimeFault(f"An integer is needed, not {number}.")
    return int(number)


def _text(thread: Any, value: Any) -> str:
    if type(value) is str:
        return value
    text = to_text(value)
    thread.charge(len(text))
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
    """Mathematics, lists and strings."""

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

    def do_make_list(self, thread: Any, length: int, initial_value: Any, capacity: int = -1) -> tuple[Any, ...]:
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
        return bounded(_text(thread, val))

    def do_str_cat(self, thread: Any, op1: Any, op2: Any) -> str:
        return bounded(_text(thread, op1) + _text(thread, op2))

    def do_to_num(self, _thread: Any, str: str) -> int | float:
        try:
            number = float(str)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number) or "_" in str:
            raise RuntimeFault(f"{short(str)[:40]!r} is not a number.")
        return wrap(int(number)) if number.is_integer() and "." not in str and "e" not in str.lower() else number

    def do_str_at(self, _thread: Any, src: str, index: int) -> str:
        i = _integer(index)
        if not isinstance(src, str) or not 0 <= i < len(src):
            raise RuntimeFault(f"There is no character {i} in {kind_of(src)}.")
        return src[i]

    def do_str_sub(self, _thread: Any, src: str, index: int, len: int = -1) -> str:
        i, count = _integer(index), _integer(len)
        if not isinstance(src, str) or not 0 <= i <= self.do_length(_thread, src):
            raise RuntimeFault(f"There is no character {i} in {kind_of(src)}.")
        return src[i:] if count < 0 else src[i : i + count]

    def do_str_find(self, _thread: Any, src: str, target: str, start_from: int = 0) -> int:
        return str(src).find(str(target), max(_integer(start_from), 0))

    def do_str_empty(self, _thread: Any, str: str) -> bool:
        return self.do_length(_thread, str) == 0

    def do_integer_to_binary_list(self, _thread: Any, x: int) -> tuple[bool, ...]:
        return tuple(bool(_integer(x) >> i & 1) for i in range(32))

    def do_binary_list_to_integer(self, _thread: Any, bits: Any) -> int:
        if not isinstance(bits, tuple) or len(bits) > 32:
            raise RuntimeFault("A list of at most 32 booleans is needed.")
        return wrap(sum(bool(bit) << i for i, bit in enumerate(bits)))

    def do_sync(self, _thread: Any) -> Generator[None, None, None]:
        yield


LIBRARY = Library().table()


def describe(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Builtin]:
    """Descriptions of these functions and of the library's, by name."""
    return {
        name: Builtin(inspect.signature(function), inspect.isgeneratorfunction(function), COSTS.get(name, CALL_COST))
        for name, function in {**LIBRARY, **functions}.items()
    }
