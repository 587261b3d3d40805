"""All that clients and controller send each other, kept in a file and shown in words: `--record` and `--verbose`.

Whoever sends or receives only puts it into a queue; another thread writes: no tick waits for a disk or a terminal.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from simbridge.emulator.words import Conversation
from simbridge.errors import InputFileError, OutputError
from simbridge.ur.tables import PORT_NAMES

EventName = Literal["connected", "received", "sent", "disconnected"]


@dataclass(frozen=True)
class Exchange:
    """One line of the file, a JSON object with these names; bytes as two hexadecimal digits each.

    Attributes:
        clock: The controller's, s since its start.
        port: The standard number.
        client: Counted from 1, in the order in which clients connected to any port.
        event: As the controller sees it.
        bytes: What was received, as the network cut it, or sent: one or more messages.
    """

    clock: float
    port: int
    client: int
    event: EventName
    bytes: bytes = b""


class Traffic:
    """A context manager that keeps or shows what is exchanged while it is entered.

    Args:
        file: A new file for it; None keeps nothing.
        verbose: Whether it is printed in words.

    Raises:
        OutputError: The file exists already, or cannot be written; also on leaving.
    """

    def __init__(self, file: Path | None, verbose: bool) -> None:
        self._path, self._verbose = file, verbose
        try:
            self._file = None if file is None else file.open("x", encoding="ascii")
        except OSError as error:
            raise OutputError(str(file), error.strerror or "", error.errno) from None
        self._queue: queue.SimpleQueue[Exchange | None] = queue.SimpleQueue()
        self._conversations: dict[int, Conversation] = {}
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="simbridge-emulator-traffic", daemon=True)
        self.note = self._queue.put

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise OutputError(str(self._path), self._error.strerror or "", self._error.errno) from None

    def _run(self) -> None:
        while (exchange := self._queue.get()) is not None:
            try:
                if self._verbose:
                    self._show(exchange)
            except OSError:
                self._verbose = False  # nobody reads it any more
            try:
                if self._file is not None and self._error is None:
                    row = {**asdict(exchange), "bytes": exchange.bytes.hex()}
                    self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
            except OSError as error:
                self._error = error  # the disk is full: the controller goes on
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._error = self._error or error

    def _show(self, exchange: Exchange) -> None:
        known = self._conversations.setdefault(exchange.client, Conversation(exchange.port))
        lines: list[str] = [exchange.event]
        if exchange.event in ("sent", "received"):
            lines = known.sent(exchange.bytes) if exchange.event == "sent" else known.received(exchange.bytes)
        arrow = "<-" if exchange.event == "sent" else "->"
        head = f"{exchange.clock:9.3f} client {exchange.client} {arrow} {PORT_NAMES[exchange.port]}"
        for line in lines:
            print(f"{head}: {line}")
        sys.stdout.flush()


def read_traffic(file: str | Path) -> Iterator[Exchange]:
    """What `simbridge emulate --record` kept, in the order in which it happened.

    Raises:
        InputFileError: The file cannot be read, or a line of it is something else.
    """
    path, number = Path(file), 0
    try:
        with path.open(encoding="ascii") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007
                row = json.loads(line)
                yield Exchange(**{**row, "bytes": bytes.fromhex(row["bytes"])})
    except OSError as error:
        raise InputFileError(path, error.strerror or "it cannot be read") from None
    except (ValueError, TypeError, KeyError):
        raise InputFileError(path, "it is not a line of a recording of traffic", line=number or None) from None
