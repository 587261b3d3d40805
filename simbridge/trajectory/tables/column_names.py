"""The parts of a column's name: its words, its unit and its number."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from simbridge.trajectory.tables.units import UNIT_SPELLINGS

# Characters of a name that may have parts: a longer one names nothing that is read.
MAX_NAME_LENGTH = 1000
# Letters of the name of a frame in EuRoC's names: p_RS_R_x.
MAX_FRAME_LABEL = 3

# "p_mm[0]": the element of an array.
_ELEMENT = re.compile(r"(.*)\[(\d+)\]")
# "x [mm]", "q_w []", "x (mm)".
_UNIT_IN_BRACKETS = re.compile(r"(.*\S)\s*(?:\[(.*)\]|\((.*)\))")
# "x_mm", "x in mm".
_UNIT_AT_END = re.compile(r"(.*[^\W_])(?:_|\s+in\s+)([^\W_]+)")


class ColumnName(NamedTuple):
    """A column's name, taken apart: "Tool.Position_x [mm]" is tool, position, x and mm.

    Attributes:
        words: Words of the name in lower case, without the unit; the frames in names such as
            p_RS_R_x are left out.
        unit: The unit as it is written, in lower case; "" if none is.
        element: The number in brackets at its end; None if there is none.
    """

    words: tuple[str, ...]
    unit: str = ""
    element: int | None = None


def strip_quotes(text: str) -> str:
    """Return a name or a field without the blanks and quotation marks around it."""
    return text.strip().strip("\"'")


def split_number(word: str) -> tuple[str, str]:
    """Return a word without the digits at its end, and these digits: "pos0" is pos and 0."""
    stem = word.rstrip("0123456789")
    return stem, word[len(stem) :]


def is_numbering(numbers: Collection[int]) -> bool:
    """Return whether different numbers are those of a vector's components: from 0, or from 1."""
    count = len(numbers)
    return set(numbers) in (set(range(count)), set(range(1, count + 1)))


def parse_column_name(text: str) -> ColumnName:
    """Take the name of a column apart."""
    name = strip_quotes(text)
    if len(name) > MAX_NAME_LENGTH:
        return ColumnName(())

    element = None
    if match := _ELEMENT.fullmatch(name):
        name = match[1]
        element = int(match[2])

    name, unit = _split_unit(name)
    words = [word for word in re.split(r"[\W_]+", name) if word]
    words = _without_frame_labels(words)
    return ColumnName(tuple(word.lower() for word in words), unit, element)


def _split_unit(name: str) -> tuple[str, str]:
    """Return a name without its unit, and the unit in lower case: "x_mm" is x in mm."""
    if match := _UNIT_IN_BRACKETS.fullmatch(name):
        return match[1], (match[2] or match[3] or "").strip().lower()

    match = _UNIT_AT_END.fullmatch(name)
    if match and match[2].lower() in UNIT_SPELLINGS:
        return match[1], match[2].lower()
    return name, ""


def _without_frame_labels(words: list[str]) -> list[str]:
    """Return words without the names of frames: p_RS_R_x, as EuRoC and OKVIS write it, is p x."""
    is_quantity = len(words) > 2 and len(words[0]) == 1 and words[0].islower()
    labels = words[1:-1]
    are_labels = all(label.isupper() and len(label) <= MAX_FRAME_LABEL for label in labels)
    if is_quantity and are_labels:
        return [words[0], words[-1]]
    return words
