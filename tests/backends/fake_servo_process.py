"""A servo process that connects as soon as it has started; with `stuck` in place of a controller's
address, one that never gets ready to.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    config = json.loads(sys.stdin.readline())
    if config["host"] != "stuck":
        events = [{"event": "prepared"}, {"event": "ready", "q": [0.1], "notes": []}]
        lines = "".join(f"{json.dumps(event)}\n" for event in events)
        os.write(sys.stdout.fileno(), lines.encode())
    sys.stdin.read()


if __name__ == "__main__":
    main()
