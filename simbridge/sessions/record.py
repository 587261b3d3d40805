"""The files of a live session that a run does not have: inputs.jsonl and events.jsonl.

Both are written while the session goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from simbridge.errors import NotARun
from simbridge.files.writing import open_new, writing
from simbridge.quoting import as_text
from simbridge.sessions.causes import CauseRecord, LiveCause

INPUTS = "inputs.jsonl"
EVENTS = "events.jsonl"


class InputRecord(msgspec.Struct, omit_defaults=True):
    """One input, as received: a line of inputs.jsonl.

    Attributes:
        kind: Kind of the input; "" if it could not be recognised.
        sent: When the input was given, s of the host's monotonic clock.
        values: Numbers of the input, or the rows of a chunk; None if it was refused and they were
            not numbers.
        number: Number of the input: inputs of a session are counted from 1; 0 for an input that was
            refused when it was given.
        engagement: Number of the engagement to which it belongs.
        frame: The frame in whose axes a twist was given.
        relative: Whether a pose is relative to that at the engagement.
        fate: "accepted", "late", "rejected" or "superseded".
        why: The reason of a rejection in words; "" if it was not rejected.
        cause: The cause of a rejection; None for a malformed input, and if it was not rejected.
        received: When the loop took the input, s of the loop's clock; None if it did not.
        index: Index of the log's sample of the period that used it first; None if there is none.
        command: When the command of that period was sent, s of the host's monotonic clock; None if
            that is not known.
    """

    kind: str
    sent: float
    values: list[Any] | None = None
    number: int = 0
    engagement: int = 0
    frame: str = "base_link"
    relative: bool = False
    fate: str = "superseded"
    why: str = ""
    cause: CauseRecord | None = None
    received: float | None = None
    index: int | None = None
    command: float | None = None

    def reject(self, cause: LiveCause) -> None:
        """Note that the input was rejected, and why."""
        self.fate = "rejected"
        self.why = cause.text
        self.cause = cause.record()


class JsonLines:
    """A file of one JSON object a line, handed to the system by `flush`.

    Raises:
        OutputError: The file cannot be written.
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
    """Return a record as JSON; what JSON cannot hold is recorded as text."""
    # What callers note may be anything.
    try:
        return msgspec.json.encode(record, enc_hook=as_text)
    except Exception:
        return msgspec.json.encode(_replace_unwritable(record))


def _replace_unwritable(value: Any) -> Any:
    """Return a value in which everything that JSON cannot hold is text.

    JSON cannot hold a huge integer, for example, or half a character.
    """
    # Containers: replace what they hold.
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        return {name: _replace_unwritable(field) for name, field in fields.items()}
    if isinstance(value, Mapping):
        return {
            _replace_unwritable(as_text(name)): _replace_unwritable(field)
            for name, field in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_replace_unwritable(item) for item in value]

    # A value that JSON has. Integers may have 64 bits.
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value

    # Half a character becomes a question mark.
    return as_text(value).encode(errors="replace").decode()


def read_inputs(directory: Path) -> list[InputRecord]:
    """Return the inputs of a session in the order in which they were given, as far as written.

    Raises:
        NotARun: The file is missing, or a line in it is broken.
    """
    return list(_read_lines(directory, INPUTS, InputRecord))


def read_events(directory: Path) -> list[dict[str, Any]]:
    """Return the events of a session: changes of its state with their cause, stops, notes.

    Raises:
        NotARun: The file is missing, or a line in it is broken.
    """
    return list(_read_lines(directory, EVENTS, dict[str, Any]))


def _read_lines(directory: Path, name: str, line_type: Any) -> Iterator[Any]:
    """Yield the lines of a file as a type."""
    path = directory / name
    if not path.is_file():
        raise NotARun(directory, name)

    decoder = msgspec.json.Decoder(line_type)
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                # It was being written when the program was killed.
                continue
            try:
                yield decoder.decode(line)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise NotARun(directory, name, str(error)) from None


def latencies(inputs: list[InputRecord]) -> list[float]:
    """Return the times from giving an input to sending the command that used it first, s."""
    times = []
    for record in inputs:
        if record.command is None or not math.isfinite(record.command):
            continue
        latency = record.command - record.sent
        if latency >= 0.0:
            times.append(latency)
    return times
