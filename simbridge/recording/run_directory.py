"""The directory of one run.

It holds settings.toml, plan.npz, meshes.npz, log.mcap, summary.json and report.html.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_type_hints

import msgspec
import numpy as np
import tomli_w
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic

from simbridge.errors import InputFileError, NotARun, OutputError, SimbridgeError
from simbridge.files.decompression import expansion
from simbridge.files.reading import MIB, open_file, read_bytes, read_text
from simbridge.files.toml_file import decode_toml
from simbridge.files.writing import clear_name, replacing, write_file, writing
from simbridge.json_output import versioned
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_record import Record
from simbridge.recording.samples import LogColumns
from simbridge.recording.settings_file import as_tables, read_record
from simbridge.robot.arm_drawing import ArmDrawing

T = TypeVar("T")

# The largest summary.json and evaluation.json that are read.
MAX_JSON_BYTES = 64 * MIB

# The readers of the header of an array in an npz file, by the version of its format.
ARRAY_HEADERS = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}


class RunDirectory:
    """The directory of one run and the files in it.

    A method that reads a file raises NotARun where it is missing or broken, and one that writes a
    file raises OutputError.
    A run may come from anywhere: a link that has the name of a file is replaced when that file is
    written, and never followed.

    Args:
        path: The directory, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings_file = path / "settings.toml"
        self.plan_file = path / "plan.npz"
        self.meshes_file = path / "meshes.npz"
        self.log_file = path / "log.mcap"
        self.summary_file = path / "summary.json"
        self.evaluation_file = path / "evaluation.json"
        self.replay_file = path / "replay.html"
        self.report_file = path / "report.html"

    @staticmethod
    def create(out: str | Path | None, name: str, *, parents: bool = True) -> RunDirectory:
        """Make a new directory.

        Args:
            out: The directory's path; None for one under runs/ that is named after the time and the
                scenario.
            name: The scenario's name.
            parents: Whether the directories above it are made, too.

        Raises:
            OutputError: It exists already, or cannot be made.
        """
        stem = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{name}"
        path = Path("runs", stem) if out is None else Path(out)
        number = 1
        while True:
            # Do not ask whether the directory exists: another run may make it in between. Making it
            # fails if it exists.
            with writing(path, "; choose another with --out"):
                try:
                    path.mkdir(parents=parents)
                    return RunDirectory(path)
                except FileExistsError:
                    if out is not None:
                        raise

            # Another run that began in the same second has this name: try the next one.
            number += 1
            path = path.with_name(f"{stem}_{number}")

    @contextlib.contextmanager
    def needed(self) -> Iterator[None]:
        """Turn an error of reading or writing into an OutputError if the directory is gone.

        It encloses all that is done after a run.
        """
        try:
            yield
        except SimbridgeError:
            if self.path.is_dir():
                raise
            raise OutputError(self.path, "it was deleted or moved during the run") from None

    @staticmethod
    def open(path: str | Path) -> RunDirectory:
        """Return an existing run.

        Raises:
            NotARun: There is no such directory, or it has no settings.toml.
        """
        directory = RunDirectory(Path(path))
        if not directory.path.is_dir():
            raise NotARun(path, "", "directory not found")

        if is_of_repeats(directory.path):
            first = repeats_in(directory.path)[0].path
            reason = f"it is a directory of repeats; name one of its runs, such as {first}"
            raise NotARun(path, "settings.toml", reason)
        if not directory.settings_file.is_file():
            if (directory.path / "sweep.toml").is_file():
                reason = f"it is a sweep; name one of its runs, in {directory.path / 'runs'}"
                raise NotARun(path, "settings.toml", reason)
            raise NotARun(path, "settings.toml")
        return directory

    def write_settings(self, record: Record) -> None:
        """Write settings.toml: all that evaluating, showing and repeating the run needs."""
        content = tomli_w.dumps(as_tables(record)).encode()
        write_file(self.settings_file, content, follow_links=False)

    def settings(self) -> Record:
        """Read settings.toml: the record of a run, or of a live session."""
        return self._read_settings(read_record)

    def settings_tables(self) -> dict[str, Any]:
        """Read settings.toml as it is, for lists that show all of it.

        Keys that were added by hand are in it, too.
        """

        def check(tables: dict[str, Any]) -> dict[str, Any]:
            """Return the tables if they hold a record."""
            read_record(tables)
            return tables

        return self._read_settings(check)

    def _read_settings(self, decode: Callable[[dict[str, Any]], T]) -> T:
        """Read settings.toml, and return what its tables are decoded to."""
        try:
            return decode(decode_toml(read_text(self.settings_file)))
        except InputFileError as error:
            raise NotARun(self.path, "settings.toml", error.reason) from None
        except ValueError as error:
            raise NotARun(self.path, "settings.toml", str(error)) from None

    def write_plan(self, arrays: Mapping[str, Any]) -> None:
        """Write plan.npz."""
        with replacing(self.plan_file, follow_links=False) as new:
            np.savez(new, **arrays)

    def plan(self, decode: Callable[[Mapping[str, Any]], T]) -> T:
        """Read plan.npz.

        Args:
            decode: Makes a plan of its arrays, or raises ValueError or KeyError.
        """
        return self._read_arrays(self.plan_file, decode)

    def write_meshes(self, drawing: ArmDrawing) -> None:
        """Write meshes.npz, for an arm with meshes."""
        if drawing.meshes:
            with replacing(self.meshes_file, follow_links=False) as new:
                np.savez_compressed(new, **drawing.as_arrays())

    def meshes(self) -> ArmDrawing:
        """Read meshes.npz; nothing is drawn without it."""
        if not self.meshes_file.exists():
            return ArmDrawing()
        return self._read_arrays(self.meshes_file, ArmDrawing.from_arrays)

    def _read_arrays(self, path: Path, decode: Callable[[Mapping[str, Any]], T]) -> T:
        """Read an npz file, and return what its arrays are decoded to."""
        try:
            with open_file(path) as file:
                _check_arrays(file)
                with np.load(file, allow_pickle=False) as arrays:
                    return decode(arrays)
        except InputFileError as error:
            raise NotARun(self.path, path.name, error.reason) from None
        except Exception as error:
            # Damaged bytes can fail anywhere in zipfile, zlib and numpy.
            reason = f"it cannot be read ({error or type(error).__name__})"
            raise NotARun(self.path, path.name, reason) from None

    def new_log_file(self) -> Path:
        """Return the path of log.mcap, after removing what has this name."""
        clear_name(self.log_file)
        return self.log_file

    def log(self) -> LogColumns:
        """Read log.mcap, as far as it was written.

        Raises:
            LogReadError: It is not a log.
        """
        if not self.log_file.is_file():
            raise NotARun(self.path, "log.mcap")
        return read_log(self.log_file)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write summary.json."""
        self._write_json(self.summary_file, summary)

    def summary(self, kind: type | None = None) -> dict[str, Any]:
        """Read summary.json.

        Args:
            kind: A typed dictionary. Fields of the summary that it declares must be of its types.
        """
        summary = self._read_json(self.summary_file)
        if kind is not None:
            try:
                _check_fields(summary, kind)
            except ValueError as error:
                raise NotARun(self.path, self.summary_file.name, str(error)) from None
        return summary

    def write_evaluation(self, evaluation: dict[str, Any]) -> None:
        """Write evaluation.json: the external measurement."""
        self._write_json(self.evaluation_file, versioned(evaluation))

    def evaluation(self) -> dict[str, Any] | None:
        """Read evaluation.json; None without an external measurement."""
        if not self.evaluation_file.exists():
            return None
        return self._read_json(self.evaluation_file)

    def outcome(self, *, complete: bool, arrived: bool) -> str:
        """Return the outcome of the run as a text: by summary.json, or else by its log.

        Args:
            complete: Whether the log was closed.
            arrived: Whether it reaches the plan's end.
        """
        try:
            return str(self.summary()["outcome"])
        except (NotARun, KeyError, TypeError):
            if not complete:
                return "the log was not closed: the run was killed, or is still in progress"
            if not arrived:
                return "the log ends before the plan does, and no reason was recorded"
            return "completed"

    def write_report(self, page: str) -> None:
        """Write report.html."""
        write_file(self.report_file, page.encode(), follow_links=False)

    def write_replay(self, page: str) -> None:
        """Write replay.html."""
        write_file(self.replay_file, page.encode(), follow_links=False)

    def _read_json(self, file: Path) -> dict[str, Any]:
        """Read a file of one JSON object."""
        try:
            return msgspec.json.decode(read_bytes(file, MAX_JSON_BYTES), type=dict[str, Any])
        except InputFileError as error:
            raise NotARun(self.path, file.name, error.reason) from None
        except (ValueError, RecursionError) as error:
            raise NotARun(self.path, file.name, str(error)) from None

    def _write_json(self, path: Path, content: Mapping[str, Any]) -> None:
        """Write a file of one JSON object; a NaN in it raises ValueError."""
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_file(path, text.encode(), follow_links=False)


def _check_fields(content: Mapping[str, Any], kind: type) -> None:
    """Check the fields that JSON content has against those of a typed dictionary.

    Other fields are left alone.

    Raises:
        ValueError: A field has another type; the message names it.
    """
    for name, field_type in get_type_hints(kind).items():
        if name not in content:
            continue
        try:
            msgspec.convert(content[name], field_type)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name}: {error}") from None


def _check_arrays(file: BinaryIO) -> None:
    """Check that the arrays of an npz file are as large as they claim, and not too large to read.

    Nothing is allocated for them meanwhile.

    Raises:
        ValueError: An array claims more values than the file holds of it, or the arrays are too
            large to read.
        KeyError: An array is of another version of numpy's format.
    """
    # numpy would also load a single array, or a pickle.
    if file.read(2) != b"PK":
        raise ValueError("it is not a file of arrays")

    with zipfile.ZipFile(file) as archive:
        # The bytes of all arrays together, against the most that are read from a file of this size.
        members = archive.infolist()
        file_size = os.fstat(file.fileno()).st_size
        if sum(member.file_size for member in members) > expansion(file_size):
            raise ValueError("its arrays are much larger than the file")

        # The size of each array by its header, against what the file holds of it.
        for member in members:
            with archive.open(member) as stream:
                version = read_magic(stream)
                shape, _, dtype = ARRAY_HEADERS[version](stream)
            is_negative = min(shape, default=0) < 0
            if is_negative or math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename} claims the shape {shape}, and is shorter")
    file.seek(0)


def is_of_repeats(path: Path) -> bool:
    """Return whether a directory is one of repeats: of numbered runs, and not a run itself."""
    return not (path / "settings.toml").is_file() and bool(repeats_in(path))


def repeats_in(path: Path) -> list[RunDirectory]:
    """Return the runs in a directory of repeats, 01, 02 and so on, in order."""
    runs = [file.parent for file in path.glob("*/settings.toml") if file.parent.name.isdecimal()]
    return [RunDirectory(run) for run in sorted(runs, key=lambda run: int(run.name))]
