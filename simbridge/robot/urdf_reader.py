"""Read a serial arm from a URDF or xacro file; every error names the element and its line.

The chain runs from the base (base_link, else the root) to the tip (tool0, else the only end). What
is off the chain is fixed where it is at zero, and adds its mass, shapes and meshes to the link that
carries it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError
from simbridge.files.toml_file import RESERVED
from simbridge.quoting import quoted
from simbridge.robot import MAX_JOINTS, MAX_SHAPES
from simbridge.robot.mesh_files import reading_meshes
from simbridge.robot.packages import Packages
from simbridge.robot.parts import Joint, Link
from simbridge.robot.pose import Array, read_only
from simbridge.robot.robot import G, Robot
from simbridge.robot.urdf_bodies import BodyReader
from simbridge.robot.urdf_tree import (
    Tree,
    UrdfChain,
    child_link,
    is_movable,
    read_axis,
    read_origin,
)
from simbridge.robot.xml_element import Element, read_xml
from simbridge.text import join_words

# A URDF has no control period: the longest one of UR's arms, s, overridden by --period.
DEFAULT_PERIOD = 0.008


@reading_meshes()
def read_urdf(
    path: Path,
    *,
    base: str | None = None,
    tip: str | None = None,
    packages: Mapping[str, Path] | None = None,
) -> Robot:
    """Read one arm from a URDF or xacro file.

    Its home is the middle of its joints' ranges (see `with_found_home`).

    Args:
        path: The file; a xacro file needs xacro (MissingPackage).
        base: The link where the arm begins; base_link, else the root, by default.
        tip: The tool's link; tool0, else the only link without children, by default.
        packages: Directories of packages, by name (see `Packages`).

    Raises:
        InputFileError: Names the element and the line at fault, or all of them if there are
            several.
    """
    search = Packages(path, packages or {})
    root = read_xml(path, search)
    if root.tag != "robot":
        root.refuse("a URDF begins with <robot>")

    tree = Tree(root)
    chain = tree.find_chain(base, tip)
    moving = [joint for joint in chain.joints if is_movable(joint)]
    if not moving:
        root.refuse(
            f"the chain from {quoted(chain.base)} to {quoted(chain.tip)} has no movable joint; "
            "choose others with --base and --tip"
        )
    if len(moving) > MAX_JOINTS:
        root.refuse(f"its chain has {len(moving)} movable joints; at most {MAX_JOINTS} are read")

    # The bodies, and the joints between them: all faults of a file are reported together.
    bodies = BodyReader(tree, search, moving)
    faults: list[InputFileError] = []
    with _collect_fault(faults):
        base_body = bodies.read_body(chain.base)
    joints: list[Joint] = []
    links: list[Link] = []
    # In the frame of the previous movable joint; after the last one, the tool.
    placement = pin.SE3.Identity()
    for element in chain.joints:
        placement = placement * read_origin(element)
        if element not in moving:
            continue
        # Our joints' axes are z: the link's frame may be rotated relative to its joint's.
        to_z = pin.SE3.Identity()
        with _collect_fault(faults):
            to_z = _frame_along(read_axis(element))
            joints.append(_read_joint(element, placement * to_z))
        placement = to_z.inverse()
        with _collect_fault(faults):
            links.append(_read_link(bodies, tree, child_link(element), placement))
    _refuse_all(path, faults)

    shape_count = len(base_body.shapes)
    shape_count += sum(len(link.shapes) + len(link.meshes) for link in links)
    if shape_count > MAX_SHAPES:
        root.refuse(f"its links have more than {MAX_SHAPES} shapes together")

    # Gravity: the root is upright.
    tilt = pin.SE3.Identity()
    for element in tree.path(chain.base, None) or []:
        tilt = tilt * tree.rest_placement(element)
    is_upright = np.allclose(tilt.rotation[2], [0.0, 0.0, 1.0], rtol=0.0, atol=1e-9)
    gravity = np.array([0.0, 0.0, -G]) if is_upright else -G * tilt.rotation[2]

    return Robot(
        name=path.name.removesuffix(".xacro").removesuffix(".urdf").removesuffix(".xml"),
        title=root.attributes.get("name") or path.stem,
        series="",
        period=DEFAULT_PERIOD,
        joints=tuple(joints),
        links=tuple(links),
        base_shapes=base_body.shapes,
        base_meshes=base_body.meshes,
        tool0=placement,
        home=read_only([_middle(joint) for joint in joints]),
        gravity=read_only(gravity),
        source=path.resolve(),
        notes=(*_notes(tree, chain, is_upright), *bodies.notes()),
        base_name=chain.base,
    )


@contextlib.contextmanager
def _collect_fault(faults: list[InputFileError]) -> Iterator[None]:
    """Go on after a fault: all faults of a file are reported together."""
    try:
        yield
    except InputFileError as error:
        faults.append(error)


def _refuse_all(path: Path, faults: list[InputFileError]) -> None:
    """Raise the only fault of a file, or one error that lists all of them."""
    if not faults:
        return
    if len(faults) == 1:
        raise faults[0]

    descriptions = []
    for fault in faults:
        line = f"line {fault.line}" if fault.line else ""
        position = ", ".join(filter(None, (line, fault.field)))
        descriptions.append(f"{position}: {fault.reason}")
    reason = f"{len(faults)} things are wrong. " + "; ".join(descriptions)
    raise InputFileError(path, reason, line=faults[0].line)


def _read_link(bodies: BodyReader, tree: Tree, name: str, placement: pin.SE3) -> Link:
    """Read a link that moves, which needs mass and inertia.

    Args:
        bodies: Reads its body.
        tree: The links of the file.
        name: Name of the link.
        placement: The link's frame in its joint's.
    """
    body = bodies.read_body(name)
    if body.inertia.mass <= 0.0 or np.linalg.eigvalsh(body.inertia.inertia)[0] <= 0.0:
        tree.links[name].refuse("a link that moves needs mass and inertia: add <inertial>")

    inertia = placement.act(body.inertia)
    return replace(body, name=_free_name(name, tree), placement=placement, inertia=inertia)


def _middle(joint: Joint) -> float:
    """Return the middle of a joint's range; without two ends, the position nearest to zero."""
    low = joint.position_min
    high = joint.position_max
    if math.isfinite(low + high):
        return 0.5 * (low + high)
    return min(max(0.0, low), high)


