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

# Outcomes by the final statuses of actionlib (ROS 1).
ROS1_OUTCOMES = {
    2: "preempted",
    3: "succeeded",
    4: "aborted",
    5: "rejected",
    8: "recalled",
    9: "lost",
}
# Outcomes by the final statuses of action_msgs (ROS 2).
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
        contents: Messages of the bag.
        joints: Names of the arm's joints.
        start: Stamp of the log's first sample, ns.
        clock_lead: How far the recorder's clock is ahead of the clock of the stamps, ns.
    """
    goals: dict[str, TrajectoryGoal] = {}
    for message in contents.goals:
        for goal_id, goal in _find_goals(message):
            # The client and the server both publish the event of a request: the second is skipped.
            key = goal_id or f"trajectory {len(goals)}"
            if key in goals or not set(joints) <= set(goal.trajectory.joint_names):
                continue
            received = (message.stamp(clock_lead) - start) / NANOSECONDS_PER_SECOND
            goals[key] = _read_goal(goal, joints, received, goal_id)
    return tuple(sorted(goals.values(), key=lambda goal: goal.received))


def _find_goals(message: BagMessage) -> Iterator[tuple[str, Any]]:
    """Yield the goals in a message: the identity of each, "" if it has none, and its fields."""
    if message.kind == JOINT_TRAJECTORY:
        yield "", _BareTrajectory(message.content)
    elif message.kind == ros.ROS1_GOAL:
        yield message.content.goal_id.id, message.content.goal
    else:
        for request in message.content.request:
            yield _format_uuid(request.goal_id), request


class _BareTrajectory:
    """A trajectory that was published on a controller's topic, in place of a goal of its action.

    Attributes:
        trajectory: Fields of the trajectory.
    """

    def __init__(self, trajectory: Any) -> None:
        self.trajectory = trajectory


def _read_goal(goal: Any, joints: Sequence[str], received: float, goal_id: str) -> TrajectoryGoal:
    """Return a goal as a typed record, with the joints in the arm's order.

    Args:
        goal: Fields of the goal, or of what stands for one.
        joints: Names of the arm's joints, from the base.
        received: When the goal was received, s from the log's first sample.
        goal_id: Identity of the goal.
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
        q=_select_columns([point.positions for point in points], columns),
        qd=_select_columns([point.velocities for point in points], columns)
        if has_velocities
        else None,
        goal_id=goal_id,
        path_tolerance=_read_tolerances(getattr(goal, "path_tolerance", ()), joints),
        goal_tolerance=_read_tolerances(getattr(goal, "goal_tolerance", ()), joints),
        goal_time_tolerance=0.0 if time_tolerance is None else _seconds(time_tolerance),
    )


def _select_columns(points: Sequence[Any], columns: Sequence[int]) -> Array:
    """Return some columns of the values of points (K, n); NaN for a point without values."""
    rows = [[point[column] if len(point) else np.nan for column in columns] for point in points]
    return np.array(rows, dtype=float).reshape(-1, len(columns))


def _read_tolerances(entries: Sequence[Any], joints: Sequence[str]) -> Array | None:
    """Return a goal's tolerances of the joint positions (n,), rad; None if it names none.

    A joint that the goal does not name has 0, which stands for the controller's own tolerance.
    """
    by_name = {entry.name: entry.position for entry in entries}
    if not by_name:
        return None
    return np.array([by_name.get(joint, 0.0) for joint in joints])


def _seconds(duration: Any) -> float:
    """Return a duration of ROS in s."""
    return float(duration.sec) + float(duration.nanosec) / NANOSECONDS_PER_SECOND


def _format_uuid(uuid: Any) -> str:
    """Return a UUID of ROS as hexadecimal text."""
    return bytes(uuid.uuid).hex()


def read_results(contents: BagContents, *, start: int, clock_lead: int) -> tuple[GoalResult, ...]:
    """Return how goals ended: from their results, else from their statuses, else from the log.

    Args:
        contents: Messages of the bag.
        start: Stamp of the log's first sample, ns.
        clock_lead: How far the recorder's clock is ahead of the clock of the stamps, ns.
    """
    results = list(_read_result_messages(contents.results, start, clock_lead))

    # A goal whose result was not recorded may have a status that shows how it ended.
    known_goals = {result.goal_id for result in results if result.goal_id}
    results += [
        result
        for result in _read_final_statuses(contents.statuses, start, clock_lead)
        if result.goal_id not in known_goals
    ]

    aborts = read_logged_aborts(contents.logged, start=start, clock_lead=clock_lead)
    explained = explain_results(results, aborts)
    return tuple(sorted(explained, key=lambda result: result.time))


