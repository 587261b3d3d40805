"""Figures in the style of ISO 9283:1998, from n cycles of one motion.

"Style", because the standard asks for an external measurement, 30 or 10 cycles, five poses, rated
load and warm-up. Each `Figure` has the number of its cycles and the number that the standard asks
for; only the caller knows whether positions are self-reported or measured externally. Means are
over cycles; standard deviations S divide by n - 1. Formulas after secondary sources. ISO's figures
do not remove a delay: use `plane_crossings` to compare paths, which compares places and not
instants.

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

# Numbers of cycles that the standard asks for.
POSE_CYCLES = 30
PATH_CYCLES = 10
SETTLING_CYCLES = 3
CORNER_CYCLES = 3

# A squared length, m^2, in place of that of a step of no length.
SMALLEST_SQUARE = 1e-300


class Figure(TypedDict):
    """One figure, as summary.json holds it, in SI units (percent for AV and RV).

    Attributes:
        symbol: Symbol of the standard: "AP", "RT", ...
        value: None if it cannot be determined, as a deviation of a single cycle.
        unit: "m", "m/s", "s" or "%".
        cycles: Number of cycles it is computed from.
        asked: Number of cycles that the standard asks for.
        stop: Number of the stop, from 1, for a figure of a pose; None for a figure of the path.
    """

    symbol: str
    value: float | None
    unit: str
    cycles: int
    asked: int
    stop: int | None


def figure(symbol: str, value: float | None, unit: str, *, cycles: int, asked: int) -> Figure:
    """Return a figure of the path, or of a pose whose stop is still to be named."""
    return {
        "symbol": symbol,
        "value": value,
        "unit": unit,
        "cycles": cycles,
        "asked": asked,
        "stop": None,
    }


def pose_figures(commanded: ArrayLike, attained: ArrayLike) -> tuple[Figure, Figure]:
    """Return accuracy AP and repeatability RP of one pose.

    AP = |mean - commanded|; RP = mean(l) + 3 S_l with l_j = |x_j - mean|.

    Args:
        commanded: Position (3,), m.
        attained: Positions of n cycles (n, 3), m.
    """
    x = rows("attained positions", attained, 3)
    commanded_row = np.atleast_2d(np.asarray(commanded, dtype=float))
    commanded_position = rows("commanded position", commanded_row, 3, 1)[0]
    _require_samples(len(x))

    accuracy = float(np.linalg.norm(x.mean(axis=0) - commanded_position))
    repeatability = _repeatability(x[:, None])[0]
    return (
        figure("AP", accuracy, "m", cycles=len(x), asked=POSE_CYCLES),
        figure("RP", repeatability, "m", cycles=len(x), asked=POSE_CYCLES),
    )


def path_figures(commanded: ArrayLike, attained: ArrayLike) -> tuple[Figure, Figure]:
    """Return accuracy AT and repeatability RT of a path.

    They are the largest, over the points of the path, of |mean - command| and of mean(l) + 3 S_l.

    Args:
        commanded: Points of the path (m, 3), m.
        attained: Crossings (n, m, 3) of each cycle with the planes normal to the path at these
            points, m: see `plane_crossings`. Points at which a cycle has no crossing (NaN) are left
            out.

    Raises:
        UnusableSamples: No plane is crossed by all cycles.
    """
    points = rows("commanded points", commanded, 3)
    x = np.asarray(attained, dtype=float)
    if x.ndim != 3 or x.shape[1:] != points.shape:
        raise UnusableSamples(
            "attained paths", f"their shape is {x.shape}, but (n, {len(points)}, 3) is needed."
        )
    _require_samples(len(x))

    # Keep the planes that every cycle crosses.
    is_crossed = np.isfinite(x).all(axis=(0, 2))
    if not is_crossed.any():
        raise UnusableSamples("attained paths", "no plane of the path is crossed by every cycle.")
    x = x[:, is_crossed]
    points = points[is_crossed]

    accuracy = float(np.linalg.norm(x.mean(axis=0) - points, axis=1).max())
    # A single cycle has no repeatability.
    spreads = [value for value in _repeatability(x) if value is not None]
    repeatability = max(spreads) if spreads else None
    return (
        figure("AT", accuracy, "m", cycles=len(x), asked=PATH_CYCLES),
        figure("RT", repeatability, "m", cycles=len(x), asked=PATH_CYCLES),
    )


def plane_crossings(
    points: ArrayLike,
    directions: ArrayLike,
    expected: ArrayLike,
    *,
    times: ArrayLike,
    attained: ArrayLike,
) -> Array:
    """Return the forward crossings (m, 3) of a path with planes, in m; NaN where there is none.

    Args:
        points: A point (m, 3) in each plane, m.
        directions: Normals (m, 3) of the planes: the directions of the commanded path.
        expected: Instants (m,) at which the crossings are due, s. Of several crossings the nearest
            in time counts, within WINDOW.
        times: Strictly increasing stamps (T,) of the same clock, s.
        attained: Positions (T, 3), straight in between, m.
    """
    p = rows("points", points, 3)
    u = rows("directions", directions, 3, len(p))
    due = column("expected instants", expected, len(p))
    t = stamps("times", times)
    x = rows("attained positions", attained, 3, len(t))

    # The samples within the window of each plane.
    starts = np.searchsorted(t, due - WINDOW)
    ends = np.searchsorted(t, due + WINDOW, side="right")

    crossings = np.full((len(p), 3), np.nan)
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        # The sample before each crossing: its height over the plane is negative, the next positive.
        height = (x[start:end] - p[i]) @ u[i]
        before = np.flatnonzero((height[:-1] <= 0.0) & (height[1:] > 0.0))
        if len(before) == 0:
            continue

        # The crossing nearest in time.
        fraction = height[before] / (height[before] - height[before + 1])
        instants = t[start + before] + fraction * (t[start + before + 1] - t[start + before])
        nearest = int(np.argmin(np.abs(instants - due[i])))
        k = start + before[nearest]
        crossings[i] = x[k] + fraction[nearest] * (x[k + 1] - x[k])
    return crossings


def velocity_figures(
    commanded: float, speeds: Sequence[ArrayLike]
) -> tuple[Figure, Figure, Figure]:
    """Return accuracy AV, repeatability RV and fluctuation FV of the velocity.

    AV = (mean v - v_c)/v_c and RV = 3 S_v/v_c in percent, S_v between cycles; FV = max over cycles
    of max - min.

    Args:
        commanded: The commanded speed v_c, m/s.
        speeds: Attained speeds (T_j,) of each cycle j, where that speed is commanded, m/s.

    Raises:
        InvalidParameter: The commanded speed is not positive.
    """
    if not commanded > 0.0:
        raise InvalidParameter("commanded speed", f"{commanded} m/s", "positive")
    cycles = [column("speeds", values) for values in speeds]
    _require_samples(min((len(values) for values in cycles), default=0))

    count = len(cycles)
    means = np.array([values.mean() for values in cycles])
    accuracy = 100.0 * (float(means.mean()) - commanded) / commanded
    deviation = None
    if count > 1:
        # RV is three standard deviations, in percent.
        deviation = 100.0 * 3.0 * float(means.std(ddof=1)) / commanded
    fluctuation = max(float(np.ptp(values)) for values in cycles)
    return (
        figure("AV", accuracy, "%", cycles=count, asked=PATH_CYCLES),
        figure("RV", deviation, "%", cycles=count, asked=PATH_CYCLES),
        figure("FV", fluctuation, "m/s", cycles=count, asked=PATH_CYCLES),
    )


def stabilisation_figures(
    cycles: Sequence[tuple[ArrayLike, ArrayLike]], band: float, attained: ArrayLike | None = None
) -> tuple[Figure, Figure]:
    """Return stabilisation time and overshoot OV at a pose.

    The stabilisation time lasts from the first to the last entry into the limit band (0 if it is
    not left again); mean over cycles. The overshoot is the largest distance after the first entry,
    0 if the band is not left again.

    Args:
        cycles: Stamps (T_j,) in s and positions (T_j, 3) in m of each cycle, from the approach
            until at rest.
        band: Radius of the limit band, m.
        attained: Positions (n, 3) at which the cycles come to rest, m; the last position of each by
            default.

    Raises:
        UnusableSamples: One ends outside the limit band.
        InvalidParameter: The band is not positive.
    """
    if not band > 0.0:
        raise InvalidParameter("limit band", f"{band} m", "positive")
    _require_samples(len(cycles))
    rest_positions = None
    if attained is not None:
        rest_positions = rows("attained poses", attained, 3, len(cycles))

    durations = []
    overshoots = []
    for number, (times, positions) in enumerate(cycles):
        t = stamps("times", times)
        x = rows("attained positions", positions, 3, len(t))
        rest_position = x[-1] if rest_positions is None else rest_positions[number]
        distance = np.linalg.norm(x - rest_position, axis=1)
        is_outside = distance > band
        if is_outside[-1]:
            raise UnusableSamples(
                "cycles",
                f"cycle {number + 1} ends {distance[-1] * 1e3:.3g} mm from its pose, outside the "
                "limit band.",
            )

        # The first sample inside the band, and the samples outside after it.
        entry = int(np.argmin(is_outside))
        outside_again = np.flatnonzero(is_outside[entry:])
        if len(outside_again) == 0:
            durations.append(0.0)
            overshoots.append(0.0)
            continue

        # A cycle that begins inside the band has entered it at its first stamp.
        begin = float(t[0]) if entry == 0 else _band_entry(t, distance, entry - 1, band=band)
        last_entry = _band_entry(t, distance, entry + outside_again[-1], band=band)
        durations.append(last_entry - begin)
        overshoots.append(float(distance[entry:].max()))

    duration = float(np.mean(durations))
    return (
        figure("stabilisation time", duration, "s", cycles=len(cycles), asked=SETTLING_CYCLES),
        figure("OV", max(overshoots), "m", cycles=len(cycles), asked=SETTLING_CYCLES),
    )


def corner_figures(
    corner: ArrayLike, arriving: ArrayLike, leaving: ArrayLike, cycles: Sequence[ArrayLike]
) -> tuple[Figure, Figure]:
    """Return round-off CR and overshoot CO of a corner between two legs: means over cycles.

    CR is the smallest distance from the corner to the attained path; CO is the largest deviation
    from the second leg on the far side, in the direction of the first leg (0 without one).

    Args:
        corner: Position (3,), m.
        arriving: Direction (3,) of the leg before.
        leaving: Direction (3,) of the leg after.
        cycles: Positions (T_j, 3) of each cycle, m, around this corner only, in order, straight in
            between.
    """
    corner_position = np.asarray(corner, dtype=float)
    first = np.asarray(arriving, dtype=float) / np.linalg.norm(arriving)
    second = np.asarray(leaving, dtype=float) / np.linalg.norm(leaving)
    _require_samples(len(cycles))

    round_offs = []
    overshoots = []
    for positions in cycles:
        x = rows("attained positions", positions, 3) - corner_position
        _require_samples(len(x))

        # The point of each step of the path that is nearest to the corner.
        steps = np.diff(x, axis=0)
        squares = np.maximum((steps**2).sum(axis=1), SMALLEST_SQUARE)
        fractions = np.clip(-(x[:-1] * steps).sum(axis=1) / squares, 0.0, 1.0)
        nearest = np.concatenate([x[:1], x[:-1] + fractions[:, None] * steps])
        round_offs.append(float(np.linalg.norm(nearest, axis=1).min()))

        # The deviations from the second leg that continue the first.
        deviations = x - (x @ second)[:, None] * second
        beyond = deviations[deviations @ first > 0.0]
        overshoot = float(np.linalg.norm(beyond, axis=1).max()) if len(beyond) else 0.0
        overshoots.append(overshoot)

    return (
        figure("CR", float(np.mean(round_offs)), "m", cycles=len(cycles), asked=CORNER_CYCLES),
        figure("CO", float(np.mean(overshoots)), "m", cycles=len(cycles), asked=CORNER_CYCLES),
    )


def _repeatability(x: Array) -> list[float | None]:
    """Return mean(l) + 3 S_l at each of m points; None for a single cycle.

    Args:
        x: Positions (n, m, 3) of n cycles, m.
    """
    if len(x) < 2:
        return [None] * x.shape[1]
    distances = np.linalg.norm(x - x.mean(axis=0), axis=2)
    values = distances.mean(axis=0) + 3.0 * distances.std(axis=0, ddof=1)
    return [float(value) for value in values]


def _band_entry(t: Array, distance: Array, k: int, *, band: float) -> float:
    """Return the interpolated instant, s, at which the distance falls to the limit band.

    Args:
        t: Stamps (T,), s.
        distance: Distance from the pose (T,), m.
        k: The last sample outside.
        band: Radius of the limit band, m.
    """
    fraction = (distance[k] - band) / (distance[k] - distance[k + 1])
    return float(t[k] + fraction * (t[k + 1] - t[k]))


def _require_samples(count: int) -> None:
    """Refuse no cycles, or a cycle without samples."""
    if count == 0:
        raise UnusableSamples("cycles", "there are none, or one is empty. Evaluate at least one.")
