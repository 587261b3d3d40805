"""Checks scripts without running them: `simbridge emulate --check`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.functions import Builtin
from simbridge.errors import InputFileError


def check_files(files: tuple[str, ...], known: Mapping[str, Builtin], as_json: bool) -> int:
    """Print whether files compile, and which functions they call that nobody defines.

    Args:
        files: Scripts.
        known: The built-in functions.
        as_json: Whether one JSON object is printed, instead of lines.

    Returns:
        The exit status: 1 if a file does not compile, or calls a function that neither it nor the
        controller has.

    Raises:
        InputFileError: A file cannot be read.
    """
    results = {file: check_source(_read(file), known) for file in files}
    if as_json:
        print(json.dumps(results, indent=2))
    else:
        for file, result in results.items():
            print("\n".join(_lines(file, result)))
    return int(any(result["error"] or result["unknown"] for result in results.values()))


def check_source(source: str, known: Mapping[str, Builtin]) -> dict[str, Any]:
    """Compile a script, and return what is wrong with it.

    Args:
        source: URScript.
        known: The built-in functions.

    Returns:
        {"compiles": whether it does, "error": None or {"line", "column", "message"}, "unknown":
        names of functions, "calls": {name: {"line", "column"}}}, the last with the first call of
        each unknown function.
    """
    try:
        unknown = compile_script(source, known).unknown
    except ScriptSyntaxError as error:
        fault = {"line": error.line, "column": error.column, "message": error.reason}
        return {"compiles": False, "error": fault, "unknown": [], "calls": {}}
    calls = {name: {"line": line, "column": column} for name, (line, column) in unknown.items()}
    return {"compiles": True, "error": None, "unknown": sorted(calls), "calls": calls}


def _lines(file: str, result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about a file."""
    error = result["error"]
    if error:
        yield f"{file}:{error['line']}:{error['column']}: {error['message']}"
    for name, call in result["calls"].items():
        yield f"{file}:{call['line']}:{call['column']}: there is no function '{name}'"
    if not error and not result["unknown"]:
        yield f"{file}: compiles"


def _read(file: str) -> str:
    """Return the text of a file, without a byte order mark."""
    try:
        return Path(file).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputFileError(file, f"it cannot be read: {error.strerror}") from None
