"""Clients in processes of their own, and a bare timer to compare them with.

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

from simbridge.backends.low_latency import minimize_latency
from simbridge.lifeline import end_with_parent, lifeline_environment


@contextlib.contextmanager
def client(module: str, *arguments: object, quiet: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Run a module in a process of its own, and kill it when the block ends.

    The process has a lifeline in its environment. The module must call `end_with_parent` first of
    all: then it also ends when this process is killed.

    Args:
        module: Name of the module.
        arguments: Arguments of its command line.
        quiet: Whether its standard error is discarded.

    Yields:
        The process, with pipes to its standard input and output.
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
    """Run a client that shows when the computer was late: it prints `wake_ups` as JSON.

    Args:
        seconds: How long it runs, s.
        period: Time between two deadlines, s.
        priority: Real-time priority; it is scheduled as a control loop is.
    """
    return client("simbridge.bench.measuring", seconds, period, priority, quiet=True)


def wake_ups(seconds: float, period: float) -> list[tuple[float, float]]:
    """Sleep to absolute deadlines, and skip those that are missed.

    Args:
        seconds: How long, s.
        period: Time between two deadlines, s.

    Returns:
        Each deadline and when the process woke, s (monotonic).
    """
    times = []
    deadline = time.monotonic()
    end = deadline + seconds
    while deadline < end:
        deadline += period
        time.sleep(max(deadline - time.monotonic(), 0.0))
        now = time.monotonic()
        times.append((deadline, now))

        missed = max(0, math.floor((now - deadline) / period))
        deadline += period * missed
    return times


if __name__ == "__main__":
    end_with_parent()
    minimize_latency(int(sys.argv[3]))
    print(json.dumps(wake_ups(float(sys.argv[1]), float(sys.argv[2]))))
