"""A URDF's XML elements with their lines, its links and joints, and the chain of joints that is the arm."""

from __future__ import annotations

import xml.parsers.expat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import InputFileError, suggest
from simbridge.robot.input_file import MIB, read_text
from simbridge.robot.pose import snapped
from simbridge.robot.xacro_file import expanded

if TYPE_CHECKING:
    from simbridge.robot.packages import Packages

MAX_URDF = 4 * MIB
"""Largest URDF, bytes."""
MAX_LINKS = 300
"""Links of a URDF, those attached by fixed joints included."""


@dataclass(eq=False)
class Element:
    """An XML element.

    Attributes:
        path: The file it is in.
        tag: Its name.
        attributes: As written.
        line: Where its start tag begins, from 1; None in expanded text.
        children: The elements in it, in order.
    """

    path: Path
    tag: str
    attributes: dict[str, str]
    line: int | None
    children: list[Element] = field(default_factory=list)

    def refuse(self, reason: str, name: str = "") -> NoReturn:
        """Refuse the element, or its attribute or child `name`."""
        owner = self.attributes.get("name", "")
        where = f"<{self.tag}{f' name={owner!r}' if owner else ''}>" + (f" {name}" if name else "")
        raise InputFileError(self.path, reason, line=self.line, field=where)

    def all(self, tag: str) -> Iterator[Element]:
        """The children of that name."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        """The first child of that name."""
        return next(self.all(tag), None)

    def need(self, tag: str, purpose: str = "") -> Element:
        """The first child of that name, which is required."""
        return self.first(tag) or self.refuse(f"<{tag}> is missing{f', {purpose}' if purpose else ''}")

    def text(self, name: str) -> str:
        """An attribute, which is required and must not be empty."""
        value = self.attributes.get(name)
        if value is None:
            self.refuse("this attribute is missing", name)
        return value if value.strip() else self.refuse("this attribute is empty", name)

    def numbers(self, name: str, count: int, default: Sequence[float] | None = None) -> NDArray[np.float64]:
        """An attribute of `count` finite numbers."""
        if name not in self.attributes and default is not None:
            return np.array(default, dtype=float)
        text = self.text(name)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = np.array([])
        if len(values) != count or not np.all(np.isfinite(values)):
            self.refuse(f"'{text}' is not {f'{count} finite numbers' if count > 1 else 'a finite number'}", name)
        return values

    def number(self, name: str) -> float:
        """An attribute of one finite number."""
        return float(self.numbers(name, 1)[0])

    def positive(self, name: str) -> float:
        """An attribute of one positive number."""
        value = self.number(name)
        return value if value > 0.0 else self.refuse(f"this must be positive, not {value}", name)


def read_xml(path: Path, packages: Packages) -> Element:
    """The root element of an XML file; of a xacro file as it is when expanded, with no lines.

    Raises:
        InputFileError: It cannot be read or is not well-formed; names the line.
        MissingPackage: It is a xacro file, and xacro is not installed.
    """
    text = read_text(path, MAX_URDF)
    if path.suffix.lower() != ".xacro" and "<xacro:" not in text:
        return _parsed(path, text)
    return _without_lines(_parsed(path, expanded(path, packages)))


def _without_lines(element: Element) -> Element:
    """Lines of expanded text are no lines of the file."""
    return replace(element, line=None, children=[_without_lines(part) for part in element.children])


def _parsed(path: Path, text: str) -> Element:
    parser = xml.parsers.expat.ParserCreate()
    top = Element(path, "", {}, 0)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(path, tag, attributes, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: stack.pop()
    try:
        parser.Parse(text, True)
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise InputFileError(path, f"this is not well-formed XML: {reason}", line=error.lineno) from None
    return top.children[0]


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


def axis_of(joint: Element) -> NDArray[np.float64]:
    """The direction (3,) of a joint's axis, x by default."""
    given = joint.first("axis")
    axis = given.numbers("xyz", 3) if given else np.array([1.0, 0.0, 0.0])
    return axis if np.linalg.norm(axis) > 0.0 else joint.refuse("its axis is zero", "axis")


