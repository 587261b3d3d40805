"""Checks of this computer: its installation, for simulation; its timing, and its connection to a controller."""

from __future__ import annotations

import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simbridge.backends import SIMULATION, backend_class
from simbridge.backends.servo_loop import AHEAD
from simbridge.backends.state_supply import MAX_SHARE, WINDOW
from simbridge.doctor.findings import FIX_PORTS, Finding, failed, passed, warned
from simbridge.errors import SimbridgeError
from simbridge.planning.options import Options
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from simbridge.text import degrees
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.rtde import RtdeConnection, RtdeReader

# Names on the package index. PyBullet has two names there; `check_simulation` loads it instead.
# fmt: off
PACKAGES = (
    "numpy",
    "pin",
    "ur-rtde",
    "lark",
    "lazy-loader",
    "numba",
    "ruckig",
    "msgspec",
    "orjson",
    "tomli-w",
    "mcap",
    "zstandard",
    "rosbags",
    "lz4",
    "ruamel.yaml",
    "matplotlib",
    "jinja2",
    "markupsafe",
    "tyro",
    "rich",
    "viser",
    "websockets",
    "trimesh",
    "pycollada",
    "fast-simplification",
    "loky",
    "cloudpickle",
)
# fmt: on
OLDEST, NEWEST = (3, 10), (3, 12)
# The priority that is tried: if any is allowed, this one is.
_LOWEST_PRIORITY = 1
# For how long states are received, s, and how many requests are sent.
SECONDS, _REQUESTS = 2.0, 25
_VERSION_REQUEST = ord("v")
# States that are read within this time have arrived together, s.
_TOGETHER = 1e-4
# Share of the control periods without a setpoint, for want of states, that is no reason for a warning.
_FEW_UNSENT = 0.02
# Two periods of an e-Series, our choice; a direct cable needs a tenth of that.
_LONGEST_ROUND_TRIP = 4.0  # ms
_NOT_MEASURED = "not measured: RTDE and the dashboard must answer"


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
    """Read them; `root` is the directory that contains sys/."""
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

    def request() -> bool:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_LOWEST_PRIORITY))
        except OSError:
            return False
        return True

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(request).result()


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
    fix, fast = (
        "sudo cpupower frequency-set --governor performance",
        computer.governors == ("performance",),
    )
    return warned("governor", ", ".join(computer.governors), fix, unless=fast)


def check_cores(computer: ComputerFacts) -> Finding:
    """Whether sending and recording each have a core."""
    fix = "Sending and recording share it, so setpoints may be late: assign the process a second core."
    return warned("cores", f"{computer.cores}", fix, unless=computer.cores >= 2)


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether simbridge is tested with this version of Python."""
    seen = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    return failed(
        "python", seen, "Use Python 3.10, 3.11 or 3.12.", unless=OLDEST <= version <= NEWEST
    )


def check_packages(versions: dict[str, str]) -> Finding:
    """Whether every required package is installed."""
    missing = [name for name, version in versions.items() if not version]
    if missing:
        return failed(
            "packages", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}"
        )
    return passed("packages", ", ".join(f"{name} {version}" for name, version in versions.items()))


def check_kernel_cache(directory: Path) -> Finding:
    """Whether compiled kernels can be cached in a directory, which need not exist yet."""
    try:
        existing = next(
            path for path in (directory, *directory.absolute().parents) if path.exists()
        )
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
        with backend_class(SIMULATION)(arm, Options()) as backend:
            (state,) = backend.stream(arm.home[np.newaxis])
    except SimbridgeError as error:
        return failed("simulation", f"{error}", "Fix that, then try again.")
    moved, away = (
        f"moved {arm.name} through {backend.period * 1e3:g} ms",
        float(abs(state.q - arm.home).max()),
    )
    return passed("simulation", f"PyBullet {moved}; joint error {degrees(away)} deg")


@dataclass(frozen=True, eq=False)
class NetworkFacts:
    """Measured timing of the connection.

    Attributes:
        rtde, dashboard: Round-trip times of RTDE requests (K,) and of dashboard commands (L,), s.
        lateness: Delay of each state relative to the fastest one (M,), s.
        missed: Number of states that did not arrive.
        period: The controller's control period, s.
        gaps: Time between two arrivals of states (G,), s; states that arrive together count once.
    """

    rtde: Array
    dashboard: Array
    lateness: Array
    missed: int
    period: float
    gaps: Array


def measure_network(host: str, timeout: float = 2.0) -> NetworkFacts:
    """Measure round trips, and the arrival of states for `SECONDS`; only reads.

    Raises:
        ConnectionLost: A port stopped answering.
    """
    connection = RtdeConnection(host, timeout)
    try:
        rtde = _round_trips(lambda: connection.request(_VERSION_REQUEST))
    finally:
        connection.close()
    with DashboardClient(host, timeout) as dashboard:
        commands = _round_trips(lambda: dashboard.ask("robotmode"))
    arrivals, stamps = [], []
    with RtdeReader(host, ["timestamp"], timeout=timeout) as reader:
        period = 1.0 / reader.frequency
        reader.first()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            states = reader.wait(timeout)
            now = time.monotonic()
            arrivals += [now] * len(states)
            stamps += [state["timestamp"] for state in states]
    return network_facts(rtde, commands, np.array(arrivals), np.array(stamps), period)


def _round_trips(request: Callable[[], object]) -> Array:
    taken = []
    for _ in range(_REQUESTS):
        begin = time.perf_counter()
        request()
        taken.append(time.perf_counter() - begin)
    return np.array(taken)


def network_facts(
    rtde: Array, dashboard: Array, arrivals: Array, stamps: Array, period: float
) -> NetworkFacts:
    """The facts from round-trip times, the arrival times of states by the host's clock, and their timestamps, all s."""
    offsets = arrivals - stamps
    steps = np.rint(np.diff(stamps) / period)
    missed = int(np.maximum(steps - 1.0, 0.0).sum())
    lateness = offsets - offsets.min() if len(offsets) else offsets
    gaps = np.diff(arrivals)
    gaps = gaps[gaps >= _TOGETHER]
    return NetworkFacts(rtde, dashboard, lateness, missed, period, gaps)


