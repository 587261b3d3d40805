"""All that clients and controller send each other, kept in a file and shown in words: `--record` and `--verbose`.

Whoever sends or receives only puts it into a queue; another thread writes: no tick waits for a disk or a terminal. The
file does not wait for the terminal either.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TextIO

from simbridge.emulator.words import Conversation
from simbridge.errors import InputFileError, OutputError
from simbridge.ur.tables import PORT_NAMES

_MAX_QUEUED = 50_000  # exchanges that wait for the disk; further ones are lost, and counted
_PATIENCE = 1.0  # s until a terminal or pipe that takes no more misses lines
_END_TIMEOUT = 10.0  # s for the disk, at the end
_PIECE = select.PIPE_BUF  # bytes that a pipe takes at once when it takes any

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
        host: The controller's address, in each line that is printed.

    Attributes:
        lost: How many exchanges were neither kept nor shown, because the disk was too slow.
        not_shown: How many were not shown, because nobody read standard output.

    Raises:
        OutputError: On entering: the file exists already, or cannot be written; also on leaving.
    """

    def __init__(self, file: Path | None, verbose: bool, host: str = "127.0.0.1") -> None:
        self._path, self._verbose, self._host = file, verbose, host
        self.lost = self.not_shown = 0
        self._stuck = False
        self._file: TextIO | None = None
        self._queue: queue.SimpleQueue[Exchange | None] = queue.SimpleQueue()
        self._conversations: dict[int, Conversation] = {}
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="simbridge-emulator-traffic", daemon=True)

    def note(self, exchange: Exchange) -> None:
        """Keep and show it soon. One thread calls it at a time."""
        if self._queue.qsize() < _MAX_QUEUED:
            self._queue.put(exchange)
        else:
            self.lost += 1

    def __enter__(self) -> Traffic:
        try:
            if self._path is not None:
                self._file = self._path.open("x", encoding="ascii", buffering=1)  # complete lines, whatever ends us
        except OSError as error:
            raise OutputError(str(self._path), error.strerror or "", error.errno) from None
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        self._queue.put(None)
        self._thread.join(_END_TIMEOUT)
        for count, what in ((self.lost, "neither kept nor shown"), (self.not_shown, "not shown: nobody read them")):
            if count:
                print(f"{count} messages were {what}.", file=sys.stderr)
        if self._thread.is_alive():
            raise OutputError(str(self._path), f"it did not take what was to be written for {_END_TIMEOUT:g} s")
        if self._error is not None:
            raise OutputError(str(self._path), self._error.strerror or "", self._error.errno) from None
        with contextlib.suppress(OSError):
            if kind is not None and self._path is not None and not self._path.stat().st_size:
                self._path.unlink()  # of a controller that did not start; it would be in the way of the next one

    def _run(self) -> None:
        while (exchange := self._queue.get()) is not None:
            try:
                if self._verbose:
                    self._show(exchange)
            except OSError:
                self._verbose = False  # its reader has gone
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
        arrow = "<-" if exchange.event == "sent" else "->"
        head = f"{exchange.clock:9.3f} {self._host} client {exchange.client} {arrow} {PORT_NAMES[exchange.port]}"
        text = "".join(f"{head}: {line}\n" for line in self._in_words(exchange))
        data = text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace")
        output = sys.stdout.fileno()
        for begin in range(0, len(data), _PIECE):
            # Not by print: a thread that waits in it would also hold up the end of the process.
            if not select.select([], [output], [], 0.0 if self._stuck else _PATIENCE)[1]:
                self._stuck = True
                self.not_shown += 1
                return
            os.write(output, data[begin : begin + _PIECE])
            self._stuck = False

    def _in_words(self, exchange: Exchange) -> list[str]:
        """The lines about it; a bug in them must end neither `--verbose` nor `--record`."""
        if exchange.event == "disconnected":
            self._conversations.pop(exchange.client, None)
        if exchange.event not in ("sent", "received"):
            return [exchange.event]
        known = self._conversations.setdefault(exchange.client, Conversation(exchange.port))
        try:
            return known.sent(exchange.bytes) if exchange.event == "sent" else known.received(exchange.bytes)
        except Exception as error:
            return [f"{exchange.event} {len(exchange.bytes)} bytes without words ({type(error).__name__}: {error})"]


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
