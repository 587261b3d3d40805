"""Runs a compiled program tick by tick: cooperative threads, critical sections, a budget, faults, methods of values.

In every tick each thread runs until it blocks (`sync`, motion, `sleep`), waits for another thread (`join`),
ends, or has used up its share of the tick's budget; then it continues in the next tick. Threads never run at the same
time. One that does not block is interrupted by the budget only, and while such a thread is in a critical section, no
other thread runs. A thread that blocks inside one lets the others run, and enter theirs: Universal Robots' own External
Control moves the arm, and waits for its client, inside critical sections of two threads.
"""

from __future__ import annotations

import marshal
import math
import re
from collections import deque
from collections.abc import Callable, Generator, Mapping
from types import FrameType, GeneratorType, TracebackType
from typing import Any

from simbridge.emulator.errors import RuntimeFault
from simbridge.emulator.urscript.compiler import FILE_NAME, Code
from simbridge.emulator.urscript.library import LIBRARY
from simbridge.emulator.urscript.values import (
    MAX_ELEMENTS,
    Operators,
    Struct,
    check_size,
    kind_of,
    value_of,
)
from simbridge.errors import SimbridgeError

BUDGET = 10_000
MIN_SHARE = 100
MAX_THREADS = 100
MAX_DEPTH = 200

SPENT = "spent"
WAITING = "waiting"
_UNDEFINED = re.compile(r"'[gv]_(\w+)'")


class _Ended(BaseException):
    """Ends a thread from inside; a BaseException, so that no built-in function catches it."""


class _Halted(BaseException):
    """Ends the program from inside."""


