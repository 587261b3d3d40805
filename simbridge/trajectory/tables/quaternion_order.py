"""Comments that say that w comes first in a quaternion, and refusals of what contradicts them."""

from __future__ import annotations

import re

from simbridge.errors import InputFileError
from simbridge.trajectory.tables.choice import columns_flag
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.roles import POSITION, QUATERNION, QUATERNION_W_FIRST
from simbridge.trajectory.tables.table import Columns
from simbridge.trajectory.tables.text_beginning import Beginning
from simbridge.trajectory.tables.text_dialects import Dialect, flag_of

# Number of characters of a comment in which the order of a quaternion is looked for.
MAX_REMARK_LENGTH = 1000
# Names that differ in w, x, y and z alone ("qw qx qy qz", "[w, x, y, z]"), "wxyz", "scalar first",
# "qw leading", "q0 is scalar".
_W_FIRST = re.compile(
    r"(?<![\w.])([\w.]{0,40}?)w[^\w.]+\1x[^\w.]+\1y[^\w.]+\1z(?!\w)"
    r"|wxyz"
    r"|(?<![a-z])(?:q_?)?(?:w|scalar|real)(?: part| is| comes)*[- ](?:first|leading)"
    r"|(?<![a-z])q_?0(?: is| the|,|:| =)* scalar",
    re.IGNORECASE,
)


def find_w_first_comment(beginning: Beginning) -> int | None:
    """Return the line of a comment that says that w comes first; None if none does."""
    for number, comment in beginning.comments:
        if _W_FIRST.search(comment[:MAX_REMARK_LENGTH]):
            return number
    return None


def refuse_other_dialect(beginning: Beginning, dialect: Dialect) -> None:
    """Refuse a file whose dialect has w last although a comment says that it comes first."""
    number = find_w_first_comment(beginning)
    if number is None:
        return
    raise InputFileError(
        beginning.first_line.path,
        "the comment says that w is the first number of the quaternion, but in the TUM format "
        f"({beginning.first_line.count} numbers per line, no header) it is the last. If the "
        f"comment is right, add {flag_of(dialect, is_w_first=True)}; if not, {flag_of(dialect)}",
        line=number,
    )


def refuse_other_header(beginning: Beginning, header: Header, columns: Columns) -> None:
    """Refuse a file whose header has w last although a comment says that it comes first.

    Args:
        beginning: The beginning of the file, with its comments.
        header: The header.
        columns: The columns that are read by the header.
    """
    # The roles of a pose are those of its position, followed by those of its rotation.
    number = find_w_first_comment(beginning)
    rotation_roles = columns.roles[len(POSITION) :]
    if number is None or rotation_roles != QUATERNION:
        return
    indices = columns.indices[len(POSITION) :]
    if indices[QUATERNION.index("qw")] < indices[QUATERNION.index("qx")]:
        return

    # The flags by which the user says which of the two is right: columns by their numbers from 1.
    by_header = columns_flag(QUATERNION, [str(i + 1) for i in indices], indices)
    in_file_order = sorted(indices)
    numbers = [str(i + 1) for i in in_file_order]
    by_comment = columns_flag(QUATERNION_W_FIRST, numbers, in_file_order)
    raise InputFileError(
        header.path,
        "the comment says that w is the first number of the quaternion, but the header in line "
        f"{header.line} has it last. If the comment is right, add {by_comment}; if the header is, "
        f"{by_header}",
        line=number,
    )
