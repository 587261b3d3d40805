"""Writes the expressions of a script as Python: operators, elements, calls.

In the Python that is written, v_x is a local variable of the script and g_x a global one, u_f a
function of the program and b_f a built-in one, and _t the thread that runs the script: see the
docstring of `compiler.py`. The other names that begin with an underscore are helpers that the
runtime puts into the program's namespace, most of them methods of `Operators`; or, with a number,
intermediate values (see `_list_change`).
"""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword

from lark import Tree

from simbridge.emulator.urscript.faults import ScriptFault
from simbridge.emulator.urscript.functions import Builtin
from simbridge.emulator.urscript.signatures import signature_of_definition
from simbridge.emulator.urscript.syntax_tree import (
    Node,
    definition_of,
    element_path,
    first_word,
    literal,
)
from simbridge.emulator.urscript.values import MAX_ELEMENTS, MAX_INTEGER
from simbridge.emulator.urscript.variables import LIST_CHANGES

# The method of `Operators` that is an operator.
_HELPERS = {
    "+": "_add",
    "-": "_subtract",
    "*": "_multiply",
    "/": "_divide",
    "%": "_modulo",
    "==": "_equal",
    "!=": "_unequal",
    "<": "_less",
    "<=": "_less_equal",
    ">": "_greater",
    ">=": "_greater_equal",
}
_LOGICAL = ("not", "and", "or", "xor")
# Operators whose result is True or False.
_BOOLEAN = ("==", "!=", "<", "<=", ">", ">=", *_LOGICAL)


