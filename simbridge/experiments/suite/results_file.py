"""Writes results.json of the suite after every motion, and reads it to go on or to compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from simbridge.errors import InputFileError
from simbridge.experiments.suite.results import SuiteResults
from simbridge.files.reading import MIB, read_bytes
from simbridge.files.writing import write_file
from simbridge.json_output import SCHEMA_VERSION, versioned

# Name of the file in the directory of results.
RESULTS = "results.json"
# Largest size of a results.json that is read, bytes.
MAX_BYTES = 256 * MIB


def as_json(results: SuiteResults) -> dict[str, Any]:
    """Return results as plain data for JSON; null stands for a number that is not finite."""
    content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(results, enc_hook=_as_plain))
    return versioned(content)


def _as_plain(value: object) -> object:
    """Return a setting of a custom solver as plain data for JSON."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value)


def write_results(directory: Path, results: SuiteResults) -> None:
    """Write results.json into a directory.

    Raises:
        OutputError: It cannot be written.
    """
    text = json.dumps(as_json(results)) + "\n"
    write_file(directory / RESULTS, text.encode(), follow_links=False)


def read_results(path: Path) -> SuiteResults:
    """Read a results.json of the suite.

    Raises:
        InputFileError: The file cannot be read, or is not a results.json of the suite.
    """
    content = read_bytes(path, MAX_BYTES)
    advice = "give the results.json of a `simbridge experiment solvers`"
    try:
        version = msgspec.json.decode(content, type=_Version).schema_version
        if version != SCHEMA_VERSION:
            reason = f"its schema_version is {version}; this simbridge reads {SCHEMA_VERSION}"
            raise InputFileError(path, reason)
        return msgspec.json.decode(content, type=SuiteResults)
    except msgspec.DecodeError as error:
        raise InputFileError(
            path, f"it holds no results of the suite ({error}); {advice}"
        ) from None


class _Version(msgspec.Struct):
    """The version of the schema of a file; all other content is ignored."""

    schema_version: int


def is_same_work(first: SuiteResults, second: SuiteResults) -> bool:
    """Return whether two results are of the same arm, solvers, settings and versions.

    The rows of one can then be added to those of the other.
    """
    return _describe_work(first) == _describe_work(second)


def _describe_work(results: SuiteResults) -> dict[str, Any]:
    """Return everything in results that says what was to be done, without what was found."""
    content = as_json(results)
    for name in ("motion_results", "pose_results", "complete", "notes"):
        del content[name]
    return content
