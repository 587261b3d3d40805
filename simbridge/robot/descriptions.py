"""Arms by the names of the package robot_descriptions, which downloads each once and keeps it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path

from simbridge.errors import InputFileError, MissingPackage, UnknownName

DESCRIPTION = "_description"
"""With what its names of URDFs end."""


def described(name: str) -> tuple[Path, dict[str, Path]]:
    """The URDF of that name, and the directories of its packages.

    A note says where it comes from before anything is downloaded.

    Raises:
        MissingPackage: robot_descriptions is not installed.
        UnknownName: It has no such name.
        InputFileError: It cannot be downloaded, or describes no URDF.
    """
    if importlib.util.find_spec("robot_descriptions") is None:
        raise MissingPackage("robot_descriptions", f"The robot {name}", extra="descriptions")
    if importlib.util.find_spec(f"robot_descriptions.{name}") is None:
        hint = "Its names are listed by: robot_descriptions list. A custom arm is given by its path: ./arm.urdf."
        raise UnknownName("robot", name, (), hint, where="in robot_descriptions")
    cache = Path(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions")).expanduser()
    warnings.warn(
        f"{name} comes from robot_descriptions; unless it is already in {cache}, it is downloaded now.", stacklevel=3
    )
    try:
        # It reports a download on standard output, which belongs to results.
        with contextlib.redirect_stdout(sys.stderr):
            module = importlib.import_module(f"robot_descriptions.{name}")
    except Exception as error:  # whatever git and the network bring about
        reason = f"robot_descriptions could not get it: {type(error).__name__}: {error}"
        raise InputFileError(cache, reason.strip(), field=name) from None
    file = getattr(module, "URDF_PATH", None) or getattr(module, "XACRO_PATH", None)
    if file is None:
        raise InputFileError(cache, "robot_descriptions has no URDF of it", field=name)
    directories = (
        Path(getattr(module, place)) for place in ("PACKAGE_PATH", "REPOSITORY_PATH") if hasattr(module, place)
    )
    return Path(file), {directory.name: directory for directory in directories}
