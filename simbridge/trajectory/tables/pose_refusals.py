"""Refusals of tables whose names do not say which columns are the poses, with ready flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from simbridge.quoting import quoted_list
from simbridge.trajectory.tables.aliases import FRACTION_UNITS
from simbridge.trajectory.tables.column_names import parse_column_name, strip_quotes
from simbridge.trajectory.tables.header import Header
from simbridge.trajectory.tables.joint_advice import (
    advise_joints,
    look_like_joints,
)
from simbridge.trajectory.tables.joint_columns import ArmJoints
from simbridge.trajectory.tables.pose_advice import KnownColumns, find_readings, join_readings
from simbridge.trajectory.tables.pose_candidates import find_pose_candidates
from simbridge.trajectory.tables.roles import (
    NEEDED,
    NO_ROTATION,
    POSITION,
    QUATERNION,
    QUATERNION_W_FIRST,
)
from simbridge.trajectory.tables.time_candidates import NO_TIME_FLAG

# The columns that may be of one role and are named, at most.
MAX_CANDIDATES = 4


@dataclass(frozen=True)
class Needs:
    """Columns that a table of poses needs, and those that its names and `--columns` give.

    Attributes:
        roles: The roles that are needed.
        columns: The indices of each role's columns; several where the names leave it open.
        chosen: The index of the column of each role that `--columns` chooses.
        has_order: False if the components of the quaternion are numbered in an unknown order.
        needs_time: Whether a column of time is needed: there is no rate, and no pair of columns.
    """

    roles: Sequence[str]
    columns: Mapping[str, Sequence[int]]
    chosen: Mapping[str, int]
    has_order: bool
    needs_time: bool

    @property
    def missing(self) -> list[str]:
        """The roles without a column."""
        return [role for role in self.roles if role not in self.columns]

    @property
    def repeated(self) -> list[str]:
        """The roles with more than one column."""
        return [role for role in self.roles if len(self.columns.get(role, ())) > 1]

    @property
    def known(self) -> KnownColumns:
        """The columns whose roles are beyond doubt."""
        certain = {role: indices[0] for role, indices in self.columns.items() if len(indices) == 1}
        times = self.columns.get("t", ())
        return KnownColumns(
            columns=certain,
            chosen=self.chosen,
            time_candidates=times if len(times) > 1 else (),
            has_time=not self.needs_time or len(times) == 1,
        )


def refuse_poses(header: Header, needs: Needs, arm: ArmJoints | None) -> NoReturn:
    """Refuse a table whose names do not say which columns are its poses.

    Args:
        header: The names of the table.
        needs: What the table needs, and what is known of it.
        arm: The arm whose joint positions the table may have instead; None if only poses are read.

    Raises:
        InputFileError: Always; with the ways in which the table may be read.
    """
    readings = find_readings(header, needs.known)
    if readings:
        lead = "Choose one:" if len(readings) > 1 else "If that is what they are, add"
        if len(readings) == 1 and readings[0].flag == NO_TIME_FLAG:
            lead = "A table without a time column needs"
        header.refuse(f"{_describe_fault(header, needs)}. {lead} {join_readings(readings)}")

    has_position = _has_position(header, needs)
    if not has_position and look_like_joints(header.names, arm):
        header.refuse(advise_joints(header, arm, needs.known))
    advice = f". {NO_ROTATION}" if has_position else f"; it needs {NEEDED}, in any order"
    if not needs.columns.keys() - {"t"}:
        advice += _order_of_tum(header)
    header.refuse(f"{_describe_fault(header, needs)}{advice}{_hint_at_comment(header)}")


def _has_position(header: Header, needs: Needs) -> bool:
    """Return whether a table has a position, by names that are known or by others."""
    if set(POSITION) <= needs.columns.keys():
        return True
    return bool(find_pose_candidates(header.names).positions)


def _describe_fault(header: Header, needs: Needs) -> str:
    """Return what the names of a table leave open."""
    faults = []
    missing = needs.missing
    if not needs.has_order:
        missing = [role for role in missing if not role.startswith("q")]
        faults.append(
            "the order of the quaternion is unknown: its four columns are numbered, and the "
            "motion does not show which of them is w"
        )
    if missing:
        faults.append(_describe_missing(header, missing))
    if needs.repeated:
        candidates = []
        for role in needs.repeated:
            names = [header.names[index].strip() for index in needs.columns[role]]
            candidates.append(f"{role}: {quoted_list(names, MAX_CANDIDATES)}")
        faults.append(f"more than one column may be {'; '.join(candidates)}")
        if _has_fractions(header, needs):
            faults.append("combine the times if they are parts of one")
    return "; ".join(faults)


def _describe_missing(header: Header, missing: Sequence[str]) -> str:
    """Return which roles the names of a table lack, and for arrays what it has instead."""
    why = " (no field of the line is a number)" if header.kind == "header" else ""
    text = f"the {header.kind}{why} does not name {', '.join(missing)}"
    if header.kind == "table":
        text += f"; it has {quoted_list(header.names) or 'no numbers'}"
    if "t" in missing and "" in map(strip_quotes, header.names):
        text += "; choose a column without a name by its number"
    return text


def _order_of_tum(header: Header) -> str:
    """Return the flags for as many columns as TUM's lines have, whatever they are called."""
    w_last = ("t", *POSITION, *QUATERNION)
    if len(header.names) != len(w_last):
        return ""
    w_first = ("t", *POSITION, *QUATERNION_W_FIRST)
    flags = [header.flag({role: i for i, role in enumerate(roles)}) for roles in (w_last, w_first)]
    return (
        f". If its columns are in the order of TUM's, with w last, add {flags[0]}; if in that of "
        f"EuRoC's, with w first, {flags[1]}"
    )


def _has_fractions(header: Header, needs: Needs) -> bool:
    """Return whether a column that may be the time may also be a fraction of a second."""
    names = [header.names[index] for index in needs.columns.get("t", ())]
    return any(" ".join(parse_column_name(name).words) in FRACTION_UNITS for name in names)


def _hint_at_comment(header: Header) -> str:
    """Return what to do if the first line was meant as a comment."""
    return " (start comments with #)" if header.line and header.kind == "header" else ""
