"""A URDF or xacro file as elements with their lines, its packages, and the tree of its links and joints."""

from __future__ import annotations

import xml.parsers.expat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError, suggest
from simbridge.files.reading import MIB, read_text
from simbridge.quoting import quoted, quoted_list
from simbridge.robot.packages import Packages
from simbridge.robot.pose import Array, snapped
from simbridge.robot.xacro_file import expand_xacro

MAX_URDF = 4 * MIB  # bytes
# Those attached by fixed joints included.
MAX_LINKS = 300


@dataclass(eq=False)
class Element:
    """An XML element of the file at `path`; the line of its start tag is None in text that xacro expanded."""

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
        return self.first(tag) or self.refuse(
            f"<{tag}> is missing{f', {purpose}' if purpose else ''}"
        )

    def text(self, name: str) -> str:
        """An attribute, which is required and must not be empty."""
        value = self.attributes.get(name)
        if value is None:
            self.refuse("this attribute is missing", name)
        return value if value.strip() else self.refuse("this attribute is empty", name)

    def numbers(self, name: str, count: int, default: Sequence[float] | None = None) -> Array:
        """An attribute of `count` finite numbers."""
        if name not in self.attributes and default is not None:
            return np.array(default, dtype=float)
        text = self.text(name)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = np.array([])
        if len(values) != count or not np.all(np.isfinite(values)):
            self.refuse(
                f"{quoted(text)} is not {f'{count} finite numbers' if count > 1 else 'a finite number'}",
                name,
            )
        return values

    def number(self, name: str, default: float | None = None) -> float:
        """An attribute of one finite number."""
        return float(self.numbers(name, 1, None if default is None else (default,))[0])

    def positive(self, name: str) -> float:
        """An attribute of one positive number."""
        value = self.number(name)
        return value if value > 0.0 else self.refuse(f"this must be positive, not {value}", name)


def read_xml(path: Path, packages: Packages) -> Element:
    """The root element of an XML file; of a xacro file as it is when expanded, with no lines."""
    text = read_text(path, MAX_URDF)
    is_xacro = path.suffix.lower() == ".xacro" or "<xacro:" in text
    parser = xml.parsers.expat.ParserCreate()
    top = Element(path, "", {}, 0)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(path, tag, attributes, None if is_xacro else parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    def refuse_entity(name: str, *_declaration: object) -> None:
        # Entities of entities of ten entities each are thousands of millions of characters.
        reason = f"entities are not read; write out what &{name}; stands for"
        raise InputFileError(path, reason, line=None if is_xacro else parser.CurrentLineNumber)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: stack.pop()
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(expand_xacro(path, text, packages) if is_xacro else text, True)
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise InputFileError(
            path, f"this is not well-formed XML: {reason}", line=error.lineno
        ) from None
    return top.children[0]


def origin(element: Element) -> pin.SE3:
    """What an element's <origin> says; the identity without one."""
    given = element.first("origin")
    if given is None:
        return pin.SE3.Identity()
    zero = (0.0, 0.0, 0.0)
    return pin.SE3(
        snapped(pin.rpy.rpyToMatrix(given.numbers("rpy", 3, zero))), given.numbers("xyz", 3, zero)
    )


def movable(joint: Element) -> bool:
    return joint.text("type") != "fixed"


def child(joint: Element) -> str:
    return joint.need("child").text("link")


def axis_of(joint: Element) -> Array:
    """The unit vector (3,) of a joint's axis, x by default."""
    given = joint.first("axis")
    axis = given.numbers("xyz", 3) if given else np.array([1.0, 0.0, 0.0])
    length = float(np.linalg.norm(axis))
    return axis / length if length > 0.0 else joint.refuse("its axis is zero", "axis")


class Tree:
    """The links and joints of a <robot> by name, which must be one tree.

    Attributes:
        below: The joints whose parent is each link.
        above: The joint whose child is each link; the root has none.

    Raises:
        InputFileError: A name is missing or used twice, a joint names a missing link, or the whole is not a tree.
    """

    def __init__(self, robot: Element) -> None:
        self.robot = robot
        self.links: dict[str, Element] = {}
        self.joints: dict[str, Element] = {}
        for kind, known in (("link", self.links), ("joint", self.joints)):
            for element in robot.all(kind):
                if element.text("name") in known:
                    element.refuse(f"there is another {kind} of this name")
                known[element.text("name")] = element
        if not 0 < len(self.links) <= MAX_LINKS:
            robot.refuse(
                f"it has more than {MAX_LINKS} links" if self.links else "there is no <link>"
            )
        self.below: dict[str, list[Element]] = {name: [] for name in self.links}
        self.above: dict[str, Element] = {}
        for joint in self.joints.values():
            parent, end = joint.need("parent").text("link"), child(joint)
            for name in (parent, end):
                if name not in self.links:
                    joint.refuse(f"there is no link {quoted(name)}")
            if end in self.above:
                joint.refuse(
                    f"link {quoted(end)} is already the child of joint {quoted(self.above[end].text('name'))}"
                )
            self.above[end] = joint
            self.below[parent].append(joint)
        roots = [name for name in self.links if name not in self.above]
        if len(roots) > 1:
            reason = f"no joint connects it to {quoted(roots[0])}: there are {len(roots)} roots, {quoted_list(roots)}"
            self.links[roots[1]].refuse(reason)
        reached = list(roots)
        for link in reached:
            reached += [child(joint) for joint in self.below[link]]
        loop = next((name for name in self.links if name not in reached), None)
        if loop is not None:
            self.above[loop].refuse(
                f"link {quoted(loop)} is its own ancestor: the joints form a loop"
            )

    def chain(self, base: str | None, tip: str | None) -> tuple[str, str, list[Element]]:
        """The names of base and tip, and the joints between them; both by default as `read_urdf` says."""
        faults = [
            f"there is no link {quoted(name)} for {flag}; {suggest(name, self.links)}"
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
            reason = (
                f"no chain of joints leads from {quoted(begin)} to {quoted(end)}: choose others "
                "with --base and --tip"
            )
            self.robot.refuse(reason)
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

        Behind the joints `moving`, the chain's movable ones, the next link of the arm begins.
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
        axis = axis_of(joint) * value
        slides = joint.text("type") == "prismatic"
        return origin(joint) * (
            pin.SE3(np.eye(3), axis) if slides else pin.SE3(pin.exp3(axis), np.zeros(3))
        )

    def resting_value(self, joint: Element, depth: int = 0) -> float:
        """Where a joint off the chain is fixed, rad or m: at zero, or at its limit that is nearest; a joint that mimics
        another, where that one brings it."""
        mimic = joint.first("mimic")
        if mimic is not None:
            leader = self.joints.get(mimic.text("joint"))
            if leader is None or depth > len(self.joints):
                mimic.refuse(
                    f"there is no joint {quoted(mimic.text('joint'))} that it could follow", "joint"
                )
            value = self.resting_value(leader, depth + 1)
            return mimic.number("multiplier", 1.0) * value + mimic.number("offset", 0.0)
        limit = joint.first("limit")
        if limit is None or joint.text("type") not in {"revolute", "prismatic"}:
            return 0.0
        return min(max(0.0, limit.number("lower", 0.0)), limit.number("upper", 0.0))
