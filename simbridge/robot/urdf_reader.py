"""Read a serial arm from a user's URDF; every error names the element and its line.

The chain runs from the link base_link (else the root) to the link tool0 (else the only end). Links attached by fixed
joints add their mass and shapes to their parent. Meshes are not read: they are not drawn and take no part in collision
checks; a box becomes the capsule that encloses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.robot.input_file import MAX_JOINTS, MAX_SHAPES, RESERVED
from simbridge.robot.parts import Joint, Link, Shape, ShapeKind, inertia_fault, inertia_tensor
from simbridge.robot.pose import read_only
from simbridge.robot.robot import Robot
from simbridge.robot.urdf_tree import Element, Tree, axis_frame, child, movable, origin, read_tree, read_xml

# A URDF has no control period: the longest one of UR's arms, overridden by --period.
DEFAULT_PERIOD = 0.008


def read_urdf(path: Path) -> Robot:
    """Read one arm.

    Raises:
        InputFileError: Names the element and the line at fault.
    """
    top = read_xml(path)
    if top.tag != "robot":
        top.refuse("a URDF begins with <robot>")
    if any(element.tag.startswith("xacro:") for element in top.children):
        top.refuse("this is xacro, not yet URDF; expand it first: xacro FILE > arm.urdf")
    tree = read_tree(top)
    base, chain = tree.chain()
    moving = [joint for joint in chain if movable(joint)]
    if not moving:
        top.refuse("its chain has no movable joint")
    if len(moving) > MAX_JOINTS:
        top.refuse(f"its chain has {len(moving)} movable joints; at most {MAX_JOINTS} are read")
    _, base_shapes = _body(tree, base, moving)
    joints: list[Joint] = []
    links: list[Link] = []
    # In the frame of the previous movable joint; after the last one, the tool.
    placement = pin.SE3.Identity()
    for element in chain:
        placement = placement * origin(element)
        if element not in moving:
            continue
        # Our joints' axes are z: the link's frame may be rotated relative to its joint's.
        to_z = axis_frame(_axis(element))
        joints.append(_joint(element, placement * to_z))
        placement = to_z.inverse()
        inertia, shapes = _body(tree, child(element), moving)
        if inertia.mass <= 0.0 or np.linalg.eigvalsh(inertia.inertia)[0] <= 0.0:
            tree.links[child(element)].refuse("a link that moves needs mass and inertia: add <inertial>")
        links.append(Link(_name(child(element), tree), placement, placement.act(inertia), shapes))
    if len(base_shapes) + sum(len(link.shapes) for link in links) > MAX_SHAPES:
        top.refuse(f"its links have more than {MAX_SHAPES} shapes together")
    low, high = [joint.position_min for joint in joints], [joint.position_max for joint in joints]
    home = [0.5 * (a + b) if np.isfinite(a + b) else min(max(0.0, a), b) for a, b in zip(low, high, strict=True)]
    return Robot(
        name=path.stem,
        title=top.attributes.get("name") or path.stem,
        series="",
        period=DEFAULT_PERIOD,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=base_shapes,
        tool0=placement,
        home=read_only(home),
        source=path.resolve(),
    )


def _name(link: str, tree: Tree) -> str:
    # tool0 and tcp are frames of the arm; a body of such a name is renamed.
    while link in RESERVED:
        link += "_link"
        while link in tree.links:
            link += "_"
    return link


def _axis(joint: Element) -> np.ndarray:
    given = joint.first("axis")
    axis = given.numbers("xyz", 3) if given else np.array([1.0, 0.0, 0.0])
    return axis if np.linalg.norm(axis) > 0.0 else joint.refuse("its axis is zero", "axis")


def _joint(element: Element, placement: pin.SE3) -> Joint:
    kind, name = element.text("type"), element.text("name")
    if kind not in {"revolute", "continuous", "prismatic"}:
        element.refuse(f"a joint of type '{kind}'; known are revolute, continuous, prismatic and fixed", "type")
    if element.first("mimic") is not None:
        element.refuse("a joint that mimics another; simbridge supports serial arms only", "mimic")
    if name in RESERVED:
        element.refuse(f"the name '{name}' is reserved: every arm has it already")
    limit = element.need(
        "limit", "with velocity and effort" if kind == "continuous" else "with its range, velocity and effort"
    )
    low, high = (-np.inf, np.inf) if kind == "continuous" else (limit.number("lower"), limit.number("upper"))
    if not low < high:
        limit.refuse(f"the lower limit {low} of joint '{name}' is not below its upper limit {high}", "lower")
    for bound in ("velocity", "effort"):
        if limit.number(bound) <= 0.0:
            limit.refuse(f"a limit of {limit.number(bound)} does not let the joint '{name}' move", bound)
    return Joint(
        name=name,
        kind="prismatic" if kind == "prismatic" else "revolute",
        placement=placement,
        position_min=low,
        position_max=high,
        max_velocity=limit.number("velocity"),
        max_effort=limit.number("effort"),
    )


def _body(tree: Tree, link: str, moving: list[Element]) -> tuple[pin.Inertia, tuple[Shape, ...]]:
    """Inertia and shapes, in the link's frame, of a link and all that is fixed to it."""
    inertia = pin.Inertia.Zero()
    shapes: list[Shape] = []
    for element, placement in tree.attached(link, moving):
        inertia += placement.act(_inertia(element))
        shapes += _shapes(element, placement)
    return inertia, tuple(shapes)


def _inertia(link: Element) -> pin.Inertia:
    inertial = link.first("inertial")
    if inertial is None:
        return pin.Inertia.Zero()
    mass = inertial.need("mass").number("value")
    if mass < 0.0:
        inertial.need("mass").refuse(f"a mass of {mass} kg", "value")
    given = inertial.need("inertia")
    matrix = inertia_tensor(*(given.number(f"i{pair}") for pair in ("xx", "xy", "xz", "yy", "yz", "zz")))
    fault = inertia_fault(matrix)
    if fault:
        given.refuse(fault)
    at = origin(inertial)
    return pin.Inertia(mass, at.translation, at.rotation @ matrix @ at.rotation.T)


def _shapes(link: Element, placement: pin.SE3) -> Iterator[Shape]:
    for element in link.all("collision") if link.first("collision") else link.all("visual"):
        at = placement * origin(element)
        geometry = element.need("geometry")
        if not geometry.children:
            geometry.refuse("it contains no shape")
        for shape in geometry.children:
            if shape.tag != "mesh":
                kind, axis, radius = _measures(shape)
                ends = (tuple(float(v) for v in at.act(end)) for end in (-axis, axis))
                yield Shape(kind, next(ends), next(ends), radius)  # type: ignore[arg-type]


def _measures(shape: Element) -> tuple[ShapeKind, np.ndarray, float]:
    """Kind, half of the axis and radius."""
    z = np.array([0.0, 0.0, 0.5])
    if shape.tag == "cylinder":
        return "cylinder", z * shape.positive("length"), shape.positive("radius")
    if shape.tag == "sphere":
        return "capsule", 0.0 * z, shape.positive("radius")
    if shape.tag == "capsule":
        return "capsule", z * shape.positive("length"), shape.positive("radius")
    if shape.tag != "box":
        shape.refuse("an unknown shape; known are box, cylinder, capsule, sphere and mesh")
    size = shape.numbers("size", 3)
    if not np.all(size > 0.0):
        shape.refuse(f"these must be positive, not {size.tolist()}", "size")
    longest = int(np.argmax(size))
    return "capsule", np.eye(3)[longest] * 0.5 * size[longest], float(0.5 * np.hypot(*np.delete(size, longest)))
