"""Runs experiment A: how uniformly the virtual twin's tool accelerates, whatever the posture.

Three matrices that map a force at the tool to its acceleration are computed for random joint
positions: J J^T (the Jacobian transpose with unit gain), and J H^-1 J^T for two virtual twins, one
with its mass spread evenly over the joints (naive), and one with its mass at the tool
(conditioned). The more uniform a matrix is, the less convergence depends on posture.

The three matrices follow from the virtual twin alone. For a solver or a custom function, the matrix
says how far one iteration, or one call, moves the tool per unit of a small error; it is divided by
the mean of its diagonal.
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

# Names of the rows and columns of a matrix.
AXES = ("x", "y", "z", "rx", "ry", "rz")
# Name of the matrix of the Jacobian transpose.
TRANSPOSE = "J J^T"
# Name of the matrix of the twin with its mass spread evenly over the joints.
NAIVE = "J H^-1 J^T, naive"
# Name of the matrix of the twin with its mass at the tool, equation 17 of the paper.
CONDITIONED = "J H^-1 J^T, conditioned"
# Names of the three matrices in plots.
FORMULAS = {
    TRANSPOSE: r"$J\,J^T$",
    NAIVE: r"$J\,H^{-1}J^T$, naive",
    CONDITIONED: r"$J\,H^{-1}J^T$, conditioned",
}
# Smallest number of joint positions whose figures are compared with the known ones: with fewer,
# some figures are out of range by chance.
SAMPLES = 100_000
# The gain alpha as printed in the paper, equation 19.
PAPER_ALPHA = 0.7885

# Number of joint positions whose matrices are computed at once.
BLOCK_SAMPLES = 2000
# Largest number of joint positions for a solver's matrix, which takes six calls each; a thousand
# give its mean to a few per cent.
MAX_SOLVER_SAMPLES = 1000
# The error to which a solver responds, m and rad: small enough for the response to be linear, large
# enough for rounding not to matter.
SMALL_ERROR = 1e-5
# Width of the plot for each matrix, and height of the plot, inches.
MATRIX_WIDTH = 2.9
PLOT_HEIGHT = 8.2
# Top of the scale of colours of a matrix, as a multiple of its largest entry.
COLOUR_TOP = 1.15
# Fraction of the largest entry above which an entry is written in white on its dark cell.
DARK_FRACTION = 0.6

_KDL = f"{KDL}, 100,000 samples"


def _expect(
    name: str, diagonal: Sequence[float], variance: float, margin: float = 0.02
) -> list[Expected]:
    """Return the figures that are known of a matrix.

    Args:
        name: Name of the matrix.
        diagonal: Mean diagonal of the matrix (6,).
        variance: Largest variance of an entry.
        margin: Largest relative difference from that variance.
    """
    expected = [
        within_part(f"{name}, mean {axis}", value, 0.02, _KDL)
        for axis, value in zip(AXES, diagonal, strict=True)
    ]
    expected.append(within_part(f"{name}, largest variance", variance, margin, _KDL))
    return expected


# Figures that are known for a UR10, over at least `SAMPLES` joint positions. The variance of the
# conditioned twin is known to two digits only, and varies by 0.9 % (one standard deviation) from
# draw to draw.
EXPECTED = (
    *_expect(TRANSPOSE, (0.469, 0.469, 0.544, 2.13, 2.12, 1.75), 1.04),
    *_expect(NAIVE, (0.576, 0.577, 0.829, 3.52, 3.51, 3.25), 1.76),
    *_expect(CONDITIONED, (0.956, 0.955, 0.986, 0.998, 0.998, 0.998), 0.017, margin=0.04),
    within("alpha", 0.787, 0.002, _KDL),
)


@dataclass(frozen=True)
class MatrixStatistics:
    """Statistics over joint positions of a matrix that maps force to acceleration.

    The matrix is along the axes of the base, with translation before rotation.

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

    Sliding joints are drawn between their limits, m.
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
    # `mobility` returns the matrix of the transpose, then one for each twin.
    names = (TRANSPOSE, CONDITIONED, NAIVE)

    # All matrices would fill 100 MB. So the mean and the sum of squared deviations are updated
    # block by block, by the formula of Chan, Golub and LeVeque (1983).
    count = 0
    mean = np.zeros((len(names), 6, 6))
    squared_deviations = np.zeros((len(names), 6, 6))
    for first in range(0, samples, BLOCK_SAMPLES):
        block = q[first : first + BLOCK_SAMPLES]
        matrices = np.array(mobility(robot.placements, robot.prismatic, block, twins))
        block_count = matrices.shape[1]
        block_mean = matrices.mean(axis=1)
        new_count = count + block_count

        within_block = ((matrices - block_mean[:, None]) ** 2).sum(axis=1)
        between_blocks = (block_mean - mean) ** 2 * (count * block_count / new_count)
        squared_deviations += within_block + between_blocks
        mean += (block_mean - mean) * (block_count / new_count)
        count = new_count

    return {
        name: MatrixStatistics(mean[index], squared_deviations[index] / count)
        for index, name in enumerate(names)
    }


