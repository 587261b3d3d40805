"""The arms of the package robot_descriptions, which downloads each of them once."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

from simbridge.errors import InputFileError, MissingPackage, UnknownName


class Description(NamedTuple):
    """A robot of robot_descriptions.

    Attributes:
        file: URDF or xacro file of the robot.
        packages: Directories of its packages, by name.
        arguments: Values of the xacro file's arguments, by name.
    """

    file: Path
    packages: dict[str, Path]
    arguments: dict[str, str]


def description_name(name: str) -> str | None:
    """Return NAME_description for the name of an arm.

    Args:
        name: The name as the user gave it, such as "panda" or "Panda".

    Returns:
        None if robot_descriptions has none of that name, or is not installed.
    """
    name_parts = re.split(r"[\s_-]+", name.strip().lower())
    description = "_".join([*name_parts, "description"])
    if not description.isidentifier() or importlib.util.find_spec("robot_descriptions") is None:
        return None
    is_known = importlib.util.find_spec(f"robot_descriptions.{description}") is not None
    return description if is_known else None


def find_description(name: str) -> Description:
    """Find the URDF of a name of robot_descriptions, and download it if it is not there.

    Args:
        name: Name of the robot there, such as "panda_description".

    Raises:
        MissingPackage: robot_descriptions is not installed.
        UnknownName: robot_descriptions has no robot of that name.
        InputFileError: The robot cannot be downloaded, or has no URDF.
    """
    if importlib.util.find_spec("robot_descriptions") is None:
        raise MissingPackage("robot_descriptions", f"The robot {name}", extra="descriptions")
    if importlib.util.find_spec(f"robot_descriptions.{name}") is None:
        hint = (
            "Run `robot_descriptions list` to see all names. Give an arm of your own by its path, "
            "such as ./arm.urdf."
        )
        raise UnknownName("robot", name, (), hint, where="in robot_descriptions")

    default_cache = "~/.cache/robot_descriptions"
    cache = Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", default_cache)).expanduser()
    warnings.warn(
        f"{name} comes from robot_descriptions; unless it is already in {cache}, it is downloaded "
        "now.",
        stacklevel=3,
    )
    try:
        # The package reports a download on standard output, which belongs to results.
        with contextlib.redirect_stdout(sys.stderr):
            module = importlib.import_module(f"robot_descriptions.{name}")
    except Exception as error:  # whatever git and the network bring about
        reason = f"robot_descriptions could not get it: {type(error).__name__}: {error}".strip()
        reason = f"{reason}\nWithout a network connection, give the path of a URDF."
        raise InputFileError(cache, reason, field=name) from None

    # The module names a URDF, or a xacro file with its arguments, and the directories to which
    # package:// refers.
    arguments: dict[str, str] = {}
    file = getattr(module, "URDF_PATH", None)
    if file is None:
        file = getattr(module, "XACRO_PATH", None)
        arguments = dict(getattr(module, "XACRO_ARGS", {}))
    if file is None:
        raise InputFileError(cache, "robot_descriptions has no URDF of it", field=name)
    packages = {}
    for attribute in ("PACKAGE_PATH", "REPOSITORY_PATH"):
        if hasattr(module, attribute):
            directory = Path(getattr(module, attribute))
            packages[directory.name] = directory
    return Description(Path(file), packages, arguments)
