"""What benchmarks share: clients in processes of their own, and a bare timer to compare them with.

`python -m simbridge.bench.measuring SECONDS PERIOD PRIORITY` is the timer in a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from simbridge.backends.loop_process import minimize_latency
from simbridge.lifeline import end_with_parent, lifeline_environment


@contextlib.contextmanager
def client(module: str, *arguments: object, quiet: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Run a module in a process of its own, with pipes to its standard input and output; kill it at the end.

    The module calls `end_with_parent`, so that it ends with this process, too.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        text=True,
        env={**os.environ, **lifeline_environment()},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def timer(
    seconds: float, period: float, priority: int = 0
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """A client that prints `wake_ups` as JSON, scheduled as a control loop is; it shows when the computer was late."""
    return client("simbridge.bench.measuring", seconds, period, priority, quiet=True)


def wake_ups(seconds: float, period: float) -> list[tuple[float, float]]:
    """Sleep to absolute deadlines, and skip those that are missed; each deadline and when it woke, s."""
    found, due = [], time.monotonic()
    end = due + seconds
    while due < end:
        due += period
        time.sleep(max(due - time.monotonic(), 0.0))
        now = time.monotonic()
        found.append((due, now))
        due += period * max(0, math.floor((now - due) / period))
    return found


if __name__ == "__main__":
    end_with_parent()
    minimize_latency(int(sys.argv[3]))
    print(json.dumps(wake_ups(float(sys.argv[1]), float(sys.argv[2]))))
