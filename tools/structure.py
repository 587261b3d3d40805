"""Measure the structure of the package: files, lines, imports. `--check` holds it to the project's bounds.

    python tools/structure.py                   print the figures
    python tools/structure.py --check           exit with 1 where a bound is exceeded (part of `make lint`)
    python tools/structure.py --package DIR     measure another checkout's package

Only text is read; nothing of the package is imported.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PRIVATE_LIBRARIES = ("numba.core", "numba.np", "numba.cpython", "numba.typed", "numba.extending", "llvmlite")

# The bounds that `--check` holds; docs/architecture.md names them.
BOUNDS = {
    "top-level modules": 5,
    "import circles": 0,
    "function-level imports without a reason": 0,
    "private imports": 0,
}


@dataclass(frozen=True)
class Import:
    """One import of a module, with its place.

    Attributes:
        kind: "module", "function" or "type" (under TYPE_CHECKING).
        reason: The comment on its line or right above it, empty where there is none.
    """

    path: Path
    line: int
    module: str
    kind: str
    reason: str


@dataclass(frozen=True)
class Structure:
    """The package as it stands: line counts by file, imports, and who imports whom."""

    lines: dict[Path, int]
    modules: dict[str, Path]
    imports: list[Import]

    @property
    def top_level(self) -> list[str]:
        """Loose modules of the package, `__init__` and `__main__` not counted."""
        return sorted(
            name
            for name in self.modules
            if name.count(".") == 1 and self.modules[name].name != "__init__.py" and not name.endswith("__main__")
        )

    @property
    def function_level(self) -> list[tuple[Path, int]]:
        """Places of the import statements inside functions."""
        return sorted({(i.path, i.line) for i in self.imports if i.kind == "function"})

    def graph(self, *kinds: str) -> dict[str, set[str]]:
        """First-party imports of the given kinds, by module."""
        edges: dict[str, set[str]] = {name: set() for name in self.modules}
        name_of = {path: name for name, path in self.modules.items()}
        for found in self.imports:
            if found.kind in kinds and found.module in self.modules and name_of[found.path] != found.module:
                edges[name_of[found.path]].add(found.module)
        return edges

    def depth(self) -> list[str]:
        """The longest chain of module-level imports, from its top; circles are cut where they close."""
        graph, longest = self.graph("module"), dict[str, list[str]]()

        def chain(name: str, above: tuple[str, ...]) -> list[str]:
            if name not in longest:
                below = [chain(other, (*above, name)) for other in sorted(graph[name]) if other not in (*above, name)]
                longest[name] = [name, *max(below, key=len, default=[])]
            return longest[name]

        return max((chain(name, ()) for name in sorted(graph)), key=len)

    def circles(self) -> list[list[str]]:
        """Modules that import each other, function-level imports counted, by Tarjan's algorithm."""
        graph = self.graph("module", "function")
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        found: list[list[str]] = []

        def visit(name: str) -> None:
            index[name] = low[name] = len(index)
            stack.append(name)
            for other in sorted(graph[name]):
                if other not in index:
                    visit(other)
                    low[name] = min(low[name], low[other])
                elif other in stack:
                    low[name] = min(low[name], index[other])
            if low[name] == index[name]:
                at = stack.index(name)
                if len(stack) - at > 1:
                    found.append(sorted(stack[at:]))
                del stack[at:]

        for name in sorted(graph):
            if name not in index:
                visit(name)
        return found

    def naming(self, name: str) -> list[Path]:
        """Files whose code uses a name: a variable, parameter, attribute or keyword argument."""
        return [path for path in self.lines if name in _names(path)]

    def taking(self, *parameters: str) -> list[Path]:
        """Files in which a function takes one of the parameters."""
        return [path for path in self.lines if not _parameters(path).isdisjoint(parameters)]


def measure(package: Path) -> Structure:
    """Read the package's source.

    Args:
        package: The folder of the package, such as `simbridge`.
    """
    paths = sorted(package.rglob("*.py"))
    modules = {}
    for path in paths:
        parts = path.relative_to(package.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    imports = [found for path in paths for found in _imports(path, modules)]
    return Structure({path: len(path.read_text().splitlines()) for path in paths}, modules, imports)


def _imports(path: Path, modules: dict[str, Path]) -> Iterator[Import]:
    lines = path.read_text().splitlines()

    def visit(node: ast.AST, kind: str) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inner = kind
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                inner = "function"
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                inner = "type"
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield from place(child, alias.name, kind)
            elif isinstance(child, ast.ImportFrom) and child.module and not child.level:
                # `from package import module` imports the module; any other name is the package's own.
                named = [f"{child.module}.{alias.name}" for alias in child.names]
                inside = [name for name in named if name in modules]
                for module in [*inside, *([child.module] if len(inside) < len(named) else [])]:
                    yield from place(child, module, kind)
            else:
                yield from visit(child, inner)

    def place(node: ast.stmt, module: str, kind: str) -> Iterator[Import]:
        yield Import(
            path, node.lineno, module, kind, _comment_at(lines, node.lineno - 1, node.end_lineno or node.lineno)
        )

    return visit(ast.parse(path.read_text()), "module")


def _comment_at(lines: list[str], first: int, end: int) -> str:
    """The comment on a statement's lines, else the one right above the block of imports that it stands in."""
    for line in lines[first:end]:
        if "#" in line:
            return line.partition("#")[2].strip()
    above = first - 1
    while above >= 0 and lines[above].lstrip().startswith(("import ", "from ")):
        above -= 1
    text = lines[above].strip() if above >= 0 else ""
    return text.lstrip("# ") if text.startswith("#") else ""


def _names(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            names.add(node.arg)
    return names


def _parameters(path: Path) -> set[str]:
    return {node.arg for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.arg)}


def figures(structure: Structure) -> dict[str, int | float]:
    """The figures of the table in docs/architecture.md, by name."""
    counts = list(structure.lines.values())
    without_reason = {(i.path, i.line) for i in structure.imports if i.kind == "function" and not i.reason}
    return {
        "files": len(counts),
        "lines": sum(counts),
        "median lines of a file": statistics.median(counts),
        "longest file": max(counts),
        "top-level modules": len(structure.top_level),
        "import depth": len(structure.depth()),
        "import circles": len(structure.circles()),
        "function-level imports": len(structure.function_level),
        "function-level imports without a reason": len(without_reason),
        "private imports": sum(i.module.startswith(PRIVATE_LIBRARIES) for i in structure.imports),
        "files that take a target pose": len(structure.taking("target", "targets")),
        "files that use kp": len(structure.naming("kp")),
    }


def main() -> int:
    """Print the figures; with `--check`, end with 1 where a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=Path, default=Path(__file__).parents[1] / "simbridge")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is exceeded")
    parser.add_argument("--verbose", action="store_true", help="name the files behind the figures")
    arguments = parser.parse_args()
    structure = measure(arguments.package)
    found = figures(structure)
    for name, value in found.items():
        bound = f"  (at most {BOUNDS[name]:,})" if name in BOUNDS else ""
        print(f"{name:42}{value:>10,}{bound}")
    if arguments.verbose:
        print("\nlongest chain:", *structure.depth(), sep="\n  ")
        for circle in structure.circles():
            print("circle:", *circle, sep="\n  ")
        for path, line in structure.function_level:
            print(f"function-level: {path}:{line}")
    exceeded = [name for name, bound in BOUNDS.items() if found[name] > bound]
    if arguments.check and exceeded:
        print("Past its bound: " + ", ".join(exceeded), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
