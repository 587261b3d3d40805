"""A robot's TOML: its tables (robots/README.md explains them), their checks, and the lengths of a planar arm's links.

Nothing here needs numpy or pinocchio, so that the robots can be listed quickly; `load` checks the inertia.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from simbridge.errors import InvalidParameter
from simbridge.files.toml_file import TomlFile
from simbridge.robot import MAX_JOINTS, MAX_SHAPES, Task, Vector


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    """A table in which a misspelt key is an error."""


class Controller(_Table):
    period: float
    series: str = ""


class Kinematics(_Table):
    joint_names: list[str]
    d: list[float]
    a: list[float]
    alpha: list[float]
    base_rpy: Vector = (0.0, 0.0, 0.0)


class Limits(_Table):
    position_min: list[float]
    position_max: list[float]
    velocity: list[float]
    effort: list[float]
    velocity_jump: float
    acceleration: float
    tool_speed: float


class ShapeTable(_Table):
    start: Vector
    end: Vector
    radius: float
    kind: Literal["capsule", "cylinder"] = "capsule"
    color: Literal["silver", "grey", "blue", "dark"] = "silver"
    solid: bool = True


class InertiaTable(_Table):
    ixx: float
    ixy: float
    ixz: float
    iyy: float
    iyz: float
    izz: float


class LinkTable(_Table):
    name: str
    mass: float
    center_of_mass: Vector
    inertia: InertiaTable
    inertia_rpy: Vector = (0.0, 0.0, 0.0)
    shapes: list[ShapeTable] = []


class Base(_Table):
    shapes: list[ShapeTable] = []


class RobotFile(_Table):
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


def robot_facts(path: Path) -> dict[str, Any]:
    """What `simbridge robots` lists of a robot's TOML (SI units)."""
    file = TomlFile(path)
    data = file.decode(RobotFile)
    check_robot(file, data)
    chain = data.kinematics
    return {
        "robot": path.stem,
        "title": data.title,
        "joints": len(chain.joint_names),
        "controller": data.controller.series,
        "period_s": data.controller.period,
        "reach_m": sum(math.sqrt(a * a + d * d) for a, d in zip(chain.a, chain.d, strict=True)),
    }


def check_robot(file: TomlFile, data: RobotFile) -> None:
    """Check everything except the inertia of the links; the wrong field is named."""
    kinematics, limits, names = data.kinematics, data.limits, data.kinematics.joint_names
    n = len(names)
    if n == 0:
        file.refuse("kinematics.joint_names", "an arm needs at least one joint")
    if max(n, len(data.links)) > MAX_JOINTS:
        file.refuse("kinematics.joint_names", f"an arm has at most {MAX_JOINTS} joints and links")
    if len(data.base.shapes) + sum(len(link.shapes) for link in data.links) > MAX_SHAPES:
        file.refuse("links", f"an arm has at most {MAX_SHAPES} shapes")
    file.check_names([f"kinematics.joint_names[{i}]" for i in range(n)], names)
    for name in ("d", "a", "alpha"):
        file.check_length(f"kinematics.{name}", getattr(kinematics, name), n)
        file.check_finite(f"kinematics.{name}", getattr(kinematics, name))
    file.check_finite("kinematics.base_rpy", kinematics.base_rpy)
    file.check_positive("controller.period", data.controller.period)
    for name in ("velocity_jump", "acceleration", "tool_speed"):
        file.check_positive(f"limits.{name}", getattr(limits, name))
    for name in ("position_min", "position_max", "velocity", "effort"):
        file.check_length(f"limits.{name}", getattr(limits, name), n)
    file.check_length("home", data.home, n)
    file.check_finite("home", data.home)
    for i, joint in enumerate(names):
        file.check_positive(f"limits.velocity[{i}]", limits.velocity[i])
        file.check_positive(f"limits.effort[{i}]", limits.effort[i])
        low, high, q = limits.position_min[i], limits.position_max[i], data.home[i]
        if not low < high:
            file.refuse(
                f"limits.position_min[{i}]",
                f"{low} is not below the upper limit of {joint}, {high}",
            )
        if not low <= q <= high:
            file.refuse(
                f"home[{i}]", f"{q} rad is outside of the range of {joint}, {low} to {high}"
            )
    file.check_length("links", data.links, n)
    file.check_names([f"links[{i}].name" for i in range(n)], [link.name for link in data.links])
    _check_shapes(file, "base.shapes", data.base.shapes)
    for i, link in enumerate(data.links):
        file.check_positive(f"links[{i}].mass", link.mass)
        file.check_finite(f"links[{i}].center_of_mass", link.center_of_mass)
        file.check_finite(f"links[{i}].inertia_rpy", link.inertia_rpy)
        for name, moment in msgspec.structs.asdict(link.inertia).items():
            if not math.isfinite(moment):
                file.refuse(
                    f"links[{i}].inertia.{name}", f"this must be a finite number, not {moment}"
                )
        _check_shapes(file, f"links[{i}].shapes", link.shapes)


def _check_shapes(file: TomlFile, field: str, shapes: Sequence[ShapeTable]) -> None:
    for i, shape in enumerate(shapes):
        file.check_finite(f"{field}[{i}].start", shape.start)
        file.check_finite(f"{field}[{i}].end", shape.end)
        file.check_positive(f"{field}[{i}].radius", shape.radius)
        if shape.kind == "cylinder" and shape.start == shape.end:
            file.refuse(f"{field}[{i}].end", "a cylinder must not end where it starts")


def with_lengths(data: RobotFile, lengths: Sequence[float]) -> RobotFile:
    """The file's planar arm with links of these lengths (n,), m: rods of the same thickness.

    A link that is s times as long has its shapes and its centre of mass scaled by s along it and s times the mass. A
    rod's moment about its own axis, m r^2 / 2, grows by s; of the moment about a transverse axis,
    m r^2 / 4 + m l^2 / 12, the part with the length grows by s^3. InvalidParameter if the arm is not planar with its
    links along x, or these are not one positive number per link.
    """
    kinematics = data.kinematics
    if any(kinematics.alpha) or any(kinematics.d) or not all(a > 0.0 for a in kinematics.a):
        raise InvalidParameter(
            "link lengths", list(lengths), f"left out: {data.title} is not a planar arm"
        )
    if len(lengths) != len(kinematics.a) or not all(
        math.isfinite(length) and length > 0.0 for length in lengths
    ):
        needed = f"{len(kinematics.a)} positive numbers in m, one per link"
        raise InvalidParameter("link lengths", list(lengths), needed)
    new = [float(length) for length in lengths]
    links = [
        _scaled(link, length / a)
        for link, length, a in zip(data.links, new, kinematics.a, strict=True)
    ]
    return replace(data, kinematics=replace(kinematics, a=new), links=links)


def _scaled(link: LinkTable, s: float) -> LinkTable:
    def along(point: Vector) -> Vector:
        return (point[0] * s, point[1], point[2])

    def transverse(moment: float) -> float:
        return (moment - 0.5 * old.ixx) * s**3 + 0.5 * old.ixx * s

    old = link.inertia
    return replace(
        link,
        mass=link.mass * s,
        center_of_mass=along(link.center_of_mass),
        inertia=InertiaTable(
            ixx=old.ixx * s,
            ixy=old.ixy * s**2,
            ixz=old.ixz * s**2,
            iyy=transverse(old.iyy),
            iyz=old.iyz * s,
            izz=transverse(old.izz),
        ),
        shapes=[
            replace(shape, start=along(shape.start), end=along(shape.end)) for shape in link.shapes
        ],
    )
