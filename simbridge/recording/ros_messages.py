"""The ROS 2 messages of the log and of exports: their definitions, and their layouts.

simbridge_msgs are our own: what no message of ROS holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.recording.cdr import Layout

HEADER = """\
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
"""
TIME = """\
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
"""
JOINT_STATE = """\
std_msgs/Header header
string[] name
float64[] position
float64[] velocity
float64[] effort
"""
POSE_STAMPED = """\
std_msgs/Header header
geometry_msgs/Pose pose
"""
POSE = """\
MSG: geometry_msgs/Pose
geometry_msgs/Point position
geometry_msgs/Quaternion orientation
"""
POINT = """\
MSG: geometry_msgs/Point
float64 x
float64 y
float64 z
"""
QUATERNION = """\
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
"""
JOINT_ACCELERATION = """\
std_msgs/Header header
string[] name
float64[] acceleration
"""
STATUS = """\
std_msgs/Header header
int64 index              # control period counter
float64 stamp            # s, due instant by the controller's clock since the start of the run
float64 plan_time        # s, time on the trajectory
float64 speed_scaling    # the controller's, 0 to 1
float64 host_monotonic   # s, the host's monotonic clock
int32 robot_mode
int32 safety_mode
int32 runtime_state
bool limited             # the limiter changed this setpoint
"""
LIVE = """\
std_msgs/Header header
int64 period             # counts the periods of a loop, from 0
int64 input              # number of the input that was taken in this period, 0 for none
float64 now              # s, the loop's clock
float64 rate             # share of full speed, 0 to 1
float64 speed            # share of the wanted step that was made, 0 to 1
float64 solver           # s, what solver and checks took; nan if it was not measured
int32 engagement
int32 order              # what was asked besides inputs
int32 fate               # of the input
int32 phase
float64[9] causes        # three times name, subject and value; -1 for none
"""

# Codes of the struct module for the types of ROS.
STRUCT_CODES = {"int64": "q", "float64": "d", "int32": "i", "bool": "?"}

# The same codes for the messages that are one number, by their types.
NUMBER_MESSAGES = {"std_msgs/msg/Float64": "d", "std_msgs/msg/Int32": "i"}

CAUSE_NUMBERS = 9

SEPARATOR = "=" * 80 + "\n"

DEFINITIONS = {
    "sensor_msgs/msg/JointState": SEPARATOR.join([JOINT_STATE, HEADER, TIME]),
    "simbridge_msgs/msg/JointAcceleration": SEPARATOR.join([JOINT_ACCELERATION, HEADER, TIME]),
    "geometry_msgs/msg/PoseStamped": SEPARATOR.join(
        [POSE_STAMPED, HEADER, TIME, POSE, POINT, QUATERNION]
    ),
    "simbridge_msgs/msg/Status": SEPARATOR.join([STATUS, HEADER, TIME]),
    "simbridge_msgs/msg/Live": SEPARATOR.join([LIVE, HEADER, TIME]),
}
"""The definition of each message type with those of the types it uses.

MCAP calls this encoding "ros2msg".
"""


def joint_state(
    frame_id: str,
    joint_names: Sequence[str],
    position: str,
    *,
    velocity: str | None = None,
    effort: str | None = None,
) -> Layout:
    """Return the layout of sensor_msgs/JointState.

    Its groups are (sec, nanosec), position (n,), and velocity (n,) and effort (n,) where named.

    Args:
        frame_id: The frame in the header.
        joint_names: Names of the n joints.
        position: The name of its column.
        velocity: The name of its column; None for an empty sequence.
        effort: The name of its column; None for an empty sequence.
    """
    columns = (position, velocity, effort)
    return _joint_layout("sensor_msgs/msg/JointState", frame_id, joint_names, columns)


def joint_acceleration(frame_id: str, joint_names: Sequence[str], acceleration: str) -> Layout:
    """Return the layout of simbridge_msgs/JointAcceleration, which a JointState does not have.

    Its groups are (sec, nanosec) and acceleration (n,).
    """
    message_type = "simbridge_msgs/msg/JointAcceleration"
    return _joint_layout(message_type, frame_id, joint_names, (acceleration,))


def _joint_layout(
    message_type: str, frame_id: str, joint_names: Sequence[str], columns: Sequence[str | None]
) -> Layout:
    """Return the layout of a header, the joints' names, and a sequence for each column."""
    layout = Layout(message_type, frame_id)
    layout.add_length(len(joint_names))
    for name in joint_names:
        layout.add_string(name)

    for column in columns:
        if column is None:
            layout.add_length(0)
        else:
            layout.add_length(len(joint_names))
            layout.add_vector(column, len(joint_names))
    return layout


def pose_stamped(frame_id: str, pose: str) -> Layout:
    """Return the layout of geometry_msgs/PoseStamped.

    Its groups are (sec, nanosec) and the pose [x y z qx qy qz qw].
    """
    layout = Layout("geometry_msgs/msg/PoseStamped", frame_id)
    layout.add_vector(pose, 7)
    return layout


def vector_stamped(frame_id: str, vector: str) -> Layout:
    """Return the layout of geometry_msgs/Vector3Stamped.

    Its groups are (sec, nanosec) and the vector [x y z].
    """
    layout = Layout("geometry_msgs/msg/Vector3Stamped", frame_id)
    layout.add_vector(vector, 3)
    return layout


def number(message_type: str) -> Layout:
    """Return the layout of a message that is one number: std_msgs/Float64 or std_msgs/Int32.

    Its only group is the number; it has no header.
    """
    layout = Layout(message_type, None)
    layout.add_numbers({"data": NUMBER_MESSAGES[message_type]})
    return layout


def status(frame_id: str) -> Layout:
    """Return the layout of simbridge_msgs/Status.

    Its groups are (sec, nanosec), and all the other numbers in the order of the definition.
    """
    layout = Layout("simbridge_msgs/msg/Status", frame_id)
    layout.add_numbers(_number_codes(STATUS))
    return layout


def live(frame_id: str) -> Layout:
    """Return the layout of simbridge_msgs/Live.

    Its groups are (sec, nanosec), the numbers in the order of the definition, and the causes (9,).
    """
    layout = Layout("simbridge_msgs/msg/Live", frame_id)
    layout.add_numbers(_number_codes(LIVE))
    layout.add_vector("causes", CAUSE_NUMBERS)
    return layout


def _number_codes(definition: str) -> dict[str, str]:
    """Return the codes of the struct module for the numbers of a definition, by name."""
    codes = {}
    # The first line is the header.
    for line in definition.splitlines()[1:]:
        kind, name = line.split()[:2]
        if kind in STRUCT_CODES:
            codes[name] = STRUCT_CODES[kind]
    return codes
