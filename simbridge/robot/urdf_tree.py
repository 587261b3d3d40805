"""The tree of the links and joints of a URDF, and the chain through it that is the arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.errors import suggest
from simbridge.quoting import quoted, quoted_list
from simbridge.robot.file_faults import FileFaults
from simbridge.robot.pose import Array, snap_right_angles
from simbridge.robot.xml_element import Element

# Links at most, those that fixed joints attach included.
MAX_LINKS = 300


class UrdfChain(NamedTuple):
    """The joints between two links.

    Attributes:
        base: Name of the link above the first joint.
        tip: Name of the link below the last joint.
        joints: From base to tip, fixed ones included.
    """

    base: str
    tip: str
    joints: list[Element]


def read_origin(element: Element, faults: FileFaults) -> pin.SE3:
    """Return the placement that an element's <origin> states; the identity without one.

    Args:
        element: The element that has an <origin>, or none.
        faults: Where numbers that cannot be read are collected; zeros stand for them.
    """
    placement = element.find("origin")
    if placement is None:
        return pin.SE3.Identity()
    none = np.zeros(3)
    zeros = (0.0, 0.0, 0.0)
    rpy = faults.attempt(none, placement.numbers, "rpy", 3, zeros)
    xyz = faults.attempt(none, placement.numbers, "xyz", 3, zeros)
    return pin.SE3(snap_right_angles(pin.rpy.rpyToMatrix(rpy)), xyz)


def is_movable(joint: Element) -> bool:
    """Return whether a joint is not a fixed one."""
    return joint.text("type") != "fixed"


def child_link(joint: Element) -> str:
    """Return the name of the link that a joint moves."""
    return joint.require("child").text("link")


def parent_link(joint: Element) -> str:
    """Return the name of the link that carries a joint."""
    return joint.require("parent").text("link")


def read_axis(joint: Element) -> Array:
    """Return the unit vector (3,) of a joint's axis, x by default."""
    element = joint.find("axis")
    axis = element.numbers("xyz", 3) if element else np.array([1.0, 0.0, 0.0])
    length = float(np.linalg.norm(axis))
    if not length > 0.0:
        joint.refuse("its axis is zero", "axis")
    return axis / length


