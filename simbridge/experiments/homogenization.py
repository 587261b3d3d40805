"""Experiment A: how uniformly the virtual twin's tool accelerates, over directions and postures.

Three matrices that map a force at the tool to its acceleration, over joint positions drawn
uniformly: J J^T (the Jacobian transpose with unit gain), and J H^-1 J^T for two virtual twins, one
with its mass spread evenly over the joints (naive), one with its mass at the tool (conditioned).
The more uniform, the less convergence depends on posture.

The three follow from the virtual twin alone. For a solver or a custom function, the matrix is how
far one iteration (one call) moves the tool per unit of a small error, divided by the mean of its
diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simbridge.experiments import KDL, HomogenizationParameters
from simbridge.experiments.arm import choose_arm, is_paper_arm, make_solver
from simbridge.experiments.outcome import (
    Expected,
    Outcome,
    Plot,
    ResultTable,
    format_number,
    within,
    within_part,
)
from simbridge.ik.kernels.mathematics import mobility
from simbridge.ik.solver import Solver
from simbridge.ik.twin import Twin
from simbridge.report.palette import INK
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

AXES = ("x", "y", "z", "rx", "ry", "rz")
# The three matrices; the conditioned twin is equation 17 of the paper.
TRANSPOSE = "J J^T"
NAIVE = "J H^-1 J^T, naive"
CONDITIONED = "J H^-1 J^T, conditioned"
# Their names in plots.
FORMULAS = {
    TRANSPOSE: r"$J\,J^T$",
    NAIVE: r"$J\,H^{-1}J^T$, naive",
    CONDITIONED: r"$J\,H^{-1}J^T$, conditioned",
}
# Joint positions from which on figures are compared with the known ones: of fewer, some are out of
# range by chance.
SAMPLES = 100_000
# Equation 19 of the paper as printed.
PAPER_ALPHA = 0.7885

# Joint positions whose matrices are computed at once.
BLOCK_SAMPLES = 2000
# A solver's matrix takes six calls per sample; a thousand samples give its mean to a few per cent.
MAX_SOLVER_SAMPLES = 1000
# The error to which a solver responds, m and rad: small enough for the response to be linear, large
# enough for rounding not to matter.
SMALL_ERROR = 1e-5

_KDL = f"{KDL}, 100,000 samples"


def _expect(
    name: str, diagonal: Sequence[float], variance: float, margin: float = 0.02
) -> list[Expected]:
    """Return what is known of a matrix.

    Args:
        name: Name of the matrix.
        diagonal: Its mean diagonal (6,).
        variance: The largest variance of an entry.
        margin: Part of that variance within which it is expected.
    """
    expected = [
        within_part(f"{name}, mean {axis}", value, 0.02, _KDL)
        for axis, value in zip(AXES, diagonal, strict=True)
    ]
    expected.append(within_part(f"{name}, largest variance", variance, margin, _KDL))
    return expected


# On a UR10, over at least `SAMPLES` joint positions. The last variance is known to two digits, and
# has a standard deviation of 0.9 % from draw to draw.
EXPECTED = (
    *_expect(TRANSPOSE, (0.469, 0.469, 0.544, 2.13, 2.12, 1.75), 1.04),
    *_expect(NAIVE, (0.576, 0.577, 0.829, 3.52, 3.51, 3.25), 1.76),
    *_expect(CONDITIONED, (0.956, 0.955, 0.986, 0.998, 0.998, 0.998), 0.017, margin=0.04),
    within("alpha", 0.787, 0.002, _KDL),
)


@dataclass(frozen=True)
class MatrixStatistics:
    """Statistics over joint positions of a matrix that maps force to acceleration.

    It is in base axes, translation first.

    Attributes:
        mean: Mean of every entry (6, 6).
        variance: Variance of every entry (6, 6).
    """

    mean: Array
    variance: Array

    @property
    def std(self) -> Array:
        """Standard deviation of every entry (6, 6)."""
        return np.sqrt(self.variance)

    @property
    def diagonal(self) -> Array:
        """Diagonal of the mean (6,)."""
        return np.diag(self.mean)


def configurations(robot: Robot, samples: int, seed: int) -> Array:
    """Draw joint positions (samples, n): uniform in [-pi, pi), rad.

    Those of sliding joints are between the limits, m.
    """
    low = np.where(robot.prismatic, robot.position_min, -math.pi)
    high = np.where(robot.prismatic, robot.position_max, math.pi)
    return np.random.default_rng(seed).uniform(low, high, (samples, robot.n))


def measure(robot: Robot, samples: int = SAMPLES, seed: int = 0) -> dict[str, MatrixStatistics]:
    """Return the statistics of the paper's three matrices, by name.

    Args:
        robot: The arm.
        samples: Number of joint positions.
        seed: Seed of the joint positions.
    """
    q = configurations(robot, samples, seed)
    twins = [Twin().numbers, Twin.naive(robot.n).numbers]
    names = (TRANSPOSE, CONDITIONED, NAIVE)

    # All matrices would fill 100 MB, so means and squares of blocks are combined (Chan, Golub and
    # LeVeque, 1983).
    count = 0
    mean = np.zeros((len(names), 6, 6))
    squares = np.zeros((len(names), 6, 6))
    for first in range(0, samples, BLOCK_SAMPLES):
        block = q[first : first + BLOCK_SAMPLES]
        matrices = np.array(mobility(robot.placements, robot.prismatic, block, twins))
        size = matrices.shape[1]
        block_mean = matrices.mean(axis=1)

        within_block = ((matrices - block_mean[:, None]) ** 2).sum(axis=1)
        between_blocks = (block_mean - mean) ** 2 * (count * size / (count + size))
        squares += within_block + between_blocks
        mean += (block_mean - mean) * (size / (count + size))
        count += size

    return {
        name: MatrixStatistics(mean[index], squares[index] / count)
        for index, name in enumerate(names)
    }


def response(robot: Robot, solver: Solver, samples: int, seed: int) -> MatrixStatistics:
    """Measure how a solver responds to a small error along each axis.

    Args:
        robot: The arm.
        solver: A solver with one iteration per step.
        samples: Number of joint positions.
        seed: Seed of the joint positions.
    """
    matrices = np.empty((samples, 6, 6))
    for sample, q in enumerate(configurations(robot, samples, seed)):
        tool = tool_path(robot, q[None])[0]
        for axis, shift in enumerate(SMALL_ERROR * np.eye(6)):
            position = tool[:3] + shift[:3]
            orientation = pose.multiply(pose.quaternions(shift[3:]), tool[3:])
            target = np.concatenate([position, orientation])

            attained = tool_path(robot, solver.track(target[None], q))[0]
            motion = np.concatenate(pose.error(attained, tool))
            matrices[sample, :, axis] = motion / SMALL_ERROR

    # Scale the mean matrix to a mean diagonal of 1.
    matrices /= np.trace(matrices.mean(axis=0)) / 6.0
    return MatrixStatistics(matrices.mean(axis=0), matrices.var(axis=0))


def alpha(statistics: Mapping[str, MatrixStatistics]) -> float:
    """Return the gain that makes the transpose comparable (equation 19).

    It is mean diag(J H^-1 J^T) / mean diag(J J^T).
    """
    conditioned = statistics[CONDITIONED].diagonal.mean()
    return float(conditioned / statistics[TRANSPOSE].diagonal.mean())


def figures(statistics: Mapping[str, MatrixStatistics]) -> dict[str, float]:
    """Return diagonal means, largest variances, and alpha."""
    values: dict[str, float] = {}
    for name, matrix in statistics.items():
        for axis, value in zip(AXES, matrix.diagonal, strict=True):
            values[f"{name}, mean {axis}"] = float(value)
        values[f"{name}, largest variance"] = float(matrix.variance.max())
    values["alpha"] = alpha(statistics)
    return values


def run(parameters: HomogenizationParameters) -> Outcome:
    """Carry out the command."""
    arm = choose_arm(parameters)
    robot = arm.robot
    samples = parameters.samples
    solvers = {
        name: make_solver(robot, name, iterations=1) for name in dict.fromkeys(parameters.solver)
    }

    measured = measure(robot, samples, parameters.seed)
    statistics = {name: measured[name] for name in (TRANSPOSE, NAIVE, CONDITIONED)}
    for name, solver in solvers.items():
        solver_samples = min(samples, MAX_SOLVER_SAMPLES)
        statistics[name] = response(robot, solver, solver_samples, parameters.seed)

    values = figures(statistics)
    has_enough_samples = samples >= SAMPLES
    is_known = is_paper_arm(robot) and has_enough_samples
    notes = _notes(values["alpha"], is_paper_arm(robot), has_enough_samples)
    if solvers:
        notes += arm.notes
    title = f"Mean diagonal over {samples} joint positions"
    columns = ("matrix", *AXES, "largest var.")
    return Outcome(
        figures=values,
        expected=EXPECTED if is_known else (),
        data={
            "arm": arm.as_data(),
            "alpha": values["alpha"],
            "matrices": {name: _matrix_data(matrix) for name, matrix in statistics.items()},
        },
        tables=[ResultTable(title, columns, _rows(statistics))],
        plots={"homogenization.png": _plot(statistics)},
        notes=notes,
    )


def _notes(alpha: float, is_paper_arm: bool, has_enough_samples: bool) -> list[str]:
    """Return sentences on alpha, and on what the figures are compared with."""
    note = f"alpha = {alpha:.4f} over these joint positions"
    if not is_paper_arm:
        return [note]
    if has_enough_samples:
        return [
            f"{note}; the paper prints {PAPER_ALPHA}, which none of the frame conventions we "
            "tried reproduces."
        ]
    return [
        note,
        f"Reference figures exist for {SAMPLES} joint positions; results from fewer "
        "are not compared with them.",
    ]


def _matrix_data(matrix: MatrixStatistics) -> dict[str, object]:
    """Return the statistics of a matrix for JSON."""
    return {
        "mean": matrix.mean.tolist(),
        "variance": matrix.variance.tolist(),
        "std": matrix.std.tolist(),
    }


def _rows(statistics: Mapping[str, MatrixStatistics]) -> list[tuple[str, ...]]:
    """Return a row for each matrix: its diagonal, and the largest variance."""
    rows = []
    for name, matrix in statistics.items():
        diagonal = [f"{value:.3f}" for value in matrix.diagonal]
        rows.append((name, *diagonal, format_number(float(matrix.variance.max()))))
    return rows


def _plot(statistics: Mapping[str, MatrixStatistics]) -> Plot:
    """Return a plot with a column per matrix.

    Mean, variance and standard deviation are below each other, each on one scale.
    """
    panel_rows = {
        "Mean": [matrix.mean for matrix in statistics.values()],
        "Variance": [matrix.variance for matrix in statistics.values()],
        "Standard deviation": [matrix.std for matrix in statistics.values()],
    }

    def draw(figure: Figure) -> None:
        panels = figure.subplots(len(panel_rows), len(statistics), squeeze=False)
        for row, (title, matrices) in zip(panels, panel_rows.items(), strict=True):
            top = max(float(matrix.max()) for matrix in matrices)
            for axes, matrix in zip(row, matrices, strict=True):
                _draw_matrix(axes, matrix, top)
            row[0].set_ylabel(title)
        for axes, name in zip(panels[0], statistics, strict=True):
            axes.set_title(FORMULAS.get(name, name))

    return Plot(2.9 * len(statistics), 8.2, draw)


def _draw_matrix(axes: Axes, matrix: Array, top: float) -> None:
    """Draw a matrix (6, 6) as coloured cells with its numbers.

    Args:
        axes: Axes to draw into.
        matrix: Its entries.
        top: The largest entry of all matrices with this scale.
    """
    axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=1.15 * top)
    for (row, column), value in np.ndenumerate(matrix):
        colour = "white" if value > 0.6 * top else INK
        # Rounded first, so that there is no minus zero.
        text = f"{round(value, 2) + 0.0:.2f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=colour)
    axes.set_xticks(range(6), AXES)
    axes.set_yticks(range(6), AXES)
    axes.grid(False)
