"""Checks scripts without running them: `simbridge emulate --check`.

A script that cannot be compiled is not started by a controller, nor is one that calls a function
that nobody defines. Everything else that is found would end the program when it is reached: calls
that do not fit their function, and variables that nothing sets, also in branches that never run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simbridge.emulator.errors import ScriptSyntaxError
from simbridge.emulator.urscript.compiler import compile_script
from simbridge.emulator.urscript.functions import Builtin
from simbridge.errors import InputFileError
from simbridge.json_output import print_json


def check_files(files: tuple[str, ...], known: Mapping[str, Builtin], as_json: bool) -> int:
    """Print what is wrong with scripts.

    Args:
        files: Scripts.
        known: The built-in functions.
        as_json: Whether one JSON object is printed, instead of lines.

    Returns:
        The exit status: 1 if there is anything wrong with a file.

    Raises:
        InputFileError: A file cannot be read.
    """
    results = {file: check_source(_read(file), known) for file in files}
    if as_json:
        print_json({"files": results})
    else:
        for file, result in results.items():
            print("\n".join(_lines(file, result)))
    return int(any(_is_faulty(result) for result in results.values()))


def check_source(source: str, known: Mapping[str, Builtin]) -> dict[str, Any]:
    """Compile a script, and return what is wrong with it.

    Args:
        source: URScript.
        known: The built-in functions.

    Returns:
        {"compiles": whether it does, "error": None or {"line", "column", "message"}, "unknown":
        names of functions, "calls": {name: {"line", "column"}}, "faults": [{"line", "column",
        "message"}]}, where "calls" has the first call of each unknown function.
    """
    try:
        code = compile_script(source, known)
    except ScriptSyntaxError as error:
        fault = {"line": error.line, "column": error.column, "message": error.reason}
        return {"compiles": False, "error": fault, "unknown": [], "calls": {}, "faults": []}

    calls = {
        name: {"line": line, "column": column} for name, (line, column) in code.unknown.items()
    }
    faults = [
        {"line": fault.line, "column": fault.column, "message": fault.reason}
        for fault in code.faults
    ]
    return {
        "compiles": True,
        "error": None,
        "unknown": sorted(calls),
        "calls": calls,
        "faults": faults,
    }


def _is_faulty(result: dict[str, Any]) -> bool:
    """Return whether there is anything wrong with a script."""
    return bool(result["error"] or result["unknown"] or result["faults"])


def _lines(file: str, result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about a file, in the order of the script."""
    problems = [
        *([result["error"]] if result["error"] else []),
        *result["faults"],
        *(
            {**call, "message": f"there is no function '{name}'"}
            for name, call in result["calls"].items()
        ),
    ]
    for problem in sorted(problems, key=lambda problem: (problem["line"], problem["column"])):
        yield f"{file}:{problem['line']}:{problem['column']}: {problem['message']}"
    if not problems:
        yield f"{file}: compiles"


def _read(file: str) -> str:
    """Return the text of a file, without a byte order mark."""
    try:
        return Path(file).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise InputFileError(file, f"it cannot be read: {error.strerror}") from None
