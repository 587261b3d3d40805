"""The packages that `package://NAME/...` and `$(find NAME)` in a URDF or xacro file stand for.

This module imports only the standard library, so that the process that expands xacro files starts quickly.
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
MAX_PACKAGE_FILE = 1 << 20
_PACKAGE_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")


def read_packages(text: str) -> tuple[str, ...]:
    """The value of --package, NAME=DIR, several separated by commas; one that is no directory is InvalidParameter."""
    packages = tuple(part.strip() for part in text.split(",") if part.strip())
    named(packages)
    return packages


def named(packages: tuple[str, ...]) -> dict[str, Path]:
    """NAME=DIR, each, as a table."""
    table = {}
    for package in packages:
        name, equals, directory = package.partition("=")
        if not (name and equals and Path(directory).expanduser().is_dir()):
            raise InvalidParameter(
                "package", package, "NAME=DIR, a package's name and a directory that exists"
            )
        table[name] = Path(directory).expanduser().resolve()
    return table


def declared_name(directory: Path) -> str | None:
    """The name in a directory's package.xml; None without one."""
    file = directory / PACKAGE_FILE
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if file.is_file():
            with file.open("rb") as stream:
                match = _PACKAGE_NAME.search(stream.read(MAX_PACKAGE_FILE).decode())
            return match[1] if match else None
    return None


def search_path() -> list[Path]:
    """The directories of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH in which packages are looked for."""
    ros = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    ament = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [Path(part) for part in ros if part] + [Path(part, "share") for part in ament if part]


@dataclass(frozen=True)
class Packages:
    """Finds the packages that `package://NAME/...` and `$(find NAME)` in one file stand for.

    Looked up in this order: `named`, ROS_PACKAGE_PATH, AMENT_PREFIX_PATH, and the directories that the file is in:
    one that is called so, has a package.xml of that name, or contains a directory that is called so.
    """

    file: Path
    named: Mapping[str, Path] = field(default_factory=dict)

    def places(self, name: str) -> Iterator[Path]:
        """Where a package may be, also where there is no such directory."""
        yield from self.configured(name)
        if name not in self.named:
            yield from _places_in(self.file.resolve().parents, name)

    def configured(self, name: str) -> Iterator[Path]:
        """Where a package may be according to the user: `named`, else in the search path of ROS."""
        if name in self.named:
            yield self.named[name]
        else:
            yield from _places_in(search_path(), name)

    def mesh(self, reference: str) -> Path | None:
        """The file that a mesh's `filename` stands for; None if it is not found."""
        scheme, separator, rest = reference.partition("://")
        package, _, inside = unquote(rest).partition("/")
        candidates: Iterator[Path] = iter(())
        if not separator:
            candidates = iter([self.file.resolve().parent / reference])
        elif scheme == "file":
            candidates = iter([Path(unquote(rest))])
        elif scheme in {"package", "model"}:
            candidates = (place / inside for place in self.places(package))
        return next(filter(Path.is_file, candidates), None)


def _places_in(directories: Iterable[Path], name: str) -> Iterator[Path]:
    # A path instead of a name would lead anywhere.
    if name in {"", ".", ".."} or os.sep in name:
        return
    for directory in directories:
        if name in (directory.name, declared_name(directory)):
            yield directory
        yield directory / name
