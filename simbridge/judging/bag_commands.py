"""Commands to ROS's forward command controllers: arrays without names of joints."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simbridge.judging.bag_contents import BagMessage
from simbridge.judging.bag_rows import TopicSamples
from simbridge.robot.pose import Array, Counts

# Words in the names of topics by the quantity that is commanded.
POSITION_WORDS = ("position", "pos")
VELOCITY_WORDS = ("velocity", "vel")
# The commands are near what was measured in the right order of joints: the other order must be
# farther off by this factor.
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
    """Return the commands on a topic, or why they are not read, as a clause.

    Their order is that of the controller's settings, which no bag has: from the base, or by the
    alphabet. What was measured at the time tells which.

    Args:
        topic: Name of the topic.
        messages: Its messages.
        joints: Names of the arm's joints, from the base.
        measured: What was measured.
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

    recorded = np.array([message.recorded for message in messages], dtype=np.int64)
    order = np.argsort(recorded, kind="stable")
    recorded = recorded[order]
    values = np.array(rows, dtype=float)[order]
    at_commands = np.column_stack(
        [np.interp(recorded - delay, measured.stamps, joint) for joint in quantity.T]
    )
    columns = _joint_order(values, at_commands, joints)
    if columns is None:
        return "what was measured does not show the order of its joints"
    return ForwardCommands(topic, is_velocity, recorded, values[:, columns])


def _joint_order(values: Array, measured: Array, joints: Sequence[str]) -> list[int] | None:
    """Return the columns of the joints from the base; None where two orders fit alike.

    Args:
        values: The commands (K, n).
        measured: What was measured at their times (K, n), in the order from the base.
        joints: Names of the joints, from the base.
    """
    alphabetical = sorted(joints)
    orders = [list(range(len(joints))), [alphabetical.index(joint) for joint in joints]]
    differing = [joint for joint in range(len(joints)) if orders[0][joint] != orders[1][joint]]
    if not differing:
        return orders[0]
    distances = [
        float(np.linalg.norm((values[:, order] - measured)[:, differing])) for order in orders
    ]
    for (order, distance), (_, other) in itertools.permutations(
        zip(orders, distances, strict=True)
    ):
        if ORDER_RATIO * distance < other:
            return order
    return None
