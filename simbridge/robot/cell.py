"""A cell as data, and its file: every field is optional and validated.

Files are read strictly, and written so that they explain themselves and read back equal (docs/cell.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import msgspec
import numpy as np
import pinocchio as pin
import tomli_w

from simbridge.errors import InvalidParameter
from simbridge.files.toml_file import TomlFile, first_repeated
from simbridge.files.writing import write_file
from simbridge.robot import Six, Vector
from simbridge.robot.obstacles import Box, Capsule, CollisionScene, Floor, Plane
from simbridge.robot.pose import Array, snapped
from simbridge.robot.robot import G

T = TypeVar("T")

# Base_link in the world (z up), as rotation vectors. On the wall y of base_link points down: turned about x of the
# pendant's base by a quarter, as in UR's own set_gravity([0, 9.82 sin(tilt), 9.82 cos(tilt)]).
MOUNTINGS: dict[str, Vector] = {
    "floor": (0.0, 0.0, 0.0),
    "ceiling": (math.pi, 0.0, 0.0),
    "wall": (-math.pi / 2.0, 0.0, 0.0),
}


def _value(rule: str, example: Any, meaning: str) -> Any:
    """A field: its kind (of `RULES`), and an example and the meaning for the cell file."""
    return field(default=None, metadata={"rule": rule, "example": example, "meaning": meaning})


def _tables(rules: dict[str, str], example: dict[str, Any], meaning: str) -> Any:
    """As `_value`, for several tables: the kinds of their values."""
    return field(default=(), metadata={"rules": rules, "example": example, "meaning": meaning})


@dataclass(frozen=True)
class Cell:
    """How one arm is mounted, its payload and the obstacles around it; None where unknown. SI units.

    The fields describe themselves; `source` is the file that the cell was read from. docs/cell.md has more. One that is
    not valid is InvalidParameter, whose `name` is the field as in a cell file.
    """

    host: str | None = _value("name", "192.168.1.10", "address of the controller")
    robot: str | None = _value("name", "ur10e", "the arm's model, as `simbridge robots` lists them")
    serial_number: str | None = _value(
        "name", "20195500123", "of the arm, as its controller reports it"
    )
    tcp: Six | None = _value("tcp", (0.0,) * 6, "tool centre point in tool0: x y z rx ry rz")
    payload: float | None = _value("payload", 0.0, "mass of the tool and what it holds")
    payload_cog: Vector | None = _value(
        "tool point", (0.0, 0.0, 0.0), "its centre of gravity, in tool0; default: at the TCP"
    )
    mounting: str | Vector | None = _value(
        "mounting",
        "floor",
        'how base_link is mounted: "floor", "ceiling", "wall" (its y points down), or a rotation',
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
        'whether commands are sent ahead, so that the arm does not lag: "on" or "off"',
    )
    source: Path | None = field(default=None, compare=False)

    @property
    def centre_of_gravity(self) -> Vector | None:
        """Of the payload, in tool0, m: at the TCP by default; None if neither is given."""
        if self.payload is None or self.payload_cog is not None or self.tcp is None:
            return self.payload_cog
        x, y, z, *_ = self.tcp
        return (x, y, z)

    def __post_init__(self) -> None:
        for name, kind, value in self._values():
            if value is not None and (needed := requirement(kind, value)) is not None:
                raise InvalidParameter(name, value, needed)
        if self.payload_cog is not None and self.payload is None:
            raise InvalidParameter(
                "payload_cog", self.payload_cog, "given together with payload, whose centre it is"
            )
        for name in ("keep_out_boxes", "keep_out_planes", "tool_capsules"):
            if len(getattr(self, name)) > _MAX_OBSTACLES:
                raise InvalidParameter(name, len(getattr(self, name)), f"at most {_MAX_OBSTACLES}")
        zones = [
            (f"keep_out_boxes[{i}].name", box.name) for i, box in enumerate(self.keep_out_boxes)
        ]
        zones += [
            (f"keep_out_planes[{i}].name", plane.name)
            for i, plane in enumerate(self.keep_out_planes)
        ]
        repeated = first_repeated([name for _, name in zones])
        if repeated is not None:
            raise InvalidParameter(*zones[repeated], "a name that is used once")

    def _values(self) -> Iterator[tuple[str, str, Any]]:
        """The name, the kind (of `RULES`) and the value of every field, and of those of its tables."""
        for own in fields(self):
            value = getattr(self, own.name)
            if "rule" in own.metadata:
                yield own.name, own.metadata["rule"], value
            for i, table in enumerate(value if "rules" in own.metadata else ()):
                for key, kind in own.metadata["rules"].items():
                    yield f"{own.name}[{i}].{key}", kind, getattr(table, key)

    @property
    def gravity(self) -> Array:
        """Gravitational acceleration (3,) in base_link, m/s^2."""
        turn = (
            MOUNTINGS[self.mounting]
            if isinstance(self.mounting, str)
            else self.mounting or (0.0, 0.0, 0.0)
        )
        return np.asarray(snapped(pin.exp3(np.array(turn))).T @ np.array([0.0, 0.0, -G]))

    @property
    def collision_scene(self) -> CollisionScene:
        """What the arm must not touch, and the shape of its tool."""
        floor = 0.0 if self.floor is None else None if self.floor == "none" else self.floor
        return CollisionScene(floor, self.keep_out_boxes, self.keep_out_planes, self.tool_capsules)

    def resolve(self, name: str, given: T | None) -> T | None:
        """The cell's value of "host", "robot", "tcp", "payload" or "floor", or the given one if the cell has none.

        None or an empty value stands for none. Two that differ are InvalidParameter.
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
        raise InvalidParameter(title, other, f"{shown}, as in {where}, or left out (--{name})")


