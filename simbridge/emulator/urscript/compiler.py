"""Translates a syntax tree to Python: every function of the program becomes a generator.

Names get a prefix by kind (u_ function, m_ main program, b_ built-in, g_ global, v_ local), so that none collides with
Python's. A generator yields None when it has nothing to do until the next tick, `SPENT` when the thread's budget of
the tick is used up, and `WAITING` when it waits for another thread. Lines are not tracked at run time: Python's own
suffice.
"""

from __future__ import annotations

import inspect
import marshal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import TypeVar

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript import syntax
from simbridge.emulator.urscript.parser import parse
from simbridge.emulator.urscript.values import MAX_ELEMENTS, MAX_INTEGER

NodeT = TypeVar("NodeT", bound=syntax.Node)

FILE_NAME = "<urscript>"
CALL_COST = 3  # of a call, in units of a tick's budget: 1 is about 0.1 microseconds
_CHUNK = 200  # about the cost in which long code without a loop is charged
_HELPERS = {
    "+": "_add", "-": "_subtract", "*": "_multiply", "/": "_divide", "%": "_modulo", "==": "_equal", "!=": "_unequal",
    "<": "_less", "<=": "_less_equal", ">": "_greater", ">=": "_greater_equal",
}  # fmt: skip
_LOGICAL = ("not", "and", "or", "xor")
_BOOLEAN = ("==", "!=", "<", "<=", ">", ">=", *_LOGICAL)
# The methods of a list after which its variable has another value.
_LIST_CHANGES = ("append", "clear", "extend", "insert", "pop", "remove")


@dataclass(frozen=True)
class Builtin:
    """The description of a built-in function: the compiler, in another process, does not get the function itself.

    Attributes:
        signature: Its parameters; the first is the calling thread.
        blocks: Whether it may have to wait: it is a generator function.
        cost: Of a call, in units of the budget.
    """

    signature: inspect.Signature
    blocks: bool
    cost: int = CALL_COST


@dataclass(frozen=True)
class Code:
    """A compiled program, which can be sent to another process of the same Python version.

    Attributes:
        code: Of the Python module, marshalled.
        lines: The script's line for each line of the Python source (the first is lines[1]).
        main: The main program's name in the Python source.
        unknown: The functions that it calls and that do not exist, by name: line and column of the first call.
    """

    code: bytes
    lines: tuple[int, ...]
    main: str
    unknown: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def line_of(self, python_line: int) -> int:
        """The script's line for a line of the Python source."""
        return self.lines[python_line] if 0 <= python_line < len(self.lines) else 0


def compile_script(source: str, builtins: Mapping[str, Builtin]) -> Code:
    """Parse and compile a script. What it calls and does not exist is named in `unknown`: controllers refuse such one.

    Raises:
        ScriptSyntaxError: The source is not URScript, or too much or too complicated.
    """
    program = parse(source)
    functions = {definition.name: definition for definition in _all_definitions(program)}
    main = _main_program(program)
    writer = _Writer(functions, main, builtins)
    for definition in functions.values():
        if definition is not main:
            writer.function(definition)
    writer.function(main)
    try:
        code = compile("\n".join(writer.text) + "\n", FILE_NAME, "exec")
    except (SyntaxError, RecursionError) as error:
        raise ScriptSyntaxError(f"it is too complicated ({error})", line=1, column=1) from None
    unknown: dict[str, tuple[int, int]] = {}
    for call in sorted(writer.unknown, key=lambda call: (call.line, call.column)):
        unknown.setdefault(call.name, (call.line, call.column))
    return Code(marshal.dumps(code), tuple(writer.lines), writer.name_of(main), unknown)


def _all_definitions(program: syntax.Program) -> list[syntax.Definition]:
    """Every definition, nested ones too; of several with the same name, the last counts."""
    found: list[syntax.Definition] = []
    waiting: list[syntax.Node] = [program]
    while waiting:
        inside = [node for node in syntax.walk(*waiting.pop().children()) if isinstance(node, syntax.Definition)]
        found += inside
        waiting += inside
    return found


