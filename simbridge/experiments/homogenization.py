"""Experiment A: how uniformly the virtual twin's tool accelerates, over directions and postures.

Three matrices that map a force at the tool to its acceleration, over joint positions drawn uniformly: J J^T (the
Jacobian transpose with unit gain), and J H^-1 J^T for two virtual twins, one with its mass spread evenly over the
joints (naive), one with its mass at the tool (conditioned). The more uniform, the less convergence depends on posture.

The three follow from the virtual twin alone. For a solver or a custom function, the matrix is how far one iteration
(one call) moves the tool per unit of a small error, divided by the mean of its diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from simbridge.experiments import KDL, HomogenizationParameters
from simbridge.experiments.experiment import (
    Expected,
    Outcome,
    Plot,
    Table,
    number,
    within,
    within_part,
)
from simbridge.experiments.setup import choose_arm, is_paper_arm, make_solver
from simbridge.ik.kernels.mathematics import mobility
from simbridge.ik.solver import Solver
from simbridge.ik.twin import Twin
from simbridge.report.palette import INK
from simbridge.robot import pose
from simbridge.robot.kinematics import tool_path
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

AXES = ("x", "y", "z", "rx", "ry", "rz")
TRANSPOSE, NAIVE, CONDITIONED = "J J^T", "J H^-1 J^T, naive", "J H^-1 J^T, conditioned"
"""The three matrices; the conditioned twin is equation 17 of the paper."""
SAMPLES = 100_000
"""Joint positions from which on figures are compared with the known ones: of fewer, some are out of range by chance."""
PAPER_ALPHA = 0.7885
"""Equation 19 of the paper as printed."""

_LETTERS = {
    TRANSPOSE: r"$J\,J^T$",
    NAIVE: r"$J\,H^{-1}J^T$, naive",
    CONDITIONED: r"$J\,H^{-1}J^T$, conditioned",
}
# A solver's matrix takes six calls per sample; a thousand samples give its mean to a few per cent.
_MAX_FOR_SOLVERS = 1000
# Small enough for the response to be linear, large enough for rounding not to matter: m and rad.
_SMALL = 1e-5

_KDL = f"{KDL}, 100,000 samples"


def _known(
    name: str, diagonal: Sequence[float], variance: float, margin: float = 0.02
) -> list[Expected]:
    entries = zip(AXES, diagonal, strict=True)
    means = [within_part(f"{name}, mean {axis}", value, 0.02, _KDL) for axis, value in entries]
    return [*means, within_part(f"{name}, largest variance", variance, margin, _KDL)]


# The last variance is known to two digits, and has a standard deviation of 0.9 % from draw to draw.
EXPECTED = (
    *_known(TRANSPOSE, (0.469, 0.469, 0.544, 2.13, 2.12, 1.75), 1.04),
    *_known(NAIVE, (0.576, 0.577, 0.829, 3.52, 3.51, 3.25), 1.76),
    *_known(CONDITIONED, (0.956, 0.955, 0.986, 0.998, 0.998, 0.998), 0.017, margin=0.04),
    within("alpha", 0.787, 0.002, _KDL),
)
"""On a UR10, over at least `SAMPLES` joint positions."""
# Joint positions whose matrices are computed at once.
_BLOCK = 2000


@dataclass(frozen=True)
class Spread:
    """Statistics over joint positions of a matrix that maps force to acceleration, in base axes, translation first.

    Attributes:
        mean, variance: Of every entry (6, 6).
    """

    mean: Array
    variance: Array

    @property
    def std(self) -> Array:
        """Standard deviation of every entry (6, 6)."""
        return np.sqrt(self.variance)

    @property
    def diagonal(self) -> Array:
        """Of the mean (6,)."""
        return np.diag(self.mean)


def configurations(robot: Robot, samples: int, seed: int) -> Array:
    """Joint positions (samples, n): uniform in [-pi, pi), rad; of sliding joints between the limits, m."""
    low = np.where(robot.prismatic, robot.position_min, -math.pi)
    high = np.where(robot.prismatic, robot.position_max, math.pi)
    return np.random.default_rng(seed).uniform(low, high, (samples, robot.n))


def measure(robot: Robot, samples: int = SAMPLES, seed: int = 0) -> dict[str, Spread]:
    """The paper's three matrices."""
    q = configurations(robot, samples, seed)
    twins = [Twin().numbers, Twin.naive(robot.n).numbers]
    names = (TRANSPOSE, CONDITIONED, NAIVE)
    count, mean, squares = 0, np.zeros((len(names), 6, 6)), np.zeros((len(names), 6, 6))
    # Block by block, which are then combined (Chan, Golub and LeVeque, 1983): all matrices would fill 100 MB.
    for first in range(0, samples, _BLOCK):
        matrices = np.array(
            mobility(robot.placements, robot.prismatic, q[first : first + _BLOCK], twins)
        )
        size, own = matrices.shape[1], matrices.mean(axis=1)
        squares += ((matrices - own[:, None]) ** 2).sum(axis=1) + (own - mean) ** 2 * (
            count * size / (count + size)
        )
        mean += (own - mean) * (size / (count + size))
        count += size
    return {name: Spread(mean[i], squares[i] / count) for i, name in enumerate(names)}


