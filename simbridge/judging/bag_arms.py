"""Finds which topics of a bag belong to one of several arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simbridge.errors import InputFileError
from simbridge.judging.bag_contents import ROSOUT, BagContents, BagMessage
from simbridge.quoting import quoted_list

# How the names of the topics end that drivers publish the measured joints on.
JOINT_STATES = "/joint_states"


def is_namespace(prefix: str | None) -> bool:
    """Return whether a prefix is that of topics (`/left`), not of joint names (`left_`)."""
    return prefix is not None and prefix.startswith("/")


def check_namespaces(path: str, contents: BagContents, joints: Sequence[str]) -> None:
    """Refuse a bag in which several arms, each in a namespace, have the same joint names.

    Args:
        path: The bag, for messages.
        contents: What it has.
        joints: Names of the arm's joints.

    Raises:
        InputFileError: Names the namespaces.
    """
    topics = {topic for topic, names in contents.joints if set(joints) <= set(names)}
    if JOINT_STATES in topics:
        # The driver's own topic: the others repeat it.
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
    """Remove what is not of one arm, from a bag with several, and return notes on it.

    Messages on speed scaling, modes, poses, results and commands name no joints: the topic says
    whose they are. A topic without the name of an arm is left out, unless the arm has no name.

    Args:
        contents: What the bag has.
        prefix: What the joint names of the arm begin with.
        prefixes: What those of each arm in the bag begin with.
    """
    by_topic = (contents.states, contents.poses, contents.arrays)
    in_order = (contents.results, contents.statuses, contents.logged)
    origins = {topic for messages in by_topic for topic in messages}
    origins |= {_origin(message) for messages in in_order for message in messages}
    left_out = {origin for origin in origins if _find_owner(origin, prefixes) != prefix}

    for topics in by_topic:
        _remove_topics(topics, left_out)
    for messages in in_order:
        messages[:] = [message for message in messages if _origin(message) not in left_out]

    unnamed = sorted(origin for origin in left_out if not _find_owner(origin, prefixes))
    if not unnamed:
        return ()
    return (f"not read, since nothing shows whose they are: {', '.join(unnamed)}",)


def _remove_topics(messages: dict[str, list[BagMessage]], topics: Iterable[str]) -> None:
    for topic in topics:
        messages.pop(topic, None)


def _find_owner(origin: str, prefixes: Sequence[str]) -> str:
    """Return the prefix of the arm that a topic names; "" if it names none."""
    named = [prefix for prefix in prefixes if _has_name(origin, prefix)]
    # The longest is the most specific: "left_arm_" before "left_".
    return max(named, key=len, default="")


def _origin(message: BagMessage) -> str:
    """Return the name that shows whose a message is: its topic, or who logged it."""
    return str(message.content.name) if message.kind == ROSOUT else message.topic


def _has_name(topic: str, prefix: str) -> bool:
    """Return whether a topic has the name of an arm, `left` for the prefix `left_`, in it."""
    arm = prefix.strip("_/").replace("/", "_")
    return bool(arm) and f"_{arm}_" in f"_{topic.replace('/', '_').replace('.', '_')}_"
