"""`simbridge emulate --check`: whether URScript files compile, and which functions they call that nobody defines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript import syntax
from simbridge.emulator.urscript.compiler import compile_program
from simbridge.emulator.urscript.library import Builtin
from simbridge.emulator.urscript.parser import parse
from simbridge.errors import InputFileError


def check_files(files: tuple[str, ...], known: Mapping[str, Builtin], as_json: bool) -> int:
    """Print what each file's check finds.

    Args:
        files: Their paths.
        known: The controller's functions.
        as_json: Print one JSON object.

    Returns:
        The exit status: 1 if a file does not compile, or calls a function that neither it nor the controller has.

    Raises:
        InputFileError: A file cannot be read.
    """
    found = {file: check_source(_read(file), known) for file in files}
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        for file, result in found.items():
            print("\n".join(_lines(file, result)))
    return int(any(result["error"] or result["unknown"] for result in found.values()))


def check_source(source: str, known: Mapping[str, Builtin]) -> dict[str, Any]:
    """Whether a script compiles: {"compiles", "error": None or {"line", "column", "message"}, "unknown": names,
    "calls": {name: {"line", "column"}}}, the last with the first call of each unknown function.

    Args:
        source: The script.
        known: The controller's functions.
    """
    try:
        program = parse(source)
        compile_program(program, known)
    except ScriptSyntaxError as error:
        place = {"line": error.line, "column": error.column, "message": error.reason}
        return {"compiles": False, "error": place, "unknown": [], "calls": {}}
    own = {node.name for node in _nodes(program) if isinstance(node, syntax.Definition)}
    calls: dict[str, dict[str, int]] = {}
    for node in _nodes(program):
        if isinstance(node, syntax.Call) and node.name not in own and node.name not in known:
            calls.setdefault(node.name, {"line": node.line, "column": node.column})
    return {"compiles": True, "error": None, "unknown": sorted(calls), "calls": calls}


def _nodes(node: syntax.Node) -> Iterator[syntax.Node]:
    """All nodes below one, those in definitions too."""
    waiting = [node]
    while waiting:
        for found in syntax.walk(*waiting.pop().children()):
            yield found
            if isinstance(found, syntax.Definition):
                waiting.append(found)


def _lines(file: str, result: dict[str, Any]) -> Iterator[str]:
    error = result["error"]
    if error:
        yield f"{file}:{error['line']}:{error['column']}: {error['message']}"
    for name, place in result["calls"].items():
        yield f"{file}:{place['line']}:{place['column']}: there is no function '{name}'"
    if not error and not result["unknown"]:
        yield f"{file}: compiles"


def _read(file: str) -> str:
    try:
        return Path(file).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputFileError(file, f"it cannot be read: {error.strerror}") from None
