"""The rules by which a word of a column's name says which component of a vector the column is.

`pos_x`, `posx`, `xpos`, `pos_0` and `pos0` are components of `pos`; `q_i` and `qreal` are those of
a quaternion whose parts are i, j, k and a real part. `column_roles` applies the rules to the names
of known vectors, and `pose_candidates` to those of any body.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from simbridge.trajectory.tables.aliases import REAL_PARTS
from simbridge.trajectory.tables.column_names import split_number

AXES = ("x", "y", "z", "w")
# The imaginary parts of a quaternion, and the axes that they belong to.
IMAGINARY_AXES = {"i": "x", "j": "y", "k": "z"}
# The ends of a quaternion's name that say the order of numbered components.
QUATERNION_ORDERS = ("xyzw", "wxyz")
# The numbers of the components of a vector, and of a quaternion.
NUMBERS_OF_THREE = ({"0", "1", "2"}, {"1", "2", "3"})
NUMBERS_OF_FOUR = ({"0", "1", "2", "3"}, {"1", "2", "3", "4"})


class AxisForm(Enum):
    """Which part of a word is the axis."""

    # The word, without digits at its end: "x" in pos_x and x_pos, "x1".
    WORD = "word"
    # The digits at its end: pos_0, pos0.
    NUMBER = "number"
    # The last letters before these digits: posx, qreal.
    END = "end"
    # The first letter: xpos.
    BEGINNING = "beginning"


class WordAxis(NamedTuple):
    """One way in which a word of a column's name may have an axis.

    Attributes:
        form: Which part of the word is the axis.
        text: The axis as it is written: a letter, "real", "scalar", or a number.
        stem: The rest of the word, without digits at its end.
        number: The digits at the end of the word, unless they are the axis; "" if there are none.
    """

    form: AxisForm
    text: str
    stem: str
    number: str = ""

    @property
    def axis(self) -> str:
        """The axis: x, y, z, i, j, k, a number, or w for every real part."""
        return "w" if self.text in REAL_PARTS else self.text


def find_axes(word: str) -> Iterator[WordAxis]:
    """Iterate over the ways in which a word may have an axis, the likeliest first.

    Args:
        word: A word of a column's name, in lower case.
    """
    core, number = split_number(word)
    letters = (*AXES, *IMAGINARY_AXES)
    if core in letters or core in REAL_PARTS:
        yield WordAxis(AxisForm.WORD, core, "", number)
    if number:
        yield WordAxis(AxisForm.NUMBER, number, core)
    if len(core) < 2:
        return

    # At the end a letter, or a word for the real part. The letter w is both, and is yielded once.
    if core[-1] in letters:
        yield WordAxis(AxisForm.END, core[-1], core[:-1], number)
    for real_part in REAL_PARTS:
        if real_part not in letters and core.endswith(real_part) and core != real_part:
            yield WordAxis(AxisForm.END, real_part, core.removesuffix(real_part), number)
    if core[0] in AXES:
        yield WordAxis(AxisForm.BEGINNING, core[0], core[1:], number)


def without_order(name: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return a vector's name without the order of a quaternion, and that order; "" without one.

    The order may be a word, as in `quat_wxyz`, or the end of one, as in `qwxyz`.

    Args:
        name: The words of the vector's name.
    """
    for order in QUATERNION_ORDERS:
        if name and name[-1].endswith(order):
            stem = name[-1].removesuffix(order)
            return (*name[:-1], stem) if stem else name[:-1], order
    return name, ""
