"""The packages that `package://NAME/...` and `$(find NAME)` in a URDF or xacro file stand for.

This module imports only the standard library, so that the process that expands xacro files starts
quickly.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from simbridge.errors import InvalidParameter

PACKAGE_FILE = "package.xml"
# Bytes of a package.xml in which its name is looked for.
MAX_PACKAGE_FILE_BYTES = 1 << 20
_PACKAGE_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")


def read_packages(text: str) -> tuple[str, ...]:
    """Return the packages in a value of --package.

    Args:
        text: NAME=DIR, several separated by commas.

    Raises:
        InvalidParameter: An entry is not of this form, or there is no such directory.
    """
    packages = tuple(part.strip() for part in text.split(",") if part.strip())
    parse_packages(packages)
    return packages


def parse_packages(packages: tuple[str, ...]) -> dict[str, Path]:
    """Return the directories of packages by their names.

    Args:
        packages: The packages, each as NAME=DIR.

    Raises:
        InvalidParameter: An entry is not of this form, or there is no such directory.
    """
    directories = {}
    for package in packages:
        name, equals, directory = package.partition("=")
        if not (name and equals and Path(directory).expanduser().is_dir()):
            needed = "NAME=DIR, a package's name and a directory that exists"
            raise InvalidParameter("package", package, needed)
        directories[name] = Path(directory).expanduser().resolve()
    return directories


def declared_name(directory: Path) -> str | None:
    """Return the name in a directory's package.xml; None without one."""
    file = directory / PACKAGE_FILE
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if file.is_file():
            with file.open("rb") as stream:
                text = stream.read(MAX_PACKAGE_FILE_BYTES).decode()
            match = _PACKAGE_NAME.search(text)
            return match[1] if match else None
    return None


def search_path() -> list[Path]:
    """Return the directories of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH that hold packages."""
    ros = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    ament = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    directories = [Path(part) for part in ros if part]
    directories += [Path(part, "share") for part in ament if part]
    return directories


@dataclass(frozen=True)
class Packages:
    """Finds the packages that `package://NAME/...` and `$(find NAME)` in one file stand for.

    Looked up in this order: `named`, ROS_PACKAGE_PATH, AMENT_PREFIX_PATH, and the directories that
    the file is in: one that is called so, has a package.xml of that name, or contains a directory
    that is called so.

    Attributes:
        file: The URDF or xacro file.
        named: Directories of packages that the user named.
    """

    file: Path
    named: Mapping[str, Path] = field(default_factory=dict)

    def candidates(self, name: str) -> Iterator[Path]:
        """Iterate over where a package may be, also where there is no such directory."""
        yield from self.configured(name)
        if name not in self.named:
            yield from _candidates_in(self.file.resolve().parents, name)

    def configured(self, name: str) -> Iterator[Path]:
        """Iterate over where a package may be according to the user.

        That is where `named` has it, else in the search path of ROS.
        """
        if name in self.named:
            yield self.named[name]
        else:
            yield from _candidates_in(search_path(), name)

    def mesh(self, reference: str) -> Path | None:
        """Return the file that a mesh's `filename` stands for; None if it is not found."""
        scheme, separator, address = reference.partition("://")
        package, _, path = unquote(address).partition("/")
        files: Iterable[Path] = ()
        if not separator:
            files = [self.file.resolve().parent / reference]
        elif scheme == "file":
            files = [Path(unquote(address))]
        elif scheme in {"package", "model"}:
            files = (directory / path for directory in self.candidates(package))
        return next(filter(Path.is_file, files), None)


def _candidates_in(directories: Iterable[Path], name: str) -> Iterator[Path]:
    """Iterate over where a package may be in directories: one that is called so, or within it."""
    # A path instead of a name would lead anywhere.
    if name in {"", ".", ".."} or os.sep in name:
        return
    for directory in directories:
        if name in (directory.name, declared_name(directory)):
            yield directory
        yield directory / name
