"""Checks of this computer: its installation, for simulation, and its timing, for controllers."""

from __future__ import annotations

import os
import platform
import resource
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from simbridge.backends.registry import SIMULATION, backend_class
from simbridge.doctor.findings import Finding, failed, passed, warned
from simbridge.errors import SimbridgeError
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from simbridge.text import degrees

# Names on the package index. PyBullet has two names there; `check_simulation` loads it instead.
PACKAGES = (
    *("numpy", "pin", "ur-rtde", "lark", "numba", "ruckig", "msgspec", "tomli-w", "mcap", "zstandard"),
    *(
        "lz4",
        "rosbags",
        "ruamel.yaml",
        "matplotlib",
        "jinja2",
        "markupsafe",
        "tyro",
        "rich",
        "viser",
        "loky",
        "cloudpickle",
        "orjson",
        "trimesh",
        "pycollada",
        "fast-simplification",
    ),
)
OLDEST, NEWEST = (3, 10), (3, 12)
# The priority that is tried: if any is allowed, this one is.
_LOWEST_PRIORITY = 1


@dataclass(frozen=True)
class ComputerFacts:
    """The properties of this computer that affect timing.

    Attributes:
        kernel: Release and version, as printed by `uname -rv`.
        realtime: Whether the kernel has PREEMPT_RT.
        priority_limit: Highest real-time priority that RLIMIT_RTPRIO allows; -1 without a limit.
        priority_allowed: Whether a thread was granted a real-time priority.
        governors: Names of the active frequency governors; empty if they cannot be read.
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
    flag = _text(root / "sys/kernel/realtime")
    files = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return ComputerFacts(
        kernel=f"{system.release} {system.version}",
        realtime=flag == "1" or "PREEMPT_RT" in system.version or "PREEMPT RT" in system.version,
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
    """Request a real-time priority in a short-lived thread, which does not affect the others."""
    granted = []

    def request() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_LOWEST_PRIORITY))
        except OSError:
            return
        granted.append(True)

    thread = threading.Thread(target=request)
    thread.start()
    thread.join()
    return bool(granted)


def check_kernel(computer: ComputerFacts) -> Finding:
    """Whether the kernel guarantees timing."""
    return warned(
        "kernel",
        f"{computer.kernel}{'' if computer.realtime else ', not real-time'}",
        "On a busy computer setpoints will be late now and then. Ubuntu: sudo pro enable realtime-kernel; Debian: apt "
        "install linux-image-rt-amd64 (docs/hardware.md).",
        unless=computer.realtime,
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
        "unlimited; add yourself to the group realtime, and log in again.",
    )


def check_governor(computer: ComputerFacts) -> Finding:
    """Whether the processor keeps its frequency between two setpoints."""
    if not computer.governors:
        return passed("governor", "the processor's frequency governor cannot be read here")
    fix, fast = "sudo cpupower frequency-set --governor performance", computer.governors == ("performance",)
    return warned("governor", ", ".join(computer.governors), fix, unless=fast)


def check_cores(computer: ComputerFacts) -> Finding:
    """Whether sending and recording each have a core."""
    fix = "Sending and recording share it, so setpoints may be late: assign the process a second core."
    return warned("cores", f"{computer.cores}", fix, unless=computer.cores >= 2)


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether simbridge is tested with this version of Python."""
    seen = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    return failed("python", seen, "Use Python 3.10, 3.11 or 3.12.", unless=OLDEST <= version <= NEWEST)


def check_packages(versions: dict[str, str]) -> Finding:
    """Whether every required package is installed."""
    missing = [name for name, version in versions.items() if not version]
    if missing:
        return failed("packages", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return passed("packages", ", ".join(f"{name} {version}" for name, version in versions.items()))


def check_kernel_cache(directory: Path) -> Finding:
    """Whether compiled kernels can be cached in a directory, which need not exist yet."""
    try:
        existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=existing):
            return passed("kernel cache", str(directory))
    except OSError as error:
        return warned(
            "kernel cache",
            f"{directory} cannot be written ({error.strerror})",
            "Every start compiles for several seconds. Choose a directory: export SIMBRIDGE_CACHE=~/simbridge-kernels",
        )


def check_simulation(robot: str) -> Finding:
    """Whether PyBullet loads, and simulates the robot for one period."""
    try:
        arm = load_robot(robot)
        with backend_class(SIMULATION).from_options(arm, Options()) as backend:
            (state,) = backend.stream([arm.home])
    except SimbridgeError as error:
        return failed("simulation", f"{error}", "Fix that, then try again.")
    moved, away = f"moved {arm.name} through {backend.period * 1e3:g} ms", float(abs(state.q - arm.home).max())
    return passed("simulation", f"PyBullet {moved}; joint error {degrees(away)} deg")