_MAX_OBSTACLES = 1000  # of each kind
# Most invalid values are in wrong units. A tool is not longer than this, m, no obstacle is farther away than this, m,
# and a rotation vector is not longer than this, rad.
_MAX_TOOL, _MAX_DISTANCE, _FULL_TURN = 10.0, 100.0, 2.0 * math.pi + 1e-3


def _is_vector(values: Sequence[float], longest: float, shortest: float = 0.0) -> bool:
    return (
        len(values) == 3
        and all(map(math.isfinite, values))
        and shortest <= math.hypot(*values) <= longest
    )


def _point(longest: float, frame: str) -> tuple[Callable[[Any], bool], str]:
    needed = f"three finite numbers within {longest:g} m of {frame}, in m (not mm)"
    return lambda point: _is_vector(point, longest), needed


# For each kind of value, whether a value is valid, and what it must be.
RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (
        lambda name: name.isprintable() and name.strip() == name != "",
        "a name, without blanks before or behind it",
    ),
    "tcp": (
        lambda tcp: _is_vector(tcp[:3], _MAX_TOOL) and _is_vector(tcp[3:], _FULL_TURN),
        f"six finite numbers x y z rx ry rz within {_MAX_TOOL:g} m and a full turn, in m and rad (not mm, degrees)",
    ),
    "path": (lambda path: True, "a path"),
    "switch": (lambda switch: switch in ("on", "off"), "on or off"),
    "payload": (lambda mass: 0.0 <= mass < math.inf, "a mass in kg, not negative"),
    "mounting": (
        lambda given: (
            given in MOUNTINGS if isinstance(given, str) else _is_vector(given, _FULL_TURN)
        ),
        f"{', '.join(MOUNTINGS)}, or a rotation vector up to a full turn in rad (not degrees)",
    ),
    "floor": (
        lambda floor: floor == "none" if isinstance(floor, str) else math.isfinite(floor),
        "a height in m, or none",
    ),
    "point": _point(_MAX_DISTANCE, "base_link"),
    "size": (
        lambda size: len(size) == 3 and all(0.0 < edge <= _MAX_DISTANCE for edge in size),
        f"three positive lengths up to {_MAX_DISTANCE:g} m, in m (not mm)",
    ),
    "rotation": (
        lambda rotation: _is_vector(rotation, _FULL_TURN),
        "a rotation vector of three finite numbers, at most a full turn, in rad (not degrees)",
    ),
    # A vector may be too long, or too short, to be normalised.
    "direction": (
        lambda normal: _is_vector(normal, 1e6, 1e-6),
        "three finite numbers, not all of them zero",
    ),
    "tool point": _point(_MAX_TOOL, "tool0"),
    "radius": (
        lambda radius: 0.0 < radius <= _MAX_TOOL,
        f"a positive length up to {_MAX_TOOL:g} m, in m (not mm)",
    ),
}