def _read_result_messages(
    messages: Sequence[BagMessage], start: int, clock_lead: int
) -> Iterator[GoalResult]:
    """Yield the results of goals that messages report.

    A controller of ROS 1 publishes a result as a message. In ROS 2 the client of an action calls a
    service for the result of its goal; a bag has the call if the introspection of services was
    switched on. Client and server both publish an event for the request, which names the goal, and
    another for the response, which has the result.

    Args:
        messages: Results of ROS 1, and events of ROS 2, in order.
        start: Stamp of the log's first sample, ns.
        clock_lead: How far the recorder's clock is ahead of the clock of the stamps, ns.
    """
    # Identity of the goal that each call is about. The client's identity and a sequence number
    # identify a call.
    goal_of_call: dict[tuple[bytes, int], str] = {}
    # Calls whose response was read: the second event of a response is skipped.
    answered: set[tuple[bytes, int]] = set()
    for message in messages:
        content = message.content
        time = (message.stamp(clock_lead) - start) / NANOSECONDS_PER_SECOND
        if message.kind == ros.ROS1_RESULT:
            outcome = ROS1_OUTCOMES.get(content.status.status, "")
            yield _make_result(time, outcome, content, content.status.goal_id.id)
            continue

        call = (bytes(content.info.client_gid), int(content.info.sequence_number))
        for request in content.request:
            goal_of_call[call] = _format_uuid(request.goal_id)
        if content.response and call not in answered:
            answered.add(call)
            response = content.response[0]
            outcome = ROS2_OUTCOMES.get(response.status, "")
            yield _make_result(time, outcome, response, goal_of_call.get(call, ""))


def _make_result(time: float, outcome: str, result: Any, goal_id: str) -> GoalResult:
    """Return the result of a goal.

    Args:
        time: When the result was reported, s from the log's first sample.
        outcome: The outcome that follows from the status of the goal; "" for a status that is not
            final: the outcome then follows from the error code.
        result: Fields of the result.
        goal_id: Identity of the goal; "" if it is not known.
    """
    code = int(result.error_code)
    return GoalResult(
        time=time,
        outcome=outcome or ("succeeded" if code == 0 else "aborted"),
        error=ERROR_NAMES.get(code, f"error {code}"),
        text=getattr(result, "error_string", ""),
        goal_id=goal_id,
    )


def _read_final_statuses(
    messages: Sequence[BagMessage], start: int, clock_lead: int
) -> Iterator[GoalResult]:
    """Yield the first final status of each goal as a result.

    Args:
        messages: Lists of statuses, in order.
        start: Stamp of the log's first sample, ns.
        clock_lead: How far the recorder's clock is ahead of the clock of the stamps, ns.
    """
    ended_goals: set[str] = set()
    for message in messages:
        time = (message.stamp(clock_lead) - start) / NANOSECONDS_PER_SECOND
        for status in message.content.status_list:
            result = _read_status(status, time, is_ros1=message.kind == ROS1_STATUSES)
            if result.outcome and result.goal_id not in ended_goals:
                ended_goals.add(result.goal_id)
                yield result


def _read_status(status: Any, time: float, *, is_ros1: bool) -> GoalResult:
    """Return the status of a goal as a result, whose outcome is "" while the goal is pursued.

    Args:
        status: Fields of the status.
        time: When the status was published, s from the log's first sample.
        is_ros1: Whether the status is one of actionlib (ROS 1), not of action_msgs (ROS 2).
    """
    if is_ros1:
        outcome = ROS1_OUTCOMES.get(status.status, "")
        return GoalResult(time, outcome, text=status.text, goal_id=status.goal_id.id)
    outcome = ROS2_OUTCOMES.get(status.status, "")
    return GoalResult(time, outcome, goal_id=_format_uuid(status.goal_info.goal_id))
