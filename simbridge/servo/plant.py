"""The arm behind servoj, as simulated: the servo law, then joints that follow its targets a fixed time later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.resources import AnyPath
from simbridge.robot.files import TomlFile
from simbridge.robot.pose import Array
from simbridge.servo.law import GAIN, LOOKAHEAD, JointMotion, ServojJoints, ServojLaw
from simbridge.text import listed

# By how much the joints of real e-Series arms trail their targets, s (docs/validation.md).
JOINT_LAG = 0.0005
# What is known of the law is said wherever it is named; other tunings and CB3 controllers are extrapolations.
VERIFIED = "the law was verified on a real UR5e at gain 300: docs/validation.md"


class Plant(msgspec.Struct, frozen=True):
    """What is known of an arm under servoj.

    Attributes:
        gain: Of servoj, 1/s^2.
        lookahead: Of servoj, s.
        phase: How long after the begin of a controller's cycle calls begin, s.
        joint_lag: How much later the joints are where their targets were, s.
        gain_deviation, lookahead_deviation: One standard deviation of both, as identified; 0 where it is not known.
        source: The file of the numbers; "" for the defaults and the command line.
        replaced: What of the file was replaced by another value: "gain", "lookahead".
        not_simulated: What else the file says of the arm: "payload 1.66 kg, friction"; "" for nothing.
    """

    gain: float = GAIN
    lookahead: float = LOOKAHEAD
    phase: float = 0.0
    joint_lag: float = JOINT_LAG
    gain_deviation: float = 0.0
    lookahead_deviation: float = 0.0
    source: str = ""
    replaced: tuple[str, ...] = ()
    not_simulated: str = ""

    def law(self, cycle: float) -> ServojLaw:
        """The servo law on a controller with that cycle, s.

        Raises:
            InvalidParameter: The tuning is unstable, or the phase or the joint lag does not fit the cycle.
        """
        if not 0.0 <= self.phase < cycle:
            raise InvalidParameter("phase of the plant", f"{self.phase:g} s", f"shorter than the cycle of {cycle:g} s")
        if not 0.0 <= self.joint_lag <= cycle:
            needed = f"no longer than the cycle of {cycle:g} s"
            raise InvalidParameter("joint lag of the plant", f"{self.joint_lag:g} s", needed)
        return ServojLaw(cycle, self.gain, self.lookahead)

    def phase_lag(self, cycle: float) -> float:
        """How much longer the joint targets trail a steady motion because of the phase, s, with a call each cycle (s).

        The two steps of each cycle add 3 p - 2 p^2 / h.
        """
        return 3.0 * self.phase - 2.0 * self.phase**2 / cycle


# The tables of a plant's file


class _Servoj(msgspec.Struct, forbid_unknown_fields=True):
    gain: float
    lookahead_s: float
    phase_s: float = 0.0


class _JointServo(msgspec.Struct, forbid_unknown_fields=True):
    lag_s: float = JOINT_LAG


class _Payload(msgspec.Struct):
    mass_kg: float


class _Uncertainty(msgspec.Struct):
    gain: float = 0.0
    lookahead_s: float = 0.0


class _PlantFile(msgspec.Struct):
    """The tables that are simulated, and those that are only shown; the table source is for people."""

    servoj: _Servoj
    joint_servo: _JointServo = msgspec.field(default_factory=_JointServo)
    payload: _Payload | None = None
    friction: dict[str, list[float]] | None = None
    uncertainty: _Uncertainty = msgspec.field(default_factory=_Uncertainty)


def load_plant(path: AnyPath) -> Plant:
    """The plant of a file that `simbridge identify --out` wrote.

    Raises:
        InputFileError: The file cannot be read, or a number of it cannot be simulated; names file and field.
    """
    file = TomlFile(path)
    data = file.decode(_PlantFile)
    try:
        # The cycle is not known yet; the shortest is the most permissive.
        ServojLaw(1e-4, data.servoj.gain, data.servoj.lookahead_s)
    except InvalidParameter as error:
        file.refuse("servoj", str(error))
    if not 0.0 <= data.joint_servo.lag_s <= 0.002:
        file.refuse("joint_servo.lag_s", f"this is {data.joint_servo.lag_s}; it must be from 0 to 0.002 s")
    if not 0.0 <= data.servoj.phase_s < 0.01:
        file.refuse("servoj.phase_s", f"this is {data.servoj.phase_s}; it must be from 0 to less than a cycle")
    payload = "" if data.payload is None else f"payload {data.payload.mass_kg:.2f} kg"
    shown = ", ".join(filter(None, [payload, "" if data.friction is None else "friction"]))
    deviations = {"gain": data.uncertainty.gain, "lookahead_s": data.uncertainty.lookahead_s}
    for name, value in deviations.items():
        if not 0.0 <= value < getattr(data.servoj, name):
            file.refuse(f"uncertainty.{name}", f"this is {value}; it must be from 0 to less than servoj.{name}")
    servoj = data.servoj
    lag, source = data.joint_servo.lag_s, str(file.path)
    gain, lookahead = deviations.values()
    return Plant(servoj.gain, servoj.lookahead_s, servoj.phase_s, lag, gain, lookahead, source, not_simulated=shown)


def plant_model(backend: Mapping[str, Any]) -> str:
    """What follows the commands, in one line, from the table "backend" of a run's settings."""
    simulated = backend["simulated_time"]
    if backend.get("servo") != "servoj":
        return "simulated arm: an ideal servo, not UR's" if simulated else "servo: the controller's, tuning unknown"
    tuning = f"servoj, gain {backend['servo_gain']:g}, lookahead {backend['servo_lookahead']:g} s"
    if not simulated:
        return f"servo: the controller's {tuning}"
    source = backend.get("plant_file", "")
    if source:
        source += f", except the {listed(backend['plant_replaced'])}" if backend.get("plant_replaced") else ""
        source += f"; not simulated: {backend['plant_not_simulated']}" if backend.get("plant_not_simulated") else ""
        source = f" ({source})"
    return f"simulated arm: UR's {tuning}{source}; {VERIFIED}"


