"""Read a robot's TOML: strict, and every complaint names the field and its line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn

import msgspec
import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError
from simbridge.robot.load import read_text
from simbridge.robot.robot import Joint, Link, Robot, Shape

Vector = tuple[float, float, float]


class _Strict(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A table in which a misspelt key is an error."""


class _Controller(_Strict):
    period: float
    series: str = ""


class _Kinematics(_Strict):
    joint_names: list[str]
    d: list[float]
    a: list[float]
    alpha: list[float]
    base_rpy: Vector = (0.0, 0.0, 0.0)


class _Limits(_Strict):
    position_min: list[float]
    position_max: list[float]
    velocity: list[float]
    effort: list[float]
    velocity_jump: float
    acceleration: float
    tool_speed: float


class _Shape(_Strict):
    start: Vector
    end: Vector
    radius: float
    kind: Literal["capsule", "cylinder"] = "capsule"
    color: Literal["silver", "grey", "blue", "dark"] = "silver"
    solid: bool = True


class _Inertia(_Strict):
    ixx: float
    ixy: float
    ixz: float
    iyy: float
    iyz: float
    izz: float


class _Link(_Strict):
    name: str
    mass: float
    center_of_mass: Vector
    inertia: _Inertia
    inertia_rpy: Vector = (0.0, 0.0, 0.0)
    shapes: list[_Shape] = []


class _Base(_Strict):
    shapes: list[_Shape] = []


class _RobotFile(_Strict):
    title: str
    home: list[float]
    controller: _Controller
    kinematics: _Kinematics
    limits: _Limits
    links: list[_Link]
    base: _Base = _Base()


_COLORS: dict[str, Vector] = {
    "silver": (0.80, 0.81, 0.83),
    "grey": (0.48, 0.49, 0.52),
    "blue": (0.38, 0.62, 0.80),
    "dark": (0.16, 0.17, 0.18),
}

# Angles of pi/2 and pi in a table are meant exactly; a double cannot say so.
_SNAP = 1e-9


def snapped(matrix: np.ndarray) -> np.ndarray:
    """A rotation matrix whose entries within 1e-9 of 0 and +-1 are 0 and +-1."""
    nearest = np.round(matrix)
    return np.where(np.abs(matrix - nearest) < _SNAP, nearest, matrix)


def line_of(text: str, field: str) -> int | None:
    """The line, from 1, on which a TOML document gives `field` (such as "limits.velocity" or "links[2].mass").

    When the field itself is missing, the line of the table that lacks it; None when that is the document itself.
    """
    path = [(name, int(index or 0)) for name, index in re.findall(r"([A-Za-z_]\w*)(?:\[(\d+)\])?", field)]
    lines = text.splitlines()
    begin, found = 0, None
    for name, index in path:
        header = re.compile(rf"\s*\[\[?\s*(?:[\w.]+\.)?{re.escape(name)}\s*\]\]?")
        key = re.compile(rf"\s*{re.escape(name)}\s*=|.*[{{,]\s*{re.escape(name)}\s*=")
        headers = [i for i in range(begin, len(lines)) if header.match(lines[i])]
        keys = [i for i in range(begin, len(lines)) if key.match(lines[i])]
        if len(headers) > index:
            begin = found = headers[index]
        elif keys:
            begin = found = keys[0]
    return None if found is None else found + 1


class _Checker:
    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def refuse(self, field: str, reason: str) -> NoReturn:
        raise InputFileError(self.path, reason, line=line_of(self.text, field), field=field)

    def length(self, field: str, values: Sequence[object], n: int) -> None:
        if len(values) != n:
            self.refuse(field, f"{n} values are needed, one a joint, but there are {len(values)}")

    def positive(self, field: str, value: float) -> None:
        if not (np.isfinite(value) and value > 0.0):
            self.refuse(field, f"this must be a positive number, not {value}")

    def finite(self, field: str, values: Sequence[float]) -> None:
        if not np.all(np.isfinite(values)):
            self.refuse(field, f"these must be finite numbers, not {list(values)}")


def read_toml(path: Path, *, home: Sequence[float] | None = None) -> Robot:
    """Read one arm (see robots/README.md for the format).

    Raises:
        InputFileError: Names the field and the line at fault.
    """
    text = read_text(path)
    check = _Checker(path, text)
    try:
        data = msgspec.toml.decode(text, type=_RobotFile)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `")
        field = where.rstrip("`").removeprefix("$.").removeprefix("$")
        missing = re.search(r"field `(\w+)`", reason)
        if missing:
            field = f"{field}.{missing[1]}".lstrip(".")
        raise InputFileError(path, reason, line=line_of(text, field), field=field or None) from None
    except msgspec.DecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise InputFileError(path, f"this is not TOML: {error}", line=int(line[1]) if line else None) from None
    _check(check, data)
    positions = list(data.home if home is None else home)
    if home is not None:
        check_home(path, positions, data.limits.position_min, data.limits.position_max)
    return _robot(path, data, positions)


