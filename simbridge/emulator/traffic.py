"""All that clients and controller send each other: `--record` keeps it, `--verbose` shows it.

Whoever sends or receives only puts it into a queue; another thread writes: no tick waits for a disk
or a terminal. The file does not wait for the terminal either. Of the packages that a controller
sends periodically, only the first of each kind is shown.
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

from simbridge.emulator.conversation import Conversation
from simbridge.errors import InputFileError, OutputError
from simbridge.ur.tables import PORT_NAMES

# Exchanges that wait for the disk; further ones are lost, and counted.
MAX_QUEUED = 50_000
# How long to wait for a terminal or pipe that takes nothing before it misses lines, s.
PATIENCE_S = 1.0
# How long the last exchanges may take to be written, when the context ends, s.
END_TIMEOUT_S = 10.0
# Bytes that a pipe takes at once when it takes any.
PIECE = select.PIPE_BUF

EventName = Literal["connected", "received", "sent", "disconnected"]


@dataclass(frozen=True)
class Exchange:
    """One line of the file, a JSON object with these names; bytes are two hexadecimal digits each.

    Attributes:
        clock: The controller's clock, s since its start.
        port: The standard number of the port.
        client: Number of the client, counted from 1 in the order of connecting, whatever the port.
        event: The kind of event, as the controller sees it.
        bytes: Received bytes, as the network cut them, or sent ones: one or more messages.
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
        lost: Number of exchanges neither kept nor shown, because the disk was too slow.
        not_shown: Number of exchanges not shown, because nobody read standard output.

    Raises:
        OutputError: On entering: the file exists already, or cannot be written; also on leaving.
    """

    def __init__(self, file: Path | None, verbose: bool, host: str = "127.0.0.1") -> None:
        self.lost = 0
        self.not_shown = 0

        self._path = file
        self._verbose = verbose
        self._host = host

        # Exchanges that are still to be kept and shown; None ends the thread.
        self._queue: queue.SimpleQueue[Exchange | None] = queue.SimpleQueue()
        self._file: TextIO | None = None
        # The error after which nothing more is written to the file.
        self._error: OSError | None = None
        # True while standard output takes nothing: it is then not waited for again.
        self._stuck = False
        # The conversation of each client, by the client's number.
        self._conversations: dict[int, Conversation] = {}
        self._thread = threading.Thread(
            target=self._run, name="simbridge-emulator-traffic", daemon=True
        )

    def note(self, exchange: Exchange) -> None:
        """Keep and show it soon. One thread calls it at a time."""
        if self._queue.qsize() < MAX_QUEUED:
            self._queue.put(exchange)
        else:
            self.lost += 1

    def __enter__(self) -> Traffic:
        try:
            if self._path is not None:
                # Each line is written when it is complete, however this process ends.
                self._file = self._path.open("x", encoding="ascii", buffering=1)
        except OSError as error:
            raise OutputError(str(self._path), error.strerror or "", error.errno) from None
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        self._queue.put(None)
        self._thread.join(END_TIMEOUT_S)

        if self.lost:
            print(f"{self.lost} messages were neither kept nor shown.", file=sys.stderr)
        if self.not_shown:
            print(f"{self.not_shown} messages were not shown: nobody read them.", file=sys.stderr)

        # A daemon: a thread that still waits for a disk or a terminal does not hold up the process.
        if self._thread.is_alive():
            destination = "standard output" if self._path is None else str(self._path)
            reason = f"the last messages were not written within {END_TIMEOUT_S:g} s"
            raise OutputError(destination, reason)
        if self._error is not None:
            error = self._error
            raise OutputError(str(self._path), error.strerror or "", error.errno) from None

        # The empty file of a controller that did not start would be in the way of the next one.
        if kind is not None and self._path is not None:
            with contextlib.suppress(OSError):
                is_empty = self._path.stat().st_size == 0
                if is_empty:
                    self._path.unlink()

    def _run(self) -> None:
        """Show and keep exchanges until the context ends (the thread's function)."""
        exchange = self._queue.get()
        while exchange is not None:
            self._show_and_keep(exchange)
            exchange = self._queue.get()

        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._error = self._error or error

    def _show_and_keep(self, exchange: Exchange) -> None:
        """Show and keep an exchange; a closed terminal or a full disk must not stop the rest."""
        try:
            if self._verbose:
                self._show(exchange)
        except OSError:
            # The reader of standard output has gone.
            self._verbose = False

        try:
            if self._file is not None and self._error is None:
                row = {**asdict(exchange), "bytes": exchange.bytes.hex()}
                self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
        except OSError as error:
            # The disk is full: the controller goes on.
            self._error = error

    def _show(self, exchange: Exchange) -> None:
        """Print an exchange in words."""
        arrow = "<-" if exchange.event == "sent" else "->"
        port = PORT_NAMES[exchange.port]
        head = f"{exchange.clock:9.3f} {self._host} client {exchange.client} {arrow} {port}"
        text = "".join(f"{head}: {line}\n" for line in self._sentences(exchange))
        data = text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace")

        output = sys.stdout.fileno()
        for begin in range(0, len(data), PIECE):
            # Not by print: a thread that waits in it would also hold up the end of the process.
            patience = 0.0 if self._stuck else PATIENCE_S
            _, writable, _ = select.select([], [output], [], patience)
            if not writable:
                self._stuck = True
                self.not_shown += 1
                return
            os.write(output, data[begin : begin + PIECE])
            self._stuck = False

    def _sentences(self, exchange: Exchange) -> list[str]:
        """Return the lines about an exchange.

        A bug in them must end neither `--verbose` nor `--record`.
        """
        if exchange.event == "disconnected":
            self._conversations.pop(exchange.client, None)
        if exchange.event not in ("sent", "received"):
            return [exchange.event]

        conversation = self._conversations.setdefault(exchange.client, Conversation(exchange.port))
        try:
            if exchange.event == "sent":
                return conversation.sent(exchange.bytes)
            return conversation.received(exchange.bytes)
        except Exception as error:
            count = len(exchange.bytes)
            reason = f"{type(error).__name__}: {error}"
            return [f"{exchange.event} {count} bytes without words ({reason})"]


def read_traffic(file: str | Path) -> Iterator[Exchange]:
    """Yield what `simbridge emulate --record` kept, in the order in which it happened.

    Raises:
        InputFileError: The file cannot be read, or is not such a recording.
    """
    path = Path(file)
    # The number of the line that is read, from 1.
    number = 0
    try:
        with path.open(encoding="ascii") as lines:
            for line in lines:
                number += 1
                row = json.loads(line)
                yield Exchange(**{**row, "bytes": bytes.fromhex(row["bytes"])})
    except OSError as error:
        raise InputFileError(path, error.strerror or "it cannot be read") from None
    except (ValueError, TypeError, KeyError):
        reason = "it is not a line of a recording of traffic"
        raise InputFileError(path, reason, line=number or None) from None
