"""What says which columns a text file has: its header, a comment, `--columns`, or a dialect."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

from simbridge.errors import InputFileError
from simbridge.reading_progress import with_progress
from simbridge.trajectory.tables.choice import Choice, columns_flag
from simbridge.trajectory.tables.column_names import strip_quotes
from simbridge.trajectory.tables.column_roles import ColumnRoles, find_roles
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_advice import look_like_joints
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.joint_state_text import find_joint_state
from simbridge.trajectory.tables.named_joints import columns_of, name_joints
from simbridge.trajectory.tables.pose_candidates import find_pose_candidates
from simbridge.trajectory.tables.roles import (
    NEEDED,
    POSITION,
    QUATERNION,
    QUATERNION_W_FIRST,
    ROTATION_VECTOR,
)
from simbridge.trajectory.tables.table import MAX_COLUMNS, Columns
from simbridge.trajectory.tables.text_dialects import (
    SEVEN_WITHOUT_TIME,
    TUM,
    Dialect,
    FirstLine,
    dialect_columns,
    find_dialect,
    flag_of,
    unknown_layout,
)
from simbridge.trajectory.tables.text_lines import (
    comment_of,
    content_of,
    find_separator,
    looks_like_number,
)
from simbridge.trajectory.tables.unit_comments import find_commented_units
from simbridge.trajectory.tables.units import UNIT_SPELLINGS

# The comments before the numbers that are kept: the last ones.
MAX_COMMENTS = 1000
# Words of comments that are looked at as names, at most: names are recognised slowly.
MAX_COMMENT_WORDS = 20_000
# Names that are looked at in a comment between rows, at most.
MAX_LATER_NAMES = 100
# Words of a column's name in a comment that is not a sentence, at most.
MAX_NAME_WORDS = 3
# Names of a table of poses with nothing else: with a rotation vector, and with a quaternion.
POSE_NAME_COUNTS = (7, 8)
# Characters of a comment in which the order of a quaternion is looked for.
MAX_REMARK_LENGTH = 1000
# What begins a comment before the numbers, too: MATLAB's and C's.
OTHER_COMMENT_MARKS = ("% ", "// ")
# "x [m]", where blanks separate the names.
_UNIT_APART = re.compile(r"\s+(?=[\[(][^\[\]()]*[\])])")
# "Format:" before the names.
_INTRODUCTION = re.compile(r"[^:,;]*:\s*(.*)")
# Names that differ in w, x, y and z alone ("qw qx qy qz", "[w, x, y, z]"), "wxyz", "scalar first",
# "qw leading", "q0 is scalar".
_W_FIRST = re.compile(
    r"(?<![\w.])([\w.]{0,40}?)w[^\w.]+\1x[^\w.]+\1y[^\w.]+\1z(?!\w)"
    r"|wxyz"
    r"|(?<![a-z])(?:q_?)?(?:w|scalar|real)(?: part| is| comes)*[- ](?:first|leading)"
    r"|(?<![a-z])q_?0(?: is| the|,|:| =)* scalar",
    re.IGNORECASE,
)


class NamedComment(NamedTuple):
    """A comment that names columns.

    Attributes:
        number: Of its line, counted from 1.
        names: The names.
        roles: What they are.
    """

    number: int
    names: list[str]
    roles: ColumnRoles


@dataclass(frozen=True)
class Beginning:
    """What is before the numbers of a file.

    Attributes:
        header: The names in the line before the numbers; None if there are none.
        first_line: The first line with numbers.
        comments: Number and text of comments, the last one first.
    """

    header: Header | None
    first_line: FirstLine
    comments: list[tuple[int, str]]

    def named_comments(
        self, counts: Collection[int], arm: ArmJoints | None = None
    ) -> Iterator[NamedComment]:
        """Iterate over the comments that name a pose, or the joints of an arm; the last one first.

        It ends when MAX_COMMENT_WORDS have been looked at.

        Args:
            counts: How many names a comment may have.
            arm: The arm whose joints may be named; None for poses only.
        """
        words_left = MAX_COMMENT_WORDS
        for number, comment in self.comments:
            names = _names_in(comment, self.first_line.count)
            if len(names) not in counts:
                continue
            words_left -= len(names)
            if words_left < 0:
                return
            roles = find_roles(names)
            names_joints = arm is not None and bool(name_joints(names, arm))
            if names_joints or _names_poses(roles):
                yield NamedComment(number, names, roles)


def find_columns(
    path: str | Path, lines: Sequence[str], choice: Choice, rate: float | None
) -> tuple[Columns, int]:
    """Return the columns of a text file, and the index of its first line with numbers.

    Raises:
        InputFileError: Nothing says what the columns are, or two things contradict each other.
    """
    beginning = _read_beginning(path, lines)
    columns = _decide_columns(beginning, choice, rate)
    remarks = [
        (number, comment)
        for number, comment in reversed(beginning.comments)
        if _is_remark(comment, beginning.first_line.count)
    ]
    columns = replace(columns, commented_units=find_commented_units(remarks))
    first = beginning.first_line.number - 1
    if not choice.columns:
        _refuse_later_names(path, lines[first:], first, columns)
    return columns, first


def _read_beginning(path: str | Path, lines: Sequence[str]) -> Beginning:
    """Read the comments, the header and the first line with numbers."""
    header = None
    is_indented = False
    comments: deque[tuple[int, str]] = deque(maxlen=MAX_COMMENTS)
    for number, line in with_progress(path, lines):
        content = content_of(line)
        if not content or content.startswith(OTHER_COMMENT_MARKS):
            comment = comment_of(line) or content.strip(" %/")
            if comment:
                comments.append((number, comment))
            continue

        separator = find_separator(content)
        fields = content.split(separator)
        if header is not None and _are_units(fields, header):
            header = _add_units(header, fields)
            continue
        if header is None and not any(map(looks_like_number, fields)):
            header = Header(path, fields, "header", number)
            is_indented = line.startswith("\t")
            continue
        first_line = FirstLine(path, number, fields, separator)
        header = _fit_to_columns(header, first_line, is_indented=is_indented)
        return Beginning(header, first_line, [*reversed(comments)])

    if header is not None:
        # What is wrong with its names is of more use than that there are no samples.
        columns_of(header, Choice.parse(None), rate=1.0)
    raise InputFileError(path, f"it has no samples; it needs lines of {NEEDED}")


def _are_units(fields: Sequence[str], header: Header) -> bool:
    """Return whether a line below a header states the units of its columns, and nothing else."""
    units = [strip_quotes(field).strip("[]()").lower() for field in fields]
    is_empty_or_unit = all(unit in ("", "-") or unit in UNIT_SPELLINGS for unit in units)
    return len(fields) == len(header.names) and is_empty_or_unit and any(units)


def _add_units(header: Header, units: Sequence[str]) -> Header:
    """Return a header whose names have the units of the line below it: "x [mm]"."""
    names = []
    for name, unit in zip(header.names, units, strict=True):
        spelling = strip_quotes(unit).strip("[]()-")
        names.append(f"{name.strip()} [{spelling}]" if spelling else name)
    return replace(header, names=names)


def _fit_to_columns(header: Header | None, line: FirstLine, *, is_indented: bool) -> Header | None:
    """Return a header with as many names as there are columns, where it has an empty one at an end.

    Args:
        header: With the names between separators.
        line: The first line with numbers.
        is_indented: Whether the header begins with a tab, behind an empty name: that of the index,
            as pandas writes it.
    """
    if header is None:
        return None
    if is_indented and len(header.names) == line.count - 1:
        return replace(header, names=["", *header.names])
    if len(header.names) == line.count + 1 and not strip_quotes(header.names[-1]):
        return replace(header, names=header.names[:-1])
    return header


def _decide_columns(beginning: Beginning, choice: Choice, rate: float | None) -> Columns:
    """Return the columns that the header, else a comment, else the dialect says."""
    if choice.arm is not None and not choice.columns:
        joint_state = find_joint_state(beginning.header, beginning.first_line)
        if joint_state is not None:
            columns = columns_of(joint_state.header, choice, rate)
            return replace(columns, constant_indices=joint_state.name_indices)

    if beginning.header is not None:
        columns = columns_of(beginning.header, choice, rate)
        if not choice.columns:
            _refuse_other_order(beginning, beginning.header, columns)
        return columns

    line = beginning.first_line
    header = _commented_header(beginning, choice)
    if header is not None:
        return columns_of(header, choice, rate)
    if choice.columns or choice.asks_for_joints:
        numbers = [str(i + 1) for i in range(line.count)]
        return columns_of(Header(line.path, numbers, "flag --columns", line.number), choice, rate)

    dialect = find_dialect(line, rate)
    if dialect is None:
        raise unknown_layout(line, _stated_flag(beginning))
    if dialect in (TUM, SEVEN_WITHOUT_TIME):
        _refuse_contradiction(beginning, dialect)
    return dialect_columns(line, dialect, choice, rate)


def _is_remark(comment: str, column_count: int) -> bool:
    """Return whether a comment is a sentence, not the names of as many columns."""
    words = comment.lower().split()
    is_sentence = "in" in words or any("unit" in word for word in words)
    return is_sentence or len(_split_names(comment)) != column_count


def _commented_header(beginning: Beginning, choice: Choice) -> Header | None:
    """Return the comment that names the columns; None if none does.

    Raises:
        InputFileError: Two of them contradict each other, or one names fewer columns than there
            are.
    """
    line = beginning.first_line
    headers: list[NamedComment] = []
    for comment in beginning.named_comments({line.count, *POSE_NAME_COUNTS}, choice.arm):
        has_all_names = len(comment.names) == line.count
        if has_all_names or (_names_only_a_pose(comment) and not choice.columns):
            headers.append(comment)
    if not headers:
        return _unknown_header(beginning, choice.arm)

    # The comment nearest to the numbers.
    nearest = headers[0]
    if len(nearest.names) < line.count:
        raise unknown_layout(line, _stated_flag(beginning))
    for comment in headers[1:]:
        if comment.roles != nearest.roles and not choice.columns:
            _refuse_two_comments(line, comment, nearest)
    return Header(line.path, nearest.names, "comment", nearest.number)


def _unknown_header(beginning: Beginning, arm: ArmJoints | None) -> Header | None:
    """Return the comment above the numbers if it names columns, but none of a known pose.

    It has a name for each column, between the separators of the rows, or names that look like a
    pose of a body or like joints. A sentence has neither.
    """
    line = beginning.first_line
    if not beginning.comments:
        return None
    number, comment = beginning.comments[0]
    names = [name.strip() for name in _names_in(comment, line.count)]
    if len(names) != line.count or len(names) > MAX_LATER_NAMES:
        return None
    is_list = line.separator in (",", ";") and find_separator(comment) == line.separator
    are_short = all(name and len(name.split()) <= MAX_NAME_WORDS for name in names)
    are_different = len(set(names)) == len(names)
    candidates = find_pose_candidates(names)
    has_pose = bool(candidates.positions and candidates.rotations)
    is_header = (is_list and are_short and are_different) or has_pose
    if is_header or look_like_joints(names, arm):
        return Header(line.path, names, "comment", number)
    return None


def _refuse_later_names(
    path: str | Path, rows: Sequence[str], first: int, columns: Columns
) -> None:
    """Refuse a file in which a comment between the rows names other columns than are read.

    Args:
        path: The file, for messages.
        rows: Its lines from the first one with numbers on.
        first: Index of that line.
        columns: That are read.
    """
    comments = (
        (number, comment_of(line))
        for number, line in enumerate(rows, start=first + 1)
        if line.startswith("#")
    )
    indices = dict(zip(columns.roles, columns.indices, strict=True))
    for number, comment in itertools.islice(comments, MAX_COMMENTS):
        names = _split_names(comment)
        if len(names) != columns.width or len(names) > MAX_LATER_NAMES:
            continue
        named = find_roles(names).columns
        if any(indices.get(role, index) != index for role, (index, *_) in named.items()):
            raise InputFileError(
                path,
                "according to this comment, the order of the columns changes here; split the file "
                "in two",
                line=number,
            )


def _names_in(comment: str, count: int) -> list[str]:
    """Return the words of a comment as names of columns, without what introduces them.

    Args:
        comment: The comment.
        count: The number of columns: a comment with this many words has no introduction.
    """
    names = _split_names(comment)
    introduced = _INTRODUCTION.fullmatch(comment) if len(names) != count else None
    return _split_names(introduced[1]) if introduced else names


def _split_names(text: str) -> list[str]:
    """Split names where a header would be split; units in brackets belong to the names."""
    separator = find_separator(text)
    if separator is None:
        return _UNIT_APART.sub("", text).split()
    names = text.split(separator)
    # There may be a separator at the end.
    return names if names[-1].strip() else names[:-1]


def _names_poses(roles: ColumnRoles) -> bool:
    """Return whether names are those of a position or of a quaternion, not a sentence's words."""
    return set(POSITION) <= roles.named or len(set(QUATERNION) & roles.named) > 1


