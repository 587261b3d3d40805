"""Hold what a controller reports about itself and its arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simbridge.robot.arm_models import models_of_type
from simbridge.robot.pose import Array
from simbridge.text import join_words
from simbridge.ur import tables
from simbridge.ur.errors import ControllerError, UnsupportedController
from simbridge.ur.primary import ArmDescription, is_ursim
from simbridge.ur.tables import DASHBOARD, PRIMARY, REALTIME, RTDE

# Major versions of PolyScope that simbridge can drive are from the first and below the second.
OLDEST_MAJOR = 3
POLYSCOPE_X_MAJOR = 10


@dataclass(frozen=True, eq=False)
class StateFacts:
    """One state from RTDE.

    Attributes:
        version: Version of the software: major, minor, bugfix.
        timestamp: The controller's clock, s.
        robot_mode: Robot mode by UR's number (7: ready).
        safety_mode: Safety mode by UR's number (1: normal).
        runtime_state: Runtime state by UR's number (1: no program runs).
        slider: The speed slider (target_speed_fraction), 0..1.
        q: Measured joint positions (6,), rad.
        payload: Mass of the payload, kg; None if the version does not report it (before 3.11 and
            5.5).
        payload_cog: Centre of gravity of the payload in the flange (3,), m; None if the version
            does not report it.
        safety_status_bits: Safety status bits by UR's number; 0 where they are not reported.
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
    safety_status_bits: int = 0

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
    """Facts that the dashboard reports.

    Attributes:
        version: Version of PolyScope, as "5.12.6.1102099"; "" if unknown.
        serial_number: Serial number of the arm; None if the version does not report it.
        remote_control: Whether remote control is on; None if the version has no such switch.
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
    def models(self) -> tuple[str, ...]:
        """The models that its arm may be, such as ("UR10e", "UR12e"); none if unknown."""
        return models_of_type(self.arm.robot_type, self.state.version[0])

    @property
    def model(self) -> str:
        """The models that it may be, as a text: "UR10e or UR12e"; "" if unknown."""
        return join_words(self.models, "or") if self.models else ""

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


def why_unsupported(host: str, version: tuple[int, int, int]) -> UnsupportedController | None:
    """Return the error for a version that simbridge cannot drive, or None."""
    version_text = ".".join(map(str, version))
    if version[0] >= POLYSCOPE_X_MAJOR:
        reason = (
            "PolyScope X has neither the dashboard server nor the script port that ur_rtde needs. "
            "Arms of the e-Series and the UR Series can be driven with PolyScope 5, CB3 arms with "
            "PolyScope 3."
        )
        return UnsupportedController(host, version_text, reason)
    if version[0] < OLDEST_MAJOR:
        reason = "It is older than PolyScope 3; update it."
        return UnsupportedController(host, version_text, reason)
    return None
