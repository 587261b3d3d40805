"""Sampled data: validation, resampling at a uniform rate, smoothed derivatives, errors of poses.

Every metric validates its arrays here, and raises `UnusableSamples` where they do not belong
together or a value is not finite: that would not crash the arithmetic, but turn every statistic
into NaN or, worse, be broadcast into a plausible one.

Derivatives are those of a parabola fitted to WINDOW seconds of samples, at its middle (A. Savitzky
and M. J. E. Golay, Smoothing and differentiation of data by simplified least squares procedures,
1964): differences of 500 Hz samples would show mostly noise. The fit is exact for a polynomial of
second degree. Of a vibration with w rad/s it leaves 1 - (w h)^2/10 of the first derivative, h being
half the window.
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
# Stamps that differ from uniform ones by at most this part of the period are uniform within
# rounding.
UNIFORM_TOLERANCE = 1e-3
# Pairs evaluated at once: an hour has millions, whose poses would take a gigabyte.
BLOCK = 50_000


def rows(name: str, values: ArrayLike, columns: int, count: int | None = None) -> Array:
    """Return values as finite rows.

    Args:
        name: What the values are, in messages.
        values: The values (T, columns).
        columns: Length of a row.
        count: Number of rows T; any number by default.

    Raises:
        UnusableSamples: For another shape or a number that is not finite.
    """
    array = np.asarray(values, dtype=float)
    expected_count = len(array) if count is None and array.ndim > 0 else count
    if array.shape != (expected_count, columns):
        rule = f"({'T' if count is None else count}, {columns})"
        raise UnusableSamples(
            name, f"their shape is {array.shape}, and {rule} is needed: one row per stamp."
        )
    _check_finite(name, array)
    return array


def column(name: str, values: ArrayLike, count: int | None = None) -> Array:
    """Return values as finite numbers (T,); the arguments and errors are those of `rows`."""
    return rows(name, np.asarray(values, dtype=float)[..., None], 1, count)[:, 0]


def known_rows(name: str, values: ArrayLike, columns: int, count: int) -> Array:
    """Return the finite ones of rows (count, columns): for sensors that skip samples.

    The arguments and errors are those of `rows`.
    """
    array = np.asarray(values, dtype=float)
    is_finite = np.isfinite(array)
    if is_finite.all():
        return rows(name, array, columns, count)

    # Only the shape can be wrong.
    rows(name, np.where(is_finite, array, 0.0), columns, count)
    return np.asarray(array[is_finite.all(axis=1)])


def stamps(name: str, values: ArrayLike) -> Array:
    """Return values as finite, strictly increasing instants (T,) in s, at least one.

    Args:
        name: Name of the values, for messages.
        values: The instants (T,), s.

    Raises:
        UnusableSamples: The values are of another shape, not finite, or not increasing.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or len(array) == 0:
        raise UnusableSamples(
            name, f"their shape is {array.shape}, and (T,) with at least one instant is needed."
        )
    _check_finite(name, array)

    not_later = np.flatnonzero(np.diff(array) <= 0.0)
    if len(not_later):
        k = int(not_later[0]) + 1
        raise UnusableSamples(
            name,
            f"sample {k} ({array[k]:g} s) is not later than sample {k - 1} ({array[k - 1]:g} s). "
            "Sort the samples and remove repeated ones.",
            index=k,
        )
    return array


def _check_finite(name: str, array: Array) -> None:
    """Refuse samples (T, ...) with a value that is not finite.

    Args:
        name: Name of the samples, for messages.
        array: The samples.

    Raises:
        UnusableSamples: A value is infinite or NaN.
    """
    is_finite = np.isfinite(array)
    if is_finite.all():
        return

    value_axes = tuple(range(1, array.ndim))
    faulty_samples = np.flatnonzero(~is_finite.all(axis=value_axes))
    raise UnusableSamples(
        name,
        f"sample {faulty_samples[0]} is not finite, {len(faulty_samples)} of {len(array)} in all. "
        "Remove the samples without a value from all arrays.",
        index=int(faulty_samples[0]),
    )


def interpolate_rows(instants: Array, times: Array, values: Array) -> Array:
    """Return values in between, linearly, and constant outside of their range.

    Args:
        instants: The instants (K,), s.
        times: Strictly increasing instants of the values (T,), s.
        values: The values at the stamps (T, n).

    Returns:
        The values at the instants (K, n).
    """
    return np.column_stack([np.interp(instants, times, samples) for samples in values.T])


def resample_uniform(times: ArrayLike, values: ArrayLike) -> tuple[float, Array]:
    """Return values at uniformly spaced instants; missing samples are interpolated.

    Args:
        times: Strictly increasing stamps (T,), s.
        values: The values at the stamps (T, n).

    Returns:
        The period in s, which is the median one, so that the values include the samples that are
        missing; and the values (K, n).

    Raises:
        UnusableSamples: Fewer than two samples.
    """
    t = stamps("times", times)
    v = np.asarray(values, dtype=float)
    v = rows("values", v, v.shape[1] if v.ndim == 2 else 1, len(t))
    if len(t) < 2:
        raise UnusableSamples("times", "there is one, and a rate needs two.")

    # Only rounding of the stamps: nothing is missing and nothing is late.
    steps = np.diff(t)
    period = float(np.median(steps))
    if np.abs(steps - period).max() <= UNIFORM_TOLERANCE * period:
        return float(t[-1] - t[0]) / (len(t) - 1), v

    count = round((t[-1] - t[0]) / period) + 1
    grid = np.linspace(t[0], t[-1], count)
    return float(grid[1] - grid[0]), interpolate_rows(grid, t, v)


