"""No built-in function of URScript holds up a tick for long, whatever its arguments.

A signal ends the emulator all the same.

Work is counted in executed lines of Python, not in time.
"""

from __future__ import annotations

import inspect
import math
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.program import builtin_functions
from simbridge.emulator.sockets import SocketFunctions
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.functions import CALL_COST, COSTS
from simbridge.emulator.urscript.library import LIBRARY, describe
from simbridge.emulator.urscript.runtime import BUDGET, Interpreter
from simbridge.emulator.urscript.values import Pose, Struct
from tests.controllers import loopback
from tests.emulator.bench import Bench
from tests.patience import PATIENCE
from tests.properties import variants

pytestmark = pytest.mark.shares_setup

# Lines that a call may execute for each unit that it costs: a tick's budget of 10,000 units is then
# a million lines at most, and far less in fact.
LINES_PER_UNIT = 100
# Lines of a call that waits for the next tick, such as a move, which is planned first.
LINES_BEFORE_WAITING = 3_000
# Lines of one call, whatever it costs.
MAX_LINES = 50_000
# Lines of a tick in which a program does nothing but call a function.
LINES_PER_TICK = 600_000

NUMBERS = (0, -1, 1e-300, 1e300, math.inf, math.nan, 2**31 - 1)
# Long enough to be more work than a call may be by itself.
LONG_LIST = (0.5,) * 1_000
LONG_TEXT = "(1," * 3_000
MATRIX = ((1.0,) * 30,) * 30
STRUCT = Struct({"a": LONG_LIST[:900]})
POSE = Pose([0.3, 0.3, 0.3, 0.0, 0.0, 0.0])
VALUES = (
    *NUMBERS,
    LONG_LIST,
    LONG_TEXT,
    "",
    MATRIX,
    POSE,
    Pose([1e6] * 6),
    Pose([1e-300] * 6),
    (1e6,) * 6,
    (math.nan,) * 6,
    (1.0,) * 3,
    STRUCT,
    None,
)
MOTIONS = (
    "movej",
    "movel",
    "movep",
    "movec",
    "optimovej",
    "optimovel",
    "servoj",
    "servoc",
    "speedj",
    "speedl",
    "stopj",
    "stopl",
    "direct_torque",
    "force_mode",
    "freedrive_mode",
    "sleep",
)
# A move in joint space, one of the tool, a planned one, and the others whose arguments differ.
TRIED = ("movej", "movec", "optimovel", "servoj", "speedl", "force_mode", "sleep")
SOAK = pytest.mark.soak


class LinesExceeded(BaseException):
    """More lines were executed than any call may."""


class LineCount:
    """Counts the lines of Python that its block executes."""

    def __init__(self, most: int = MAX_LINES) -> None:
        self.lines = 0
        self._most = most

    def __enter__(self) -> LineCount:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_exception: object) -> None:
        sys.settrace(self._before)

    def _trace(self, _frame: object, _event: str, _argument: object) -> object:
        self.lines += 1
        if self.lines > self._most:
            raise LinesExceeded
        return self._trace


