"""What a joint trajectory controller of ROS 2 logs on /rosout when it gives up.

The results of actions are not in a bag of ROS 2 unless services are introspected, but its log is:
the joint and the tolerance that failed, and why the goal was aborted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from simbridge.judging.bag_contents import BagMessage
from simbridge.judging.bag_rows import stamp_of
from simbridge.judging.log import GoalResult
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND

# What the controller logs when it aborts a goal, and the error that this is in its result.
ABORTS = {
    "Aborted due to state tolerance violation": "PATH_TOLERANCE_VIOLATED",
    "Aborted due to path tolerance violation": "PATH_TOLERANCE_VIOLATED",
    "Aborted due to goal_time_tolerance": "GOAL_TOLERANCE_VIOLATED",
    "Aborted due to command timeout": "COMMAND_TIMEOUT",
}
# Messages on the tolerance that failed precede the one of the abort by no more than this, s.
MAX_DETAIL_LEAD_S = 0.1
# The status of a goal follows the message by no more than this, s.
MAX_STATUS_DELAY_S = 1.0

_TOLERANCE = re.compile(r"Position Tolerance: (\d+(?:\.\d+)?)")


def read_logged_aborts(
    messages: Sequence[BagMessage], *, start: int, clock_lead: int
) -> list[GoalResult]:
    """Return the aborts that a controller logged, in order.

    Args:
        messages: Messages on /rosout about goals, in order.
        start: Stamp of the log's first sample, ns.
        clock_lead: See `BagMessage.stamp`.
    """
    aborts: list[GoalResult] = []
    # The messages on failed tolerances, with their times, s.
    details: list[tuple[float, str]] = []
    for message in messages:
        stamp = stamp_of(message.content.stamp) or message.recorded - clock_lead
        time = (stamp - start) / NANOSECONDS_PER_SECOND
        text = message.content.msg.strip()
        errors = [error for beginning, error in ABORTS.items() if text.startswith(beginning)]
        if not errors:
            details.append((time, text))
            continue

        recent = [detail for at, detail in details if time - at <= MAX_DETAIL_LEAD_S]
        tolerances = _TOLERANCE.findall(" ".join(recent))
        aborts.append(
            GoalResult(
                time=time,
                outcome="aborted",
                error=errors[0],
                text=" ".join([*recent, text]),
                tolerance_rad=float(tolerances[-1]) if tolerances else None,
            )
        )
        details.clear()
    return aborts


def explain_results(
    results: Sequence[GoalResult], aborts: Sequence[GoalResult]
) -> list[GoalResult]:
    """Return results in which an abort without an error has the one that was logged.

    Aborts that no result stands for are added.

    Args:
        results: The results, from the controller's action.
        aborts: The aborts that it logged.
    """
    explained = []
    unused = list(aborts)
    for result in results:
        logged = _logged_abort(result, unused)
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


def _logged_abort(result: GoalResult, aborts: Sequence[GoalResult]) -> GoalResult | None:
    """Return the logged abort that a result stands for; None without any."""
    if result.outcome != "aborted":
        return None
    near = [abort for abort in aborts if abs(result.time - abort.time) <= MAX_STATUS_DELAY_S]
    return min(near, key=lambda abort: abs(result.time - abort.time), default=None)
