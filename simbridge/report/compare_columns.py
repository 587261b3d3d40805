"""Columns of a comparison: the time of a solver's step, and the joints' motion, beside limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from simbridge.evaluation.comparison import ComparedRun
from simbridge.evaluation.metrics.motion_figures import JointUse
from simbridge.text import significant, with_unit

MICROSECONDS = 1e6


class MotionCell(NamedTuple):
    """A quantity of a run beside its limit.

    Attributes:
        value: The largest value, with its unit where that is not the column's.
        share: Its share of the limit, in percent; "" where there is no limit.
        exceeds: Whether the share is above 1.
    """

    value: str
    share: str
    exceeds: bool


class MotionColumn(NamedTuple):
    """A quantity that is compared.

    Attributes:
        name: The quantity.
        unit: The unit of its values.
        limit: What the share is taken of; "" without a limit.
        cells: The value of each run.
    """

    name: str
    unit: str
    limit: str
    cells: tuple[MotionCell, ...]


def motion_columns(runs: Sequence[ComparedRun]) -> list[MotionColumn]:
    """Return time per step, joint speed, acceleration and jerk of compared runs."""
    step_times = tuple(_step_cell(run) for run in runs)
    columns = [MotionColumn("time per step", "µs", "of the period", step_times)]
    for name, unit, limit in (
        ("velocity", "°/s", "of the limit"),
        ("acceleration", "°/s²", "of the limiter's limit"),
        ("jerk", "°/s³", ""),
    ):
        cells = tuple(_joint_cell(run, name, unit) for run in runs)
        title = "speed" if name == "velocity" else name
        columns.append(MotionColumn(f"joint {title}", unit, limit, cells))
    return columns


def _step_cell(run: ComparedRun) -> MotionCell:
    """Return the time of a step of the run's solver beside the control period."""
    step_time = run.evaluation.settings.solver.host_step_time_s
    if step_time is None:
        return MotionCell("–", "", False)
    text = significant(MICROSECONDS * step_time, decimals=1)
    return _beside_limit(text, step_time / run.evaluation.plan.period)


def _joint_cell(run: ComparedRun, name: str, unit: str) -> MotionCell:
    """Return a quantity of the joint that comes nearest to its limit.

    Args:
        run: The run.
        name: "velocity", "acceleration" or "jerk".
        unit: The unit for joints that turn.
    """
    effort: Mapping[str, Any] = run.summary["joint_effort"]
    use: JointUse | None = effort[name]
    if use is None:
        return MotionCell("–", "", False)

    peaks = np.array(use["peak"])
    limits = np.array(use["limit"]) if use["limit"] is not None else None
    if name == "acceleration":
        # The limiter alone keeps a limit, but every run may be compared with it.
        max_acceleration = run.evaluation.settings.robot.max_acceleration
        limits = None if max_acceleration is None else np.full(len(peaks), max_acceleration)

    shares = peaks if limits is None else peaks / limits
    joint = int(np.argmax(shares))
    if run.evaluation.settings.kinematics.prismatic[joint]:
        text = with_unit(significant(1e3 * peaks[joint]), unit.replace("°", "mm"))
    else:
        text = significant(math.degrees(peaks[joint]))
    return MotionCell(text, "", False) if limits is None else _beside_limit(text, shares[joint])


def _beside_limit(text: str, share: float) -> MotionCell:
    """Return the cell of a value with its share of a limit."""
    return MotionCell(text, f"{significant(100.0 * share, 2, 1)} %", bool(share > 1.0))
