"""The process that expands one xacro file.

A xacro file is a program: its expressions are Python without the built-in functions, and it
includes other files. An audit hook sees everything that Python does for it, and refuses all but
reading files in the permitted directories.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import warnings
import xml.dom.minidom
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn

import xacro

from simbridge.files.reading_process import serve
from simbridge.robot.packages import Packages, declared_name

# What Python reports while it computes only.
HARMLESS_EVENTS = frozenset(
    {
        "builtins.id",
        "code.__new__",
        "compile",
        "import",
        "marshal.loads",
        "object.__delattr__",
        "object.__getattr__",
        "object.__setattr__",
        "sys._getframe",
        "sys._current_frames",
    }
)
# What reads a file, or the names in a directory: its first argument is the path.
READING_EVENTS = frozenset({"open", "os.listdir", "os.scandir", "glob.glob", "glob.glob/2"})
# Attributes that lead from a generator or an error to the program around an expression. xacro
# itself refuses names that begin with two underscores, but does not look into functions and
# generators.
FORBIDDEN_NAMES = frozenset(
    {
        "ag_code",
        "ag_frame",
        "cr_code",
        "cr_frame",
        "f_back",
        "f_builtins",
        "f_code",
        "f_globals",
        "f_locals",
        "gi_code",
        "gi_frame",
        "gi_yieldfrom",
        "tb_frame",
        "tb_next",
    }
)
# Characters of xacro's own message that are shown.
MAX_MESSAGE = 300
# How many errors that wrap each other are examined.
MAX_CAUSES = 100
# Stands for the value of an argument that is missing, in a file that is refused: a text, a number
# and a truth value.
STAND_IN = "1"
# A document that makes xacro and the XML library import all that they import on demand.
WARM_UP = (
    '<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arg name="a" default="1"/>'
    '<xacro:property name="p" value="${1 + 1}"/>'
    '<xacro:macro name="m"><link name="$(arg a)${p}"/></xacro:macro>'
    "<xacro:m/></robot>"
)


class ReadRefused(PermissionError):
    """A file that the expansion must not read."""


class ActionRefused(Exception):
    """Something that an expansion does not need, such as starting a program."""


class Reads:
    """The audit hook: what the expansion may read, and what it has tried to read.

    Args:
        file: The xacro file.
        nearby: Directories around the file, which may come from anywhere: links that lead out of
            them are refused, and hidden files.
        configured: Directories that the user trusts: links in them are followed.

    Attributes:
        refused: Paths that were refused.
        forbidden: What else was refused: names in expressions, and what they would have done.
        has_read_data: Whether a file that is not XML was read.
    """

    def __init__(self, file: str, nearby: list[str], configured: list[str]) -> None:
        self._file = os.path.realpath(file)
        self._nearby = [os.path.realpath(directory) for directory in nearby]
        self._configured = [os.path.abspath(directory) for directory in configured]
        # Whether the hook refuses.
        self._is_active = False

        self.refused: list[str] = []
        self.forbidden: list[str] = []
        self.has_read_data = False

    def permit(self, directory: Path, *, configured: bool) -> None:
        """Let files in a package be read that was found by its name."""
        if configured:
            self._configured.append(os.path.abspath(directory))
        else:
            self._nearby.append(os.path.realpath(directory))

    @contextlib.contextmanager
    def active(self, active: bool) -> Iterator[None]:
        """Refuse within the block, or do not."""
        was_active = self._is_active
        self._is_active = active
        try:
            yield
        finally:
            self._is_active = was_active

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Judge what Python is about to do.

        Args:
            event: Name of the event, as `sys.addaudithook` documents.
            arguments: Arguments of the event.

        Raises:
            ReadRefused: Python is about to read a file that must not be read.
            ActionRefused: Python is about to do anything else that an expansion does not need.
        """
        if not self._is_active or event in HARMLESS_EVENTS:
            return
        # What the check itself does is not judged.
        with self.active(False):
            if event == "exec":
                self._check_names(arguments[0])
            elif event not in READING_EVENTS:
                self._forbid(event)
            elif not self._may_read(event, arguments):
                file = arguments[0]
                path = os.fsdecode(file) if isinstance(file, str | bytes) else str(file)
                self.refused.append(path)
                raise ReadRefused(errno.EACCES, "it is not allowed to be read", path)

    def _check_names(self, code: CodeType) -> None:
        """Refuse names in an expression, and in the functions in it, that lead out of it."""
        for name in code.co_names:
            if name.startswith("__") or name in FORBIDDEN_NAMES:
                self._forbid(name)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._check_names(constant)

    def _forbid(self, action: str) -> NoReturn:
        self.forbidden.append(action)
        raise ActionRefused(action)

    def _may_read(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Return whether a file or directory may be read; see `__call__` for the arguments."""
        path = arguments[0]
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        text = os.fsdecode(path)
        if event == "glob.glob" or event == "glob.glob/2":
            # It lists directories, each of which is an event of its own.
            return True
        if event != "open":
            return self._is_within(text)

        # A file that is opened.
        flags = arguments[2]
        is_for_reading = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) == 0
        if not is_for_reading:
            return False
        if not self._is_within(text) and os.path.realpath(text) != self._file:
            return False
        # A FIFO or device may never end; one that does not exist is xacro's to refuse.
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(text).st_mode):
                return False
        self.has_read_data = self.has_read_data or not text.endswith((".xacro", ".urdf", ".xml"))
        return True

    def _is_within(self, path: str) -> bool:
        """Return whether a path is in a permitted directory."""
        real = os.path.realpath(path)
        apparent = os.path.abspath(path)
        if any(_contains(directory, apparent) for directory in self._configured):
            return True
        if any(_contains(os.path.realpath(directory), real) for directory in self._configured):
            return True
        for directory in self._nearby:
            if _contains(directory, real):
                relative = os.path.relpath(real, directory)
                is_hidden = any(part.startswith(".") for part in relative.split(os.sep))
                return relative == "." or not is_hidden
        return False


def _contains(directory: str, path: str) -> bool:
    """Return whether a path is a directory, or in it."""
    return os.path.commonpath([directory, path]) == directory


def install_finder(packages: Packages, reads: Reads, missing: list[str]) -> None:
    """Answer `$(find NAME)`, for which xacro imports ROS's ament_index_python.

    Args:
        packages: Looks up packages.
        reads: What may be read, to which packages that are found are added.
        missing: A list to which the names are added that are not found.
    """

    def get_package_share_directory(name: str) -> str:
        with reads.active(False):
            for directory in packages.configured(name):
                if directory.is_dir():
                    reads.permit(directory, configured=True)
                    return str(directory)
            for directory in packages.candidates(name):
                if directory.is_dir():
                    # A directory that only happens to be called so is not thereby one to read.
                    if declared_name(directory) == name:
                        reads.permit(directory, configured=False)
                    return str(directory)
        missing.append(name)
        raise LookupError(name)

    index = ModuleType("ament_index_python")
    inner = ModuleType("ament_index_python.packages")
    inner.get_package_share_directory = get_package_share_directory  # type: ignore[attr-defined]
    sys.modules[index.__name__] = index
    sys.modules[inner.__name__] = inner


class Arguments(dict[str, str]):
    """The arguments of a file, which remember what it declares and what has no value.

    Attributes:
        known: Names that the file has declared or used, in that order.
        defaults: The default values that the file declares, by name.
        missing: Names that the file has used although they have no value.
    """

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.known: list[str] = []
        self.defaults: dict[str, str] = {}
        self.missing: list[str] = []

    def declare(self, name: str) -> None:
        """Enter a name that the file declares."""
        if name not in self.known:
            self.known.append(name)

    def require(self, name: str) -> None:
        """Enter a name that needs a value."""
        self.declare(name)
        if not super().__contains__(name) and name not in self.missing:
            self.missing.append(name)

    def __contains__(self, name: object) -> bool:
        # xacro asks this before it sets the default of an argument that it finds declared.
        if isinstance(name, str):
            self.declare(name)
        return super().__contains__(name)

    def __setitem__(self, name: str, value: str) -> None:
        self.defaults[name] = value
        super().__setitem__(name, value)

    def __getitem__(self, name: str) -> str:
        self.require(name)
        # The expansion goes on, to find what else has no value.
        return super().__getitem__(name) if super().__contains__(name) else STAND_IN

    def facts(self, reads: Reads) -> dict[str, Any]:
        """Return the fields of an answer that describe the arguments; see `expand_xacro`."""
        # A default may be an expression of data that was read.
        defaults = {} if reads.has_read_data else self.defaults
        return {"known": self.known, "defaults": defaults, "unset": self.missing}


def parse_file(file: str, arguments: Arguments) -> xml.dom.minidom.Document:
    """Parse a file as xacro does, except for two uses of arguments.

    Attributes of its root that use arguments are evaluated last: UR's own ur.urdf.xacro is called
    $(arg name), and declares the argument below. And an argument may be declared without a default,
    which makes it a required one.
    """
    xacro.init_stacks(file)
    document = xacro.parse(None, file)
    root = document.documentElement
    for name, value in list(root.attributes.items()):
        if "$(arg" in value and not name.startswith(("xmlns", "xacro:")):
            root.removeAttribute(name)
            attribute = document.createElement("xacro:attribute")
            attribute.setAttribute("name", name)
            attribute.setAttribute("value", value)
            root.appendChild(attribute)

    for declaration in list(document.getElementsByTagName("xacro:arg")):
        if declaration.hasAttribute("name") and not declaration.hasAttribute("default"):
            arguments.require(declaration.getAttribute("name"))
            declaration.parentNode.removeChild(declaration)
    return document


def answer(request: bytes) -> bytes:
    """Expand the file of a request; see `expand_xacro` for its fields and those of the answer."""
    fields = json.loads(request)
    os.chdir(fields["working_directory"])

    named = {name: Path(directory) for name, directory in fields["named"].items()}
    reads = Reads(fields["file"], fields["nearby"], fields["configured"])
    missing: list[str] = []
    arguments = Arguments(fields["arguments"])
    install_finder(Packages(Path(fields["file"]), named), reads, missing)

    # What is imported on demand is imported before the hook refuses it.
    xacro.process_doc(xacro.parse(WARM_UP))
    sys.addaudithook(reads)
    try:
        with reads.active(True), warnings.catch_warnings():
            # xacro uses parts of the XML library that are deprecated.
            warnings.simplefilter("ignore")
            document = parse_file(fields["file"], arguments)
            xacro.process_doc(document, mappings=arguments)
            urdf = document.toprettyxml(indent=" ")
    except MemoryError:
        raise
    except BaseException as error:  # whatever a file's expressions bring about
        if _is_memory(error):
            raise MemoryError from None
        refusal = {**_refusal(error, missing, reads), **arguments.facts(reads)}
        return json.dumps(refusal).encode()
    if missing or reads.refused or reads.forbidden:
        # xacro went on without what was missing or refused, as it does after an optional include.
        refusal = {**_refusal(None, missing, reads), **arguments.facts(reads)}
        return json.dumps(refusal).encode()
    expansion = {"urdf": urdf, **arguments.facts(reads)}
    return json.dumps(expansion, ensure_ascii=False).encode()


def _is_memory(error: BaseException) -> bool:
    """Return whether xacro has wrapped a MemoryError."""
    cause: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if cause is None:
            return False
        if isinstance(cause, MemoryError):
            return True
        cause = getattr(cause, "exc", None) or cause.__cause__ or cause.__context__
    return False


def _refusal(error: BaseException | None, missing: list[str], reads: Reads) -> dict[str, Any]:
    """Return the answer about a file that cannot be expanded.

    Args:
        error: What xacro raised, if anything.
        missing: Names of packages that were not found.
        reads: What was refused.

    Returns:
        The missing packages, the first file that was refused, or a reason. The reason is the action
        that was forbidden, or otherwise xacro's own message.
    """
    if missing:
        return {"missing": missing}
    if reads.refused:
        return {"refused": reads.refused[0]}
    if reads.forbidden:
        action = reads.forbidden[0]
        return {
            "reason": f"an expression uses {action}, which is not allowed in the description of an "
            "arm"
        }

    kind = type(error).__name__
    if reads.has_read_data:
        # xacro's message may quote the data that was read, which the answer must not disclose: say
        # only which kind of error it is.
        return {"reason": f"{kind} in an expression, or in a file that it loads"}

    message = " ".join(f"{kind}: {error}".split())
    # An expression can make characters that control a terminal.
    message = "".join(character if character.isprintable() else "?" for character in message)
    if len(message) > MAX_MESSAGE:
        message = f"{message[:MAX_MESSAGE]}..."
    return {"reason": message}


if __name__ == "__main__":
    serve(answer)
