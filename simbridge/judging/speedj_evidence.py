"""Whether a motion is a speedj: velocities that approach the commanded ones in proportion.

Each row's velocity follows from that of the row before and from the command that was in effect
(`simbridge.servo.speedj`). A command takes effect some whole cycles after it was sent, always as
many; one that comes late leaves the command before it in effect for one cycle more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.judging.log import Commands
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.servo.speedj import approach_velocity

# Longest delay that is tried, cycles.
MAX_DELAY_CYCLES = 12
# Difference that rounding in single precision leaves, rad/s.
ROUNDING = 1e-5
# Smallest number of rows that show speedj.
MIN_ROWS = 20
# Fraction of the rows that commands on time must explain.
MIN_EXPLAINED = 0.9
# Fraction of the rows that commands on time and late ones must explain.
MIN_EXPLAINED_WITH_LATE = 0.99
# Spans between rows that differ from the usual one by more than this part show lost rows.
SPAN_TOLERANCE = 0.1
# Fraction by which a command must ask for more than the largest acceleration to show that speedj
# limits it: without that the commands themselves change no faster.
MIN_EXCESS = 1e-2
# Smallest number of rows whose command asks for more.
MIN_LIMITED_ROWS = 3


@dataclass(frozen=True)
class SpeedjEvidence:
    """How joint velocities follow the commands of speedj.

    Attributes:
        acceleration_rad_s2: Acceleration of the joint whose speed changes most, rad/s^2; None if
            no change of the commands was large enough to show it.
        delay_rows: Number of rows from the one that a command belongs to, to the first one that it
            has influenced. A log with a row for each cycle has as many cycles in between.
        delay_s: The same delay, s.
        late_s: Times of the rows whose command came a row late (L,), s from the log's beginning.
        explained: Fraction of the rows that the commands explain, late ones included.
        residual_rad_s: Largest difference of an explained row, rad/s.
    """

    acceleration_rad_s2: float | None
    delay_rows: int
    delay_s: float
    late_s: tuple[float, ...]
    explained: float
    residual_rad_s: float


@dataclass(frozen=True, eq=False)
class DelayedFit:
    """How well commands with one delay explain the rows of a motion.

    Attributes:
        delay: Delay of the commands, cycles.
        rows: Indices of the rows that can be judged (K,).
        on_time: Difference of each row with its command (K,), rad/s.
        late: Difference of each row with the command before it (K,), rad/s.
        is_limited: Whether the command of each row asks for more than the acceleration (K,).
    """

    delay: int
    rows: Counts
    on_time: Array
    late: Array
    is_limited: Flags

    @property
    def is_explained(self) -> Flags:
        """Rows that the command of their own cycle or the one before explains (K,)."""
        return np.asarray(np.minimum(self.on_time, self.late) < ROUNDING)


def find_speedj(times: Array, qd: Array, commands: Commands) -> SpeedjEvidence | None:
    """Return how velocities follow speed commands; None if they do not.

    Args:
        times: Instants of the rows (T,), s from the log's beginning, one row each cycle.
        qd: Velocities of the joint targets (T, n), rad/s.
        commands: Speed commands, rad/s, with their times.
    """
    if commands.times is None or len(times) < MIN_ROWS:
        return None
    span = float(np.median(np.diff(times)))
    acceleration = float(np.abs(np.diff(qd, axis=0)).max()) / span
    if acceleration == 0.0:
        return None

    # The newest command of each row's cycle.
    half_cycle = 0.5 * span
    newest = np.searchsorted(commands.times, times + half_cycle, side="right") - 1

    fits = [
        _fit_delay(times, qd, commands.values, newest=newest, delay=delay, max_change=acceleration)
        for delay in range(1, MAX_DELAY_CYCLES + 1)
    ]
    fits = [fit for fit in fits if len(fit.rows) >= MIN_ROWS]
    if not fits:
        return None
    best = max(fits, key=lambda fit: float(np.mean(fit.on_time < ROUNDING)))
    explained = best.is_explained
    on_time = float(np.mean(best.on_time < ROUNDING))
    if on_time < MIN_EXPLAINED or explained.mean() < MIN_EXPLAINED_WITH_LATE:
        return None

    is_late = (best.on_time >= ROUNDING) & explained
    is_limited = best.is_limited & (best.on_time < ROUNDING)
    is_known = is_limited.sum() >= MIN_LIMITED_ROWS
    residual = np.minimum(best.on_time, best.late)[explained]
    return SpeedjEvidence(
        acceleration_rad_s2=acceleration if is_known else None,
        delay_rows=best.delay,
        delay_s=best.delay * span,
        late_s=tuple(times[best.rows[is_late]].tolist()),
        explained=float(explained.mean()),
        residual_rad_s=float(residual.max()),
    )


def _fit_delay(
    times: Array, qd: Array, commands: Array, *, newest: Counts, delay: int, max_change: float
) -> DelayedFit:
    """Compare each row's velocity with what speedj makes of the row before, at one delay.

    Args:
        times: Instants of the rows (T,), s.
        qd: Velocities of the joint targets (T, n), rad/s.
        commands: Speed commands (K, n), rad/s.
        newest: Index of the newest command of each row (T,); -1 before the first.
        delay: Delay of the commands, cycles.
        max_change: Acceleration of speedj, rad/s^2.
    """
    span = np.diff(times)
    usual = float(np.median(span))
    follows = np.concatenate([[False], np.abs(span - usual) < SPAN_TOLERANCE * usual])
    rows = np.flatnonzero(follows)
    # Rows for which there is a command, and one before it, which a late one repeats.
    rows = rows[rows >= delay + 1]
    rows = rows[newest[rows - delay - 1] >= 0]

    # The largest change of a joint's speed in a cycle.
    limit = max_change * usual

    def difference(indices: Counts) -> Array:
        """Return the difference of each row's velocity with these commands, rad/s."""
        expected = approach_velocity(qd[rows - 1], commands[indices], limit)
        return np.asarray(np.abs(expected - qd[rows]).max(axis=1))

    on_time = difference(newest[rows - delay])
    late = difference(newest[rows - delay - 1])
    largest_change = np.abs(commands[newest[rows - delay]] - qd[rows - 1]).max(axis=1)
    is_limited = np.asarray(largest_change > (1.0 + MIN_EXCESS) * limit)
    return DelayedFit(delay, rows, on_time, late, is_limited)
