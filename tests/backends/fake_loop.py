"""A process with a loop that reports a payload and an error at once, and waits to be stopped."""

from __future__ import annotations

import json
import os
import sys

from simbridge.backends.error_events import error_facts
from simbridge.ur.errors import ServoProcessLost

PAYLOAD = {"event": "payload", "mass": 1.5, "cog": [0.0, 0.0, 0.1]}


def main() -> None:
    events = [PAYLOAD, error_facts(ServoProcessLost("a controller", "was lost", ""))]
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    os.write(sys.stdout.fileno(), lines.encode())
    sys.stdin.read()


if __name__ == "__main__":
    main()
