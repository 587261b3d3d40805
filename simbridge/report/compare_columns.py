"""Columns of a comparison: the time of a solver's step, and the joints' motion, beside limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from simbridge.evaluation.comparison import ComparedRun
from simbridge.evaluation.metrics.motion_figures import JointUse
from simbridge.text import significant, with_unit

# Microseconds in a second.
MICROSECONDS = 1e6


class MotionCell(NamedTuple):
    """The value of a quantity in a run, beside its limit.

    Attributes:
        value: The largest value, with its unit if that is not the column's; a dash if unknown.
        limit_share: The value as a percentage of its limit; "" without a limit.
        exceeds: Whether the value is above its limit.
    """

    value: str
    limit_share: str = ""
    exceeds: bool = False


# The cell of a run in which a quantity is not known.
UNKNOWN_CELL = MotionCell("–")


class MotionColumn(NamedTuple):
    """A quantity that is compared.

    Attributes:
        name: Name of the quantity.
        unit: The unit of its values.
        limit: Name of the limit, after a percentage: "of the period"; "" without a limit.
        cells: The cell of each run.
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
        return UNKNOWN_CELL
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
        return UNKNOWN_CELL

    # The limiter alone keeps a limit of the acceleration, but every run may be compared with it.
    peaks = np.array(use["peak"])
    limits = np.array(use["limit"]) if use["limit"] is not None else None
    if name == "acceleration":
        max_acceleration = run.evaluation.settings.robot.max_acceleration
        limits = None if max_acceleration is None else np.full(len(peaks), max_acceleration)

    # The joint that comes nearest to its limit; without limits, the one with the largest value.
    ratios = peaks if limits is None else peaks / limits
    joint = int(np.argmax(ratios))
    if run.evaluation.settings.kinematics.prismatic[joint]:
        text = with_unit(significant(1e3 * peaks[joint]), unit.replace("°", "mm"))
    else:
        text = significant(math.degrees(peaks[joint]))

    if limits is None:
        return MotionCell(text)
    return _beside_limit(text, ratios[joint])


def _beside_limit(text: str, ratio: float) -> MotionCell:
    """Return the cell of a value beside its limit.

    Args:
        text: The value.
        ratio: Ratio of the value to its limit.
    """
    percentage = f"{significant(100.0 * ratio, 2, 1)} %"
    return MotionCell(text, percentage, exceeds=bool(ratio > 1.0))
