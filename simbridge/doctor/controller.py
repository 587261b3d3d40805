"""Checks of the controller's state, and of the connection to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simbridge.backends.preflight import docker_command
from simbridge.doctor.findings import FIX_PORTS, Finding, failed, passed, unread, warned
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot
from simbridge.ur import tables
from simbridge.ur.controller import FULL_SPEED, Survey, safety_stop
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ArmNotReady, ConnectionLost
from simbridge.ur.primary import is_ursim
from simbridge.ur.rtde import RtdeConnection, RtdeReader

# Robot modes from which `power on` and `brake release` lead to running.
_CAN_BE_POWERED_ON = (tables.RobotMode.POWER_OFF, tables.RobotMode.POWER_ON, tables.RobotMode.IDLE)
# How long states are received.
SECONDS = 2.0
_REQUESTS = 25
_VERSION_REQUEST = ord("v")
# Two periods of an e-Series, our choice; a direct cable needs a tenth of that.
_LONGEST_ROUND_TRIP = 0.004  # s


def check_port(survey: Survey, port: int, robot: Robot, *, ursim: bool) -> Finding:
    """Whether a port of the controller answers as expected."""
    name = f"port {port}"
    error = survey.lost.get(port)
    if error is None:
        return passed(name, f"{tables.PORT_NAMES[port]} answers")
    reason = error.reason if isinstance(error, ConnectionLost) else str(error)
    if ursim:
        fix = f"Is URSim running, with this port published? It is started with: {docker_command(robot, survey.host)}"
    else:
        fix = (
            f"Try: ping {survey.host}. Check the cable, the address (pendant: Settings > System > Network), and "
            f"whether the service is allowed (Settings > Security > Services)."
        )
    return failed(name, f"{tables.PORT_NAMES[port]}: {reason}", fix)


def check_software(survey: Survey) -> Finding:
    """Whether simbridge supports this version, and at which rate."""
    name = "software"
    if survey.unsupported is not None:
        version = f"PolyScope {survey.unsupported.version}" if survey.unsupported.version else "unknown"
        return failed(name, version, survey.unsupported.reason)
    if survey.state is None:
        return unread(name, tables.RTDE)
    state = survey.state
    version = ".".join(map(str, state.version))
    seen = f"PolyScope {version}, {state.series}, {1.0 / state.period:.0f} Hz"
    dashboard = survey.dashboard.version if survey.dashboard is not None else ""
    if dashboard and not f"{dashboard}.".startswith(f"{version}."):
        return warned(name, f"{seen}; its dashboard says {dashboard}", "The two should agree: restart the controller.")
    return passed(name, seen)


def check_kind(survey: Survey, *, ursim: bool) -> Finding:
    """Whether the controller is of the kind chosen with --backend: URSim, or a real arm."""
    name = "arm or URSim"
    if survey.arm is None:
        return unread(name, tables.PRIMARY)
    found = is_ursim(survey.arm.checksum)
    if found:
        seen = "URSim (kinematics checksum all ones)"
        return warned(name, seen, "For URSim use --backend ursim.", unless=ursim)
    fix = "It is not URSim, so --backend ursim refuses to move it. For a real arm use --backend real."
    return failed(name, "a real arm (it has its own calibration)", fix, unless=not ursim)


def check_remote_control(survey: Survey) -> Finding:
    """Whether the controller accepts programs from outside."""
    name = "remote control"
    if survey.dashboard is None:
        return unread(name, tables.DASHBOARD)
    remote = survey.dashboard.remote_control
    if remote is None:
        if survey.state is not None and survey.state.series == "CB3":
            return passed(name, "CB3 does not have this setting")
        return warned(
            name,
            "not reported by the dashboard",
            "PolyScope 5.6 or later reports it. With older software check it at the top right of the pendant.",
        )
    return failed(
        name,
        "on" if remote else "off: programs from outside are ignored",
        "At the pendant: Settings > System > Remote Control > Enable, then switch from Local to Remote Control at the "
        "top right.",
        unless=remote,
    )


def check_robot_mode(survey: Survey, *, ursim: bool) -> Finding:
    """Whether the arm has power and its brakes are released."""
    name = "robot mode"
    if survey.state is None:
        return unread(name, tables.RTDE)
    mode = survey.state.robot_mode
    if mode == tables.RobotMode.RUNNING:
        return passed(name, tables.mode_label(mode, tables.RobotMode))
    if ursim and mode in _CAN_BE_POWERED_ON:
        return passed(name, f"{tables.mode_label(mode, tables.RobotMode)}; a run powers URSim on")
    return failed(name, tables.mode_label(mode, tables.RobotMode), ArmNotReady.remedy)


def check_safety_mode(survey: Survey) -> Finding:
    """Whether no stop is active."""
    name = "safety mode"
    if survey.state is None:
        return unread(name, tables.RTDE)
    mode = survey.state.safety_mode
    seen, stop = tables.mode_label(mode, tables.SafetyMode), safety_stop(mode)
    if mode == tables.SafetyMode.REDUCED:
        return warned(
            name,
            seen,
            "The reduced limits of the safety configuration apply: a fast plan may end in a protective stop. Leave the "
            "trigger plane, or release the input that activates the reduced mode.",
        )
    return failed(name, seen, "" if stop is None else stop.remedy, unless=mode == tables.SafetyMode.NORMAL)


def check_program(survey: Survey) -> Finding:
    """Whether no program runs; a run never stops one."""
    if survey.state is None:
        return unread("program", tables.RTDE)
    state = survey.state.runtime_state
    loaded = survey.dashboard.program if survey.dashboard is not None else ""
    seen = tables.mode_label(state, tables.RuntimeState) + (f", {loaded}" if loaded else "")
    fix = "A run never stops a program on the controller. Stop it at the pendant."
    return failed("program", seen, fix, unless=state not in tables.PROGRAM_RUNS)


def check_registers(taken: tuple[str, ...] | None) -> Finding:
    """Whether the registers that simbridge writes are free: those that are not, None if unknown."""
    name = "registers"
    if taken is None:
        return unread(name, tables.RTDE)
    if not taken:
        return passed(name, "free")
    more = f" and {len(taken) - 2} more" if len(taken) > 2 else ""
    return failed(
        name,
        f"held by another client: {', '.join(taken[:2])}{more}",
        "Stop the other program: a second simbridge, a ROS driver, or a fieldbus (EtherNet/IP, PROFINET) that is "
        "enabled in the installation.",
    )


def check_slider(survey: Survey) -> Finding:
    """Whether the speed slider allows the plan's speed."""
    name = "speed slider"
    if survey.state is None:
        return unread(name, tables.RTDE)
    slider = survey.state.slider
    seen = f"{slider * 100.0:.0f} %"
    if slider <= 0.0:
        return failed(name, seen, "Nothing would move. Move it to 100 % at the pendant.")
    fix = "Move it to 100 % at the pendant, or expect the run to take longer (--on-scaling stop refuses it)."
    return warned(name, seen, fix, unless=slider >= FULL_SPEED)


