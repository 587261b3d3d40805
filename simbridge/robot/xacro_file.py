"""A xacro file as the URDF that it stands for, expanded in a child process within limits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from simbridge.errors import InputFileError, InvalidParameter, nearest_names, optional_package
from simbridge.files.reading import MIB
from simbridge.files.reading_process import Limits, ReadingFailed, ReadingProcess
from simbridge.quoting import quoted, quoted_list
from simbridge.robot.packages import PACKAGE_FILE, Packages, search_path
from simbridge.text import join_words

LIMITS = Limits(cpu=10, memory=1024 * MIB, output=4 * MIB)
# Names like an unknown one that a refusal asks for, at most.
MOST_NEAR = 3


def parse_xacro_args(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of xacro arguments by their names.

    Args:
        texts: The arguments, each as NAME=VALUE, or NAME:=VALUE as ROS writes it.

    Raises:
        InvalidParameter: An argument is not of this form, or is there twice.
    """
    arguments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.removesuffix(":").strip()
        if not (name and equals):
            raise InvalidParameter("xacro argument", text, "NAME=VALUE")
        if name in arguments:
            raise InvalidParameter(
                "xacro argument", text, f"given once for each name: {name} is given twice"
            )
        arguments[name] = value
    return arguments


def expand_xacro(
    path: Path, text: str, packages: Packages, arguments: Mapping[str, str] | None = None
) -> str:
    """Return the URDF that a xacro file stands for, by the package xacro alone.

    Args:
        path: The file.
        text: Content of the file.
        packages: Directories in which `$(find NAME)` is looked up.
        arguments: Values of its arguments; the others have their defaults.

    Raises:
        MissingPackage: xacro is not installed.
        InputFileError: It cannot be expanded, needs more than `LIMITS`, or reads what it may not
            (see `_nearby_directories` and `_configured_directories`).
    """
    optional_package("xacro", "xacro", purpose=f"Reading {path}", extra="xacro")
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

    # A missing value, or a misspelt name, may be what the expansion failed for.
    uses = Uses(answer["known"], answer["defaults"], answer["unset"])
    is_expanded = "urdf" in answer
    faults = list(_argument_faults(text, arguments, uses, is_expanded=is_expanded))
    missing = answer.get("missing", [])
    if faults:
        # Names that the file states; others may come from a value that is missing.
        missing = [name for name in missing if f"$(find {name})" in text]
    if missing:
        faults.append(_missing_packages(missing, text, packages))
    elif not faults and "refused" in answer:
        faults.append(_refused_read(answer["refused"]))
    elif not faults and not is_expanded:
        faults.append(f"xacro cannot expand it: {answer['reason']}")

    if not faults:
        return str(answer["urdf"])
    raise InputFileError(path, "; ".join(faults) + _describe_arguments(uses))


class Uses(NamedTuple):
    """The arguments that a file has declared or used, as far as it was expanded.

    Attributes:
        known: Names that the file has declared or used.
        defaults: The default values that the file declares, by name.
        unset: Names that were used although they have no value.
    """

    known: list[str]
    defaults: dict[str, str]
    unset: list[str]


def _argument_faults(
    text: str, arguments: Mapping[str, str], uses: Uses, *, is_expanded: bool
) -> Iterator[str]:
    """Yield clauses about arguments that the file does not have, and about those without a value.

    Args:
        text: The file, which may name more arguments than were seen before an expansion failed.
        arguments: The values that the user gives, by name.
        uses: What the file declares and uses.
        is_expanded: Whether the whole file was expanded.
    """
    unset = list(uses.unset)
    if unset and not is_expanded:
        unset += _unset_in_text(text, {*arguments, *uses.defaults, *unset})
    names_in_file = [*uses.known, *unset]

    for name in arguments:
        near = nearest_names(name, names_in_file, MOST_NEAR)
        # What was not expanded may declare a name that is not like any of those seen.
        if name in uses.known or not (near or is_expanded):
            continue
        question = f" (did you mean {' or '.join(map(quoted, near))}?)" if near else ""
        yield f"it has no argument {quoted(name)} for --xacro-arg{question}"

    if unset:
        flags = [f"--xacro-arg {name}={uses.defaults.get(name, 'VALUE')}" for name in unset]
        subject = f"the argument {unset[0]} has"
        if len(unset) > 1:
            subject = f"the arguments {join_words(unset)} have"
        yield f"{subject} no value: add {' '.join(flags)}"


def _unset_in_text(text: str, known: Collection[str]) -> list[str]:
    """Return the names of arguments that a file uses, but neither the user nor a default sets.

    Args:
        text: The file.
        known: The names that need not be found.
    """
    without_comments = _without_comments(text)
    with_default = re.findall(r"<xacro:arg\s[^>]*\bname=[\"']([^\"']+)", without_comments)
    used = re.findall(r"\$\(arg\s+([^\s)]+)\s*\)", without_comments)
    return [name for name in dict.fromkeys(used) if name not in {*known, *with_default}]


def _describe_arguments(uses: Uses) -> str:
    """Return a sentence about the arguments that a file has; "" if there is nothing to say."""
    if uses.defaults:
        defaults = quoted_list(f"{name}={value}" for name, value in uses.defaults.items())
        return f". Its arguments with defaults (--xacro-arg NAME=VALUE): {defaults}"
    names = [name for name in uses.known if name not in uses.unset]
    return f". Its arguments (--xacro-arg NAME=VALUE): {quoted_list(names)}" if names else ""


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
        packages: Looks up packages.
    """
    missing = list(names)
    # xacro ends at the first one: the others are looked for here.
    for name in re.findall(r"\$\(find ([\w.-]+)\)", _without_comments(text)):
        if not any(map(Path.is_dir, packages.candidates(name))):
            missing.append(name)

    unique = list(dict.fromkeys(missing))
    uses = ", nor ".join(f"'{name}' for $(find {name})" for name in unique)
    flag = ",".join(f"{name}=DIR" for name in unique)
    return f"package {uses} not found; give its directory with --package {flag}"


def _without_comments(text: str) -> str:
    """Return a XML text without its comments."""
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def _refused_read(file: str) -> str:
    """Return the message about a file that must not be read."""
    return (
        f"it reads {file}, which is outside of its package (without a package.xml, of its "
        "directory and the one above) or hidden; if it belongs to another package, say where that "
        "is with --package NAME=DIR"
    )
