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

from lark import Tree

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.parser import (
    Node,
    all_definitions,
    first_word,
    literal,
    main_program,
    parse,
    parts,
    place_of,
    walk,
)
from simbridge.emulator.urscript.values import MAX_ELEMENTS, MAX_INTEGER

FILE_NAME = "<urscript>"
CALL_COST = 3  # of a call, in units of a tick's budget: 1 is about 0.1 microseconds
# The most that a statement may cost, in the same units: it is not interrupted, and a tick must not wait for it.
MAX_STATEMENT_COST = 100_000
_CHUNK = 200  # about the cost in which long code without a loop is charged
_HELPERS = {
    "+": "_add", "-": "_subtract", "*": "_multiply", "/": "_divide", "%": "_modulo", "==": "_equal", "!=": "_unequal",
    "<": "_less", "<=": "_less_equal", ">": "_greater", ">=": "_greater_equal",
}  # fmt: skip
_LOGICAL = ("not", "and", "or", "xor")
_BOOLEAN = ("==", "!=", "<", "<=", ">", ">=", *_LOGICAL)
# Nodes without a cost of their own, as literals are.
_FREE = ("name", "arguments", "subscript")
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
    functions = {parts(definition)[0]: definition for definition in all_definitions(program)}
    main = main_program(program)
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
    for call in sorted(
        writer.unknown, key=lambda call: (first_word(call).line, first_word(call).column)
    ):
        unknown.setdefault(str(call.children[0]), (first_word(call).line, first_word(call).column))
    return Code(marshal.dumps(code), tuple(writer.lines), writer.name_of(main), unknown)


def _variables(definition: Node) -> dict[str, set[str]]:
    """The variables that it assigns: "all", and those declared "local" (its parameters, too) or "global"; and those of
    lists that methods change: "changed"."""
    _, parameters, body = parts(definition)
    own = {str(parameter.children[0]) for parameter in parameters}
    found: dict[str, set[str]] = {"all": set(), "local": own, "global": set(), "changed": set()}
    for node in walk(*parameters, *body):
        match node.data, node.children:
            case "assignment", [scope, place, _]:
                found["all"].add(place_of(place)[0])
                if scope:
                    found[scope].add(place_of(place)[0])
            case "method", [value, name, _] if name in _LIST_CHANGES:
                found["changed"].add(place_of(value)[0])
    found["changed"].discard("")
    return found


