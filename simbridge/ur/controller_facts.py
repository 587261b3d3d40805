"""Hold what a controller reports about itself and its arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simbridge.robot.arm_models import models_of_type
from simbridge.robot.pose import Array
from simbridge.text import join_words
from simbridge.ur import polyscope_x, tables
from simbridge.ur.errors import ControllerError, UnsupportedController
from simbridge.ur.polyscope_x import is_polyscope_x
from simbridge.ur.primary import ArmDescription, is_ursim
from simbridge.ur.tables import BRIDGE_PORTS, DASHBOARD, PRIMARY, REALTIME, RTDE

# The oldest major version of PolyScope that simbridge can drive.
OLDEST_MAJOR = 3


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
        safety_status_bits: Safety status bits by UR's number; 0 if they are not reported.
        build: Build of the software.
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
    build: int = 0

    @property
    def modes(self) -> tuple[int, int, int]:
        """Robot mode, safety mode and runtime state."""
        return self.robot_mode, self.safety_mode, self.runtime_state

    @property
    def version_text(self) -> str:
        """The version of the software, as "5.12.6"."""
        return ".".join(map(str, self.version))

    @property
    def is_polyscope_x(self) -> bool:
        """True if the software is PolyScope X."""
        return is_polyscope_x(self.version)

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
class PendantFacts:
    """Facts of the pendant's software: from the dashboard, or from PolyScope X's Robot API.

    Attributes:
        version: Version of PolyScope, as "5.12.6.1102099"; "" if unknown.
        serial_number: Serial number of the arm; None if it is not reported.
        remote_control: Whether programs from outside are accepted; None if it is not reported, or
            the version has no such switch.
        program: The loaded program, or "".
        serial_number_obstacle: Why PolyScope X's serial number is not known, as a clause; "" if it
            is.
        remote_control_obstacle: Why Local or Remote is not known on PolyScope X, as a clause; "" if
            it is.
    """

    version: str
    serial_number: str | None
    remote_control: bool | None
    program: str
    serial_number_obstacle: str = ""
    remote_control_obstacle: str = ""


@dataclass(frozen=True)
class ControllerFacts:
    """A controller that answers on every port that any run needs.

    Attributes:
        host: Address of the controller.
        state: The state from RTDE.
        pendant: Facts from the dashboard, or from the Robot API.
        arm: The arm by the primary interface.
        realtime_error: The error of the real-time port, which only ur_rtde needs; None if it
            answers, and on PolyScope X, where it is not asked.
    """

    host: str
    state: StateFacts
    pendant: PendantFacts
    arm: ArmDescription
    realtime_error: ControllerError | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The models that its arm may be, such as ("UR10e", "UR12e"); none if unknown."""
        return models_of_type(self.arm.robot_type, self.state.version[0])

    @property
    def model(self) -> str:
        """The models that it may be, as a text: "UR10e or UR12e"; "" if unknown."""
        return join_words(self.models, "or") if self.models else ""

    @property
    def emulated(self) -> bool:
        """True if this is the emulator."""
        return tables.is_emulator(self.pendant.serial_number, self.state.build)

    @property
    def ursim(self) -> bool:
        """True if this is URSim, without a real arm; on PolyScope X it is never known."""
        return is_ursim(self.arm.checksum) and not self.state.is_polyscope_x


@dataclass(frozen=True)
class Survey:
    """Holds what could be read of a controller.

    Attributes:
        host: Address of the controller.
        lost: The error of each port that could not be read.
        state: The state from RTDE; None if it could not be read.
        pendant: Facts from the dashboard or from the Robot API; None if the dashboard could not be
            read. PolyScope X always has them, with what kept the Robot API from being read.
        arm: The arm by the primary interface; None if it could not be read.
        has_robot_api: Whether a Robot API answered; only PolyScope X has one.
    """

    host: str
    lost: Mapping[int, ControllerError]
    state: StateFacts | None = None
    pendant: PendantFacts | None = None
    arm: ArmDescription | None = None
    has_robot_api: bool = False

    @property
    def version(self) -> tuple[int, ...] | None:
        """The version of the software, by RTDE or else by the primary interface; None if unknown.

        The primary interface reports major and minor version only.
        """
        if self.state is not None:
            return self.state.version
        if self.arm is not None and self.arm.software is not None:
            return self.arm.software
        return None

    @property
    def is_polyscope_x(self) -> bool:
        """True if the software is known to be PolyScope X."""
        version = self.version
        return self.has_robot_api if version is None else is_polyscope_x(version)

    @property
    def needed_ports(self) -> tuple[int, ...]:
        """The ports that simbridge needs; those of CB3 and e-Series if the software is unknown."""
        return polyscope_x.NEEDED_PORTS if self.is_polyscope_x else BRIDGE_PORTS

    @property
    def kind(self) -> str:
        """The kind of the controller, as far as it could be read; see `tables.controller_kind`."""
        serial_number = None if self.pendant is None else self.pendant.serial_number
        build = 0 if self.state is None else self.state.build
        emulated = tables.is_emulator(serial_number, build)
        ursim = self.arm is not None and is_ursim(self.arm.checksum) and not self.is_polyscope_x
        return tables.controller_kind(emulated=emulated, ursim=ursim)

    @property
    def unsupported(self) -> UnsupportedController | None:
        """The reason why this software cannot be driven; None if it can."""
        error = self.lost.get(RTDE)
        if isinstance(error, UnsupportedController):
            return error
        return None if self.state is None else why_unsupported(self.host, self.state.version)

    def complete(self) -> ControllerFacts:
        """Return everything that a run needs, or raise the error of what is missing.

        Raises:
            UnsupportedController: The software cannot be driven.
            ConnectionLost: A port could not be read; the first in the order RTDE, dashboard,
                primary. The real-time port need not answer.
        """
        if self.unsupported is not None:
            raise self.unsupported
        for port in (RTDE, DASHBOARD, PRIMARY):
            if port in self.lost and port in self.needed_ports:
                raise self.lost[port]
        assert self.state is not None
        assert self.arm is not None
        assert self.pendant is not None

        realtime_error = self.lost.get(REALTIME)
        return ControllerFacts(self.host, self.state, self.pendant, self.arm, realtime_error)


def why_unsupported(host: str, version: tuple[int, int, int]) -> UnsupportedController | None:
    """Return the error for a version that simbridge cannot drive, or None."""
    version_text = ".".join(map(str, version))
    if is_polyscope_x(version) and version[:2] < polyscope_x.OLDEST_DRIVEN:
        oldest = ".".join(map(str, polyscope_x.OLDEST_DRIVEN))
        reason = f"PolyScope X can be driven from {oldest} on; update it."
        return UnsupportedController(host, version_text, reason)
    if version[0] < OLDEST_MAJOR:
        reason = "It is older than PolyScope 3; update it."
        return UnsupportedController(host, version_text, reason)
    return None
