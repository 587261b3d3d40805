"""Runs a compiled program tick by tick: threads, critical sections, a budget, faults.

A program is a Python module whose functions are generators (see `compiler.py`). `Interpreter`
executes the module once, with everything in its namespace that the module calls: the built-in
functions (b_...), the operators (_add, ...), and the budget `_b`. The main program is then a
thread, and so is whatever the script starts with `run`: a `Thread` holds the generator of its
outermost function, and the generators of the functions that it calls are nested in it.

In every tick each thread is advanced (`next` of its generator) until it blocks (`sync`, motion,
`sleep`), waits for another thread (`join`), ends, or has used up its part of the tick's budget;
then it continues in the next tick. The budget is a list of one number that every thread and
built-in function counts down while it runs, so that a tick ends in time whatever the script does.

Threads never run at the same time. One that does not block is interrupted by the budget only, and
while such a thread is in a critical section, no other thread runs. A thread that blocks inside one
lets the others run, and enter theirs: Universal Robots' own External Control moves the arm, and
waits for its client, inside critical sections of two threads.
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
from simbridge.emulator.urscript.methods import invoke
from simbridge.emulator.urscript.operators import Operators
from simbridge.emulator.urscript.values import Struct, kind_of, value_of
from simbridge.errors import SimbridgeError

# Units that all threads together may use in a tick: between 0.5 and 1 ms.
BUDGET = 10_000
# Units that a thread gets at least, however many threads there are.
MIN_THREAD_BUDGET = 100
MAX_THREADS = 100
MAX_DEPTH = 200

# Values that a thread's generator yields, besides None: its budget is used up, or it waits for
# another thread.
SPENT = "spent"
WAITING = "waiting"

# The name of a variable in Python's NameError.
_UNDEFINED = re.compile(r"'[gv]_(\w+)'")


class _Ended(BaseException):
    """Ends a thread from inside; a BaseException, so that no built-in function catches it."""


class _Halted(BaseException):
    """Ends the program from inside."""


class Thread:
    """A thread of a program: `run` returns it, and built-in functions get it as first argument.

    Args:
        interpreter: Runs the program.
        name: Name of the thread in the program.
        function: The compiled function that it runs.
        arguments: The function's arguments by position.
        named: The function's arguments by name.

    Attributes:
        name: Name of the thread in the program.
        ended: Whether it has ended.
        depth: Depth of its nested calls, as far as they are counted.
        remaining_budget: Budget of the thread for the rest of the tick, while it does not run.
        critical: Number of critical sections that it has entered and not left.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        **named: Any,
    ) -> None:
        self.name = name
        self.ended = False
        self.depth = 0
        self.remaining_budget = 0
        self.critical = 0

        self._interpreter = interpreter
        self._generator: Generator[str | None, None, Any] = function(self, *arguments, **named)

    def charge(self, cost: int) -> None:
        """Charge the cost of a built-in function to the budget: 1 is about 0.1 microseconds."""
        self._interpreter.budget_left[0] -= cost

    def work(self, cost: int) -> Generator[str | None, None, None]:
        """Charge a piece of a built-in function's work.

        If the budget is used up, it yields once: the rest is done in the next tick.
        """
        self.charge(cost)
        if self._interpreter.budget_left[0] < 0:
            yield SPENT

    def check_ended(self) -> None:
        """End this thread where a built-in function has ended the program: nothing follows."""
        if self.ended:
            raise _Ended

    # Called by compiled programs

    def start(
        self, name: str, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> Thread:
        """Start another thread: `run name(...)`."""
        thread = Thread(self._interpreter, name, function, *arguments, **named)

        # It gets half of this one's budget: starting threads does not buy more time in a tick.
        budget = self._interpreter.budget_left
        thread.remaining_budget = budget[0] // 2
        budget[0] -= thread.remaining_budget

        self._interpreter._add(thread)
        return thread

    def kill(self, handle: Any) -> None:
        """End a thread: `kill handle`. No effect on one that has ended, or on 0."""
        if isinstance(handle, Thread):
            self._interpreter._kill(handle)
        elif type(handle) is not int or handle != 0:
            raise RuntimeFault(f"Only a thread can be killed, not {kind_of(handle)}.")

    def has_ended(self, handle: Any) -> bool:
        """Return whether `join handle` need not wait."""
        if isinstance(handle, Thread):
            return handle.ended
        if type(handle) is int and handle == 0:
            return True
        raise RuntimeFault(f"Only a thread can be joined, not {kind_of(handle)}.")

    def enter_critical(self) -> None:
        """Enter a critical section; they nest."""
        self.critical += 1

    def exit_critical(self) -> None:
        """Leave a critical section; no effect outside of one."""
        self.critical = max(0, self.critical - 1)

    def halt(self) -> None:
        """End the program: `halt`."""
        raise _Halted

    def enter_call(self) -> None:
        """Count a call; the compiled function counts its end by itself."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.depth -= 1
            raise RuntimeFault(f"Function calls are nested more than {MAX_DEPTH} deep.")


class Interpreter:
    """A running program.

    Args:
        code: The compiled script.
        builtins: The built-in functions that it was compiled with, except those of `library`; see
            `functions.py`.
        on_fault: Called once if the program attempts something invalid; it has then ended.
        budget: Budget of all threads in a tick; 10,000 is between 0.5 and 1 ms.

    Attributes:
        code: The compiled script.
        running: Whether the program has not ended.
        fault: The fault that ended it, if it attempted something invalid.
        budget: Budget of all threads in a tick.
        budget_left: A list of one number: the rest of the running thread's part. The compiled
            program, the operators and the built-in functions all count down in this list.
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
        # All threads that have not ended, the main program first.
        self._threads: list[Thread] = []
        # The threads that the one that is being advanced has started.
        self._started: list[Thread] = []
        # The thread that is being advanced.
        self._current: Thread | None = None
        # The thread that was in a critical section when its budget was used up.
        self._interrupted: Thread | None = None
        # The number of threads that have ended: when it changes, `join` may go on.
        self._end_count = 0

        namespace = self._namespace(builtins)
        exec(marshal.loads(code.code), namespace)
        # The main function's name in Python has a prefix of two characters.
        self._main = Thread(self, code.main[2:], namespace[code.main])
        self._threads.append(self._main)

    def _namespace(self, builtins: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
        """Return all that a compiled module uses, by its names there."""
        functions = {**LIBRARY, **builtins}
        return {
            **{f"b_{name}": function for name, function in functions.items()},
            **Operators(self.budget_left).helpers(),
            "_b": self.budget_left,
            "_SPENT": SPENT,
            "_WAITING": WAITING,
            "_UNSET": object(),
            "_fail": _fail,
            "_value_of": value_of,
            "_member": _member,
            "_invoke": invoke,
            # A literal that overflows, such as 1e999, is compiled to its Python text: `inf`.
            "inf": math.inf,
        }

    @property
    def threads(self) -> int:
        """Number of running threads, the main program included."""
        return len(self._threads)

    @property
    def line(self) -> int:
        """The line that the main program is at, or 0 when it has ended."""
        frame = _innermost_frame(self._main._generator)
        return 0 if frame is None else self.code.line_of(frame.f_lineno)

    def tick(self) -> None:
        """Run every thread for one tick: until it blocks, ends or has used up its budget.

        A fault of the program ends the program; it is not raised here.
        """
        if not self.running:
            return
        queue = self._queue_threads()

        # Threads that wait for another one to end. Whenever a thread ends, all of them are run
        # again in the same tick: it may be the one that they wait for.
        waiting: list[Thread] = []
        while queue and self.running:
            thread = queue.popleft()
            if thread.ended:
                continue

            end_count = self._end_count
            signal = self._advance(thread)
            if signal is WAITING:
                waiting.append(thread)
            elif signal is SPENT and thread.critical:
                # The budget is used up inside a critical section: no other thread runs until this
                # one, which begins the next tick, has left it.
                self._interrupted = thread
                return

            # Threads that this one has started run in the same tick.
            queue.extend(self._started)
            self._started.clear()
            if self._end_count != end_count:
                queue.extend(waiting)
                waiting.clear()

    def _queue_threads(self) -> deque[Thread]:
        """Give every thread its budget of this tick; return them in the order in which they run."""
        queue = deque(self._threads)
        if self._interrupted is not None and self._interrupted in queue:
            queue.remove(self._interrupted)
            queue.appendleft(self._interrupted)
        self._interrupted = None

        budget = max(self.budget // len(self._threads), MIN_THREAD_BUDGET)
        for thread in queue:
            thread.remaining_budget = budget
        # Threads that an interrupted tick has left here are in the queue already.
        self._started.clear()
        return queue

    def stop(self) -> None:
        """End the program and all its threads, at once; also from inside a built-in function."""
        if self.running:
            self.running = False
            for thread in list(self._threads):
                self._kill(thread, from_inside=False)

    # Threads

    def _add(self, thread: Thread) -> None:
        """Add a thread that was started."""
        if len(self._threads) >= MAX_THREADS:
            raise RuntimeFault(f"More than {MAX_THREADS} threads are running.")
        self._threads.append(thread)
        self._started.append(thread)

    def _advance(self, thread: Thread) -> str | None:
        """Run a thread until it yields or ends; return what it yields."""
        self._current = thread
        self.budget_left[0] = thread.remaining_budget
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
            thread.remaining_budget = self.budget_left[0]
            # A generator cannot be closed while it runs: one that ended itself is closed here.
            if thread.ended:
                self._close(thread)
        return None

    def _kill(self, thread: Thread, *, from_inside: bool = True) -> None:
        """End a thread.

        Args:
            thread: Any thread of the program.
            from_inside: Whether a thread that ends itself is left at once, by an exception.
        """
        if thread.ended:
            return
        self._end(thread)
        if thread is not self._current:
            self._close(thread)
        elif from_inside:
            raise _Ended

    def _end(self, thread: Thread) -> None:
        """Note that a thread has ended; the program ends with its main program."""
        thread.ended = True
        self._end_count += 1
        if thread in self._threads:
            self._threads.remove(thread)
        if thread is self._main:
            self.stop()

    def _close(self, thread: Thread) -> None:
        """Close a thread's generator: the `finally` of its functions run."""
        try:
            thread._generator.close()
        except Exception as error:
            self._fail(error)

    # Faults

    def _fail(self, error: Exception) -> None:
        """End the program by a fault; the first one counts."""
        if self.fault is not None:
            return
        line = getattr(error, "line", 0) or self._line_of(error.__traceback__)
        self.fault = RuntimeFault(_reason(error), line=line)
        self.stop()
        self._on_fault(self.fault)

    def _line_of(self, traceback: TracebackType | None) -> int:
        """Return the script's line of the innermost call in a traceback, or 0."""
        line = 0
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == FILE_NAME:
                line = self.code.line_of(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line


def _innermost_frame(generator: Any) -> FrameType | None:
    """Return the frame of the program's function that a thread is in; None when it has ended."""
    callee = generator.gi_yieldfrom
    while isinstance(callee, GeneratorType) and callee.gi_code.co_filename == FILE_NAME:
        generator = callee
        callee = generator.gi_yieldfrom
    frame: FrameType | None = generator.gi_frame
    return frame


def _reason(error: Exception) -> str:
    """Return the reason for an error in URScript's terms."""
    if isinstance(error, RuntimeFault):
        return error.reason
    if isinstance(error, SimbridgeError):
        return str(error)
    if isinstance(error, ZeroDivisionError):
        return "Division by zero."
    if isinstance(error, RecursionError):
        return "Function calls are nested too deep."
    if isinstance(error, NameError):
        variable = _UNDEFINED.search(str(error))
        if variable:
            return f"The variable '{variable[1]}' has no value."
    return f"{type(error).__name__}: {error}"


# Called by compiled programs


def _fail(reason: str, line: int) -> None:
    """Raise the fault of a call that the compiler found to be invalid."""
    raise RuntimeFault(reason, line=line)


def _member(value: Any, name: str) -> Any:
    """Return value.name."""
    if type(value) is not Struct:
        raise RuntimeFault(
            f"Only a struct has members, not {kind_of(value)}: there is no '.{name}'."
        )
    return value.member(name)
