"""Checks of this computer: what affects the timing of setpoints."""

from __future__ import annotations

import os
import resource
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from simbridge.doctor.findings import Finding, skipped, success, warning

# The priority that is tried: if any is allowed, this one is.
LOWEST_PRIORITY = 1


@dataclass(frozen=True)
class ComputerFacts:
    """The properties of this computer that affect timing.

    Attributes:
        kernel: Release and version, as printed by `uname -rv`.
        realtime: Whether the kernel has PREEMPT_RT.
        priority_limit: Highest real-time priority that RLIMIT_RTPRIO allows; -1 without a limit.
        priority_allowed: Whether a thread was granted a real-time priority.
        governors: The active frequency governors; empty if they cannot be read.
        cores: Number of cores that this process may use.
    """

    kernel: str
    realtime: bool
    priority_limit: int
    priority_allowed: bool
    governors: tuple[str, ...]
    cores: int


def read_computer(root: Path = Path("/")) -> ComputerFacts:
    """Read the properties of this computer.

    Args:
        root: The directory that contains sys/.
    """
    system = os.uname()
    has_flag = _read_text(root / "sys/kernel/realtime") == "1"
    has_name = "PREEMPT_RT" in system.version or "PREEMPT RT" in system.version

    pattern = "cpu[0-9]*/cpufreq/scaling_governor"
    files = (root / "sys/devices/system/cpu").glob(pattern)
    governors = {_read_text(file) for file in files}
    return ComputerFacts(
        kernel=f"{system.release} {system.version}",
        realtime=has_flag or has_name,
        priority_limit=resource.getrlimit(resource.RLIMIT_RTPRIO)[0],
        priority_allowed=_may_take_priority(),
        governors=tuple(sorted(governors - {""})),
        cores=len(os.sched_getaffinity(0)),
    )


def _read_text(file: Path) -> str:
    """Return the text in a file; "" if it cannot be read."""
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _may_take_priority() -> bool:
    """Request a real-time priority in a short-lived thread, which does not affect the others."""

    def request() -> bool:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(LOWEST_PRIORITY))
        except OSError:
            return False
        return True

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(request).result()


def check_kernel(computer: ComputerFacts) -> Finding:
    """Check that the kernel guarantees timing."""
    remark = "" if computer.realtime else ", not real-time"
    return warning(
        "kernel",
        f"{computer.kernel}{remark}",
        "On a busy computer, setpoints will sometimes be late. Ubuntu: sudo pro enable "
        "realtime-kernel; Debian: apt install linux-image-rt-amd64 (docs/hardware.md).",
        unless=computer.realtime,
    )


def check_priority(computer: ComputerFacts) -> Finding:
    """Check that --realtime-priority would be granted."""
    if computer.priority_allowed:
        return success("priority", "real-time priorities are allowed")

    limit = "no limit" if computer.priority_limit < 0 else f"limit {computer.priority_limit}"
    return warning(
        "priority",
        f"real-time priorities are refused (RLIMIT_RTPRIO: {limit})",
        "To use --realtime-priority, add to /etc/security/limits.conf: @realtime - rtprio 99, and "
        "@realtime - memlock unlimited; add yourself to the group realtime, and log in again.",
    )


def check_governor(computer: ComputerFacts) -> Finding:
    """Check that the processor keeps its frequency between two setpoints."""
    if not computer.governors:
        return skipped("governor", "the CPU frequency governor cannot be read on this computer")
    is_fast = computer.governors == ("performance",)
    fix = "sudo cpupower frequency-set --governor performance"
    return warning("governor", ", ".join(computer.governors), fix, unless=is_fast)


def check_cores(computer: ComputerFacts) -> Finding:
    """Check that sending and recording each have a core."""
    fix = (
        "Sending and recording share one core, so setpoints may be late: give the process a "
        "second core."
    )
    return warning("cores", f"{computer.cores}", fix, unless=computer.cores >= 2)
