"""Round-off CR and overshoot CO of the corners of a path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simbridge.evaluation.iso_cycle import Cycle, FigureSet, rest_mask
from simbridge.evaluation.metrics import iso9283
from simbridge.evaluation.metrics.path_features import Corner, find_corners
from simbridge.robot.pose import Array
from simbridge.text import counted
from simbridge.trajectory.trajectory import Trajectory


def corner_figures(
    path: Trajectory, cycles: Sequence[Cycle], rests: Sequence[tuple[float, float]]
) -> FigureSet:
    """Return CR and CO, each of the corner with the largest value.

    Corners are measured between the middles of their legs. A corner at which the target rests is a
    stop, and is not measured here.

    Args:
        path: The commanded trajectory.
        cycles: What the arm attained in each run.
        rests: Beginning and end of each rest of the target, s.
    """
    sharp_corners, ambiguous = find_corners(path.elapsed, path.poses[:, :3])
    passed_corners = [
        corner for corner in sharp_corners if not rest_mask(np.array([corner.time]), rests).any()
    ]

    # CR and CO of each corner that every cycle has sampled.
    figures = []
    for corner in passed_corners:
        sections = [_section(cycle, corner) for cycle in cycles]
        if all(len(positions) for positions in sections):
            figures.append(
                iso9283.corner_figures(
                    corner.position, corner.arriving, corner.leaving, cycles=sections
                )
            )

    omitted = _omitted_corners(len(passed_corners) - len(figures), ambiguous)
    if not figures:
        reason = f"only {omitted}" if omitted else "the path has no sharp corner without a stop"
        return FigureSet((), [f"No CR or CO: {reason}."])

    largest = []
    for same_symbol in zip(*figures, strict=True):
        largest.append(max(same_symbol, key=lambda figure: figure["value"] or 0.0))
    return FigureSet(largest, [f"CR and CO exclude {omitted}."] if omitted else [])


def _section(cycle: Cycle, corner: Corner) -> Array:
    """Return the positions (K, 3), m, that a cycle attained between the middles of the legs."""
    begin_and_end = cycle.attained_at(np.array([corner.begin, corner.end]))
    low, high = np.searchsorted(cycle.stamp, begin_and_end)
    return cycle.positions[low:high]


def _omitted_corners(unsampled: int, ambiguous: int) -> str:
    """Return which corners have no figures, as a noun phrase; "" if all have.

    Args:
        unsampled: Number of corners without a sample in some cycle.
        ambiguous: Number of sharp turns that may be no corners.
    """
    phrases = []
    if unsampled:
        phrases.append(f"{counted(unsampled, 'corner')} without a sample")
    if ambiguous:
        turns = counted(ambiguous, "sharp turn")
        phrases.append(f"{turns} next to others, as in a coarsely sampled arc or noise")
    return " and ".join(phrases)
