"""Translates a syntax tree to Python: every function of the program becomes a generator.

A program runs a tick at a time beside the other threads, and must be suspended and resumed in the
middle of a statement, deep inside its calls. A Python generator can be: so each function of the
script is written as one, and a call of it as `yield from`. A generator yields

- None when it has nothing to do until the next tick (built-in functions that wait yield it),
- `SPENT` when the thread's budget of the tick is used up,
- `WAITING` when it waits for another thread (`join`).

`runtime.py` runs these generators. For example

    z = 0.1
    def up(step=0.01):
      z = z + step
      sync()
    end
    while z < 0.3:
      up()
    end

becomes

    def u_up(_t, v_step=_UNSET):         # _t is the thread that runs it
        global g_z
        if False: yield                  # makes a generator of a function that never waits
        if v_step is _UNSET:
            v_step = 0.01
        _t.enter_call()                  # counts the depth of calls
        try:
            _b[0] -= 6                   # charges what follows to the thread's budget
            if _b[0] < 0: yield _SPENT
            g_z = _add(g_z, v_step)
            (yield from b_sync(_t))
            pass
        finally:
            _t.depth -= 1
    def m_(_t):                          # the statements outside of all definitions
        global g_z
        if False: yield
        _b[0] -= 1
        if _b[0] < 0: yield _SPENT
        g_z = 0.1
        while _less(g_z, 0.3):
            _b[0] -= 5
            if _b[0] < 0: yield _SPENT
            (yield from u_up(_t))
            pass
        pass

Names get a prefix by kind, so that none collides with Python's: u_ a function of the program, m_
the main program where a function has its name, b_ a built-in function, g_ a global variable, v_ a
local one. Operators are calls of `operators.py`, unless Python's are the same. Nothing in the
written program keeps track of the script's lines: `Code` has the script's line for each line of
Python, which tracebacks and frames name.

Statements are charged in chunks, by their number of operations (`_cost`): every loop's body and
every stretch of code without a loop, so that no thread runs for long without checking its budget.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.expressions import ExpressionWriter
from simbridge.emulator.urscript.faults import ScriptFault, find_unset_variables
from simbridge.emulator.urscript.functions import CALL_COST, Builtin
from simbridge.emulator.urscript.parser import parse
from simbridge.emulator.urscript.syntax_tree import (
    Node,
    all_definitions,
    definition_of,
    element_path,
    first_word,
    literal,
    main_program,
    walk,
)
from simbridge.emulator.urscript.variables import variables_of

# The file of compiled code in tracebacks and frames.
FILE_NAME = "<urscript>"
# The most that a statement may cost, in units of the budget: it is not interrupted, and a tick must
# not wait for it.
MAX_STATEMENT_COST = 100_000
# About the cost in which long code without a loop is charged, in the same units.
CHUNK_COST = 200

# Statements that are methods of the thread.
_THREAD_STATEMENTS = ("enter_critical", "exit_critical", "halt", "kill")
# Nodes without a cost of their own, as literals are.
_FREE_NODES = ("name", "arguments", "subscript")


@dataclass(frozen=True)
class Code:
    """A compiled program, which can be sent to another process of the same Python version.

    Attributes:
        code: The Python module's code, marshalled.
        lines: The script's line for each line of the Python source (the first is lines[1]).
        main: The main program's name in the Python source.
        unknown: The functions that it calls and that do not exist, by name: line and column of the
            first call.
        faults: What ends the program where it is reached, in the order of the script: calls that
            do not fit their function, and variables that nothing sets.
    """

    code: bytes
    lines: tuple[int, ...]
    main: str
    unknown: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    faults: tuple[ScriptFault, ...] = ()

    def line_of(self, python_line: int) -> int:
        """Return the script's line for a line of the Python source."""
        return self.lines[python_line] if 0 <= python_line < len(self.lines) else 0


