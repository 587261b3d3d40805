"""What may be set on an emulated controller: by options at its start, and by tests while it runs (`controller.set`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
import numpy as np

from simbridge.emulator.state import LARGEST
from simbridge.errors import InvalidParameter, UnknownName

_Six = tuple[float, float, float, float, float, float]
_Bits = dict[Annotated[int, msgspec.Meta(ge=0, le=17)], bool]
# Parts of the state that may be set, too; programs and clients change some of them. Digital inputs and outputs by their
# bits: 0-7 standard, 8-15 configurable, 16-17 of the tool; analog inputs: 0 and 1 standard, 2 and 3 of the tool.
# The type of each as JSON has it, and in words.
STATE: dict[str, tuple[Any, str]] = {
    "payload": (Annotated[float, msgspec.Meta(ge=0.0)], "a number of kg, not negative"),
    "payload_cog": (tuple[float, float, float], "three numbers, m"),
    "payload_inertia": (_Six, "six numbers, kg m^2"),
    "tcp_offset": (_Six, "six numbers, m and rad"),
    "digital_inputs": (_Bits, 'true or false by the bits\' numbers, 0 to 17, such as {"3": true}'),
    "digital_outputs": (_Bits, 'true or false by the bits\' numbers, 0 to 17, such as {"3": true}'),
    "analog_inputs": (
        dict[Annotated[int, msgspec.Meta(ge=0, le=3)], float],
        'numbers, A or V, by those of the inputs, 0 to 3, such as {"0": 0.012}',
    ),
}


@dataclass(frozen=True)
class Settings:
    """The settings of a controller; a new one is a field here, with its default, and what reads it.

    Attributes:
        on_protective_stop: What becomes of the running program: it pauses, or it stops, as one recording of URSim
            shows.
        unlock_delay: From a protective stop until the dashboard unlocks it, s.
        servoj_follows_slider: Whether the speed slider slows servoj, as UR's description of its ROS driver says without
            a formula. By default servoj keeps to real time at any slider, as the bridge reckons.
        table: Height of a table that the tool can touch, m, in the pendant's base; None without one.
        tool_force_limit: The force on the tool that stops the arm, N. UR's default is not known; its safety presets are
            from 100 to 250 N.
        joint_speed_limit: Of the safety system, one for each joint, rad/s; None for UR's own (`Controller`).
    """

    on_protective_stop: Literal["pause", "stop"] = "pause"
    unlock_delay: float = 5.0
    servoj_follows_slider: bool = False
    table: float | None = None
    tool_force_limit: float = 150.0
    joint_speed_limit: tuple[float, float, float, float, float, float] | None = None

    def __post_init__(self) -> None:
        """Raises InvalidParameter: A limit is not a positive number, the table's height not one within 1e6, or a delay
        negative."""
        if not 0.0 <= self.unlock_delay < inf:
            raise InvalidParameter("unlock_delay", self.unlock_delay, "a number from 0, s")
        if self.table is not None and not abs(self.table) <= LARGEST:
            raise InvalidParameter(
                "table", self.table, f"a height from {-LARGEST:g} to {LARGEST:g} m"
            )
        if not self.tool_force_limit > 0.0:
            raise InvalidParameter(
                "tool_force_limit", self.tool_force_limit, "a positive number, N"
            )
        if not all(0.0 < limit < inf for limit in self.joint_speed_limit or ()):
            raise InvalidParameter(
                "joint_speed_limit", self.joint_speed_limit, "six positive numbers, rad/s"
            )

    def changed(self, values: Mapping[str, Any]) -> Settings:
        """These settings with some of them changed by name, all or none, to values as JSON has them.

        Raises:
            UnknownName: There is no such setting.
            InvalidParameter: A value is of another type, or not one of those possible.
        """
        types, found = get_type_hints(type(self)), asdict(self)
        for name, value in values.items():
            if name not in types:
                raise UnknownName("setting", name, [*types, *STATE])
            try:
                found[name] = msgspec.convert(value, types[name])
            except msgspec.ValidationError:
                needed = str(types[name]).replace("typing.", "")
                raise InvalidParameter(name, repr(value)[:100], f"a value of {needed}") from None
        return Settings(**found)


def state_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that are parts of the state (`STATE`), with the types that they have there.

    Raises:
        InvalidParameter: One is of another type, or not possible.
    """
    found: dict[str, Any] = {}
    for name in [name for name in values if name in STATE]:
        kind, needed = STATE[name]
        try:
            found[name] = msgspec.convert(values[name], kind, str_keys=True)
        except msgspec.ValidationError:
            raise InvalidParameter(name, repr(values[name])[:100], needed) from None
        value = found[name]
        numbers = value.values() if isinstance(value, dict) else np.atleast_1d(value)
        if not all(abs(number) <= LARGEST for number in numbers):
            raise InvalidParameter(
                name, repr(values[name])[:100], f"{needed}, none above {LARGEST:g}"
            )
    return found
