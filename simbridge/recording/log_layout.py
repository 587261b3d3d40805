"""The format of a run's log: `log.mcap`, one sample a control period.

The file is MCAP (profile "ros2", messages in CDR, schemas as ros2msg), so Foxglove and PlotJuggler
open it directly:

    /joint_states       sensor_msgs/JointState      measured position, velocity, effort
    /setpoint           sensor_msgs/JointState      position: where the joints should be
    /command            sensor_msgs/JointState      position: what was sent; the setpoint, except
                                                    with feedforward
    /solution           sensor_msgs/JointState      position: the solver's joints
    /controller_target  sensor_msgs/JointState      the controller's own target: position, velocity
    /controller_target_acceleration  simbridge_msgs/JointAcceleration
    /target             geometry_msgs/PoseStamped   the pose given to the solver
    /status             simbridge_msgs/Status       all other numbers
    /live               simbridge_msgs/Live         of a live session: phase, input, causes

Every sample writes all of them, also where /solution equals /setpoint: a line through only those
samples where they differ would be misleading, and compression makes the copy nearly free. All have
the sample's stamp in ns, as log time and in their header; /status repeats it as a float64, so that
it reads back to the last bit.

A sample of six joints takes about 430 bytes, as its numbers are as noisy as an arm's, and 128 more
for MCAP's index.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from simbridge.recording import ros_messages
from simbridge.recording.cdr import Layout

METADATA = "simbridge"
"""The name of the metadata record at the start of a log that holds the caller's own facts."""

LAYOUT = "simbridge/layout"
"""The name of the metadata record after it, which holds what a reader needs to know."""

LAYOUT_VERSION = "2"

# The envelope of an MCAP message, before its data. It begins with opcode, length and channel, which
# are the same for every message of a topic.
ENVELOPE_BEGIN = struct.Struct("<BQH")
# The rest is sequence number, log time and publish time, which differ from message to message.
ENVELOPE_BYTES = ENVELOPE_BEGIN.size + struct.calcsize("<IQQ")


def layouts(joint_names: Sequence[str], frame_id: str, *, live: bool = False) -> dict[str, Layout]:
    """Return the layout of each topic's messages, in the order in which a sample writes them.

    The numbers in a layout have the names of the fields of `Sample` and `LiveSample`.

    Args:
        joint_names: Names of the n joints.
        frame_id: The frame of the targets.
        live: Whether the samples are those of a live session.
    """

    def joints(position: str, velocity: str | None = None, effort: str | None = None) -> Layout:
        """Return the layout of a JointState: position, velocity and effort as far as named."""
        return ros_messages.joint_state(
            frame_id, joint_names, position, velocity=velocity, effort=effort
        )

    topics = {
        "/joint_states": joints("position", "velocity", "effort"),
        "/setpoint": joints("setpoint"),
        "/command": joints("command"),
        "/solution": joints("solution"),
        "/controller_target": joints("controller_target", "controller_target_velocity"),
        "/controller_target_acceleration": ros_messages.joint_acceleration(
            frame_id, joint_names, "controller_target_acceleration"
        ),
        "/target": ros_messages.pose_stamped(frame_id, "target"),
        "/status": ros_messages.status(frame_id),
    }
    if live:
        topics["/live"] = ros_messages.live(frame_id)
    return topics
