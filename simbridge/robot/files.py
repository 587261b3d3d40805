"""Files that users name: read within limits and refused by the field, and written whole or not at all.

Beside them `MappedArrays`, whose files have no name.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import re
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from simbridge.errors import InputFileError, OutputError, suggest
from simbridge.resources import AnyPath

T = TypeVar("T", bound=msgspec.Struct)

# Names that every model of an arm has, and pinocchio's name for the world.
RESERVED = frozenset({"base_link", "tool0", "tcp", "universe"})

# msgspec's names of types, as they read in a message.
_TYPE_NAMES = {"array": "a list", "object": "a table", "float": "a number", "int": "a whole number", "str": "text"}

MIB = 1 << 20
# Bytes (docs/trajectories.md has a table of all limits): of TOML; of the text of samples or of a recording, once it is
# decompressed; of YAML, which takes ten times as long to read.
MAX_TEXT, MAX_SAMPLES_TEXT, MAX_YAML = MIB, 512 * MIB, MIB // 4
# Of tables and lists within each other in TOML, and of names in one of its keys.
MAX_NESTING = 32
# A mapped array of more bytes is in a file without a name.
MAPPED = 1 << 23
# Of an arm: movable joints, and shapes of all links together.
MAX_JOINTS, MAX_SHAPES = 64, 1000

_YAML_ANCHOR = re.compile(r"(?:^|[\s\[\]{},:])(&)[^\s&]")

# A string (also one without its end), a comment, or a character that opens, closes, joins or separates.
_TOML_TOKEN = re.compile(
    r"""
    \"{3} (?:\\.|[^\\])*? (?:"{3,5}(?!")|\\?\Z) | '{3} .*? (?:'{3,5}(?!')|\Z)
    | "(?:\\.|[^"\\\n])*"? | '[^'\n]*'? | \#[^\n]* | [][{}.,=\n]
    """,
    re.DOTALL | re.VERBOSE,
)


def open_file(path: str | Path) -> BinaryIO:
    """Open a file for reading; one that is missing, or no regular file and so may wait or never end, is refused."""
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
    """The content of a file of at most `largest` bytes; a larger one is refused."""
    try:
        with open_file(path) as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise InputFileError(path, f"it cannot be read: {error.strerror or error}") from None
    if len(data) > largest:
        raise InputFileError(path, f"it is larger than {largest / MIB:g} MiB, the most that is read of such a file")
    return data


def read_text(path: Path, largest: int = MAX_TEXT) -> str:
    """The text of a file in UTF-8 of at most `largest` bytes; the line of a byte that is none is named."""
    data = read_bytes(path, largest)
    if b"\0" in data:
        reason, at = "this is a binary file (or UTF-16), not a text file in UTF-8", data.index(b"\0")
    else:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            reason, at = "this is not a text file in UTF-8; save it as UTF-8", error.start
    raise InputFileError(path, reason, line=data.count(b"\n", 0, at) + 1)


def decode_toml(text: str, kind: Any = dict[str, Any]) -> Any:
    """A TOML document as a table of that kind.

    Raises:
        msgspec.ValidationError: A field is missing, unknown or of another type.
        ValueError: It is not TOML, or nested too deeply, or a number is too long.
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
    """A YAML document of plain data; tags, anchors and deep nesting are refused, with the line."""
    from ruamel import yaml  # noqa: PLC0415 (start-up time: 0.03 s, for this kind of file only)

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
    """A TOML file and the checks of its fields, named by their paths, such as `links[2].mass`.

    Every method raises InputFileError, with the line where it is known.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = Path(path)
        self.text = read_text(self.path)

    def decode(self, kind: type[T]) -> T:
        """The document as a table of that kind; refused if a field is missing, unknown or of another type."""
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
        if missing := re.fullmatch(r"Object missing required field `(.+)`", reason):
            raise InputFileError(self.path, "this field is missing", field=f"{field}.{missing[1]}".lstrip("."))
        if unknown := re.fullmatch(r"Object contains unknown field `(.+)`", reason, re.DOTALL):
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


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], advice: str = "") -> Iterator[None]:
    """Turn a refusal to write a file or directory into an OutputError; advice follows the reason."""
    handled = sys.exc_info()[1]
    try:
        yield
    except OutputError:
        raise
    except (OSError, sqlite3.Error) as error:
        during = error.__context__
        if isinstance(during, KeyboardInterrupt) and during is not handled:
            # Ctrl-C while the standard library removes a directory closes a descriptor twice.
            raise during from None
        number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or error
        if isinstance(error, FileExistsError):
            reason, advice = "it exists already, and is never overwritten", advice or "; choose another name"
        raise OutputError(Path(path), f"{reason}{advice}", number) from None


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Write a file or directory that takes the place of an earlier one in one step, when it is complete and stored.

    Whatever ends the writing before that (an error, Ctrl-C, a full disk) leaves the earlier one as it was. Yields where
    to write: the same name in a temporary directory, free for other files, too. Devices and pipes are written directly.
    What cannot be written, or exists and is not to be overwritten, is an OutputError.
    """
    given, target = Path(path), Path(os.path.realpath(path))
    with writing(path):
        if given.exists() and not overwrite:
            raise FileExistsError
        if given.exists() and not (given.is_file() or given.is_dir()):
            yield given
            return
        temporary = tempfile.TemporaryDirectory(dir=target.parent, prefix=".simbridge-")
        # Removed twice, as Ctrl-C may end the first time.
        with temporary as folder, temporary:
            new, earlier = Path(folder, given.name), Path(folder, "earlier")
            yield new
            for part in (*new.rglob("*"), new):
                _store(part)
            try:
                if not overwrite and new.is_file():
                    # Of two that write it at once, one is refused.
                    target.touch(exist_ok=False)
                elif overwrite and new.is_dir() and target.is_dir():
                    # A directory does not replace one with files in it.
                    os.replace(target, earlier)
                os.replace(new, target)
            except BaseException:
                if earlier.exists() and not target.exists():
                    os.replace(earlier, target)
                raise
        _store(target.parent)


