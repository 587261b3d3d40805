"""Load a robot by its name in robots/ or by the path of its TOML or URDF."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from simbridge.errors import InvalidHome, InvalidParameter, UnknownName
from simbridge.resources import robot_files
from simbridge.robot.home import with_found_home
from simbridge.robot.packages import parse_packages
from simbridge.robot.pose import Array, read_only
from simbridge.robot.robot import Robot
from simbridge.robot.robot_descriptions import find_description
from simbridge.robot.robot_names import find_robot, unknown_robot, unknown_ur_arm
from simbridge.robot.toml_reader import read_toml
from simbridge.robot.urdf_reader import read_urdf
from simbridge.robot.xacro_file import parse_xacro_args
from simbridge.text import join_words

URDF_SUFFIXES = {".urdf", ".xml", ".xacro"}


def load_robot(
    robot: str | os.PathLike[str],
    *,
    home: Sequence[float] | None = None,
    lengths: Sequence[float] | None = None,
    base: str | None = None,
    tip: str | None = None,
    packages: Sequence[str] = (),
    xacro_args: Sequence[str] = (),
) -> Robot:
    """Load an arm.

    Args:
        robot: A name in robots/ ("ur10", "UR 10"), the path of a robot TOML, of a URDF or of a
            xacro file, or a name of robot_descriptions ("panda_description"), which downloads what
            it does not have.
        home: Joint positions (n,) in rad from which plans start, instead of the file's, or of the
            found one of a URDF (see `simbridge.robot.home`).
        lengths: Link lengths of a planar arm (n,) in m, instead of the file's ("planar2r",
            "planar3r").
        base: The link of a URDF where the arm begins; base_link, else the root, by default.
        tip: The link of a URDF where the arm ends; tool0, else the only end, by default.
        packages: Directories of a URDF's packages, each as NAME=DIR.
        xacro_args: Values of a xacro file's arguments, each as NAME=VALUE; the others have their
            defaults.

    Raises:
        UnknownName: There is no robot of that name.
        InputFileError: The file cannot be read, or a field is missing or wrong; names the field.
        InvalidHome: `home` is not one position within the limits for each joint.
        InvalidParameter: Another argument does not suit the arm.
    """
    text = os.fspath(robot)
    known_packages = parse_packages(tuple(packages))
    arguments = parse_xacro_args(xacro_args)
    files = robot_files()
    path = find_robot(text, files) or Path(text)
    suffix = path.suffix.lower()

    if suffix == ".toml":
        _refuse_urdf_flags(text, base=base, tip=tip, packages=packages, xacro_args=xacro_args)
        arm = read_toml(path, lengths)
    elif suffix in URDF_SUFFIXES or os.sep in text or text.endswith("_description"):
        if lengths is not None:
            needed = "left out for a URDF: it defines its own links"
            raise InvalidParameter("link lengths", list(lengths), needed)
        if suffix not in URDF_SUFFIXES and os.sep not in text:
            description = find_description(text)
            path = description.file
            known_packages = description.packages | known_packages
            arguments = description.arguments | arguments
        arm = _load_urdf(
            path,
            base=base,
            tip=tip,
            packages=known_packages,
            arguments=arguments,
            home_is_given=home is not None,
        )
    else:
        raise unknown_robot(text, files)

    if home is None:
        return arm
    return replace(arm, home=_check_home(arm, home), file_home=arm.home)


def load_ur_arm(robot: str | os.PathLike[str]) -> Robot:
    """Load an arm where only those of UR will do; an unknown name is answered with these alone.

    Whether the arm of a file is one of UR is left to the caller.

    Args:
        robot: As for `load_robot`.

    Raises:
        UnknownName: There is no robot of that name.
        InputFileError: The file cannot be read, or a field is missing or wrong; names the field.
    """
    try:
        return load_robot(robot)
    except UnknownName:
        raise unknown_ur_arm(os.fspath(robot), robot_files()) from None


def _refuse_urdf_flags(
    robot: str,
    *,
    base: str | None,
    tip: str | None,
    packages: Sequence[str],
    xacro_args: Sequence[str],
) -> None:
    """Refuse flags that only a URDF or xacro file has, with a robot's TOML.

    Args:
        robot: The name or path of the TOML.
        base: The value of --base; None without it.
        tip: The value of --tip; None without it.
        packages: The values of --package.
        xacro_args: The values of --xacro-arg.
    """
    flags = [f"--base {base}"] if base else []
    flags += [f"--tip {tip}"] if tip else []
    flags += [f"--package {package}" for package in packages]
    flags += [f"--xacro-arg {argument}" for argument in xacro_args]
    if flags:
        needed = f"a URDF or xacro file with {join_words(flags)}: {robot} is defined by a TOML"
        raise InvalidParameter("robot", robot, needed)


def _load_urdf(
    path: Path,
    *,
    base: str | None,
    tip: str | None,
    packages: Mapping[str, Path],
    arguments: Mapping[str, str],
    home_is_given: bool,
) -> Robot:
    """Read an arm, find its home, and warn of what was decided; see `read_urdf`."""
    arm = read_urdf(path, base=base, tip=tip, packages=packages, arguments=arguments)
    arm = with_found_home(arm, is_replaced=home_is_given)
    for note in arm.notes:
        warnings.warn(note, stacklevel=3)
    named_packages = tuple(f"{name}={directory}" for name, directory in packages.items())
    xacro_args = tuple(f"{name}={value}" for name, value in arguments.items())
    return replace(arm, base=base, tip=tip, packages=named_packages, xacro_args=xacro_args)


def _check_home(arm: Robot, home: Sequence[float]) -> Array:
    """Return a home (n,), rad; refuse one that is not a position of the arm."""
    if len(home) != arm.n:
        reason = f"{arm.n} joint positions are needed, but {len(home)} were given"
        raise InvalidHome(arm.name, "home", reason)
    for i, (q, joint) in enumerate(zip(home, arm.joints, strict=True)):
        low = joint.position_min
        high = joint.position_max
        if not (np.isfinite(q) and low <= q <= high):
            reason = f"{q} is outside the range of {joint.name}, {low} to {high}"
            raise InvalidHome(arm.name, f"home[{i}]", reason)
    return read_only(home)
