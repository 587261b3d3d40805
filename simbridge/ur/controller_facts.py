"""Hold what a controller reports about itself and its arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simbridge.robot.pose import Array
from simbridge.ur import tables
from simbridge.ur.errors import ControllerError, UnsupportedController
from simbridge.ur.primary import ArmDescription, is_ursim
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, RTDE

# Later arms with the same kinematics as these. No robot types of their own are known.
SUCCESSORS = {"UR5e": "UR7e", "UR10e": "UR12e"}

# Major versions of PolyScope that simbridge can drive are from the first and below the second.
OLDEST_MAJOR = 3
POLYSCOPE_X_MAJOR = 10
E_SERIES_MAJOR = 5


@dataclass(frozen=True, eq=False)
class StateFacts:
    """One state from RTDE.

    Attributes:
        version: Of the software: major, minor, bugfix.
        timestamp: The controller's clock, s.
        robot_mode: As numbered by UR (7: ready).
        safety_mode: As numbered by UR (1: normal).
        runtime_state: As numbered by UR (1: no program runs).
        slider: The speed slider (target_speed_fraction), 0..1.
        q: Measured joint positions (6,), rad.
        payload: Mass, kg; None if the version does not report it (before 3.11 and 5.5).
        payload_cog: Its centre of gravity in the flange (3,), m; None if the version does not
            report it.
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
        """The series, "CB3" or "e-Series", as in robots/*.toml."""
        series, _ = tables.series_and_period(self.version[0])
        return series

    @property
    def period(self) -> float:
        """Control period, s."""
        _, period = tables.series_and_period(self.version[0])
        return period


@dataclass(frozen=True)
class DashboardFacts:
    """Holds what the dashboard reports.

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
    """A controller that answers on every port that the bridge needs.

    Attributes:
        host: Its address.
        state: From RTDE.
        dashboard: From the dashboard.
        arm: From the primary interface.
    """

    host: str
    state: StateFacts
    dashboard: DashboardFacts
    arm: ArmDescription

    @property
    def model(self) -> str | None:
        """The model, such as "UR10" or "UR10e"; None if unknown."""
        return model_name(self.arm.robot_type, self.state.version[0])

    @property
    def ursim(self) -> bool:
        """True if this is URSim, without a real arm."""
        return is_ursim(self.arm.checksum)


@dataclass(frozen=True)
class Survey:
    """Holds what could be read of a controller.

    Attributes:
        host: Its address.
        lost: The error of each port that was lost.
        state: From RTDE; None where it could not be read.
        dashboard: From the dashboard, the same.
        arm: From the primary interface, the same.
    """

    host: str
    lost: Mapping[int, ControllerError]
    state: StateFacts | None = None
    dashboard: DashboardFacts | None = None
    arm: ArmDescription | None = None

    @property
    def kind(self) -> str:
        """What the controller is, as far as it could be read; see `tables.controller_kind`."""
        serial_number = None if self.dashboard is None else self.dashboard.serial_number
        ursim = self.arm is not None and is_ursim(self.arm.checksum)
        return tables.controller_kind(serial_number, ursim=ursim)

    @property
    def unsupported(self) -> UnsupportedController | None:
        """Why this software cannot be driven, or None."""
        error = self.lost.get(RTDE)
        if isinstance(error, UnsupportedController):
            return error
        return None if self.state is None else why_unsupported(self.host, self.state.version)

    def complete(self) -> ControllerFacts:
        """Return all of it, or raise the error of what is missing.

        Raises:
            UnsupportedController: The software cannot be driven.
            ConnectionLost: A port could not be read; the first in the order RTDE, dashboard,
                primary, real-time.
        """
        if self.unsupported is not None:
            raise self.unsupported
        for port in (RTDE, DASHBOARD, PRIMARY, REALTIME):
            if port in self.lost:
                raise self.lost[port]
        assert self.state is not None
        assert self.dashboard is not None
        assert self.arm is not None
        return ControllerFacts(self.host, self.state, self.dashboard, self.arm)


def model_name(robot_type: int | None, major: int) -> str | None:
    """Return the model of a robot type.

    UR10 and UR10e share theirs, and differ in the version.

    Args:
        robot_type: As numbered by UR.
        major: Version of the software.

    Returns:
        "UR10", "UR10e", ...; None for an unknown type.
    """
    if robot_type not in tables.ROBOT_TYPES:
        return None
    model = tables.ROBOT_TYPES[robot_type]
    is_e_series = major >= E_SERIES_MAJOR and robot_type in tables.E_SERIES_TYPES
    return f"{model}e" if is_e_series else model


def successors(model: str | None) -> str:
    """Return a model with the later arm that shares its robot type: "UR10e (or UR12e)".

    "" for None.
    """
    later = SUCCESSORS.get(model or "")
    return f"{model} (or {later})" if later else model or ""


def is_model(model: str, title: str) -> bool:
    """Return whether the arm of a controller may be one with a title: it, or its successor.

    Args:
        model: As the controller reports it.
        title: Of the arm.
    """
    return title.lower() in (model.lower(), SUCCESSORS.get(model, model).lower())


def why_unsupported(host: str, version: tuple[int, int, int]) -> UnsupportedController | None:
    """Return the error for a version that simbridge cannot drive, or None."""
    version_text = ".".join(map(str, version))
    if version[0] >= POLYSCOPE_X_MAJOR:
        reason = (
            "PolyScope X has neither the dashboard server nor the script port that ur_rtde needs. "
            "An e-Series arm with PolyScope 5, or a CB3 with PolyScope 3, can be driven."
        )
        return UnsupportedController(host, version_text, reason)
    if version[0] < OLDEST_MAJOR:
        reason = "It is older than PolyScope 3; update it."
        return UnsupportedController(host, version_text, reason)
    return None