class Thread:
    """A thread of a program: `run` returns it, and it is the first argument of every built-in function.

    Attributes:
        name: As in the program.
        depth: Depth of its nested calls, as far as they are counted.
        left: What is left of its budget in this tick.
        critical: How many critical sections it has entered and not left.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        **named: Any,
    ) -> None:
        self._interpreter, self.name = interpreter, name
        self._generator: Generator[str | None, None, Any] = function(self, *arguments, **named)
        self.ended, self.depth, self.left, self.critical = False, 0, 0, 0

    def charge(self, cost: int) -> None:
        """Charge the cost of a built-in function to the budget: 1 is about 0.1 microseconds."""
        self._interpreter.budget_left[0] -= cost

    def work(self, cost: int) -> Generator[str | None, None, None]:
        """Charge a piece of a built-in function's work, and wait for the next tick where the budget is used up."""
        self.charge(cost)
        if self._interpreter.budget_left[0] < 0:
            yield SPENT

    def check_ended(self) -> None:
        """To be called where a built-in function may have ended the program: nothing that follows is run."""
        if self.ended:
            raise _Ended

    # Called by compiled programs

    def start(
        self, name: str, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Thread:
        thread = Thread(self._interpreter, name, function, *arguments, **named)
        # The two share the budget of the one: starting threads does not buy more time in a tick.
        budget = self._interpreter.budget_left
        thread.left = budget[0] // 2
        budget[0] -= thread.left
        self._interpreter._add(thread)
        return thread

    def kill(self, handle: Any) -> None:
        """kill handle: no effect on a thread that has ended, or on 0."""
        if isinstance(handle, Thread):
            self._interpreter._kill(handle)
        elif type(handle) is not int or handle != 0:
            raise RuntimeFault(f"Only a thread can be killed, not {kind_of(handle)}.")

    def has_ended(self, handle: Any) -> bool:
        """Whether `join handle` need not wait."""
        if isinstance(handle, Thread):
            return handle.ended
        if type(handle) is int and handle == 0:
            return True
        raise RuntimeFault(f"Only a thread can be joined, not {kind_of(handle)}.")

    def enter_critical(self) -> None:
        self.critical += 1

    def exit_critical(self) -> None:
        """No effect outside of a critical section."""
        self.critical = max(0, self.critical - 1)

    def halt(self) -> None:
        raise _Halted

    def enter_call(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.depth -= 1
            raise RuntimeFault(f"Function calls are nested more than {MAX_DEPTH} deep.")


class Interpreter:
    """A running program.

    Args:
        code: The compiled script.
        builtins: The built-in functions that it was compiled with, except those of `library`: `function(thread, ...)`
            with URScript's values, or a generator function that yields once for every tick that it waits.
        on_fault: Called once if the program attempts something invalid; it has then ended.
        budget: Shared by all threads in a tick; 10,000 is between 0.5 and 1 ms.
    """

    def __init__(
        self,
        code: Code,
        builtins: Mapping[str, Callable[..., Any]],
        on_fault: Callable[[RuntimeFault], None],
        *,
        budget: int = BUDGET,
    ) -> None:
        self.code = code
        self.running = True
        self.fault: RuntimeFault | None = None
        self.budget = budget
        self.budget_left = [0]
        self._on_fault = on_fault
        self._threads: list[Thread] = []
        self._started: list[Thread] = []
        self._current: Thread | None = None
        self._interrupted: Thread | None = None  # in a critical section, when its share was used up
        self._changes = 0
        operators = Operators(self.budget_left)
        names = [name for name in dir(operators) if not name.startswith("_")]
        namespace: dict[str, Any] = {
            **{f"b_{name}": function for name, function in {**LIBRARY, **builtins}.items()},
            **{f"_{name}": getattr(operators, name) for name in names},
            "_b": self.budget_left, "_SPENT": SPENT, "_WAITING": WAITING, "_UNSET": object(), "_fail": _fail,
            "_value_of": value_of, "_member": _member, "_invoke": _invoke, "inf": math.inf,
        }  # fmt: skip
        exec(marshal.loads(code.code), namespace)
        self._main = Thread(self, code.main[2:], namespace[code.main])
        self._threads.append(self._main)

    @property
    def threads(self) -> int:
        """How many are running, the main program included."""
        return len(self._threads)

    @property
    def line(self) -> int:
        """The line that the main program is at, or 0 when it has ended."""
        frame = _innermost(self._main._generator)
        return 0 if frame is None else self.code.line_of(frame.f_lineno)

    def tick(self) -> None:
        """Run every thread. Never raises for a fault of the program."""
        if not self.running:
            return
        share = max(self.budget // len(self._threads), MIN_SHARE)
        queue = deque(self._threads)
        if self._interrupted is not None and self._interrupted in queue:
            queue.remove(self._interrupted)
            queue.appendleft(self._interrupted)
        self._interrupted = None
        for thread in queue:
            thread.left = share
        self._started.clear()
        waiting: list[Thread] = []
        while queue and self.running:
            thread = queue.popleft()
            if thread.ended:
                continue
            changes = self._changes
            signal = self._advance(thread)
            if signal is WAITING:
                waiting.append(thread)
            elif signal is SPENT and thread.critical:
                self._interrupted = thread
                return
            queue.extend(self._started)
            self._started.clear()
            if self._changes != changes:
                queue.extend(waiting)
                waiting.clear()

    def stop(self) -> None:
        """End the program and all its threads, at once; also from inside a built-in function."""
        if self.running:
            self.running = False
            for thread in list(self._threads):
                self._kill(thread, from_inside=False)

    # Threads

    def _add(self, thread: Thread) -> None:
        if len(self._threads) >= MAX_THREADS:
            raise RuntimeFault(f"More than {MAX_THREADS} threads are running.")
        self._threads.append(thread)
        self._started.append(thread)

    def _advance(self, thread: Thread) -> str | None:
        self._current = thread
        self.budget_left[0] = thread.left
        try:
            return next(thread._generator)
        except (StopIteration, _Ended):
            self._end(thread)
        except _Halted:
            self.stop()
        except Exception as error:
            self._fail(error)
        finally:
            self._current = None
            thread.left = self.budget_left[0]
            if thread.ended:
                self._close(thread)
        return None

    def _kill(self, thread: Thread, *, from_inside: bool = True) -> None:
        if thread.ended:
            return
        self._end(thread)
        if thread is not self._current:
            self._close(thread)
        elif from_inside:
            raise _Ended

    def _end(self, thread: Thread) -> None:
        thread.ended = True
        self._changes += 1
        if thread in self._threads:
            self._threads.remove(thread)
        if thread is self._main:
            self.stop()

    def _close(self, thread: Thread) -> None:
        try:
            thread._generator.close()
        except Exception as error:
            self._fail(error)

    # Faults

    def _fail(self, error: Exception) -> None:
        if self.fault is not None:
            return
        line = getattr(error, "line", 0) or self._line_of(error.__traceback__)
        self.fault = RuntimeFault(_reason(error), line=line)
        self.stop()
        self._on_fault(self.fault)

    def _line_of(self, traceback: TracebackType | None) -> int:
        line = 0
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == FILE_NAME:
                line = self.code.line_of(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line


def _fail(reason: str, line: int) -> None:
    raise RuntimeFault(reason, line=line)


def _innermost(generator: Any) -> FrameType | None:
    """The frame of the program's function that a thread is in."""
    inside = generator.gi_yieldfrom
    while isinstance(inside, GeneratorType) and inside.gi_code.co_filename == FILE_NAME:
        generator, inside = inside, inside.gi_yieldfrom
    frame: FrameType | None = generator.gi_frame
    return frame


def _member(value: Any, name: str) -> Any:
    """value.name"""
    if type(value) is not Struct:
        raise RuntimeFault(
            f"Only a struct has members, not {kind_of(value)}: there is no '.{name}'."
        )
    return value.member(name)


def _within(begin: int, end: int, count: int) -> None:
    if not 0 <= begin <= end <= count:
        raise IndexError


def _insert(items: list[Any], index: int, value: Any) -> None:
    _within(index, index, len(items))
    items.insert(index, value)


def _remove(items: list[Any], index: int) -> None:
    _within(index, index + 1, len(items))
    del items[index]


def _slice(items: list[Any], begin: int, end: int) -> tuple[Any, ...]:
    _within(begin, end, len(items))
    return tuple(items[begin:end])


# The methods of a list; each is called with a copy of it.
_METHODS: dict[str, Callable[..., Any]] = {
    "append": list.append, "clear": list.clear, "extend": list.extend, "insert": _insert, "pop": list.pop,
    "remove": _remove, "length": len, "capacity": lambda items: MAX_ELEMENTS, "slice": _slice,
}  # fmt: skip


def _invoke(
    thread: Thread, value: Any, name: str, *arguments: Any
) -> Generator[None, None, tuple[Any, Any]]:
    """value.name(...): the value after the call, which the compiled program assigns to its variable, and what the call
    returns. A handle, which is not URScript's own, answers by its `call(thread, name, arguments)`, a generator."""
    if hasattr(value, "call"):
        return value, (yield from value.call(thread, name, arguments))
    if type(value) is not tuple or name not in _METHODS:
        raise RuntimeFault(f"There is no method '{name}' of {kind_of(value)}.")
    thread.charge(len(value))
    items = list(value)
    try:
        result = _METHODS[name](items, *arguments)
    except (TypeError, IndexError):
        given = f"{len(items)} elements and {len(arguments)} arguments"
        raise RuntimeFault(
            f"'{name}' cannot be called on a list with {given} like these."
        ) from None
    if len(items) > MAX_ELEMENTS:
        raise RuntimeFault(f"A list has more than {MAX_ELEMENTS} elements.")
    changed = tuple(items)
    thread.charge(check_size(changed))
    return changed, result


def _reason(error: Exception) -> str:
    """The error in URScript's terms."""
    if isinstance(error, RuntimeFault):
        return error.reason
    if isinstance(error, SimbridgeError):
        return str(error)
    if isinstance(error, ZeroDivisionError):
        return "Division by zero."
    if isinstance(error, RecursionError):
        return "Function calls are nested too deep."
    if isinstance(error, NameError) and (name := _UNDEFINED.search(str(error))):
        return f"The variable '{name[1]}' has no value."
    return f"{type(error).__name__}: {error}"