def write_file(path: str | os.PathLike[str], content: bytes, *, overwrite: bool = True) -> None:
    """Write a file as `replacing` does; the OutputError says how many bytes are missing."""
    with replacing(path, overwrite=overwrite) as new:
        try:
            new.write_bytes(content)
        except OSError as error:
            missing = len(content) - (new.stat().st_size if new.is_file() else 0)
            reason = f"{error.strerror or error}; {missing} of its {len(content)} bytes are missing"
            raise OutputError(Path(path), reason, error.errno, missing) from None


def _store(path: Path) -> None:
    """Wait until it is on the disk: else a power cut may leave an empty file under the new name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():  # Some network file systems do not store directories on request.
            raise
    finally:
        os.close(descriptor)


class MappedArrays:
    """Arrays, the large ones in files without a name: memory holds what is in use of them, also of an hour's."""

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []

    def empty(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any]:
        """An array to be filled."""
        size = math.prod(shape) * kind.itemsize
        if size <= MAPPED or sys.platform != "linux":
            return np.empty(shape, kind)
        try:
            # Not /tmp, which is memory on many computers.
            with tempfile.TemporaryFile(dir=os.environ.get("TMPDIR", "/var/tmp")) as file:
                # Where the disk is full, a file that only grows when it is written would kill the process.
                os.posix_fallocate(file.fileno(), 0, size)
                self._maps.append(mmap.mmap(file.fileno(), size))
        except OSError:
            return np.empty(shape, kind)
        return np.frombuffer(self._maps[-1], kind).reshape(shape)

    def gathered(self, count: int, blocks: Iterable[Mapping[Any, NDArray[Any]]]) -> dict[Any, NDArray[Any]]:
        """Read-only arrays of `count` rows by name, of blocks of their rows in order, each with the same names."""
        found: dict[Any, NDArray[Any]] = {}
        begin = 0
        for block in blocks:
            found = found or {name: self.empty((count, *rows.shape[1:]), rows.dtype) for name, rows in block.items()}
            end = begin + len(next(iter(block.values())))
            for name, rows in block.items():
                found[name][begin:end] = rows
            begin = end
        for array in found.values():
            array.setflags(write=False)
        self.release()
        return found

    def release(self) -> None:
        """Give their memory back; what is used again is read from the files."""
        for each in self._maps:
            each.madvise(mmap.MADV_DONTNEED)