class ExpressionWriter:
    """Writes the expressions of one program: each method returns Python.

    Args:
        functions: The definitions of the program, by name.
        builtins: The built-in functions, by name.

    Attributes:
        locals: Local variables of the function that is being written.
        unknown_calls: The calls of functions that do not exist.
        faults: What ends the program where it is reached: calls that do not fit their function.
    """

    def __init__(self, functions: Mapping[str, Node], builtins: Mapping[str, Builtin]) -> None:
        self.locals: set[str] = set()
        self.unknown_calls: list[Node] = []
        self.faults: list[ScriptFault] = []

        self._functions = functions
        self._builtins = builtins
        # A function of the program replaces a built-in one.
        self._signatures = {name: builtin.signature for name, builtin in builtins.items()}
        for name, node in functions.items():
            # The name of each parameter, and whether it has a default.
            parameters = []
            for parameter in definition_of(node).parameters:
                parameter_name, default = parameter.children
                parameters.append((str(parameter_name), default is not None))
            self._signatures[name] = signature_of_definition(parameters)

        # The number of changes of lists so far: each has temporary variables of its own.
        self._change_count = 0

    def variable(self, name: str) -> str:
        """Return a variable's name in Python."""
        return f"v_{name}" if name in self.locals else f"g_{name}"

    def tuple_of(self, expressions: list[Node]) -> str:
        """Return a tuple of expressions."""
        items = [f"{self.expression(expression)}, " for expression in expressions]
        return f"({''.join(items)})"

    def condition(self, expression: Node) -> str:
        """Return an expression that is True or False."""
        python = self.expression(expression)
        is_boolean = expression.data == "boolean"
        if expression.data in ("operation", "unary"):
            # A unary operator is the first child, a binary one the second.
            is_boolean = any(operator in _BOOLEAN for operator in expression.children[:2])
        return python if is_boolean else f"_truth({python})"

    def expression(self, expression: Node) -> str:
        """Return any expression in Python."""
        constant = literal(expression)
        if constant is not None:
            return _constant(constant)

        match expression.data, expression.children:
            case "name", [name]:
                return self.variable(name)
            case "list_of", [_, *items]:
                return self._list([item for item in items if item is not None])
            case "unary", [operator, operand]:
                return self._operation(operator, [operand])
            case "operation", [_, operator, *_]:
                return self._operation(operator, expression.children[::2])
            case "index", [value, Tree(children=[_, *subscripts])]:
                return self._element(value, subscripts)
            case "member", [value, name]:
                return f"_member({self.expression(value)}, {str(name)!r})"
            case "method", _:
                return self._method(expression)
            case "start", [_, call]:
                return self._start(call)
        # What remains is a call. A built-in function may return a list of Python.
        python = self.call(expression)
        return python if expression.children[0] in self._functions else f"_value_of({python})"

    def _list(self, items: list[Node]) -> str:
        """Return a list; one of literals needs no check of its size when it is made."""
        is_constant = all(literal(item) is not None for item in items)
        if is_constant and len(items) <= MAX_ELEMENTS:
            return self.tuple_of(items)
        return f"_list_of{self.tuple_of(items)}"

    def _element(self, value: Node, subscripts: list[Node]) -> str:
        """Return value[a], value[a, b] and so on; with more than two it is a pose, p[a, b, ...]."""
        is_p = value.data == "name" and value.children[0] == "p"
        if is_p and len(subscripts) > 2:
            return f"_pose_of({', '.join(map(self.expression, subscripts))})"

        python = self.expression(value)
        for subscript in subscripts:
            python = f"_item({python}, {self.expression(subscript)})"
        return python

    def _operation(self, operator: str, operands: list[Node]) -> str:
        """Return an operator's result; `and`, `or` and `xor` have two operands or more."""
        if operator in _LOGICAL:
            conditions = [self.condition(operand) for operand in operands]
            if operator == "xor":
                # Python's != would chain: a != b != c is not xor.
                return f"_exclusive({', '.join(conditions)})"
            if operator == "not":
                return f"(not {conditions[0]})"
            return f"({f' {operator} '.join(conditions)})"

        values = [self.expression(operand) for operand in operands]
        if len(values) == 1:
            helper = "_negate" if operator == "-" else "_plus"
            return f"{helper}({values[0]})"

        # A comparison with a literal takes no longer for a long list or text.
        has_literal = any(literal(operand) is not None for operand in operands)
        if operator in ("==", "!=") and has_literal:
            return f"({values[0]} {operator} {values[1]})"
        return f"{_HELPERS[operator]}({', '.join(values)})"

    # Calls

    def call(self, call: Node) -> str:
        """Return the call of a function, or a fault if the call is invalid."""
        name = str(call.children[0])
        error = self._call_error(call)
        if error:
            return f"_fail({error!r}, {first_word(call).line})"

        if name in self._functions:
            return f"(yield from u_{name}({self._arguments(call, '_t', prefix='v_')}))"

        python = f"b_{name}({self._arguments(call, '_t')})"
        return f"(yield from {python})" if self._builtins[name].blocks else python

    def _method(self, method: Node) -> str:
        """Return the call of a method of a value: a list, or a handle."""
        value = method.children[0]
        name = str(method.children[1])
        arguments, keywords = _arguments_of(method)
        if keywords:
            reason = self._fault(method, f"{name}: a method takes its arguments by position.")
            return f"_fail({reason!r}, {first_word(method).line})"

        variable_name, path = element_path(value)
        if name not in LIST_CHANGES or not variable_name:
            python = f"_t, {self.expression(value)}, {name!r}, *{self.tuple_of(arguments)}"
            return f"(yield from _invoke({python}))[1]"

        return self._list_change(variable_name, path, name, arguments)

    def _list_change(
        self, variable_name: str, path: list[Node], name: str, arguments: list[Node]
    ) -> str:
        """Return the call of a method that changes a list, inside of an expression.

        A list is a value: its variable is assigned the changed one. Everything is evaluated once,
        the variable last. `x.append(2)` becomes a tuple of these steps and of what the method
        returns, from which the last one is taken:

            (
                _p1 := (),
                _a1 := (2, ),
                _m1 := (yield from _invoke(_t, _item_at_path(_p1, v_x), 'append', *_a1)),
                v_x := _with_item(_p1, _m1[0], v_x),
                _m1[1],
            )[-1]

        `_invoke` calls the method in the thread `_t`, and returns the changed list and what the
        method returns. `_item_at_path` reads an element of the variable, and `_with_item` returns
        the variable's value with another element.

        Args:
            variable_name: The variable that holds the list.
            path: The list's place in the variable; empty for the variable itself.
            name: Name of the method.
            arguments: Arguments of the method.
        """
        self._change_count += 1
        path_name = f"_p{self._change_count}"
        arguments_name = f"_a{self._change_count}"
        # The changed list, and what the method returns.
        result_name = f"_m{self._change_count}"

        variable = self.variable(variable_name)
        element = f"_item_at_path({path_name}, {variable})"
        call = f"(yield from _invoke(_t, {element}, {name!r}, *{arguments_name}))"
        changed = f"_with_item({path_name}, {result_name}[0], {variable})"
        steps = [
            f"({path_name} := {self.tuple_of(path)})",
            f"({arguments_name} := {self.tuple_of(arguments)})",
            f"({result_name} := {call})",
            f"({variable} := {changed})",
            f"{result_name}[1]",
        ]
        return f"({', '.join(steps)})[-1]"

    def _start(self, call: Node) -> str:
        """Return the start of a thread, or a fault if it is invalid."""
        name = str(call.children[0])
        error = self._call_error(call)
        if not error and name not in self._functions:
            error = self._fault(call, f"There is no thread '{name}' in the program to run.")
        if error:
            return f"_fail({error!r}, {first_word(call).line})"
        return f"_t.start({name!r}, {self._arguments(call, f'u_{name}', prefix='v_')})"

    def _arguments(self, call: Node, first: str, prefix: str = "") -> str:
        """Return the arguments of a call.

        Args:
            call: The call.
            first: The argument before those of the script.
            prefix: Prefix of the names of the function's parameters in Python.
        """
        positional, keywords = _arguments_of(call)
        arguments = [first, *map(self.expression, positional)]

        signature = self._signatures[str(call.children[0])]
        named = {
            f"{prefix}{signature.python_name(keyword)}": self.expression(value)
            for keyword, value in keywords
        }
        if any(map(iskeyword, named)):
            # A built-in function's parameter that is a word of Python.
            items = ", ".join(f"{name!r}: {value}" for name, value in named.items())
            arguments.append(f"**{{{items}}}")
        else:
            arguments += [f"{name}={value}" for name, value in named.items()]
        return ", ".join(arguments)

    def _call_error(self, call: Node) -> str:
        """Return why a call is invalid, or "".

        The call of an unknown function is added to `unknown_calls`, another one to `faults`.
        """
        name = str(call.children[0])
        if name not in self._signatures:
            self.unknown_calls.append(call)
            return f"There is no function '{name}'."

        positional, keywords = _arguments_of(call)
        error = self._signatures[name].call_error(
            len(positional), [keyword for keyword, _ in keywords]
        )
        return self._fault(call, f"{name}: {error}.") if error else ""

    def _fault(self, node: Node, reason: str) -> str:
        """Note that a program ends when it reaches this node, and return the reason."""
        word = first_word(node)
        self.faults.append(ScriptFault(word.line, word.column, reason))
        return reason


def _constant(value: int | float | str | bool) -> str:
    """Return a literal in Python."""
    # An integer that exceeds 31 bits: 2147483648, the operand of -2147483648.
    if type(value) is int and value > MAX_INTEGER:
        return repr(float(value))
    return repr(value)


def _arguments_of(call: Node) -> tuple[list[Node], list[tuple[str, Node]]]:
    """Return the arguments of a call or a method without a name, and those with their names."""
    positional: list[Node] = []
    named: list[tuple[str, Node]] = []
    for argument in call.children[-1].children:
        if argument is None:
            continue
        if argument.data == "keyword":
            name, value = argument.children
            named.append((str(name), value))
        else:
            positional.append(argument)
    return positional, named
