"""The settings of an emulated controller that may change while it runs (`controller.set`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from simbridge.emulator.state import MAX_QUANTITY
from simbridge.errors import InvalidChoice, InvalidParameter, UnknownName

# Characters that an error shows of a value.
MAX_SHOWN_CHARACTERS = 100

SixNumbers = tuple[float, float, float, float, float, float]
# Levels by the numbers of digital pins: 0-7 standard, 8-15 configurable, 16-17 of the tool.
DigitalLevels = dict[Annotated[int, msgspec.Meta(ge=0, le=17)], bool]
# Levels by the numbers of analog inputs: 0 and 1 standard, 2 and 3 of the tool; A or V.
AnalogLevels = dict[Annotated[int, msgspec.Meta(ge=0, le=3)], float]


class SettablePart(NamedTuple):
    """A part of the state that may be set.

    Attributes:
        type: Type of the value in JSON.
        needed: Description of the possible values, for messages.
    """

    type: Any
    needed: str


DIGITAL = SettablePart(
    DigitalLevels, 'true or false by the bits\' numbers, 0 to 17, such as {"3": true}'
)

# Parts of the state that may be set, too; programs and clients change some of them.
STATE: dict[str, SettablePart] = {
    "payload": SettablePart(Annotated[float, msgspec.Meta(ge=0.0)], "a non-negative number, kg"),
    "payload_cog": SettablePart(tuple[float, float, float], "three numbers, m"),
    "payload_inertia": SettablePart(SixNumbers, "six numbers, kg m^2"),
    "tcp_offset": SettablePart(SixNumbers, "six numbers, m and rad"),
    "digital_inputs": DIGITAL,
    "digital_outputs": DIGITAL,
    "analog_inputs": SettablePart(
        AnalogLevels, 'numbers, A or V, by those of the inputs, 0 to 3, such as {"0": 0.012}'
    ),
}


@dataclass(frozen=True)
class Settings:
    """The settings of a controller; a new one is a field here, with its default, and what reads it.

    Attributes:
        on_protective_stop: Effect on the running program: it pauses, or it stops, as one recording
            of URSim shows.
        unlock_delay: Time from a protective stop until the dashboard unlocks it, s.
        servoj_follows_slider: Whether the speed slider slows servoj, as UR's description of its ROS
            driver says without a formula. By default servoj keeps to real time at any slider, as
            simbridge assumes.
        table: Height of a table that the tool can touch, m, in the pendant's base; None without
            one.
        tool_force_limit: The force on the tool that stops the arm, N. UR's default is not known;
            its safety presets are from 100 to 250 N.
        joint_speed_limit: Limit of the safety system for each joint, rad/s; None for UR's own
            (`EmulatedController`).
        answer_in_local: The answer of PolyScope X to a script in Local: the error C210, as UR's
            client library expects, or nothing, as a third party reports of URSim 10.13.

    Raises:
        InvalidParameter: A limit is not positive, the table's height is not within 1e6, or a delay
            is negative.
    """

    on_protective_stop: Literal["pause", "stop"] = "pause"
    unlock_delay: float = 5.0
    servoj_follows_slider: bool = False
    table: float | None = None
    tool_force_limit: float = 150.0
    joint_speed_limit: SixNumbers | None = None
    answer_in_local: Literal["C210", "nothing"] = "C210"

    def __post_init__(self) -> None:
        if not 0.0 <= self.unlock_delay < inf:
            raise InvalidParameter("unlock_delay", self.unlock_delay, "a non-negative number, s")

        if self.table is not None and not abs(self.table) <= MAX_QUANTITY:
            needed = f"a height from {-MAX_QUANTITY:g} to {MAX_QUANTITY:g} m"
            raise InvalidParameter("table", self.table, needed)

        if not self.tool_force_limit > 0.0:
            needed = "a positive number, N"
            raise InvalidParameter("tool_force_limit", self.tool_force_limit, needed)

        limits = self.joint_speed_limit or ()
        if not all(0.0 < limit < inf for limit in limits):
            needed = "six positive numbers, rad/s"
            raise InvalidParameter("joint_speed_limit", self.joint_speed_limit, needed)

    def changed(self, values: Mapping[str, Any]) -> Settings:
        """Return these settings with some of them changed by name, all or none.

        Args:
            values: The values, as JSON has them.

        Raises:
            UnknownName: There is no such setting.
            InvalidChoice: A value is not among the few that its setting accepts.
            InvalidParameter: A value is of another type.
        """
        types = get_type_hints(type(self))
        settings = asdict(self)
        for name, value in values.items():
            if name not in types:
                raise UnknownName("setting", name, [*types, *STATE])
            try:
                settings[name] = msgspec.convert(value, types[name])
            except msgspec.ValidationError:
                if get_origin(types[name]) is Literal:
                    choice = str(value)[:MAX_SHOWN_CHARACTERS]
                    raise InvalidChoice(name, choice, get_args(types[name])) from None
                needed = f"a value of {types[name]}".replace("typing.", "")
                raise InvalidParameter(name, _shown(value), needed) from None
        return Settings(**settings)


def state_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are parts of the state (`STATE`), converted to their types there.

    Args:
        values: The values by name, as JSON has them.

    Raises:
        InvalidParameter: A value is of another type, or not possible.
    """
    parts: dict[str, Any] = {}
    for name, value in values.items():
        if name not in STATE:
            continue

        part = STATE[name]
        try:
            converted = msgspec.convert(value, part.type, str_keys=True)
        except msgspec.ValidationError:
            raise InvalidParameter(name, _shown(value), part.needed) from None

        numbers = converted.values() if isinstance(converted, dict) else np.atleast_1d(converted)
        if not all(abs(number) <= MAX_QUANTITY for number in numbers):
            needed = f"{part.needed}, none above {MAX_QUANTITY:g}"
            raise InvalidParameter(name, _shown(value), needed)
        parts[name] = converted
    return parts


def _shown(value: Any) -> str:
    """Return a value as an error shows it."""
    return repr(value)[:MAX_SHOWN_CHARACTERS]
