"""Draw docs/feedforward.png: square_tracking on a simulated ur10e, without and with feedforward.

python tools/draw_feedforward.py [FILE]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import simbridge
from simbridge.evaluation.evaluation import Evaluation

COLOURS = {"reference": "0.6", "servoj": "tab:red", "servoj with feedforward": "tab:blue"}


def measured(feedforward: str, directory: Path) -> Evaluation:
    options = simbridge.Options(feedforward=feedforward)
    run = simbridge.run(
        "square_tracking", robot="ur10e", options=options, out=directory / feedforward
    )
    return Evaluation.read(run.directory)


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/feedforward.png")
    with tempfile.TemporaryDirectory() as directory:
        runs = {
            "servoj": measured("off", Path(directory)),
            "servoj with feedforward": measured("on", Path(directory)),
        }
    reference = runs["servoj"].reference
    # The square lies in a plane: its two directions of largest extent.
    across, up = np.sort(np.argsort(np.ptp(reference[:, :3], axis=0))[1:])

    figure, (whole, corner, errors) = plt.subplots(
        1, 3, figsize=(12.5, 4.2), width_ratios=(1, 1, 1.3)
    )
    turn = reference[np.argmax(reference[:, across] + reference[:, up])]
    for axes, width in ((whole, 2.5), (corner, 1.5)):
        paths = {"reference": reference, **{name: run.attained for name, run in runs.items()}}
        for name, path in paths.items():
            thick = 3.0 if name == "reference" else width
            axes.plot(
                1e3 * path[:, across],
                1e3 * path[:, up],
                color=COLOURS[name],
                linewidth=thick,
                label=name,
            )
        axes.set_aspect("equal")
        axes.set_xlabel(f"{'xyz'[across]} of base_link, mm")
    whole.set_ylabel(f"{'xyz'[up]}, mm")
    whole.set_title("the path")
    corner.set_title("one corner, 4 mm wide")
    corner.set_xlim(1e3 * turn[across] - 3.2, 1e3 * turn[across] + 0.8)
    corner.set_ylim(1e3 * turn[up] - 3.2, 1e3 * turn[up] + 0.8)
    for name, run in runs.items():
        distance = 1e3 * np.linalg.norm(run.attained[:, :3] - run.reference[:, :3], axis=1)
        rms = np.sqrt(np.mean(distance**2))
        errors.semilogy(
            run.log.stamp,
            distance,
            color=COLOURS[name],
            linewidth=1.0,
            label=f"{name}: {rms:.3g} mm RMS",
        )
    errors.set_title("distance from the reference, mm")
    errors.set_xlabel("time, s")
    errors.set_ylim(1e-5, 1e2)
    for axes in (whole, corner, errors):
        axes.spines[["top", "right"]].set_visible(False)
    whole.legend(loc="center", frameon=False)
    errors.legend(loc="upper right", frameon=False)
    figure.suptitle("square_tracking on a simulated ur10e: servoj at gain 2000, lookahead 0.03 s")
    figure.tight_layout()
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    main()