def compile_script(source: str, builtins: Mapping[str, Builtin]) -> Code:
    """Parse and compile a script.

    A call of a function that does not exist is compiled to a fault, and named in `unknown`:
    controllers refuse such a script.

    Args:
        source: URScript.
        builtins: The built-in functions that it may call.

    Raises:
        ScriptSyntaxError: The source is not URScript, or too much or too complicated.
    """
    program = parse(source)
    functions = {definition_of(node).name: node for node in all_definitions(program)}
    main = main_program(program)

    writer = _ProgramWriter(functions, main, builtins)
    for node in functions.values():
        if node is not main:
            writer.write_function(node)
    writer.write_function(main)

    try:
        code = compile("\n".join(writer.text) + "\n", FILE_NAME, "exec")
    except (SyntaxError, RecursionError) as error:
        raise ScriptSyntaxError(f"it is too complicated ({error})", line=1, column=1) from None

    is_library = not definition_of(main).name and not definition_of(main).body
    unset = find_unset_variables(functions, main, is_library=is_library)
    return Code(
        code=marshal.dumps(code),
        lines=tuple(writer.lines),
        main=writer.python_name(main),
        unknown=_first_calls(writer.unknown_calls),
        faults=tuple(sorted([*writer.faults, *unset])),
    )


def _first_calls(calls: list[Node]) -> dict[str, tuple[int, int]]:
    """Return line and column of the first call of each function, by its name."""
    first: dict[str, tuple[int, int]] = {}
    for word in sorted(map(first_word, calls), key=lambda word: (word.line, word.column)):
        first.setdefault(str(word), (word.line, word.column))
    return first


