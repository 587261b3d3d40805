"""Read a serial arm from a user's URDF; every complaint names the element and its line.

The chain runs from the link base_link (else the root) to the link tool0 (else the only end). Links that hang on by fixed
joints add their mass and shapes to the link they hang on. Meshes are not read: they show in no picture and take part in
no collision check; boxes count as the capsule that encloses them.
"""

from __future__ import annotations

import xml.parsers.expat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError
from simbridge.robot.load import read_text
from simbridge.robot.robot import Joint, Link, Robot, Shape
from simbridge.robot.toml_reader import check_home, snapped

# A URDF names no controller: the longest common control period of UR's arms, overridden by --period.
DEFAULT_PERIOD = 0.008


@dataclass
class _Element:
    """An XML element that remembers its line."""

    path: Path
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[_Element] = field(default_factory=list)

    def refuse(self, reason: str, name: str = "") -> NoReturn:
        owner = self.attributes.get("name", "")
        where = f'<{self.tag}{f" name={owner!r}" if owner else ""}>' + (f" {name}" if name else "")
        raise InputFileError(self.path, reason, line=self.line, field=where)

    def all(self, tag: str) -> Iterator[_Element]:
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> _Element | None:
        return next(self.all(tag), None)

    def need(self, tag: str) -> _Element:
        return self.first(tag) or self.refuse(f"it lacks <{tag}>")

    def text(self, name: str) -> str:
        return self.attributes[name] if name in self.attributes else self.refuse("it lacks this attribute", name)

    def numbers(self, name: str, count: int, default: Sequence[float] | None = None) -> np.ndarray:
        if name not in self.attributes and default is not None:
            return np.array(default, dtype=float)
        text = self.text(name)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            self.refuse(f"'{text}' is not {count} numbers", name)
        if len(values) != count or not np.all(np.isfinite(values)):
            self.refuse(f"'{text}' is not {count} finite numbers", name)
        return values

    def number(self, name: str) -> float:
        return float(self.numbers(name, 1)[0])