def response(robot: Robot, solver: Solver, samples: int, seed: int) -> MatrixStatistics:
    """Measure how far one iteration of a solver moves the tool per unit of a small error.

    Args:
        robot: The arm.
        solver: A solver with one iteration per step.
        samples: Number of joint positions.
        seed: Seed of the joint positions.

    Returns:
        Statistics of the matrix, scaled to a mean diagonal of 1.
    """
    matrices = np.empty((samples, 6, 6))
    for sample, q in enumerate(configurations(robot, samples, seed)):
        tool = tool_path(robot, q[None])[0]
        for axis, shift in enumerate(SMALL_ERROR * np.eye(6)):
            # The target is the tool's pose, shifted along an axis or rotated about one.
            position = tool[:3] + shift[:3]
            orientation = pose.multiply(pose.quaternions(shift[3:]), tool[3:])
            target = np.concatenate([position, orientation])

            # The motion of the tool is a column of the matrix.
            attained = tool_path(robot, solver.track(target[None], q))[0]
            motion = np.concatenate(pose.error(attained, tool))
            matrices[sample, :, axis] = motion / SMALL_ERROR

    mean_diagonal = np.trace(matrices.mean(axis=0)) / 6.0
    matrices /= mean_diagonal
    return MatrixStatistics(matrices.mean(axis=0), matrices.var(axis=0))


def alpha(statistics: Mapping[str, MatrixStatistics]) -> float:
    """Return the gain with which the transpose maps force to acceleration as the twin does.

    By equation 19 of the paper it is the ratio of the mean diagonals of J H^-1 J^T, conditioned,
    and J J^T.
    """
    conditioned = statistics[CONDITIONED].diagonal.mean()
    transpose = statistics[TRANSPOSE].diagonal.mean()
    return float(conditioned / transpose)


def figures(statistics: Mapping[str, MatrixStatistics]) -> dict[str, float]:
    """Return the mean diagonal and the largest variance of each matrix, and alpha, by name."""
    values: dict[str, float] = {}
    for name, matrix in statistics.items():
        for axis, value in zip(AXES, matrix.diagonal, strict=True):
            values[f"{name}, mean {axis}"] = float(value)
        values[f"{name}, largest variance"] = float(matrix.variance.max())
    values["alpha"] = alpha(statistics)
    return values


def run(parameters: HomogenizationParameters) -> Outcome:
    """Run the experiment."""
    arm = choose_arm(parameters)
    robot = arm.robot
    samples = parameters.samples
    solvers = {
        name: make_solver(robot, name, iterations=1) for name in dict.fromkeys(parameters.solver)
    }

    # The statistics of the three matrices, in the order of the table, and of each solver's matrix.
    measured = measure(robot, samples, parameters.seed)
    statistics = {name: measured[name] for name in (TRANSPOSE, NAIVE, CONDITIONED)}
    for name, solver in solvers.items():
        solver_samples = min(samples, MAX_SOLVER_SAMPLES)
        statistics[name] = response(robot, solver, solver_samples, parameters.seed)

    # Figures are known only for the paper's arm with enough samples.
    values = figures(statistics)
    has_enough_samples = samples >= SAMPLES
    is_known = is_paper_arm(robot) and has_enough_samples
    notes = _notes(
        values["alpha"],
        is_paper_arm=is_paper_arm(robot),
        has_enough_samples=has_enough_samples,
    )
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


def _notes(alpha: float, *, is_paper_arm: bool, has_enough_samples: bool) -> list[str]:
    """Return sentences on alpha, and on the known figures.

    Args:
        alpha: The measured gain alpha.
        is_paper_arm: Whether the arm is the paper's.
        has_enough_samples: Whether there are enough joint positions to compare figures.
    """
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
    """Return a row for each matrix: its mean diagonal, and the largest variance of an entry."""
    rows = []
    for name, matrix in statistics.items():
        diagonal = [f"{value:.3f}" for value in matrix.diagonal]
        rows.append((name, *diagonal, format_number(float(matrix.variance.max()))))
    return rows


def _plot(statistics: Mapping[str, MatrixStatistics]) -> Plot:
    """Return a plot with a column for each matrix.

    The rows are the mean, the variance and the standard deviation of the entries. All panels of a
    row have the same scale of colours.
    """
    panel_rows = {
        "Mean": [matrix.mean for matrix in statistics.values()],
        "Variance": [matrix.variance for matrix in statistics.values()],
        "Standard deviation": [matrix.std for matrix in statistics.values()],
    }

    def draw(figure: Figure) -> None:
        """Draw the panels into an empty figure."""
        panels = figure.subplots(len(panel_rows), len(statistics), squeeze=False)
        for row, (title, matrices) in zip(panels, panel_rows.items(), strict=True):
            largest = max(float(matrix.max()) for matrix in matrices)
            for axes, matrix in zip(row, matrices, strict=True):
                _draw_matrix(axes, matrix, largest)
            row[0].set_ylabel(title)
        for axes, name in zip(panels[0], statistics, strict=True):
            axes.set_title(FORMULAS.get(name, name))

    return Plot(MATRIX_WIDTH * len(statistics), PLOT_HEIGHT, draw)


def _draw_matrix(axes: Axes, matrix: Array, largest: float) -> None:
    """Draw a matrix as coloured cells with its numbers.

    Args:
        axes: Axes to draw into.
        matrix: Entries of the matrix (6, 6).
        largest: The largest entry of all matrices with the same scale of colours.
    """
    axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=COLOUR_TOP * largest)
    for (row, column), value in np.ndenumerate(matrix):
        colour = "white" if value > DARK_FRACTION * largest else INK
        # Rounding first, and adding zero, avoids "-0.00".
        text = f"{round(value, 2) + 0.0:.2f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=colour)
    axes.set_xticks(range(6), AXES)
    axes.set_yticks(range(6), AXES)
    axes.grid(False)
