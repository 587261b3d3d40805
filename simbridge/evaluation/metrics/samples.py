"""Sampled data: validation, resampling at a uniform rate, smoothed derivatives, and errors of poses.

Every metric validates its arrays here, and raises `UnusableSamples` where they do not belong together or a value is not
finite: that would not crash the arithmetic, but turn every statistic into NaN or, worse, be broadcast into a plausible
one.

Derivatives are those of a parabola fitted to WINDOW seconds of samples, at its middle (A. Savitzky and M. J. E. Golay,
Smoothing and differentiation of data by simplified least squares procedures, 1964): differences of 500 Hz samples would
show mostly noise. The fit is exact for a polynomial of second degree. Of a vibration with w rad/s it leaves
1 - (w h)^2/10 of the first derivative, h being half the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from simbridge.errors import UnusableSamples
from simbridge.robot import pose
from simbridge.robot.pose import Array

# Length in s of the fitted parabola, 10 ms on either side, but at least five samples.
WINDOW = 0.02
# Pairs evaluated at once: an hour has millions, whose poses would take a gigabyte.
BLOCK = 50_000


def rows(name: str, values: ArrayLike, columns: int, count: int | None = None) -> Array:
    """The values, named so in messages, as finite rows (T, columns); T is `count` if it is given.

    Raises:
        UnusableSamples: For another shape or a number that is not finite.
    """
    array = np.asarray(values, dtype=float)
    expected = (len(array) if count is None and array.ndim > 0 else count, columns)
    if array.shape != expected:
        rule = f"({'T' if count is None else count}, {columns})"
        raise UnusableSamples(
            name, f"their shape is {array.shape}, and {rule} is needed: one row per stamp."
        )
    _all_finite(name, array)
    return array


def column(name: str, values: ArrayLike, count: int | None = None) -> Array:
    """The values as finite numbers (T,); the arguments and errors are those of `rows`."""
    return rows(name, np.asarray(values, dtype=float)[..., None], 1, count)[:, 0]


def interpolated(at: Array, times: Array, values: Array) -> Array:
    """Linear interpolation (K, n) at instants (K,) of values (T, n) at times (T,); constant outside of their range."""
    return np.column_stack([np.interp(at, times, each) for each in values.T])


def correlation(one: Array, other: Array) -> Array:
    """Sums over k of one[k] . other[k + lag] for sequences (n, c) and (m, c), by lag; negative lags count from the end.

    The circular correlation of the sequences, padded with zeros, is the linear one.
    """
    size = 1 << (len(one) + len(other)).bit_length()
    spectrum = np.conj(np.fft.rfft(one, size, axis=0)) * np.fft.rfft(other, size, axis=0)
    return np.asarray(np.fft.irfft(spectrum.sum(axis=1), size))


def known_rows(name: str, values: ArrayLike, columns: int, count: int) -> Array:
    """The finite ones of rows (count, columns): for sensors that do not report every sample."""
    array = np.asarray(values, dtype=float)
    finite = np.isfinite(array)
    if finite.all():
        return rows(name, array, columns, count)
    rows(name, np.where(finite, array, 0.0), columns, count)
    return np.asarray(array[finite.all(axis=1)])


def largest(columns: Array) -> list[float]:
    """The largest magnitude of each column (T,) of an array (T, n)."""
    return [float(value) for value in np.maximum(columns.max(axis=0), -columns.min(axis=0))]


def rms(values: Array) -> float:
    """The root mean square of all values."""
    return float(np.sqrt(np.mean(values**2)))


def stamps(name: str, values: ArrayLike) -> Array:
    """The values as finite, strictly increasing instants (T,) in s, at least one.

    Raises:
        UnusableSamples: If they are anything else.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or len(array) == 0:
        raise UnusableSamples(
            name, f"their shape is {array.shape}, and (T,) with at least one instant is needed."
        )
    _all_finite(name, array)
    late = np.flatnonzero(np.diff(array) <= 0.0)
    if len(late):
        k = int(late[0]) + 1
        raise UnusableSamples(
            name,
            f"sample {k} ({array[k]:g} s) is not later than sample {k - 1} ({array[k - 1]:g} s). "
            "Sort the samples and leave out repeated ones.",
            index=k,
        )
    return array


