"""A xacro file as the URDF that it stands for, expanded in a child process within limits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simbridge.errors import InputFileError, InvalidParameter, optional_package
from simbridge.files.reading import MIB
from simbridge.files.reading_process import Limits, ReadingFailed, ReadingProcess
from simbridge.quoting import quoted, quoted_list
from simbridge.robot.packages import PACKAGE_FILE, Packages, search_path

LIMITS = Limits(cpu=10, memory=1024 * MIB, output=4 * MIB)


def parse_xacro_args(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of xacro arguments by their names.

    Args:
        texts: Each as NAME=VALUE, or NAME:=VALUE as ROS writes it.

    Raises:
        InvalidParameter: One is not of this form, or is there twice.
    """
    arguments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.removesuffix(":").strip()
        if not (name and equals):
            raise InvalidParameter("xacro argument", text, "NAME=VALUE")
        if name in arguments:
            raise InvalidParameter("xacro argument", text, f"the only one that is called {name}")
        arguments[name] = value
    return arguments


def expand_xacro(
    path: Path, text: str, packages: Packages, arguments: Mapping[str, str] | None = None
) -> str:
    """Return the URDF that a xacro file stands for, by the package xacro alone.

    Args:
        path: The file.
        text: Its content.
        packages: Where `$(find NAME)` is looked up.
        arguments: Values of its arguments; the others have their defaults.

    Raises:
        MissingPackage: xacro is not installed.
        InputFileError: It cannot be expanded, needs more than `LIMITS`, or reads what it may not
            (see `_nearby_directories` and `_configured_directories`).
    """
    optional_package("xacro", "xacro", f"Reading {path}", "xacro")
    arguments = arguments or {}
    nearby_directories = [str(directory) for directory in _nearby_directories(path)]
    configured = [str(directory) for directory in _configured_directories(packages, arguments)]
    request = {
        "file": os.path.abspath(path),
        "working_directory": os.getcwd(),
        "named": {name: str(directory) for name, directory in packages.named.items()},
        "arguments": dict(arguments),
        "nearby": nearby_directories,
        "configured": configured,
    }
    with ReadingProcess("simbridge.robot.xacro_process", LIMITS) as process:
        try:
            answer: dict[str, Any] = json.loads(process.ask(json.dumps(request).encode()))
        except ReadingFailed as error:
            raise InputFileError(path, f"xacro cannot expand it: {error}") from None

    declared = answer.get("declared", [])
    if "urdf" in answer:
        _refuse_unknown(path, arguments, declared)
        return str(answer["urdf"])
    if answer.get("missing"):
        raise InputFileError(path, _missing_packages(answer["missing"], text, packages))
    if "refused" in answer:
        raise InputFileError(path, _refused_read(answer["refused"]))
    reason = f"xacro cannot expand it: {answer['reason']}"
    if declared:
        reason += f"; its arguments are given by --xacro-arg NAME=VALUE: {quoted_list(declared)}"
    raise InputFileError(path, reason)


def _refuse_unknown(path: Path, arguments: Mapping[str, str], declared: Sequence[str]) -> None:
    """Refuse arguments that a file does not declare."""
    for name in arguments:
        if name not in declared:
            known = quoted_list(declared) if declared else "none"
            reason = f"it has no argument {quoted(name)} for --xacro-arg; it declares: {known}"
            raise InputFileError(path, reason)


def _nearby_directories(path: Path) -> Iterator[Path]:
    """Iterate over the directories that a file may read around itself.

    They are its package, else its own directory and the one above.
    """
    # The file's name may be a link, as in an installed workspace: both places count.
    for file in (Path(os.path.abspath(path)), path.resolve()):
        folders = (folder for folder in file.parents if (folder / PACKAGE_FILE).is_file())
        package = next(folders, None)
        if package is not None:
            yield package
            continue

        yield file.parent
        # The root of the file system is not a project.
        if file.parent.parent != file.parent.parent.parent:
            yield file.parent.parent


def _configured_directories(packages: Packages, arguments: Mapping[str, str]) -> Iterator[Path]:
    """Iterate over the directories that the user lets a file read.

    They are those of packages, and paths among the arguments.
    """
    yield from packages.named.values()
    yield from search_path()
    for value in arguments.values():
        if os.sep in value:
            yield Path(value).expanduser()


def _missing_packages(names: Sequence[str], text: str, packages: Packages) -> str:
    """Return the message about packages that were not found.

    Args:
        names: Names that xacro looked for.
        text: The file, which may name more of them.
        packages: Where they are looked up.
    """
    missing = list(names)
    # xacro ends at the first one: the others are looked for here.
    without_comments = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for name in re.findall(r"\$\(find ([\w.-]+)\)", without_comments):
        if not any(map(Path.is_dir, packages.candidates(name))):
            missing.append(name)

    unique = list(dict.fromkeys(missing))
    uses = ", nor ".join(f"'{name}' for $(find {name})" for name in unique)
    flag = ",".join(f"{name}=DIR" for name in unique)
    return f"there is no package {uses}; say where it is with --package {flag}"


def _refused_read(file: str) -> str:
    """Return the message about a file that must not be read."""
    return (
        f"it reads {file}, which is outside of its package (without a package.xml, of its "
        "directory and the one above) or hidden; if it belongs to another package, say where that "
        "is with --package NAME=DIR"
    )
