"""Load a robot by its name in robots/ or by the path of its TOML or URDF."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pinocchio as pin

from simbridge.errors import (
    InputFileError,
    InvalidHome,
    InvalidParameter,
    MissingPackage,
    UnknownName,
)
from simbridge.files.toml_file import TomlFile
from simbridge.resources import robot_files
from simbridge.robot.home import with_found_home
from simbridge.robot.inertia import inertia_fault, inertia_tensor
from simbridge.robot.packages import named
from simbridge.robot.parts import Joint, Link, Shape
from simbridge.robot.pose import Array, read_only, snapped
from simbridge.robot.robot import Robot
from simbridge.robot.robot_file import COLORS, RobotFile, ShapeTable, check_robot, with_lengths
from simbridge.robot.urdf_reader import read_urdf

_URDF = {".urdf", ".xml", ".xacro"}


def load_robot(
    robot: str | os.PathLike[str],
    *,
    home: Sequence[float] | None = None,
    lengths: Sequence[float] | None = None,
    base: str | None = None,
    tip: str | None = None,
    packages: Sequence[str] = (),
) -> Robot:
    """Load an arm.

    Args:
        robot: A name in robots/ ("ur10", in any case), the path of a robot TOML, of a URDF or of a xacro file, or a
            name of robot_descriptions ("panda_description"), which downloads what it does not have.
        home: Joint positions (n,) in rad from which plans start, instead of the file's, or of the found one of a URDF
            (see `simbridge.robot.home`).
        lengths: Link lengths of a planar arm (n,) in m, instead of the file's ("planar2r", "planar3r").
        base, tip: The links of a URDF between which the arm is; see `read_urdf`.
        packages: Directories of a URDF's packages, each as NAME=DIR; see `Packages`.

    Raises:
        UnknownName: There is no robot of that name.
        InputFileError: The file cannot be read, or a field is missing or wrong; names the field.
        InvalidHome: `home` is not one position within the limits for each joint.
        InvalidParameter: Another argument does not suit the arm.
    """
    files = robot_files()
    text, known = os.fspath(robot), named(tuple(packages))
    path = files.get(text) or files.get(text.lower()) or Path(text)
    if path.suffix.lower() == ".toml":
        if base or tip or packages:
            given = ", ".join(filter(None, (base, tip, *packages)))
            raise InvalidParameter(
                "base, tip or package", given, f"left out for {text}, which is not a URDF"
            )
        arm = read_toml(path, lengths)
    elif path.suffix.lower() in _URDF or os.sep in text or text.endswith("_description"):
        if lengths is not None:
            raise InvalidParameter(
                "link lengths", list(lengths), "left out for a URDF, which defines its own links"
            )
        if path.suffix.lower() not in _URDF and os.sep not in text:
            path, found = _described(text)
            known = found | known
        arm = with_found_home(read_urdf(path, base=base, tip=tip, packages=known))
        arm = replace(
            arm,
            base=base,
            tip=tip,
            packages=tuple(f"{name}={place}" for name, place in known.items()),
        )
        for note in arm.notes:
            warnings.warn(note, stacklevel=2)
    else:
        hint = "A custom arm is given by its path: ./arm.urdf, ./arm.toml; one of robot_descriptions as "
        raise UnknownName("robot", text, files, f"{hint}NAME_description.")
    return arm if home is None else replace(arm, home=_checked_home(arm, home), file_home=arm.home)


def _checked_home(arm: Robot, home: Sequence[float]) -> Array:
    if len(home) != arm.n:
        raise InvalidHome(
            arm.name, "home", f"{arm.n} joint positions are needed, but there are {len(home)}"
        )
    for i, (q, joint) in enumerate(zip(home, arm.joints, strict=True)):
        low, high = joint.position_min, joint.position_max
        if not (np.isfinite(q) and low <= q <= high):
            raise InvalidHome(
                arm.name,
                f"home[{i}]",
                f"{q} is outside of the range of {joint.name}, {low} to {high}",
            )
    return read_only(home)


def _described(name: str) -> tuple[Path, dict[str, Path]]:
    """The URDF of a name of robot_descriptions, which downloads each once, and the directories of its packages."""
    if importlib.util.find_spec("robot_descriptions") is None:
        raise MissingPackage("robot_descriptions", f"The robot {name}", extra="descriptions")
    if importlib.util.find_spec(f"robot_descriptions.{name}") is None:
        hint = "Its names are listed by: robot_descriptions list. A custom arm is given by its path: ./arm.urdf."
        raise UnknownName("robot", name, (), hint, where="in robot_descriptions")
    cache = Path(
        os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")
    ).expanduser()
    warnings.warn(
        f"{name} comes from robot_descriptions; unless it is already in {cache}, it is downloaded now.",
        stacklevel=3,
    )
    try:
        # It reports a download on standard output, which belongs to results.
        with contextlib.redirect_stdout(sys.stderr):
            module = importlib.import_module(f"robot_descriptions.{name}")
    except Exception as error:  # whatever git and the network bring about
        reason = f"robot_descriptions could not get it: {type(error).__name__}: {error}".strip()
        raise InputFileError(
            cache, f"{reason}\nWithout a network give the path of a URDF.", field=name
        ) from None
    file = getattr(module, "URDF_PATH", None) or getattr(module, "XACRO_PATH", None)
    if file is None:
        raise InputFileError(cache, "robot_descriptions has no URDF of it", field=name)
    places = ("PACKAGE_PATH", "REPOSITORY_PATH")
    directories = [Path(getattr(module, place)) for place in places if hasattr(module, place)]
    return Path(file), {directory.name: directory for directory in directories}


def read_toml(path: Path, lengths: Sequence[float] | None = None) -> Robot:
    """Read one arm (see robots/README.md for the format); `lengths` as for `load_robot`."""
    file = TomlFile(path)
    data = file.decode(RobotFile)
    check_robot(file, data)
    for i, link in enumerate(data.links):
        matrix = inertia_tensor(*msgspec.structs.astuple(link.inertia))
        fault = inertia_fault(matrix)
        if fault is None and np.linalg.eigvalsh(matrix)[0] <= 0.0:
            fault = "the inertia tensor is not positive definite"
        if fault is not None:
            file.refuse(f"links[{i}].inertia", fault)
    data = data if lengths is None else with_lengths(data, lengths)
    kinematics, limits = data.kinematics, data.limits
    bounds = (limits.position_min, limits.position_max, limits.velocity, limits.effort)
    placement = pin.SE3(snapped(pin.rpy.rpyToMatrix(np.array(kinematics.base_rpy))), np.zeros(3))
    joints, links = [], []
    for i, (d, a, alpha) in enumerate(
        zip(kinematics.d, kinematics.a, kinematics.alpha, strict=True)
    ):
        joints.append(
            Joint(kinematics.joint_names[i], "revolute", placement, *(bound[i] for bound in bounds))
        )
        # Published masses and shapes are given where Rz(theta_i) Tz(d_i) leads: the link frame of the ROS descriptions.
        link = data.links[i]
        in_joint = pin.SE3(np.eye(3), np.array([0.0, 0.0, d]))
        turn = snapped(pin.rpy.rpyToMatrix(np.array(link.inertia_rpy)))
        tensor = turn @ inertia_tensor(*msgspec.structs.astuple(link.inertia)) @ turn.T
        body = pin.Inertia(link.mass, np.array(link.center_of_mass), tensor)
        links.append(Link(link.name, in_joint, in_joint.act(body), _shapes(link.shapes)))
        # T_i = Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i): all but the first factor is fixed.
        twist = snapped(pin.utils.rotate("x", alpha))
        placement = pin.SE3(twist, np.array([a, 0.0, d]))
    return Robot(
        name=path.stem,
        title=data.title,
        series=data.controller.series,
        period=data.controller.period,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=_shapes(data.base.shapes),
        tool0=placement,
        home=read_only(data.home),
        max_velocity_jump=limits.velocity_jump,
        max_acceleration=limits.acceleration,
        max_tool_speed=limits.tool_speed,
        task=data.task,
        source=path.resolve(),
    )


def _shapes(shapes: Sequence[ShapeTable]) -> tuple[Shape, ...]:
    return tuple(Shape(s.kind, s.start, s.end, s.radius, COLORS[s.color], s.solid) for s in shapes)
