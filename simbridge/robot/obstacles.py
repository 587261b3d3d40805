"""What stands around an arm that it must not touch, and the shape of the tool that it carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Vector = tuple[float, float, float]
# Height in base_link, m, or that there is none.
Floor = float | Literal["none"]


@dataclass(frozen=True)
class Box:
    """A box that the arm keeps out of.

    Attributes:
        name: What it stands for ("table").
        centre: In base_link, m.
        size: Full lengths of its edges, m.
        rotation: Of its edges in base_link, as a rotation vector, rad.
    """

    name: str
    centre: Vector
    size: Vector
    rotation: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Plane:
    """A plane behind which the arm does not go.

    Attributes:
        name: What it stands for ("wall").
        point: Any of its points, in base_link, m.
        normal: The side on which the arm stays, in base_link; of any length.
    """

    name: str
    point: Vector
    normal: Vector


@dataclass(frozen=True)
class Capsule:
    """A part of the tool: everything within a radius of a line.

    Attributes:
        start, end: Ends of the line in tool0, m; a ball where they are the same.
        radius: m.
    """

    start: Vector
    end: Vector
    radius: float


@dataclass(frozen=True)
class CollisionScene:
    """All of that, as the collision check takes it.

    Attributes:
        floor: Height in base_link of the surface that the arm stands on, m; None for none. The base and the first link
            may reach into it.
        boxes, planes: No link may come near them but for the base, which never moves.
        tool: In place of the thin rod from the flange to the TCP that stands for a tool of unknown shape.
    """

    floor: float | None = 0.0
    boxes: tuple[Box, ...] = ()
    planes: tuple[Plane, ...] = ()
    tool: tuple[Capsule, ...] = ()


# The plane of base_link's x and y as the floor, and nothing else.
BARE_FLOOR = CollisionScene()
