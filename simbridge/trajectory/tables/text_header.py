"""Comments that name the columns of a text file, in place of a header or between its rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from simbridge.errors import InputFileError
from simbridge.trajectory.tables.choice import Choice, columns_flag
from simbridge.trajectory.tables.column_roles import ColumnRoles, find_roles
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_advice import look_like_joints
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.named_joints import name_joints
from simbridge.trajectory.tables.pose_candidates import find_pose_candidates
from simbridge.trajectory.tables.quaternion_order import find_w_first_comment
from simbridge.trajectory.tables.roles import POSITION, QUATERNION, ROTATION_VECTOR
from simbridge.trajectory.tables.table import MAX_COLUMNS, Columns
from simbridge.trajectory.tables.text_beginning import MAX_COMMENTS, Beginning
from simbridge.trajectory.tables.text_dialects import TUM, FirstLine, flag_of, unknown_layout
from simbridge.trajectory.tables.text_lines import comment_of, find_separator

# Largest number of words of comments that are looked at as names: names are recognised slowly.
MAX_COMMENT_WORDS = 20_000
# Largest number of names that are looked at in a comment between rows.
MAX_LATER_NAMES = 100
# Largest number of words of a column's name in a comment that is not a sentence.
MAX_NAME_WORDS = 3
# Number of names of a table with nothing but poses: with a rotation vector, and with a quaternion.
POSE_NAME_COUNTS = (7, 8)
# "x [mm]", where blanks separate the names.
_UNIT_APART = re.compile(r"\s+(?=[\[(][^\[\]()]*[\])])")
# "Format:" before the names.
_INTRODUCTION = re.compile(r"[^:,;]*:\s*(.*)")


class NamedComment(NamedTuple):
    """A comment that names columns.

    Attributes:
        number: Number of its line, counted from 1.
        names: The names of the columns.
        roles: The roles that the names give to the columns.
    """

    number: int
    names: list[str]
    roles: ColumnRoles


def find_named_comments(
    beginning: Beginning, counts: Collection[int], arm: ArmJoints | None = None
) -> Iterator[NamedComment]:
    """Iterate over the comments that name a pose, or the joints of an arm; the last one first.

    It ends when MAX_COMMENT_WORDS have been looked at.

    Args:
        beginning: The beginning of the file.
        counts: Numbers of names that a comment may have.
        arm: The arm whose joints may be named; None for poses only.
    """
    words_left = MAX_COMMENT_WORDS
    for number, comment in beginning.comments:
        names = _names_in(comment, beginning.first_line.count)
        if len(names) not in counts:
            continue
        words_left -= len(names)
        if words_left < 0:
            return
        roles = find_roles(names)
        names_joints = arm is not None and bool(name_joints(names, arm))
        if names_joints or _names_poses(roles):
            yield NamedComment(number, names, roles)


def is_remark(comment: str, column_count: int) -> bool:
    """Return whether a comment is a sentence, not the names of as many columns."""
    lower_words = comment.lower().split()
    is_sentence = "in" in lower_words or any("unit" in word for word in lower_words)
    return is_sentence or len(_split_names(comment)) != column_count


def find_commented_header(beginning: Beginning, choice: Choice) -> Header | None:
    """Return the comment that names the columns; None if none does.

    A comment may name the parts of a pose although the rows have another number of columns. Fewer
    names than columns are refused here; with more names the rows are refused when they are read.

    Raises:
        InputFileError: Two comments contradict each other, or one names fewer columns than there
            are.
    """
    line = beginning.first_line
    # Both refusals below advise --columns. If the user has chosen columns, nothing is refused here:
    # comments without a name for each column are left out, and comments may differ.
    headers: list[NamedComment] = []
    for comment in find_named_comments(beginning, {line.count, *POSE_NAME_COUNTS}, choice.arm):
        has_all_names = len(comment.names) == line.count
        if has_all_names or (_names_only_a_pose(comment) and not choice.columns):
            headers.append(comment)
    if not headers:
        return _unknown_header(beginning, choice.arm)

    # The comment nearest to the numbers.
    nearest = headers[0]
    if len(nearest.names) < line.count:
        raise unknown_layout(line, stated_flag(beginning))
    for comment in headers[1:]:
        if comment.roles != nearest.roles and not choice.columns:
            _refuse_two_comments(line, comment, nearest)
    return Header(line.path, nearest.names, "comment", nearest.number)


def _unknown_header(beginning: Beginning, arm: ArmJoints | None) -> Header | None:
    """Return the comment above the numbers if it names columns, but none of a known pose.

    Such a comment has a name for each column. A sentence is told from it: the names are a list
    with the separator of the rows, or they look like a pose of a body or like joints.

    Args:
        beginning: The beginning of the file.
        arm: The arm whose joints may be named; None for poses only.
    """
    line = beginning.first_line
    if not beginning.comments:
        return None
    number, comment = beginning.comments[0]
    names = [name.strip() for name in _names_in(comment, line.count)]
    if len(names) != line.count or len(names) > MAX_LATER_NAMES:
        return None

    has_separator = line.separator in (",", ";") and find_separator(comment) == line.separator
    are_short = all(name and len(name.split()) <= MAX_NAME_WORDS for name in names)
    are_different = len(set(names)) == len(names)
    is_list = has_separator and are_short and are_different

    candidates = find_pose_candidates(names)
    looks_like_pose = bool(candidates.positions and candidates.rotations)
    if is_list or looks_like_pose or look_like_joints(names, arm):
        return Header(line.path, names, "comment", number)
    return None


def refuse_later_names(path: str | Path, rows: Sequence[str], first: int, columns: Columns) -> None:
    """Refuse a file in which a comment between the rows names other columns than are read.

    Args:
        path: The file, for messages.
        rows: The lines of the file, from the first one with numbers on.
        first: Index of that line in the file.
        columns: The columns that are read.
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


def stated_flag(beginning: Beginning) -> str:
    """Return the flag --columns that follows from a comment; "" if none says what columns are."""
    for comment in find_named_comments(beginning, range(MAX_COLUMNS)):
        flag = _flag_of_comment(comment)
        if flag:
            return flag
    if find_w_first_comment(beginning) is not None:
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


def _refuse_two_comments(line: FirstLine, first: NamedComment, second: NamedComment) -> NoReturn:
    """Refuse a file in which two comments name the columns in different ways."""
    reason = (
        f"the comments in lines {first.number} and {second.number} name the columns differently. "
        f"If the first is right, add {_flag_of_comment(first)}; "
        f"if the second is, {_flag_of_comment(second)}"
    )
    raise line.error(reason)
