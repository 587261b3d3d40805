"""The tables of a robot's TOML, as robots/README.md explains them."""

from __future__ import annotations

from typing import Literal

import msgspec

Vector = tuple[float, float, float]
Task = Literal["pose", "axis", "position"]


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A table in which a misspelt key is an error."""


class Controller(_Strict):
    period: float
    series: str = ""


class Kinematics(_Strict):
    joint_names: list[str]
    d: list[float]
    a: list[float]
    alpha: list[float]
    base_rpy: Vector = (0.0, 0.0, 0.0)


class Limits(_Strict):
    position_min: list[float]
    position_max: list[float]
    velocity: list[float]
    effort: list[float]
    velocity_jump: float
    acceleration: float
    tool_speed: float


class ShapeTable(_Strict):
    start: Vector
    end: Vector
    radius: float
    kind: Literal["capsule", "cylinder"] = "capsule"
    color: Literal["silver", "grey", "blue", "dark"] = "silver"
    solid: bool = True


class InertiaTable(_Strict):
    ixx: float
    ixy: float
    ixz: float
    iyy: float
    iyz: float
    izz: float


class LinkTable(_Strict):
    name: str
    mass: float
    center_of_mass: Vector
    inertia: InertiaTable
    inertia_rpy: Vector = (0.0, 0.0, 0.0)
    shapes: list[ShapeTable] = []


class Base(_Strict):
    shapes: list[ShapeTable] = []


class RobotFile(_Strict):
    title: str
    home: list[float]
    controller: Controller
    kinematics: Kinematics
    limits: Limits
    links: list[LinkTable]
    task: Task = "pose"
    base: Base = msgspec.field(default_factory=Base)


COLORS: dict[str, Vector] = {
    "silver": (0.80, 0.81, 0.83),
    "grey": (0.48, 0.49, 0.52),
    "blue": (0.38, 0.62, 0.80),
    "dark": (0.16, 0.17, 0.18),
}
