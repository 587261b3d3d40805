"""Commands to ROS's forward command controllers: arrays without names of joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.judging.bag_contents import BagMessage
from simbridge.judging.bag_rows import TopicSamples
from simbridge.robot.pose import Array, Counts

# Words in the name of a topic that show that it has positions.
POSITION_WORDS = ("position", "pos")
# Words in the name of a topic that show that it has velocities.
VELOCITY_WORDS = ("velocity", "vel")
# In the right order of joints the commands are near the measured values; in a wrong order they must
# be farther from them by this factor.
ORDER_RATIO = 2.0


@dataclass(frozen=True, eq=False)
class ForwardCommands:
    """The commands on a topic.

    Attributes:
        topic: Name of the topic.
        is_velocity: Whether they are velocities, rad/s, rather than positions, rad.
        recorded: Times of recording (K,), ns, not decreasing.
        values: The commands (K, n), in the order of the arm's joints.
    """

    topic: str
    is_velocity: bool
    recorded: Counts
    values: Array


def read_forward_commands(
    topic: str,
    messages: Sequence[BagMessage],
    *,
    joints: Sequence[str],
    measured: TopicSamples,
    delay: int,
) -> ForwardCommands | str:
    """Return the commands on a topic, or a clause that says why they are not read.

    The order of the joints in a command is that of the controller's settings, which a bag does not
    contain: from the base, or alphabetical. The joint motion that was measured meanwhile shows
    which of the two it is.

    Args:
        topic: Name of the topic.
        messages: Messages on the topic.
        joints: Names of the arm's joints, from the base.
        measured: Measured positions, and velocities if there are any.
        delay: Time from the stamp of a measured sample to its recording, ns.
    """
    words = topic.replace("/", "_").split("_")
    is_velocity = any(word in words for word in VELOCITY_WORDS)
    if not is_velocity and not any(word in words for word in POSITION_WORDS):
        return "its name does not say whether it has positions or velocities"
    rows = [message.content.data for message in messages]
    if any(len(row) != len(joints) for row in rows):
        return f"not all of its messages have {len(joints)} values"
    quantity = measured.vectors.get("velocity" if is_velocity else "position")
    if quantity is None:
        return "nothing was measured that shows the order of its joints"

    # The commands in the order in which they were recorded.
    recorded = np.array([message.recorded for message in messages], dtype=np.int64)
    order = np.argsort(recorded, kind="stable")
    recorded = recorded[order]
    values = np.array(rows, dtype=float)[order]

    # The measured quantity when each command was recorded.
    measured_at_commands = np.column_stack(
        [np.interp(recorded - delay, measured.stamps, joint) for joint in quantity.T]
    )
    columns = _find_joint_columns(values, measured_at_commands, joints)
    if columns is None:
        return "what was measured does not show the order of its joints"
    return ForwardCommands(topic, is_velocity, recorded, values[:, columns])


def _find_joint_columns(values: Array, measured: Array, joints: Sequence[str]) -> list[int] | None:
    """Return the column of each joint, from the base; None if it is ambiguous.

    Args:
        values: The commands (K, n), in the order of the controller's settings.
        measured: The measured quantity at each command (K, n), in the order from the base.
        joints: Names of the joints, from the base.
    """
    alphabetical = sorted(joints)
    columns_from_base = list(range(len(joints)))
    columns_by_name = [alphabetical.index(joint) for joint in joints]

    # Joints with the same column in both orders cannot tell the orders apart.
    differing = [joint for joint in columns_from_base if columns_by_name[joint] != joint]
    if not differing:
        return columns_from_base

    def distance(columns: list[int]) -> float:
        """Return how far the commands are from the measured values, rad or rad/s."""
        return float(np.linalg.norm((values[:, columns] - measured)[:, differing]))

    if ORDER_RATIO * distance(columns_from_base) < distance(columns_by_name):
        return columns_from_base
    if ORDER_RATIO * distance(columns_by_name) < distance(columns_from_base):
        return columns_by_name
    return None
