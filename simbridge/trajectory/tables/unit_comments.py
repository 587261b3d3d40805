"""Units that the comments of a text file state in words: "# units: mm, deg", "# positions in mm".

A comment is evidence where neither the names nor `--columns` state a unit. Numbers that speak
against it, and two comments with different units, are a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, NoReturn

from simbridge.errors import InputFileError
from simbridge.text import join_words
from simbridge.trajectory.tables.units import UNIT_KINDS, UNIT_SPELLINGS

# Characters of a comment in which a unit is looked for.
MAX_COMMENT_LENGTH = 1000
# Brackets, and words; not "/" as a separator, since mm/s is not a length.
_TOKEN = re.compile(r"[\[(]|[^\s,;:=()\[\]]+")
# What stands before the unit of a quantity: "positions in mm", "position (mm)".
_MARKS = ("in", "(", "[")
# What a pose, its time and the joints of an arm are called. Units of anything else, such as an
# error or the length of a cable, are not those of the columns.
_QUANTITIES = frozenset(
    [
        *("position", "positions", "translation", "translations", "coordinate", "coordinates"),
        *("x", "y", "z", "xyz", "length", "lengths", "distance", "distances"),
        *("pose", "poses", "point", "points", "path", "trajectory", "motion"),
        *("tool", "tcp", "flange", "marker", "body"),
        *("angle", "angles", "rotation", "rotations", "orientation", "orientations"),
        *("vector", "vectors", "rx", "ry", "rz"),
        *("joint", "joints", "q"),
        *("time", "times", "timestamp", "timestamps", "stamp", "stamps", "t"),
    ]
)
# Words that may stand between a quantity and its unit.
_FILLERS = frozenset(
    [
        *("a", "all", "and", "are", "as", "column", "columns", "data", "everything", "for", "is"),
        *("number", "numbers", "of", "the", "value", "values"),
        *("exported", "expressed", "given", "logged", "measured", "recorded", "saved", "stored"),
        *("written",),
    ]
)


class CommentedUnit(NamedTuple):
    """The unit of a quantity that the comments of a file state.

    Attributes:
        units: The units; several where the comments contradict each other.
        line: The line of the first comment that states one, counted from 1.
    """

    units: tuple[str, ...]
    line: int


def find_commented_units(comments: Iterable[tuple[int, str]]) -> dict[str, CommentedUnit]:
    """Find the units of lengths, angles and times in comments.

    Args:
        comments: The line and the text of each comment, without those that name the columns.

    Returns:
        The unit by the kind of quantity: "length", "angle" and "time".
    """
    stated: dict[str, CommentedUnit] = {}
    for line, comment in comments:
        for unit in _units_in(comment[:MAX_COMMENT_LENGTH]):
            kind = UNIT_KINDS[unit]
            known = stated.get(kind, CommentedUnit((), line))
            if unit not in known.units:
                stated[kind] = CommentedUnit((*known.units, unit), min(line, known.line))
    return stated


def _units_in(comment: str) -> list[str]:
    """Return the units that a comment states for the quantities of a table."""
    words = [word.strip(".'\"").lower() for word in _TOKEN.findall(comment)]
    units = []
    for position, word in enumerate(words):
        is_named = any(map(_is_word_unit, words[position + 1 : position + 2]))
        if word in UNIT_SPELLINGS and (is_named or _introduces_unit(words[:position])):
            units.append(UNIT_SPELLINGS[word])
    return units


def _introduces_unit(words: list[str]) -> bool:
    """Return whether a unit behind these words is that of a quantity of the table.

    They are read backwards: "units", or a mark behind a quantity or behind nothing, introduces a
    unit ("units: mm, deg", "positions in mm", "[m] [deg]"); every other word is another subject
    ("error in mm").
    """
    is_marked = False
    for word in reversed(words):
        if _is_word_unit(word) or (is_marked and word in _QUANTITIES):
            return True
        if word in _MARKS:
            is_marked = True
        elif not (word in _QUANTITIES or word in _FILLERS or word in UNIT_SPELLINGS):
            return False
    return is_marked


def _is_word_unit(word: str) -> bool:
    """Return whether a word is "unit" or "units", or ends in it, such as length_unit."""
    return word.endswith(("unit", "units"))


def commented_unit(
    path: str | Path, stated: CommentedUnit | None, role: str, *, implausible: Iterable[str]
) -> str:
    """Return the unit of a quantity that a comment states; "" if none does.

    Args:
        path: The file, for messages.
        stated: What the comments state of the quantity; None if they state nothing.
        role: A role of the quantity, for the flag that states its unit.
        implausible: Units that the numbers speak against.

    Raises:
        InputFileError: The comments state two units, or one that the numbers speak against.
    """
    if stated is None:
        return ""
    if len(stated.units) > 1:
        units = join_words(list(stated.units))
        _refuse(
            path,
            stated,
            role,
            fault=f"the comments state different units, {units}",
            units=stated.units,
        )
    unit = stated.units[0]
    implausible_units = list(implausible)
    if unit in implausible_units:
        kind = UNIT_KINDS[unit]
        alternatives = [
            candidate for candidate in _units_of_kind(kind) if candidate not in implausible_units
        ]
        fault = f"the comment states {unit}, but the numbers do not look like {unit}"
        _refuse(path, stated, role, fault=fault, units=(unit, *alternatives))
    return unit


def _units_of_kind(kind: str) -> list[str]:
    """Return the units of a kind of quantity."""
    return [unit for unit, of_kind in UNIT_KINDS.items() if of_kind == kind]


def _refuse(
    path: str | Path, stated: CommentedUnit, role: str, *, fault: str, units: Iterable[str]
) -> NoReturn:
    """Refuse a file for a unit in its comments, with a flag for each unit that it may be."""
    flags = " or ".join(f"--columns {role}[{unit}]" for unit in units)
    raise InputFileError(path, f"{fault}. State which unit is right: {flags}", line=stated.line)