def _names_only_a_pose(comment: NamedComment) -> bool:
    """Return whether names are those of a time, a position and one rotation, each once."""
    columns = comment.roles.columns
    known = [("t", *POSITION, *rotation) for rotation in (QUATERNION, ROTATION_VECTOR)]
    is_complete = any(set(columns) == set(roles) for roles in known)
    return is_complete and len(comment.names) == len(columns)


def _stated_flag(beginning: Beginning) -> str:
    """Return the flag --columns for what a comment says of the columns; "" if none says it."""
    for comment in beginning.named_comments(range(MAX_COLUMNS)):
        flag = _flag_of_comment(comment)
        if flag:
            return flag
    if _w_first_comment(beginning) is not None:
        return flag_of(TUM, is_w_first=True)
    return ""


def _flag_of_comment(comment: NamedComment) -> str:
    """Return the flag --columns that chooses what a comment names; "" if it names no pose."""
    columns = comment.roles.columns
    for rotation in (QUATERNION, ROTATION_VECTOR):
        roles = [role for role in ("t", *POSITION, *rotation) if role in columns]
        if set(rotation) <= set(roles) and set(POSITION) <= set(roles):
            indices = [columns[role][0] for role in roles]
            return columns_flag(roles, [str(index + 1) for index in indices], indices)
    return ""


