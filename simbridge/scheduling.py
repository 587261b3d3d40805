"""Scheduling of threads with deadlines: short slices, exact timers and real-time priority."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import threading

# The shortest slice that Linux accepts, ns.
SLICE_NS = 100_000
# Number of the system call sched_setattr, by machine, and the size of its attributes, bytes.
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
ATTRIBUTES_SIZE = 48
# Option of prctl that sets the timer slack of the calling thread, and the slack that is asked for,
# ns. The default of Linux is 50,000 ns.
PR_SET_TIMERSLACK = 29
TIMER_SLACK_NS = 1_000
# Flags of mlockall: present and future pages.
MCL_CURRENT = 1
MCL_FUTURE = 2
# The calling thread's real-time priority at most: the other threads have the next higher one.
MAX_CALLING_PRIORITY = 98


def threads() -> list[int]:
    """Return the IDs of this process's threads.

    [0], the calling one, where the system does not list them.
    """
    try:
        return [int(name) for name in os.listdir("/proc/self/task")]
    except OSError:
        return [0]


class WaitingTime:
    """For how long the thread that made it was ready to run and had no core.

    Linux counts it in `/proc/PID/task/TID/schedstat`. A descriptor stays open: it can be read where
    files can no longer be opened.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        # Not a Linux system, or one that does not count it: then nothing was waited for.
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def seconds(self) -> float:
        """Return the time since the thread began, s."""
        if self._file is None:
            return 0.0
        # Time on a core, time waited for one, and time slices; ns.
        fields = os.pread(self._file, 100, 0).split()
        return 1e-9 * int(fields[1])


def ask_for_short_slices(thread: int = 0) -> bool:
    """Request time slices of 0.1 ms for a thread, so that it runs sooner when it wakes.

    Needs no privilege. On two busy cores this removes nine in ten of the delays over 2 ms, which
    are other processes' slices.

    Args:
        thread: ID of the thread; 0 for the calling one.

    Returns:
        Whether the system has it: Linux since 6.12 (`sched_setattr(2)`: sched_runtime of
        SCHED_OTHER).
    """
    number = SCHED_SETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return False

    # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period.
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    values = (ATTRIBUTES_SIZE, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0)
    attributes = struct.pack("=IIQiIQQQ", *values)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    status = ctypes.CDLL(None).syscall(number, thread, buffer, 0)
    return status == 0


def ask_for_exact_timers() -> bool:
    """Let the calling thread wake from a sleep within 1 us of its time, not within 50 us.

    Linux delays the timers of ordinary threads by up to their slack, so that the processor wakes
    less often (`prctl(2)`: PR_SET_TIMERSLACK). It needs no privilege. Threads at a real-time
    priority have no slack.

    Returns:
        Whether the system has it: Linux only.
    """
    if platform.system() != "Linux":
        return False
    status = ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(TIMER_SLACK_NS), 0, 0, 0)
    return status == 0


def ask_for_priority(priority: int) -> list[str]:
    """Run this process at a real-time priority, its memory locked.

    The calling thread gets this priority (at most 98), all other present threads the next higher
    one: ur_rtde spins in the calling thread until its receiving thread has received a state, which
    on one core would otherwise never happen.

    Args:
        priority: Priority under SCHED_FIFO, 1 to 99.

    Returns:
        What the system refused, as sentences.
    """
    notes = []
    calling_threads = (0, threading.get_native_id())
    calling_priority = min(priority, MAX_CALLING_PRIORITY)
    try:
        for thread in threads():
            is_calling = thread in calling_threads
            _prioritise(thread, calling_priority if is_calling else calling_priority + 1)
    except (OSError, AttributeError) as error:
        for thread in threads():
            _prioritise(thread, 0)
        notes.append(
            f"The system refused real-time priority {priority} ({error}); the loop runs at normal "
            "priority. docs/hardware.md explains how to allow it (rtprio in "
            "/etc/security/limits.conf)."
        )

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE) != 0:
        reason = os.strerror(ctypes.get_errno())
        notes.append(
            f"The system refused to lock the memory ({reason}); pages may be swapped. "
            "docs/hardware.md explains how to allow it (memlock in /etc/security/limits.conf)."
        )
    return notes


def _prioritise(thread: int, priority: int) -> None:
    """Set a thread's real-time priority; 0 is normal priority."""
    # It may have ended since.
    policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
    with contextlib.suppress(ProcessLookupError):
        os.sched_setscheduler(thread, policy, os.sched_param(priority))
