"""Goals of joint trajectory controllers in a bag, and how they ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from simbridge.judging import ros_definitions as ros
from simbridge.judging.bag_contents import (
    JOINT_TRAJECTORY,
    ROS1_STATUSES,
    BagContents,
    BagMessage,
)
from simbridge.judging.bag_rosout import explain_results, read_logged_aborts
from simbridge.judging.log import GoalResult, TrajectoryGoal
from simbridge.robot.pose import Array
from simbridge.trajectory.bag_samples import NANOSECONDS_PER_SECOND

# Outcomes by the status of actionlib (ROS 1), and of action_msgs (ROS 2).
ROS1_OUTCOMES = {
    2: "preempted",
    3: "succeeded",
    4: "aborted",
    5: "rejected",
    8: "recalled",
    9: "lost",
}
ROS2_OUTCOMES = {4: "succeeded", 5: "canceled", 6: "aborted"}
# Errors by the code of a FollowJointTrajectory result.
ERROR_NAMES = {
    0: "",
    -1: "INVALID_GOAL",
    -2: "INVALID_JOINTS",
    -3: "OLD_HEADER_TIMESTAMP",
    -4: "PATH_TOLERANCE_VIOLATED",
    -5: "GOAL_TOLERANCE_VIOLATED",
}


def read_goals(
    contents: BagContents, joints: Sequence[str], *, start: int, clock_lead: int
) -> tuple[TrajectoryGoal, ...]:
    """Return the trajectories that were sent to controllers of an arm, in order.

    Args:
        contents: What the bag has.
        joints: Names of the arm's joints.
        start: Stamp of the log's first sample, ns.
        clock_lead: See `BagMessage.stamp`.
    """
    goals: dict[str, TrajectoryGoal] = {}
    for message in contents.goals:
        for goal_id, goal in _goals_in(message):
            # The event of a request is recorded by both sides.
            key = goal_id or f"trajectory {len(goals)}"
            if key in goals or not set(joints) <= set(goal.trajectory.joint_names):
                continue
            received = (message.stamp(clock_lead) - start) / NANOSECONDS_PER_SECOND
            goals[key] = _goal(goal, joints, received, goal_id)
    return tuple(sorted(goals.values(), key=lambda goal: goal.received))


def _goals_in(message: BagMessage) -> Iterator[tuple[str, Any]]:
    """Yield the identity and the content of the goals in a message."""
    if message.kind == JOINT_TRAJECTORY:
        yield "", _BareTrajectory(message.content)
    elif message.kind == ros.ROS1_GOAL:
        yield message.content.goal_id.id, message.content.goal
    else:
        for request in message.content.request:
            yield _identity(request.goal_id), request


class _BareTrajectory:
    """A goal that is only a trajectory, as a message on a controller's topic.

    Attributes:
        trajectory: The trajectory.
    """

    def __init__(self, trajectory: Any) -> None:
        self.trajectory = trajectory


def _goal(goal: Any, joints: Sequence[str], received: float, goal_id: str) -> TrajectoryGoal:
    """Return a goal.

    Args:
        goal: Its fields.
        joints: Names of the arm's joints.
        received: When it was received, s.
        goal_id: Its identity.
    """
    trajectory = goal.trajectory
    columns = [list(trajectory.joint_names).index(joint) for joint in joints]
    points = trajectory.points
    has_velocities = bool(points) and all(
        len(point.velocities) == len(trajectory.joint_names) for point in points
    )
    time_tolerance = getattr(goal, "goal_time_tolerance", None)
    times = [_seconds(point.time_from_start) for point in points]
    return TrajectoryGoal(
        received=received,
        times=np.array(times, dtype=float),
        q=_rows([point.positions for point in points], columns),
        qd=_rows([point.velocities for point in points], columns) if has_velocities else None,
        goal_id=goal_id,
        path_tolerance=_tolerances(getattr(goal, "path_tolerance", ()), joints),
        goal_tolerance=_tolerances(getattr(goal, "goal_tolerance", ()), joints),
        goal_time_tolerance=0.0 if time_tolerance is None else _seconds(time_tolerance),
    )


def _rows(points: Sequence[Any], columns: Sequence[int]) -> Array:
    """Return some columns of points; a point without numbers is a row of nan."""
    rows = [[point[column] if len(point) else np.nan for column in columns] for point in points]
    return np.array(rows, dtype=float).reshape(-1, len(columns))


def _tolerances(entries: Sequence[Any], joints: Sequence[str]) -> Array | None:
    """Return the tolerances of a goal's positions (n,), rad; None where it has none."""
    by_name = {entry.name: entry.position for entry in entries}
    if not by_name:
        return None
    return np.array([by_name.get(joint, 0.0) for joint in joints])


