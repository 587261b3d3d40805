"""Analyses a program for the compiler: the scope of its names, and which of its functions may block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from simbridge.emulator.urscript import syntax
from simbridge.emulator.urscript.library import CALL_COST, Builtin
from simbridge.emulator.urscript.members import LIST_CHANGES

NodeT = TypeVar("NodeT", bound=syntax.Node)

# A function that calls nothing that blocks, and costs no more than this, is compiled to a plain Python function.
PLAIN_COST = 200
PLAIN_HEIGHT = 50


@dataclass
class Function:
    """A function of the program.

    Attributes:
        definition: As written; the main program has one too.
        local_names: Its parameters and local variables.
        assigned_globals: Globals that it assigns.
        may_block: Whether it is compiled to a generator.
        counted: Whether its calls count towards the depth of recursion.
        cost: Upper bound of the statements and calls of one call, if it does not block.
        height: Depth of the calls below it, if it does not block.
        callees: Names of the program's functions that it calls.
    """

    definition: syntax.Definition
    local_names: set[str] = field(default_factory=set)
    assigned_globals: set[str] = field(default_factory=set)
    may_block: bool = True
    counted: bool = True
    cost: int = 0
    height: int = 0
    callees: set[str] = field(default_factory=set)

    def nodes(self, kind: type[NodeT]) -> list[NodeT]:
        """The nodes of this kind in its parameters and body, without those of the definitions in it."""
        return [node for node in self._below if isinstance(node, kind)]

    @cached_property
    def _below(self) -> list[syntax.Node]:
        return list(syntax.walk(*self.definition.parameters, *self.definition.body))

    @property
    def calls(self) -> list[str]:
        """The names that it calls, once for each call."""
        return [call.name for call in self.nodes(syntax.Call)]


@dataclass
class Analysis:
    """The result of the analysis.

    Attributes:
        main: The main program: the statements outside of definitions if there are any, else the last definition;
            nothing if that has parameters.
        functions: Every definition by name, including nested ones; of several with the same name, the last.
        global_names: Variables that all functions share: those declared `global` anywhere, and those that the main
            program assigns without declaring them `local`.
    """

    main: Function
    functions: dict[str, Function]
    global_names: set[str]


def analyse(program: syntax.Program, builtins: Mapping[str, Builtin]) -> Analysis:
    """Analyse a program.

    Args:
        program: A script's syntax tree.
        builtins: The built-in functions.
    """
    definitions = _all_definitions(program)
    statements = tuple(statement for statement in program.body if not isinstance(statement, syntax.Definition))
    top = [statement for statement in program.body if isinstance(statement, syntax.Definition)]
    functions = {definition.name: Function(definition) for definition in definitions}
    # A last function that needs arguments is not a program: the file is a library, which does nothing by itself.
    if statements or not top or top[-1].parameters:
        main = Function(syntax.Definition(1, 1, "def", "", (), statements), counted=False)
    else:
        last = functions[top[-1].name]
        main = last if last.definition is top[-1] else Function(top[-1])
    all_functions = [main, *(function for function in functions.values() if function is not main)]
    global_names = _global_names(main, all_functions)
    for function in all_functions:
        _find_names(function, global_names)
        function.callees = functions.keys() & function.calls
        function.cost = block_cost(function.definition.body, functions, builtins)
    started = {start.call.name for function in all_functions for start in function.nodes(syntax.Start)}
    _find_blocking(functions, started | {main.definition.name}, builtins)
    return Analysis(main, functions, global_names)


def _all_definitions(program: syntax.Program) -> list[syntax.Definition]:
    found: list[syntax.Definition] = []
    waiting: list[syntax.Node] = [program]
    while waiting:
        inside = [node for node in syntax.walk(*waiting.pop().children()) if isinstance(node, syntax.Definition)]
        found += inside
        waiting += inside
    return found


def _global_names(main: Function, all_functions: list[Function]) -> set[str]:
    names = {a.name for function in all_functions for a in function.nodes(syntax.Assignment) if a.scope == "global"}
    local = {a.name for a in main.nodes(syntax.Assignment) if a.scope == "local"}
    local |= {parameter.name for parameter in main.definition.parameters}
    return names | {a.name for a in main.nodes(syntax.Assignment)} - local


def _find_names(function: Function, global_names: set[str]) -> None:
    assignments = function.nodes(syntax.Assignment)
    own = {parameter.name for parameter in function.definition.parameters}
    own |= {a.name for a in assignments if a.scope == "local"}
    own |= {a.name for a in assignments if a.name not in global_names}
    function.local_names = own
    changed = {syntax.place_of(m.value)[0] for m in function.nodes(syntax.Method) if m.name in LIST_CHANGES} - {""}
    function.assigned_globals = ({a.name for a in assignments} | changed) - own


def _blocks_itself(function: Function, builtins: Mapping[str, Builtin], own: Mapping[str, Function]) -> bool:
    """Whether a thread may have to wait in this function itself, not in the functions that it calls."""
    if function.definition.kind == "thread" or function.nodes(syntax.While):
        return True
    if function.nodes(syntax.Method):
        return True
    if any(node.word in ("join", "enter_critical") for node in function.nodes(syntax.Keyed)):
        return True
    return any(builtins[name].blocks for name in function.calls if name in builtins and name not in own)


def _find_blocking(functions: dict[str, Function], started: set[str], builtins: Mapping[str, Builtin]) -> None:
    """Go upwards from functions that call nothing. Those never reached are recursive, or call recursive ones."""
    callers: dict[str, list[str]] = {name: [] for name in functions}
    waiting_for = {name: len(function.callees) for name, function in functions.items()}
    for name, function in functions.items():
        for callee in function.callees:
            callers[callee].append(name)
    ready = [name for name, count in waiting_for.items() if count == 0]
    while ready:
        name = ready.pop()
        function = functions[name]
        below = [functions[callee] for callee in function.callees]
        function.cost += sum(
            callee.cost * function.calls.count(callee.definition.name) for callee in below if not callee.may_block
        )
        function.height = 1 + max((callee.height for callee in below), default=0)
        function.counted = function.height > PLAIN_HEIGHT
        if function.counted:
            function.height = 0
        blocks = name in started or any(callee.may_block for callee in below) or function.cost > PLAIN_COST
        function.may_block = blocks or function.counted or _blocks_itself(function, builtins, functions)
        for caller in callers[name]:
            waiting_for[caller] -= 1
            if waiting_for[caller] == 0:
                ready.append(caller)


def block_cost(
    body: tuple[syntax.Node, ...], functions: Mapping[str, Function], builtins: Mapping[str, Builtin]
) -> int:
    """Upper bound of the cost of statements, without loops: one for each operation, more for calls.

    Args:
        body: Statements or expressions.
        functions: Calls of those that are known not to block are counted with their full cost.
        builtins: The built-in functions.
    """
    cost = 0
    for node in syntax.walk(*body):
        if isinstance(node, syntax.Call):
            callee = functions.get(node.name)
            if callee is None and node.name in builtins:
                cost += builtins[node.name].cost
            else:
                cost += CALL_COST + (callee.cost if callee and not callee.may_block else 0)
        elif not isinstance(node, syntax.Literal | syntax.Name | syntax.Definition):
            cost += 1
    return cost
