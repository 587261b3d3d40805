"""Read a serial arm from a user's URDF or xacro file; every error names the element and its line.

The chain runs from the base (base_link, else the root) to the tip (tool0, else the only end). What is off the chain is
fixed where it is at zero, and adds its mass, shapes and meshes to the link that carries it. A box becomes the capsule
that encloses it, a mesh its convex hull.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError
from simbridge.robot.input_file import MAX_JOINTS, MAX_SHAPES, RESERVED
from simbridge.robot.packages import Packages
from simbridge.robot.parts import Joint, Link
from simbridge.robot.pose import read_only
from simbridge.robot.robot import G, Robot
from simbridge.robot.urdf_shapes import Body, Reading
from simbridge.robot.urdf_tree import Element, Tree, axis_frame, axis_of, child, movable, origin, read_tree, read_xml
from simbridge.text import listed

# A URDF has no control period: the longest one of UR's arms, overridden by --period.
DEFAULT_PERIOD = 0.008


def read_urdf(
    path: Path, *, base: str | None = None, tip: str | None = None, packages: Mapping[str, Path] | None = None
) -> Robot:
    """Read one arm, whose home is the middle of its joints' ranges (see `with_found_home`).

    Args:
        path: A URDF, or a xacro file.
        base: The link where the arm begins; base_link, else the root, by default.
        tip: The tool's link; tool0, else the only link without children, by default.
        packages: Directories of packages, by name (see `Packages`).

    Raises:
        InputFileError: Names the element and the line at fault, or all of them if there are several.
        MissingPackage: It is a xacro file, and xacro is not installed.
    """
    places = Packages(path, packages or {})
    top = read_xml(path, places)
    if top.tag != "robot":
        top.refuse("a URDF begins with <robot>")
    tree = read_tree(top)
    base, tip, chain = tree.chain(base, tip)
    moving = [joint for joint in chain if movable(joint)]
    if not moving:
        top.refuse(f"the chain from '{base}' to '{tip}' has no movable joint; choose others with --base and --tip")
    if len(moving) > MAX_JOINTS:
        top.refuse(f"its chain has {len(moving)} movable joints; at most {MAX_JOINTS} are read")
    reading = Reading(places, top)
    faults: list[InputFileError] = []
    with _collected(faults):
        at_base = reading.body(tree, base, moving)
    joints: list[Joint] = []
    links: list[Link] = []
    # In the frame of the previous movable joint; after the last one, the tool.
    placement = pin.SE3.Identity()
    for element in chain:
        placement = placement * origin(element)
        if element not in moving:
            continue
        # Our joints' axes are z: the link's frame may be rotated relative to its joint's.
        to_z = pin.SE3.Identity()
        with _collected(faults):
            to_z = axis_frame(axis_of(element))
            joints.append(_joint(element, placement * to_z))
        placement = to_z.inverse()
        with _collected(faults):
            body = reading.body(tree, child(element), moving)
            links.append(_link(_name(child(element), tree), tree.links[child(element)], body, placement))
    _refuse_all(path, faults)
    if len(at_base.shapes) + sum(len(link.shapes) + len(link.meshes) for link in links) > MAX_SHAPES:
        top.refuse(f"its links have more than {MAX_SHAPES} shapes together")
    tilt = pin.SE3.Identity()
    for element in tree.path(base, None) or []:
        tilt = tilt * tree.resting(element)
    upright = np.allclose(tilt.rotation[2], [0.0, 0.0, 1.0], rtol=0.0, atol=1e-9)
    return Robot(
        name=path.name.removesuffix(".xacro").removesuffix(".urdf").removesuffix(".xml"),
        title=top.attributes.get("name") or path.stem,
        series="",
        period=DEFAULT_PERIOD,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=at_base.shapes,
        base_meshes=at_base.meshes,
        tool0=placement,
        home=read_only([_middle(joint) for joint in joints]),
        gravity=read_only(np.array([0.0, 0.0, -G]) if upright else -G * tilt.rotation[2]),
        source=path.resolve(),
        notes=(*_notes(tree, base, tip, chain, upright), *reading.notes),
    )


@contextlib.contextmanager
def _collected(faults: list[InputFileError]) -> Iterator[None]:
    """Go on after a fault: all faults of a file are reported together."""
    try:
        yield
    except InputFileError as error:
        faults.append(error)


def _refuse_all(path: Path, faults: list[InputFileError]) -> None:
    if len(faults) == 1:
        raise faults[0]
    if faults:
        each = [
            ", ".join(filter(None, (f"line {fault.line}" if fault.line else "", fault.field))) + f": {fault.reason}"
            for fault in faults
        ]
        raise InputFileError(path, f"{len(faults)} things are wrong. " + "; ".join(each), line=faults[0].line)


def _middle(joint: Joint) -> float:
    low, high = joint.position_min, joint.position_max
    return 0.5 * (low + high) if math.isfinite(low + high) else min(max(0.0, low), high)


def _notes(tree: Tree, base: str, tip: str, chain: list[Element], upright: bool) -> Iterator[str]:
    """What was decided, where a URDF leaves it open."""
    off = [joint for joint in tree.joints.values() if movable(joint) and joint not in chain]
    fixed = []
    for joint in off:
        value, name = tree.resting_value(joint), joint.text("name")
        unit = "m" if joint.text("type") == "prismatic" else "rad"
        leader = joint.first("mimic")
        fixed.append(f"{name} at {value:g} {unit}" + (f" (mimics {leader.text('joint')})" if leader else ""))
    if fixed:
        yield f"The arm is the chain from {base} to {tip}; joints off it are fixed: {listed(fixed)}."
    if not upright:
        yield f"{base} is tilted against the root of the file, which is taken as upright: gravity follows."


def _name(link: str, tree: Tree) -> str:
    # tool0 and tcp are frames of the arm; a body of such a name is renamed.
    while link in RESERVED:
        link += "_link"
        while link in tree.links:
            link += "_"
    return link


def _link(name: str, element: Element, body: Body, placement: pin.SE3) -> Link:
    if body.inertia.mass <= 0.0 or np.linalg.eigvalsh(body.inertia.inertia)[0] <= 0.0:
        element.refuse("a link that moves needs mass and inertia: add <inertial>")
    return Link(name, placement, placement.act(body.inertia), body.shapes, body.meshes)


def _joint(element: Element, placement: pin.SE3) -> Joint:
    kind, name = element.text("type"), element.text("name")
    if kind not in {"revolute", "continuous", "prismatic"}:
        element.refuse(f"a joint of type '{kind}'; known are revolute, continuous, prismatic and fixed", "type")
    if (leader := element.first("mimic")) is not None:
        element.refuse(
            f"the joint mimics '{leader.text('joint')}', and the joints of an arm's chain must move independently; end "
            "the chain before it (--tip), or begin it behind it (--base)",
            "mimic",
        )
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
