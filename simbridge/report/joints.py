"""The joints of a run.

They show position, velocity and torque against their limits, and their parts of the tracking error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from markupsafe import Markup

from simbridge.evaluation.evaluation import Evaluation
from simbridge.evaluation.metrics.samples import Statistics, statistics
from simbridge.report.charts import Chart, Line, Panel
from simbridge.report.palette import ATTAINED, SETPOINT
from simbridge.robot.kinematics import task_jacobians
from simbridge.robot.pose import Array
from simbridge.text import NO_BREAK, millimetres, plain, significant, with_unit

# Larger limits of a robot mean "no limit".
NO_LIMIT = 1e6
# A joint that uses this fraction of a limit is shown in bold.
NEAR_LIMIT = 0.9
# Differences below this, in degrees, mm, N m, N or A, are not worth drawing.
RESOLUTION = 0.01
# A limit is drawn only if the curve still takes up this fraction of the axes' height.
MIN_CURVE_FRACTION = 0.4
# Margin below and above the curves and limits, as a fraction of their range.
MARGIN_FRACTION = 0.08
# The error of a joint that moves the tool by less counts as rounding, m.
CONTRIBUTION_ROUNDING = 1e-9
# Size of a joint's chart, in pixels.
WIDTH = 348
HEIGHT = 380
# The most samples at which Jacobians are computed, evenly spaced: a mean does not need more.
MAX_JACOBIANS = 5000


@dataclass(frozen=True, eq=False)
class JointQuantity:
    """A quantity of a joint over time.

    Attributes:
        name: "position", "velocity", "torque", "force" or "current".
        unit: The unit of values and limits.
        values: Returns the measured values (T,), on demand: of all joints for an hour they take
            0.4 GB.
        lower: The lower limit; -inf for none.
        upper: The upper limit; inf for none.
        setpoint: Returns the values that were sent (T,), where these are known.
    """

    name: str
    unit: str
    values: Callable[[], Array]
    lower: float
    upper: float
    setpoint: Callable[[], Array] | None = None

    @cached_property
    def range(self) -> tuple[float, float]:
        """Lowest and highest finite value; NaN where none is."""
        values = self.values()
        finite = values[np.isfinite(values)]
        return (float(finite.min()), float(finite.max())) if len(finite) else (math.nan, math.nan)

    @property
    def is_known(self) -> bool:
        """True if any value is finite."""
        return math.isfinite(self.range[0])

    @property
    def peak(self) -> float:
        """The largest magnitude."""
        return max(map(abs, self.range))

    @property
    def limit_fraction(self) -> float | None:
        """The peak as a fraction of the limit; None without a limit or a number."""
        if not self.is_known or not np.isfinite(self.upper) or self.upper <= 0.0:
            return None
        return self.peak / self.upper

    @property
    def margin(self) -> float | None:
        """The smallest distance from a limit; None without a limit or a number."""
        if not self.is_known or not (np.isfinite(self.lower) or np.isfinite(self.upper)):
            return None
        return min(self.upper - self.range[1], self.range[0] - self.lower)

    @property
    def is_near_limit(self) -> bool:
        """True if a limit came near.

        Near is a twentieth of the range of positions, and a tenth of any other limit.
        """
        if self.name != "position":
            return self.limit_fraction is not None and self.limit_fraction >= NEAR_LIMIT
        if self.margin is None:
            return False
        return self.margin < 0.5 * (1.0 - NEAR_LIMIT) * (self.upper - self.lower)

    @property
    def limit_used(self) -> str:
        """The peak in percent of the limit, as text."""
        if self.limit_fraction is None:
            return "no limit" if self.is_known else "–"
        percentage = significant(100.0 * self.limit_fraction, 2, 1)
        limit = plain(float(f"{self.upper:.4g}"))
        return f"{percentage}{NO_BREAK}% of {limit}"


@dataclass(frozen=True, eq=False)
class JointResult:
    """The motion and the errors of a joint of the arm.

    Attributes:
        name: The joint's name in the robot's description.
        prismatic: Whether it slides.
        position: The measured position, with its limits and setpoint.
        velocity: The measured velocity, with its limits.
        effort: The measured torque, force or current, with its limits.
        following_error: Statistics of its following error, in rad or m.
        displacement: Statistics of the tool's displacement by that error alone, m.
        rotation: Statistics of the tool's rotation by that error alone, rad.
    """

    name: str
    prismatic: bool
    position: JointQuantity
    velocity: JointQuantity
    effort: JointQuantity
    following_error: Statistics
    displacement: Statistics
    rotation: Statistics


def joint_results(evaluation: Evaluation) -> list[JointResult]:
    """Return every joint of the run: angles in degrees, lengths of prismatic joints in mm."""
    log = evaluation.log
    displacements, rotations = joint_contributions(evaluation)
    results = []
    for i, name in enumerate(log.joint_names):
        following_error = np.abs(evaluation.column("setpoint")[:, i] - log.position[:, i])
        joint = JointResult(
            name=name,
            prismatic=evaluation.settings.kinematics.prismatic[i],
            position=_position(evaluation, i),
            velocity=_velocity(evaluation, i),
            effort=_effort(evaluation, i),
            following_error=statistics(following_error),
            displacement=statistics(displacements[:, i]),
            rotation=statistics(rotations[:, i]),
        )
        results.append(joint)
    # The columns of a long run are large, and the charts read one joint at a time.
    log.arrays.release()
    return results


def _position(evaluation: Evaluation, joint: int) -> JointQuantity:
    """Return the position of a joint, with its setpoint."""
    robot = evaluation.settings.robot
    scale, unit = _scale(evaluation, joint)
    return JointQuantity(
        name="position",
        unit=unit,
        values=partial(_column, evaluation, "position", joint, scale),
        lower=_finite_limit(robot.position_min[joint]) * scale,
        upper=_finite_limit(robot.position_max[joint]) * scale,
        setpoint=partial(_column, evaluation, "setpoint", joint, scale),
    )


def _velocity(evaluation: Evaluation, joint: int) -> JointQuantity:
    """Return the velocity of a joint."""
    limit = _finite_limit(evaluation.settings.robot.max_velocity[joint])
    scale, unit = _scale(evaluation, joint)
    return JointQuantity(
        name="velocity",
        unit=f"{unit}/s",
        values=partial(_column, evaluation, "velocity", joint, scale),
        lower=-limit * scale,
        upper=limit * scale,
    )


def _effort(evaluation: Evaluation, joint: int) -> JointQuantity:
    """Return the torque, force or current of a joint."""
    record = evaluation.settings
    limit = _finite_limit(record.robot.max_effort[joint])
    unit = record.backend.effort_unit
    if unit == "A":
        name = "current"
        # The limit is a torque: a current cannot be compared with it.
        limit = math.inf
    elif record.kinematics.prismatic[joint]:
        name = "force"
        unit = "N"
    else:
        name = "torque"
    return JointQuantity(
        name=name,
        unit=unit,
        values=partial(_column, evaluation, "effort", joint, 1.0),
        lower=-limit,
        upper=limit,
    )


def _scale(evaluation: Evaluation, joint: int) -> tuple[float, str]:
    """Return the unit in which a joint is shown, and the factor from SI units to it."""
    if evaluation.settings.kinematics.prismatic[joint]:
        return 1e3, "mm"
    return math.degrees(1.0), "°"


def _finite_limit(limit: float) -> float:
    """Return a limit of the robot, infinite where it means that there is none."""
    return limit if abs(limit) < NO_LIMIT else math.copysign(math.inf, limit)


def _column(run: Evaluation, name: str, joint: int, scale: float) -> Array:
    """Return a column (T,) of the log for one joint, times a factor."""
    return run.column(name)[:, joint] * scale


def joint_contributions(evaluation: Evaluation) -> tuple[Array, Array]:
    """Return the distance by which each joint's following error alone moves the tool.

    To first order the joints' displacements add up, as vectors, to the plant's part of the error
    budget.

    Returns:
        Displacements (K, n), m, and rotations (K, n), rad, at K samples, evenly spaced.
    """
    step = -(-len(evaluation.log.stamp) // MAX_JACOBIANS)
    setpoint = evaluation.column("setpoint")[::step].copy()
    position = evaluation.column("position")[::step].copy()
    following_error = (setpoint - position)[:, None, :]

    motion = task_jacobians(*evaluation.chain, setpoint, "pose") * following_error
    displacements = np.linalg.norm(motion[:, :3], axis=1)
    rotations = np.linalg.norm(motion[:, 3:], axis=1)
    return displacements, rotations


def largest_contributor(joints: Sequence[JointResult]) -> str:
    """Return a sentence about the joint whose following error moves the tool most."""
    worst = max(joints, key=lambda joint: joint.displacement["rms"])
    displacement = worst.displacement["rms"]
    if displacement < CONTRIBUTION_ROUNDING:
        return "Every joint was at its setpoint."
    return (
        f"{worst.name} contributes most: its following error alone moves the tool by "
        f"{millimetres(displacement)}{NO_BREAK}mm RMS. Contributions of several joints may cancel."
    )


def joint_chart(joint: JointResult, stamps: Array, number: int) -> Markup:
    """Return position, velocity and torque over time, with the limits that come near.

    Args:
        joint: The joint that is drawn.
        stamps: Instants of its samples (T,), s.
        number: The joint's number, which makes the chart's name unique on the page.
    """
    quantities = (joint.position, joint.velocity, joint.effort)
    panels = [_panel(quantity, stamps) for quantity in quantities]
    chart = Chart(panels, stamps, HEIGHT, columns=500)

    names = ", ".join(f"{quantity.name} in {quantity.unit}" for quantity in quantities)
    label = f"{joint.name}: {names} over time"
    return chart.html(chart.svg(f"joint{number}", label, WIDTH))


def _panel(quantity: JointQuantity, stamps: Array) -> Panel:
    """Return the axes of a quantity: what was measured and, where it is known, what was sent."""
    values = quantity.values()
    if quantity.setpoint is None:
        lines = [Line(quantity.name, ATTAINED, stamps, values, 1.5)]
    else:
        setpoint = quantity.setpoint()
        lines = [
            Line(f"{quantity.name}, setpoint", SETPOINT, stamps, setpoint, 3.5),
            Line(f"{quantity.name}, attained", ATTAINED, stamps, values, 1.5),
        ]

    low, high, limits = _axis_range(quantity, np.concatenate([line.values for line in lines]))
    # A degree sign follows its number without a blank.
    unit = quantity.unit if quantity.unit.startswith("°") else f"{NO_BREAK}{quantity.unit}"
    title = f"{quantity.name.capitalize()} ({quantity.unit})"
    return Panel(title, lines, (low, high), unit, limits=limits, remark=_remark(quantity))


def _axis_range(quantity: JointQuantity, curves: Array) -> tuple[float, float, list[float]]:
    """Return the ends of a quantity's axis, and the limits between them.

    Args:
        quantity: The quantity, whose limits are shown where its values come near them.
        curves: All values that are drawn.
    """
    if not quantity.is_known:
        return -1.0, 1.0, []

    # The curves, or as much as their differences are worth.
    finite = curves[np.isfinite(curves)]
    lowest = float(finite.min())
    highest = float(finite.max())
    middle = 0.5 * (lowest + highest)
    span = max(highest - lowest, 10.0 * RESOLUTION)
    low = middle - 0.5 * span
    high = middle + 0.5 * span

    # The limits, unless the curves would become too flat with them.
    limits = []
    for limit in (quantity.lower, quantity.upper):
        span_with_limit = max(high, limit) - min(low, limit)
        if np.isfinite(limit) and span >= MIN_CURVE_FRACTION * span_with_limit:
            low = min(low, limit)
            high = max(high, limit)
            limits.append(limit)

    margin = MARGIN_FRACTION * (high - low)
    return low - margin, high + margin, limits


def _remark(quantity: JointQuantity) -> str:
    """Return a few words about the nearest approach to a limit."""
    if not quantity.is_known:
        return "no data"
    if quantity.name == "position":
        margin = quantity.margin
        if margin is None:
            return "no limit"
        return f"{with_unit(significant(margin), quantity.unit)} to limit"
    if quantity.limit_fraction is None:
        return f"peak {with_unit(significant(quantity.peak), quantity.unit)}"
    return quantity.limit_used.replace("of ", "of ±")
