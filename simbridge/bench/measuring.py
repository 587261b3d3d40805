"""What benchmarks share: medians, processes, a bare timer; and the browser that tests and drawings of pages use, too.

`python -m simbridge.bench.measuring SECONDS PERIOD PRIORITY` is the timer in a process of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from simbridge.backends.loop_process import minimize_latency
from simbridge.lifeline import end_with_parent, lifeline_environment

REPEATS = 9
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# It draws in software.
_BROWSER_FLAGS = ["--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def medians(*actions: Callable[[], object]) -> list[float]:
    """Median wall time of each action, s; taken in turns, so that all see the same machine."""
    for action in actions:
        action()
    taken = [[timed(action) for action in actions] for _ in range(REPEATS)]
    return [statistics.median(times) for times in zip(*taken, strict=True)]


def timed(action: Callable[[], object]) -> float:
    """Wall time of an action, s."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def peak_memory() -> int:
    """The most memory that this process has had, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def process_time(*arguments: str, cache: str | None = None) -> float:
    """Wall time of a process that runs Python with these arguments, s; with its own kernel cache if one is given."""
    environment = os.environ if cache is None else {**os.environ, "SIMBRIDGE_CACHE": cache}
    command = [sys.executable, *arguments]
    return timed(lambda: subprocess.run(command, check=True, capture_output=True, env=environment))


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


def timer(seconds: float, period: float, priority: int = 0) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
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


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Playwright's browser object; None where Chromium or the package playwright is not installed."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    try:
        sync_playwright = importlib.import_module("playwright.sync_api").sync_playwright
    except ImportError:
        path = None
    if path is None:
        yield None
        return
    # Chromium reserves more addresses than `make soak` allows its own processes.
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limits[1], limits[1]))
    with sync_playwright() as player:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        browser = player.chromium.launch(executable_path=path, args=_BROWSER_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def free_port() -> int:
    """A port of this computer on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    end_with_parent()
    minimize_latency(int(sys.argv[3]))
    print(json.dumps(wake_ups(float(sys.argv[1]), float(sys.argv[2]))))
