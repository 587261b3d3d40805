"""A cell as data: how one arm is mounted, its payload and the obstacles around it.

Every field is optional and validated. `cell_file` reads and writes its file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.files.toml_file import find_repeated
from simbridge.robot import Six, Vector
from simbridge.robot.cell_rules import MOUNTINGS, requirement
from simbridge.robot.obstacles import Box, Capsule, CollisionScene, Floor, Plane
from simbridge.robot.pose import Array, snap_right_angles
from simbridge.robot.robot import G

T = TypeVar("T")

# Boxes, planes or capsules of one cell: so many of each.
MAX_OBSTACLES = 1000


def _value(rule: str, example: Any, meaning: str) -> Any:
    """Return a field of the cell.

    Args:
        rule: Kind of its value, from `RULES`.
        example: A value, for the cell file.
        meaning: Meaning of the field, for the cell file.
    """
    return field(default=None, metadata={"rule": rule, "example": example, "meaning": meaning})


def _tables(rules: dict[str, str], example: dict[str, Any], meaning: str) -> Any:
    """Return a field that holds several tables.

    Args:
        rules: Kinds of their values, from `RULES`, by their keys.
        example: A table, for the cell file.
        meaning: What the tables mean, for the cell file.
    """
    return field(default=(), metadata={"rules": rules, "example": example, "meaning": meaning})


@dataclass(frozen=True)
class Cell:
    """One installed arm: its mounting, payload and surrounding obstacles; None if unknown.

    The fields describe themselves, in SI units; `source` is the file that the cell was read from.
    docs/cell.md has more.

    Raises:
        InvalidParameter: A value is not valid; its `name` is the field as in a cell file.
    """

    host: str | None = _value("name", "192.168.1.10", "address of the controller")
    robot: str | None = _value("name", "ur10e", "the arm's model, as `simbridge robots` lists them")
    serial_number: str | None = _value(
        "name", "20195500123", "of the arm, as its controller reports it"
    )
    tcp: Six | None = _value("tcp", (0.0,) * 6, "tool centre point in tool0: x y z rx ry rz")
    payload: float | None = _value("payload", 0.0, "mass of the tool and its load")
    payload_cog: Vector | None = _value(
        "tool point", (0.0, 0.0, 0.0), "its centre of gravity, in tool0; default: at the TCP"
    )
    mounting: str | Vector | None = _value(
        "mounting",
        "floor",
        'how base_link is mounted: "floor", "ceiling", "wall" (its y axis points '
        "down), or a rotation vector",
    )
    floor: Floor | None = _value(
        "floor", 0.0, 'height in base_link of the surface the arm is mounted on, or "none"'
    )
    keep_out_boxes: tuple[Box, ...] = _tables(
        {"name": "name", "centre": "point", "size": "size", "rotation": "rotation"},
        {
            "name": "table",
            "centre": (0.8, 0.0, -0.4),
            "size": (0.6, 1.2, 0.7),
            "rotation": (0.0, 0.0, 0.0),
        },
        "Boxes that no link may come near, in base_link",
    )
    keep_out_planes: tuple[Plane, ...] = _tables(
        {"name": "name", "point": "point", "normal": "direction"},
        {"name": "wall", "point": (-0.5, 0.0, 0.0), "normal": (1.0, 0.0, 0.0)},
        "Planes behind which no link may go, in base_link: the arm stays on the normal's side",
    )
    tool_capsules: tuple[Capsule, ...] = _tables(
        {"start": "tool point", "end": "tool point", "radius": "radius"},
        {"start": (0.0, 0.0, 0.0), "end": (0.0, 0.0, 0.15), "radius": 0.05},
        "The shape of the tool in tool0: everything within a radius of a line",
    )
    calibration: Path | None = _value(
        "path", "calibration.toml", "kinematics of this individual arm, relative to this file"
    )
    feedforward: str | None = _value(
        "switch",
        "off",
        'whether to compensate for servo lag: "on" or "off"',
    )
    source: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, kind, value in self._values():
            needed = None if value is None else requirement(kind, value)
            if needed is not None:
                raise InvalidParameter(name, value, needed)
        if self.payload_cog is not None and self.payload is None:
            needed = "given together with payload: it is the payload's centre of gravity"
            raise InvalidParameter("payload_cog", self.payload_cog, needed)

        for name, tables in (
            ("keep_out_boxes", self.keep_out_boxes),
            ("keep_out_planes", self.keep_out_planes),
            ("tool_capsules", self.tool_capsules),
        ):
            if len(tables) > MAX_OBSTACLES:
                raise InvalidParameter(name, len(tables), f"at most {MAX_OBSTACLES}")

        # Boxes and planes are told apart by their names.
        zones = []
        for i, box in enumerate(self.keep_out_boxes):
            zones.append((f"keep_out_boxes[{i}].name", box.name))
        for i, plane in enumerate(self.keep_out_planes):
            zones.append((f"keep_out_planes[{i}].name", plane.name))
        repeated = find_repeated([name for _, name in zones])
        if repeated is not None:
            field_name, zone_name = zones[repeated]
            raise InvalidParameter(field_name, zone_name, "a unique name")

    def _values(self) -> Iterator[tuple[str, str, Any]]:
        """Iterate over the name, the kind (of `RULES`) and the value of every field and table."""
        for cell_field in fields(self):
            value = getattr(self, cell_field.name)
            if "rule" in cell_field.metadata:
                yield cell_field.name, cell_field.metadata["rule"], value
            if "rules" in cell_field.metadata:
                for i, table in enumerate(value):
                    for key, kind in cell_field.metadata["rules"].items():
                        yield f"{cell_field.name}[{i}].{key}", kind, getattr(table, key)

    @property
    def centre_of_gravity(self) -> Vector | None:
        """Centre of gravity of the payload, in tool0, m.

        At the TCP by default; None if neither is given.
        """
        if self.payload is None or self.payload_cog is not None or self.tcp is None:
            return self.payload_cog
        x, y, z, *_ = self.tcp
        return (x, y, z)

    @property
    def gravity(self) -> Array:
        """Gravitational acceleration (3,) in base_link, m/s^2."""
        turn = self.mounting or (0.0, 0.0, 0.0)
        if isinstance(turn, str):
            turn = MOUNTINGS[turn]
        rotation = snap_right_angles(pin.exp3(np.array(turn)))
        return np.asarray(rotation.T @ np.array([0.0, 0.0, -G]))

    @property
    def collision_scene(self) -> CollisionScene:
        """The obstacles that the arm must not touch, and the shape of its tool."""
        floor: float | None
        if self.floor is None:
            floor = 0.0
        elif self.floor == "none":
            floor = None
        else:
            floor = self.floor
        return CollisionScene(floor, self.keep_out_boxes, self.keep_out_planes, self.tool_capsules)

    def resolve(self, name: str, option: T | None) -> T | None:
        """Return the cell's value of a field, or that of an option if the cell has none.

        Args:
            name: "host", "robot", "tcp", "payload" or "floor".
            option: What was chosen besides the cell; None or an empty value stands for none.

        Raises:
            InvalidParameter: Both have a value, and they differ.
        """
        cell_value = getattr(self, name)
        option_value = cast(Any, option)

        # Only one of them has a value.
        if cell_value is None:
            return option
        if option_value is None or np.size(option_value) == 0:
            return cell_value

        # Both have one: numbers may differ by rounding.
        if isinstance(cell_value, str) or isinstance(option_value, str):
            is_same = cell_value == option_value
        else:
            is_same = np.allclose(cell_value, option_value, rtol=0.0, atol=1e-9)
        if is_same:
            return cell_value

        title = "TCP" if name == "tcp" else name
        file = "the cell" if self.source is None else f"the cell file {self.source}"
        needed = f"{_as_shown(cell_value)}, as in {file}, or left out (--{name})"
        raise InvalidParameter(title, _as_shown(option_value), needed)


def _as_shown(value: Any) -> Any:
    """Return a value as messages show it: several numbers as a list."""
    return value if np.ndim(value) == 0 else list(value)
