"""Draw docs/feedforward.png: square_tracking on a simulated ur10e, without and with feedforward.

python tools/draw_feedforward.py [FILE]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import simbridge
from simbridge.evaluation.evaluation import Evaluation

COLOURS = {"reference": "0.6", "servoj": "tab:red", "servoj with feedforward": "tab:blue"}


def main() -> None:
    """Make both runs, and draw the path, one corner of it, and the errors."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/feedforward.png")
    with tempfile.TemporaryDirectory() as directory:
        runs = {
            "servoj": run_square("off", Path(directory)),
            "servoj with feedforward": run_square("on", Path(directory)),
        }

    # The square lies in a plane: its two directions of largest extent.
    reference = runs["servoj"].reference
    across, up = np.sort(np.argsort(np.ptp(reference[:, :3], axis=0))[1:])

    figure, (whole, corner, errors) = plt.subplots(
        1, 3, figsize=(12.5, 4.2), width_ratios=(1, 1, 1.3)
    )
    draw_paths(whole, runs, (across, up), width=2.5)
    whole.set_ylabel(f"{'xyz'[up]}, mm")
    whole.set_title("the path")
    whole.legend(loc="center", frameon=False)

    draw_paths(corner, runs, (across, up), width=1.5)
    turn = reference[np.argmax(reference[:, across] + reference[:, up])]
    corner.set_title("one corner, 4 mm wide")
    corner.set_xlim(1e3 * turn[across] - 3.2, 1e3 * turn[across] + 0.8)
    corner.set_ylim(1e3 * turn[up] - 3.2, 1e3 * turn[up] + 0.8)

    draw_errors(errors, runs)
    for axes in (whole, corner, errors):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("square_tracking on a simulated ur10e: servoj at gain 2000, lookahead 0.03 s")
    figure.tight_layout()
    figure.savefig(target, dpi=110)


def run_square(feedforward: str, directory: Path) -> Evaluation:
    """Run the square with feedforward on or off."""
    options = simbridge.Options(feedforward=feedforward)
    out = directory / feedforward
    run = simbridge.run("square_tracking", robot="ur10e", options=options, out=out)
    return Evaluation.read(run.directory)


def draw_paths(
    axes: Axes, runs: Mapping[str, Evaluation], plane: tuple[int, int], width: float
) -> None:
    """Draw the reference and the attained paths.

    Args:
        axes: To draw into.
        runs: By name.
        plane: The two coordinates that are drawn.
        width: Of the lines of attained paths, points.
    """
    across, up = plane
    paths: dict[str, NDArray[np.float64]] = {"reference": runs["servoj"].reference}
    for name, run in runs.items():
        paths[name] = run.attained

    for name, path in paths.items():
        axes.plot(
            1e3 * path[:, across],
            1e3 * path[:, up],
            color=COLOURS[name],
            linewidth=3.0 if name == "reference" else width,
            label=name,
        )
    axes.set_aspect("equal")
    axes.set_xlabel(f"{'xyz'[across]} of base_link, mm")


def draw_errors(axes: Axes, runs: Mapping[str, Evaluation]) -> None:
    """Draw the distance of each run from the reference over time."""
    for name, run in runs.items():
        distance = 1e3 * np.linalg.norm(run.attained[:, :3] - run.reference[:, :3], axis=1)
        rms = np.sqrt(np.mean(distance**2))
        label = f"{name}: {rms:.3g} mm RMS"
        axes.semilogy(run.log.stamp, distance, color=COLOURS[name], linewidth=1.0, label=label)
    axes.set_title("distance from the reference, mm")
    axes.set_xlabel("time, s")
    axes.set_ylim(1e-5, 1e2)
    axes.legend(loc="upper right", frameon=False)


if __name__ == "__main__":
    main()
