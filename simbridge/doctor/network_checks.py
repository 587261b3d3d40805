"""Checks of the connection to a controller: round trips, and when its states arrive."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simbridge.backends import servo_loop, state_supply
from simbridge.doctor.findings import FIX_PORTS, Finding, failure, warning
from simbridge.robot.pose import Array
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.rtde import RtdeClient, RtdeReader

# For how long states are received, s.
SECONDS = 2.0
# How many requests measure a round trip.
REQUESTS = 25
# RTDE's request for the version of its protocol: the shortest.
VERSION_REQUEST = ord("v")
# States that are read within this time have arrived together, s.
TOGETHER_S = 1e-4

# The longest round trip without a warning, ms: two periods of an e-Series, our choice. A direct
# cable needs a tenth of that.
MAX_ROUND_TRIP_MS = 4.0
# Percentile of the states' lateness that is judged.
LATENESS_PERCENTILE = 99.0
# Fraction of the control periods without a setpoint, for want of states, up to which there is no
# warning.
MAX_UNSENT = 0.02

NOT_MEASURED = "not measured, because a port does not answer"


@dataclass(frozen=True, eq=False)
class NetworkFacts:
    """The measured timing of a connection.

    Attributes:
        rtde: Round-trip times of RTDE requests (K,), s.
        dashboard: Round-trip times of dashboard commands (L,), s; empty without a dashboard.
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


def measure_network(host: str, timeout: float = 2.0, *, has_dashboard: bool = True) -> NetworkFacts:
    """Measure round trips, and the arrival of states for `SECONDS`.

    No RTDE input is reserved, and nothing moves.

    Args:
        host: The controller's address.
        timeout: Longest wait for each answer, s.
        has_dashboard: Whether the controller has a dashboard, as all do but those with PolyScope X.

    Raises:
        ConnectionLost: A port stopped answering.
    """
    connection = RtdeClient(host, timeout)
    try:
        rtde_durations = _measure_round_trips(lambda: connection.request(VERSION_REQUEST))
    finally:
        connection.close()

    dashboard_durations = np.empty(0)
    if has_dashboard:
        with DashboardClient(host, timeout) as dashboard:
            dashboard_durations = _measure_round_trips(lambda: dashboard.ask("robotmode"))

    arrivals = []
    stamps = []
    with RtdeReader(host, ["timestamp"], timeout=timeout) as reader:
        period = 1.0 / reader.frequency
        # Wait for the first state, and raise if none comes. The measurement begins after it, when
        # the stream runs.
        reader.first()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            states = reader.wait(timeout)
            now = time.monotonic()
            arrivals += [now] * len(states)
            stamps += [state["timestamp"] for state in states]
    return network_facts(
        rtde_durations,
        dashboard_durations,
        np.array(arrivals),
        stamps=np.array(stamps),
        period=period,
    )


def _measure_round_trips(request: Callable[[], object]) -> Array:
    """Return how long requests take, one after the other (K,), s."""
    durations = []
    for _ in range(REQUESTS):
        begin = time.perf_counter()
        request()
        durations.append(time.perf_counter() - begin)
    return np.array(durations)


def network_facts(
    rtde: Array, dashboard: Array, arrivals: Array, *, stamps: Array, period: float
) -> NetworkFacts:
    """Return the timing of a connection from what was measured.

    Args:
        rtde: Round-trip times of RTDE requests (K,), s.
        dashboard: Round-trip times of dashboard commands (L,), s; empty without a dashboard.
        arrivals: When states arrived (M,), s by the host's clock.
        stamps: Timestamps of the states (M,), s by the controller's clock.
        period: The controller's control period, s.
    """
    offsets = arrivals - stamps
    lateness = offsets - offsets.min() if len(offsets) else offsets

    steps = np.rint(np.diff(stamps) / period)
    missed = int(np.maximum(steps - 1.0, 0.0).sum())

    gaps = np.diff(arrivals)
    gaps = gaps[gaps >= TOGETHER_S]
    return NetworkFacts(rtde, dashboard, lateness, missed=missed, period=period, gaps=gaps)


def check_round_trip(network: NetworkFacts | None) -> Finding:
    """Check that the round trip to the controller is short."""
    if network is None:
        return failure("round trip", NOT_MEASURED, FIX_PORTS)

    typical = 1e3 * float(np.median(network.rtde))
    longest = 1e3 * float(network.rtde.max())
    seen = f"RTDE {typical:.2f} ms (median), {longest:.2f} ms (max)"
    if len(network.dashboard):
        dashboard = 1e3 * float(np.median(network.dashboard))
        seen += f"; dashboard {dashboard:.2f} ms (median)"
    fix = "Connect this computer to the controller by a dedicated cable: no Wi-Fi, VPN or switch."
    return warning("round trip", seen, fix, unless=typical <= MAX_ROUND_TRIP_MS)


def check_jitter(network: NetworkFacts | None) -> Finding:
    """Check that a state arrives every period, on time."""
    if network is None:
        return failure("jitter", NOT_MEASURED, FIX_PORTS)
    if not len(network.lateness):
        fix = "The controller's clock has stopped: restart the controller, or unpause URSim."
        return failure("jitter", "no state arrived", fix)

    lateness = float(np.percentile(network.lateness, LATENESS_PERCENTILE))
    latest = float(network.lateness.max())
    seen = (
        f"{len(network.lateness)} states, late by {lateness * 1e3:.2f} ms (p99), "
        f"{latest * 1e3:.2f} ms (max); {network.missed} missed"
    )
    fix = (
        f"Delays of more than one period ({network.period * 1e3:g} ms) make the arm jerk: use a "
        "cable, and close other programs on both computers."
    )
    is_steady = lateness <= network.period and not network.missed
    return warning("jitter", seen, fix, unless=is_steady)


def check_arrival(network: NetworkFacts | None) -> Finding:
    """Check that states arrive often enough for a setpoint in every period."""
    name = "arrival of states"
    if network is None:
        return failure(name, NOT_MEASURED, FIX_PORTS)
    if not len(network.gaps):
        return failure(name, "only one state arrived", "Restart the controller, or unpause URSim.")

    unsent = unsent_fraction(network.gaps, network.period)
    interval = 1e3 * float(network.gaps.mean())
    longest = 1e3 * float(network.gaps.max())
    seen = (
        f"every {interval:.2f} ms on average, up to {longest:.2f} ms apart: no setpoint could be "
        f"sent in {100.0 * unsent:.0f} % of the periods"
    )

    consequence = "A run would take longer, and jerk"
    if unsent >= state_supply.MAX_UNSENT_FRACTION:
        consequence = "A run would end (late_states)"
    fix = (
        f"{consequence}: setpoints are sent at most {1e3 * servo_loop.AHEAD_S:g} ms ahead of the "
        "newest state, and a run ends if none can be sent in half of the periods of "
        f"{state_supply.WINDOW_S:g} s. Use a cable, without Wi-Fi, VPN or tunnel."
    )
    return warning(name, seen, fix, unless=unsent <= MAX_UNSENT)


def unsent_fraction(gaps: Array, period: float) -> float:
    """Return the fraction of the control periods without a setpoint.

    Args:
        gaps: Times between two arrivals of states (G,), s.
        period: Control period, s.
    """
    # The response to a state, and as many more as may be sent ahead of it.
    covered = period + max(1, round(servo_loop.AHEAD_S / period)) * period
    return float(np.maximum(gaps - covered, 0.0).sum() / gaps.sum())
