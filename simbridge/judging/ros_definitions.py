"""Definitions of the ROS messages of joint trajectory controllers and of UR's drivers.

Bags in SQLite files contain no definitions, and the definitions in other bags are not used, so all
of them are here. Some messages gained fields over the years: such a name has several definitions,
and a message is decoded by the only one that fits its length. Source: the repositories
ros-controls/control_msgs and UniversalRobots/Universal_Robots_ROS_Driver, all branches up to
August 2026, and ROS's design of actions and of the introspection of services.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

STATE = "control_msgs/msg/JointTrajectoryControllerState"
# Messages of the action that takes trajectories, in ROS 1.
ROS1_GOAL = "control_msgs/msg/FollowJointTrajectoryActionGoal"
ROS1_FEEDBACK = "control_msgs/msg/FollowJointTrajectoryActionFeedback"
ROS1_RESULT = "control_msgs/msg/FollowJointTrajectoryActionResult"
# Messages of the same action in ROS 2; the events come from the introspection of its services.
ROS2_FEEDBACK = "control_msgs/action/FollowJointTrajectory_FeedbackMessage"
ROS2_GOAL_EVENT = "control_msgs/action/FollowJointTrajectory_SendGoal_Event"
ROS2_RESULT_EVENT = "control_msgs/action/FollowJointTrajectory_GetResult_Event"
# Messages of UR's drivers on the state of the controller.
SAFETY_MODE = "ur_dashboard_msgs/msg/SafetyMode"
ROBOT_MODE = "ur_dashboard_msgs/msg/RobotMode"
SPEED_SCALING = "control_msgs/msg/SpeedScalingFactor"

# Line before the definition of a type that another definition uses.
USED_TYPE = "=" * 80 + "\nMSG: "

_HEADER = """\
std_msgs/Header header
string[] joint_names
"""
_OLD_POINTS = """\
trajectory_msgs/JointTrajectoryPoint desired
trajectory_msgs/JointTrajectoryPoint actual
trajectory_msgs/JointTrajectoryPoint error
"""
_NEW_POINTS = """\
trajectory_msgs/JointTrajectoryPoint reference
trajectory_msgs/JointTrajectoryPoint feedback
trajectory_msgs/JointTrajectoryPoint error
trajectory_msgs/JointTrajectoryPoint output
"""
# The points of Humble: the new ones, and the old ones for programs that still read them.
_BOTH_POINTS = (
    _NEW_POINTS
    + """\
trajectory_msgs/JointTrajectoryPoint desired
trajectory_msgs/JointTrajectoryPoint actual
"""
)


def _multi_dof(*points: str) -> str:
    """Return the fields of joints with several degrees of freedom, which UR's arms do not have."""
    lines = [f"trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_{name}" for name in points]
    return "\n".join(["string[] multi_dof_joint_names", *lines, ""])


_OLD_MULTI_DOF = _multi_dof("desired", "actual", "error")
_NEW_MULTI_DOF = _multi_dof("reference", "feedback", "error", "output")
_BOTH_MULTI_DOF = _multi_dof("reference", "feedback", "error", "output", "desired", "actual")

# The state of a trajectory controller in each version of ROS.
_STATES = (
    # ROS 1, and ROS 2 until Galactic.
    _HEADER + _OLD_POINTS,
    _HEADER + _OLD_POINTS + _OLD_MULTI_DOF,
    # ROS 2 Humble.
    _HEADER + _BOTH_POINTS + _BOTH_MULTI_DOF,
    # ROS 2 Jazzy.
    _HEADER + _NEW_POINTS + _NEW_MULTI_DOF,
    # ROS 2 Kilted and later.
    _HEADER + _NEW_POINTS + _NEW_MULTI_DOF + "float64 speed_scaling_factor\n",
)

