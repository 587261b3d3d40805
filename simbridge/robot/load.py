"""Find a robot by its name in robots/ or by the path of its TOML or URDF."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from simbridge.errors import InputFileError, InvalidHome, InvalidParameter, UnknownName
from simbridge.resources import robot_files
from simbridge.robot.robot import Robot


def read_text(path: Path) -> str:
    """The text of a file the user named.

    Raises:
        InputFileError: The file is missing, a directory, unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputFileError(path, "there is no such file") from None
    except IsADirectoryError:
        raise InputFileError(path, "this is a directory, not a file") from None
    except UnicodeDecodeError:
        raise InputFileError(path, "this is not a text file (it is not UTF-8)") from None
    except OSError as error:
        raise InputFileError(path, f"it cannot be read: {error.strerror or error}") from None


def load_robot(
    robot: str | os.PathLike[str], *, home: Sequence[float] | None = None, lengths: Sequence[float] | None = None
) -> Robot:
    """Load an arm.

    Args:
        robot: A name in robots/ ("ur10"), or the path of a robot TOML or of a URDF.
        home: Joint positions (n,) in rad from which plans start, instead of the robot's own. A URDF has none: there,
            the middle of each joint's range is taken unless given.
        lengths: Of the links of a planar arm (n,) in m, instead of the file's ("planar2r", "planar3r").

    Raises:
        UnknownName: There is no robot of that name.
        InputFileError: The file cannot be read, or a field of it is missing or wrong; names field and line.
        InvalidHome: `home` is not one position within the limits for each joint.
        InvalidParameter: `lengths` are given for an arm that is not planar, or are not one positive number a link.
    """
    from simbridge.robot.checks import checked_home
    from simbridge.robot.toml_reader import read_toml
    from simbridge.robot.urdf_reader import read_urdf

    files = robot_files()
    text = os.fspath(robot)
    path = files.get(text) or Path(text)
    if path.suffix.lower() == ".toml":
        arm = read_toml(path, lengths)
    elif path.suffix.lower() in {".urdf", ".xml", ".xacro"} or os.sep in text:
        if lengths is not None:
            raise InvalidParameter("link lengths", list(lengths), "left out for a URDF: its links are what it says")
        arm = read_urdf(path)
    else:
        raise UnknownName("robot", text, files, "An arm of your own is given by its path: ./arm.urdf or ./arm.toml.")
    if home is None:
        return arm
    try:
        chosen = checked_home(path, home, arm.position_min.tolist(), arm.position_max.tolist(), arm.joint_names)
    except InputFileError as error:
        # The file is not to blame for what was given beside it.
        raise InvalidHome(arm.name, error.field or "home", error.reason) from None
    return replace(arm, home=chosen, built=arm.home)