def check_round_trip(network: NetworkFacts | None) -> Finding:
    """Whether the round trip to the controller is short."""
    if network is None:
        return failed("round trip", _NOT_MEASURED, FIX_PORTS)
    typical, longest, dashboard = (
        1e3 * float(time)
        for time in (np.median(network.rtde), network.rtde.max(), np.median(network.dashboard))
    )
    seen = f"RTDE {typical:.2f} ms (median), {longest:.2f} ms (max); dashboard {dashboard:.2f} ms (median)"
    fix = "Connect this computer to the controller by a dedicated cable: no Wi-Fi, VPN or switch."
    return warned("round trip", seen, fix, unless=typical <= _LONGEST_ROUND_TRIP)


def check_jitter(network: NetworkFacts | None) -> Finding:
    """Whether a state arrives every period, on time."""
    name = "jitter"
    if network is None:
        return failed(name, _NOT_MEASURED, FIX_PORTS)
    if not len(network.lateness):
        return failed(
            name,
            "no state arrived",
            "The controller's clock stands still: restart it, or unpause URSim.",
        )
    late, latest = float(np.percentile(network.lateness, 99.0)), float(network.lateness.max())
    states = f"{len(network.lateness)} states, late by"
    seen = (
        f"{states} {late * 1e3:.2f} ms (p99), {latest * 1e3:.2f} ms (max); {network.missed} missed"
    )
    period = f"Delays of more than a period ({network.period * 1e3:g} ms) make the arm jerk"
    fix = f"{period}: use a cable, and close other programs on both computers."
    return warned(name, seen, fix, unless=late <= network.period and not network.missed)


def check_arrival(network: NetworkFacts | None) -> Finding:
    """Check that states arrive often enough for a setpoint in every period."""
    name = "arrival of states"
    if network is None:
        return failed(name, _NOT_MEASURED, FIX_PORTS)
    if not len(network.gaps):
        return failed(name, "no second state arrived", "Restart the controller, or unpause URSim.")
    unsent = unsent_share(network.gaps, network.period)
    interval = 1e3 * float(network.gaps.mean())
    longest = 1e3 * float(network.gaps.max())
    seen = (
        f"every {interval:.2f} ms on average, up to {longest:.2f} ms apart: no setpoint could be sent in "
        f"{100.0 * unsent:.0f} % of the periods"
    )
    result = (
        "A run would end (late_states)"
        if unsent >= MAX_SHARE
        else "A run would take longer, and jerk"
    )
    fix = (
        f"{result}: setpoints are sent at most {1e3 * AHEAD:g} ms ahead of the newest state, and where half of the "
        f"periods of {WINDOW:g} s have none, a run ends. Use a cable, no Wi-Fi, VPN or tunnel."
    )
    return warned(name, seen, fix, unless=unsent <= _FEW_UNSENT)


def unsent_share(gaps: Array, period: float) -> float:
    """Share of the control periods (s) without a setpoint, where states arrive at these gaps (G,), s."""
    # The response to a state, and as many more as may be sent ahead of it.
    covered = period + max(1, round(AHEAD / period)) * period
    return float(np.maximum(gaps - covered, 0.0).sum() / gaps.sum())