def check_home(path: Path, home: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
    """Refuse a home that is not one position within the limits for each joint.

    Raises:
        InputFileError: Names the joint.
    """
    if len(home) != len(low):
        raise InputFileError(path, f"home needs {len(low)} joint positions, but {len(home)} are given", field="home")
    for i, (q, lo, hi) in enumerate(zip(home, low, high, strict=True)):
        if not lo <= q <= hi:
            raise InputFileError(path, f"{q} rad is outside of the joint's range {lo} to {hi}", field=f"home[{i}]")


def _check(check: _Checker, data: _RobotFile) -> None:
    kinematics, limits = data.kinematics, data.limits
    n = len(kinematics.joint_names)
    if n == 0:
        check.refuse("kinematics.joint_names", "an arm needs at least one joint")
    for name in ("d", "a", "alpha"):
        values = getattr(kinematics, name)
        check.length(f"kinematics.{name}", values, n)
        check.finite(f"kinematics.{name}", values)
    check.finite("kinematics.base_rpy", kinematics.base_rpy)
    for name in ("position_min", "position_max", "velocity", "effort"):
        check.length(f"limits.{name}", getattr(limits, name), n)
    check.length("home", data.home, n)
    check.length("links", data.links, n)
    check.positive("controller.period", data.controller.period)
    for name in ("velocity_jump", "acceleration", "tool_speed"):
        check.positive(f"limits.{name}", getattr(limits, name))
    for i in range(n):
        check.positive("limits.velocity", limits.velocity[i])
        check.positive("limits.effort", limits.effort[i])
        low, high = limits.position_min[i], limits.position_max[i]
        if not low < high:
            check.refuse("limits.position_min", f"joint {i + 1}: the lower limit {low} is not below the upper {high}")
        if not low <= data.home[i] <= high:
            check.refuse("home", f"joint {i + 1}: {data.home[i]} rad is outside of its range {low} to {high}")
    for i, link in enumerate(data.links):
        check.positive(f"links[{i}].mass", link.mass)
        if np.linalg.eigvalsh(_tensor(link.inertia))[0] <= 0.0:
            check.refuse(f"links[{i}].inertia", "the inertia tensor is not positive definite")
        for shape in link.shapes:
            check.positive(f"links[{i}].shapes", shape.radius)


def _tensor(inertia: _Inertia) -> np.ndarray:
    return np.array(
        [
            [inertia.ixx, inertia.ixy, inertia.ixz],
            [inertia.ixy, inertia.iyy, inertia.iyz],
            [inertia.ixz, inertia.iyz, inertia.izz],
        ]
    )


def _shapes(shapes: Sequence[_Shape]) -> tuple[Shape, ...]:
    return tuple(Shape(s.kind, s.start, s.end, s.radius, _COLORS[s.color], s.solid) for s in shapes)


def _robot(path: Path, data: _RobotFile, home: Sequence[float]) -> Robot:
    kinematics, limits = data.kinematics, data.limits
    placement = pin.SE3(snapped(pin.rpy.rpyToMatrix(np.array(kinematics.base_rpy))), np.zeros(3))
    joints, links = [], []
    for i, (d, a, alpha) in enumerate(zip(kinematics.d, kinematics.a, kinematics.alpha, strict=True)):
        joints.append(
            Joint(
                name=kinematics.joint_names[i],
                kind="revolute",
                placement=placement,
                position_min=limits.position_min[i],
                position_max=limits.position_max[i],
                max_velocity=limits.velocity[i],
                max_effort=limits.effort[i],
            )
        )
        # Published masses and shapes are given where Rz(theta_i) Tz(d_i) leads: the link frame of the ROS descriptions.
        link = data.links[i]
        in_joint = pin.SE3(np.eye(3), np.array([0.0, 0.0, d]))
        turn = snapped(pin.rpy.rpyToMatrix(np.array(link.inertia_rpy)))
        body = pin.Inertia(link.mass, np.array(link.center_of_mass), turn @ _tensor(link.inertia) @ turn.T)
        links.append(Link(link.name, in_joint, in_joint.act(body), _shapes(link.shapes)))
        # T_i = Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i): all but the first factor is fixed.
        twist = snapped(pin.utils.rotate("x", alpha))
        placement = pin.SE3(twist, np.array([a, 0.0, d]))
    q = np.array(home, dtype=float)
    q.setflags(write=False)
    return Robot(
        name=path.stem,
        title=data.title,
        series=data.controller.series,
        period=data.controller.period,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=_shapes(data.base.shapes),
        tool0=placement,
        home=q,
        max_velocity_jump=limits.velocity_jump,
        max_acceleration=limits.acceleration,
        max_tool_speed=limits.tool_speed,
        source=path.resolve(),
    )
