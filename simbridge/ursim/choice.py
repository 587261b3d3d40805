"""Check the arguments of `simbridge ursim start` before a container is touched."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from simbridge.errors import InvalidParameter
from simbridge.robot.arm_models import ArmModel, find_model
from simbridge.robot.load import load_ur_arm
from simbridge.robot.robot import Robot
from simbridge.ur.polyscope_x import POLYSCOPE_X_MAJOR
from simbridge.ur.ursim_image import ursim_image

# A tag as docker accepts it, and a version at its beginning.
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
VERSION = re.compile(r"(\d+)(?:\.(\d+))?")
# The first and the last loopback address. Those before and after, 127.0.0.0 and 127.255.255.255,
# are the network's own and its broadcast address.
FIRST_LOOPBACK = ipaddress.IPv4Address("127.0.0.1")
LAST_LOOPBACK = ipaddress.IPv4Address("127.255.255.254")


@dataclass(frozen=True)
class UrsimChoice:
    """Which URSim to start, and where.

    Attributes:
        robot: The arm.
        image: UR's image with its tag.
        host: The loopback address of its ports.
    """

    robot: Robot
    image: str
    host: str


def read_choice(model: str, tag: str, host: str) -> UrsimChoice:
    """Return what the flags of `simbridge ursim start` choose.

    Args:
        model: Name of the arm, as in robots/.
        tag: The tag of the image.
        host: The address.

    Raises:
        UnknownName: There is no robot of that name.
        InvalidParameter: The model is not an arm of UR, PolyScope of this version does not drive
            it, or the address is not a loopback address.
    """
    robot = load_ur_arm(model)
    arm = find_model(robot.ur_model)
    if arm is None:
        raise InvalidParameter("model", model, "an arm of Universal Robots, such as ur10e")
    _check_tag(arm, tag)
    return UrsimChoice(robot, f"{ursim_image(robot.series)}:{tag}", _read_host(host))


def _check_tag(arm: ArmModel, tag: str) -> None:
    """Refuse a text that is not a tag, or a tag of a version that does not drive the arm."""
    if not TAG.fullmatch(tag):
        raise InvalidParameter("polyscope", tag, "a tag of UR's image, such as 5.12.6")
    if arm.oldest_polyscope is None:
        needed = "an arm that PolyScope 3 or 5 drives: URSim of PolyScope X is not supported"
        raise InvalidParameter("model", arm.name, needed)

    # A tag such as latest names no version.
    version = VERSION.match(tag)
    if version is None:
        return
    major_text, minor_text = version.groups()
    major = int(major_text)
    if major >= POLYSCOPE_X_MAJOR:
        needed = "3.x or 5.x: URSim of PolyScope X is not supported"
        raise InvalidParameter("polyscope", tag, needed)

    # Apart from PolyScope X, each arm is driven by exactly one major version: 3 for the CB-Series,
    # 5 for all later arms. A major version alone stands for its newest minor one.
    oldest_major, oldest_minor = arm.oldest_polyscope
    is_new_enough = minor_text is None or int(minor_text) >= oldest_minor
    if major != oldest_major or not is_new_enough:
        needed = (
            f"a version {oldest_major}.x from {oldest_major}.{oldest_minor} on, which drives a "
            f"{arm.name}"
        )
        raise InvalidParameter("polyscope", tag, needed)


def _read_host(host: str) -> str:
    """Return a loopback address as a dotted IPv4 address.

    Raises:
        InvalidParameter: The address is not a loopback address. At others, every computer that
            reaches the ports could move the arm.
    """
    text = "127.0.0.1" if host == "localhost" else host
    try:
        is_usable = FIRST_LOOPBACK <= ipaddress.IPv4Address(text) <= LAST_LOOPBACK
    except ValueError:
        is_usable = False
    if not is_usable:
        needed = (
            f"an address from {FIRST_LOOPBACK} to {LAST_LOOPBACK}: whoever reaches the ports can "
            "move the arm. docs/hardware.md has a command for another computer"
        )
        raise InvalidParameter("host", host, needed)
    return text
