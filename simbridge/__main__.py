"""The program `simbridge`, also as `python -m simbridge`."""

from __future__ import annotations

import sys


def main() -> int:
    """What the installed program calls: Ctrl-C is told in one line from the very first import on.

    Returns:
        See `simbridge.cli.main`.
    """
    try:
        from simbridge.cli.command_line import main as command_line

        return command_line()
    except KeyboardInterrupt:
        print("Interrupted; nothing is moving.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
