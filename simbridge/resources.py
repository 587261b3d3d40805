"""The robot files and the scenario scripts: in the checkout, else inside the installed package.

A wheel has `robots/` and `scenarios/` in `simbridge/_data/`. A checkout, and an editable install of
one, has them next to the package and nothing is copied, so that a file added there is found at
once.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

AnyPath: TypeAlias = str | os.PathLike[str]

_PACKAGE = Path(__file__).resolve().parent
# Only a checkout has the project file; in site-packages another distribution may own a folder
# "robots".
_IS_CHECKOUT = (_PACKAGE.parent / "pyproject.toml").is_file()
_DATA = _PACKAGE.parent if _IS_CHECKOUT else _PACKAGE / "_data"
ROBOTS = _DATA / "robots"
"""The directory of the robot files, one TOML for each arm."""
SCENARIOS = _DATA / "scenarios"
"""The directory of the scenario scripts, one Python file for each scenario."""


def robot_files() -> dict[str, Path]:
    """Return the robot files by robot name, sorted by name; read at every call.

    `robots/ur10.toml` is "ur10".
    """
    return {path.stem: path for path in sorted(ROBOTS.glob("*.toml"))}


def scenario_files() -> dict[str, Path]:
    """Return the scenario scripts by scenario name, sorted by name.

    Scripts whose names start with an underscore are left out.
    """
    scripts = sorted(SCENARIOS.glob("*.py"))
    return {path.stem: path for path in scripts if not path.name.startswith("_")}


class _ScriptLoader(SourceFileLoader):
    """Loads a user's script as it is now, and writes nothing next to it.

    Python's stored bytecode counts as fresh when a script is changed within a second to one of the
    same length.
    """

    def path_stats(self, path: str) -> Any:
        raise OSError(f"no stored bytecode of {path} is used")


def load_script(path: AnyPath, name: str) -> ModuleType:
    """Run a user's script as a module.

    As with `python script.py`, it can import the modules in its directory. It stays in
    `sys.modules`: dataclasses look it up there.

    Args:
        path: The script.
        name: Name of the module.

    Returns:
        The module.

    Raises:
        FileNotFoundError: With the path as it was given, if there is no such script.
    """
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))

    loader = _ScriptLoader(name, os.path.abspath(path))
    spec = importlib.util.spec_from_file_location(name, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with importing_from(os.path.dirname(os.path.abspath(path))):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def importing_from(folder: str) -> Iterator[None]:
    """Look for modules in a directory first; the empty path is the working directory."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def scenario_description(path: Path) -> str:
    """Return the first line of a scenario script's docstring, read without running it."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]
