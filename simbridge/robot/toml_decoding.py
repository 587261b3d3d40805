"""Decode a TOML file into msgspec's tables; complaints in our words, with field and line."""

from __future__ import annotations

import re
from typing import Any, TypeVar, get_args

import msgspec

from simbridge.errors import InputFileError, suggest
from simbridge.robot.toml_checks import Checker, field_path

T = TypeVar("T", bound=msgspec.Struct)

_WORDS = {"array": "a list", "object": "a table", "float": "a number", "int": "a whole number", "str": "text"}


def decoded(check: Checker, kind: type[T]) -> T:
    """The document of a `Checker`, as tables of that kind.

    Raises:
        InputFileError: It is not TOML, or a field is missing, unknown or of another type; names field and line.
    """
    try:
        return msgspec.toml.decode(check.text, type=kind)
    except msgspec.ValidationError as error:
        check.refuse(*_in_our_words(kind, str(error)))
    except msgspec.DecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else max(len(check.text.splitlines()), 1)
        raise InputFileError(check.path, f"this is not TOML: {error}", line=line) from None


def _in_our_words(kind: type[msgspec.Struct], message: str) -> tuple[str, str]:
    """Field and reason of a complaint of msgspec's."""
    reason, _, where = message.partition(" - at `$")
    table = where.rstrip("`").lstrip(".")
    lacking = re.fullmatch(r"Object missing required field `(.+)`", reason)
    if lacking:
        return f"{table}.{lacking[1]}".lstrip("."), "this field is missing"
    strange = re.fullmatch(r"Object contains unknown field `(.+)`", reason, re.DOTALL)
    if strange:
        known = [field.name for field in msgspec.structs.fields(_type_of(kind, table))]
        return f"{table}.{strange[1]}".lstrip("."), f"there is no such field. {suggest(strange[1], known)}"
    if reason.startswith("Invalid enum value"):
        return table, f"{reason[19:]} is not among the known: {', '.join(get_args(_type_of(kind, table)))}"
    reason = re.sub(r"`([\w |]+)`", lambda names: " or ".join(map(_word, names[1].split(" | "))), reason)
    return table, reason[0].lower() + reason[1:]


def _word(name: str) -> str:
    return _WORDS.get(name, name)


def _type_of(kind: Any, field: str) -> Any:
    for part in field_path(field):
        if isinstance(part, int):
            kind = get_args(kind)[0]
        else:
            kind = next(known.type for known in msgspec.structs.fields(kind) if known.name == part)
    return kind
