"""The directory of one run: settings.toml, plan.npz, meshes.npz, log.mcap, summary.json and report.html."""

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
from simbridge.recording.log_reader import read_log
from simbridge.recording.run_record import Record
from simbridge.recording.samples import LogColumns
from simbridge.recording.settings_file import as_tables, read_record
from simbridge.robot.meshes import Drawing

T = TypeVar("T")

# Of summary.json and evaluation.json, bytes.
_MAX_JSON = 64 * MIB


class RunDirectory:
    """The directory of one run (path) and the files in it.

    What reads a file raises NotARun where it is missing or broken, and what writes one OutputError. A run may come from
    anywhere: a link that has the name of a file is replaced when that file is written, and never followed.
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
        """Make a new directory: `out`, with its parents, or one under runs/ named after the time and the scenario.

        Raises:
            OutputError: It exists already, or cannot be made.
        """
        stem, count = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{name}", 1
        path = Path("runs", stem) if out is None else Path(out)
        while True:
            with writing(path, "; choose another with --out"):
                try:
                    path.mkdir(parents=parents)
                    return RunDirectory(path)
                except FileExistsError:
                    if out is not None:
                        raise
            count += 1
            path = path.with_name(f"{stem}_{count}")

    @contextlib.contextmanager
    def needed(self) -> Iterator[None]:
        """After a run: an error of reading or writing becomes an OutputError if the directory is gone."""
        try:
            yield
        except SimbridgeError:
            if self.path.is_dir():
                raise
            raise OutputError(self.path, "it was deleted or moved while the run went on") from None

    @staticmethod
    def open(path: str | Path) -> RunDirectory:
        """An existing run.

        Raises:
            NotARun: There is no such directory, or it has no settings.toml.
        """
        directory = RunDirectory(Path(path))
        if not directory.path.is_dir():
            raise NotARun(path, "", "there is no such directory")
        if is_of_repeats(directory.path):
            one = repeats_in(directory.path)[0].path
            raise NotARun(
                path,
                "settings.toml",
                f"it is a directory of repeats; name one of its runs, such as {one}",
            )
        if not directory.settings_file.is_file():
            if (directory.path / "sweep.toml").is_file():
                raise NotARun(
                    path,
                    "settings.toml",
                    f"it is a sweep; name one of its runs, in {directory.path / 'runs'}",
                )
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
            read_record(tables)
            return tables

        return self._read_settings(check)

    def _read_settings(self, decode: Callable[[dict[str, Any]], T]) -> T:
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
        """Read plan.npz; decode makes a plan of its arrays, or raises ValueError or KeyError."""
        return self._arrays(self.plan_file, decode)

    def write_meshes(self, drawing: Drawing) -> None:
        """Write meshes.npz, for an arm with meshes."""
        if drawing.meshes:
            with replacing(self.meshes_file, follow_links=False) as new:
                np.savez_compressed(new, **drawing.as_arrays())

    def meshes(self) -> Drawing:
        """Read meshes.npz; nothing is drawn without it."""
        return (
            self._arrays(self.meshes_file, Drawing.from_arrays)
            if self.meshes_file.exists()
            else Drawing()
        )

    def _arrays(self, path: Path, decode: Callable[[Mapping[str, Any]], T]) -> T:
        try:
            with open_file(path) as file:
                _check_arrays(file)
                with np.load(file, allow_pickle=False) as arrays:
                    return decode(arrays)
        except InputFileError as error:
            raise NotARun(self.path, path.name, error.reason) from None
        except Exception as error:
            # Damaged bytes can fail anywhere in zipfile, zlib and numpy.
            raise NotARun(
                self.path, path.name, f"it cannot be read ({error or type(error).__name__})"
            ) from None

    def new_log_file(self) -> Path:
        """The path of log.mcap, under which there is nothing any more: it is new when it is opened."""
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
        self._write_json(self.summary_file, summary)

    def summary(self, kind: type | None = None) -> dict[str, Any]:
        """Read summary.json; the fields that it has are those of a typed dictionary, if one is given."""
        summary = self._json(self.summary_file)
        if kind is not None:
            try:
                _check_fields(summary, kind)
            except ValueError as error:
                raise NotARun(self.path, self.summary_file.name, str(error)) from None
        return summary

    def write_evaluation(self, evaluation: dict[str, Any]) -> None:
        """Write evaluation.json: the external measurement."""
        self._write_json(self.evaluation_file, evaluation)

    def evaluation(self) -> dict[str, Any] | None:
        """Read evaluation.json; None without an external measurement."""
        return self._json(self.evaluation_file) if self.evaluation_file.exists() else None

    def outcome(self, *, complete: bool, arrived: bool) -> str:
        """How the run ended: from summary.json, or else from whether the log was closed and reaches the plan's end."""
        try:
            return str(self.summary()["outcome"])
        except (NotARun, KeyError, TypeError):
            if not complete:
                return "the log was not closed: the run was killed, or still goes on"
            return (
                "completed"
                if arrived
                else "the log ends before the plan does, and the reason was not recorded"
            )

    def write_report(self, page: str) -> None:
        write_file(self.report_file, page.encode(), follow_links=False)

    def write_replay(self, page: str) -> None:
        write_file(self.replay_file, page.encode(), follow_links=False)

    def _json(self, file: Path) -> dict[str, Any]:
        try:
            return msgspec.json.decode(read_bytes(file, _MAX_JSON), type=dict[str, Any])
        except InputFileError as error:
            raise NotARun(self.path, file.name, error.reason) from None
        except (ValueError, RecursionError) as error:
            raise NotARun(self.path, file.name, str(error)) from None

    def _write_json(self, path: Path, content: Mapping[str, Any]) -> None:
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
    """Raise unless the arrays of an npz file are as large as they claim, and not larger than may be read."""
    if file.read(2) != b"PK":
        raise ValueError("it is no file of arrays")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > expansion(os.fstat(file.fileno()).st_size):
            raise ValueError("its arrays are much larger than the file")
        for member in members:
            with archive.open(member) as array:
                header = {(1, 0): read_array_header_1_0, (2, 0): read_array_header_2_0}[
                    read_magic(array)
                ]
                shape, _, dtype = header(array)
                if (
                    min(shape, default=0) < 0
                    or math.prod(shape) * dtype.itemsize > member.file_size
                ):
                    raise ValueError(f"{member.filename} claims the shape {shape}, and is shorter")
    file.seek(0)


def is_of_repeats(path: Path) -> bool:
    """Whether a directory is one of repeats: it contains numbered runs, and is not a run itself."""
    return not (path / "settings.toml").is_file() and bool(repeats_in(path))


def repeats_in(path: Path) -> list[RunDirectory]:
    """The runs in a directory of repeats, 01, 02 and so on, in order."""
    found = [file.parent for file in path.glob("*/settings.toml") if file.parent.name.isdecimal()]
    return [RunDirectory(run) for run in sorted(found, key=lambda run: int(run.name))]
