"""Leaves out rows without joint values, and columns that were recorded in few rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simbridge.errors import UnusableSamples
from simbridge.judging.log import ControllerLog, Signal
from simbridge.robot.pose import Array
from simbridge.text import counted, join_words

# Columns of joint values: if a log has one of them, every row must have its values.
JOINT_COLUMNS = ("target_q", "target_qd", "target_qdd", "actual_q", "actual_qd")
# Fraction of the rows in which a column must have been recorded to be used.
MIN_COMPLETE = 0.5
# Smallest number of rows of a log that can be judged.
MIN_ROWS = 2


def keep_complete_rows(log: ControllerLog) -> ControllerLog:
    """Return a log in which each row has all joint values, with notes on what was left out.

    In the other columns, rows that were not recorded stay as nan.

    Raises:
        UnusableSamples: Fewer than two rows have joint positions, or these are in degrees.
    """
    notes = list(log.notes)
    columns = dict(log.columns)

    # Leave out joint columns that are mostly empty, then the rows that lack values of the others.
    is_kept = np.ones(len(log.times), dtype=bool)
    incomplete_names = []
    sparse_names = []
    for name in JOINT_COLUMNS:
        if name not in columns:
            continue
        is_complete = np.isfinite(columns[name]).all(axis=1)
        if _is_sparse(columns[name]):
            sparse_names.append(name)
            del columns[name]
        elif not is_complete.all():
            incomplete_names.append(name)
            is_kept &= is_complete
    if incomplete_names:
        lost = counted(int((~is_kept).sum()), "row")
        notes.append(f"{lost} without all values of {join_words(incomplete_names)} left out")

    # Leave out any column that most of the remaining rows do not have.
    for name in list(columns):
        columns[name] = columns[name][is_kept]
        if _is_sparse(columns[name]):
            sparse_names.append(name)
            del columns[name]
    if sparse_names:
        notes.append(f"{join_words(sparse_names)} not used: missing in more than half of the rows")

    has_joints = "target_q" in columns or "actual_q" in columns
    if not has_joints or is_kept.sum() < MIN_ROWS:
        reason = "it has fewer than two rows with joint positions (target_q or actual_q)."
        raise UnusableSamples(log.name, reason)

    complete = replace(
        log,
        times=log.times[is_kept],
        columns=columns,
        incomplete_times=None if is_kept.all() else log.times[~is_kept],
        notes=tuple(notes),
        speed_scaling=_finite(log.speed_scaling),
        safety_mode=_finite(log.safety_mode),
        program_state=_finite(log.program_state),
    )
    # Identification refuses joint positions that are in degrees.
    complete.samples().check_joints(None)
    return complete


def _is_sparse(values: Array) -> bool:
    """Return whether values (T, n) are missing in most rows; false if there are no rows."""
    is_complete = np.isfinite(values).all(axis=1)
    return int(is_complete.sum()) < MIN_COMPLETE * len(values)


def select_whole_rows(log: ControllerLog) -> ControllerLog:
    """Return a log without missing values: only the rows in which every column was recorded.

    If there are too few such rows, all rows are kept, but of the columns only those of the joints.

    Args:
        log: A log in which each row has all joint values: see `keep_complete_rows`.
    """
    columns = log.columns.values()
    is_whole = np.all([np.isfinite(values).all(axis=1) for values in columns], axis=0)
    if is_whole.all():
        return log

    if is_whole.sum() < MIN_ROWS:
        joint_columns = {name: log.columns[name] for name in JOINT_COLUMNS if name in log.columns}
        return replace(log, columns=joint_columns)
    return replace(
        log,
        times=log.times[is_whole],
        columns={name: values[is_whole] for name, values in log.columns.items()},
    )


def _finite(signal: Signal | None) -> Signal | None:
    """Return a signal without the instants at which it is not finite; None if none remain."""
    if signal is None:
        return None
    values: Array = np.asarray(signal.values, dtype=float)
    is_finite = np.isfinite(values)
    if not is_finite.any():
        return None
    return Signal(signal.times[is_finite], values[is_finite])
