"""Units of time, length and angle, and the ways in which files write them."""

from __future__ import annotations

import math

from simbridge.trajectory.tables.roles import POSITION, ROTATION_VECTOR, is_joint_role

# Units per one of ours (s, m, rad).
UNITS = {
    "s": 1.0,
    "ms": 1e3,
    "us": 1e6,
    "ns": 1e9,
    "m": 1.0,
    "cm": 1e2,
    "mm": 1e3,
    "rad": 1.0,
    "deg": 180.0 / math.pi,
}

# The unit that each spelling means.
UNIT_SPELLINGS = {
    **{name: name for name in UNITS},
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "micros", "microseconds", "µs"), "us"),
    **dict.fromkeys(("nsec", "nanos", "nanosec", "nanoseconds"), "ns"),
    **dict.fromkeys(("meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("centimeters", "centimetres"), "cm"),
    **dict.fromkeys(("millimeters", "millimetres"), "mm"),
    **dict.fromkeys(("°", "degree", "degrees"), "deg"),
    **dict.fromkeys(("radian", "radians"), "rad"),
}

LENGTH_UNITS = ("m", "cm", "mm")
ANGLE_UNITS = ("rad", "deg")
# The kind of quantity that each unit is of.
UNIT_KINDS = {
    **dict.fromkeys(("s", "ms", "us", "ns"), "time"),
    **dict.fromkeys(LENGTH_UNITS, "length"),
    **dict.fromkeys(ANGLE_UNITS, "angle"),
}
# The units that a role of a pose, or the time, may have; those of other roles have none.
ROLE_UNITS = {
    "t": ("s", "ms", "us", "ns"),
    **dict.fromkeys(POSITION, LENGTH_UNITS),
    **dict.fromkeys(ROTATION_VECTOR, ANGLE_UNITS),
}


def allowed_units(role: str) -> tuple[str, ...]:
    """Return the units that a role may have."""
    if is_joint_role(role):
        return (*ANGLE_UNITS, *LENGTH_UNITS)
    return ROLE_UNITS.get(role, ())
