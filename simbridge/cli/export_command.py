"""The command `simbridge export`: a run in a format for other tools."""

from __future__ import annotations

from pathlib import Path

from simbridge.cli.flags import ExportFlags
from simbridge.errors import UnknownName
from simbridge.evaluation.evaluation import Evaluation
from simbridge.json_output import print_json
from simbridge.recording.export import EXPORTERS


def export(flags: ExportFlags) -> int:
    """Write a run in a format for other tools, and print the paths of the files.

    Returns:
        The exit status, 0.

    Raises:
        UnknownName: There is no such format.
        NotARun, LogReadError: The run cannot be read.
    """
    if flags.to not in EXPORTERS:
        raise UnknownName("format", flags.to, EXPORTERS)

    evaluation = Evaluation.read(Path(flags.run))
    files = EXPORTERS[flags.to](evaluation.directory.path, evaluation.samples)

    paths = [str(path) for path in files]
    if flags.as_json:
        print_json({"written": paths})
    else:
        print("\n".join(paths))
    return 0
