"""Translates a syntax tree to Python: functions that may block become generators, the others plain functions.

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
from types import CodeType

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript import syntax
from simbridge.emulator.urscript.analysis import Analysis, Function, analyse, block_cost
from simbridge.emulator.urscript.library import Builtin
from simbridge.emulator.urscript.members import LIST_CHANGES
from simbridge.emulator.urscript.parser import parse
from simbridge.emulator.urscript.values import MAX_ELEMENTS, MAX_INTEGER

FILE_NAME = "<urscript>"
# Long code without a loop is charged in pieces of about this cost.
_CHUNK = 200
# A branch that costs no more than this is charged with its `if`.
_SMALL = 20
_HELPERS = {
    "+": "_add", "-": "_subtract", "*": "_multiply", "/": "_divide", "%": "_modulo", "==": "_equal", "!=": "_unequal",
    "<": "_less", "<=": "_less_equal", ">": "_greater", ">=": "_greater_equal",
}  # fmt: skip
_LOGICAL = ("not", "and", "or", "xor")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Code:
    """A compiled program.

    Attributes:
        python: The Python source, for reading.
        code: The same, compiled.
        lines: The script's line for each line of the Python source (the first is lines[1]).
        main: The main program's name in the Python source.
        unknown: The functions that it calls and that do not exist, by name: line and column of the first call.
    """

    python: str
    code: CodeType
    lines: tuple[int, ...]
    main: str
    unknown: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def line_of(self, python_line: int) -> int:
        """The script's line for a line of the Python source."""
        return self.lines[python_line] if 0 <= python_line < len(self.lines) else 0

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle for another process of the same Python version."""
        return _unpacked, (self.python, marshal.dumps(self.code), self.lines, self.main)


def _unpacked(python: str, code: bytes, lines: tuple[int, ...], main: str) -> Code:
    return Code(python, marshal.loads(code), lines, main)


def compile_script(source: str, builtins: Mapping[str, Builtin]) -> Code:
    """Parse and compile a script.

    Raises:
        ScriptSyntaxError: The source is not URScript, or too much of it.
    """
    return compile_program(parse(source), builtins)


def compile_program(program: syntax.Program, builtins: Mapping[str, Builtin]) -> Code:
    """Compile a program. What it calls and does not exist is named in `unknown`: controllers refuse such a program.

    Args:
        program: A script's syntax tree.
        builtins: The built-in functions, each called as `function(thread, ...)`.

    Raises:
        ScriptSyntaxError: The program is too complicated.
    """
    analysis = analyse(program, builtins)
    writer = _Writer(analysis, builtins)
    functions = [function for function in analysis.functions.values() if function is not analysis.main]
    for function in (*functions, analysis.main):
        writer.function(function)
    python = "\n".join(writer.text) + "\n"
    try:
        code = compile(python, FILE_NAME, "exec")
    except (SyntaxError, RecursionError) as error:
        raise ScriptSyntaxError(f"it is too complicated ({error})", line=1, column=1) from None
    unknown: dict[str, tuple[int, int]] = {}
    for call in sorted(writer.unknown, key=lambda call: (call.line, call.column)):
        unknown.setdefault(call.name, (call.line, call.column))
    return Code(python, code, tuple(writer.lines), writer.name_of(analysis.main), unknown)


class _Writer:
    """Writes Python code, one function at a time."""

    def __init__(self, analysis: Analysis, builtins: Mapping[str, Builtin]) -> None:
        self.text: list[str] = []
        self.lines: list[int] = [0]
        self.unknown: list[syntax.Call] = []
        self._functions = analysis.functions
        self._builtins = builtins
        self._signatures: dict[str, inspect.Signature] = {}
        self._function = analysis.main
        self._blocking = True
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

    def name_of(self, function: Function) -> str:
        """Its name in Python; that of the main program differs from the one of a function in it with its name."""
        name = function.definition.name
        return f"m_{name}" if self._functions.get(name, function) is not function else f"u_{name}"

    # Functions and blocks

    def function(self, function: Function) -> None:
        """Write one function of the program."""
        definition = function.definition
        self._function, self._line = function, definition.line
        self._blocking = function.may_block
        parameters = ["_t"]
        for parameter in definition.parameters:
            parameters.append(f"v_{parameter.name}" + ("=_UNSET" if parameter.default else ""))
        with self._block(f"def {self.name_of(function)}({', '.join(parameters)}):"):
            if function.assigned_globals:
                self._put("global " + ", ".join(sorted(f"g_{name}" for name in function.assigned_globals)))
            if function.may_block:
                self._put("if False: yield")
            for parameter in definition.parameters:
                if parameter.default:
                    with self._block(f"if v_{parameter.name} is _UNSET:"):
                        self._put(f"v_{parameter.name} = {self._expression(parameter.default)}")
            if function.may_block and function.counted:
                self._put("_t.enter_call()")
                with self._block("try:"):
                    self._statements(definition.body, 1)
                with self._block("finally:"):
                    self._put("_t.depth -= 1")
            else:
                self._statements(definition.body, 1)

    def _statements(self, body: tuple[syntax.Statement, ...], cost: int = 0) -> None:
        """Write a block. It is charged in chunks; `cost` is charged on top of its statements."""
        chunk: list[syntax.Statement] = []
        for statement in body:
            if isinstance(statement, syntax.Definition):
                continue
            chunk.append(statement)
            cost += self._cost(statement)
            if cost > _CHUNK:
                self._chunk(chunk, cost)
                chunk, cost = [], 0
        self._chunk(chunk, cost)
        if all(isinstance(statement, syntax.Definition) for statement in body):
            self._put("pass")

    def _chunk(self, statements: list[syntax.Statement], cost: int) -> None:
        if self._blocking and cost > 0:
            self._put(f"_b[0] -= {cost}")
            self._put("if _b[0] < 0: yield _SPENT")
        for statement in statements:
            self._statement(statement)

    def _branch(self, body: tuple[syntax.Statement, ...]) -> None:
        cost = self._body_cost(body)
        # A small branch was charged with its `if`.
        self._statements(body, 0 if cost > _SMALL else -cost)

    def _body_cost(self, body: tuple[syntax.Statement, ...]) -> int:
        return sum(self._cost(statement) for statement in body)

    def _sum(self, nodes: tuple[syntax.Node, ...]) -> int:
        return block_cost(nodes, self._functions, self._builtins)

    def _cost(self, statement: syntax.Statement) -> int:
        """The cost of a statement that its block is charged with."""
        if isinstance(statement, syntax.While | syntax.Definition):
            return 0
        if isinstance(statement, syntax.If):
            conditions = self._sum(tuple(branch.condition for branch in statement.branches))
            bodies = [*(branch.body for branch in statement.branches), statement.otherwise]
            return conditions + max((cost for cost in map(self._body_cost, bodies) if cost <= _SMALL), default=0)
        return self._sum((statement,))

    # Statements

    def _statement(self, statement: syntax.Statement) -> None:
        self._line = statement.line
        match statement:
            case syntax.Assignment():
                self._assignment(statement)
            case syntax.If():
                self._if(statement)
            case syntax.While():
                with self._block(f"while {self._condition(statement.condition)}:"):
                    self._statements(statement.body, 1 + self._sum((statement.condition,)))
            case syntax.Call():
                self._put(self._call(statement))
            case syntax.Start() | syntax.Method():
                self._put(self._expression(statement))
            case syntax.Keyed():
                self._keyed(statement.word, "" if statement.value is None else self._expression(statement.value))

    def _assignment(self, statement: syntax.Assignment) -> None:
        variable = self._variable(statement.name)
        value = self._expression(statement.value)
        if statement.path:
            # The variable is read last: what is evaluated before may change it.
            value = f"_with_item({self._tuple(statement.path)}, {value}, {variable})"
        self._put(f"{variable} = {value}")

    def _if(self, statement: syntax.If) -> None:
        for i, branch in enumerate(statement.branches):
            self._line = branch.line
            with self._block(f"{'elif' if i else 'if'} {self._condition(branch.condition)}:"):
                self._branch(branch.body)
        if statement.otherwise:
            with self._block("else:"):
                self._branch(statement.otherwise)

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
        return f"v_{name}" if name in self._function.local_names else f"g_{name}"

    def _condition(self, expression: syntax.Expression) -> str:
        python = self._expression(expression)
        return python if _is_boolean(expression) else f"_truth({python})"

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
            case syntax.Operation():
                return self._operation(expression.operator, expression.operands)
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
            # Python's != would chain: a != b != c is not xor.
            return (
                f"_exclusive({', '.join(conditions)})" if operator == "xor" else f"({f' {operator} '.join(conditions)})"
            )
        values = [self._expression(operand) for operand in operands]
        if len(values) == 1:
            return f"{'_negate' if operator == '-' else '_plus'}({values[0]})"
        if operator in ("==", "!=") and any(isinstance(operand, syntax.Literal) for operand in operands):
            return f"({values[0]} {operator} {values[1]})"
        return f"{_HELPERS[operator]}({', '.join(values)})"

    # Calls

    def _call(self, call: syntax.Call) -> str:
        function = self._functions.get(call.name)
        reason = self._call_error(call)
        if reason:
            return f"_fail({reason!r}, {call.line})"
        if function is not None:
            python = f"u_{call.name}({self._arguments(call, '_t', 'v_')})"
            return f"(yield from {python})" if function.may_block else python
        python = f"b_{call.name}({self._arguments(call, '_t', '')})"
        return f"(yield from {python})" if self._builtins[call.name].blocks else python

    def _method(self, method: syntax.Method) -> str:
        if method.keywords:
            return f"_fail('{method.name}: a method takes its arguments by position.', {method.line})"
        name, path = syntax.place_of(method.value)
        if method.name not in LIST_CHANGES or not name:
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
        arguments = self._arguments(call, "", "v_")
        return f"_t.start({call.name!r}, u_{call.name}{', ' + arguments if arguments else ''})"

    def _arguments(self, call: syntax.Call, first: str, prefix: str) -> str:
        arguments = [first] if first else []
        arguments += [self._expression(argument) for argument in call.arguments]
        named = [(f"{prefix}{keyword.name}", self._expression(keyword.value)) for keyword in call.keywords]
        if any(iskeyword(name) for name, _ in named):
            arguments.append(f"**{{{', '.join(f'{name!r}: {value}' for name, value in named)}}}")
        else:
            arguments += [f"{name}={value}" for name, value in named]
        return ", ".join(arguments)

    def _call_error(self, call: syntax.Call) -> str:
        """Why a call is invalid, or ""."""
        signature = self._signature(call.name)
        if signature is None:
            self.unknown.append(call)
            return f"There is no function '{call.name}'."
        try:
            prefix = "v_" if call.name in self._functions else ""
            signature.bind(None, *call.arguments, **{f"{prefix}{keyword.name}": None for keyword in call.keywords})
        except TypeError as error:
            return f"{call.name}: {error}.".replace("'v_", "'")
        return ""

    def _signature(self, name: str) -> inspect.Signature | None:
        if name not in self._signatures:
            function = self._functions.get(name)
            if function is not None:
                self._signatures[name] = _signature_of(function.definition)
            elif name in self._builtins:
                self._signatures[name] = self._builtins[name].signature
        return self._signatures.get(name)


def _signature_of(definition: syntax.Definition) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("_thread", inspect.Parameter.POSITIONAL_ONLY)]
    for parameter in definition.parameters:
        default = inspect.Parameter.empty if parameter.default is None else None
        parameters.append(inspect.Parameter(f"v_{parameter.name}", kind, default=default))
    return inspect.Signature(parameters)


def _is_boolean(expression: syntax.Expression) -> bool:
    if isinstance(expression, syntax.Literal):
        return isinstance(expression.value, bool)
    return isinstance(expression, syntax.Operation) and expression.operator in (*_COMPARISONS, *_LOGICAL)
