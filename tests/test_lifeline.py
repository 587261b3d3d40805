"""Every process that simbridge starts ends with the one that started it, also when that one is
killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.controllers import loopback

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has signals for broken pipes"),
    pytest.mark.slow,
]

TIMEOUT = 60.0  # s; they end at once, but the machine may be busy


def is_running(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    children = []
    for directory in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            status = (directory / "stat").read_text()
            if int(status.rpartition(")")[2].split()[1]) == pid:
                children.append(int(directory.name))
    return children + [below for child in children for below in descendants(child)]


def running_after(pids: list[int]) -> list[int]:
    """Those that are still running after a generous time."""
    deadline = time.monotonic() + TIMEOUT
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [pid for pid in pids if is_running(pid)]


@contextlib.contextmanager
def parent(source: str, *arguments: str):
    """A process that runs this source, once it has printed "ready", and what it has started; all
    end with the block.
    """
    command = [sys.executable, "-c", textwrap.dedent(source), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    started: list[int] = []
    try:
        for line in process.stdout:
            if line.strip() == "ready":
                break
        started = descendants(process.pid)
        yield process, started
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


CHILD_THAT_HOLDS_THE_LOCK = """
    import os, subprocess, sys, threading, time
    from simbridge.lifeline import lifeline_environment

    child = '''
    import ctypes
    from simbridge.lifeline import end_with_parent
    end_with_parent()
    print("ready", flush=True)
    ctypes.PyDLL(None).sleep(1000)  # keeps Python's global interpreter lock
    '''.replace("\\n    ", "\\n")

    def start():
        environment = {**os.environ, **lifeline_environment()}
        subprocess.Popen([sys.executable, "-c", child], env=environment)

    starter = threading.Thread(target=start)
    starter.start()
    starter.join()
    time.sleep(1000)
"""

CHILD_AND_FORK = """
    import os, subprocess, sys, time
    from simbridge.lifeline import lifeline_environment

    source = "import time; from simbridge.lifeline import end_with_parent; end_with_parent();"
    source += "print(1, flush=True); time.sleep(1000)"
    environment = {**os.environ, **lifeline_environment()}
    command = [sys.executable, "-c", source]
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    child.stdout.readline()
    if os.fork():
        print("ready", flush=True)
    time.sleep(1000)
"""

SWEEP = """
    import os, time
    from simbridge.sweeps.engine import Cores

    engine = Cores(2)
    pool = engine.open()
    for future in [pool.submit(time.sleep, 0.2) for _ in range(4)]:
        future.result()
    for _ in range(4):
        pool.submit(time.sleep, 1000)
    print("ready", flush=True)
    time.sleep(1000)
"""

SIMULATED_SESSION = """
    import sys, tempfile, time
    import simbridge

    with simbridge.live("pybullet", robot="ur10e", out=tempfile.mkdtemp() + "/run") as session:
        session.engage()
        print("ready", flush=True)
        time.sleep(1000)
"""

EMULATOR = """
    import sys, time
    from simbridge.emulator import Emulator

    with Emulator("ur10e", host=sys.argv[1]) as controller:
        print("ready", flush=True)
        time.sleep(1000)
"""

BENCHMARK = """
    import time
    from simbridge.bench.measuring import timer

    with timer(1000.0, 0.01):
        print("ready", flush=True)
        time.sleep(1000)
"""


def test_a_child_with_the_gil_ends():
    with parent(CHILD_THAT_HOLDS_THE_LOCK) as (process, started):
        assert len(started) == 1

        process.kill()

        assert running_after(started) == []


def test_a_child_outlives_the_thread_that_started_it():
    with parent(CHILD_THAT_HOLDS_THE_LOCK) as (_, started):
        # The thread has ended before the child was ready.
        time.sleep(0.2)

        assert len(started) == 1
        assert is_running(started[0])


def test_workers_of_a_sweep_end_with_it():
    with parent(SWEEP) as (process, started):
        # Two workers and loky's tracker of resources, at least.
        assert len(started) >= 3

        process.kill()

        assert running_after(started) == []


def test_a_simulated_sessions_process_ends():
    with parent(SIMULATED_SESSION) as (process, started):
        assert started

        process.kill()

        assert running_after(started) == []


def test_an_emulator_and_its_compiler_end():
    with parent(EMULATOR, loopback(60)) as (process, started):
        # The emulator, and what compiles its scripts.
        assert len(started) == 2

        process.kill()

        assert running_after(started) == []


def test_the_compiler_ends_with_its_emulator():
    with parent(EMULATOR, loopback(61)) as (_, started):
        emulator, compiler = started

        os.kill(emulator, signal.SIGKILL)

        assert running_after([compiler]) == []


def test_a_client_of_a_benchmark_ends_with_it():
    with parent(BENCHMARK) as (process, started):
        assert len(started) == 1

        process.kill()

        assert running_after(started) == []


def test_a_late_child_ends_at_once():
    environment = {**os.environ, "SIMBRIDGE_LIFELINE": f"{os.getpid()}:1000000"}
    source = "from simbridge.lifeline import end_with_parent; end_with_parent(); print('goes on')"

    child = subprocess.run(
        [sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=False
    )

    assert child.returncode == -signal.SIGKILL
    assert child.stdout == ""


def test_a_users_process_is_left_alone():
    source = "from simbridge.lifeline import end_with_parent; end_with_parent(); print('goes on')"

    child = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )

    assert child.stdout == "goes on\n"


def test_a_fork_keeps_no_children():
    with parent(CHILD_AND_FORK) as (process, started):
        own_command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        (child,) = [
            pid for pid in started if Path(f"/proc/{pid}/cmdline").read_bytes() != own_command
        ]

        assert len(started) == 2

        process.kill()

        assert running_after([child]) == []
