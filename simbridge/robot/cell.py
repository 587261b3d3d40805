"""A cell as data: every field is optional, and each is validated."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot.obstacles import Box, Capsule, CollisionScene, Floor, Plane, Vector
from simbridge.robot.pose import Array, snapped
from simbridge.robot.robot import G

Six = tuple[float, float, float, float, float, float]
T = TypeVar("T")

# Base_link in the world (z up), as rotation vectors. On the wall y of base_link points down: turned about x of the
# pendant's base by a quarter, as in UR's own set_gravity([0, 9.82 sin(tilt), 9.82 cos(tilt)]).
MOUNTINGS: dict[str, Vector] = {
    "floor": (0.0, 0.0, 0.0),
    "ceiling": (math.pi, 0.0, 0.0),
    "wall": (-math.pi / 2.0, 0.0, 0.0),
}
# Most invalid values are in wrong units. A tool is not longer than this, m,
_MAX_TOOL_DISTANCE = 10.0
# no obstacle is farther away than this, m,
_MAX_DISTANCE = 100.0
# and a rotation vector is not longer than this, rad.
_FULL_TURN = 2.0 * math.pi + 1e-3

_FLAGS = {"host": "--host", "robot": "--robot", "tcp": "--tcp", "payload": "--payload", "floor": "--floor"}


@dataclass(frozen=True)
class Cell:
    """How one arm is mounted, its payload and the obstacles around it; None where unknown.

    Attributes:
        host: Address of the controller.
        robot: Name of the arm's model ("ur10e").
        serial_number: Of the arm, as its controller reports it.
        tcp: Tool centre point in tool0: x y z (m) rx ry rz (rotation vector, rad).
        payload: Mass of the tool and what it holds, kg.
        payload_cog: Its centre of gravity in tool0, m; at the TCP by default.
        mounting: How base_link is mounted in a world whose z points up: "floor", "ceiling", "wall" (base_link's y
            points down), or a rotation vector, rad.
        floor: Height in base_link of the surface the arm is mounted on, m, or "none".
        keep_out_boxes, keep_out_planes: Where no link may go, in base_link.
        tool_capsules: The shape of the tool in tool0.
        calibration: A TOML file with the kinematics of this individual arm.
        source: The file it was read from.

    Raises:
        InvalidParameter: A field is not valid; `name` is the field as in a cell file.
    """

    host: str | None = None
    robot: str | None = None
    serial_number: str | None = None
    tcp: Six | None = None
    payload: float | None = None
    payload_cog: Vector | None = None
    mounting: Literal["floor", "ceiling", "wall"] | Vector | None = None
    floor: Floor | None = None
    keep_out_boxes: tuple[Box, ...] = ()
    keep_out_planes: tuple[Plane, ...] = ()
    tool_capsules: tuple[Capsule, ...] = ()
    calibration: Path | None = None
    source: Path | None = field(default=None, compare=False)

    @property
    def centre_of_gravity(self) -> Vector | None:
        """Of the payload, in tool0, m: at the TCP by default; None if neither is given."""
        if self.payload is None or self.payload_cog is not None or self.tcp is None:
            return self.payload_cog
        x, y, z, *_ = self.tcp
        return (x, y, z)

    def __post_init__(self) -> None:
        for name, value, needed in self._validated():
            if needed is not None:
                raise InvalidParameter(name, value, needed)

    def _validated(self) -> Iterator[tuple[str, object, str | None]]:
        """Every given field, its value, and the requirement it violates, or None."""
        for name, requirement in (
            ("host", name_requirement),
            ("robot", name_requirement),
            ("serial_number", name_requirement),
            ("tcp", tcp_requirement),
            ("payload", mass_requirement),
            ("payload_cog", tool_point_requirement),
            ("mounting", mounting_requirement),
            ("floor", floor_requirement),
        ):
            value: Any = getattr(self, name)
            if value is not None:
                yield name, value, requirement(value)
        if self.payload_cog is not None and self.payload is None:
            yield "payload_cog", self.payload_cog, "given together with payload, whose centre it is"
        yield from self._validated_zones()
        for i, part in enumerate(self.tool_capsules):
            yield f"tool_capsules[{i}].start", part.start, tool_point_requirement(part.start)
            yield f"tool_capsules[{i}].end", part.end, tool_point_requirement(part.end)
            yield f"tool_capsules[{i}].radius", part.radius, radius_requirement(part.radius)

    def _validated_zones(self) -> Iterator[tuple[str, object, str | None]]:
        names: set[str] = set()
        for kind in ("keep_out_boxes", "keep_out_planes"):
            for i, zone in enumerate(getattr(self, kind)):
                repeated = "a name that is used once" if zone.name in names else None
                names.add(zone.name)
                yield f"{kind}[{i}].name", zone.name, name_requirement(zone.name) or repeated
        for i, box in enumerate(self.keep_out_boxes):
            yield f"keep_out_boxes[{i}].centre", box.centre, point_requirement(box.centre)
            yield f"keep_out_boxes[{i}].size", box.size, size_requirement(box.size)
            yield f"keep_out_boxes[{i}].rotation", box.rotation, rotation_requirement(box.rotation)
        for i, plane in enumerate(self.keep_out_planes):
            yield f"keep_out_planes[{i}].point", plane.point, point_requirement(plane.point)
            yield f"keep_out_planes[{i}].normal", plane.normal, direction_requirement(plane.normal)

    @property
    def gravity(self) -> Array:
        """Gravitational acceleration (3,) in base_link, m/s^2."""
        turn = MOUNTINGS[self.mounting] if isinstance(self.mounting, str) else self.mounting or (0.0, 0.0, 0.0)
        gravity: Array = snapped(pin.exp3(np.array(turn))).T @ np.array([0.0, 0.0, -G])
        return gravity

    @property
    def collision_scene(self) -> CollisionScene:
        """What the arm must not touch, and the shape of its tool."""
        floor = 0.0 if self.floor is None else None if self.floor == "none" else self.floor
        return CollisionScene(floor, self.keep_out_boxes, self.keep_out_planes, self.tool_capsules)

    def resolve(self, name: str, given: T | None) -> T | None:
        """The cell's value of a field, or the given one if the cell has none.

        Args:
            name: One of "host", "robot", "tcp", "payload", "floor".
            given: The value given outside of the cell; None or empty for no value.

        Raises:
            InvalidParameter: Both are given, and they differ.
        """
        own, other = getattr(self, name), cast(Any, given)
        if own is None or other is None or np.size(other) == 0:
            return given if own is None else own
        text = isinstance(own, str) or isinstance(other, str)
        if own == other if text else np.allclose(own, other, rtol=0.0, atol=1e-9):
            return own
        shown, other = (value if np.ndim(value) == 0 else list(value) for value in (own, other))
        title = "TCP" if name == "tcp" else name
        where = "the cell" if self.source is None else f"the cell file {self.source}"
        raise InvalidParameter(title, other, f"{shown}, as in {where}, or left out ({_FLAGS[name]})")


def _finite(values: Sequence[float], count: int) -> bool:
    return len(values) == count and all(map(math.isfinite, values))


def tcp_requirement(tcp: Sequence[float]) -> str | None:
    """The requirement violated by a TCP in tool0: x y z (m) rx ry rz (rad); None if valid."""
    if not _finite(tcp, 6):
        return "six finite numbers: x y z in m, rx ry rz in rad"
    if math.hypot(*tcp[:3]) > _MAX_TOOL_DISTANCE or math.hypot(*tcp[3:]) > _FULL_TURN:
        return f"within {_MAX_TOOL_DISTANCE:g} m and a full turn of tool0, in m and rad (not mm, degrees)"
    return None


def tool_point_requirement(point: Sequence[float]) -> str | None:
    """The requirement violated by a point of the tool or its load (3,) in tool0, m; None if valid."""
    if _finite(point, 3) and math.hypot(*point) <= _MAX_TOOL_DISTANCE:
        return None
    return f"three finite numbers within {_MAX_TOOL_DISTANCE:g} m of tool0, in m (not mm)"


def point_requirement(point: Sequence[float]) -> str | None:
    """The requirement violated by a point of the cell (3,) in base_link, m; None if valid."""
    if _finite(point, 3) and math.hypot(*point) <= _MAX_DISTANCE:
        return None
    return f"three finite numbers within {_MAX_DISTANCE:g} m of base_link, in m (not mm)"


def size_requirement(size: Sequence[float]) -> str | None:
    """The requirement violated by the edges of a box (3,), m; None if valid."""
    if _finite(size, 3) and all(0.0 < edge <= _MAX_DISTANCE for edge in size):
        return None
    return f"three positive lengths up to {_MAX_DISTANCE:g} m, in m (not mm)"


def rotation_requirement(rotation: Sequence[float]) -> str | None:
    """The requirement violated by a rotation vector (3,), rad; None if valid."""
    if _finite(rotation, 3) and math.hypot(*rotation) <= _FULL_TURN:
        return None
    return "a rotation vector of three finite numbers, at most a full turn, in rad (not degrees)"


def direction_requirement(direction: Sequence[float]) -> str | None:
    """The requirement violated by a direction (3,); None if valid."""
    # A vector may be too long, or too short, to be normalised.
    if _finite(direction, 3) and 1e-6 <= math.hypot(*direction) <= 1e6:
        return None
    return "three finite numbers, not all of them zero"


def radius_requirement(radius: float) -> str | None:
    """The requirement violated by the radius of a part of the tool, m; None if valid."""
    if 0.0 < radius <= _MAX_TOOL_DISTANCE:
        return None
    return f"a positive length up to {_MAX_TOOL_DISTANCE:g} m, in m (not mm)"


def mass_requirement(mass: float) -> str | None:
    """The requirement violated by a mass, kg; None if valid."""
    return None if 0.0 <= mass < math.inf else "a mass in kg, not negative"


def floor_requirement(floor: Floor) -> str | None:
    """The requirement violated by a floor; None if valid."""
    known = floor == "none" if isinstance(floor, str) else math.isfinite(floor)
    return None if known else "a height in m, or none"


def name_requirement(name: str) -> str | None:
    """The requirement violated by a name; None if valid."""
    return None if name.isprintable() and name.strip() == name != "" else "a name, without blanks before or behind it"


def mounting_requirement(mounting: str | Vector) -> str | None:
    """The requirement violated by a mounting; None if valid."""
    if isinstance(mounting, str):
        return None if mounting in MOUNTINGS else f"{', '.join(MOUNTINGS)}, or a rotation vector in rad"
    return rotation_requirement(mounting)
