"""Read a serial arm from a URDF or xacro file; every error names the element and its line.

The chain runs from the base (base_link, else the root) to the tip (tool0, else the only end). What
is off the chain is fixed where it is at zero, and adds its mass, shapes and meshes to the link that
carries it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.files.toml_file import RESERVED
from simbridge.quoting import quoted
from simbridge.robot import MAX_JOINTS, MAX_SHAPES
from simbridge.robot.file_faults import FileFaults
from simbridge.robot.inertia import find_inertialess_joint
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
    arguments: Mapping[str, str] | None = None,
) -> Robot:
    """Read one arm from a URDF or xacro file.

    Its home is the middle of its joints' ranges (see `with_found_home`).

    Args:
        path: The file; a xacro file needs xacro (MissingPackage).
        base: The link where the arm begins; base_link, else the root, by default.
        tip: The tool's link; tool0, else the only link without children, by default.
        packages: Directories of packages, by name (see `Packages`).
        arguments: Values of a xacro file's arguments, by name; the others have their defaults.

    Raises:
        InputFileError: Names the element and the line at fault, or all of them if there are
            several.
    """
    search = Packages(path, packages or {})
    root = read_xml(path, search, arguments)
    if root.tag != "robot":
        root.refuse("a URDF begins with <robot>")

    faults = FileFaults(path)
    tree = Tree(root, faults)
    chain = tree.find_chain(base, tip)
    moving = [joint for joint in chain.joints if is_movable(joint)]
    if not moving:
        root.refuse(
            f"the chain from {quoted(chain.base)} to {quoted(chain.tip)} has no movable joint; "
            "choose others with --base and --tip"
        )
    if len(moving) > MAX_JOINTS:
        root.refuse(f"its chain has {len(moving)} movable joints; at most {MAX_JOINTS} are read")

    # The bodies, and the joints between them.
    bodies = BodyReader(tree, search, moving, faults)
    base_body = bodies.read_body(chain.base)
    joints: list[Joint] = []
    links: list[Link] = []
    # In the frame of the previous movable joint; after the last one, the tool.
    placement = pin.SE3.Identity()
    for element in chain.joints:
        placement = placement * read_origin(element, faults)
        if element not in moving:
            continue
        # Our joints' axes are z: the link's frame may be rotated relative to its joint's.
        axis = faults.attempt(np.array([0.0, 0.0, 1.0]), read_axis, element)
        to_z = _frame_along(axis)
        joint = _read_joint(element, placement * to_z, faults)
        placement = to_z.inverse()
        joints.append(joint)
        links.append(_read_link(bodies, tree, child_link(element), placement, faults=faults))
    up = _upward_direction(tree, chain.base)
    faults.refuse()

    shape_count = len(base_body.shapes)
    shape_count += sum(len(link.shapes) + len(link.meshes) for link in links)
    if shape_count > MAX_SHAPES:
        root.refuse(f"its links have more than {MAX_SHAPES} shapes together")

    robot = Robot(
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
        gravity=read_only(-G * up),
        source=path.resolve(),
        notes=(*_notes(tree, chain, up), *bodies.notes()),
        base_name=chain.base,
    )

    inertialess = find_inertialess_joint(robot.model)
    if inertialess is not None:
        link_element = tree.links[child_link(moving[inertialess])]
        link_element.refuse(
            f"the masses and tensors of inertia beyond joint {quoted(joints[inertialess].name)} "
            "are such that no torque moves it as it should: correct <inertial>"
        )
    return robot


def _read_link(
    bodies: BodyReader, tree: Tree, name: str, placement: pin.SE3, *, faults: FileFaults
) -> Link:
    """Read a link that moves, which needs mass.

    Args:
        bodies: Reads its body.
        tree: The links of the file.
        name: Name of the link.
        placement: The link's frame in its joint's.
        faults: Where a link without mass is collected.
    """
    known_faults = len(faults)
    body = bodies.read_body(name)
    # A mass that cannot be read is a fault already.
    if body.inertia.mass <= 0.0 and len(faults) == known_faults:
        with faults.collect():
            tree.links[name].refuse("a link that moves needs mass and inertia: add <inertial>")

    inertia = placement.act(body.inertia)
    return replace(body, name=_free_name(name, tree), placement=placement, inertia=inertia)


def _upward_direction(tree: Tree, base: str) -> Array:
    """Return the upward direction (3,) in the base's frame: the root of the file is upright."""
    tilt = pin.SE3.Identity()
    for joint in tree.path(base, None) or []:
        tilt = tilt * tree.rest_placement(joint)
    up = np.asarray(tilt.rotation[2])
    vertical = np.array([0.0, 0.0, 1.0])
    return vertical if np.allclose(up, vertical, rtol=0.0, atol=1e-9) else up


