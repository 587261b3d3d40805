"""Finds which topics of a bag belong to one of several arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simbridge.errors import InputFileError
from simbridge.judging.bag_contents import ROSOUT, BagContents, BagMessage
from simbridge.quoting import quoted_list

# End of the name of a topic on which a driver publishes the measured joints.
JOINT_STATES = "/joint_states"


def is_namespace(prefix: str | None) -> bool:
    """Return whether a prefix is that of topics (`/left`), not of joint names (`left_`)."""
    return prefix is not None and prefix.startswith("/")


def check_namespaces(path: str, contents: BagContents, joints: Sequence[str]) -> None:
    """Refuse a bag in which several arms, each in a namespace, have the same joint names.

    Args:
        path: Path of the bag, for error messages.
        contents: Messages of the bag.
        joints: Names of the arm's joints.

    Raises:
        InputFileError: Several namespaces have these joints; it names them.
    """
    topics = {topic for topic, names in contents.joints if set(joints) <= set(names)}
    if JOINT_STATES in topics:
        # The driver publishes on this topic; topics in namespaces repeat its messages.
        return

    namespaces = sorted(
        topic.removesuffix(JOINT_STATES) for topic in topics if topic.endswith(JOINT_STATES)
    )
    if len(namespaces) > 1:
        reason = (
            f"it has the same joints in {len(namespaces)} namespaces; choose one with --prefix: "
            f"{quoted_list(namespaces)}"
        )
        raise InputFileError(path, reason, field="joint states")


def leave_out_other_arms(
    contents: BagContents, prefix: str, prefixes: Sequence[str]
) -> tuple[str, ...]:
    """Remove the messages of other arms from a bag with several, and return notes on them.

    Messages on speed scaling, modes, poses, results and commands name no joints: their topic, or
    the node that logged them, shows which arm they belong to. Messages whose origin names no arm
    are removed, unless the prefix of the chosen arm is empty.

    Args:
        contents: Messages of the bag, which are changed in place.
        prefix: Prefix of the joint names of the chosen arm.
        prefixes: Prefixes of the joint names of all arms in the bag.
    """
    by_topic = (contents.states, contents.poses, contents.arrays)
    in_order = (contents.results, contents.statuses, contents.logged)

    # Origins of the messages that do not belong to the arm.
    origins = {topic for messages in by_topic for topic in messages}
    origins |= {_find_origin(message) for messages in in_order for message in messages}
    left_out = {origin for origin in origins if _find_owner(origin, prefixes) != prefix}

    for topics in by_topic:
        _remove_topics(topics, left_out)
    for messages in in_order:
        messages[:] = [message for message in messages if _find_origin(message) not in left_out]

    unnamed = sorted(origin for origin in left_out if not _find_owner(origin, prefixes))
    if not unnamed:
        return ()
    return (f"not read, since nothing shows whose they are: {', '.join(unnamed)}",)


def _remove_topics(messages: dict[str, list[BagMessage]], topics: Iterable[str]) -> None:
    """Remove topics from messages by topic, in place; topics without messages are ignored."""
    for topic in topics:
        messages.pop(topic, None)


def _find_owner(origin: str, prefixes: Sequence[str]) -> str:
    """Return the prefix of the arm that a topic names; "" if it names none."""
    matching = [prefix for prefix in prefixes if _contains_arm(origin, prefix)]
    # The longest prefix is the most specific one: "left_arm_" before "left_".
    return max(matching, key=len, default="")


def _find_origin(message: BagMessage) -> str:
    """Return where a message comes from: its topic, or the node that logged it."""
    return str(message.content.name) if message.kind == ROSOUT else message.topic


def _contains_arm(origin: str, prefix: str) -> bool:
    """Return whether the name of a topic or node contains an arm's: `left` for prefix `left_`."""
    arm = prefix.strip("_/").replace("/", "_")
    if not arm:
        return False
    # Underscores around both names make only whole words match.
    underscored = origin.replace("/", "_").replace(".", "_")
    return f"_{arm}_" in f"_{underscored}_"