def response(robot: Robot, solver: Solver, samples: int, seed: int) -> Spread:
    """How a solver with one iteration per step responds to a small error along each axis."""
    matrices = np.empty((samples, 6, 6))
    for sample, q in enumerate(configurations(robot, samples, seed)):
        here = tool_path(robot, q[None])[0]
        for axis, shift in enumerate(_SMALL * np.eye(6)):
            target = np.concatenate(
                [here[:3] + shift[:3], pose.multiply(pose.quaternions(shift[3:]), here[3:])]
            )
            moved = tool_path(robot, solver.track(target[None], q))[0]
            matrices[sample, :, axis] = np.concatenate(pose.error(moved, here)) / _SMALL
    matrices /= np.trace(matrices.mean(axis=0)) / 6.0
    return Spread(matrices.mean(axis=0), matrices.var(axis=0))


def alpha(spreads: Mapping[str, Spread]) -> float:
    """mean diag(J H^-1 J^T) / mean diag(J J^T) (equation 19): the gain that makes the transpose comparable."""
    return float(spreads[CONDITIONED].diagonal.mean() / spreads[TRANSPOSE].diagonal.mean())


def figures(spreads: Mapping[str, Spread]) -> dict[str, float]:
    """Diagonal means, largest variances, and alpha."""
    found: dict[str, float] = {}
    for name, spread in spreads.items():
        found |= {
            f"{name}, mean {axis}": float(v) for axis, v in zip(AXES, spread.diagonal, strict=True)
        }
        found[f"{name}, largest variance"] = float(spread.variance.max())
    return found | {"alpha": alpha(spreads)}


def run(parameters: HomogenizationParameters) -> Outcome:
    """The command."""
    arm = choose_arm(parameters)
    robot, samples = arm.robot, parameters.samples
    solvers = {
        name: make_solver(robot, name, iterations=1) for name in dict.fromkeys(parameters.solver)
    }
    measured = measure(robot, samples, parameters.seed)
    spreads = {name: measured[name] for name in (TRANSPOSE, NAIVE, CONDITIONED)}
    for name, solver in solvers.items():
        spreads[name] = response(robot, solver, min(samples, _MAX_FOR_SOLVERS), parameters.seed)
    found = figures(spreads)
    rows = [
        (name, *(f"{v:.3f}" for v in spread.diagonal), number(float(spread.variance.max())))
        for name, spread in spreads.items()
    ]
    paper_arm, enough = is_paper_arm(robot), samples >= SAMPLES
    notes = [f"alpha = {found['alpha']:.4f} over these joint positions"]
    if paper_arm and enough:
        notes[0] += (
            f"; the paper prints {PAPER_ALPHA}, which no frame convention we tried reproduces."
        )
    elif paper_arm:
        notes.append(
            f"Figures are known for {SAMPLES} joint positions; fewer are not compared with them."
        )
    return Outcome(
        figures=found,
        expected=EXPECTED if paper_arm and enough else (),
        data={
            "arm": arm.as_data(),
            "alpha": found["alpha"],
            "matrices": {
                name: {key: getattr(spread, key).tolist() for key in ("mean", "variance", "std")}
                for name, spread in spreads.items()
            },
        },
        tables=[
            Table(
                f"Mean diagonal over {samples} joint positions",
                ("matrix", *AXES, "largest var."),
                rows,
            )
        ],
        plots={"homogenization.png": _plot(spreads)},
        notes=[*notes, *(arm.notes if solvers else ())],
    )


def _plot(spreads: Mapping[str, Spread]) -> Plot:
    """A column per matrix; mean, variance and standard deviation below each other, each on one scale."""

    def draw(figure: Figure) -> None:
        panels = figure.subplots(3, len(spreads), squeeze=False)
        for row, key in enumerate(("mean", "variance", "std")):
            shown = [getattr(spread, key) for spread in spreads.values()]
            top = max(float(matrix.max()) for matrix in shown)
            for axes, name, matrix in zip(panels[row], spreads, shown, strict=True):
                axes.imshow(matrix, cmap="Blues", vmin=0.0, vmax=1.15 * top)
                for (i, j), value in np.ndenumerate(matrix):
                    shade = "white" if value > 0.6 * top else INK
                    # Rounded first, so that there is no minus zero.
                    text = f"{round(value, 2) + 0.0:.2f}"
                    axes.text(j, i, text, ha="center", va="center", fontsize=7.5, color=shade)
                axes.set_xticks(range(6), AXES)
                axes.set_yticks(range(6), AXES)
                axes.grid(False)
                axes.set_title(_LETTERS.get(name, name) if row == 0 else "")
            panels[row][0].set_ylabel(
                {"mean": "Mean", "variance": "Variance", "std": "Standard deviation"}[key]
            )

    return Plot(2.9 * len(spreads), 8.2, draw)
