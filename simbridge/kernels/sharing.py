"""Functions that several programs contain: compiled once in a process, not once per program.

Solvers of one arm have the linearization and the line search in common, and solvers of different
arms the linear algebra. Numba compiles a function again for each module that contains it; here a
module takes over the compiled functions of earlier ones.
"""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any, TypeAlias

# What a function consists of: by name the text of each function that it uses, itself included, and
# every other value as `repr` writes it.
Definitions: TypeAlias = frozenset[tuple[str, str]]

# The functions that programs of this process have contained, for numba to compile.
_shared: dict[Definitions, Any] = {}


def share_functions(module: ModuleType, text: str) -> None:
    """Replace functions of a module by equal ones of earlier modules, which may be compiled.

    Args:
        module: The module of a program (`load_module`), of which nothing is compiled yet.
        text: Source text of the module.
    """
    trees = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    namespace = vars(module)

    shared = {}
    for name, value in namespace.items():
        if _is_decorated(value):
            definitions: dict[str, str] = {}
            _collect(value.__name__, namespace, trees, definitions)
            shared[name] = _shared.setdefault(frozenset(definitions.items()), value)
    namespace.update(shared)


def _is_decorated(value: Any) -> bool:
    """Return whether a value of a module is a function that numba compiles with its callers."""
    return hasattr(value, "py_func")


def _collect(
    name: str,
    namespace: dict[str, Any],
    trees: dict[str, ast.FunctionDef],
    definitions: dict[str, str],
) -> None:
    """Collect what a name of a module stands for, and all that it uses in turn.

    Args:
        name: The name.
        namespace: The module's names.
        trees: Syntax trees of the module's functions, by name.
        definitions: The result, which is added to: see `Definitions`.
    """
    if name in definitions:
        return
    # Local variables and built-in functions need no definition.
    if name not in namespace:
        return
    value = namespace[name]
    if not _is_decorated(value):
        definitions[name] = repr(value)
        return

    tree = trees[value.__name__]
    definitions[name] = ast.unparse(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            _collect(node.id, namespace, trees, definitions)