class Caller:
    """Calls built-in functions of a controller as a program does."""

    def __init__(self) -> None:
        self.bench = Bench().running()
        controller = self.bench.controller
        sockets = SocketFunctions(controller.period, controller.own_ports)
        self.functions = {**LIBRARY, **builtin_functions(controller), **sockets.table()}
        self.interpreter = Interpreter(
            compile_script("sync()", describe({})), self.functions, lambda fault: None
        )
        # What is said once is not part of what a call costs.
        for name in (*self.functions, "the mass and place of an external force sensor"):
            controller.without_effect(name)

    def work(self, name: str, arguments: list[object]) -> tuple[int, int, str]:
        """Return lines and cost of a call until it first waits or ends.

        The third result says which: "waits", "returns" or "fails".
        """
        self.interpreter.budget_left[0] = BUDGET
        thread = self.interpreter._main
        outcome = "returns"
        with LineCount() as count:
            try:
                result = self.functions[name](thread, *arguments)
                if inspect.isgenerator(result):
                    next(result)
                    outcome = "waits"
                    result.close()
            except StopIteration:
                pass
            except Exception:
                outcome = "fails"
        spent = BUDGET - self.interpreter.budget_left[0]
        return count.lines, COSTS.get(name, CALL_COST) + spent, outcome

    def parameters(self, name: str) -> list[inspect.Parameter]:
        """Return the positional parameters of a function, without the thread."""
        parameters = list(inspect.signature(self.functions[name]).parameters.values())[1:]
        return [
            parameter
            for parameter in parameters
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]

    def hostile(self, name: str) -> list[list[object]]:
        """Hostile arguments: the same for all parameters."""
        parameters = self.parameters(name)
        return [[value] * len(parameters) for value in VALUES] if parameters else [[]]

    def one_hostile(self, name: str) -> list[list[object]]:
        """One hostile argument among plausible ones."""
        home = tuple(self.bench.state.target_q.tolist())
        parameters = self.parameters(name)
        plausible = [
            home
            if parameter.name in ("q", "qd")
            else POSE
            if parameter.default is parameter.empty
            else parameter.default
            for parameter in parameters
        ]
        return [
            [*plausible[:i], value, *plausible[i + 1 :]]
            for i in range(len(parameters))
            for value in VALUES
        ]

    def excessive(self, name: str, arguments: list[object]) -> str:
        """Return a sentence about a call that works more than it costs; "" for another."""
        lines, cost, outcome = self.work(name, arguments)
        most = {
            "waits": LINES_BEFORE_WAITING + LINES_PER_UNIT * cost,
            "returns": LINES_PER_UNIT * cost,
            "fails": MAX_LINES,
        }[outcome]
        if lines <= most:
            return ""
        shown = ", ".join(str(value)[:20] for value in arguments)
        return f"{name}({shown}) {outcome} after {lines} lines at a cost of {cost}"


@pytest.fixture(scope="module")
def caller():
    return Caller()


def test_every_call_costs_what_it_works(caller):
    # Motions refuse a matrix and a struct as they do the long list.
    calls = [
        (name, arguments)
        for name in caller.functions
        for arguments in caller.hostile(name)
        if name not in MOTIONS or not any(value is MATRIX or value is STRUCT for value in arguments)
    ]

    excesses = [caller.excessive(name, arguments) for name, arguments in calls]

    assert list(filter(None, excesses)) == []


@pytest.mark.parametrize(
    ("name", "pace"),
    [
        ("movej", (1.4, 1.05, 0.0, 0.1)),
        ("movel", (1.2, 0.25, 0.0, 0.1)),
        ("movep", (1.2, 0.25, 0.1)),
        ("optimovej", (0.3, 0.3, 0.1)),
        ("optimovel", (0.3, 0.3, 0.1)),
    ],
)
def test_a_blended_move_of_no_length_costs_what_it_works(caller, name, pace):
    home = tuple(caller.bench.state.target_q.tolist())

    assert caller.excessive(name, [home, *pace]) == ""


@pytest.mark.soak
def test_every_call_with_one_hostile_argument_costs_what_it_works(caller):
    calls = [
        (name, arguments) for name in caller.functions for arguments in caller.one_hostile(name)
    ]

    excesses = [caller.excessive(name, arguments) for name, arguments in calls]

    assert list(filter(None, excesses)) == []


def run_motion(name: str, arguments: list[object]) -> None:
    """Run a program of one call for ten ticks.

    What it raises beyond a fault of the program is a bug.
    """
    texts = [literal(argument) for argument in arguments]
    if None in texts:
        return
    bench = Bench().running()
    bench.controller.load_script(
        f"def test():\n  nan = inf - inf\n  {name}({', '.join(texts)})\nend\n"
    )
    bench.controller.program.compilation.join()
    with LineCount(LINES_PER_TICK):
        bench.tick(0.02)


@pytest.mark.parametrize("name", variants(MOTIONS, *TRIED))
def test_hostile_arguments_are_at_worst_a_fault(caller, name):
    for arguments in caller.hostile(name):
        run_motion(name, arguments)


@pytest.mark.soak
@pytest.mark.parametrize("name", MOTIONS)
def test_one_hostile_argument_is_at_worst_a_fault(caller, name):
    for arguments in caller.one_hostile(name):
        run_motion(name, arguments)


def literal(value: object) -> str | None:
    """A value as URScript has it; None where it has none."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, Pose):
        return f"p[{', '.join(map(str, value))}]"
    if isinstance(value, tuple) and len(value) <= 6:
        return None if any(map(math.isnan, value)) else f"[{', '.join(map(str, value))}]"
    if isinstance(value, (int, float)):
        return str(value)
    return None


PREPARED = """
  long_list = make_list(1000, 0.5)
  long_text = "0123456789"
  while str_len(long_text) < 80000:
    long_text = str_cat(long_text, long_text)
  end
  other_text = str_cat(long_text, "")
  first = struct(a=make_list(900, 0.5))
  second = struct(a=make_list(900, 0.5))
  pose = get_actual_tcp_pose()
