"""xacro files become URDF, by the xacro package, without ROS."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from simbridge.errors import InputFileError, MissingPackage

if TYPE_CHECKING:
    from simbridge.robot.packages import Packages


def expanded(path: Path, packages: Packages) -> str:
    """The URDF that a xacro file stands for, with the arguments' defaults.

    Raises:
        InputFileError: xacro refuses it.
        MissingPackage: xacro is not installed.
    """
    try:
        import xacro  # an optional extra
    except ImportError:
        raise MissingPackage("xacro", f"Reading {path}", extra="xacro") from None
    missing: list[str] = []
    try:
        with _finding(packages, missing), warnings.catch_warnings():
            # Of xacro's own use of the XML library.
            warnings.simplefilter("ignore")
            return str(xacro.process_file(str(path)).toprettyxml(indent=" "))
    except Exception as error:  # whatever a file's expressions bring about
        if missing:
            name = missing[0]
            reason = f"there is no package '{name}' for $(find {name}); say where it is with --package {name}=DIR"
            raise InputFileError(path, reason) from None
        reason = " ".join(f"xacro cannot expand it: {type(error).__name__}: {error}".split())
        advice = "if it needs arguments, expand it first: xacro FILE NAME:=VALUE > arm.urdf"
        raise InputFileError(path, f"{reason}; {advice}") from None


@contextlib.contextmanager
def _finding(packages: Packages, missing: list[str]) -> Iterator[None]:
    """Answer `$(find NAME)`, for which xacro imports ROS's ament_index_python; what is not found is added to a list."""

    def get_package_share_directory(name: str) -> str:
        found = packages.find(name)
        if found is None:
            missing.append(name)
            raise LookupError(name)
        return str(found)

    index, inner = ModuleType("ament_index_python"), ModuleType("ament_index_python.packages")
    inner.get_package_share_directory = get_package_share_directory  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in (index.__name__, inner.__name__)}
    sys.modules.update({index.__name__: index, inner.__name__: inner})
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
