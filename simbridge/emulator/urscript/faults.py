"""Faults that are found in a program without running it: what would end it at run time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from simbridge.emulator.urscript.syntax_tree import (
    Node,
    definition_of,
    element_path,
    first_word,
    walk,
)
from simbridge.emulator.urscript.variables import variables_of


class ScriptFault(NamedTuple):
    """Something that ends a program as soon as the program reaches it.

    Attributes:
        line: Line of the script, from 1.
        column: Column of the script, from 1.
        reason: A sentence.
    """

    line: int
    column: int
    reason: str


def find_unset_variables(
    functions: Mapping[str, Node], main: Node, *, is_library: bool
) -> list[ScriptFault]:
    """Return the variables that are read where nothing can have given them a value.

    A variable counts as set if any way through the program to this place may set it; so a program
    that runs has no such fault, whatever its branches and threads do.

    Args:
        functions: The definitions of the program, by name; the main program may be among them.
        main: The definition that is run.
        is_library: Whether the file runs nothing by itself: the file that uses it may set global
            variables, so only local ones are checked.
    """
    called = [node for node in functions.values() if node is not main]
    main_variables = variables_of(definition_of(main))
    main_globals = main_variables.assigned - main_variables.local

    # Global variables, as the compiler has them; and those that functions and threads set.
    global_names = main_globals | main_variables.shared
    for node in called:
        global_names |= variables_of(definition_of(node)).shared
    set_by_functions: set[str] = set()
    for node in called:
        assigned = variables_of(definition_of(node)).assigned
        set_by_functions |= assigned - _local_names(node, global_names)

    # A function may run after the main program has set its variables; the main program itself
    # begins without them.
    faults: list[ScriptFault] = []
    for node in [*called, main]:
        set_before = set_by_functions if node is main else set_by_functions | main_globals
        local_names = _local_names(node, global_names)
        check = _VariableCheck(local_names if is_library else None)
        check.run(node, set_before - local_names)
        faults += check.faults
    return faults


def _local_names(node: Node, global_names: set[str]) -> set[str]:
    """Return the local variables of a function, as the compiler has them."""
    variables = variables_of(definition_of(node))
    return variables.local | (variables.assigned - global_names)


class _VariableCheck:
    """Follows one function through its statements, with the variables that may be set.

    Args:
        checked: The variables that are checked; None checks all.

    Attributes:
        faults: The reads of variables that cannot be set.
    """

    def __init__(self, checked: set[str] | None) -> None:
        self.faults: list[ScriptFault] = []
        self._checked = checked

    def run(self, node: Node, set_before: set[str]) -> None:
        """Check a definition.

        Args:
            node: The definition.
            set_before: Variables that may be set when it is called, parameters left out.
        """
        definition = definition_of(node)
        known = set(set_before)
        for parameter in definition.parameters:
            name, default = parameter.children
            if default is not None:
                self._read([default], known)
            known.add(str(name))
        self._follow(definition.body, known)

    def _follow(self, statements: Iterable[Node], known: set[str]) -> set[str]:
        """Check the statements of a block; return the variables that may be set after it."""
        for statement in statements:
            match statement.data, statement.children:
                case "definition", _:
                    continue
                case "assignment", [_, target, value]:
                    known = self._assign(target, value, known)
                case "if_statement", [_, *branches, otherwise]:
                    known = self._branch(branches, otherwise, known)
                case "while_loop", [_, condition, body]:
                    # An earlier round may have set whatever the body sets.
                    known = known | _assigned_in(body)
                    self._read([condition], known)
                    self._follow(body.children, known)
                case _:
                    self._read([statement], known)
        return known

    def _assign(self, target: Node, value: Node, known: set[str]) -> set[str]:
        """Check an assignment; return the variables that may be set after it."""
        self._read([value], known)
        name, path = element_path(target)
        # An element or a member is assigned in a list or a struct that exists.
        self._read([target] if path else [], known)
        return known | {name}

    def _branch(self, branches: list[Node], otherwise: Node | None, known: set[str]) -> set[str]:
        """Check an `if`; return the variables that may be set after it.

        Args:
            branches: A condition and a block for each `if` and `elif`, one after the other.
            otherwise: The block of `else`.
            known: Variables that may be set before it.
        """
        after = set(known)
        for condition, body in zip(branches[::2], branches[1::2], strict=True):
            self._read([condition], known)
            after |= self._follow(body.children, known)
        if otherwise is not None:
            after |= self._follow(otherwise.children, known)
        return after

    def _read(self, nodes: Iterable[Node], known: set[str]) -> None:
        """Note the variables in expressions that cannot be set; each is noted once."""
        for node in walk(*nodes):
            if node.data != "name":
                continue
            name = str(node.children[0])
            is_checked = self._checked is None or name in self._checked
            if name in known or not is_checked or name == "p":
                continue
            word = first_word(node)
            reason = f"The variable '{name}' has no value."
            self.faults.append(ScriptFault(word.line, word.column, reason))
            known.add(name)


def _assigned_in(block: Node) -> set[str]:
    """Return the variables that the statements of a block assign."""
    targets = [node.children[1] for node in walk(block) if node.data == "assignment"]
    return {element_path(target)[0] for target in targets}
