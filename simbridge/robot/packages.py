"""Where the packages are that `package://NAME/...` in a URDF and `$(find NAME)` in a xacro file stand for."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from simbridge.errors import InvalidParameter

_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")


def read_packages(text: str) -> tuple[str, ...]:
    """The value of --package: NAME=DIR, several separated by commas.

    Raises:
        InvalidParameter: It is not of this form, or there is no such directory.
    """
    given = tuple(part.strip() for part in text.split(",") if part.strip())
    named(given)
    return given


def named(packages: tuple[str, ...]) -> dict[str, Path]:
    """NAME=DIR, each, as a table.

    Raises:
        InvalidParameter: One is not of this form, or there is no such directory.
    """
    table = {}
    for given in packages:
        name, equals, directory = given.partition("=")
        if not (name and equals and Path(directory).expanduser().is_dir()):
            raise InvalidParameter("package", given, "NAME=DIR, a package's name and a directory that exists")
        table[name] = Path(directory).expanduser().resolve()
    return table


@dataclass(frozen=True)
class Packages:
    """Finds packages for one file.

    Looked up in this order: `named`, ROS_PACKAGE_PATH, AMENT_PREFIX_PATH, and the directories that the file is in:
    one that is called so, has a package.xml of that name, or contains a directory that is called so.

    Attributes:
        file: The URDF or xacro file.
        named: Directories of packages, by name.
    """

    file: Path
    named: Mapping[str, Path] = field(default_factory=dict)

    def find(self, name: str) -> Path | None:
        """The directory of a package; None if it is found nowhere."""
        return next((place for place in self._places(name) if place.is_dir()), None)

    def _places(self, name: str) -> Iterator[Path]:
        if name in self.named:
            yield self.named[name]
            return
        roots = [Path(part) for part in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep) if part]
        for part in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
            roots.append(Path(part, "share"))
        for directory in (*roots, *self.file.resolve().parents):
            if directory.name == name or _declared(directory) == name:
                yield directory
            yield directory / name

    def mesh(self, reference: str) -> Path | None:
        """The file that a mesh's `filename` stands for; None if it is not found."""
        scheme, separator, rest = reference.partition("://")
        if not separator:
            return _existing(self.file.resolve().parent / reference)
        if scheme == "file":
            return _existing(Path(unquote(rest)))
        package, _, inside = unquote(rest).partition("/")
        places = self._places(package) if scheme in {"package", "model"} else ()
        return next(filter(None, (_existing(place / inside) for place in places)), None)


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


def _declared(directory: Path) -> str | None:
    """The name in a directory's package.xml."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = _NAME.search((directory / "package.xml").read_text(encoding="utf-8"))
        return found[1] if found else None
    return None
