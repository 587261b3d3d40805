"""The links and joints of a URDF, and the chain of joints that is the arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from simbridge.robot.checks import snapped
from simbridge.robot.urdf_xml import Element


def origin(element: Element) -> pin.SE3:
    """What an element's <origin> says; the identity without one."""
    given = element.first("origin")
    if given is None:
        return pin.SE3.Identity()
    zero = (0.0, 0.0, 0.0)
    return pin.SE3(snapped(pin.rpy.rpyToMatrix(given.numbers("rpy", 3, zero))), given.numbers("xyz", 3, zero))


def movable(joint: Element) -> bool:
    return joint.text("type") != "fixed"


def child(joint: Element) -> str:
    return joint.need("child").text("link")


@dataclass(frozen=True)
class Tree:
    """A URDF whose joints join its links into one tree.

    Attributes:
        robot: The <robot> element.
        links: By name.
        below: The joints that hang on each link.
        above: The joint on which each link hangs; the root hangs on none.
    """

    robot: Element
    links: dict[str, Element]
    below: dict[str, list[Element]]
    above: dict[str, Element]

    def chain(self) -> tuple[str, list[Element]]:
        """The name of the base link (base_link, else the root) and the joints from there to the tool.

        The tool is the link tool0, else the only link on which nothing hangs.
        """
        base = "base_link" if "base_link" in self.links else next(name for name in self.links if name not in self.above)
        tip = "tool0" if "tool0" in self.links else self._only_end()
        joints = self._way_up(tip, base)
        if joints is None:
            self.robot.refuse(f"no chain of joints leads from '{base}' to '{tip}'")
        for joint in self._way_up(base, None) or []:
            if movable(joint):
                joint.refuse("a movable joint before base_link, where the arm begins. Make it fixed", "type")
        return base, joints

    def _only_end(self) -> str:
        ends = [name for name in self.links if not self.below[name]]
        if len(ends) > 1:
            self.robot.refuse(
                f"the tool cannot be told: the chain ends in {len(ends)} places ({', '.join(ends)}); "
                "name the tool's link tool0, or add a link tool0 by a fixed joint"
            )
        return ends[0]

    def _way_up(self, link: str, end: str | None) -> list[Element] | None:
        """The joints from `end` (None: from the root) down to a link; None when `end` is not above it."""
        joints: list[Element] = []
        while link != end:
            if link not in self.above:
                return joints if end is None else None
            joints.insert(0, self.above[link])
            link = joints[0].need("parent").text("link")
        return joints

    def hanging(self, link: str, skip: Element | None) -> Iterator[tuple[Element, pin.SE3]]:
        """A link and all that hangs on it by fixed joints, each with its placement in the link's frame.

        Args:
            link: Its name.
            skip: The chain's next movable joint: what follows it moves by itself.
        """
        yield self.links[link], pin.SE3.Identity()
        for joint in self.below[link]:
            if joint is skip:
                continue
            if movable(joint):
                joint.refuse(
                    "a movable joint beside the chain; simbridge knows serial arms only. Make it fixed", "type"
                )
            for further, placement in self.hanging(child(joint), skip):
                yield further, origin(joint) * placement


def read_tree(robot: Element) -> Tree:
    """Find every link and joint of a <robot>.

    Raises:
        InputFileError: A name is missing or given twice, a joint joins what is not there, or the whole is no tree.
    """
    links: dict[str, Element] = {}
    for link in robot.all("link"):
        if link.text("name") in links:
            link.refuse("there is another link of this name")
        links[link.text("name")] = link
    if not links:
        robot.refuse("there is no <link>")
    tree = Tree(robot, links, {name: [] for name in links}, {})
    names = set()
    for joint in robot.all("joint"):
        if joint.text("name") in names:
            joint.refuse("there is another joint of this name")
        names.add(joint.text("name"))
        parent = joint.need("parent").text("link")
        for name in (parent, child(joint)):
            if name not in links:
                joint.refuse(f"there is no link '{name}'")
        if child(joint) in tree.above:
            joint.refuse(f"link '{child(joint)}' already hangs on joint '{tree.above[child(joint)].text('name')}'")
        tree.above[child(joint)] = joint
        tree.below[parent].append(joint)
    _one_root(tree)
    return tree


def _one_root(tree: Tree) -> None:
    roots = [name for name in tree.links if name not in tree.above]
    if len(roots) > 1:
        tree.links[roots[1]].refuse(
            f"nothing joins it to '{roots[0]}': there are {len(roots)} roots, {', '.join(roots)}"
        )
    reached = list(roots)
    for link in reached:
        reached += [child(joint) for joint in tree.below[link]]
    loop = next((name for name in tree.links if name not in reached), None)
    if loop is not None:
        tree.above[loop].refuse(f"link '{loop}' hangs on itself: the joints form a loop")


def axis_frame(axis: np.ndarray) -> pin.SE3:
    """A frame whose z axis is the given direction (3,); its signed permutations of x, y, z are exact."""
    z = axis / np.linalg.norm(axis)
    aside = np.array([0.0, 1.0, 0.0]) if abs(z[1]) < 0.9 else np.array([0.0, 0.0, 1.0])
    x = np.cross(aside, z)
    x /= np.linalg.norm(x)
    return pin.SE3(np.stack([x, np.cross(z, x), z], axis=1), np.zeros(3))
