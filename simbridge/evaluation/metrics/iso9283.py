"""Figures in the style of ISO 9283:1998, from n cycles of one motion.

"Style", because the standard asks for an external measurement, 30 or 10 cycles, five poses, rated load and warm-up.
Each `Figure` has the number of its cycles and the number that the standard asks for; only the caller knows whether
positions are self-reported or measured externally. Means are over cycles; standard deviations S divide by n - 1.
Formulas after secondary sources. ISO's figures do not remove a delay: use `plane_crossings` to compare paths, which
compares places and not instants.

All raise `UnusableSamples` where there is no cycle, or one is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import InvalidParameter, UnusableSamples
from simbridge.evaluation.metrics.samples import column, rows, stamps
from simbridge.robot.pose import Array

# Largest time between a crossing of a plane and its expected instant, s.
WINDOW = 0.5


class Figure(TypedDict):
    """One figure, as summary.json holds it, in SI units (percent for AV and RV)."""

    symbol: str  # as in the standard: "AP", "RT", ...
    value: float | None  # None if it cannot be determined, as a deviation of a single cycle
    unit: str  # "m", "m/s", "s" or "%"
    cycles: int  # number of cycles it is computed from
    asked: int  # number of cycles that the standard asks for
    stop: (
        int | None
    )  # for a figure of a pose the number of its stop, from 1; None for a figure of the path


def figure(symbol: str, value: float | None, unit: str, cycles: int, asked: int) -> Figure:
    """A figure of the path, or of a pose whose stop is still to be named, from its parts."""
    return {
        "symbol": symbol,
        "value": value,
        "unit": unit,
        "cycles": cycles,
        "asked": asked,
        "stop": None,
    }


def pose_figures(commanded: ArrayLike, attained: ArrayLike) -> tuple[Figure, Figure]:
    """AP and RP of one pose, from the commanded position (3,) and those of n cycles (n, 3), m.

    AP = |mean - commanded|; RP = mean(l) + 3 S_l with l_j = |x_j - mean|.
    """
    x = rows("attained positions", attained, 3)
    wanted = rows("commanded position", np.atleast_2d(np.asarray(commanded, dtype=float)), 3, 1)[0]
    _some(len(x))
    accuracy = float(np.linalg.norm(x.mean(axis=0) - wanted))
    return figure("AP", accuracy, "m", len(x), 30), figure(
        "RP", _repeatability(x[:, None])[0], "m", len(x), 30
    )


def path_figures(commanded: ArrayLike, attained: ArrayLike) -> tuple[Figure, Figure]:
    """AT and RT: the largest, over the points of a path, of |mean - command| and of mean(l) + 3 S_l.

    `attained` are the crossings (n, m, 3) of each cycle with the planes normal to the path at its commanded points
    (m, 3), m: see `plane_crossings`. Points at which a cycle has no crossing (NaN) are left out.

    Raises:
        UnusableSamples: No plane is crossed by all cycles.
    """
    points = rows("commanded points", commanded, 3)
    x = np.asarray(attained, dtype=float)
    if x.ndim != 3 or x.shape[1:] != points.shape:
        raise UnusableSamples(
            "attained paths", f"their shape is {x.shape}, but (n, {len(points)}, 3) is needed."
        )
    _some(len(x))
    through = np.isfinite(x).all(axis=(0, 2))
    if not through.any():
        raise UnusableSamples("attained paths", "no plane of the path is crossed by every cycle.")
    x, points = x[:, through], points[through]
    accuracy = float(np.linalg.norm(x.mean(axis=0) - points, axis=1).max())
    spread = [value for value in _repeatability(x) if value is not None]
    return (
        figure("AT", accuracy, "m", len(x), 10),
        figure("RT", max(spread) if spread else None, "m", len(x), 10),
    )


def plane_crossings(
    points: ArrayLike,
    directions: ArrayLike,
    expected: ArrayLike,
    times: ArrayLike,
    attained: ArrayLike,
) -> Array:
    """Forward crossings (m, 3) of a path with planes, in m; NaN where there is none.

    Args:
        points: A point (m, 3) in each plane, m.
        directions: Normals (m, 3) of the planes: the directions of the commanded path.
        expected: Instants (m,) at which the crossings are due, s. Of several crossings the nearest in time counts,
            within WINDOW.
        times: Strictly increasing stamps (T,) of the same clock, s.
        attained: Positions (T, 3), straight in between, m.
    """
    p = rows("points", points, 3)
    u = rows("directions", directions, 3, len(p))
    due = column("expected instants", expected, len(p))
    t = stamps("times", times)
    x = rows("attained positions", attained, 3, len(t))
    found = np.full((len(p), 3), np.nan)
    first, last = np.searchsorted(t, due - WINDOW), np.searchsorted(t, due + WINDOW, side="right")
    for i, (low, high) in enumerate(zip(first, last, strict=True)):
        height = (x[low:high] - p[i]) @ u[i]
        before = np.flatnonzero((height[:-1] <= 0.0) & (height[1:] > 0.0))
        if len(before) == 0:
            continue
        part = height[before] / (height[before] - height[before + 1])
        at = t[low + before] + part * (t[low + before + 1] - t[low + before])
        best = int(np.argmin(np.abs(at - due[i])))
        k = low + before[best]
        found[i] = x[k] + part[best] * (x[k + 1] - x[k])
    return found


def velocity_figures(
    commanded: float, speeds: Sequence[ArrayLike]
) -> tuple[Figure, Figure, Figure]:
    """AV = (mean v - v_c)/v_c and RV = 3 S_v/v_c in percent, S_v between cycles; FV = max over cycles of max - min.

    v_c is the commanded speed, m/s; `speeds` are those (T_j,) of each cycle where that is commanded.

    Raises:
        InvalidParameter: The commanded speed is not positive.
    """
    if not commanded > 0.0:
        raise InvalidParameter("commanded speed", f"{commanded} m/s", "positive")
    cycles = [column("speeds", v) for v in speeds]
    _some(min((len(v) for v in cycles), default=0))
    means = np.array([v.mean() for v in cycles])
    n = len(cycles)
    deviation = 300.0 * float(means.std(ddof=1)) / commanded if n > 1 else None
    return (
        figure("AV", 100.0 * (float(means.mean()) - commanded) / commanded, "%", n, 10),
        figure("RV", deviation, "%", n, 10),
        figure("FV", max(float(np.ptp(v)) for v in cycles), "m/s", n, 10),
    )


def stabilisation_figures(
    cycles: Sequence[tuple[ArrayLike, ArrayLike]], band: float, attained: ArrayLike | None = None
) -> tuple[Figure, Figure]:
    """Stabilisation time and overshoot OV at a pose.

    The stabilisation time lasts from the first to the last entry into the limit band (0 if it is not left again); mean
    over cycles. The overshoot is the largest distance after the first entry, 0 if the band is not left again.

    Args:
        cycles: Stamps (T_j,) in s and positions (T_j, 3) in m of each cycle, from the approach until at rest.
        band: Radius of the limit band, m.
        attained: Positions (n, 3) at which the cycles come to rest, m; the last position of each by default.

    Raises:
        UnusableSamples: One ends outside the limit band.
        InvalidParameter: The band is not positive.
    """
    if not band > 0.0:
        raise InvalidParameter("limit band", f"{band} m", "positive")
    _some(len(cycles))
    given = None if attained is None else rows("attained poses", attained, 3, len(cycles))
    lasted, beyond = [], []
    for number, (times, positions) in enumerate(cycles):
        t = stamps("times", times)
        x = rows("attained positions", positions, 3, len(t))
        distance = np.linalg.norm(x - (x[-1] if given is None else given[number]), axis=1)
        outside = distance > band
        if outside[-1]:
            raise UnusableSamples(
                "cycles",
                f"cycle {number + 1} ends {distance[-1] * 1e3:.3g} mm from its pose, outside the limit band.",
            )
        entry = int(np.argmin(outside))
        left = np.flatnonzero(outside[entry:])
        if len(left) == 0:
            lasted.append(0.0)
            beyond.append(0.0)
            continue
        # Inside from the start: from the first stamp on.
        begin = _entered(t, distance, entry - 1, band) if entry else float(t[0])
        lasted.append(_entered(t, distance, entry + left[-1], band) - begin)
        beyond.append(float(distance[entry:].max()))
    return (
        figure("stabilisation time", float(np.mean(lasted)), "s", len(cycles), 3),
        figure("OV", max(beyond), "m", len(cycles), 3),
    )


def corner_figures(
    corner: ArrayLike, arriving: ArrayLike, leaving: ArrayLike, cycles: Sequence[ArrayLike]
) -> tuple[Figure, Figure]:
    """Round-off CR and overshoot CO of a corner (3,), m, between two legs with directions (3,): means over cycles.

    CR is the smallest distance from the corner to the attained path; CO is the largest deviation from the second leg on
    the far side, in the direction of the first leg (0 without one). The positions (T_j, 3) of each cycle, m, are around
    this corner only, in order, straight in between.
    """
    c = np.asarray(corner, dtype=float)
    first, second = (np.asarray(d, dtype=float) / np.linalg.norm(d) for d in (arriving, leaving))
    _some(len(cycles))
    rounded, beyond = [], []
    for positions in cycles:
        x = rows("attained positions", positions, 3) - c
        _some(len(x))
        steps = np.diff(x, axis=0)
        squares = np.maximum((steps**2).sum(axis=1), 1e-300)
        part = np.clip(-(x[:-1] * steps).sum(axis=1) / squares, 0.0, 1.0)
        nearest = np.concatenate([x[:1], x[:-1] + part[:, None] * steps])
        rounded.append(float(np.linalg.norm(nearest, axis=1).min()))
        deviation = x - (x @ second)[:, None] * second
        past = deviation[deviation @ first > 0.0]
        beyond.append(float(np.linalg.norm(past, axis=1).max()) if len(past) else 0.0)
    return (
        figure("CR", float(np.mean(rounded)), "m", len(cycles), 3),
        figure("CO", float(np.mean(beyond)), "m", len(cycles), 3),
    )


def _repeatability(x: Array) -> list[float | None]:
    """mean(l) + 3 S_l at each of m points, of positions (n, m, 3); None for a single cycle."""
    if len(x) < 2:
        return [None] * x.shape[1]
    off = np.linalg.norm(x - x.mean(axis=0), axis=2)
    return [float(value) for value in off.mean(axis=0) + 3.0 * off.std(axis=0, ddof=1)]


def _entered(t: Array, distance: Array, k: int, band: float) -> float:
    """The interpolated instant after sample k, which is outside, at which the distance falls to the band."""
    part = (distance[k] - band) / (distance[k] - distance[k + 1])
    return float(t[k] + part * (t[k + 1] - t[k]))


def _some(count: int) -> None:
    if count == 0:
        raise UnusableSamples("cycles", "there are none, or one is empty. Evaluate at least one.")
