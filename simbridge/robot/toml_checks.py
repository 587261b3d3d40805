"""What a robot's TOML must say for there to be such an arm; every complaint names the field and its line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.robot.checks import RESERVED, first_repeated, inertia_fault, tensor
from simbridge.robot.toml_format import InertiaTable, LinkTable, RobotFile, ShapeTable
from simbridge.robot.toml_lines import FieldPath, field_lines


def field_path(field: str) -> FieldPath:
    """`links[2].mass` as ("links", 2, "mass")."""
    return tuple(int(index) if index else name for index, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", field))


class Checker:
    """Refuses fields of one file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def refuse(self, field: str, reason: str) -> NoReturn:
        """The line is the field's, or that of the innermost table it would be in."""
        lines, at = field_lines(self.text), field_path(field)
        line = next((lines[at[:n]] for n in range(len(at), 0, -1) if at[:n] in lines), None)
        raise InputFileError(self.path, reason, line=line, field=field or None)

    def length(self, field: str, values: Sequence[object], n: int) -> None:
        if len(values) != n:
            self.refuse(field, f"{n} values are needed, one a joint, but there are {len(values)}")

    def finite(self, field: str, values: Sequence[float]) -> None:
        for i, value in enumerate(values):
            if not np.isfinite(value):
                self.refuse(f"{field}[{i}]", f"this must be a finite number, not {value}")

    def positive(self, field: str, value: float) -> None:
        if not (np.isfinite(value) and value > 0.0):
            self.refuse(field, f"this must be a positive number, not {value}")

    def names(self, fields: Sequence[str], names: Sequence[str]) -> None:
        for field, name in zip(fields, names, strict=True):
            if not (name.isprintable() and name.strip()):
                self.refuse(field, f"{name!r} is no name")
            if name in RESERVED:
                self.refuse(field, f"the name '{name}' is taken: every arm has it already")
        again = first_repeated(names)
        if again is not None:
            self.refuse(fields[again], f"the name '{names[again]}' was given before")


def check_robot(check: Checker, data: RobotFile) -> None:
    kinematics, limits = data.kinematics, data.limits
    names = kinematics.joint_names
    n = len(names)
    if n == 0:
        check.refuse("kinematics.joint_names", "an arm needs at least one joint")
    check.names([f"kinematics.joint_names[{i}]" for i in range(n)], names)
    for name in ("d", "a", "alpha"):
        check.length(f"kinematics.{name}", getattr(kinematics, name), n)
        check.finite(f"kinematics.{name}", getattr(kinematics, name))
    check.finite("kinematics.base_rpy", kinematics.base_rpy)
    check.positive("controller.period", data.controller.period)
    for name in ("velocity_jump", "acceleration", "tool_speed"):
        check.positive(f"limits.{name}", getattr(limits, name))
    for name in ("position_min", "position_max", "velocity", "effort"):
        check.length(f"limits.{name}", getattr(limits, name), n)
    check.length("home", data.home, n)
    check.finite("home", data.home)
    for i, joint in enumerate(names):
        check.positive(f"limits.velocity[{i}]", limits.velocity[i])
        check.positive(f"limits.effort[{i}]", limits.effort[i])
        low, high, q = limits.position_min[i], limits.position_max[i], data.home[i]
        if not low < high:
            check.refuse(f"limits.position_min[{i}]", f"{low} is not below the upper limit of {joint}, {high}")
        if not low <= q <= high:
            check.refuse(f"home[{i}]", f"{q} rad is outside of the range of {joint}, {low} to {high}")
    check.length("links", data.links, n)
    check.names([f"links[{i}].name" for i in range(n)], [link.name for link in data.links])
    _check_shapes(check, "base.shapes", data.base.shapes)
    for i, link in enumerate(data.links):
        _check_link(check, f"links[{i}]", link)


def _check_link(check: Checker, field: str, link: LinkTable) -> None:
    check.positive(f"{field}.mass", link.mass)
    check.finite(f"{field}.center_of_mass", link.center_of_mass)
    check.finite(f"{field}.inertia_rpy", link.inertia_rpy)
    for name, moment in msgspec.structs.asdict(link.inertia).items():
        if not np.isfinite(moment):
            check.refuse(f"{field}.inertia.{name}", f"this must be a finite number, not {moment}")
    matrix = inertia_matrix(link.inertia)
    fault = inertia_fault(matrix)
    if fault:
        check.refuse(f"{field}.inertia", fault)
    if np.linalg.eigvalsh(matrix)[0] <= 0.0:
        check.refuse(f"{field}.inertia", "the inertia tensor is not positive definite")
    _check_shapes(check, f"{field}.shapes", link.shapes)


def _check_shapes(check: Checker, field: str, shapes: Sequence[ShapeTable]) -> None:
    for i, shape in enumerate(shapes):
        check.finite(f"{field}[{i}].start", shape.start)
        check.finite(f"{field}[{i}].end", shape.end)
        check.positive(f"{field}[{i}].radius", shape.radius)
        if shape.kind == "cylinder" and shape.start == shape.end:
            check.refuse(f"{field}[{i}].end", "a cylinder must not end where it starts")


def inertia_matrix(inertia: InertiaTable) -> NDArray[np.float64]:
    return tensor(*msgspec.structs.astuple(inertia))
