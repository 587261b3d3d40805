"""What a controller reports about itself and its arm, and which of its modes keep the arm from moving.

It is read before anything is moved or claimed, each port independently, so that a silent one does not hide what the
others report.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from simbridge.robot.pose import Array
from simbridge.ur import errors, tables
from simbridge.ur.dashboard import DashboardClient
from simbridge.ur.errors import ConnectionLost, ControllerError, UnsupportedController
from simbridge.ur.primary import ArmDescription, is_ursim, read_arm_description
from simbridge.ur.rtde import RtdeConnection, RtdeReader
from simbridge.ur.tables import DASHBOARD, PRIMARY, PROGRAM_RUNS, REALTIME, RTDE

# Later arms with the same kinematics as these. No robot types of their own are known.
_SUCCESSORS = {"UR5e": "UR7e", "UR10e": "UR12e"}
FULL_SPEED = 0.999  # speed scaling above this is full speed
# What ur_rtde's control interface writes, as seen on the wire with ur_rtde 1.6.5 (23 recipes with these variables).
WRITTEN_BY_THE_BRIDGE = (
    *(f"input_int_register_{i}" for i in range(8)),
    *(f"input_double_register_{i}" for i in range(18)),
    "external_force_torque",
)

_NEEDED = (
    "timestamp", "robot_mode", "safety_mode", "runtime_state", "target_speed_fraction", "speed_scaling", "actual_q",
)  # fmt: skip
_OPTIONAL = ("payload", "payload_cog")
# Attempts to claim registers, and the time between them, s, in which a controller notices that a client has left.
_ATTEMPTS, _RELEASE_TIME = 3, 0.25


@dataclass(frozen=True, eq=False)
class StateFacts:
    """One state from RTDE.

    Attributes:
        version: Of the software: major, minor, bugfix.
        timestamp: The controller's clock, s.
        robot_mode, safety_mode, runtime_state: As numbered by UR (7, 1 and 1: ready, and no program runs).
        slider: The speed slider (target_speed_fraction), 0..1.
        q: Measured joint positions (6,), rad.
        payload, payload_cog: Mass, kg, and centre of gravity in the flange (3,), m; None if the version does not report
            them (before 3.11 and 5.5).
    """

    version: tuple[int, int, int]
    timestamp: float
    robot_mode: int
    safety_mode: int
    runtime_state: int
    slider: float
    q: Array
    payload: float | None
    payload_cog: tuple[float, float, float] | None

    @property
    def modes(self) -> tuple[int, int, int]:
        """Robot mode, safety mode and runtime state."""
        return self.robot_mode, self.safety_mode, self.runtime_state

    @property
    def series(self) -> str:
        """ "CB3" or "e-Series", as in robots/*.toml."""
        return tables.series_and_period(self.version[0])[0]

    @property
    def period(self) -> float:
        """Control period, s."""
        return tables.series_and_period(self.version[0])[1]


@dataclass(frozen=True)
class DashboardFacts:
    """What the dashboard reports.

    Attributes:
        version: Of PolyScope, as "5.12.6.1102099"; "" if unknown.
        serial_number: None if the version does not report it.
        remote_control: None if the version has no such switch.
        program: Path of the loaded program, or "".
    """

    version: str
    serial_number: str | None
    remote_control: bool | None
    program: str


@dataclass(frozen=True)
class ControllerFacts:
    """A controller that answers on every port that the bridge needs: RTDE, dashboard and primary interface."""

    host: str
    state: StateFacts
    dashboard: DashboardFacts
    arm: ArmDescription

    @property
    def model(self) -> str | None:
        """ "UR10", "UR10e", ...; None if unknown."""
        return model_name(self.arm.robot_type, self.state.version[0])

    @property
    def ursim(self) -> bool:
        """Whether this is URSim, without a real arm."""
        return is_ursim(self.arm.checksum)


@dataclass(frozen=True)
class Survey:
    """What could be read of a controller, and the error of each port that was lost."""

    host: str
    lost: Mapping[int, ControllerError]
    state: StateFacts | None = None
    dashboard: DashboardFacts | None = None
    arm: ArmDescription | None = None

    @property
    def unsupported(self) -> UnsupportedController | None:
        """Why this software cannot be driven, or None."""
        error = self.lost.get(RTDE)
        if isinstance(error, UnsupportedController):
            return error
        return None if self.state is None else why_unsupported(self.host, self.state.version)

    def complete(self) -> ControllerFacts:
        """All of it, or an error.

        Raises:
            UnsupportedController: The software cannot be driven.
            ConnectionLost: A port could not be read; the first in the order RTDE, dashboard, primary, real-time.
        """
        if self.unsupported is not None:
            raise self.unsupported
        for port in (RTDE, DASHBOARD, PRIMARY, REALTIME):
            if port in self.lost:
                raise self.lost[port]
        assert self.state is not None and self.dashboard is not None and self.arm is not None
        return ControllerFacts(self.host, self.state, self.dashboard, self.arm)


def model_name(robot_type: int | None, major: int) -> str | None:
    """The model of a robot type, None for an unknown one; UR10 and UR10e share theirs, and differ in the version."""
    if robot_type not in tables.ROBOT_TYPES:
        return None
    return tables.ROBOT_TYPES[robot_type] + (
        "e" if major >= 5 and robot_type in tables.E_SERIES_TYPES else ""
    )


def successors(model: str | None) -> str:
    """The model, with the later arm that shares its robot type: "UR10e (or UR12e)"; "" for None."""
    later = _SUCCESSORS.get(model or "")
    return f"{model} (or {later})" if later else model or ""


def is_model(model: str, title: str) -> bool:
    """Whether an arm that a controller reports as `model` may be the one with this title: it, or its successor."""
    return title.lower() in (model.lower(), _SUCCESSORS.get(model, model).lower())


def why_unsupported(host: str, version: tuple[int, int, int]) -> UnsupportedController | None:
    """The error for a version that simbridge cannot drive, or None."""
    named = ".".join(map(str, version))
    if version[0] >= 10:
        reason = (
            "PolyScope X has neither the dashboard server nor the script port that ur_rtde needs. An e-Series arm with "
            "PolyScope 5, or a CB3 with PolyScope 3, can be driven."
        )
        return UnsupportedController(host, named, reason)
    if version[0] < 3:
        return UnsupportedController(host, named, "It is older than PolyScope 3; update it.")
    return None


# Reading


def read_controller(host: str, timeout: float = 2.0) -> ControllerFacts:
    """Read everything about a controller, the ports in parallel; moves nothing, claims nothing.

    Args:
        host: Its address.
        timeout: For each connection and each answer, s.

    Raises:
        ConnectionLost: A port on which nothing listens, or no valid answer comes.
        UnsupportedController: PolyScope X, or a version older than CB3's.
    """
    return survey(host, timeout).complete()


def survey(host: str, timeout: float = 2.0) -> Survey:
    """Like `read_controller`, but a port that fails is recorded, and the others are still read."""
    readers: dict[int, Callable[[str, float], Any]] = {
        RTDE: _read_state,
        DASHBOARD: _read_dashboard,
        PRIMARY: read_arm_description,
        REALTIME: _listen,
    }

    lost: dict[int, ControllerError] = {}

    def read(port: int) -> Any:
        try:
            return readers[port](host, timeout)
        except ControllerError as error:
            lost[port] = error
        except UnicodeError:  # from looking up an invalid name
            lost[port] = ConnectionLost(host, port, "no connection (there is no host of that name)")

    with ThreadPoolExecutor(len(readers)) as pool:
        state, dashboard, arm, _ = pool.map(read, readers)
    return Survey(
        host, {port: lost[port] for port in readers if port in lost}, state, dashboard, arm
    )


def registers_taken(host: str) -> tuple[str, ...]:
    """The RTDE inputs that the bridge would write and another client has already claimed.

    Tries to claim all of them on a separate connection. A controller that refuses one grants none. Granted inputs are
    released when the controller notices that the connection has ended, possibly a moment later; so there are several
    attempts, and a client that has just left is not reported. Nothing is written.

    Raises:
        ConnectionLost: Port 30004 does not answer.
    """
    for _ in range(_ATTEMPTS - 1):
        taken = _refused(host)
        if not taken:
            return ()
        time.sleep(_RELEASE_TIME)
    return _refused(host)


def _refused(host: str) -> tuple[str, ...]:
    with RtdeConnection(host) as connection:
        types = connection.input_types(WRITTEN_BY_THE_BRIDGE)
    return tuple(
        name for name, kind in zip(WRITTEN_BY_THE_BRIDGE, types, strict=False) if kind == "IN_USE"
    )


def _read_state(host: str, timeout: float) -> StateFacts:
    with RtdeReader(host, (*_NEEDED, *_OPTIONAL), timeout=timeout) as reader:
        state, version = reader.first(), reader.version[:3]
    missing = [name for name in _NEEDED if name not in state]
    if missing:
        named = ".".join(map(str, version))
        raise UnsupportedController(
            host, named, f"Its RTDE does not have {', '.join(missing)}; update PolyScope."
        )
    q = np.array(state["actual_q"])
    q.setflags(write=False)
    return StateFacts(
        version=version,
        timestamp=state["timestamp"],
        robot_mode=state["robot_mode"],
        safety_mode=state["safety_mode"],
        runtime_state=state["runtime_state"],
        slider=state["target_speed_fraction"],
        q=q,
        payload=state.get("payload"),
        payload_cog=state.get("payload_cog"),
    )


def _read_dashboard(host: str, timeout: float) -> DashboardFacts:
    with DashboardClient(host, timeout) as dashboard:
        return DashboardFacts(
            version=dashboard.polyscope_version(),
            serial_number=dashboard.serial_number(),
            remote_control=dashboard.is_in_remote_control(),
            program=dashboard.loaded_program(),
        )


def _listen(host: str, timeout: float) -> None:
    """Wait for any byte on the real-time port, on which a controller sends 125 or 500 times per second."""
    deadline = time.monotonic() + timeout
    try:
        with socket.create_connection((host, REALTIME), timeout=timeout) as connection:
            connection.settimeout(max(deadline - time.monotonic(), 1e-3))
            if not connection.recv(1):
                raise ConnectionLost(host, REALTIME, "the controller ended the connection")
    except TimeoutError:
        raise ConnectionLost(host, REALTIME, f"nothing came within {timeout:g} s") from None
    except ConnectionLost:
        raise
    except OSError as error:
        raise ConnectionLost(host, REALTIME, f"no connection ({error.strerror or error})") from None


# What a state means for an arm that is to move

_SAFETY_STOPS: dict[int, type[errors.ArmStopped]] = {
    tables.SafetyMode.PROTECTIVE_STOP: errors.ProtectiveStop,
    tables.SafetyMode.SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.SYSTEM_EMERGENCY_STOP: errors.EmergencyStop,
    tables.SafetyMode.ROBOT_EMERGENCY_STOP: errors.EmergencyStop,
    # Newer versions report the source: enabling devices, fieldbuses, interfaces of machines.
    tables.SafetyMode.AUTOMATIC_MODE_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.SYSTEM_THREE_POSITION_ENABLING_STOP: errors.SafeguardStop,
    tables.SafetyMode.PENDANT_THREE_POSITION_ENABLING_STOP: errors.SafeguardStop,
    tables.SafetyMode.IMMI_EMERGENCY_STOP: errors.EmergencyStop,
    tables.SafetyMode.IMMI_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.PROFISAFE_AUTOMATIC_MODE_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.PROFISAFE_SAFEGUARD_STOP: errors.SafeguardStop,
    tables.SafetyMode.PROFISAFE_EMERGENCY_STOP: errors.EmergencyStop,
    tables.SafetyMode.SAFETY_API_SAFEGUARD_STOP: errors.SafeguardStop,
}


def safety_stop(safety_mode: int, safety_status_bits: int = 0) -> type[errors.ArmStopped] | None:
    """Why the safety system stops the arm; None when it does not (normal, reduced)."""
    if safety_mode in _SAFETY_STOPS:
        return _SAFETY_STOPS[safety_mode]
    if safety_status_bits >> 5 & 0b111:
        return errors.EmergencyStop
    if safety_status_bits >> 2 & 1:
        return errors.ProtectiveStop
    if safety_status_bits >> 4 & 1:
        return errors.SafeguardStop
    return (
        None
        if safety_mode in (tables.SafetyMode.NORMAL, tables.SafetyMode.REDUCED)
        else errors.SafetyFault
    )


def stop_of(state: Mapping[str, Any]) -> type[errors.ArmStopped] | None:
    """What stops an arm whose control script should run, the safety system first; None when it can move."""
    stop = safety_stop(state["safety_mode"], state.get("safety_status_bits", 0))
    if stop is not None:
        return stop
    if state["robot_mode"] != tables.RobotMode.RUNNING:
        return errors.ArmNotReady
    return None if state["runtime_state"] in PROGRAM_RUNS else errors.ProgramStopped


def modes_of(state: Mapping[str, Any]) -> tuple[int, int, int]:
    """Robot mode, safety mode and runtime state."""
    return state["robot_mode"], state["safety_mode"], state["runtime_state"]


def scaling_of(state: Mapping[str, Any]) -> float:
    """The controller's present speed factor, 0..1; 0 while its program is paused."""
    if state["runtime_state"] != tables.RuntimeState.PLAYING:
        return 0.0
    scaling = float(state["speed_scaling"]) * float(state["target_speed_fraction"])
    return 1.0 if scaling > FULL_SPEED else max(scaling, 0.0)
