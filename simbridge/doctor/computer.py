"""Checks of this computer: whether it can send a setpoint every period and on time."""

from __future__ import annotations

import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path

from simbridge.doctor.finding import Finding, passed, warned

# The priority that is tried; any at all tells whether they are allowed.
_LOWEST_PRIORITY = 1


@dataclass(frozen=True)
class ComputerFacts:
    """What matters of this computer.

    Attributes:
        kernel: Release and version, as `uname -rv`.
        realtime: Whether the kernel is a PREEMPT_RT one.
        priority_limit: Highest real-time priority that RLIMIT_RTPRIO allows; -1 without a limit.
        priority_allowed: Whether a thread could take a real-time priority when it was tried.
        governors: Those in force, one name each; empty where they cannot be read.
        cores: That this process may use.
    """

    kernel: str
    realtime: bool
    priority_limit: int
    priority_allowed: bool
    governors: tuple[str, ...]
    cores: int


def read_computer(root: Path = Path("/")) -> ComputerFacts:
    """Read it.

    Args:
        root: Where sys/ is.
    """
    system = os.uname()
    said = _text(root / "sys/kernel/realtime")
    files = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return ComputerFacts(
        kernel=f"{system.release} {system.version}",
        realtime=said == "1" or "PREEMPT_RT" in system.version or "PREEMPT RT" in system.version,
        priority_limit=resource.getrlimit(resource.RLIMIT_RTPRIO)[0],
        priority_allowed=_may_take_priority(),
        governors=tuple(sorted({_text(file) for file in files} - {""})),
        cores=len(os.sched_getaffinity(0)),
    )


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _may_take_priority() -> bool:
    """Try it in a thread that ends at once: the priority is the thread's own."""
    taken = []

    def take() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_LOWEST_PRIORITY))
        except OSError:
            return
        taken.append(True)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return bool(taken)


def check_kernel(computer: ComputerFacts) -> Finding:
    """Whether the kernel keeps its word about time."""
    seen = f"{computer.kernel}{'' if computer.realtime else ', not real-time'}"
    if computer.realtime:
        return passed("kernel", seen)
    return warned(
        "kernel",
        seen,
        "On a busy computer setpoints will now and then be late. Ubuntu: sudo pro enable realtime-kernel; Debian: apt "
        "install linux-image-rt-amd64 (docs/hardware.md).",
    )


def check_priority(computer: ComputerFacts) -> Finding:
    """Whether --realtime-priority would be granted."""
    if computer.priority_allowed:
        return passed("priority", "real-time priorities are allowed")
    limit = "no limit" if computer.priority_limit < 0 else f"limit {computer.priority_limit}"
    return warned(
        "priority",
        f"real-time priorities are refused (RLIMIT_RTPRIO: {limit})",
        "For --realtime-priority add to /etc/security/limits.conf: @realtime - rtprio 99, and @realtime - memlock "
        "unlimited; put yourself into the group realtime, and log in again.",
    )


def check_governor(computer: ComputerFacts) -> Finding:
    """Whether the processor stays at speed between two setpoints."""
    if not computer.governors:
        return passed("governor", "the processor's governor cannot be read here")
    if computer.governors == ("performance",):
        return passed("governor", "performance")
    return warned("governor", ", ".join(computer.governors), "sudo cpupower frequency-set --governor performance")


def check_cores(computer: ComputerFacts) -> Finding:
    """Whether sending and recording have a core each."""
    if computer.cores >= 2:
        return passed("cores", f"{computer.cores}")
    return warned(
        "cores",
        f"{computer.cores}",
        "Sending and recording share it, so setpoints may be late: give the process a second.",
    )
