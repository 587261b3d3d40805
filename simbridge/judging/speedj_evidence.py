"""Recognizes speedj: the joint velocities approach the commanded ones, all joints in proportion.

Each row's velocity follows from that of the row before and from the command that was in effect
(`simbridge.servo.speedj`). A command takes effect a whole number of cycles after it was sent, the
same number for every command. A command that comes late leaves the one before it in effect for one
more cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simbridge.judging.log import Commands
from simbridge.robot.pose import Array, Counts, Flags
from simbridge.servo.speedj import approach_velocity

# Longest delay of the commands that is tried, cycles.
MAX_DELAY_CYCLES = 12
# Largest difference of velocities that is due to rounding in single precision, rad/s.
ROUNDING = 1e-5
# Smallest number of rows that show speedj.
MIN_ROWS = 20
# Fraction of the rows that commands on time must explain.
MIN_EXPLAINED = 0.9
# Fraction of the rows that commands on time and late ones must explain.
MIN_EXPLAINED_WITH_LATE = 0.99
# Largest relative difference of the time between two rows from the median; after a larger one rows
# are lost.
SPAN_TOLERANCE = 0.1
# Smallest fraction by which a commanded change must exceed the largest change of a joint, to show
# that the acceleration of speedj limits the joint, and not the commands themselves.
MIN_EXCESS = 1e-2
# Smallest number of rows with such a command that show the acceleration.
MIN_LIMITED_ROWS = 3


@dataclass(frozen=True)
class SpeedjEvidence:
    """How joint velocities follow the commands of speedj.

    Attributes:
        acceleration_rad_s2: Acceleration of the joint whose speed changes most, rad/s^2; None if
            no change of the commands was large enough to show it.
        delay_rows: Number of rows from the row in which a command is the newest to the first row
            that it influences; in a log with a row for each cycle it is the delay in cycles.
        delay_s: Delay of the commands, s.
        late_s: Times of the rows whose command came a row late (L,), s from the log's beginning.
        explained: Fraction of the rows that commands explain, late commands included.
        residual_rad_s: Largest difference of an explained row from the law, rad/s.
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
        on_time: Difference of each row's velocity from what the law makes of the command that is
            due (K,), rad/s.
        late: Difference of each row's velocity from what the law makes of the command before that
            one, as if the due command came late (K,), rad/s.
        is_limited: Whether the due command of each row asks for a larger change than the
            acceleration allows (K,).
    """

    delay: int
    rows: Counts
    on_time: Array
    late: Array
    is_limited: Flags

    @property
    def is_explained(self) -> Flags:
        """For each row (K,): True if the due command, or the one before it, explains it."""
        return np.asarray(np.minimum(self.on_time, self.late) < ROUNDING)

    @property
    def is_on_time(self) -> Flags:
        """For each row (K,): True if the due command explains it."""
        return np.asarray(self.on_time < ROUNDING)


def find_speedj(times: Array, qd: Array, commands: Commands) -> SpeedjEvidence | None:
    """Recognize speedj by how velocities follow speed commands; None if they do not.

    Args:
        times: Instants of the rows (T,), s from the log's beginning, one row each cycle.
        qd: Velocities of the joint targets (T, n), rad/s.
        commands: Speed commands, rad/s, with their times.
    """
    if commands.times is None or len(times) < MIN_ROWS:
        return None

    # The largest acceleration of a joint in the log. It is speedj's if some commands ask for more.
    cycle = float(np.median(np.diff(times)))
    acceleration = float(np.abs(np.diff(qd, axis=0)).max()) / cycle
    if acceleration == 0.0:
        return None

    # Index of the newest command in each row's cycle: the times of commands jitter, so the cycle
    # is taken to end halfway to the next row.
    newest = np.searchsorted(commands.times, times + 0.5 * cycle, side="right") - 1

    # Try all delays, and keep the one with which most commands are on time.
    fits = [
        _fit_delay(
            times, qd, commands.values, newest=newest, delay=delay, acceleration=acceleration
        )
        for delay in range(1, MAX_DELAY_CYCLES + 1)
    ]
    usable_fits = [fit for fit in fits if len(fit.rows) >= MIN_ROWS]
    if not usable_fits:
        return None
    best = max(usable_fits, key=lambda fit: float(np.mean(fit.is_on_time)))

    # With speedj, commands on time explain most rows, and nearly all with the late ones.
    is_explained = best.is_explained
    if np.mean(best.is_on_time) < MIN_EXPLAINED or is_explained.mean() < MIN_EXPLAINED_WITH_LATE:
        return None

    is_late = is_explained & ~best.is_on_time
    limited_count = np.sum(best.is_limited & best.is_on_time)
    residual = np.minimum(best.on_time, best.late)[is_explained]
    return SpeedjEvidence(
        acceleration_rad_s2=acceleration if limited_count >= MIN_LIMITED_ROWS else None,
        delay_rows=best.delay,
        delay_s=best.delay * cycle,
        late_s=tuple(times[best.rows[is_late]].tolist()),
        explained=float(is_explained.mean()),
        residual_rad_s=float(residual.max()),
    )


def _fit_delay(
    times: Array, qd: Array, commands: Array, *, newest: Counts, delay: int, acceleration: float
) -> DelayedFit:
    """Compare each row's velocity with what speedj makes of the row before, with one delay.

    Args:
        times: Instants of the rows (T,), s.
        qd: Velocities of the joint targets (T, n), rad/s.
        commands: Speed commands (K, n), rad/s.
        newest: Index of the newest command in each row's cycle (T,); -1 before the first.
        delay: Delay of the commands, cycles.
        acceleration: Acceleration of speedj, rad/s^2.
    """
    # Rows one cycle after the row before: between others, rows are lost.
    spans = np.diff(times)
    cycle = float(np.median(spans))
    is_next = np.concatenate([[False], np.abs(spans - cycle) < SPAN_TOLERANCE * cycle])
    rows = np.flatnonzero(is_next)

    # Of these, rows with a due command: the newest one `delay` cycles before. If it came a row
    # late, the row got what the row before got: the newest command one cycle earlier still.
    rows = rows[rows >= delay + 1]
    rows = rows[newest[rows - delay - 1] >= 0]
    due = newest[rows - delay]
    before_due = newest[rows - delay - 1]

    # Largest change of a joint's velocity in a cycle, rad/s.
    max_change = acceleration * cycle

    def difference(indices: Counts) -> Array:
        """Return how far each row's velocity is from what the law makes of commands, rad/s."""
        expected = approach_velocity(qd[rows - 1], commands[indices], max_change)
        return np.asarray(np.abs(expected - qd[rows]).max(axis=1))

    commanded_change = np.abs(commands[due] - qd[rows - 1]).max(axis=1)
    return DelayedFit(
        delay=delay,
        rows=rows,
        on_time=difference(due),
        late=difference(before_due),
        is_limited=np.asarray(commanded_change > (1.0 + MIN_EXCESS) * max_change),
    )