@dataclass(frozen=True)
class Tree:
    """A URDF whose joints connect its links to one tree.

    Attributes:
        robot: The <robot> element.
        links: By name.
        joints: By name.
        below: The joints whose parent is each link.
        above: The joint whose child is each link; the root has none.
    """

    robot: Element
    links: dict[str, Element]
    joints: dict[str, Element]
    below: dict[str, list[Element]]
    above: dict[str, Element]

    def chain(self, base: str | None, tip: str | None) -> tuple[str, str, list[Element]]:
        """The names of base and tip, and the joints between them.

        Args:
            base: The link where the arm begins; base_link, else the root, by default.
            tip: The tool's link; tool0, else the only link without children, by default.
        """
        faults = [
            f"there is no link '{name}' for {flag}; {suggest(name, self.links)}"
            for flag, name in (("--base", base), ("--tip", tip))
            if name is not None and name not in self.links
        ]
        root = next(name for name in self.links if name not in self.above)
        begin = base or ("base_link" if "base_link" in self.links else root)
        ends = [name for name in self.links if not self.below[name]]
        if begin in self.links and (inside := [name for name in ends if self.path(name, begin)]):
            ends = inside
        if tip is None and "tool0" not in self.links and len(ends) > 1:
            faults.append(
                f"it is not clear where the tool is: the tree ends in {len(ends)} places ({', '.join(ends)}); choose "
                "one, or another link, with --tip LINK"
            )
        if faults:
            self.robot.refuse("; and ".join(faults))
        end = tip or ("tool0" if "tool0" in self.links else ends[0])
        joints = self.path(end, begin)
        if joints is None:
            self.robot.refuse(
                f"no chain of joints leads from '{begin}' to '{end}': choose others with --base and --tip"
            )
        return begin, end, joints

    def path(self, link: str, end: str | None) -> list[Element] | None:
        """The joints from `end` (None: from the root) down to a link; None if `end` is not an ancestor of it."""
        joints: list[Element] = []
        while link != end:
            if link not in self.above:
                return joints if end is None else None
            joints.insert(0, self.above[link])
            link = joints[0].need("parent").text("link")
        return joints

    def attached(self, link: str, moving: list[Element]) -> Iterator[tuple[Element, pin.SE3]]:
        """A link and all that is attached to it off the chain, each with its placement in the link's frame.

        Args:
            link: Its name.
            moving: The chain's movable joints, behind which the next link of the arm begins.
        """
        yield self.links[link], pin.SE3.Identity()
        for joint in self.below[link]:
            if joint not in moving:
                for further, placement in self.attached(child(joint), moving):
                    yield further, self.resting(joint) * placement

    def resting(self, joint: Element) -> pin.SE3:
        """The child's frame in the parent's, of a joint that does not move: off the chain, or fixed."""
        value = self.resting_value(joint)
        if value == 0.0:
            return origin(joint)
        axis = axis_of(joint) / np.linalg.norm(axis_of(joint)) * value
        slides = joint.text("type") == "prismatic"
        return origin(joint) * (pin.SE3(np.eye(3), axis) if slides else pin.SE3(pin.exp3(axis), np.zeros(3)))

    def resting_value(self, joint: Element, depth: int = 0) -> float:
        """Where a joint off the chain is fixed, rad or m: at zero, or at its limit that is nearest; a joint that mimics
        another, where that one brings it."""
        mimic = joint.first("mimic")
        if mimic is not None:
            leader = self.joints.get(mimic.text("joint"))
            if leader is None or depth > len(self.joints):
                mimic.refuse(f"there is no joint '{mimic.text('joint')}' that it could follow", "joint")
            multiplier, offset = (mimic.numbers(name, 1, (d,))[0] for name, d in (("multiplier", 1.0), ("offset", 0.0)))
            return float(multiplier * self.resting_value(leader, depth + 1) + offset)
        limit = joint.first("limit")
        if limit is None or joint.text("type") not in {"revolute", "prismatic"}:
            return 0.0
        low, high = (limit.numbers(name, 1, (0.0,))[0] for name in ("lower", "upper"))
        return float(min(max(0.0, low), high))


def read_tree(robot: Element) -> Tree:
    """Find every link and joint of a <robot>.

    Raises:
        InputFileError: A name is missing or used twice, a joint names a missing link, or the whole is not a tree.
    """
    links: dict[str, Element] = {}
    for link in robot.all("link"):
        if link.text("name") in links:
            link.refuse("there is another link of this name")
        links[link.text("name")] = link
    if not 0 < len(links) <= MAX_LINKS:
        robot.refuse(f"it has more than {MAX_LINKS} links" if links else "there is no <link>")
    tree = Tree(robot, links, {}, {name: [] for name in links}, {})
    for joint in robot.all("joint"):
        if joint.text("name") in tree.joints:
            joint.refuse("there is another joint of this name")
        tree.joints[joint.text("name")] = joint
        parent = joint.need("parent").text("link")
        for name in (parent, child(joint)):
            if name not in links:
                joint.refuse(f"there is no link '{name}'")
        if child(joint) in tree.above:
            joint.refuse(
                f"link '{child(joint)}' is already the child of joint '{tree.above[child(joint)].text('name')}'"
            )
        tree.above[child(joint)] = joint
        tree.below[parent].append(joint)
    _one_root(tree)
    return tree


def _one_root(tree: Tree) -> None:
    roots = [name for name in tree.links if name not in tree.above]
    if len(roots) > 1:
        tree.links[roots[1]].refuse(
            f"no joint connects it to '{roots[0]}': there are {len(roots)} roots, {', '.join(roots)}"
        )
    reached = list(roots)
    for link in reached:
        reached += [child(joint) for joint in tree.below[link]]
    loop = next((name for name in tree.links if name not in reached), None)
    if loop is not None:
        tree.above[loop].refuse(f"link '{loop}' is its own ancestor: the joints form a loop")


def axis_frame(axis: np.ndarray) -> pin.SE3:
    """A frame whose z axis is the given direction (3,); its signed permutations of x, y, z are exact."""
    z = axis / np.linalg.norm(axis)
    helper = np.array([0.0, 1.0, 0.0]) if abs(z[1]) < 0.9 else np.array([0.0, 0.0, 1.0])
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return pin.SE3(np.stack([x, np.cross(z, x), z], axis=1), np.zeros(3))