class Tree:
    """The links and joints of a <robot> by name, which must be one tree.

    Args:
        robot: The element <robot>.
        faults: Where faults are collected. Those of the tree itself are refused, all of them
            together; those of placements off the chain are left to the caller.

    Attributes:
        robot: The element <robot>.
        links: The links by name.
        joints: The joints by name.
        child_joints: The joints whose parent is each link.
        parent_joint: The joint whose child is each link; the root has none.

    Raises:
        InputFileError: A name is missing or used twice, a joint names a missing link, or the whole
            is not a tree.
    """

    def __init__(self, robot: Element, faults: FileFaults) -> None:
        self.robot = robot
        self._faults = faults

        self.links = _elements_by_name(robot, "link", faults)
        # With a link missing for its name, joints that name it are not at fault.
        self._knows_all_links = not faults
        self.joints = _elements_by_name(robot, "joint", faults)
        if not self.links:
            robot.refuse("there is no <link>")
        if len(self.links) > MAX_LINKS:
            robot.refuse(f"it has more than {MAX_LINKS} links")

        self.child_joints: dict[str, list[Element]] = {name: [] for name in self.links}
        self.parent_joint: dict[str, Element] = {}
        for joint in self.joints.values():
            with faults.collect():
                joint.text("type")
            with faults.collect():
                self._connect(joint)
        faults.refuse()
        self._refuse_other_graphs()

    def _connect(self, joint: Element) -> None:
        """Enter a joint between its parent and its child."""
        parent = self._faults.attempt(None, parent_link, joint)
        child = self._faults.attempt(None, child_link, joint)
        for name in (parent, child):
            if self._knows_all_links and name is not None and name not in self.links:
                with self._faults.collect():
                    joint.refuse(f"there is no link {quoted(name)}")
        if parent not in self.links or child not in self.links:
            return

        if child in self.parent_joint:
            parent_name = self.parent_joint[child].text("name")
            joint.refuse(
                f"link {quoted(child)} is already the child of joint {quoted(parent_name)}"
            )
        self.parent_joint[child] = joint
        self.child_joints[parent].append(joint)

    def _refuse_other_graphs(self) -> None:
        """Refuse several roots, and loops."""
        roots = [name for name in self.links if name not in self.parent_joint]
        if len(roots) > 1:
            self.links[roots[1]].refuse(
                f"no joint connects it to {quoted(roots[0])}: there are {len(roots)} roots, "
                f"{quoted_list(roots)}"
            )

        # The list grows while the loop goes through it, from each link to its children.
        reached = list(roots)
        for link in reached:
            reached += [child_link(joint) for joint in self.child_joints[link]]
        for name in self.links:
            if name not in reached:
                self.parent_joint[name].refuse(
                    f"link {quoted(name)} is its own ancestor: the joints form a loop"
                )

    def find_chain(self, base: str | None, tip: str | None) -> UrdfChain:
        """Find the chain of joints that is the arm.

        Args:
            base: The link where it begins; None: base_link, else the root.
            tip: The link where it ends; None: tool0, else the only link without children.

        Raises:
            InputFileError: There is no such link or chain, or it is not clear which one is meant.
        """
        faults = []
        for flag, name in (("--base", base), ("--tip", tip)):
            if name is not None and name not in self.links:
                suggestion = suggest(name, self.links)
                faults.append(f"there is no link {quoted(name)} for {flag}; {suggestion}")

        # Where the arm begins.
        root = next(name for name in self.links if name not in self.parent_joint)
        default_base = "base_link" if "base_link" in self.links else root
        begin = base or default_base

        # Where it may end.
        leaves = self._leaves(begin)
        if tip is None and "tool0" not in self.links and len(leaves) > 1:
            faults.append(
                f"it is not clear where the tool is: the tree ends in {len(leaves)} places "
                f"({', '.join(leaves)}); choose one, or another link, with --tip LINK"
            )
        if faults:
            self.robot.refuse("; and ".join(faults))

        default_tip = "tool0" if "tool0" in self.links else leaves[0]
        end = tip or default_tip
        joints = self.path(end, begin)
        if joints is None:
            self.robot.refuse(
                f"no chain of joints leads from {quoted(begin)} to {quoted(end)}: choose others "
                "with --base and --tip"
            )
        return UrdfChain(begin, end, joints)

    def _leaves(self, ancestor: str) -> list[str]:
        """Return the links without children below another one; without any, all of them."""
        leaves = [name for name in self.links if not self.child_joints[name]]
        if ancestor not in self.links:
            return leaves
        leaves_below = [name for name in leaves if self.path(name, ancestor)]
        return leaves_below or leaves

    def path(self, link: str, ancestor: str | None) -> list[Element] | None:
        """Return the joints from an ancestor down to a link.

        Args:
            link: Link at which the path ends.
            ancestor: Link at which it begins; None for the root.

        Returns:
            The joints; None if the one link is not an ancestor of the other.
        """
        joints: list[Element] = []
        while link != ancestor:
            if link not in self.parent_joint:
                return joints if ancestor is None else None
            joints.insert(0, self.parent_joint[link])
            link = parent_link(joints[0])
        return joints

    def attached_links(self, link: str, moving: list[Element]) -> Iterator[tuple[Element, pin.SE3]]:
        """Iterate over a link and all that is attached to it off the chain.

        Args:
            link: Its name.
            moving: The movable joints of the chain, behind which the arm's next link begins.

        Yields:
            A link, and its placement in the frame of the first one.
        """
        yield self.links[link], pin.SE3.Identity()
        for joint in self.child_joints[link]:
            if joint not in moving:
                joint_placement = self.rest_placement(joint)
                for further, placement in self.attached_links(child_link(joint), moving):
                    yield further, joint_placement * placement

    def rest_placement(self, joint: Element) -> pin.SE3:
        """Return the child's frame in the parent's, of a joint that does not move.

        Such a joint is off the chain, or fixed.
        """
        origin = read_origin(joint, self._faults)
        position = self._faults.attempt(0.0, self.rest_position, joint)
        if position == 0.0:
            return origin
        axis = self._faults.attempt(np.zeros(3), read_axis, joint) * position
        if joint.text("type") == "prismatic":
            return origin * pin.SE3(np.eye(3), axis)
        return origin * pin.SE3(pin.exp3(axis), np.zeros(3))

    def rest_position(self, joint: Element, depth: int = 0) -> float:
        """Return where a joint off the chain is fixed, rad or m.

        That is zero, or its limit that is nearest to it; for a joint that mimics another one, where
        that one brings it.

        Args:
            joint: The joint.
            depth: How many joints mimic each other down to this one.
        """
        mimic = joint.find("mimic")
        if mimic is not None:
            leader = self.joints.get(mimic.text("joint"))
            if leader is None or depth > len(self.joints):
                leader_name = quoted(mimic.text("joint"))
                mimic.refuse(f"there is no joint {leader_name} that it could follow", "joint")
            position = self.rest_position(leader, depth + 1)
            return mimic.number("multiplier", 1.0) * position + mimic.number("offset", 0.0)

        limit = joint.find("limit")
        if limit is None or joint.text("type") not in {"revolute", "prismatic"}:
            return 0.0
        return min(max(0.0, limit.number("lower", 0.0)), limit.number("upper", 0.0))


def _elements_by_name(robot: Element, kind: str, faults: FileFaults) -> dict[str, Element]:
    """Return the children of a kind by name.

    Args:
        robot: The element <robot>.
        kind: "link" or "joint".
        faults: Where names that are missing, or used twice, are collected.
    """
    elements: dict[str, Element] = {}
    for element in robot.find_all(kind):
        with faults.collect():
            name = element.text("name")
            if name in elements:
                element.refuse(f"there is another {kind} of this name")
            elements[name] = element
    return elements
