"""The obstacles that an arm must not touch, and the shape of its tool, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from simbridge.robot import Vector

# Height in base_link, m, or no floor.
Floor = float | Literal["none"]


class Box(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A box that the arm must not enter.

    Attributes:
        name: Name of the box.
        centre: Centre of the box in base_link, m.
        size: The full lengths of its edges, m.
        rotation: Rotation vector of its edges, in base_link, rad.
    """

    name: str
    centre: Vector
    size: Vector
    rotation: Vector = (0.0, 0.0, 0.0)


class Plane(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plane that the arm must not cross.

    Attributes:
        name: Name of the plane.
        point: Any point of the plane, in base_link, m.
        normal: Towards the arm's side, in base_link.
    """

    name: str
    point: Vector
    normal: Vector


class Capsule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the tool: everything within a radius of a line; a sphere if its ends are equal.

    Attributes:
        start: One end of the line, in tool0, m.
        end: Other end of the line.
        radius: Radius, m.
    """

    start: Vector
    end: Vector
    radius: float


@dataclass(frozen=True)
class CollisionScene:
    """The obstacles that an arm must not touch, and the shape of its tool.

    Attributes:
        floor: Height in base_link of the surface the arm is mounted on, m; None for no floor. The
            base and the first link may reach into it.
        boxes: Checked against every link except the base, which never moves.
        planes: Checked against every link except the base.
        tool: Replaces the thin rod from the flange to the TCP that represents a tool of unknown
            shape.
    """

    floor: float | None = 0.0
    boxes: tuple[Box, ...] = ()
    planes: tuple[Plane, ...] = ()
    tool: tuple[Capsule, ...] = ()


# Base_link's xy plane as the floor, and nothing else.
BARE_FLOOR = CollisionScene()
