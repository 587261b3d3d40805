"""What a controller says of itself and its arm, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simbridge.robot.pose import Array
from simbridge.ur.errors import ControllerError, UnsupportedController
from simbridge.ur.primary import ArmDescription, is_ursim

DASHBOARD, PRIMARY, REAL_TIME, RTDE = 29999, 30001, 30003, 30004
PORTS = (DASHBOARD, PRIMARY, REAL_TIME, RTDE)  # all that the bridge needs

_MODELS = {
    1: "UR5",
    2: "UR10",
    3: "UR3",
    4: "UR16",
    5: "UR18",
    6: "UR8 Long",
    7: "UR20",
    8: "UR30",
    9: "UR15",
}  # UR's own client library
_WITH_AN_E = (1, 2, 3, 4)
# Later arms with the same kinematics as these, of which no robot type of their own is known to us.
_SUCCESSORS = {"UR5e": "UR7e", "UR10e": "UR12e"}


@dataclass(frozen=True, eq=False)
class StateFacts:
    """One state from RTDE.

    Attributes:
        version: Of the software: major, minor, bugfix.
        timestamp: The controller's clock, s.
        robot_mode, safety_mode, runtime_state: As numbered by UR (7, 1 and 1: ready, and no program runs).
        slider: The speed slider, 0..1 (target_speed_fraction).
        speed_scaling: In force at that instant, 0..1.
        q: Measured joint positions (6,), rad.
        payload: kg; None where the software does not tell (before 3.11 and 5.5).
        payload_cog: Its centre of gravity in the flange (3,), m; None likewise.
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
    """What the dashboard tells.

    Attributes:
        version: Of PolyScope, as "5.12.6.1102099"; "" where it does not tell.
        serial_number: None where the software does not tell.
        remote_control: None where the software knows no such switch.
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
    """A controller that answers on every port the bridge needs.

    Attributes:
        host: Its address.
        state, dashboard, arm: What RTDE, the dashboard and the primary interface tell.
    """

    host: str
    state: StateFacts
    dashboard: DashboardFacts
    arm: ArmDescription

    @property
    def version(self) -> tuple[int, int, int]:
        """Of the software: major, minor, bugfix."""
        return self.state.version

    @property
    def series(self) -> str:
        """ "CB3" or "e-Series"."""
        return self.state.series

    @property
    def period(self) -> float:
        """Control period, s."""
        return self.state.period

    @property
    def model(self) -> str | None:
        """ "UR10", "UR10e", ...; None where the controller does not tell."""
        return model_name(self.arm.robot_type, self.version[0])

    @property
    def serial_number(self) -> str | None:
        """Of the arm; None where the software does not tell."""
        return self.dashboard.serial_number

    @property
    def ursim(self) -> bool:
        """Whether there is no real arm behind the controller."""
        return is_ursim(self.arm.checksum)


@dataclass(frozen=True)
class Survey:
    """What could be read of a controller.

    Attributes:
        host: Its address.
        lost: The ports that could not be read, each with the reason.
        state, dashboard, arm: None when their port is among those.
    """

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
        """All of it.

        Raises:
            UnsupportedController: The software cannot be driven.
            ConnectionLost: A port could not be read; the first in the order RTDE, dashboard, primary, real-time.
        """
        if self.unsupported is not None:
            raise self.unsupported
        for port in (RTDE, DASHBOARD, PRIMARY, REAL_TIME):
            if port in self.lost:
                raise self.lost[port]
        assert self.state is not None and self.dashboard is not None and self.arm is not None
        return ControllerFacts(self.host, self.state, self.dashboard, self.arm)


def model_name(robot_type: int | None, major: int) -> str | None:
    """The model behind a robot type; the major version tells UR10 from UR10e, which share theirs.

    Returns:
        "UR10", "UR10e", "UR20", ...; None for a type that is not told or not known.
    """
    if robot_type not in _MODELS:
        return None
    return _MODELS[robot_type] + ("e" if major >= 5 and robot_type in _WITH_AN_E else "")


def successors(model: str | None) -> str:
    """The model with the later arm that shares its robot type: "UR10e (or UR12e)"; "" for None."""
    later = _SUCCESSORS.get(model or "")
    return f"{model} (or {later})" if later else model or ""


def is_model(model: str, title: str) -> bool:
    """Whether an arm that a controller calls `model` may be the one of that title: itself, or its successor."""
    return title.lower() in (model.lower(), _SUCCESSORS.get(model, model).lower())


def why_unsupported(host: str, version: tuple[int, int, int]) -> UnsupportedController | None:
    """The error for software that simbridge cannot drive, or None."""
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
