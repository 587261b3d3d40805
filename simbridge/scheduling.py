"""Scheduling of threads with deadlines: short time slices and real-time priority."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import threading

# The shortest slice that Linux accepts.
_SLICE = 100_000  # ns
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_MCL_CURRENT, _MCL_FUTURE = 1, 2


def threads() -> list[int]:
    """The IDs of this process's threads; [0], the calling one, where the system does not list them."""
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return [0]


class WaitingTime:
    """How long the thread that made it was ready to run and had no core (`/proc/PID/task/TID/schedstat`).

    A descriptor stays open: it can be read where no file can be opened any more.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        # Not a Linux system, or one that does not count it: then nothing was waited for.
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def seconds(self) -> float:
        """Since the thread began, s."""
        return 0.0 if self._file is None else 1e-9 * int(os.pread(self._file, 100, 0).split()[1])


def ask_for_short_slices(thread: int = 0) -> bool:
    """Request time slices of 0.1 ms for a thread, by default the calling one, so that it runs sooner when it wakes.

    Needs no privilege. On two busy cores this removes nine in ten of the delays over 2 ms, which are other processes'
    slices. Returns whether the system has it: Linux since 6.12 (`sched_setattr(2)`: sched_runtime of SCHED_OTHER).
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return False
    # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period.
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _SLICE, 0, 0)
    refused = ctypes.CDLL(None).syscall(
        number, thread, ctypes.create_string_buffer(attributes, len(attributes)), 0
    )
    return refused == 0


def ask_for_priority(priority: int) -> list[str]:
    """Run this process at a real-time priority (SCHED_FIFO, 1 to 99), its memory locked.

    The calling thread gets this priority (at most 98), all other present threads the next higher one: ur_rtde spins in
    the calling thread until its receiving thread has received a state, which on one core would otherwise never happen.

    Returns:
        What the system refused, as sentences.
    """
    notes = []
    calling = threading.get_native_id()
    try:
        for thread in threads():
            _prioritise(thread, min(priority, 98) + (thread not in (0, calling)))
    except (OSError, AttributeError) as error:
        for thread in threads():
            _prioritise(thread, 0)
        notes.append(
            f"The system refused real-time priority {priority} ({error}); the loop runs at normal priority. "
            "docs/hardware.md explains how to allow it (rtprio in /etc/security/limits.conf)."
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) != 0:
        notes.append(
            f"The system refused to lock the memory ({os.strerror(ctypes.get_errno())}); pages may be swapped. "
            "docs/hardware.md explains how to allow it (memlock in /etc/security/limits.conf)."
        )
    return notes


def _prioritise(thread: int, priority: int) -> None:
    """Set a thread's real-time priority; 0 is normal priority."""
    # It may have ended since.
    with contextlib.suppress(ProcessLookupError):
        os.sched_setscheduler(
            thread, os.SCHED_FIFO if priority else os.SCHED_OTHER, os.sched_param(priority)
        )
