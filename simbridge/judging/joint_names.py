"""Finds the joints of an arm among all the joint names in a log."""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.robot.robot import UR_JOINTS, Robot


def find_arm_joints(
    path: str, names: Sequence[Sequence[str]], robot: Robot | None, prefix: str | None
) -> tuple[str, ...]:
    """Return the names of an arm's joints, as they are in a log, from the base.

    The joints of a UR arm are known by the ends of their names. If the log has none, and the user
    names no arm, the joints are those of the first list, in the order of that list.

    Args:
        path: Path of the log, for error messages.
        names: Lists of joint names in the log, those of trajectory controllers first.
        robot: The arm that the user named; None for any arm.
        prefix: Prefix of the names of the arm's joints; None for a log with one arm.

    Raises:
        InputFileError: The log has no such arm, or more than one.
    """
    prefixes = find_prefixes(names, robot)
    if prefix is not None:
        prefixes = [candidate for candidate in prefixes if candidate == prefix]
    if len(prefixes) == 1:
        return tuple(prefixes[0] + joint for joint in _list_joints(robot))

    is_any_arm = robot is None and prefix is None
    if not prefixes and is_any_arm and names:
        return tuple(names[0])
    all_names = list(dict.fromkeys(name for group in names for name in group))
    reason = _explain_refusal(all_names, prefixes, robot, prefix)
    raise InputFileError(path, reason, field="joint names")


def _explain_refusal(
    names: Sequence[str], prefixes: Sequence[str], robot: Robot | None, prefix: str | None
) -> str:
    """Return why a log has no arm that can be judged, as a clause.

    Args:
        names: All joint names in the log.
        prefixes: Prefixes of the joint names of the arms that were found.
        robot: The arm that the user named; None for any arm.
        prefix: The prefix that the user named; None without one.
    """
    if len(prefixes) > 1:
        return (
            f"it has the joints of {len(prefixes)} arms; choose one with --prefix: "
            f"{quoted_list(prefixes)}"
        )
    arm = "UR arm" if robot is None else robot.title or robot.name
    beginning = f" that begin with {quoted(prefix)}" if prefix else ""
    return f"it does not have the joints of the {arm}{beginning}; its joints: {quoted_list(names)}"


def find_prefixes(names: Sequence[Sequence[str]], robot: Robot | None) -> list[str]:
    """Return the prefix of the joint names of each arm in a log: "left_", or "" for plain names.

    Args:
        names: Lists of joint names in the log.
        robot: The arm that the user named; None for a UR arm.
    """
    joints = _list_joints(robot)
    first_joint = joints[0]
    # A dictionary keeps the order of the log.
    names_in_log = dict.fromkeys(name for group in names for name in group)
    candidates = [
        name.removesuffix(first_joint) for name in names_in_log if name.endswith(first_joint)
    ]
    return [
        prefix for prefix in candidates if all(prefix + joint in names_in_log for joint in joints)
    ]


def _list_joints(robot: Robot | None) -> tuple[str, ...]:
    """Return the names of an arm's joints without a prefix; those of a UR arm for None."""
    return UR_JOINTS if robot is None else tuple(joint.name for joint in robot.joints)