class _ProgramWriter:
    """Writes Python code, one function at a time.

    Args:
        functions: The definitions of the program, by name.
        main: The definition that is run; it may be among them.
        builtins: The built-in functions, by name.

    Attributes:
        text: The lines of Python.
        lines: The script's line for each of them, from index 1.
    """

    def __init__(
        self, functions: Mapping[str, Node], main: Node, builtins: Mapping[str, Builtin]
    ) -> None:
        self.text: list[str] = []
        # Lines are counted from 1: there is no line 0.
        self.lines: list[int] = [0]

        self._functions = functions
        self._builtins = builtins
        self._expressions = ExpressionWriter(functions, builtins)

        # Variables that all functions share: declared `global` anywhere, or assigned by the main
        # program without `local`.
        main_variables = variables_of(definition_of(main))
        main_globals = main_variables.assigned - main_variables.local
        self._globals = main_globals | main_variables.shared
        for node in functions.values():
            self._globals |= variables_of(definition_of(node)).shared

        # Line of the script that is being written.
        self._line = 1
        # Depth of the Python block that is being written.
        self._indent = 0

    @property
    def unknown_calls(self) -> list[Node]:
        """The calls of functions that do not exist."""
        return self._expressions.unknown_calls

    @property
    def faults(self) -> list[ScriptFault]:
        """The calls that do not fit their function."""
        return self._expressions.faults

    def _put(self, python: str) -> None:
        """Write one line."""
        self.text.append("    " * self._indent + python)
        self.lines.append(self._line)

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        """Write the head of a block, and indent what is written inside the context."""
        self._put(head)
        self._indent += 1
        yield
        self._indent -= 1

    def python_name(self, node: Node) -> str:
        """Return a definition's name in Python.

        The main program and a function of the same name in it have different Python names.
        """
        name = definition_of(node).name
        return f"u_{name}" if self._functions.get(name) is node else f"m_{name}"

    # Functions and blocks

    def write_function(self, node: Node) -> None:
        """Write one function of the program."""
        definition = definition_of(node)
        self._line = node.children[0].line

        variables = variables_of(definition)
        self._expressions.locals = variables.local | variables.assigned - self._globals
        shared = (variables.assigned | variables.changed) - self._expressions.locals

        # A default is evaluated in the function, when it is called.
        defaults: dict[str, Node | None] = {}
        for parameter in definition.parameters:
            name, default = parameter.children
            defaults[f"v_{name}"] = default
        parameters = [f"{name}=_UNSET" if default else name for name, default in defaults.items()]

        with self._block(f"def {self.python_name(node)}({', '.join(['_t', *parameters])}):"):
            if shared:
                self._put("global " + ", ".join(sorted(f"g_{name}" for name in shared)))
            # A function without a wait is a generator, too.
            self._put("if False: yield")

            for name, default in defaults.items():
                if default:
                    with self._block(f"if {name} is _UNSET:"):
                        self._write_chunk([], self._cost(default))
                        self._put(f"{name} = {self._expressions.expression(default)}")

            # Statements outside of all definitions do not count as a call.
            if not definition.name:
                self._write_statements(definition.body)
                return

            self._put("_t.enter_call()")
            with self._block("try:"):
                self._write_statements(definition.body, cost=1)
            with self._block("finally:"):
                self._put("_t.depth -= 1")

    def _write_statements(self, body: list[Node], cost: int = 0) -> None:
        """Write the statements of a block, and charge them in chunks.

        Args:
            body: The statements; definitions among them are skipped here and written separately.
            cost: Cost that is charged on top of the statements.
        """
        chunk: list[Node] = []
        for statement in body:
            if statement.data != "definition":
                chunk.append(statement)
                cost += self._cost(statement)
            if cost > CHUNK_COST:
                self._write_chunk(chunk, cost)
                chunk = []
                cost = 0
        self._write_chunk(chunk, cost)
        # Python allows no empty block.
        self._put("pass")

    def _write_chunk(self, statements: list[Node], cost: int) -> None:
        """Write statements that are charged together, before they run."""
        if cost > 0:
            self._put(f"_b[0] -= {cost}")
            self._put("if _b[0] < 0: yield _SPENT")
        for statement in statements:
            self._write_statement(statement)

    def _cost(self, statement: Node) -> int:
        """Return the cost of a statement, without the blocks in it.

        It is one for each operation, and more for calls. A loop's condition is charged in its body.

        Raises:
            ScriptSyntaxError: The statement would take too long.
        """
        nodes = [statement]
        if statement.data == "while_loop":
            return 0
        if statement.data == "if_statement":
            # Children: `if`, then condition and block per branch, then `else`.
            nodes = statement.children[1:-1:2]

        cost = 0
        for node in walk(*nodes):
            if node.data == "call":
                name = node.children[0]
                is_builtin = name not in self._functions and name in self._builtins
                cost += self._builtins[name].cost if is_builtin else CALL_COST
            elif node.data not in _FREE_NODES and literal(node) is None:
                cost += 1

        if cost > MAX_STATEMENT_COST:
            word = first_word(statement)
            reason = "this statement takes too long in one piece; split it"
            raise ScriptSyntaxError(reason, line=word.line, column=word.column)
        return cost

    # Statements

    def _write_statement(self, statement: Node) -> None:
        """Write one statement, the blocks in it included."""
        self._line = first_word(statement).line
        match statement.data, statement.children:
            case "assignment", [_, target, value]:
                self._write_assignment(target, value)
            case "if_statement", [_, *branches, otherwise]:
                self._write_if(branches, otherwise)
            case "while_loop", [_, condition, body]:
                with self._block(f"while {self._expressions.condition(condition)}:"):
                    self._write_statements(body.children, cost=1 + self._cost(condition))
            case "call", _:
                self._put(self._expressions.call(statement))
            case "keyed", [word]:
                self._write_keyed(word, "")
            case "keyed", [word, value]:
                self._write_keyed(word, self._expressions.expression(value))
            case _:
                # What remains is a method of a value, or the start of a thread.
                self._put(self._expressions.expression(statement))

    def _write_assignment(self, target: Node, value: Node) -> None:
        """Write `variable = value`, or the assignment of an element or a member."""
        name, path = element_path(target)
        variable = self._expressions.variable(name)
        python = self._expressions.expression(value)
        if path:
            # A list is a value: its variable is assigned the changed one. The variable is read
            # last: what is evaluated before may change it.
            python = f"_with_item({self._expressions.tuple_of(path)}, {python}, {variable})"
        self._put(f"{variable} = {python}")

    def _write_if(self, branches: list[Node], otherwise: Node | None) -> None:
        """Write an `if`.

        Args:
            branches: A condition and a block for each `if` and `elif`, one after the other.
            otherwise: The block of `else`.
        """
        word = "if"
        for condition, body in zip(branches[::2], branches[1::2], strict=True):
            self._line = first_word(condition).line
            with self._block(f"{word} {self._expressions.condition(condition)}:"):
                self._write_statements(body.children)
            word = "elif"
        if otherwise:
            with self._block("else:"):
                self._write_statements(otherwise.children)

    def _write_keyed(self, word: str, value: str) -> None:
        """Write a statement that consists of a keyword and possibly a value.

        Args:
            word: The keyword; one without a branch of its own means the same in Python.
            value: The value in Python, or "".
        """
        if word == "join":
            self._put(f"_h = {value}")
            self._put("while not _t.has_ended(_h): yield _WAITING")
        elif word in _THREAD_STATEMENTS:
            self._put(f"_t.{word}({value})")
        else:
            self._put(f"{word} {value}".rstrip())