"""


@pytest.mark.parametrize(
    "statement",
    [
        "textmsg(long_list)",
        "textmsg(long_text)",
        # That each function costs what it works is shown with the same list above.
        pytest.param("popup(long_list)", marks=SOAK),
        pytest.param("socket_send_string(long_list)", marks=SOAK),
        "x = socket_read_string(prefix=long_text, interpret_escape=True)",
        "x = long_text == other_text",
        "x = first == second",
        "x = str_sub(long_text, 0)",
        "x = str_find(long_text, other_text)",
        pytest.param("x = normalize(long_list)", marks=SOAK),
        pytest.param("x = transpose(long_list)", marks=SOAK),
        "movej(q, r=0.5)",
        "movel(pose, r=0.5)",
        "movej(q, t=1e-300)",
        "servoj(q, t=1e-300)",
        "expensive()",
        "x = 1",
        # That the watchdogs do not become more is shown below.
        pytest.param('rtde_set_watchdog(str_cat("a", time().nanosec), 0.001)', marks=SOAK),
        "x = get_inverse_kin_has_solution(p[5, 0, 0, 0, 0, 0])",
    ],
)
def test_a_loop_of_one_statement_leaves_each_tick_bounded(statement):
    bench = Bench().running()
    define = (
        "def expensive(a=get_jacobian_time_derivative(), b=get_jacobian_time_derivative()):\nend"
    )
    bench.load(define, PREPARED, "movej(q)", "while True:", f"  {statement}", "end")
    # What comes before the loop takes two ticks.
    with LineCount(10 * LINES_PER_TICK):
        bench.tick(0.01)
    lines = []

    for _ in range(3):
        with LineCount(LINES_PER_TICK) as count:
            bench.tick()
        lines.append(count.lines)

    assert max(lines) <= LINES_PER_TICK
    assert bench.texts("error") == ""


def targets(duration: str) -> np.ndarray:
    """The joint targets that a stream of servoj calls of this duration makes (K, n), rad."""
    bench = Bench().running()
    bench.load(
        "i = 0",
        "while i < 20:",
        "  q[0] = q[0] + 0.0001",
        f"  servoj(q, t={duration})",
        "  i = i + 1",
        "end",
    )
    with LineCount(10 * LINES_PER_TICK):
        bench.tick(0.1)
    return np.array(bench.q)


@pytest.mark.parametrize("duration", ["1e-300", "1e-9", "0.00009"])
def test_shortest_servoj_lasts_100_us(duration):
    assert (targets(duration) == targets("0.0001")).all()


def test_a_statement_that_would_hold_a_tick_is_refused():
    source = (
        "def f():\n  x = 1\n  y = ["
        + ", ".join(["get_jacobian_time_derivative()"] * 200)
        + "]\nend\n"
    )
    functions = describe({"get_jacobian_time_derivative": lambda thread: 0})

    with pytest.raises(ScriptSyntaxError, match="split it") as refusal:
        compile_script(source, functions)

    assert refusal.value.line == 3


def test_a_program_that_names_watchdogs_without_end_takes_no_memory():
    bench = Bench().running()
    bench.load(
        "i = 0",
        "while True:",
        '  rtde_set_watchdog(str_cat("input_", i), 0.001)',
        "  i = i + 1",
        "end",
    )

    bench.tick(0.1)

    assert len(bench.controller.watchdog._updates) == 1


STUCK = """
    import sys, time
    from simbridge.cli.command_line import main
    from simbridge.emulator.emulated_controller import EmulatedController

    def tick(controller):
        controller.state.tick += 1
        while controller.state.tick > 5:
            time.sleep(0.001)

    EmulatedController.tick = tick
    sys.exit(main(["emulate", "--host", sys.argv[1]]))
"""


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=SOAK), signal.SIGINT])
def test_a_signal_ends_an_emulator_whose_tick_never_ends(number):
    command = [sys.executable, "-c", textwrap.dedent(STUCK), loopback(63)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as emulator:
        try:
            assert "Press Ctrl-C to stop" in emulator.stdout.readline()
            emulator.send_signal(number)

            assert emulator.wait(PATIENCE) == 1
        finally:
            emulator.kill()
