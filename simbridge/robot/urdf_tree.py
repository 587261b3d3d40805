"""The tree of the links and joints of a URDF, and the chain through it that is the arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.errors import nearest_names, suggest
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
        joints: The joints from base to tip, fixed ones included. In a file that is refused because
            no chain leads from base to tip: the joints that will most likely be on the chain once
            the file is corrected.
        is_whole: Whether the joints lead from base to tip.
    """

    base: str
    tip: str
    joints: list[Element]
    is_whole: bool


def read_origin(element: Element, faults: FileFaults) -> pin.SE3:
    """Return the placement that an element's <origin> states; the identity without one.

    Args:
        element: The element that has an <origin>, or none.
        faults: Collects numbers that cannot be read; zeros stand for them.
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
    """Return whether a joint is not a fixed one; without a type, whether it has a <limit>."""
    kind = joint.attributes.get("type")
    return kind != "fixed" if kind else joint.find("limit") is not None


def child_link(joint: Element) -> str:
    """Return the name of the link that a joint moves."""
    return joint.require("child").text("link")


def parent_link(joint: Element) -> str:
    """Return the name of the link that carries a joint."""
    return joint.require("parent").text("link")


def end_link(joint: Element, end: str) -> str | None:
    """Return the name of the link at an end of a joint; None if the file states none.

    Args:
        joint: The <joint>.
        end: "parent" or "child".
    """
    element = joint.find(end)
    return None if element is None else element.attributes.get("link")


def read_axis(joint: Element) -> Array:
    """Return the unit vector (3,) of a joint's axis, x by default."""
    element = joint.find("axis")
    axis = element.numbers("xyz", 3) if element else np.array([1.0, 0.0, 0.0])
    length = float(np.linalg.norm(axis))
    if not length > 0.0:
        joint.refuse("its axis is zero", "axis")
    return axis / length


