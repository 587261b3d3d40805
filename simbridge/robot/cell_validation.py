"""What values of a cell must be to make sense: most nonsense is a slip of units."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simbridge.robot.obstacles import Floor

# A TCP or a part of a tool farther from the flange than this, in m, is in other units.
_FARTHEST_TOOL = 10.0
# And so is anything around an arm that is farther away than this, m.
_FARTHEST = 100.0
# And a rotation of more than this is in degrees.
_FULL_TURN = 2.0 * math.pi + 1e-3


def _finite(values: Sequence[float], count: int) -> bool:
    return len(values) == count and all(map(math.isfinite, values))


def tcp_needs(tcp: Sequence[float]) -> str | None:
    """What a TCP in tool0, x y z (m) rx ry rz (rad), must be; None when it is."""
    if not _finite(tcp, 6):
        return "six finite numbers: x y z in m, rx ry rz in rad"
    if math.hypot(*tcp[:3]) > _FARTHEST_TOOL or math.hypot(*tcp[3:]) > _FULL_TURN:
        return f"within {_FARTHEST_TOOL:g} m and a full turn of tool0, in m and rad (not mm, degrees)"
    return None


def tool_point_needs(point: Sequence[float]) -> str | None:
    """What a point of the tool or its load (3,) in tool0, m, must be; None when it is."""
    if _finite(point, 3) and math.hypot(*point) <= _FARTHEST_TOOL:
        return None
    return f"three finite numbers within {_FARTHEST_TOOL:g} m of tool0, in m (not mm)"


def point_needs(point: Sequence[float]) -> str | None:
    """What a point of the cell (3,) in base_link, m, must be; None when it is."""
    if _finite(point, 3) and math.hypot(*point) <= _FARTHEST:
        return None
    return f"three finite numbers within {_FARTHEST:g} m of base_link, in m (not mm)"


def size_needs(size: Sequence[float]) -> str | None:
    """What the edges of a box (3,), m, must be; None when they are."""
    if _finite(size, 3) and all(0.0 < edge <= _FARTHEST for edge in size):
        return None
    return f"three positive lengths up to {_FARTHEST:g} m, in m (not mm)"


def rotation_needs(rotation: Sequence[float]) -> str | None:
    """What a rotation vector (3,), rad, must be; None when it is."""
    if _finite(rotation, 3) and math.hypot(*rotation) <= _FULL_TURN:
        return None
    return "a rotation vector of three finite numbers, at most a full turn, in rad (not degrees)"


def direction_needs(direction: Sequence[float]) -> str | None:
    """What a direction (3,) must be; None when it is."""
    # A vector may be too long, or too short, to be brought to length one.
    if _finite(direction, 3) and 1e-6 <= math.hypot(*direction) <= 1e6:
        return None
    return "three finite numbers, not all of them zero"


def radius_needs(radius: float) -> str | None:
    """What the radius of a part of the tool, m, must be; None when it is."""
    return None if 0.0 < radius <= _FARTHEST_TOOL else f"a positive length up to {_FARTHEST_TOOL:g} m, in m (not mm)"


def mass_needs(mass: float) -> str | None:
    """What a mass, kg, must be; None when it is."""
    return None if 0.0 <= mass < math.inf else "a mass in kg, not negative"


def floor_needs(floor: Floor) -> str | None:
    """What a floor must be; None when it is."""
    known = floor == "none" if isinstance(floor, str) else math.isfinite(floor)
    return None if known else "a height in m, or none"


def name_needs(name: str) -> str | None:
    """What a name must be; None when it is."""
    return None if name.isprintable() and name.strip() == name != "" else "a name, without blanks around it"