def _parse(path: Path) -> _Element:
    parser = xml.parsers.expat.ParserCreate()
    top = _Element(path, "", {}, 0)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Element(path, tag, attributes, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: stack.pop()
    try:
        parser.Parse(read_text(path), True)
    except xml.parsers.expat.ExpatError as error:
        reason = xml.parsers.expat.ErrorString(error.code)
        raise InputFileError(path, f"this is not well-formed XML: {reason}", line=error.lineno) from None
    robot = top.children[0]
    if robot.tag != "robot":
        robot.refuse("a URDF begins with <robot>")
    return robot


def _origin(element: _Element) -> pin.SE3:
    origin = element.first("origin")
    if origin is None:
        return pin.SE3.Identity()
    zero = (0.0, 0.0, 0.0)
    rpy = origin.numbers("rpy", 3, zero)
    return pin.SE3(snapped(pin.rpy.rpyToMatrix(rpy)), origin.numbers("xyz", 3, zero))


def _inertia(link: _Element) -> pin.Inertia:
    inertial = link.first("inertial")
    if inertial is None:
        return pin.Inertia.Zero()
    mass = inertial.need("mass").number("value")
    tensor = inertial.need("inertia")
    xx, xy, xz, yy, yz, zz = (tensor.number(f"i{pair}") for pair in ("xx", "xy", "xz", "yy", "yz", "zz"))
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass < 0.0:
        inertial.need("mass").refuse(f"a mass of {mass} kg", "value")
    if np.linalg.eigvalsh(matrix)[0] < 0.0:
        tensor.refuse("the inertia tensor has a negative principal moment")
    origin = _origin(inertial)
    return pin.Inertia(mass, origin.translation, origin.rotation @ matrix @ origin.rotation.T)


def _shapes(link: _Element, placement: pin.SE3) -> Iterator[Shape]:
    for element in link.all("collision") if link.first("collision") else link.all("visual"):
        at = placement * _origin(element)
        geometry = element.need("geometry")
        for shape in geometry.children:
            if shape.tag == "cylinder":
                axis = np.array([0.0, 0.0, 0.5 * shape.number("length")])
                kind, radius = "cylinder", shape.number("radius")
            elif shape.tag in {"sphere", "capsule"}:
                length = shape.number("length") if shape.tag == "capsule" else 0.0
                kind, axis, radius = "capsule", np.array([0.0, 0.0, 0.5 * length]), shape.number("radius")
            elif shape.tag == "box":
                size = shape.numbers("size", 3)
                longest = int(np.argmax(size))
                axis = np.eye(3)[longest] * 0.5 * size[longest]
                kind, radius = "capsule", float(0.5 * np.hypot(*np.delete(size, longest)))
            else:
                continue
            if radius <= 0.0:
                shape.refuse("its size must be positive")
            ends = (tuple(float(v) for v in at.act(end)) for end in (-axis, axis))
            yield Shape(kind, next(ends), next(ends), radius)  # type: ignore[arg-type]


@dataclass
class _Tree:
    links: dict[str, _Element]
    below: dict[str, list[_Element]]
    above: dict[str, _Element]


def _tree(robot: _Element) -> _Tree:
    links: dict[str, _Element] = {}
    for link in robot.all("link"):
        if link.text("name") in links:
            link.refuse("there is another link of this name")
        links[link.text("name")] = link
    if not links:
        robot.refuse("there is no <link>")
    tree = _Tree(links, {name: [] for name in links}, {})
    for joint in robot.all("joint"):
        joint.text("name")
        ends = [joint.need(end).text("link") for end in ("parent", "child")]
        for end in ends:
            if end not in links:
                joint.refuse(f"there is no link '{end}'")
        if ends[1] in tree.above:
            joint.refuse(f"link '{ends[1]}' already hangs on joint '{tree.above[ends[1]].text('name')}'")
        tree.above[ends[1]] = joint
        tree.below[ends[0]].append(joint)
    return tree


def _chain(robot: _Element, tree: _Tree) -> tuple[str, list[_Element]]:
    """The base link's name and the joints from there to the tip."""
    roots = [name for name in tree.links if name not in tree.above]
    base = "base_link" if "base_link" in tree.links else roots[0] if len(roots) == 1 else None
    if base is None:
        robot.refuse(f"it has no link base_link and {len(roots)} roots ({', '.join(roots) or 'a loop'})")
    ends = [name for name in tree.links if not tree.below[name]]
    tip = "tool0" if "tool0" in tree.links else ends[0] if len(ends) == 1 else None
    if tip is None:
        robot.refuse(
            f"the tool cannot be told: the chain ends in {len(ends)} places ({', '.join(ends)}); "
            "name the tool's link tool0, or add a link tool0 by a fixed joint"
        )
    joints, link = [], tip
    while link != base:
        if link not in tree.above or len(joints) > len(tree.links):
            robot.refuse(f"there is no chain of joints from '{base}' to '{tip}'")
        joints.insert(0, tree.above[link])
        link = joints[0].need("parent").text("link")
    return base, joints


def _limits(joint: _Element, continuous: bool) -> tuple[float, float, float, float]:
    limit = joint.need("limit")
    low, high = (-np.inf, np.inf) if continuous else (limit.number("lower"), limit.number("upper"))
    velocity, effort = limit.number("velocity"), limit.number("effort")
    if not low < high:
        limit.refuse(f"the lower limit {low} is not below the upper limit {high}", "lower")
    for name, value in (("velocity", velocity), ("effort", effort)):
        if value <= 0.0:
            limit.refuse(f"a limit of {value} lets the joint '{joint.text('name')}' never move", name)
    return low, high, velocity, effort


def _hanging(tree: _Tree, link: str, placement: pin.SE3, skip: _Element | None) -> Iterator[tuple[_Element, pin.SE3]]:
    """A link and all that hangs on it by fixed joints, but for what follows the chain's next joint."""
    yield tree.links[link], placement
    for joint in tree.below[link]:
        if joint is skip:
            continue
        if joint.text("type") != "fixed":
            joint.refuse("a movable joint beside the chain; simbridge knows serial arms only. Make it fixed", "type")
        yield from _hanging(tree, joint.need("child").text("link"), placement * _origin(joint), skip)


def read_urdf(path: Path, *, home: Sequence[float] | None = None) -> Robot:
    """Read one arm.

    Raises:
        InputFileError: Names the element and the line at fault.
    """
    top = _parse(path)
    tree = _tree(top)
    base, elements = _chain(top, tree)
    movable = [joint for joint in elements if joint.text("type") != "fixed"]
    if not movable:
        top.refuse("its chain has no movable joint")
    joints: list[Joint] = []
    links: list[Link] = []
    base_shapes: tuple[Shape, ...] = ()
    owner, placement = base, pin.SE3.Identity()
    remaining = list(elements)
    while True:
        # All up to the next movable joint moves as one body.
        skip = next((joint for joint in remaining if joint.text("type") != "fixed"), None)
        inertia, shapes = pin.Inertia.Zero(), []
        for link, at in _hanging(tree, owner, placement, skip):
            inertia += at.act(_inertia(link))
            shapes += list(_shapes(link, at))
        while remaining and remaining[0] is not skip:
            placement = placement * _origin(remaining.pop(0))
        if joints:
            if inertia.mass <= 0.0:
                tree.links[owner].refuse("a link that moves needs a mass: add <inertial>")
            links.append(Link(owner, pin.SE3.Identity(), inertia, tuple(shapes)))
        else:
            base_shapes = tuple(shapes)
        if skip is None:
            break
        remaining.pop(0)
        placement, joint = _joint(skip, placement)
        joints.append(joint)
        owner = skip.need("child").text("link")
    low, high = [j.position_min for j in joints], [j.position_max for j in joints]
    if home is None:
        home = [0.5 * (a + b) if np.isfinite(a + b) else min(max(0.0, a), b) for a, b in zip(low, high, strict=True)]
    check_home(path, home, low, high)
    q = np.array(home, dtype=float)
    q.setflags(write=False)
    return Robot(
        name=path.stem,
        title=top.attributes.get("name", path.stem),
        series="",
        period=DEFAULT_PERIOD,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=base_shapes,
        tool0=placement,
        home=q,
        source=path.resolve(),
    )


def _joint(element: _Element, before: pin.SE3) -> tuple[pin.SE3, Joint]:
    """The joint with its axis turned to z, and where that leaves the link's frame in the joint's."""
    kind = element.text("type")
    if kind not in {"revolute", "continuous", "prismatic"}:
        element.refuse(f"a joint of type '{kind}'; known are revolute, continuous, prismatic and fixed", "type")
    if element.first("mimic") is not None:
        element.refuse("a joint that mimics another; simbridge knows serial arms only", "mimic")
    given = element.first("axis")
    axis = given.numbers("xyz", 3) if given else np.array([1.0, 0.0, 0.0])
    if np.linalg.norm(axis) == 0.0:
        element.refuse("its axis is zero", "axis")
    axis = axis / np.linalg.norm(axis)
    turn = snapped(pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), axis).toRotationMatrix())
    to_z = pin.SE3(turn, np.zeros(3))
    low, high, velocity, effort = _limits(element, kind == "continuous")
    joint = Joint(
        name=element.text("name"),
        kind="prismatic" if kind == "prismatic" else "revolute",
        placement=before * _origin(element) * to_z,
        position_min=low,
        position_max=high,
        max_velocity=velocity,
        max_effort=effort,
    )
    return to_z.inverse(), joint
