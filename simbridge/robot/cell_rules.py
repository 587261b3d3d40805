"""Requirements on the values of a cell file, by their kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from simbridge.robot import Vector

# The mountings with a name: base_link in the world (z up), as rotation vectors. On the wall y of
# base_link points down: turned about x of the pendant's base by a quarter, as in UR's own
# set_gravity([0, 9.82 sin(tilt), 9.82 cos(tilt)]).
MOUNTINGS: dict[str, Vector] = {
    "floor": (0.0, 0.0, 0.0),
    "ceiling": (math.pi, 0.0, 0.0),
    "wall": (-math.pi / 2.0, 0.0, 0.0),
}

# Most invalid values are in wrong units.
# A tool is not longer than this, m.
MAX_TOOL_LENGTH = 10.0
# No obstacle is farther away than this, m.
MAX_DISTANCE = 100.0
# A rotation vector is not longer than this, rad.
FULL_TURN = 2.0 * math.pi + 1e-3
# A normal may be too long, or too short, to be normalised.
MAX_NORMAL = 1e6
MIN_NORMAL = 1e-6


def _is_vector(values: Sequence[float], longest: float, shortest: float = 0.0) -> bool:
    """Return whether values are three finite numbers within two lengths."""
    return (
        len(values) == 3
        and all(map(math.isfinite, values))
        and shortest <= math.hypot(*values) <= longest
    )


def _is_name(name: str) -> bool:
    return name.isprintable() and name.strip() == name != ""


def _is_tcp(tcp: Sequence[float]) -> bool:
    return _is_vector(tcp[:3], MAX_TOOL_LENGTH) and _is_vector(tcp[3:], FULL_TURN)


def _is_path(_path: Any) -> bool:
    return True


def _is_switch(switch: str) -> bool:
    return switch in ("on", "off")


def _is_payload(mass: float) -> bool:
    return 0.0 <= mass < math.inf


def _is_mounting(mounting: str | Sequence[float]) -> bool:
    if isinstance(mounting, str):
        return mounting in MOUNTINGS
    return _is_vector(mounting, FULL_TURN)


def _is_floor(floor: str | float) -> bool:
    if isinstance(floor, str):
        return floor == "none"
    return math.isfinite(floor)


def _is_point(point: Sequence[float]) -> bool:
    return _is_vector(point, MAX_DISTANCE)


def _is_size(size: Sequence[float]) -> bool:
    return len(size) == 3 and all(0.0 < edge <= MAX_DISTANCE for edge in size)


def _is_rotation(rotation: Sequence[float]) -> bool:
    return _is_vector(rotation, FULL_TURN)


def _is_direction(normal: Sequence[float]) -> bool:
    return _is_vector(normal, MAX_NORMAL, MIN_NORMAL)


def _is_tool_point(point: Sequence[float]) -> bool:
    return _is_vector(point, MAX_TOOL_LENGTH)


def _is_radius(radius: float) -> bool:
    return 0.0 < radius <= MAX_TOOL_LENGTH


# For each kind of value, whether a value is valid, and what it must be.
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_name, "a name without leading or trailing blanks"),
    "tcp": (
        _is_tcp,
        f"six finite numbers x y z rx ry rz within {MAX_TOOL_LENGTH:g} m and a full turn, "
        "in m and rad (not mm, degrees)",
    ),
    "path": (_is_path, "a path"),
    "switch": (_is_switch, "on or off"),
    "payload": (_is_payload, "a non-negative mass in kg"),
    "mounting": (
        _is_mounting,
        f"{', '.join(MOUNTINGS)}, or a rotation vector up to a full turn in rad (not degrees)",
    ),
    "floor": (_is_floor, "a height in m, or none"),
    "point": (
        _is_point,
        f"three finite numbers within {MAX_DISTANCE:g} m of base_link, in m (not mm)",
    ),
    "size": (_is_size, f"three positive lengths up to {MAX_DISTANCE:g} m, in m (not mm)"),
    "rotation": (
        _is_rotation,
        "a rotation vector of three finite numbers, at most a full turn, in rad (not degrees)",
    ),
    "direction": (_is_direction, "three finite numbers, not all of them zero"),
    "tool point": (
        _is_tool_point,
        f"three finite numbers within {MAX_TOOL_LENGTH:g} m of tool0, in m (not mm)",
    ),
    "radius": (_is_radius, f"a positive length up to {MAX_TOOL_LENGTH:g} m, in m (not mm)"),
}


def requirement(kind: str, value: Any) -> str | None:
    """Return what a value must be; None if it is valid.

    Args:
        kind: Kind of the value, from `RULES`.
        value: Value of the kind's type.
    """
    is_valid, needed = RULES[kind]
    return None if is_valid(value) else needed