def _seconds(duration: Any) -> float:
    return float(duration.sec) + float(duration.nanosec) / NANOSECONDS_PER_SECOND


def _identity(uuid: Any) -> str:
    """Return a UUID as text."""
    return bytes(uuid.uuid).hex()


def read_results(contents: BagContents, *, start: int, clock_lead: int) -> tuple[GoalResult, ...]:
    """Return how goals ended: from their results, else from the statuses that were published.

    Args:
        contents: What the bag has.
        start: Stamp of the log's first sample, ns.
        clock_lead: See `BagMessage.stamp`.
    """
    results = list(_results(contents.results, start, clock_lead))
    known = {result.goal_id for result in results if result.goal_id}
    # Results were recorded: a status adds only goals whose result was not.
    results += [
        result
        for result in _statuses(contents.statuses, start, clock_lead)
        if result.goal_id not in known
    ]
    aborts = read_logged_aborts(contents.logged, start=start, clock_lead=clock_lead)
    explained = explain_results(results, aborts)
    return tuple(sorted(explained, key=lambda result: result.time))


def _results(messages: Sequence[BagMessage], start: int, clock_lead: int) -> Iterator[GoalResult]:
    """Yield the results in messages of results."""
    # Identity of the goal of each request, by client and number.
    requests: dict[tuple[bytes, int], str] = {}
    answered: set[tuple[bytes, int]] = set()
    for message in messages:
        content = message.content
        time = (message.stamp(clock_lead) - start) / NANOSECONDS_PER_SECOND
        if message.kind == ros.ROS1_RESULT:
            yield _result(
                time,
                ROS1_OUTCOMES.get(content.status.status, ""),
                content,
                content.status.goal_id.id,
            )
            continue

        call = (bytes(content.info.client_gid), int(content.info.sequence_number))
        for request in content.request:
            requests[call] = _identity(request.goal_id)
        if content.response and call not in answered:
            answered.add(call)
            response = content.response[0]
            outcome = ROS2_OUTCOMES.get(response.status, "")
            yield _result(time, outcome, response, requests.get(call, ""))


def _result(time: float, outcome: str, result: Any, goal_id: str) -> GoalResult:
    """Return a result; its code decides where the status is not that of an end."""
    code = int(result.error_code)
    return GoalResult(
        time=time,
        outcome=outcome or ("succeeded" if code == 0 else "aborted"),
        error=ERROR_NAMES.get(code, f"error {code}"),
        text=getattr(result, "error_string", ""),
        goal_id=goal_id,
    )


def _statuses(messages: Sequence[BagMessage], start: int, clock_lead: int) -> Iterator[GoalResult]:
    """Yield the first status of each goal that is that of an end."""
    ended: set[str] = set()
    for message in messages:
        time = (message.stamp(clock_lead) - start) / NANOSECONDS_PER_SECOND
        for status in message.content.status_list:
            result = _status(status, time, is_ros1=message.kind == ROS1_STATUSES)
            if result.outcome and result.goal_id not in ended:
                ended.add(result.goal_id)
                yield result


def _status(status: Any, time: float, *, is_ros1: bool) -> GoalResult:
    """Return the status of a goal as a result; one that goes on has no outcome."""
    if is_ros1:
        outcome = ROS1_OUTCOMES.get(status.status, "")
        return GoalResult(time, outcome, text=status.text, goal_id=status.goal_id.id)
    outcome = ROS2_OUTCOMES.get(status.status, "")
    return GoalResult(time, outcome, goal_id=_identity(status.goal_info.goal_id))
