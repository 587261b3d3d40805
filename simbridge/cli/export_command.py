"""The command `simbridge export`: a run in a format for other tools."""

from __future__ import annotations

import json
from pathlib import Path

from simbridge.errors import UnknownName
from simbridge.evaluation.evaluation import Evaluation
from simbridge.recording.export import EXPORTERS


def export(run: str, *, to: str, as_json: bool) -> int:
    """Write a run in a format for other tools, and print the paths of the files.

    Returns:
        The exit status, 0.

    Raises:
        UnknownName: There is no such format.
        NotARun, LogReadError: The run cannot be read.
    """
    if to not in EXPORTERS:
        raise UnknownName("format", to, EXPORTERS)

    evaluation = Evaluation.read(Path(run))
    files = EXPORTERS[to](evaluation.directory.path, evaluation.samples)

    paths = [str(path) for path in files]
    print(json.dumps({"written": paths}, indent=2) if as_json else "\n".join(paths))
    return 0
