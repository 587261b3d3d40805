"""Read a file that a user wrote, and refuse it with the file, the field and what the field must be."""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar, get_args

import msgspec

from simbridge.errors import InputFileError, suggest
from simbridge.resources import AnyPath

T = TypeVar("T", bound=msgspec.Struct)

# Names that every model of an arm has, and pinocchio's name for the world.
RESERVED = frozenset({"base_link", "tool0", "tcp", "universe"})

# msgspec's names of types, as they read in a message.
_TYPE_NAMES = {"array": "a list", "object": "a table", "float": "a number", "int": "a whole number", "str": "text"}


MIB = 1 << 20
MAX_TEXT = MIB
"""Largest TOML, bytes. docs/trajectories.md has a table of all limits."""
MAX_SAMPLES_TEXT = 512 * MIB
"""Largest text of samples or of a recording, once it is decompressed, bytes."""
MAX_YAML = MIB // 4
"""Largest YAML, which takes ten times as long to read, bytes."""
MAX_NESTING = 32
"""Largest number of tables and lists within each other in TOML, and of names in one of its keys."""

MAX_JOINTS, MAX_SHAPES = 64, 1000
"""Of an arm: movable joints, and shapes of all links together."""

_YAML_ANCHOR = re.compile(r"(?:^|[\s\[\]{},:])(&)[^\s&]")

# A string (also one without its end), a comment, or a character that opens, closes, joins or separates.
_TOML_TOKEN = re.compile(
    r"""
    \"{3} (?:\\.|[^\\])*? (?:"{3,5}(?!")|\\?\Z) | '{3} .*? (?:'{3,5}(?!')|\Z)
    | "(?:\\.|[^"\\\n])*"? | '[^'\n]*'? | \#[^\n]* | [][{}.,=\n]
    """,
    re.DOTALL | re.VERBOSE,
)


def expansion(size: int) -> int:
    """How many bytes the compressed parts of a file of this size, bytes, may have when they are decompressed."""
    return 50 * size + 16 * MIB


def open_file(path: str | Path) -> BinaryIO:
    """Open a regular file the user named, for reading: neither opening nor reading it waits, or goes on for ever.

    Raises:
        InputFileError: It is missing, unreadable, or a directory, device, FIFO or socket.
    """
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputFileError(path, "this is a directory, not a file; name a file in it")
        if not stat.S_ISREG(mode):
            raise InputFileError(path, "this is a device, FIFO or socket; only regular files are read: copy it to one")
        return Path(path).open("rb")
    except FileNotFoundError as error:
        raise InputFileError(path, "there is no such file") from error
    except OSError as error:
        raise InputFileError(path, f"it cannot be read: {error.strerror or error}") from error


def read_bytes(path: str | Path, largest: int) -> bytes:
    """The content of a file the user named, of at most `largest` bytes.

    Raises:
        InputFileError: As `open_file`, or it is larger.
    """
    with open_file(path) as file:
        try:
            data = file.read(largest + 1)
        except OSError as error:
            raise InputFileError(path, f"it cannot be read: {error.strerror or error}") from None
    if len(data) > largest:
        raise InputFileError(path, f"it is larger than {largest / MIB:g} MiB, the most that is read of such a file")
    return data


def read_text(path: Path, largest: int = MAX_TEXT) -> str:
    """The text of a file the user named, of at most `largest` bytes.

    Raises:
        InputFileError: As `open_file`, or it is not UTF-8.
    """
    data = read_bytes(path, largest)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputFileError(path, "this is a binary file (or UTF-16), not a text file in UTF-8", line=line)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputFileError(path, "this is not a text file in UTF-8; save it as UTF-8", line=line) from None


def decode_toml(text: str, kind: Any = dict[str, Any]) -> Any:
    """A TOML document as a table of that kind.

    Raises:
        msgspec.ValidationError: A field is missing, unknown or of another type.
        ValueError: It is not TOML, or holds more than is read: names within names, lists within lists, digits.
    """
    depth = names = 0
    for token in _TOML_TOKEN.finditer(text):
        mark = token[0]
        names = names + 1 if mark == "." else 0 if mark in ("\n", ",", "=") else names
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        if max(depth, names + 1) > MAX_NESTING:
            line = text.count("\n", 0, token.start()) + 1
            raise ValueError(f"more than {MAX_NESTING} tables or lists are nested (line {line})")
    try:
        return msgspec.toml.decode(text, type=kind)
    except msgspec.DecodeError:
        raise
    except ValueError:
        raise ValueError("a number has more digits than can be read") from None


def read_yaml(path: Path) -> Any:
    """A YAML document of plain data.

    Raises:
        InputFileError: As `read_text`, or it is not YAML, has tags or anchors, or is nested too deeply; with the line.
    """
    from ruamel import yaml  # start-up time: 0.03 s, for this kind of file only

    text = read_text(path, MAX_YAML)
    anchor = _YAML_ANCHOR.search(text)
    if anchor is not None:
        # Merged again and again, ten of them are ten thousand million values.
        line = text.count("\n", 0, anchor.start(1)) + 1
        raise InputFileError(path, "anchors (&) are not read; write the values out", line=line)
    try:
        return yaml.YAML(typ="safe", pure=True).load(text)
    except yaml.error.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = None if mark is None else mark.line + 1
        raise InputFileError(path, f"this is not YAML: {problem or error}", line=where) from None
    except RecursionError:
        raise InputFileError(path, "too many tables or lists are nested") from None
    except (ValueError, OverflowError) as error:
        raise InputFileError(path, f"a value in it cannot be read: {error}") from None


