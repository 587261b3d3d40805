"""The arm behind servoj: the tuning of the servo law, and the lag of the joints."""

from __future__ import annotations

import msgspec

from simbridge.errors import InvalidParameter
from simbridge.files.toml_file import TomlFile
from simbridge.resources import AnyPath
from simbridge.servo.law import GAIN, LOOKAHEAD, ServojLaw

# Delay of the joints of real e-Series arms behind their targets, s (docs/validation.md).
JOINT_LAG = 0.0005

# How far the joints of arms before the e-Series trail their targets for each rad/s^2 of their
# acceleration, s^2: fits to two or three arms gave 1.4e-4 to 5.6e-4 (docs/validation.md).
ACCELERATION_LAG_CB3 = 3.5e-4

# The largest delay of the joints that a file may give, s.
MAX_JOINT_LAG_S = 0.002
# The largest acceleration lag that a file may give, s^2.
MAX_ACCELERATION_LAG_S2 = 0.002
# The phase that a file may give is shorter than this, s. So are the cycles of UR's controllers, of
# which that of a CB3 is the longest: 8 ms.
MAX_PHASE_S = 0.01

# The cycle with which the numbers of a file are checked, s: the controller's is not known when a
# file is read, and the shortest is the most permissive.
SHORTEST_CYCLE_S = 1e-4

# A period counts as a multiple of a cycle within this fraction of the cycle.
MULTIPLE_TOLERANCE = 1e-6


class Plant(msgspec.Struct, frozen=True):
    """Parameters of an arm that servoj moves, and the file that they come from.

    Attributes:
        gain: Gain of servoj, 1/s^2.
        lookahead: Lookahead of servoj, s.
        phase: Time from the start of a controller's cycle to that of its calls, s.
        joint_lag: Delay of the joints behind their targets, s.
        acceleration_lag: How far the joints trail their targets, besides, for each rad/s^2 of the
            targets' acceleration, s^2; None for that of the arm's series.
        gain_deviation: One standard deviation of the gain as identified, 1/s^2; 0 if not known.
        lookahead_deviation: One standard deviation of the lookahead, s; 0 if not known.
        source: The file of the numbers; "" for the defaults and the command line.
        robot: Name of the arm that the file was identified of; "" if it names none.
        replaced: What of the file was replaced by another value: "gain", "lookahead".
        not_simulated: What else the file says of the arm, as "payload 1.66 kg, friction"; "" for
            nothing.
    """

    gain: float = GAIN
    lookahead: float = LOOKAHEAD
    phase: float = 0.0
    joint_lag: float = JOINT_LAG
    acceleration_lag: float | None = None
    gain_deviation: float = 0.0
    lookahead_deviation: float = 0.0
    source: str = ""
    robot: str = ""
    replaced: tuple[str, ...] = ()
    not_simulated: str = ""

    def law(self, cycle: float) -> ServojLaw:
        """Return the servo law on a controller with a cycle, s.

        Raises:
            InvalidParameter: The tuning is unstable, or phase or joint lag do not fit the cycle.
        """
        if not 0.0 <= self.phase < cycle:
            needed = f"shorter than the cycle of {cycle:g} s"
            raise InvalidParameter("phase of the plant", f"{self.phase:g} s", needed)
        if not 0.0 <= self.joint_lag <= cycle:
            needed = f"no longer than the cycle of {cycle:g} s"
            raise InvalidParameter("joint lag of the plant", f"{self.joint_lag:g} s", needed)
        return ServojLaw(cycle, self.gain, self.lookahead)

    def with_series(self, series: str) -> Plant:
        """Return this plant with the acceleration lag of an arm's series where it has none.

        Args:
            series: The controller's series, as `Robot.series`.
        """
        if self.acceleration_lag is not None:
            return self
        return msgspec.structs.replace(self, acceleration_lag=acceleration_lag_of(series))

    def phase_lag(self, cycle: float) -> float:
        """Return how much longer the joint targets trail a steady motion because of the phase, s.

        The two steps of each cycle add 3 p - 2 p^2 / h, with one call each cycle.

        Args:
            cycle: h, s.
        """
        return 3.0 * self.phase - 2.0 * self.phase**2 / cycle


def acceleration_lag_of(series: str) -> float:
    """Return the acceleration lag of the joints of a series, s^2.

    Args:
        series: The controller's series, as `Robot.series`.
    """
    return ACCELERATION_LAG_CB3 if series == "CB3" else 0.0


class ServojTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table [servoj] of a plant's file."""

    gain: float
    lookahead_s: float
    phase_s: float = 0.0


class JointServoTable(msgspec.Struct, forbid_unknown_fields=True):
    """The table [joint_servo] of a plant's file."""

    lag_s: float = JOINT_LAG
    acceleration_lag_s2: float | None = None


class PayloadTable(msgspec.Struct):
    """The table [payload] of a plant's file, of which only the mass is shown."""

    mass_kg: float


class UncertaintyTable(msgspec.Struct):
    """The table [uncertainty] of a plant's file: standard deviations."""

    gain: float = 0.0
    lookahead_s: float = 0.0


class SourceTable(msgspec.Struct):
    """The table [source] of a plant's file, of which only the arm's name is used."""

    robot: str = ""


class PlantFile(msgspec.Struct, forbid_unknown_fields=True):
    """A plant's file: the tables that are simulated, and those that are only shown."""

    servoj: ServojTable
    joint_servo: JointServoTable = msgspec.field(default_factory=JointServoTable)
    payload: PayloadTable | None = None
    friction: dict[str, list[float]] | None = None
    uncertainty: UncertaintyTable = msgspec.field(default_factory=UncertaintyTable)
    source: SourceTable = msgspec.field(default_factory=SourceTable)


def load_plant(path: AnyPath) -> Plant:
    """Read a file that `simbridge identify --out` wrote.

    Raises:
        InputFileError: The file cannot be read, or a number of it cannot be simulated; names file
            and field.
    """
    file = TomlFile(path)
    content = file.decode(PlantFile)
    _check_plant_file(file, content)

    not_simulated = []
    if content.payload is not None:
        not_simulated.append(f"payload {content.payload.mass_kg:.2f} kg")
    if content.friction is not None:
        not_simulated.append("friction")

    return Plant(
        gain=content.servoj.gain,
        lookahead=content.servoj.lookahead_s,
        phase=content.servoj.phase_s,
        joint_lag=content.joint_servo.lag_s,
        acceleration_lag=content.joint_servo.acceleration_lag_s2,
        gain_deviation=content.uncertainty.gain,
        lookahead_deviation=content.uncertainty.lookahead_s,
        source=str(file.path),
        robot=content.source.robot,
        not_simulated=", ".join(not_simulated),
    )


def _check_plant_file(file: TomlFile, content: PlantFile) -> None:
    """Refuse numbers that cannot be simulated."""
    servoj = content.servoj
    # The law checks gain and lookahead when it is made.
    try:
        ServojLaw(SHORTEST_CYCLE_S, servoj.gain, servoj.lookahead_s)
    except InvalidParameter as error:
        file.refuse("servoj", str(error))

    lag = content.joint_servo.lag_s
    if not 0.0 <= lag <= MAX_JOINT_LAG_S:
        reason = f"must be from 0 to {MAX_JOINT_LAG_S} s; got {lag}"
        file.refuse("joint_servo.lag_s", reason)

    acceleration_lag = content.joint_servo.acceleration_lag_s2
    if acceleration_lag is not None and not 0.0 <= acceleration_lag <= MAX_ACCELERATION_LAG_S2:
        reason = f"must be from 0 to {MAX_ACCELERATION_LAG_S2} s^2; got {acceleration_lag}"
        file.refuse("joint_servo.acceleration_lag_s2", reason)

    # The phase must be shorter than the controller's cycle, which is not known here: `Plant.law`
    # compares the two.
    if not 0.0 <= servoj.phase_s < MAX_PHASE_S:
        reason = f"must be from 0 to less than one cycle; got {servoj.phase_s}"
        file.refuse("servoj.phase_s", reason)

    deviations = [
        ("gain", content.uncertainty.gain, servoj.gain),
        ("lookahead_s", content.uncertainty.lookahead_s, servoj.lookahead_s),
    ]
    for name, deviation, value in deviations:
        if not 0.0 <= deviation < value:
            reason = f"must be from 0 to less than servoj.{name}; got {deviation}"
            file.refuse(f"uncertainty.{name}", reason)


def controller_cycle(own_cycle: float, period: float) -> float:
    """Return the cycle of a simulated controller, s.

    Args:
        own_cycle: The controller's own cycle, s.
        period: The control period, s. If it is not a multiple of the controller's own cycle, it is
            the cycle itself.
    """
    count = period / own_cycle
    is_multiple = round(count) >= 1 and abs(count - round(count)) < MULTIPLE_TOLERANCE
    return own_cycle if is_multiple else period