def _main_program(program: syntax.Program) -> syntax.Definition:
    """The statements outside of definitions if there are any, else the last definition. One that needs arguments is not
    a program: the file is a library then, which does nothing by itself."""
    statements = tuple(statement for statement in program.body if not isinstance(statement, syntax.Definition))
    last = program.body[-1] if program.body else None
    if not statements and isinstance(last, syntax.Definition) and not last.parameters:
        return last
    return syntax.Definition(1, 1, "def", "", (), statements)


def _nodes(definition: syntax.Definition, kind: type[NodeT]) -> list[NodeT]:
    """The nodes of this kind in its parameters and body, without those of the definitions in it."""
    below = syntax.walk(*definition.parameters, *definition.body)
    return [node for node in below if isinstance(node, kind)]


def _assigned(definition: syntax.Definition, scope: str | None = None) -> set[str]:
    """The variables that it assigns: all, or those declared so."""
    return {a.name for a in _nodes(definition, syntax.Assignment) if scope in (None, a.scope)}


class _Writer:
    """Writes Python code, one function at a time."""

    def __init__(
        self, functions: Mapping[str, syntax.Definition], main: syntax.Definition, builtins: Mapping[str, Builtin]
    ) -> None:
        self.text: list[str] = []
        self.lines: list[int] = [0]
        self.unknown: list[syntax.Call] = []
        self._functions, self._builtins = functions, builtins
        self._signatures = {
            **{name: builtin.signature for name, builtin in builtins.items()},
            **{name: _signature_of(definition) for name, definition in functions.items()},
        }
        # Shared by all functions: declared `global` anywhere, or assigned by the main program without `local`.
        own = _assigned(main, "local") | {parameter.name for parameter in main.parameters}
        self._globals = _assigned(main) - own
        for definition in (main, *functions.values()):
            self._globals |= _assigned(definition, "global")
        self._locals: set[str] = set()  # of the function that is being written
        self._line = 1
        self._indent = 0
        self._temporaries = 0

    def _put(self, python: str) -> None:
        self.text.append("    " * self._indent + python)
        self.lines.append(self._line)

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self._put(head)
        self._indent += 1
        yield
        self._indent -= 1

    def name_of(self, definition: syntax.Definition) -> str:
        """Its name in Python; that of the main program differs from the one of a function in it with its name."""
        is_function = self._functions.get(definition.name) is definition
        return f"{'u' if is_function else 'm'}_{definition.name}"

    # Functions and blocks

    def function(self, definition: syntax.Definition) -> None:
        """Write one function of the program."""
        self._line = definition.line
        assigned = _assigned(definition)
        changed = {
            syntax.place_of(method.value)[0]
            for method in _nodes(definition, syntax.Method)
            if method.name in _LIST_CHANGES
        } - {""}
        self._locals = {parameter.name for parameter in definition.parameters} | _assigned(definition, "local")
        self._locals |= assigned - self._globals
        parameters = [f"v_{each.name}" + ("=_UNSET" if each.default else "") for each in definition.parameters]
        with self._block(f"def {self.name_of(definition)}({', '.join(['_t', *parameters])}):"):
            if shared := (assigned | changed) - self._locals:
                self._put("global " + ", ".join(sorted(f"g_{name}" for name in shared)))
            self._put("if False: yield")
            for parameter in definition.parameters:
                if parameter.default:
                    with self._block(f"if v_{parameter.name} is _UNSET:"):
                        self._put(f"v_{parameter.name} = {self._expression(parameter.default)}")
            if not definition.name:
                self._statements(definition.body)
                return
            self._put("_t.enter_call()")
            with self._block("try:"):
                self._statements(definition.body, 1)
            with self._block("finally:"):
                self._put("_t.depth -= 1")

    def _statements(self, body: tuple[syntax.Statement, ...], cost: int = 0) -> None:
        """Write a block. It is charged in chunks; `cost` is charged on top of its statements."""
        chunk: list[syntax.Statement] = []
        for statement in body:
            if not isinstance(statement, syntax.Definition):
                chunk.append(statement)
                cost += self._cost(statement)
            if cost > _CHUNK:
                self._chunk(chunk, cost)
                chunk, cost = [], 0
        self._chunk(chunk, cost)
        self._put("pass")

    def _chunk(self, statements: list[syntax.Statement], cost: int) -> None:
        if cost > 0:
            self._put(f"_b[0] -= {cost}")
            self._put("if _b[0] < 0: yield _SPENT")
        for statement in statements:
            self._statement(statement)

    def _cost(self, statement: syntax.Node) -> int:
        """What is charged for a statement, without the blocks in it: one for each operation, more for calls."""
        cost, nodes = 0, [statement]
        if isinstance(statement, syntax.While):
            return 0
        if isinstance(statement, syntax.If):
            nodes = [branch.condition for branch in statement.branches]
        for node in syntax.walk(*nodes):
            if isinstance(node, syntax.Call):
                known = node.name not in self._functions and node.name in self._builtins
                cost += self._builtins[node.name].cost if known else CALL_COST
            elif not isinstance(node, syntax.Literal | syntax.Name):
                cost += 1
        return cost

    # Statements

    def _statement(self, statement: syntax.Statement) -> None:
        self._line = statement.line
        match statement:
            case syntax.Assignment(name=name, path=path):
                variable, value = self._variable(name), self._expression(statement.value)
                if path:
                    # The variable is read last: what is evaluated before may change it.
                    value = f"_with_item({self._tuple(path)}, {value}, {variable})"
                self._put(f"{variable} = {value}")
            case syntax.If():
                for i, branch in enumerate(statement.branches):
                    self._line = branch.line
                    with self._block(f"{'elif' if i else 'if'} {self._condition(branch.condition)}:"):
                        self._statements(branch.body)
                if statement.otherwise:
                    with self._block("else:"):
                        self._statements(statement.otherwise)
            case syntax.While(condition=condition, body=body):
                with self._block(f"while {self._condition(condition)}:"):
                    self._statements(body, 1 + self._cost(condition))
            case syntax.Call():
                self._put(self._call(statement))
            case syntax.Start() | syntax.Method():
                self._put(self._expression(statement))
            case syntax.Keyed():
                self._keyed(statement.word, "" if statement.value is None else self._expression(statement.value))

    def _keyed(self, word: str, value: str) -> None:
        if word == "join":
            self._put(f"_h = {value}")
            self._put("while not _t.has_ended(_h): yield _WAITING")
        elif word in ("enter_critical", "exit_critical", "halt", "kill"):
            self._put(f"_t.{word}({value})")
        else:
            self._put(f"{word} {value}".rstrip())

    # Expressions

    def _variable(self, name: str) -> str:
        return f"v_{name}" if name in self._locals else f"g_{name}"

    def _condition(self, expression: syntax.Expression) -> str:
        python = self._expression(expression)
        match expression:
            case syntax.Literal(value=bool()):
                return python
            case syntax.Operation(operator=operator) if operator in _BOOLEAN:
                return python
        return f"_truth({python})"

    def _expression(self, expression: syntax.Expression) -> str:
        match expression:
            case syntax.Literal(value=value):
                # An integer that exceeds 31 bits: 2147483648, the operand of -2147483648.
                return repr(float(value)) if type(value) is int and value > MAX_INTEGER else repr(value)
            case syntax.Name(name=name):
                return self._variable(name)
            case syntax.ListOf(items=items, pose=True):
                return f"_pose_of({', '.join(map(self._expression, items))})"
            case syntax.ListOf(items=items):
                python = self._tuple(items)
                constant = len(items) <= MAX_ELEMENTS and all(isinstance(item, syntax.Literal) for item in items)
                return python if constant else f"_list_of{python}"
            case syntax.Operation(operator=operator, operands=operands):
                return self._operation(operator, operands)
            case syntax.Index(value=value, subscripts=subscripts):
                python = self._expression(value)
                for subscript in subscripts:
                    python = f"_item({python}, {self._expression(subscript)})"
                return python
            case syntax.Member(value=value, name=name):
                return f"_member({self._expression(value)}, {name!r})"
            case syntax.Method():
                return self._method(expression)
            case syntax.Start(call=call):
                return self._start(call)
            case syntax.Call():
                python = self._call(expression)
                return f"_value_of({python})" if expression.name not in self._functions else python

    def _operation(self, operator: str, operands: tuple[syntax.Expression, ...]) -> str:
        if operator in _LOGICAL:
            conditions = [self._condition(operand) for operand in operands]
            if operator == "not":
                return f"(not {conditions[0]})"
            if operator == "xor":  # Python's != would chain: a != b != c is not xor.
                return f"_exclusive({', '.join(conditions)})"
            return f"({f' {operator} '.join(conditions)})"
        values = [self._expression(operand) for operand in operands]
        if len(values) == 1:
            return f"{'_negate' if operator == '-' else '_plus'}({values[0]})"
        if operator in ("==", "!=") and any(isinstance(operand, syntax.Literal) for operand in operands):
            return f"({values[0]} {operator} {values[1]})"
        return f"{_HELPERS[operator]}({', '.join(values)})"

    # Calls

    def _call(self, call: syntax.Call) -> str:
        if reason := self._call_error(call):
            return f"_fail({reason!r}, {call.line})"
        if call.name in self._functions:
            return f"(yield from u_{call.name}({self._arguments(call, '_t', 'v_')}))"
        python = f"b_{call.name}({self._arguments(call, '_t', '')})"
        return f"(yield from {python})" if self._builtins[call.name].blocks else python

    def _method(self, method: syntax.Method) -> str:
        if method.keywords:
            return f"_fail('{method.name}: a method takes its arguments by position.', {method.line})"
        name, path = syntax.place_of(method.value)
        if method.name not in _LIST_CHANGES or not name:
            value = self._expression(method.value)
            return f"(yield from _invoke(_t, {value}, {method.name!r}, *{self._tuple(method.arguments)}))[1]"
        # A list is a value: its variable is assigned the changed one. Everything is evaluated once, the variable last.
        self._temporaries += 1
        variable, i = self._variable(name), self._temporaries
        given = f"_p{i} := {self._tuple(path)}), (_a{i} := {self._tuple(method.arguments)}"
        call = f"_m{i} := (yield from _invoke(_t, _at(_p{i}, {variable}), {method.name!r}, *_a{i}))"
        return f"(({given}), ({call}), ({variable} := _with_item(_p{i}, _m{i}[0], {variable})), _m{i}[1])[-1]"

    def _tuple(self, expressions: tuple[syntax.Expression, ...]) -> str:
        return f"({''.join(f'{self._expression(each)}, ' for each in expressions)})"

    def _start(self, call: syntax.Call) -> str:
        reason = self._call_error(call)
        if call.name not in self._functions:
            reason = f"There is no thread '{call.name}' in the program to run."
        if reason:
            return f"_fail({reason!r}, {call.line})"
        return f"_t.start({call.name!r}, {self._arguments(call, f'u_{call.name}', 'v_')})"

    def _arguments(self, call: syntax.Call, first: str, prefix: str) -> str:
        arguments = [first, *map(self._expression, call.arguments)]
        named = [(f"{prefix}{keyword.name}", self._expression(keyword.value)) for keyword in call.keywords]
        if any(iskeyword(name) for name, _ in named):
            arguments.append(f"**{{{', '.join(f'{name!r}: {value}' for name, value in named)}}}")
        else:
            arguments += [f"{name}={value}" for name, value in named]
        return ", ".join(arguments)

    def _call_error(self, call: syntax.Call) -> str:
        """Why a call is invalid, or ""."""
        if call.name not in self._signatures:
            self.unknown.append(call)
            return f"There is no function '{call.name}'."
        prefix = "v_" if call.name in self._functions else ""
        try:
            named = {f"{prefix}{keyword.name}": None for keyword in call.keywords}
            self._signatures[call.name].bind(None, *call.arguments, **named)
        except TypeError as error:
            return f"{call.name}: {error}.".replace("'v_", "'")
        return ""


def _signature_of(definition: syntax.Definition) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("_thread", inspect.Parameter.POSITIONAL_ONLY)]
    for parameter in definition.parameters:
        default = inspect.Parameter.empty if parameter.default is None else None
        parameters.append(inspect.Parameter(f"v_{parameter.name}", kind, default=default))
    return inspect.Signature(parameters)
