"""The program `simbridge`, also as `python -m simbridge`."""

from __future__ import annotations

import gc
import signal
import sys

from simbridge.cli.streams import prepare_streams

# How many new objects there are before Python searches them for garbage. What is imported stays: to
# search it again and again, as by default after 700 objects, takes a tenth of a command's time.
NEW_OBJECTS = 100_000


def main() -> int:
    """Run the installed program: Ctrl-C prints one line from the very first import on.

    Returns:
        See `simbridge.cli.command_line.main`.
    """
    gc.set_threshold(NEW_OBJECTS)
    prepare_streams()
    message = "Interrupted; nothing is moving."
    try:
        # So that Ctrl-C is caught during this import.
        from simbridge.cli.command_line import main as command_line  # noqa: PLC0415

        message = "Interrupted."
        return command_line()
    except KeyboardInterrupt:
        print(message, file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