def first_repeated(names: Sequence[str]) -> int | None:
    """The index of the first name that equals an earlier one."""
    return next((index for index, name in enumerate(names) if name in names[:index]), None)


class TomlFile:
    """A TOML file and the checks of its fields.

    A field is named by its path, such as `links[2].mass`.

    Attributes:
        path: The file.
        text: Its text.

    Raises:
        InputFileError: From every method. The line is given where it is known.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = Path(path)
        self.text = read_text(self.path)

    def decode(self, kind: type[T]) -> T:
        """The document as a table of that kind.

        Raises:
            InputFileError: It is not TOML, or a field is missing, unknown or of another type.
        """
        try:
            decoded: T = decode_toml(self.text, kind)
        except msgspec.ValidationError as error:
            self._refuse_invalid(kind, str(error))
        except ValueError as error:
            found = re.search(r"line (\d+)", str(error))
            line = int(found[1]) if found else max(len(self.text.splitlines()), 1)
            what = "this is not TOML: " if isinstance(error, msgspec.DecodeError) else ""
            raise InputFileError(self.path, f"{what}{error}", line=line) from None
        return decoded

    def _refuse_invalid(self, kind: type[msgspec.Struct], message: str) -> NoReturn:
        reason, _, path = message.partition(" - at `$")
        field = path.rstrip("`").lstrip(".")
        missing = re.fullmatch(r"Object missing required field `(.+)`", reason)
        if missing:
            name = f"{field}.{missing[1]}".lstrip(".")
            raise InputFileError(self.path, "this field is missing", field=name)
        unknown = re.fullmatch(r"Object contains unknown field `(.+)`", reason, re.DOTALL)
        if unknown:
            known = [each.name for each in msgspec.structs.fields(_type_of(kind, field))]
            self.refuse(f"{field}.{unknown[1]}".lstrip("."), f"there is no such field. {suggest(unknown[1], known)}")
        if reason.startswith("Invalid enum value"):
            self.refuse(field, f"{reason[19:]} is not among the known: {', '.join(get_args(_type_of(kind, field)))}")
        reason = re.sub(
            r"`([\w |]+)`",
            lambda found: " or ".join(_TYPE_NAMES.get(name, name) for name in found[1].split(" | ") if name != "null"),
            reason,
        )
        self.refuse(field, reason[0].lower() + reason[1:])

    def refuse(self, field: str, reason: str) -> NoReturn:
        """Refuse a field that the file contains."""
        raise InputFileError(self.path, reason, line=self._line(field), field=field or None)

    def _line(self, field: str) -> int | None:
        """The line of a field, if its key occurs only once in the file, or in its table of a list `[[links]]`."""
        start, end = 0, len(self.text)
        table = re.match(r"([\w-]+)\[(\d+)\]", field)
        if table:
            headers = [m.start() for m in re.finditer(rf"^\[\[{table[1]}\]\]", self.text, re.MULTILINE)]
            start, end = [*headers, end, end][int(table[2]) :][:2] if headers else (start, end)
        keys = re.findall(r"[^.\[\]]+", re.sub(r"\[\d+\]", "", field))
        key = re.escape(keys[-1]) if keys else r"(?!)"
        found = list(re.finditer(rf"^[^#\n]*?(?<![\w-]){key}\s*=", self.text[start:end], re.MULTILINE))
        return self.text.count("\n", 0, start + found[0].end()) + 1 if len(found) == 1 else None

    def check_length(self, field: str, values: Sequence[object], n: int) -> None:
        """One value per joint."""
        if len(values) != n:
            self.refuse(field, f"{n} values are needed, one per joint, but there are {len(values)}")

    def check_finite(self, field: str, values: Sequence[float]) -> None:
        for i, value in enumerate(values):
            if not math.isfinite(value):
                self.refuse(f"{field}[{i}]", f"this must be a finite number, not {value}")

    def check_positive(self, field: str, value: float) -> None:
        if not (math.isfinite(value) and value > 0.0):
            self.refuse(field, f"this must be a positive number, not {value}")

    def check_names(self, fields: Sequence[str], names: Sequence[str]) -> None:
        """Printable, not reserved, and each given once."""
        for field, name in zip(fields, names, strict=True):
            if not (name.isprintable() and name.strip()):
                self.refuse(field, f"{name!r} is not a name")
            if name in RESERVED:
                self.refuse(field, f"the name '{name}' is reserved: every arm has it already")
        repeated = first_repeated(names)
        if repeated is not None:
            self.refuse(fields[repeated], f"the name '{names[repeated]}' is used twice")


def _type_of(kind: Any, field: str) -> Any:
    """The type of a field of a table of that kind."""
    for index, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", field):
        if index:
            kind = get_args(kind)[0]
        else:
            kind = next(known.type for known in msgspec.structs.fields(kind) if known.name == name)
    return kind