def servo_words(backend: Mapping[str, Any]) -> str:
    """The same as a noun phrase: "servoj at gain 2000, lookahead 0.03 s"."""
    if backend.get("servo") == "servoj":
        return f"servoj at gain {backend['servo_gain']:g}, lookahead {backend['servo_lookahead']:g} s"
    return "an ideal servo" if backend["simulated_time"] else "a servo of unknown tuning"


def controller_cycle(own: float, period: float) -> float:
    """The cycle of a simulated controller, s: its own, or the control period where that is no multiple of it."""
    count = period / own
    return own if round(count) >= 1 and abs(count - round(count)) < 1e-6 else period


class PlantReference:
    """Where the joints of a simulated arm should be at each of its physics steps.

    Args:
        plant: The servo law's tuning and the joints' lag.
        q: Where the arm rests (n,), rad.
        period: Duration of a command, s: a multiple of the cycle.
        cycle: The controller's, s: a multiple of the step.
        step: Physics step, s.

    Raises:
        InvalidParameter: See `Plant.law`.
    """

    def __init__(self, plant: Plant, q: Array, period: float, cycle: float, step: float) -> None:
        self._joints = ServojJoints(plant.law(cycle), q, plant.phase)
        self._period, self._cycle, self._cycles = period, cycle, round(period / cycle)
        self._weights = _hermite([((i + 1) * step - plant.joint_lag) / cycle for i in range(round(cycle / step))])
        self.reset(q)

    @property
    def target(self) -> Array:
        """The controller's joint targets now (n,), rad."""
        return self._joints.q

    @property
    def motion(self) -> JointMotion:
        """The same with their velocities and accelerations, each (n,)."""
        return self._joints.motion

    def reset(self, q: Array) -> None:
        """Rest at joint positions q (n,), rad."""
        self._joints.reset(q)
        self._nodes = np.stack([q, np.zeros_like(q)] * 3)

    def advance(self, command: Array) -> Array:
        """One period towards a command (n,), rad: joint positions (S, n), rad, at the end of each physics step."""
        self._joints.command(command, self._period)
        return np.concatenate([self._cycle_positions() for _ in range(self._cycles)])

    def _cycle_positions(self) -> Array:
        before = self._joints.qd
        q = self._joints.step()
        qd = self._joints.qd
        # The law's velocity is the mean of the cycle; this is the one at its end.
        end = qd + 0.5 * (qd - before)
        self._nodes = np.concatenate([self._nodes[2:], q[np.newaxis], self._cycle * end[np.newaxis]])
        return self._weights @ self._nodes


def _hermite(instants: Sequence[float]) -> Array:
    """Weights (S, 6) of cubic interpolation at S instants, in cycles, between three nodes at -1, 0 and 1.

    The columns are position and slope (per cycle) of each node.
    """
    weights = np.zeros((len(instants), 6))
    for row, at in zip(weights, instants, strict=True):
        first = 0 if at < 0.0 else 2
        u = at + 1.0 if at < 0.0 else at
        row[first : first + 4] = (
            (1.0 + 2.0 * u) * (1.0 - u) ** 2,
            u * (1.0 - u) ** 2,
            u * u * (3.0 - 2.0 * u),
            u * u * (u - 1.0),
        )
    return weights
