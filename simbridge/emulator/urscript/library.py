"""Built-in functions that need no controller: mathematics, lists and strings; and the compiler's descriptions of all.

The compiler gets descriptions only, because it runs in another process.
"""

from __future__ import annotations

import inspect
import math
import random as python_random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.values import MAX_STRING, kind_of, to_text, wrap


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


def _of_numbers(function: Callable[..., float]) -> Callable[..., float]:
    """A built-in function made of a function of one or two numbers."""

    def one(_thread: Any, f: Any) -> float:
        return _evaluate(function, f)

    def two(_thread: Any, x: Any, y: Any) -> float:
        return _evaluate(function, x, y)

    return two if function in (math.atan2, math.pow) else one


def _evaluate(function: Callable[..., float], *values: Any) -> float:
    numbers = [_number(value) for value in values]
    try:
        return function(*numbers)
    except (ValueError, OverflowError):
        shown = ", ".join(map(to_text, numbers))
        raise RuntimeFault(f"{function.__name__}({shown}) has no value.") from None


def _floor(_thread: Any, f: Any) -> int:
    return wrap(int(_evaluate(math.floor, f)))


def _ceil(_thread: Any, f: Any) -> int:
    return wrap(int(_evaluate(math.ceil, f)))


def _log(_thread: Any, b: Any, f: Any) -> float:
    return _evaluate(lambda base, number: math.log(number, base), b, f)


def _abs(_thread: Any, a: Any) -> Any:
    return abs(a) if type(a) is int else abs(_number(a))


def _norm(thread: Any, a: Any) -> float:
    if isinstance(a, tuple):
        thread.charge(len(a))
        return math.hypot(*[_number(item) for item in a])
    return abs(_number(a))


def _random(_thread: Any) -> float:
    return python_random.random()


def _length(_thread: Any, v: Any) -> int:
    if isinstance(v, tuple | str):
        return len(v)
    raise RuntimeFault(f"Only a list or a string has a length, not {kind_of(v)}.")


def _size(thread: Any, v: Any) -> Any:
    if type(v) is tuple and v and type(v[0]) is tuple:
        return len(v), len(v[0])
    return _length(thread, v)


def _to_str(thread: Any, val: Any) -> str:
    return _bounded(_text(thread, val))


def _str_cat(thread: Any, op1: Any, op2: Any) -> str:
    return _bounded(_text(thread, op1) + _text(thread, op2))


def _bounded(text: str) -> str:
    if len(text) > MAX_STRING:
        raise RuntimeFault(f"A string has more than {MAX_STRING} characters.")
    return text


def _to_num(_thread: Any, text: str) -> int | float:
    try:
        number = float(text)
    except (TypeError, ValueError):
        raise RuntimeFault(f"{to_text(text)[:40]!r} is not a number.") from None
    return wrap(int(number)) if number.is_integer() and "." not in text and "e" not in text.lower() else number


def _str_at(_thread: Any, src: str, index: int) -> str:
    i = _integer(index)
    if not isinstance(src, str) or not 0 <= i < len(src):
        raise RuntimeFault(f"There is no character {i} in {kind_of(src)}.")
    return src[i]


def _str_sub(_thread: Any, src: str, index: int, length: int = -1) -> str:
    i, count = _integer(index), _integer(length)
    if not isinstance(src, str) or not 0 <= i <= len(src):
        raise RuntimeFault(f"There is no character {i} in {kind_of(src)}.")
    return src[i:] if count < 0 else src[i : i + count]


def _str_find(_thread: Any, src: str, target: str, start_from: int = 0) -> int:
    return str(src).find(str(target), max(_integer(start_from), 0))


def _str_empty(_thread: Any, text: str) -> bool:
    return _length(_thread, text) == 0


def _integer_to_binary_list(_thread: Any, x: int) -> tuple[bool, ...]:
    return tuple(bool(_integer(x) >> i & 1) for i in range(32))


def _binary_list_to_integer(_thread: Any, bits: Any) -> int:
    if not isinstance(bits, tuple) or len(bits) > 32:
        raise RuntimeFault("A list of at most 32 booleans is needed.")
    return wrap(sum(bool(bit) << i for i, bit in enumerate(bits)))


def _sync(_thread: Any) -> Generator[None, None, None]:
    yield


LIBRARY: Mapping[str, Callable[..., Any]] = {
    "sin": _of_numbers(math.sin), "cos": _of_numbers(math.cos), "tan": _of_numbers(math.tan),
    "asin": _of_numbers(math.asin), "acos": _of_numbers(math.acos), "atan": _of_numbers(math.atan),
    "atan2": _of_numbers(math.atan2), "sqrt": _of_numbers(math.sqrt), "pow": _of_numbers(math.pow),
    "log": _log, "floor": _floor, "ceil": _ceil, "abs": _abs, "norm": _norm, "random": _random,
    "d2r": _of_numbers(math.radians), "r2d": _of_numbers(math.degrees),
    "length": _length, "size": _size, "get_list_length": _length,
    "to_str": _to_str, "to_num": _to_num, "str_cat": _str_cat, "str_len": _length, "str_at": _str_at,
    "str_sub": _str_sub, "str_find": _str_find, "str_empty": _str_empty,
    "integer_to_binary_list": _integer_to_binary_list, "binary_list_to_integer": _binary_list_to_integer,
    "sync": _sync,
}  # fmt: skip


@dataclass(frozen=True)
class Builtin:
    """The description of a built-in function.

    Attributes:
        signature: Its parameters; the first is the calling thread.
        blocks: Whether it may have to wait: it is a generator function.
    """

    signature: inspect.Signature
    blocks: bool


def describe(functions: Mapping[str, Callable[..., Any]]) -> dict[str, Builtin]:
    """Descriptions of these functions and of the library's, by name."""
    return {
        name: Builtin(inspect.signature(function), inspect.isgeneratorfunction(function))
        for name, function in {**LIBRARY, **functions}.items()
    }
