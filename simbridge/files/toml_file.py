"""TOML files that users name: decoded into typed tables, and refused by field and line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

import msgspec

from simbridge.errors import InputFileError, suggest
from simbridge.files.reading import read_text
from simbridge.quoting import quoted
from simbridge.resources import AnyPath

T = TypeVar("T", bound=msgspec.Struct)

# Names that every model of an arm has, and pinocchio's name for the world.
RESERVED = frozenset({"base_link", "tool0", "tcp", "universe"})

# How many tables and lists may be within each other, and names in one key.
MAX_NESTING = 32

# msgspec's names of types, as they read in a message.
_TYPE_NAMES = {
    "array": "a list",
    "object": "a table",
    "float": "a number",
    "int": "a whole number",
    "str": "text",
}

# A string (also one without its end), a comment, or a character that opens, closes, joins or
# separates.
_TOML_TOKEN = re.compile(
    r"""
    \"{3} (?:\\.|[^\\])*? (?:"{3,5}(?!")|\\?\Z) | '{3} .*? (?:'{3,5}(?!')|\Z)
    | "(?:\\.|[^"\\\n])*"? | '[^'\n]*'? | \#[^\n]* | [][{}.,=\n]
    """,
    re.DOTALL | re.VERBOSE,
)


def decode_toml(text: str, kind: Any = dict[str, Any]) -> Any:
    """Decode a TOML document as a table of a kind.

    Raises:
        msgspec.ValidationError: A field is missing, unknown or of another type.
        ValueError: It is not TOML, or nested too deeply, or a number is too long.
    """
    _check_nesting(text)
    try:
        return msgspec.toml.decode(text, type=kind)
    except msgspec.DecodeError:
        raise
    except ValueError:
        raise ValueError("a number has too many digits") from None


def _check_nesting(text: str) -> None:
    """Refuse tables and lists that are nested too deeply: decoding them would exhaust the stack."""
    depth = 0
    dots = 0
    for token in _TOML_TOKEN.finditer(text):
        mark = token[0]
        if mark == ".":
            dots += 1
        elif mark in ("\n", ",", "="):
            dots = 0
        elif mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1

        if max(depth, dots + 1) > MAX_NESTING:
            line = text.count("\n", 0, token.start()) + 1
            raise ValueError(
                f"tables or lists are nested more than {MAX_NESTING} deep (line {line})"
            )


def find_repeated(names: Sequence[str]) -> int | None:
    """Return the index of the first name that equals an earlier one; None if all differ."""
    for index, name in enumerate(names):
        if name in names[:index]:
            return index
    return None


class TomlFile:
    """A TOML file and the checks of its fields, named by their paths, such as `links[2].mass`.

    Every method raises InputFileError, with the line where it is known.
    """

    def __init__(self, path: AnyPath) -> None:
        self.path = Path(path)
        self.text = read_text(self.path)

    def decode(self, kind: type[T]) -> T:
        """Decode the document; a field that is missing, unknown or of another type is refused."""
        try:
            decoded: T = decode_toml(self.text, kind)
        except msgspec.ValidationError as error:
            self._refuse_invalid(kind, str(error))
        except ValueError as error:
            self._refuse_text(error)
        return decoded

    def decode_keys(self) -> frozenset[str]:
        """Return the keys at the top of the document, known or not."""
        try:
            return frozenset(decode_toml(self.text))
        except ValueError as error:
            self._refuse_text(error)

    def _refuse_text(self, error: ValueError) -> NoReturn:
        """Refuse a document that is not TOML, or that cannot be decoded safely."""
        in_message = re.search(r"line (\d+)", str(error))
        line = int(in_message[1]) if in_message else max(len(self.text.splitlines()), 1)
        prefix = "this is not TOML: " if isinstance(error, msgspec.DecodeError) else ""
        raise InputFileError(self.path, f"{prefix}{error}", line=line) from None

    def _refuse_invalid(self, kind: type[msgspec.Struct], message: str) -> NoReturn:
        """Refuse a field in plain words, with its line.

        Args:
            kind: The kind of the document's table.
            message: What msgspec says, such as "Expected `int | null`, got `str` - at
                `$.links[2].mass`". It ends before " - at" where the document itself is meant.
        """
        reason, _, path = message.partition(" - at `$")
        field = path.rstrip("`").lstrip(".")

        missing = re.fullmatch(r"Object missing required field `(.+)`", reason)
        if missing:
            missing_field = f"{field}.{missing[1]}".lstrip(".")
            raise InputFileError(self.path, "the field is missing", field=missing_field)

        # An unknown field is named as in the file: a key in quotes may contain a newline.
        unknown = re.fullmatch(r"Object contains unknown field `(.+)`", reason, re.DOTALL)
        if unknown:
            known_fields = msgspec.structs.fields(_find_type(kind, field))
            suggestion = suggest(unknown[1], [known_field.name for known_field in known_fields])
            unknown_field = f"{field}.{unknown[1]}".lstrip(".")
            self.refuse(unknown_field, f"unknown field. {suggestion}")

        if reason.startswith("Invalid enum value"):
            value = reason.removeprefix("Invalid enum value ")
            known_values = ", ".join(get_args(_find_type(kind, field)))
            self.refuse(field, f"{value} is not one of {known_values}")

        reason = re.sub(r"`([\w |]+)`", _name_types, reason)
        self.refuse(field, reason[0].lower() + reason[1:])

    def refuse(self, field: str, reason: str) -> NoReturn:
        """Refuse a field that the file contains."""
        raise InputFileError(self.path, reason, line=self._find_line(field), field=field or None)

    def _find_line(self, field: str) -> int | None:
        """Return the line of a field, from 1; None if it is not certain.

        It is certain if the field's key occurs exactly once in the text that is searched: the whole
        file, or, for a field of a list of tables such as `[[links]]`, from the header of the
        field's own table to the next header of the list.
        """
        start = 0
        end = len(self.text)
        # Search for a field of a list of tables, such as `links[2].mass`, in its table alone.
        table = re.match(r"([\w-]+)\[(\d+)\]", field)
        if table:
            name = table[1]
            index = int(table[2])
            pattern = rf"^[ \t]*\[\[[ \t]*[\"']?{name}[\"']?[ \t]*\]\]"
            headers = [match.start() for match in re.finditer(pattern, self.text, re.MULTILINE)]
            if headers:
                # The pattern does not find a header with an escape in its name. Any header with a
                # backslash may be one, and then the tables cannot be counted.
                has_escape = re.search(r"^[ \t]*\[\[.*\\", self.text, re.MULTILINE) is not None
                if has_escape or index >= len(headers):
                    return None
                edges = [*headers, end]
                start = edges[index]
                end = edges[index + 1]

        # The field's key is the last name of its path. Where the document itself is meant, there is
        # none: (?!) matches nothing.
        without_indices = re.sub(r"\[\d+\]", "", field)
        names = re.findall(r"[^.\[\]]+", without_indices)
        key = re.escape(names[-1]) if names else r"(?!)"

        # Find the key outside of comments.
        pattern = rf"^[^#\n]*?(?<![\w-]){key}\s*="
        matches = list(re.finditer(pattern, self.text[start:end], re.MULTILINE))
        if len(matches) != 1:
            return None
        return self.text.count("\n", 0, start + matches[0].end()) + 1

    def check_length(self, field: str, values: Sequence[object], n: int) -> None:
        """Refuse another number of values than one for each joint."""
        if len(values) != n:
            reason = f"{n} values are needed, one per joint; got {len(values)}"
            self.refuse(field, reason)

    def check_finite(self, field: str, values: Sequence[float]) -> None:
        """Refuse a value that is infinite or not a number."""
        for i, value in enumerate(values):
            if not math.isfinite(value):
                self.refuse(f"{field}[{i}]", f"must be a finite number, not {value}")

    def check_positive(self, field: str, value: float) -> None:
        """Refuse a value that is not a positive, finite number."""
        if not (math.isfinite(value) and value > 0.0):
            self.refuse(field, f"must be a positive number, not {value}")

    def check_names(self, fields: Sequence[str], names: Sequence[str]) -> None:
        """Refuse names that cannot be printed, are reserved, or occur twice."""
        for field, name in zip(fields, names, strict=True):
            if not (name.isprintable() and name.strip()):
                self.refuse(field, f"{name!r} is not a valid name")
            if name in RESERVED:
                self.refuse(field, f"the name {quoted(name)} is reserved: every arm has it already")

        repeated = find_repeated(names)
        if repeated is not None:
            self.refuse(fields[repeated], f"the name {quoted(names[repeated])} is used twice")


def _name_types(types: re.Match[str]) -> str:
    """Return msgspec's types in words: "a number or a list"."""
    names = [name for name in types[1].split(" | ") if name != "null"]
    return " or ".join(_TYPE_NAMES.get(name, name) for name in names)


def _find_type(kind: Any, field: str) -> Any:
    """Find the type of a field, such as `links[2].mass`, of a table of a kind."""
    for index, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", field):
        if index:
            kind = get_args(kind)[0]
        else:
            kind = next(known.type for known in msgspec.structs.fields(kind) if known.name == name)
    return kind
