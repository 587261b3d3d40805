"""Reads what a joint trajectory controller of ROS 2 logs on /rosout when it aborts a goal.

A bag of ROS 2 has the results of actions only if the introspection of services was switched on.
The controller's log messages tell the same: why a goal was aborted, and the joint and the tolerance
that failed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from simbridge.judging.bag_contents import BagMessage
from simbridge.judging.bag_rows import stamp_of
from simbridge.judging.log import GoalResult
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND

# Error in the result of an aborted goal, by the beginning of the message that is logged with it.
ABORTS = {
    "Aborted due to state tolerance violation": "PATH_TOLERANCE_VIOLATED",
    "Aborted due to path tolerance violation": "PATH_TOLERANCE_VIOLATED",
    "Aborted due to goal_time_tolerance": "GOAL_TOLERANCE_VIOLATED",
    "Aborted due to command timeout": "COMMAND_TIMEOUT",
}
# Longest time from the messages on a failed tolerance to the message on the abort, s.
MAX_DETAIL_LEAD_S = 0.1
# Longest time between the message on an abort and the result or status of its goal, s.
MAX_STATUS_DELAY_S = 1.0

_TOLERANCE = re.compile(r"Position Tolerance: (\d+(?:\.\d+)?)")


def read_logged_aborts(
    messages: Sequence[BagMessage], *, start: int, clock_lead: int
) -> list[GoalResult]:
    """Return the aborts that a controller logged, in order.

    A controller first logs which tolerance failed, in one message or more, then the abort.

    Args:
        messages: Messages on /rosout about goals, in order.
        start: Stamp of the log's first sample, ns.
        clock_lead: How far the recorder's clock is ahead of the clock of the stamps, ns.
    """
    aborts: list[GoalResult] = []
    # Times, s, and texts of the messages on failed tolerances since the last abort.
    details: list[tuple[float, str]] = []
    for message in messages:
        stamp = stamp_of(message.content.stamp) or message.recorded - clock_lead
        time = (stamp - start) / NANOSECONDS_PER_SECOND
        text = message.content.msg.strip()
        errors = [error for beginning, error in ABORTS.items() if text.startswith(beginning)]
        if not errors:
            details.append((time, text))
            continue

        recent_details = [
            detail for logged_at, detail in details if time - logged_at <= MAX_DETAIL_LEAD_S
        ]
        tolerances = _TOLERANCE.findall(" ".join(recent_details))
        aborts.append(
            GoalResult(
                time=time,
                outcome="aborted",
                error=errors[0],
                text=" ".join([*recent_details, text]),
                tolerance_rad=float(tolerances[-1]) if tolerances else None,
            )
        )
        details.clear()
    return aborts


def explain_results(
    results: Sequence[GoalResult], aborts: Sequence[GoalResult]
) -> list[GoalResult]:
    """Return the results of goals, completed by the aborts that the controller logged.

    The logged abort that belongs to a result adds its error, text and tolerance. A logged abort
    that belongs to no result is a result of its own.

    Args:
        results: The results that the controller's action reported.
        aborts: The aborts that the controller logged.
    """
    explained = []
    unused = list(aborts)
    for result in results:
        logged = _find_logged_abort(result, unused)
        if logged is None:
            explained.append(result)
            continue

        unused.remove(logged)
        explained.append(
            replace(
                result,
                error=result.error or logged.error,
                text=result.text or logged.text,
                tolerance_rad=logged.tolerance_rad,
            )
        )
    return [*explained, *unused]


def _find_logged_abort(result: GoalResult, aborts: Sequence[GoalResult]) -> GoalResult | None:
    """Return the logged abort that belongs to a result: the nearest in time; None without any."""
    if result.outcome != "aborted":
        return None
    near = [abort for abort in aborts if abs(result.time - abort.time) <= MAX_STATUS_DELAY_S]
    return min(near, key=lambda abort: abs(result.time - abort.time), default=None)