def derivatives(values: ArrayLike, period: float) -> tuple[Array, Array]:
    """Return the first and second derivative of uniformly sampled values by a moving parabola.

    Args:
        values: The values (T, n).
        period: Time between two samples, s.

    Returns:
        Two arrays (T - 2 m, n), m being the number of samples on either side of the parabola's
        middle: within m samples of the ends there is no value.
    """
    v = np.asarray(values, dtype=float)
    m = max(2, round(0.5 * WINDOW / period))
    if len(v) <= 2 * m:
        return np.empty((0, v.shape[1])), np.empty((0, v.shape[1]))

    # Convolution reverses the kernel: the odd one changes its sign.
    k = np.arange(-m, m + 1, dtype=float)
    k2 = k**2 - np.mean(k**2)
    slope_kernel = -k / (k @ k) / period
    bend_kernel = 2.0 * k2 / (k2 @ k2) / period**2

    first = [np.convolve(samples, slope_kernel, "valid") for samples in v.T]
    second = [np.convolve(samples, bend_kernel, "valid") for samples in v.T]
    return np.column_stack(first), np.column_stack(second)


def correlation(first: Array, second: Array) -> Array:
    """Return the sums over k of first[k] . second[k + lag], by lag; negative lags are at the end.

    The circular correlation of the sequences, padded with zeros, is the linear one.

    Args:
        first: Sequence (n, c).
        second: Sequence (m, c).
    """
    size = 1 << (len(first) + len(second)).bit_length()
    spectrum = np.conj(np.fft.rfft(first, size, axis=0)) * np.fft.rfft(second, size, axis=0)
    return np.asarray(np.fft.irfft(spectrum.sum(axis=1), size))


def largest(columns: Array) -> list[float]:
    """Return the largest magnitude of each column (T,) of an array (T, n)."""
    magnitudes = np.maximum(columns.max(axis=0), -columns.min(axis=0))
    return [float(value) for value in magnitudes]


def rms(values: Array) -> float:
    """Return the root mean square of all values."""
    return float(np.sqrt(np.mean(values**2)))


class Statistics(TypedDict):
    """Root mean square, mean, 95th percentile and maximum."""

    rms: float
    mean: float
    p95: float
    max: float


class PositionStatistics(TypedDict):
    """Statistics of distances, m."""

    position_m: Statistics


class PoseStatistics(PositionStatistics):
    """Statistics of distances, m, and of angles, rad."""

    rotation_rad: Statistics


def statistics(values: ArrayLike) -> Statistics:
    """Return root mean square, mean, 95th percentile and maximum.

    Args:
        values: The values (T,); the percentile is linear between order statistics.

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
    """Desired minus attained pose at every sample; both arrays are read-only copies.

    Attributes:
        translation: Difference of the positions (T, 3), m, in base axes.
        rotation: R_desired R_attained^T as Rodrigues vectors (T, 3), in rad, in base axes.
    """

    translation: Array
    rotation: Array

    def __post_init__(self) -> None:
        translation = rows("translation errors", self.translation, 3).copy()
        rotation = rows("rotation errors", self.rotation, 3, len(translation)).copy()
        translation.setflags(write=False)
        rotation.setflags(write=False)
        object.__setattr__(self, "translation", translation)
        object.__setattr__(self, "rotation", rotation)

    @staticmethod
    def between(desired: ArrayLike, attained: ArrayLike) -> PoseError:
        """Return the error of attained poses (T, 7) against desired ones (T, 7)."""
        desired_poses = rows("desired poses", desired, 7)
        attained_poses = rows("attained poses", attained, 7, len(desired_poses))
        translation, rotation = pose.error(desired_poses, attained_poses)
        return PoseError(translation, rotation)

    @property
    def distance(self) -> Array:
        """Euclidean distances (T,) in m."""
        return np.asarray(np.linalg.norm(self.translation, axis=1))

    @property
    def angle(self) -> Array:
        """Rotation angles (T,) from attained to desired in rad, from 0 to pi."""
        return np.asarray(np.linalg.norm(self.rotation, axis=1))

    def statistics(self) -> PoseStatistics:
        """Return statistics of the distances (m) and of the angles (rad).

        Raises:
            UnusableSamples: If there are no samples.
        """
        return ErrorSize(self.distance, self.angle).statistics()


@dataclass(frozen=True)
class ErrorSize:
    """The size of a `PoseError` at every sample.

    Attributes:
        distance: Euclidean distances (T,), m.
        angle: Rotation angles (T,), rad, from 0 to pi.
    """

    distance: Array
    angle: Array

    def statistics(self) -> PoseStatistics:
        """Return statistics, as `PoseError.statistics` does."""
        return {"position_m": statistics(self.distance), "rotation_rad": statistics(self.angle)}
