"""What a controller reports about itself and its arm, as plain data; and which modes keep an arm from moving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simbridge.robot.pose import Array
from simbridge.ur import errors, tables
from simbridge.ur.primary import ArmDescription, is_ursim

# Later arms with the same kinematics as these. No robot types of their own are known.
_SUCCESSORS = {"UR5e": "UR7e", "UR10e": "UR12e"}
FULL_SPEED = 0.999  # speed scaling above this is full speed


@dataclass(frozen=True, eq=False)
class StateFacts:
    """One state from RTDE.

    Attributes:
        version: Of the software: major, minor, bugfix.
        timestamp: The controller's clock, s.
        robot_mode, safety_mode, runtime_state: As numbered by UR (7, 1 and 1: ready, and no program runs).
        slider: The speed slider, 0..1 (target_speed_fraction).
        speed_scaling: The present one, 0..1.
        q: Measured joint positions (6,), rad.
        payload: kg; None if the version does not report it (before 3.11 and 5.5).
        payload_cog: Its centre of gravity in the flange (3,), m; or None.
    """

    version: tuple[int, int, int]
    timestamp: float
    robot_mode: int
    safety_mode: int
    runtime_state: int
    slider: float
    speed_scaling: float
    q: Array
    payload: float | None
    payload_cog: tuple[float, float, float] | None

    @property
    def series(self) -> str:
        """ "CB3" or "e-Series", as in robots/*.toml."""
        return "CB3" if self.version[0] <= 3 else "e-Series"

    @property
    def period(self) -> float:
        """Control period, s."""
        return 0.008 if self.version[0] <= 3 else 0.002


@dataclass(frozen=True)
class DashboardFacts:
    """What the dashboard reports.

    Attributes:
        version: Of PolyScope, as "5.12.6.1102099"; "" if unknown.
        serial_number: None if the version does not report it.
        remote_control: None if the version has no such switch.
        program_state: "STOPPED", "PLAYING" or "PAUSED" and a name.
        program: Path of the loaded program, or "".
    """

    version: str
    serial_number: str | None
    remote_control: bool | None
    program_state: str
    program: str


@dataclass(frozen=True)
class ControllerFacts:
    """A controller that answers on every port that the bridge needs.

    Attributes:
        host: Its address.
        state, dashboard, arm: Read from RTDE, the dashboard and the primary interface.
    """

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
    """What could be read of a controller.

    Attributes:
        host: Its address.
        lost: The error of each port that could not be read.
        state, dashboard, arm: None if their port is among those.
    """

    host: str
    lost: Mapping[int, errors.ControllerError]
    state: StateFacts | None = None
    dashboard: DashboardFacts | None = None
    arm: ArmDescription | None = None

    @property
    def unsupported(self) -> errors.UnsupportedController | None:
        """Why this software cannot be driven, or None."""
        error = self.lost.get(tables.RTDE)
        if isinstance(error, errors.UnsupportedController):
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
        for port in (tables.RTDE, tables.DASHBOARD, tables.PRIMARY, tables.REALTIME):
            if port in self.lost:
                raise self.lost[port]
        assert self.state is not None and self.dashboard is not None and self.arm is not None
        return ControllerFacts(self.host, self.state, self.dashboard, self.arm)


def model_name(robot_type: int | None, major: int) -> str | None:
    """The model of a robot type; UR10 and UR10e share theirs, and differ in the major version.

    Returns:
        "UR10", "UR10e", "UR20", ...; None for an unknown type.
    """
    if robot_type not in tables.ROBOT_TYPES:
        return None
    return tables.ROBOT_TYPES[robot_type] + ("e" if major >= 5 and robot_type in tables.E_SERIES_TYPES else "")


def successors(model: str | None) -> str:
    """The model, with the later arm that shares its robot type: "UR10e (or UR12e)"; "" for None."""
    later = _SUCCESSORS.get(model or "")
    return f"{model} (or {later})" if later else model or ""


def is_model(model: str, title: str) -> bool:
    """Whether an arm that a controller reports as `model` may be the one with this title: it, or its successor."""
    return title.lower() in (model.lower(), _SUCCESSORS.get(model, model).lower())


def why_unsupported(host: str, version: tuple[int, int, int]) -> errors.UnsupportedController | None:
    """The error for a version that simbridge cannot drive, or None."""
    named = ".".join(map(str, version))
    if version[0] >= 10:
        reason = (
            "PolyScope X has neither the dashboard server nor the script port that ur_rtde needs. An e-Series arm with "
            "PolyScope 5, or a CB3 with PolyScope 3, can be driven."
        )
        return errors.UnsupportedController(host, named, reason)
    if version[0] < 3:
        return errors.UnsupportedController(host, named, "It is older than PolyScope 3; update it.")
    return None


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
    return None if safety_mode in (tables.SafetyMode.NORMAL, tables.SafetyMode.REDUCED) else errors.SafetyFault


def stop_of(state: Mapping[str, Any]) -> type[errors.ArmStopped] | None:
    """What stops an arm whose control script should run, the safety system first; None when it can move."""
    stop = safety_stop(state["safety_mode"], state.get("safety_status_bits", 0))
    if stop is not None:
        return stop
    if state["robot_mode"] != tables.RobotMode.RUNNING:
        return errors.ArmNotReady
    return None if state["runtime_state"] in tables.PROGRAM_RUNS else errors.ProgramStopped


def scaling_of(state: Mapping[str, Any]) -> float:
    """The controller's present speed factor, 0..1; 0 while its program is paused."""
    if state["runtime_state"] != tables.RuntimeState.PLAYING:
        return 0.0
    scaling = float(state["speed_scaling"]) * float(state["target_speed_fraction"])
    return 1.0 if scaling > FULL_SPEED else max(scaling, 0.0)