def _notes(tree: Tree, chain: UrdfChain, is_upright: bool) -> Iterator[str]:
    """Say what was decided, where a URDF leaves it open."""
    fixed = []
    for joint in tree.joints.values():
        if not is_movable(joint) or joint in chain.joints:
            continue
        unit = "m" if joint.text("type") == "prismatic" else "rad"
        mimic = joint.find("mimic")
        mimics = f" (mimics {mimic.text('joint')})" if mimic else ""
        fixed.append(f"{joint.text('name')} at {tree.rest_position(joint):g} {unit}{mimics}")
    if fixed:
        yield (
            f"The arm is the chain from {chain.base} to {chain.tip}; joints off it are fixed: "
            f"{join_words(fixed)}."
        )

    if not is_upright:
        yield (
            f"{chain.base} is tilted against the root of the file, which is taken as upright: "
            "gravity follows."
        )


def _free_name(link: str, tree: Tree) -> str:
    """Return another name for a link that is called as a frame that every arm has, as tool0."""
    while link in RESERVED:
        link += "_link"
        while link in tree.links:
            link += "_"
    return link


def _frame_along(z: Array) -> pin.SE3:
    """Return a frame whose z axis is a unit vector (3,).

    Its signed permutations of x, y, z are exact.
    """
    helper = np.array([0.0, 1.0, 0.0]) if abs(z[1]) < 0.9 else np.array([0.0, 0.0, 1.0])
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return pin.SE3(np.stack([x, np.cross(z, x), z], axis=1), np.zeros(3))


def _read_joint(element: Element, placement: pin.SE3) -> Joint:
    """Read a movable joint of the chain.

    Args:
        element: The <joint>.
        placement: Its frame, with its axis as z, in that of the joint before it.
    """
    kind = element.text("type")
    name = element.text("name")
    if kind not in {"revolute", "continuous", "prismatic"}:
        element.refuse(
            f"a joint of type {quoted(kind)}; known are revolute, continuous, prismatic and fixed",
            "type",
        )
    mimic = element.find("mimic")
    if mimic is not None:
        element.refuse(
            f"the joint mimics {quoted(mimic.text('joint'))}, and the joints of an arm's chain "
            "must move independently; end the chain before it (--tip), or begin it behind it "
            "(--base)",
            "mimic",
        )
    if name in RESERVED:
        element.refuse(f"the name {quoted(name)} is reserved: every arm has it already")

    # The range.
    if kind == "continuous":
        limit = element.require("limit", "with velocity and effort")
        low = -np.inf
        high = np.inf
    else:
        limit = element.require("limit", "with its range, velocity and effort")
        low = limit.number("lower")
        high = limit.number("upper")
    if not low < high:
        limit.refuse(
            f"the lower limit {low} of joint {quoted(name)} is not below its upper limit {high}",
            "lower",
        )

    # Velocity and effort.
    unusable = [bound for bound in ("velocity", "effort") if limit.number(bound) <= 0.0]
    if unusable:
        values = " and ".join(f"{limit.number(bound)}" for bound in unusable)
        limit.refuse(
            f"a limit of {values} does not let the joint {quoted(name)} move",
            " and ".join(unusable),
        )

    return Joint(
        name=name,
        kind="prismatic" if kind == "prismatic" else "revolute",
        placement=placement,
        position_min=low,
        position_max=high,
        max_velocity=limit.number("velocity"),
        max_effort=limit.number("effort"),
    )
