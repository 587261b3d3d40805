"""The joints of the arm that a log is of, among all the names in it."""

from __future__ import annotations

from collections.abc import Sequence

from simbridge.errors import InputFileError
from simbridge.quoting import quoted, quoted_list
from simbridge.robot.robot import UR_JOINTS, Robot


def find_arm_joints(
    path: str, names: Sequence[Sequence[str]], robot: Robot | None, prefix: str | None
) -> tuple[str, ...]:
    """Return the names of an arm's joints, as they are in a log, from the base.

    A UR arm's joints are known by the ends of their names. Of another arm that the user does not
    name, a controller's own list of joints decides, which is what `names` begins with.

    Args:
        path: The log, for messages.
        names: The lists of joints in it, those of trajectory controllers first.
        robot: The arm that the user named; None to find it.
        prefix: What the names of its joints begin with; None where the log has one arm.

    Raises:
        InputFileError: There is no such arm, or more than one.
    """
    joints = _arm_joints(robot)
    every = list(dict.fromkeys(name for group in names for name in group))
    prefixes = find_prefixes(names, robot)
    if prefix is not None:
        prefixes = [known for known in prefixes if known == prefix]

    if len(prefixes) == 1:
        return tuple(prefixes[0] + joint for joint in joints)
    is_any_arm = robot is None and prefix is None
    if not prefixes and is_any_arm and names:
        return tuple(names[0])
    raise InputFileError(path, _refusal(every, prefixes, robot, prefix), field="joint names")


def _refusal(
    names: Sequence[str], prefixes: Sequence[str], robot: Robot | None, prefix: str | None
) -> str:
    """Return why no arm, or not only one, has all its joints among names."""
    if len(prefixes) > 1:
        return (
            f"it has the joints of {len(prefixes)} arms; choose one with --prefix: "
            f"{quoted_list(prefixes)}"
        )
    arm = "UR arm" if robot is None else robot.title or robot.name
    begins = f" that begin with {quoted(prefix)}" if prefix else ""
    return f"it does not have the joints of the {arm}{begins}; its joints: {quoted_list(names)}"


def find_prefixes(names: Sequence[Sequence[str]], robot: Robot | None) -> list[str]:
    """Return what comes before the names of the joints of each arm in a log.

    Args:
        names: The lists of joints in it.
        robot: The arm that the user named; None for a UR arm.
    """
    joints = _arm_joints(robot)
    first = joints[0]
    known = dict.fromkeys(name for group in names for name in group)
    candidates = [name.removesuffix(first) for name in known if name.endswith(first)]
    return [prefix for prefix in candidates if all(prefix + joint in known for joint in joints)]


def _arm_joints(robot: Robot | None) -> tuple[str, ...]:
    """Return the names of an arm's joints without a prefix; those of a UR arm for None."""
    return UR_JOINTS if robot is None else tuple(joint.name for joint in robot.joints)