def resample_uniform(times: ArrayLike, values: ArrayLike) -> tuple[float, Array]:
    """The period in s, and the values (T, n) at T uniformly spaced instants; missing samples are interpolated.

    The period is the median one, so that T includes the samples that are missing.

    Raises:
        UnusableSamples: Fewer than two samples.
    """
    t = stamps("times", times)
    v = np.asarray(values, dtype=float)
    v = rows("values", v, v.shape[1] if v.ndim == 2 else 1, len(t))
    if len(t) < 2:
        raise UnusableSamples("times", "there is one, and a rate needs two.")
    steps = np.diff(t)
    period = float(np.median(steps))
    # Only rounding of the stamps: nothing is missing and nothing is late.
    if np.abs(steps - period).max() <= 1e-3 * period:
        return float(t[-1] - t[0]) / (len(t) - 1), v
    count = round((t[-1] - t[0]) / period) + 1
    grid = np.linspace(t[0], t[-1], count)
    return float(grid[1] - grid[0]), interpolated(grid, t, v)


def derivatives(values: ArrayLike, period: float) -> tuple[Array, Array]:
    """First and second derivative (T - 2 m, n) of uniformly sampled values (T, n) by a moving parabola.

    m is the number of samples on either side: within m samples of the ends there is no value.
    """
    v = np.asarray(values, dtype=float)
    m = max(2, round(0.5 * WINDOW / period))
    if len(v) <= 2 * m:
        return np.empty((0, v.shape[1])), np.empty((0, v.shape[1]))
    k = np.arange(-m, m + 1, dtype=float)
    k2 = k**2 - np.mean(k**2)
    # Convolution reverses the kernel: the odd one changes its sign.
    slope, bend = -k / (k @ k) / period, 2.0 * k2 / (k2 @ k2) / period**2
    first, second = (
        [np.convolve(column, kernel, "valid") for column in v.T] for kernel in (slope, bend)
    )
    return np.column_stack(first), np.column_stack(second)


def _all_finite(name: str, array: Array) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.flatnonzero(~finite.all(axis=tuple(range(1, array.ndim))))
        raise UnusableSamples(
            name,
            f"sample {bad[0]} is not finite, {len(bad)} of {len(array)} in all. "
            "Leave out the samples that have no value, in all arrays alike.",
            index=int(bad[0]),
        )


class Statistics(TypedDict):
    """Root mean square, mean, 95th percentile and maximum."""

    rms: float
    mean: float
    p95: float
    max: float


class PositionStatistics(TypedDict):
    position_m: Statistics


class PoseStatistics(PositionStatistics):
    rotation_rad: Statistics


def statistics(values: ArrayLike) -> Statistics:
    """Root mean square, mean, 95th percentile (linear between order statistics) and maximum of values (T,).

    Raises:
        UnusableSamples: If there are no values or one is not finite.
    """
    array = column("values of a statistic", values)
    if len(array) == 0:
        raise UnusableSamples(
            "values of a statistic", "there are none. Evaluate at least one sample."
        )
    return {
        "rms": rms(array),
        "mean": float(np.mean(array)),
        "p95": float(np.percentile(array, 95.0)),
        "max": float(np.max(array)),
    }


@dataclass(frozen=True)
class PoseError:
    """Desired minus attained pose at every sample; both arrays are read-only copies."""

    translation: Array  # (T, 3), in m, in base axes
    rotation: Array  # R_desired R_attained^T as Rodrigues vectors (T, 3), in rad, in base axes

    def __post_init__(self) -> None:
        translation = rows("translation errors", self.translation, 3).copy()
        rotation = rows("rotation errors", self.rotation, 3, len(translation)).copy()
        for name, array in (("translation", translation), ("rotation", rotation)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @staticmethod
    def between(desired: ArrayLike, attained: ArrayLike) -> PoseError:
        """The error of attained poses (T, 7) against desired ones (T, 7)."""
        first = rows("desired poses", desired, 7)
        return PoseError(*pose.error(first, rows("attained poses", attained, 7, len(first))))

    @property
    def distance(self) -> Array:
        """Euclidean distances (T,) in m."""
        return np.asarray(np.linalg.norm(self.translation, axis=1))

    @property
    def angle(self) -> Array:
        """Rotation angles (T,) from attained to desired in rad, from 0 to pi."""
        return np.asarray(np.linalg.norm(self.rotation, axis=1))

    def statistics(self) -> PoseStatistics:
        """Statistics of the distances (m) and of the angles (rad).

        Raises:
            UnusableSamples: If there are no samples.
        """
        return ErrorSize(self.distance, self.angle).statistics()


@dataclass(frozen=True)
class ErrorSize:
    """How large a `PoseError` is at every sample: distances (T,) in m and angles (T,) in rad, 0 to pi."""

    distance: Array
    angle: Array

    def statistics(self) -> PoseStatistics:
        """As `PoseError.statistics`."""
        return {"position_m": statistics(self.distance), "rotation_rad": statistics(self.angle)}
