"""How punctual the way to the controller is: round trips, and how late its states come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simbridge.doctor.finding import MEND_PORTS, Finding, failed, passed, warned
from simbridge.robot.pose import Array
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.rtde import RtdeConnection, RtdeReader

SECONDS = 2.0
_ASKED = 25
_VERSION_REQUEST = ord("v")
# Two periods of an e-Series: a direct cable takes a tenth of that. Ours.
_LONGEST_ROUND_TRIP = 0.004  # s


@dataclass(frozen=True, eq=False)
class NetworkFacts:
    """What was measured.

    Attributes:
        rtde: Round trips of an RTDE request (K,), s.
        dashboard: Round trips of a dashboard command (L,), s.
        lateness: How much later than the promptest one each state came (M,), s.
        missed: How many states of the controller's clock did not come.
        period: The controller's, s.
    """

    rtde: Array
    dashboard: Array
    lateness: Array
    missed: int
    period: float


def measure_network(host: str, timeout: float = 2.0) -> NetworkFacts:
    """Ask and listen for a while; only reads.

    Raises:
        ConnectionLost: A port stopped answering.
    """
    connection = RtdeConnection(host, timeout)
    try:
        rtde = [_timed(lambda: connection.request(_VERSION_REQUEST)) for _ in range(_ASKED)]
    finally:
        connection.close()
    with DashboardClient(host, timeout) as dashboard:
        asked = [_timed(lambda: dashboard.ask("robotmode")) for _ in range(_ASKED)]
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
    return facts_of(np.array(rtde), np.array(asked), np.array(arrivals), np.array(stamps), period)


def _timed(ask: Callable[[], object]) -> float:
    begin = time.perf_counter()
    ask()
    return time.perf_counter() - begin


def facts_of(rtde: Array, dashboard: Array, arrivals: Array, stamps: Array, period: float) -> NetworkFacts:
    """From round trips (s), the host's times of the states that came, and the controller's stamps on them (s)."""
    offsets = arrivals - stamps
    steps = np.rint(np.diff(stamps) / period).astype(int)
    missed = int(np.maximum(steps - 1, 0).sum())
    return NetworkFacts(rtde, dashboard, offsets - offsets.min() if len(offsets) else offsets, missed, period)


def check_round_trip(network: NetworkFacts | None) -> Finding:
    """Whether the way to the controller and back is short."""
    name = "round trip"
    if network is None:
        return failed(name, "not measured: RTDE and the dashboard must answer", MEND_PORTS)
    typical = float(np.median(network.rtde))
    seen = (
        f"RTDE {typical * 1e3:.2f} ms, at most {network.rtde.max() * 1e3:.2f}; "
        f"dashboard {np.median(network.dashboard) * 1e3:.2f} ms"
    )
    if typical <= _LONGEST_ROUND_TRIP:
        return passed(name, seen)
    return warned(name, seen, "Use a cable of its own from this computer to the controller: no Wi-Fi, VPN or switch.")


def check_jitter(network: NetworkFacts | None) -> Finding:
    """Whether states come every period, on time."""
    name = "jitter"
    if network is None:
        return failed(name, "not measured: RTDE and the dashboard must answer", MEND_PORTS)
    count = len(network.lateness)
    if not count:
        return failed(name, "no state came", "The controller's clock stands still: restart it, or unpause URSim.")
    late = float(np.percentile(network.lateness, 99.0))
    seen = (
        f"{count} states, late by {late * 1e3:.2f} ms (p99), {network.lateness.max() * 1e3:.2f} at most; "
        f"{network.missed} missed"
    )
    if late <= network.period and not network.missed:
        return passed(name, seen)
    return warned(
        name,
        seen,
        f"More than a period ({network.period * 1e3:g} ms) makes the arm jerk: use a cable, and keep other load off "
        f"both computers.",
    )