_TOLERANCE = (
    USED_TYPE
    + """\
control_msgs/JointTolerance
string name
float64 position
float64 velocity
float64 acceleration
"""
)
_COMPONENT_TOLERANCE = (
    USED_TYPE
    + """\
control_msgs/JointComponentTolerance
string joint_name
uint16 component
float64 position
float64 velocity
float64 acceleration
"""
)
_OLD_GOAL = """\
trajectory_msgs/JointTrajectory trajectory
control_msgs/JointTolerance[] path_tolerance
control_msgs/JointTolerance[] goal_tolerance
builtin_interfaces/Duration goal_time_tolerance
"""
_NEW_GOAL = """\
trajectory_msgs/JointTrajectory trajectory
trajectory_msgs/MultiDOFJointTrajectory multi_dof_trajectory
control_msgs/JointTolerance[] path_tolerance
control_msgs/JointComponentTolerance[] component_path_tolerance
control_msgs/JointTolerance[] goal_tolerance
control_msgs/JointComponentTolerance[] component_goal_tolerance
builtin_interfaces/Duration goal_time_tolerance
"""
_RESULT = """\
int32 error_code
string error_string
"""
# The result before it had a field for an explanation.
_OLDEST_RESULT = "int32 error_code\n"

_ROS1_GOAL_HEADER = """\
std_msgs/Header header
actionlib_msgs/GoalID goal_id
"""
_ROS1_STATUS_HEADER = """\
std_msgs/Header header
actionlib_msgs/GoalStatus status
"""
# Feedback in ROS 1: a message whose field `feedback` has a second header.
_ROS1_FEEDBACK = (
    _ROS1_STATUS_HEADER
    + """\
control_msgs/FollowJointTrajectoryFeedback feedback
"""
    + USED_TYPE
    + "control_msgs/FollowJointTrajectoryFeedback\n"
    + _HEADER
    + _OLD_POINTS
)

_GOAL_ID = "unique_identifier_msgs/UUID goal_id\n"
_ROS2_FEEDBACKS = (
    _GOAL_ID + _HEADER + _OLD_POINTS,
    _GOAL_ID + _HEADER + _OLD_POINTS + _OLD_MULTI_DOF,
    _GOAL_ID + _HEADER + _OLD_POINTS + "int32 index\n" + _OLD_MULTI_DOF + "int32 multi_dof_index\n",
)

_EVENT_INFO = (
    USED_TYPE
    + """\
service_msgs/ServiceEventInfo
uint8 event_type
builtin_interfaces/Time stamp
uint8[16] client_gid
int64 sequence_number
"""
)


def _goal_event(goal: str, *used_types: str) -> str:
    """Return the definition of the event of a request to pursue a goal, or of the response to it.

    Args:
        goal: Definition of the goal.
        used_types: Definitions of the types that the goal uses.
    """
    event = """\
service_msgs/ServiceEventInfo info
control_msgs/SendGoalRequest[] request
control_msgs/SendGoalResponse[] response
"""
    request = USED_TYPE + "control_msgs/SendGoalRequest\n" + _GOAL_ID + goal
    response = (
        USED_TYPE
        + """\
control_msgs/SendGoalResponse
bool accepted
builtin_interfaces/Time stamp
"""
    )
    return "".join([event, request, response, _EVENT_INFO, *used_types])


_RESULT_EVENT = (
    """\
service_msgs/ServiceEventInfo info
control_msgs/GetResultRequest[] request
control_msgs/GetResultResponse[] response
"""
    + USED_TYPE
    + "control_msgs/GetResultRequest\n"
    + _GOAL_ID
    + USED_TYPE
    + "control_msgs/GetResultResponse\nint8 status\n"
    + _RESULT
    + _EVENT_INFO
)

DEFINITIONS: Mapping[str, Sequence[str]] = {
    STATE: _STATES,
    ROS1_GOAL: (
        _ROS1_GOAL_HEADER
        + "control_msgs/FollowJointTrajectoryGoal goal\n"
        + USED_TYPE
        + "control_msgs/FollowJointTrajectoryGoal\n"
        + _OLD_GOAL
        + _TOLERANCE,
    ),
    ROS1_FEEDBACK: (_ROS1_FEEDBACK,),
    ROS1_RESULT: (_ROS1_STATUS_HEADER + _RESULT, _ROS1_STATUS_HEADER + _OLDEST_RESULT),
    ROS2_FEEDBACK: _ROS2_FEEDBACKS,
    ROS2_GOAL_EVENT: (
        _goal_event(_NEW_GOAL, _TOLERANCE, _COMPONENT_TOLERANCE),
        _goal_event(_OLD_GOAL, _TOLERANCE),
    ),
    ROS2_RESULT_EVENT: (_RESULT_EVENT,),
    SAFETY_MODE: ("uint8 mode\n",),
    ROBOT_MODE: ("int8 mode\n",),
    SPEED_SCALING: ("float64 factor\n",),
}
"""The definitions of each message by its name, one for each generation of the message."""