def _w_first_comment(beginning: Beginning) -> int | None:
    """Return the line of a comment that says that w is first in a quaternion; None if none does."""
    for number, comment in beginning.comments:
        if _W_FIRST.search(comment[:MAX_REMARK_LENGTH]):
            return number
    return None


def _refuse_contradiction(beginning: Beginning, dialect: Dialect) -> None:
    """Refuse a file whose dialect has w last although a comment says that it comes first."""
    number = _w_first_comment(beginning)
    if number is None:
        return
    raise InputFileError(
        beginning.first_line.path,
        "the comment says that w is the first number of the quaternion, but in the TUM format "
        f"({beginning.first_line.count} numbers per line, no header) it is the last. If the "
        f"comment is right, add {flag_of(dialect, is_w_first=True)}; if not, {flag_of(dialect)}",
        line=number,
    )


def _refuse_other_order(beginning: Beginning, header: Header, columns: Columns) -> None:
    """Refuse a file whose header has w last although a comment says that it comes first."""
    number = _w_first_comment(beginning)
    if number is None or columns.roles[3:] != QUATERNION:
        return
    indices = columns.indices[3:]
    if indices[QUATERNION.index("qw")] < indices[QUATERNION.index("qx")]:
        return

    by_header = columns_flag(QUATERNION, [str(i + 1) for i in indices], indices)
    places = sorted(indices)
    by_comment = columns_flag(QUATERNION_W_FIRST, [str(i + 1) for i in places], places)
    raise InputFileError(
        header.path,
        "the comment says that w is the first number of the quaternion, but the header in line "
        f"{header.line} has it last. If the comment is right, add {by_comment}; if the header is, "
        f"{by_header}",
        line=number,
    )


def _refuse_two_comments(line: FirstLine, first: NamedComment, second: NamedComment) -> NoReturn:
    """Refuse a file in which two comments name the columns in different ways."""
    reason = (
        f"the comments in lines {first.number} and {second.number} name the columns differently. "
        f"If the first is right, add {_flag_of_comment(first)}; "
        f"if the second is, {_flag_of_comment(second)}"
    )
    raise line.error(reason)