def _middle(joint: Joint) -> float:
    """Return the middle of a joint's range; without two ends, the position nearest to zero."""
    low = joint.position_min
    high = joint.position_max
    if math.isfinite(low + high):
        return 0.5 * (low + high)
    return min(max(0.0, low), high)


def _notes(tree: Tree, chain: UrdfChain, up: Array) -> Iterator[str]:
    """Say what was decided, where a URDF leaves it open.

    Args:
        tree: The links and joints of the file.
        chain: Those of the arm.
        up: The upward direction (3,) in the arm's base.
    """
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

    if up[2] != 1.0:
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


def _read_joint(element: Element, placement: pin.SE3, faults: FileFaults) -> Joint:
    """Read a movable joint of the chain.

    Args:
        element: The <joint>.
        placement: Its frame, with its axis as z, in that of the joint before it.
        faults: Where everything that is wrong with it is collected.
    """
    with faults.collect():
        _refuse_mimic(element)
    name = element.text("name")
    if name in RESERVED:
        with faults.collect():
            element.refuse(f"the name {quoted(name)} is reserved: every arm has it already")

    limits = faults.attempt(UNREADABLE, _read_limits, element, faults)
    return Joint(
        name=name,
        kind="prismatic" if element.text("type") == "prismatic" else "revolute",
        placement=placement,
        position_min=limits.low,
        position_max=limits.high,
        max_velocity=limits.velocity,
        max_effort=limits.effort,
    )


def _refuse_mimic(joint: Element) -> None:
    """Refuse a joint of the chain that follows another one."""
    mimic = joint.find("mimic")
    if mimic is not None:
        joint.refuse(
            f"the joint mimics {quoted(mimic.text('joint'))}, and the joints of an arm's chain "
            "must move independently; end the chain before it (--tip), or begin it behind it "
            "(--base)",
            "mimic",
        )


class Limits(NamedTuple):
    """The limits of a joint: rad, rad/s and N m, or m, m/s and N.

    Attributes:
        low: Lower limit of the position; -inf without one.
        high: Upper limit of the position; inf without one.
        velocity: Largest velocity.
        effort: Largest torque or force.
    """

    low: float
    high: float
    velocity: float
    effort: float


# Stands for limits of a file that is refused once everything is read.
UNREADABLE = Limits(-math.inf, math.inf, math.nan, math.nan)


def _read_limits(joint: Element, faults: FileFaults) -> Limits:
    """Read the limits of a movable joint.

    Args:
        joint: The <joint>.
        faults: Where each limit that is missing or wrong is collected.
    """
    kind = joint.text("type")
    if kind not in {"revolute", "continuous", "prismatic"}:
        joint.refuse(
            f"a joint of type {quoted(kind)}; known are revolute, continuous, prismatic and fixed",
            "type",
        )

    # The range.
    low = -math.inf
    high = math.inf
    if kind == "continuous":
        limit = joint.require("limit", "with velocity and effort")
    else:
        limit = joint.require("limit", "with its range, velocity and effort")
        low = faults.attempt(low, limit.number, "lower")
        high = faults.attempt(high, limit.number, "upper")
    if not low < high:
        name = quoted(joint.text("name"))
        with faults.collect():
            limit.refuse(
                f"the lower limit {low} of joint {name} is not below its upper limit {high}",
                "lower",
            )

    # Velocity and effort.
    velocity = faults.attempt(math.nan, limit.number, "velocity")
    effort = faults.attempt(math.nan, limit.number, "effort")
    bounds = {"velocity": velocity, "effort": effort}
    unusable = {name: value for name, value in bounds.items() if value <= 0.0}
    if unusable:
        values = " and ".join(f"{value}" for value in unusable.values())
        with faults.collect():
            limit.refuse(
                f"a limit of {values} does not let the joint {quoted(joint.text('name'))} move",
                " and ".join(unusable),
            )
    return Limits(low, high, velocity, effort)
