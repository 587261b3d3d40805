"""What a live session's directory holds besides a run's: inputs.jsonl and events.jsonl, written while it goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from simbridge.errors import NotARun
from simbridge.files.writing import open_new, writing
from simbridge.quoting import as_text

INPUTS, EVENTS = "inputs.jsonl", "events.jsonl"


class InputRecord(msgspec.Struct, omit_defaults=True):
    """One input, as received: a line of inputs.jsonl.

    Attributes:
        values: Its numbers, of a chunk its rows; None if it was refused and they were not numbers.
    """

    kind: str  # what it is; "" if it could not be recognised
    sent: float  # when it was given, s of the host's monotonic clock
    values: list[Any] | None = None
    number: int = (
        0  # counts the inputs of a session from 1; 0 for one that was refused when it was given
    )
    engagement: int = 0  # the one to which it belongs
    frame: str = "base_link"  # the axes of a twist
    relative: bool = False  # whether a pose is relative to that at the engagement
    fate: str = "superseded"  # "accepted", "late", "rejected" or "superseded"
    why: str = ""  # of a rejection
    received: float | None = None  # when the loop took it, s of the loop's clock
    index: int | None = None  # the log's sample of the period that used it first
    command: float | None = (
        None  # when the command of that period was sent, s of the host's monotonic clock
    )


class JsonLines:
    """A file of one JSON object a line, handed to the system by `flush`.

    Raises:
        OutputError: It cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] = open_new(path)

    def write(self, record: InputRecord | Mapping[str, Any]) -> None:
        """Add a line."""
        line = _json_line(record)
        with writing(self._path):
            self._file.write(line + b"\n")

    def flush(self) -> None:
        """Hand what was written to the system."""
        with writing(self._path):
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with writing(self._path):
            self._file.close()


def _json_line(record: InputRecord | Mapping[str, Any]) -> bytes:
    """A record as JSON; what JSON cannot hold is recorded as text."""
    # What callers note may be anything.
    try:
        return msgspec.json.encode(record, enc_hook=as_text)
    except Exception:
        return msgspec.json.encode(_plain(record))


def _plain(value: Any) -> Any:
    """A value in which everything that JSON cannot hold is text, such as a huge integer or half a character."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(field) for name, field in msgspec.structs.asdict(value).items()}
    if isinstance(value, Mapping):
        return {_plain(as_text(name)): _plain(field) for name, field in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    return as_text(value).encode(errors="replace").decode()


def read_inputs(directory: Path) -> list[InputRecord]:
    """The inputs of a session, in the order in which they were given, as far as they were written.

    Raises:
        NotARun: The file is missing, or a line in it is broken.
    """
    decoder = msgspec.json.Decoder(InputRecord)
    return [_decoded(decoder, directory, line) for line in _lines(directory, INPUTS)]


def read_events(directory: Path) -> list[dict[str, Any]]:
    """The events of a session: changes of its state with their cause, stops, notes.

    Raises:
        NotARun: The file is missing, or a line in it is broken.
    """
    decoder = msgspec.json.Decoder(dict[str, Any])
    return [_decoded(decoder, directory, line) for line in _lines(directory, EVENTS)]


def _lines(directory: Path, name: str) -> Iterator[bytes]:
    path = directory / name
    if not path.is_file():
        raise NotARun(directory, name)
    with path.open("rb") as file:
        # A line that was being written when the program was killed has no end.
        yield from (line for line in file if line.endswith(b"\n"))


def _decoded(decoder: msgspec.json.Decoder[Any], directory: Path, line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NotARun(
            directory, INPUTS if decoder.type is InputRecord else EVENTS, str(error)
        ) from None


def latencies(inputs: list[InputRecord]) -> list[float]:
    """From giving an input to sending the command of the period that used it first, s."""
    found = [
        r.command - r.sent for r in inputs if r.command is not None and math.isfinite(r.command)
    ]
    return [latency for latency in found if latency >= 0.0]