@dataclass(frozen=True, eq=False)
class NetworkFacts:
    """Measured timing of the connection.

    Attributes:
        rtde: Round-trip times of an RTDE request (K,), s.
        dashboard: Round-trip times of a dashboard command (L,), s.
        lateness: Delay of each state relative to the fastest one (M,), s.
        missed: Number of states that did not arrive.
        period: The controller's control period, s.
    """

    rtde: Array
    dashboard: Array
    lateness: Array
    missed: int
    period: float


def measure_network(host: str, timeout: float = 2.0) -> NetworkFacts:
    """Measure round trips, and the arrival of states for `SECONDS`; only reads.

    Raises:
        ConnectionLost: A port stopped answering.
    """
    connection = RtdeConnection(host, timeout)
    try:
        rtde = [_timed(lambda: connection.request(_VERSION_REQUEST)) for _ in range(_REQUESTS)]
    finally:
        connection.close()
    with DashboardClient(host, timeout) as dashboard:
        commands = [_timed(lambda: dashboard.ask("robotmode")) for _ in range(_REQUESTS)]
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
    return network_facts(np.array(rtde), np.array(commands), np.array(arrivals), np.array(stamps), period)


def _timed(request: Callable[[], object]) -> float:
    begin = time.perf_counter()
    request()
    return time.perf_counter() - begin


def network_facts(rtde: Array, dashboard: Array, arrivals: Array, stamps: Array, period: float) -> NetworkFacts:
    """The facts from round-trip times, the arrival times of states by the host's clock, and their timestamps, all s."""
    offsets = arrivals - stamps
    steps = np.rint(np.diff(stamps) / period).astype(int)
    missed = int(np.maximum(steps - 1, 0).sum())
    return NetworkFacts(rtde, dashboard, offsets - offsets.min() if len(offsets) else offsets, missed, period)


def check_round_trip(network: NetworkFacts | None) -> Finding:
    """Whether the round trip to the controller is short."""
    name = "round trip"
    if network is None:
        return failed(name, "not measured: RTDE and the dashboard must answer", FIX_PORTS)
    typical = float(np.median(network.rtde))
    seen = (
        f"RTDE {typical * 1e3:.2f} ms (median), {network.rtde.max() * 1e3:.2f} ms (max); "
        f"dashboard {np.median(network.dashboard) * 1e3:.2f} ms (median)"
    )
    fix = "Connect this computer to the controller by a dedicated cable: no Wi-Fi, VPN or switch."
    return warned(name, seen, fix, unless=typical <= _LONGEST_ROUND_TRIP)


def check_jitter(network: NetworkFacts | None) -> Finding:
    """Whether a state arrives every period, on time."""
    name = "jitter"
    if network is None:
        return failed(name, "not measured: RTDE and the dashboard must answer", FIX_PORTS)
    count = len(network.lateness)
    if not count:
        return failed(name, "no state arrived", "The controller's clock stands still: restart it, or unpause URSim.")
    late = float(np.percentile(network.lateness, 99.0))
    seen = (
        f"{count} states, late by {late * 1e3:.2f} ms (p99), {network.lateness.max() * 1e3:.2f} ms (max); "
        f"{network.missed} missed"
    )
    period = f"Delays of more than a period ({network.period * 1e3:g} ms) make the arm jerk"
    fix = f"{period}: use a cable, and close other programs on both computers."
    return warned(name, seen, fix, unless=late <= network.period and not network.missed)