class Tree:
    """The links and joints of a <robot>, which must be one tree.

    In a file whose joints form no tree, the joints that connect nothing are set aside, so that the
    rest can be read and everything that is wrong in it is reported together.

    Args:
        robot: The element <robot>.
        faults: Collects everything that is wrong.

    Attributes:
        robot: The element <robot>.
        links: The links by name. Of several links with one name, this is the first.
        joints: The joints by name. Of several joints with one name, this is the first.
        child_joints: The joints whose parent is each link.
        parent_joint: The joint whose child is each link; a root has none.
        loose_joints: The joints that are not in the tree: one of their ends is missing or unknown,
            their child has another parent already, or they close a loop.

    Raises:
        InputFileError: There is no link, or there are too many.
    """

    def __init__(self, robot: Element, faults: FileFaults) -> None:
        self.robot = robot
        self._faults = faults

        self.links = _elements_by_name(robot, "link", faults)
        self.joints = _elements_by_name(robot, "joint", faults)
        if not self.links:
            robot.refuse("there is no <link>")
        if len(self.links) > MAX_LINKS:
            robot.refuse(f"it has more than {MAX_LINKS} links")

        self.child_joints: dict[str, list[Element]] = {name: [] for name in self.links}
        self.parent_joint: dict[str, Element] = {}
        self.loose_joints: list[Element] = []
        # The first joint that names each link as its child, whatever its parent is.
        self._first_joint: dict[str, Element] = {}
        for joint in robot.find_all("joint"):
            with faults.collect():
                joint.text("type")
            self._connect(joint)
        self._open_loops()
        self._collect_loose_joints()
        self._collect_roots()
        # Whether every <link> of the file hangs below one root.
        is_complete = len(self.links) == len(list(robot.find_all("link")))
        self._is_one_tree = is_complete and not self.loose_joints and len(self._roots()) == 1

    def _connect(self, joint: Element) -> None:
        """Enter a joint between its parent and its child, or set it aside."""
        parent = end_link(joint, "parent")
        child = end_link(joint, "child")
        if child in self.links:
            self._first_joint.setdefault(child, joint)
        if parent not in self.links or child not in self.links or self._has_other_parent(joint):
            self.loose_joints.append(joint)
            return
        self.parent_joint[child] = joint
        self.child_joints[parent].append(joint)

    def _open_loops(self) -> None:
        """Collect every loop of joints as a fault, and set one of its joints aside."""
        for name in self.links:
            link = name
            visited = [name]
            while link in self.parent_joint:
                joint = self.parent_joint[link]
                link = parent_link(joint)
                if link == name:
                    self._open_loop(visited)
                    break
                if link in visited:
                    # The loop is above this link, and is opened at a link that is in it.
                    break
                visited.append(link)

    def _open_loop(self, loop: list[str]) -> None:
        """Collect a loop as a fault, and set the joint above its first link aside.

        Args:
            loop: Names of its links, each the child of the next one.
        """
        link = loop[0]
        joint = self.parent_joint.pop(link)
        self.child_joints[parent_link(joint)].remove(joint)
        self.loose_joints.append(joint)
        path = f" ({', '.join(loop)})" if len(loop) > 1 else ""
        with self._faults.collect():
            joint.refuse(f"link {quoted(link)} is its own ancestor: the joints form a loop{path}")

    def _collect_loose_joints(self) -> None:
        """Collect the faults of the ends of joints that connect nothing."""
        # A link without a joint above it is most likely the one that such a joint was to move.
        orphans = self._roots()[1:]
        hint = f"; no joint leads to {quoted_list(orphans)}" if orphans else ""

        for joint in self.loose_joints:
            for end in ("parent", "child"):
                with self._faults.collect():
                    self._check_end(joint, end, hint if end == "child" else "")
            if self._has_other_parent(joint):
                child = child_link(joint)
                first_joint = self._first_joint[child].name
                with self._faults.collect():
                    joint.refuse(
                        f"link {quoted(child)} is already the child of joint "
                        f"{quoted(first_joint)}{hint}"
                    )

    def _has_other_parent(self, joint: Element) -> bool:
        """Return whether the child of a joint is that of an earlier joint already."""
        first_joint = self._first_joint.get(end_link(joint, "child") or "")
        return first_joint is not None and first_joint is not joint

    def _check_end(self, joint: Element, end: str, hint: str) -> None:
        """Refuse a joint whose parent or child is missing, or is not a link.

        Args:
            joint: The <joint>.
            end: "parent" or "child".
            hint: A clause that is added to the reason, or "".
        """
        element = joint.find(end)
        if element is None:
            joint.refuse(f"<{end}> is missing{hint}")
        link = element.text("link")
        if link not in self.links:
            near = nearest_names(link, self.links)
            question = f" (did you mean {quoted(near[0])}?)" if near else ""
            joint.refuse(f"there is no link {quoted(link)}{question}{hint}")

    def _roots(self) -> list[str]:
        """Return the links that are the child of no joint, that above base_link first."""
        roots = [name for name in self.links if name not in self._first_joint]
        base_top = self._top("base_link") if "base_link" in self.links else None
        roots.sort(key=lambda name: name != base_top)
        return roots

    def _collect_roots(self) -> None:
        """Collect several roots as a fault, unless a joint without its child explains them."""
        roots = self._roots()
        unexplained = len(roots) - 1
        for joint in self.loose_joints:
            if end_link(joint, "child") not in self.links or self._has_other_parent(joint):
                unexplained -= 1
        if unexplained > 0:
            with self._faults.collect():
                self.links[roots[1]].refuse(
                    f"no joint connects it to {quoted(roots[0])}: there are {len(roots)} roots, "
                    f"{quoted_list(roots)}"
                )

    def find_chain(self, base: str | None, tip: str | None) -> UrdfChain:
        """Find the chain of joints that is the arm; what is unclear about it is a fault.

        Args:
            base: The link where it begins; None: base_link, else the root.
            tip: The link where it ends; None: tool0, else the only link without children.
        """
        for flag, name in (("--base", base), ("--tip", tip)):
            if name is not None and name not in self.links:
                suggestion = suggest(name, self.links)
                with self._faults.collect():
                    self.robot.refuse(f"there is no link {quoted(name)} for {flag}; {suggestion}")

        begin = self._find_base(base)
        end = self._find_tip(tip, begin)
        joints = None if end is None else self.path(end, begin)
        # If a link is missing or the joints form a loop, there may be no root. Then `begin` is the
        # child of a joint, and only stands in for the link where the arm begins, unless the user
        # named it or it is base_link.
        is_substitute = begin not in {base, "base_link"} and begin in self._first_joint
        if end is not None and joints is not None and not is_substitute:
            return UrdfChain(begin, end, joints, is_whole=True)

        # There are faults already: joints that are not connected, or an unclear tip.
        if not self._is_one_tree or end is None:
            return UrdfChain(begin, end or begin, self._likely_chain(begin, end), is_whole=False)

        # The file is a tree in which the tip is on another branch than the base.
        with self._faults.collect():
            self.robot.refuse(
                f"no chain of joints leads from {quoted(begin)} to {quoted(end)}: choose other "
                "links with --base and --tip"
            )
        return UrdfChain(begin, end, [], is_whole=False)

    def _find_base(self, base: str | None) -> str:
        """Return the link where the arm begins; see `find_chain`."""
        if base in self.links:
            return base
        if "base_link" in self.links:
            return "base_link"
        tops = (name for name in self.links if name not in self.parent_joint)
        return next(iter(self._roots()), next(tops))

    def _find_tip(self, tip: str | None, begin: str) -> str | None:
        """Return the link where the arm ends; None, with a fault, where that is unclear.

        Args:
            tip: The link that the user names; None for the default one.
            begin: The link where the arm begins.
        """
        if tip in self.links:
            return tip
        if "tool0" in self.links:
            return "tool0"

        ends = self._ends(begin)
        if len(ends) == 1:
            return ends[0]
        # An end may still be attached, or be named tool0, when other faults are corrected.
        names_tool0 = any(end_link(joint, "child") == "tool0" for joint in self.loose_joints)
        if len(ends) > 1 and tip is None and not names_tool0:
            with self._faults.collect():
                self.robot.refuse(
                    f"it is not clear where the tool is: the tree ends in {len(ends)} places "
                    f"({', '.join(ends)}); choose one, or another link, with --tip LINK"
                )
        return None

    def _ends(self, begin: str) -> list[str]:
        """Return the links without children where the arm may end.

        They are below the link where the arm begins. Where joints that connect nothing separate
        the tree, they are in the parts that it does not reach; in a tree of which nothing is below
        that link, anywhere.
        """
        parents = {end_link(joint, "parent") for joint in self.loose_joints}
        ends = [name for name in self.links if not self.child_joints[name] and name not in parents]
        if not self._is_one_tree:
            ends_elsewhere = [name for name in ends if self._top(name) != self._top(begin)]
            if ends_elsewhere:
                return ends_elsewhere
        ends_below = [name for name in ends if self.path(name, begin)]
        return ends_below or ends

    def _likely_chain(self, begin: str, end: str | None) -> list[Element]:
        """Return the joints that belong to the chain of an arm, although it is interrupted.

        They are those above its tip; those below its base, and below the top of each separate
        part, as far as these do not branch; and the movable joints that connect nothing, except
        those at links from which the tip is reached already.

        Args:
            begin: The link where the arm begins.
            end: The link where it ends, if that is known.
        """
        joints = self._stem(begin)
        if self._is_one_tree:
            return joints

        above_end = [] if end is None else self.path(end, None) or []
        joints += above_end
        end_top = None if end is None else self._top(end)
        for top in self.separate_parts(begin):
            if top != end_top:
                joints += self._stem(top)

        links_above_end = {end, *(parent_link(joint) for joint in above_end)}
        for joint in self.loose_joints:
            if is_movable(joint) and end_link(joint, "parent") not in links_above_end:
                joints.append(joint)
        return list(dict.fromkeys(joints))

    def _stem(self, link: str) -> list[Element]:
        """Return the joints below a link, up to where two ways lead to joints that move."""
        joints: list[Element] = []
        branches = self._moving_branches(link)
        while len(branches) == 1:
            joints.append(branches[0])
            branches = self._moving_branches(child_link(branches[0]))
        return joints

    def _moving_branches(self, link: str) -> list[Element]:
        """Return the joints at a link that move, or that carry a joint that moves."""
        branches = []
        for joint in self.child_joints[link]:
            if is_movable(joint) or self._moving_branches(child_link(joint)):
                branches.append(joint)
        return branches

    def may_carry_more(self, link: str) -> bool:
        """Return whether a fixed joint that connects nothing may attach a mass to a link."""
        for joint in self.loose_joints:
            parent = end_link(joint, "parent")
            is_at_link = parent not in self.links or self.path(parent, link) is not None
            if is_movable(joint) or not is_at_link or self._has_other_parent(joint):
                continue
            child = end_link(joint, "child")
            if child not in self.links or self._has_mass(child):
                return True
        return False

    def _has_mass(self, link: str) -> bool:
        """Return whether a link, or one below it, has an <inertial>."""
        if self.links[link].find("inertial") is not None:
            return True
        return any(self._has_mass(child_link(joint)) for joint in self.child_joints[link])

    def separate_parts(self, base: str) -> list[str]:
        """Return the uppermost link of each part of a broken tree that lacks the base.

        Args:
            base: The link where the arm begins.
        """
        base_top = self._top(base)
        return [name for name in self.links if name not in self.parent_joint and name != base_top]

    def _top(self, link: str) -> str:
        """Return the uppermost link above a link."""
        while link in self.parent_joint:
            link = parent_link(self.parent_joint[link])
        return link

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
            link: Name of the link.
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
        position = self.rest_position(joint)
        if position == 0.0:
            return origin
        axis = self._faults.attempt(np.zeros(3), read_axis, joint) * position
        if joint.attributes.get("type") == "prismatic":
            return origin * pin.SE3(np.eye(3), axis)
        return origin * pin.SE3(pin.exp3(axis), np.zeros(3))

    def rest_position(self, joint: Element, depth: int = 0) -> float:
        """Return where a joint off the chain is fixed, rad or m.

        That is zero, or its limit that is nearest to it; for a joint that mimics another one, where
        that one brings it. Numbers that cannot be read are faults.

        Args:
            joint: The joint.
            depth: How many joints mimic each other down to this one.
        """
        attempt = self._faults.attempt
        mimic = joint.find("mimic")
        if mimic is not None:
            multiplier = attempt(1.0, mimic.number, "multiplier", 1.0)
            offset = attempt(0.0, mimic.number, "offset", 0.0)
            leader = attempt(None, self._find_leader, mimic, depth)
            if leader is None:
                return 0.0
            return multiplier * self.rest_position(leader, depth + 1) + offset

        limit = joint.find("limit")
        if limit is None or joint.attributes.get("type") not in {"revolute", "prismatic"}:
            return 0.0
        lower = attempt(0.0, limit.number, "lower", 0.0)
        upper = attempt(0.0, limit.number, "upper", 0.0)
        return min(max(0.0, lower), upper)

    def _find_leader(self, mimic: Element, depth: int) -> Element:
        """Return the joint that a <mimic> follows.

        Args:
            mimic: The <mimic>.
            depth: How many joints mimic each other down to this one; more than there are joints
                follow each other in a circle.
        """
        name = mimic.text("joint")
        leader = self.joints.get(name)
        if leader is None or depth > len(self.joints):
            mimic.refuse(f"the joint {quoted(name)} that it should follow does not exist", "joint")
        return leader


def _elements_by_name(robot: Element, kind: str, faults: FileFaults) -> dict[str, Element]:
    """Return the children of a kind by name.

    Args:
        robot: The element <robot>.
        kind: "link" or "joint".
        faults: Collects names that are missing, or used twice.
    """
    elements: dict[str, Element] = {}
    for element in robot.find_all(kind):
        with faults.collect():
            name = element.text("name")
            if name in elements:
                element.refuse(f"there is another {kind} with this name")
            elements[name] = element
    return elements