def requirement(kind: str, value: Any) -> str | None:
    """What a value of this kind (of `RULES`) must be; None if it is valid."""
    is_valid, needed = RULES[kind]
    return None if is_valid(value) else needed


# The cell file.

_HEAD = """\
# A cell: how one arm is mounted, its payload and the obstacles around it. docs/cell.md explains every field.
# SI units: m, rad, kg. Rotations are rotation vectors. A line that begins with # is unknown, or does not apply.
"""

# Types that a cell file has instead of the cell's own.
_FILE_TYPES = {"floor": float | str | None, "calibration": str | None}
CellFile = msgspec.defstruct(
    "CellFile",
    [
        (own.name, _FILE_TYPES.get(own.name, get_type_hints(Cell)[own.name]), own.default)
        for own in fields(Cell)
        if own.metadata
    ],
    forbid_unknown_fields=True,
)


def load_cell(path: str | os.PathLike[str]) -> Cell:
    """Read a cell (see docs/cell.md for the format); the wrong field of a file is named."""
    file = TomlFile(Path(path))
    given = msgspec.structs.asdict(file.decode(CellFile))
    if given["calibration"] is not None:
        given["calibration"] = Path(os.path.abspath(file.path.parent / given["calibration"]))
        if not given["calibration"].is_file():
            file.refuse("calibration", f"there is no file {given['calibration']}")
    try:
        return Cell(**given, source=file.path)
    except InvalidParameter as error:
        value = list(error.value) if isinstance(error.value, tuple) else error.value
        file.refuse(error.name, f"this is {value}; it must be {error.needed}")


def cell_values(cell: Cell) -> dict[str, Any]:
    """The fields of a cell that are given, under the names of its file."""
    found = msgspec.to_builtins(cell, enc_hook=str)
    return {
        name: value for name, value in found.items() if value not in (None, ()) and name != "source"
    }


def write_cell(path: str | os.PathLike[str], cell: Cell) -> None:
    """Write a cell to a new file with a comment on every field; `load_cell` reads it back equal."""
    values = cell_values(cell)
    if cell.calibration is not None:
        # Relative if it is in the cell file's folder or below it, so that they can be moved together.
        whole, folder = Path(os.path.abspath(cell.calibration)), Path(os.path.abspath(path)).parent
        values["calibration"] = str(
            whole.relative_to(folder) if whole.is_relative_to(folder) else whole
        )
    write_file(path, "\n".join([_HEAD, *_lines(values), ""]).encode(), overwrite=False)


def _text(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_text, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _lines(values: Mapping[str, Any]) -> list[str]:
    """Every field with its meaning, then every table; one that is not given is an example behind a comment mark."""
    lines, tables = [], []
    for own in fields(Cell):
        name, mark, meaning = (
            own.name,
            "" if own.name in values else "# ",
            own.metadata.get("meaning"),
        )
        if "rule" in own.metadata:
            lines.append(
                f"{mark}{name} = {_text(values.get(name, own.metadata['example']))}  # {meaning}"
            )
        elif "rules" in own.metadata:
            tables += ["", f"# {meaning}."]
            for row in values.get(name, [own.metadata["example"]]):
                tables += [
                    f"{mark}[[{name}]]",
                    *(f"{mark}{key} = {_text(value)}" for key, value in row.items()),
                ]
    return lines + tables
