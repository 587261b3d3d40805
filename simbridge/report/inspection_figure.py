"""A picture of a trajectory: from above, from the side or the front, and its speed over time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from simbridge.errors import OutputError
from simbridge.report.palette import ATTAINED, GRID, SETPOINT
from simbridge.robot.files import write_file
from simbridge.trajectory.trajectory import Trajectory

FORMATS = (".png", ".svg", ".pdf")
# More points than a picture of this width can show.
_MAX_POINTS = 20_000


def draw(path: str | Path, trajectory: Trajectory, attained: NDArray[np.bool_] | None, title: str) -> None:
    """Write a picture in the format of its suffix.

    Args:
        path: The file, .png, .svg or .pdf; an existing one is replaced.
        trajectory: In base_link.
        attained: Which samples (T,) the arm can attain; None when unknown.
        title: The heading.

    Raises:
        OutputError: It cannot be written, or has another suffix.
    """
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise OutputError(path, f"a picture ends in {', '.join(FORMATS)}")
    figure = Figure(figsize=(9.0, 7.0), layout="tight")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=11)
    above, side, speed = (figure.add_subplot(*at) for at in ((2, 2, 1), (2, 2, 2), (2, 1, 2)))
    shown = np.unique(np.linspace(0, len(trajectory.times) - 1, _MAX_POINTS).astype(int))
    points = trajectory.poses[shown, :3]
    missed = np.zeros(len(shown), dtype=bool) if attained is None else ~attained[shown]
    # From the side, which looks along y, a motion along y alone would be a point.
    extent = np.ptp(points[:, :2], axis=0)
    wide = int(extent[1] > 2.0 * extent[0])
    seen = "from the side" if wide == 0 else "from the front"
    for axes, (across, up), name in ((above, (0, 1), "from above"), (side, (wide, 2), seen)):
        axes.plot(points[:, across], points[:, up], color=SETPOINT, linewidth=1.2)
        axes.plot(*points[0, [across, up]], "o", color=SETPOINT, markersize=6, label="start", zorder=3)
        if missed.any():
            axes.plot(*points[missed][:, [across, up]].T, ".", color=ATTAINED, markersize=5, label="out of reach")
        axes.set(title=name, xlabel=f"{'xy'[across]} (m)", ylabel=f"{'xyz'[up]} (m)")
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.1)
        axes.legend(fontsize=8, frameon=False)
    steps = np.diff(trajectory.elapsed)
    if len(steps):
        speeds = np.linalg.norm(np.diff(trajectory.poses[:, :3], axis=0), axis=1) / steps
        chosen = np.unique(np.linspace(0, len(steps) - 1, _MAX_POINTS).astype(int))
        speed.step(trajectory.elapsed[chosen], speeds[chosen], where="post", color=SETPOINT, linewidth=1.0)
        speed.set_ylim(0.0, 1.1 * max(float(speeds.max()), 1e-3))
    speed.set(xlabel="time (s)", ylabel="speed (m/s)")

    for axes in (above, side, speed):
        _style(axes)
    figure.savefig(buffer := io.BytesIO(), format=file.suffix[1:].lower(), dpi=150)
    write_file(path, buffer.getvalue())


def _style(axes: Any) -> None:
    axes.grid(color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