class _Writer:
    """Writes Python code, one function at a time."""

    def __init__(
        self, functions: Mapping[str, Node], main: Node, builtins: Mapping[str, Builtin]
    ) -> None:
        self.text: list[str] = []
        self.lines: list[int] = [0]
        self.unknown: list[Node] = []
        self._functions, self._builtins = functions, builtins
        self._signatures = {
            **{name: builtin.signature for name, builtin in builtins.items()},
            **{name: _signature_of(definition) for name, definition in functions.items()},
        }
        # Shared by all functions: declared `global` anywhere, or assigned by the main program without `local`.
        of_main = _variables(main)
        self._globals = of_main["all"] - of_main["local"] | of_main["global"]
        self._globals = self._globals.union(
            *(_variables(definition)["global"] for definition in functions.values())
        )
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

    def name_of(self, definition: Node) -> str:
        """Its name in Python; that of the main program differs from the one of a function in it with its name."""
        name = parts(definition)[0]
        return f"u_{name}" if self._functions.get(name) is definition else f"m_{name}"

    # Functions and blocks

    def function(self, definition: Node) -> None:
        """Write one function of the program."""
        name, parameters, body = parts(definition)
        self._line = definition.children[0].line
        variables = _variables(definition)
        self._locals = variables["local"] | variables["all"] - self._globals
        defaults = {
            f"v_{parameter}": default
            for parameter, default in (each.children for each in parameters)
        }
        head = [
            "_t",
            *(
                f"{parameter}=_UNSET" if default else parameter
                for parameter, default in defaults.items()
            ),
        ]
        with self._block(f"def {self.name_of(definition)}({', '.join(head)}):"):
            if shared := (variables["all"] | variables["changed"]) - self._locals:
                self._put("global " + ", ".join(sorted(f"g_{name}" for name in shared)))
            self._put("if False: yield")
            for parameter, default in defaults.items():
                if default:
                    with self._block(f"if {parameter} is _UNSET:"):
                        self._chunk([], self._cost(default))
                        self._put(f"{parameter} = {self._expression(default)}")
            if not name:
                self._statements(body)
                return
            self._put("_t.enter_call()")
            with self._block("try:"):
                self._statements(body, 1)
            with self._block("finally:"):
                self._put("_t.depth -= 1")

    def _statements(self, body: list[Node], cost: int = 0) -> None:
        """Write a block. It is charged in chunks; `cost` is charged on top of its statements."""
        chunk: list[Node] = []
        for statement in body:
            if statement.data != "definition":
                chunk.append(statement)
                cost += self._cost(statement)
            if cost > _CHUNK:
                self._chunk(chunk, cost)
                chunk, cost = [], 0
        self._chunk(chunk, cost)
        self._put("pass")

    def _chunk(self, statements: list[Node], cost: int) -> None:
        if cost > 0:
            self._put(f"_b[0] -= {cost}")
            self._put("if _b[0] < 0: yield _SPENT")
        for statement in statements:
            self._statement(statement)

    def _cost(self, statement: Node) -> int:
        """What is charged for a statement, without the blocks in it: one for each operation, more for calls."""
        cost, nodes = 0, [statement]
        if statement.data == "while_loop":
            return 0
        if statement.data == "if_statement":
            nodes = statement.children[1:-1:2]
        for node in walk(*nodes):
            if node.data == "call":
                name = node.children[0]
                known = name not in self._functions and name in self._builtins
                cost += self._builtins[name].cost if known else CALL_COST
            elif node.data not in _FREE and literal(node) is None:
                cost += 1
        if cost > MAX_STATEMENT_COST:
            word = first_word(statement)
            reason = "this statement takes too long in one piece; split it"
            raise ScriptSyntaxError(reason, line=word.line, column=word.column)
        return cost

    # Statements

    def _statement(self, statement: Node) -> None:
        self._line = first_word(statement).line
        match statement.data, statement.children:
            case "assignment", [_, place, value]:
                name, path = place_of(place)
                variable, python = self._variable(name), self._expression(value)
                if path:
                    # The variable is read last: what is evaluated before may change it.
                    python = f"_with_item({self._tuple(path)}, {python}, {variable})"
                self._put(f"{variable} = {python}")
            case "if_statement", [_, *branches, otherwise]:
                for i in range(0, len(branches), 2):
                    condition, body = branches[i : i + 2]
                    self._line = first_word(condition).line
                    with self._block(f"{'elif' if i else 'if'} {self._condition(condition)}:"):
                        self._statements(body.children)
                if otherwise:
                    with self._block("else:"):
                        self._statements(otherwise.children)
            case "while_loop", [_, condition, body]:
                with self._block(f"while {self._condition(condition)}:"):
                    self._statements(body.children, 1 + self._cost(condition))
            case "call", _:
                self._put(self._call(statement))
            case "keyed", [word, *values]:
                self._keyed(word, "".join(map(self._expression, values)))
            case _:
                self._put(self._expression(statement))

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

    def _condition(self, expression: Node) -> str:
        python = self._expression(expression)
        is_boolean = expression.data == "boolean"
        if expression.data in ("operation", "unary"):
            is_boolean = any(operator in _BOOLEAN for operator in expression.children[:2])
        return python if is_boolean else f"_truth({python})"

    def _expression(self, expression: Node) -> str:
        value = literal(expression)
        if value is not None:
            # An integer that exceeds 31 bits: 2147483648, the operand of -2147483648.
            return repr(float(value)) if type(value) is int and value > MAX_INTEGER else repr(value)
        match expression.data, expression.children:
            case "name", [name]:
                return self._variable(name)
            case "list_of", [_, *items]:
                items = [item for item in items if item is not None]
                constant = len(items) <= MAX_ELEMENTS and all(
                    literal(item) is not None for item in items
                )
                return self._tuple(items) if constant else f"_list_of{self._tuple(items)}"
            case "unary", [operator, operand]:
                return self._operation(operator, [operand])
            case "operation", [_, operator, *_]:
                return self._operation(operator, expression.children[::2])
            case "index", [value, Tree(children=[_, *subscripts])]:
                if value.data == "name" and value.children[0] == "p" and len(subscripts) > 2:
                    return f"_pose_of({', '.join(map(self._expression, subscripts))})"
                python = self._expression(value)
                for subscript in subscripts:
                    python = f"_item({python}, {self._expression(subscript)})"
                return python
            case "member", [value, name]:
                return f"_member({self._expression(value)}, {str(name)!r})"
            case "method", _:
                return self._method(expression)
            case "start", [_, call]:
                return self._start(call)
        python = self._call(expression)
        return python if expression.children[0] in self._functions else f"_value_of({python})"

    def _operation(self, operator: str, operands: list[Node]) -> str:
        if operator in _LOGICAL:
            conditions = [self._condition(operand) for operand in operands]
            if operator == "xor":  # Python's != would chain: a != b != c is not xor.
                return f"_exclusive({', '.join(conditions)})"
            return (
                f"(not {conditions[0]})"
                if operator == "not"
                else f"({f' {operator} '.join(conditions)})"
            )
        values = [self._expression(operand) for operand in operands]
        if len(values) == 1:
            return f"{'_negate' if operator == '-' else '_plus'}({values[0]})"
        if operator in ("==", "!=") and any(literal(operand) is not None for operand in operands):
            return f"({values[0]} {operator} {values[1]})"
        return f"{_HELPERS[operator]}({', '.join(values)})"

    # Calls

    def _call(self, call: Node) -> str:
        name = str(call.children[0])
        if reason := self._call_error(call):
            return f"_fail({reason!r}, {first_word(call).line})"
        if name in self._functions:
            return f"(yield from u_{name}({self._arguments(call, '_t', 'v_')}))"
        python = f"b_{name}({self._arguments(call, '_t', '')})"
        return f"(yield from {python})" if self._builtins[name].blocks else python

    def _method(self, method: Node) -> str:
        value, name, (arguments, keywords) = (
            method.children[0],
            str(method.children[1]),
            _arguments_of(method),
        )
        if keywords:
            return f"_fail('{name}: a method takes its arguments by position.', {first_word(method).line})"
        place, path = place_of(value)
        if name not in _LIST_CHANGES or not place:
            return f"(yield from _invoke(_t, {self._expression(value)}, {name!r}, *{self._tuple(arguments)}))[1]"
        # A list is a value: its variable is assigned the changed one. Everything is evaluated once, the variable last.
        self._temporaries += 1
        variable, i = self._variable(place), self._temporaries
        given = f"_p{i} := {self._tuple(path)}), (_a{i} := {self._tuple(arguments)}"
        call = f"_m{i} := (yield from _invoke(_t, _at(_p{i}, {variable}), {name!r}, *_a{i}))"
        return f"(({given}), ({call}), ({variable} := _with_item(_p{i}, _m{i}[0], {variable})), _m{i}[1])[-1]"

    def _tuple(self, expressions: list[Node]) -> str:
        return f"({''.join(f'{self._expression(each)}, ' for each in expressions)})"

    def _start(self, call: Node) -> str:
        name, reason = str(call.children[0]), self._call_error(call)
        if name not in self._functions:
            reason = f"There is no thread '{name}' in the program to run."
        if reason:
            return f"_fail({reason!r}, {first_word(call).line})"
        return f"_t.start({name!r}, {self._arguments(call, f'u_{name}', 'v_')})"

    def _arguments(self, call: Node, first: str, prefix: str) -> str:
        positional, keywords = _arguments_of(call)
        arguments = [first, *map(self._expression, positional)]
        named = {f"{prefix}{name}": self._expression(value) for name, value in keywords.items()}
        if any(map(iskeyword, named)):
            arguments.append(
                f"**{{{', '.join(f'{name!r}: {value}' for name, value in named.items())}}}"
            )
        else:
            arguments += [f"{name}={value}" for name, value in named.items()]
        return ", ".join(arguments)

    def _call_error(self, call: Node) -> str:
        """Why a call is invalid, or ""."""
        name, (positional, keywords) = str(call.children[0]), _arguments_of(call)
        if name not in self._signatures:
            self.unknown.append(call)
            return f"There is no function '{name}'."
        prefix = "v_" if name in self._functions else ""
        try:
            self._signatures[name].bind(
                None, *positional, **{f"{prefix}{keyword}": None for keyword in keywords}
            )
        except TypeError as error:
            return f"{name}: {error}.".replace("'v_", "'")
        return ""


def _arguments_of(call: Node) -> tuple[list[Node], dict[str, Node]]:
    """The arguments of a call or a method without a name, and those with one."""
    given = [argument for argument in call.children[-1].children if argument is not None]
    named = dict(argument.children for argument in given if argument.data == "keyword")
    return given[: len(given) - len(named)], {str(name): value for name, value in named.items()}


def _signature_of(definition: Node) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("_thread", inspect.Parameter.POSITIONAL_ONLY)]
    for name, default in (parameter.children for parameter in parts(definition)[1]):
        parameters.append(
            inspect.Parameter(
                f"v_{name}", kind, default=None if default else inspect.Parameter.empty
            )
        )
    return inspect.Signature(parameters)
