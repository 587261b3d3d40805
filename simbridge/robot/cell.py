"""A cell as data: every field may be left out, and what is given makes cell_validation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot import cell_validation
from simbridge.robot.checks import snapped
from simbridge.robot.obstacles import Box, Capsule, CollisionScene, Floor, Plane, Vector
from simbridge.robot.pose import Array
from simbridge.robot.robot import G

Six = tuple[float, float, float, float, float, float]
T = TypeVar("T")

# Base_link in the world (z up), as rotation vectors. On the wall y of base_link points down: turned about x of the
# pendant's base by a quarter, as UR's own set_gravity([0, 9.82 sin(tilt), 9.82 cos(tilt)]) takes it.
MOUNTINGS: dict[str, Vector] = {
    "floor": (0.0, 0.0, 0.0),
    "ceiling": (math.pi, 0.0, 0.0),
    "wall": (-math.pi / 2.0, 0.0, 0.0),
}
_FLAGS = {"host": "--host", "robot": "--robot", "tcp": "--tcp", "payload": "--payload", "floor": "--floor"}


@dataclass(frozen=True)
class Cell:
    """How one arm stands, what it carries and what is around it; None where that is not known.

    Attributes:
        host: Address of the controller.
        robot: Name of the arm's model ("ur10e").
        serial_number: Of the arm, as its controller tells it.
        tcp: Tool centre point in tool0: x y z (m) rx ry rz (rotation vector, rad).
        payload: Mass of the tool and what it holds, kg.
        payload_cog: Its centre of gravity in tool0, m; at the TCP by default.
        mounting: How base_link stands in a world whose z points up: "floor", "ceiling", "wall" (base_link's y points
            down), or a rotation vector, rad.
        floor: Height in base_link of the surface that the arm stands on, m, or "none".
        keep_out_boxes, keep_out_planes: Where no link may go, in base_link.
        tool_capsules: The shape of the tool in tool0.
        calibration: A TOML file with the kinematics of this very arm.
        source: The file that says all this.

    Raises:
        InvalidParameter: A field makes no sense; `name` is the field as a cell file has it.
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
        """Of the payload, in tool0, m: at the TCP by default; None where the file says neither."""
        if self.payload is None or self.payload_cog is not None or self.tcp is None:
            return self.payload_cog
        x, y, z, *_ = self.tcp
        return (x, y, z)

    def __post_init__(self) -> None:
        for name, value, needed in self._judged():
            if needed is not None:
                raise InvalidParameter(name, value, needed)

    def _judged(self) -> Iterator[tuple[str, object, str | None]]:
        """Every field that is given, its value, and what it must be if it is not."""
        for name, judge in (
            ("host", cell_validation.name_needs),
            ("robot", cell_validation.name_needs),
            ("serial_number", cell_validation.name_needs),
            ("tcp", cell_validation.tcp_needs),
            ("payload", cell_validation.mass_needs),
            ("payload_cog", cell_validation.tool_point_needs),
            ("mounting", _mounting_needs),
            ("floor", cell_validation.floor_needs),
        ):
            value: Any = getattr(self, name)
            if value is not None:
                yield name, value, judge(value)
        if self.payload_cog is not None and self.payload is None:
            yield "payload_cog", self.payload_cog, "given together with payload, whose centre it is"
        yield from self._judged_zones()
        for i, part in enumerate(self.tool_capsules):
            yield f"tool_capsules[{i}].start", part.start, cell_validation.tool_point_needs(part.start)
            yield f"tool_capsules[{i}].end", part.end, cell_validation.tool_point_needs(part.end)
            yield f"tool_capsules[{i}].radius", part.radius, cell_validation.radius_needs(part.radius)

    def _judged_zones(self) -> Iterator[tuple[str, object, str | None]]:
        names: set[str] = set()
        for kind in ("keep_out_boxes", "keep_out_planes"):
            for i, zone in enumerate(getattr(self, kind)):
                again = "another name than those before" if zone.name in names else None
                names.add(zone.name)
                yield f"{kind}[{i}].name", zone.name, cell_validation.name_needs(zone.name) or again
        for i, box in enumerate(self.keep_out_boxes):
            yield f"keep_out_boxes[{i}].centre", box.centre, cell_validation.point_needs(box.centre)
            yield f"keep_out_boxes[{i}].size", box.size, cell_validation.size_needs(box.size)
            yield f"keep_out_boxes[{i}].rotation", box.rotation, cell_validation.rotation_needs(box.rotation)
        for i, plane in enumerate(self.keep_out_planes):
            yield f"keep_out_planes[{i}].point", plane.point, cell_validation.point_needs(plane.point)
            yield f"keep_out_planes[{i}].normal", plane.normal, cell_validation.direction_needs(plane.normal)

    @property
    def gravity(self) -> Array:
        """Acceleration of free fall (3,) in base_link, m/s^2."""
        turn = MOUNTINGS[self.mounting] if isinstance(self.mounting, str) else self.mounting or (0.0, 0.0, 0.0)
        gravity: Array = snapped(pin.exp3(np.array(turn))).T @ np.array([0.0, 0.0, -G])
        return gravity

    @property
    def collision_scene(self) -> CollisionScene:
        """What the arm must not touch, and the shape of its tool."""
        floor = 0.0 if self.floor is None else None if self.floor == "none" else self.floor
        return CollisionScene(floor, self.keep_out_boxes, self.keep_out_planes, self.tool_capsules)

    def agreed(self, name: str, given: T | None) -> T | None:
        """A field's value as the cell says, or what was given beside it where the cell leaves it out.

        Args:
            name: One of "host", "robot", "tcp", "payload", "floor".
            given: None, or empty, for nothing.

        Raises:
            InvalidParameter: Both are given, and they differ.
        """
        own, beside = getattr(self, name), cast(Any, given)
        if own is None or beside is None or np.size(beside) == 0:
            return given if own is None else own
        words = isinstance(own, str) or isinstance(beside, str)
        if own == beside if words else np.allclose(own, beside, rtol=0.0, atol=1e-9):
            return own
        shown, beside = (value if np.ndim(value) == 0 else list(value) for value in (own, beside))
        title = "TCP" if name == "tcp" else name
        where = "the cell" if self.source is None else f"the cell file {self.source}"
        raise InvalidParameter(title, beside, f"{shown}, as {where} says, or be left out ({_FLAGS[name]})")


def _mounting_needs(mounting: str | Vector) -> str | None:
    if isinstance(mounting, str):
        return None if mounting in MOUNTINGS else f"{', '.join(MOUNTINGS)}, or a rotation vector in rad"
    return cell_validation.rotation_needs(mounting)
