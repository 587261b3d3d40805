"""The variables of a function: which it assigns, and which of them are its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from simbridge.emulator.urscript.syntax_tree import Definition, element_path, walk

# The methods of a list after which its variable has another value.
LIST_CHANGES = ("append", "clear", "extend", "insert", "pop", "remove")


@dataclass
class Variables:
    """The variables that a function names outside of expressions.

    Attributes:
        local: Parameters of the function, and the variables that it declares `local`.
        shared: Variables that it declares `global`.
        assigned: All variables that it assigns, these included.
        changed: Variables that hold lists which it changes by methods.
    """

    local: set[str]
    shared: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)


def variables_of(definition: Definition) -> Variables:
    """Return the variables that a function assigns or changes."""
    parameters = {str(parameter.children[0]) for parameter in definition.parameters}
    variables = Variables(parameters)

    for node in walk(*definition.parameters, *definition.body):
        match node.data, node.children:
            case "assignment", [scope, target, _]:
                variable, _ = element_path(target)
                variables.assigned.add(variable)
                if scope == "local":
                    variables.local.add(variable)
                elif scope == "global":
                    variables.shared.add(variable)

            case "method", [value, name, _] if name in LIST_CHANGES:
                variable, _ = element_path(value)
                if variable:
                    variables.changed.add(variable)
    return variables
