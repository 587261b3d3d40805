"""Leaves out what is not a number: rows without joint positions, and columns with gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simbridge.errors import UnusableSamples
from simbridge.judging.log import ControllerLog, Signal
from simbridge.robot.pose import Array
from simbridge.text import counted, join_words

# Columns that every row needs, where a log has them.
JOINT_COLUMNS = ("target_q", "target_qd", "target_qdd", "actual_q", "actual_qd")
# Fraction of the rows that a column of these must have to be used.
MIN_COMPLETE = 0.5
# Smallest number of rows of a log that can be judged.
MIN_ROWS = 2


def keep_complete_rows(log: ControllerLog) -> ControllerLog:
    """Return a log whose columns are finite numbers, with notes on what was left out.

    Raises:
        UnusableSamples: Fewer than two rows have joint positions, or these are in degrees.
    """
    notes = list(log.notes)
    columns = dict(log.columns)

    # Joint columns that are mostly empty are left out, then the rows that the others do not have.
    is_kept = np.ones(len(log.times), dtype=bool)
    sparse = []
    for name in JOINT_COLUMNS:
        if name in columns:
            is_complete = np.isfinite(columns[name]).all(axis=1)
            if is_complete.mean() < MIN_COMPLETE:
                sparse.append(name)
                del columns[name]
            else:
                is_kept &= is_complete
    if not is_kept.all():
        lost = counted(int((~is_kept).sum()), "row")
        notes.append(f"{lost} without all joint values left out.")

    # Other columns are used only where every remaining row has them.
    for name in [*columns]:
        columns[name] = columns[name][is_kept]
        if not np.isfinite(columns[name]).all():
            sparse.append(name)
            del columns[name]
    if sparse:
        notes.append(f"Not used, since rows of them are missing: {join_words(sparse)}.")

    has_joints = "target_q" in columns or "actual_q" in columns
    if not has_joints or is_kept.sum() < MIN_ROWS:
        reason = "it has fewer than two rows with joint positions (target_q or actual_q)."
        raise UnusableSamples(log.name, reason)
    complete = replace(
        log,
        times=log.times[is_kept],
        columns=columns,
        notes=tuple(notes),
        speed_scaling=_finite(log.speed_scaling),
        safety_mode=_finite(log.safety_mode),
        program_state=_finite(log.program_state),
    )
    complete.samples().check_joints(None)
    return complete


def _finite(signal: Signal | None) -> Signal | None:
    """Return the finite values of a signal; None if it has none."""
    if signal is None:
        return None
    values: Array = np.asarray(signal.values, dtype=float)
    is_finite = np.isfinite(values)
    if not is_finite.any():
        return None
    return Signal(signal.times[is_finite], values[is_finite])
