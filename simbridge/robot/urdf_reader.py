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
from typing import NamedTuple, NoReturn

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
    end_link,
    is_movable,
    read_axis,
    read_origin,
)
from simbridge.robot.xml_element import Element, read_xml
from simbridge.text import join_words

# A URDF has no control period: the longest one of UR's arms, s, overridden by --period.
DEFAULT_PERIOD = 0.008
# Stands for the inertia of a link that has none or an unreadable one, in a file that is refused.
SOME_BODY = pin.Inertia(1.0, np.zeros(3), np.eye(3))


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

    # All that is wrong is collected, also where the joints form no tree yet.
    faults = FileFaults(path)
    tree = Tree(root, faults)
    chain = tree.find_chain(base, tip)
    moving = [joint for joint in chain.joints if is_movable(joint)]
    bodies = BodyReader(tree, search, moving, faults)
    parts = _read_parts(tree, chain, bodies, moving=moving, faults=faults)
    with faults.collect():
        _check_size(root, chain, parts, joint_count=len(moving))
    if not (chain.is_whole and moving):
        faults.refuse()

    up = _upward_direction(tree, chain.base)
    robot = Robot(
        name=path.name.removesuffix(".xacro").removesuffix(".urdf").removesuffix(".xml"),
        title=root.attributes.get("name") or path.stem,
        series="",
        period=DEFAULT_PERIOD,
        joints=tuple(parts.joints),
        links=tuple(parts.links),
        base_shapes=parts.base.shapes,
        base_meshes=parts.base.meshes,
        tool0=parts.tool0,
        home=read_only([_middle(joint) for joint in parts.joints]),
        gravity=read_only(-G * up),
        source=path.resolve(),
        notes=(*_notes(tree, chain, up), *bodies.notes()),
        base_name=chain.base,
    )
    if parts.frames_are_known:
        with faults.collect():
            _check_mass_matrix(robot, tree, moving)
    faults.refuse()
    return robot


class ArmParts(NamedTuple):
    """The parts of an arm, as far as they could be read.

    Attributes:
        base: The body of the base.
        joints: The movable joints, from the base.
        links: The body behind each joint. One is left out where a joint's child is unknown, in a
            file that is refused.
        tool0: The tool's frame in the last joint's.
        frames_are_known: Whether the origin and the axis of every joint could be read.
    """

    base: Link
    joints: list[Joint]
    links: list[Link]
    tool0: pin.SE3
    frames_are_known: bool


def _read_parts(
    tree: Tree, chain: UrdfChain, bodies: BodyReader, *, moving: list[Element], faults: FileFaults
) -> ArmParts:
    """Read the bodies of an arm, and the joints between them.

    Args:
        tree: The links and joints of the file.
        chain: The links and joints of the arm.
        bodies: Reads the bodies.
        moving: The movable joints of the chain.
        faults: Collects everything that is wrong.
    """
    base = bodies.read_body(chain.base)
    joints: list[Joint] = []
    links: list[Link] = []
    frames_are_known = True

    # Follow the chain. The placement is that of the element's frame in the frame of the previous
    # movable joint; fixed joints between the two are included.
    z_axis = np.array([0.0, 0.0, 1.0])
    placement = pin.SE3.Identity()
    for element in chain.joints:
        faults_before = len(faults)
        placement = placement * read_origin(element, faults)
        axis = faults.attempt(z_axis, read_axis, element) if element in moving else z_axis
        if len(faults) > faults_before:
            frames_are_known = False
        if element not in moving:
            continue

        # A joint here moves about or along its z axis, a joint in the file about or along any axis.
        # So the joint's frame is turned, and its link is placed in it the other way round.
        to_z = _frame_along(axis)
        joints.append(_read_joint(element, placement * to_z, faults))
        placement = to_z.inverse()
        child = end_link(element, "child")
        if child in tree.links:
            links.append(_read_link(bodies, tree, child, placement, faults=faults))

    # If parts of the file are not connected to the base, it is refused. Read them all the same, so
    # that their faults are reported together with the others.
    for name in tree.separate_parts(chain.base):
        bodies.read_body(name)
    for joint in tree.loose_joints:
        if joint not in moving:
            tree.rest_placement(joint)

    # After the last movable joint, the placement is that of the tool.
    return ArmParts(base, joints, links, placement, frames_are_known)


def _check_size(root: Element, chain: UrdfChain, parts: ArmParts, *, joint_count: int) -> None:
    """Refuse a chain without movable joints, with too many of them, or with too many shapes.

    Args:
        root: The element <robot>.
        chain: The links and joints of the arm.
        parts: The bodies and joints of the arm.
        joint_count: Number of movable joints in the chain.
    """
    if chain.is_whole and joint_count == 0:
        root.refuse(
            f"the chain from {quoted(chain.base)} to {quoted(chain.tip)} has no movable joint; "
            "choose other links with --base and --tip"
        )
    if joint_count > MAX_JOINTS:
        root.refuse(f"its chain has {joint_count} movable joints; at most {MAX_JOINTS} are read")

    shape_count = len(parts.base.shapes)
    shape_count += sum(len(link.shapes) + len(link.meshes) for link in parts.links)
    if shape_count > MAX_SHAPES:
        root.refuse(f"its links have more than {MAX_SHAPES} shapes together")


def _check_mass_matrix(robot: Robot, tree: Tree, moving: list[Element]) -> None:
    """Refuse an arm with a joint that no torque accelerates as it should.

    Args:
        robot: The arm. In a file that is refused anyway, some body stands for each link whose
            inertia could not be read.
        tree: The links and joints of the file.
        moving: The movable joints of the arm.
    """
    inertialess = find_inertialess_joint(robot.model)
    if inertialess is not None:
        joint = moving[inertialess]
        tree.links[child_link(joint)].refuse(
            f"the masses and inertia tensors beyond joint {quoted(joint.name)} are not physically "
            "plausible, so its response to torque cannot be computed: correct <inertial>"
        )


def _read_link(
    bodies: BodyReader, tree: Tree, name: str, placement: pin.SE3, *, faults: FileFaults
) -> Link:
    """Read a link that moves, which needs mass or moments of inertia.

    Args:
        bodies: Reads its body.
        tree: The links of the file.
        name: Name of the link.
        placement: The link's frame in its joint's.
        faults: Collects a link without mass.
    """
    body = bodies.read_body(name)
    if body.inertia.mass <= 0.0 and not body.inertia.inertia.any():
        body = replace(body, inertia=SOME_BODY)
        if not tree.may_carry_more(name):
            with faults.collect():
                _refuse_massless(tree.links[name])

    inertia = placement.act(body.inertia)
    return replace(body, name=_free_name(name, tree), placement=placement, inertia=inertia)


def _refuse_massless(link: Element) -> NoReturn:
    """Refuse a moving link without mass and inertia."""
    if link.find("inertial") is None:
        link.refuse("a link that moves needs mass and inertia: add <inertial>")
    link.refuse("a link that moves needs mass and inertia: its <inertial> has neither")


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
        chain: The links and joints of the arm.
        up: The upward direction (3,) in the arm's base.
    """
    fixed = []
    for name, joint in tree.joints.items():
        if not is_movable(joint) or joint in chain.joints:
            continue
        unit = "m" if joint.attributes.get("type") == "prismatic" else "rad"
        mimic = joint.find("mimic")
        mimics = f" (mimics {mimic.attributes.get('joint')})" if mimic else ""
        fixed.append(f"{name} at {tree.rest_position(joint):g} {unit}{mimics}")
    if fixed:
        yield (
            f"The arm is the chain from {chain.base} to {chain.tip}; joints off it are fixed: "
            f"{join_words(fixed)}."
        )

    if up[2] != 1.0:
        yield (
            f"{chain.base} is tilted relative to the root of the file. The root is assumed to be "
            "upright, which sets the direction of gravity."
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
        placement: Frame of the joint, with its axis as z, in that of the joint before it.
        faults: Collects everything that is wrong with the joint.
    """
    with faults.collect():
        _refuse_mimic(element)
    if element.name in RESERVED:
        with faults.collect():
            element.refuse(f"the name {quoted(element.name)} is reserved: every arm has it already")

    limits = faults.attempt(UNREADABLE, _read_limits, element, faults)
    return Joint(
        name=element.name,
        kind="prismatic" if element.attributes.get("type") == "prismatic" else "revolute",
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
            "must move independently; end the chain before it (--tip), or begin it after it "
            "(--base)",
            "mimic",
        )


class UrdfLimits(NamedTuple):
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
UNREADABLE = UrdfLimits(-math.inf, math.inf, math.nan, math.nan)


def _read_limits(joint: Element, faults: FileFaults) -> UrdfLimits:
    """Read the limits of a movable joint.

    Args:
        joint: The <joint>.
        faults: Collects each limit that is missing or wrong.
    """
    kind = joint.attributes.get("type")
    is_known = kind in {"revolute", "continuous", "prismatic"}
    # A joint without a type was refused when the tree was read.
    if kind and not is_known:
        with faults.collect():
            joint.refuse(
                f"a joint of type {quoted(kind)}; supported are revolute, continuous, prismatic "
                "and fixed",
                "type",
            )
    if not is_known and joint.find("limit") is None:
        # Demand no limits: once its type is corrected, the joint may need none.
        return UNREADABLE

    # The range.
    low = -math.inf
    high = math.inf
    has_range = kind in {"revolute", "prismatic"}
    needed = "its range, velocity and effort" if has_range else "velocity and effort"
    limit = joint.require("limit", f"with {needed}")
    if has_range:
        low = faults.attempt(low, limit.number, "lower")
        high = faults.attempt(high, limit.number, "upper")
    if not low < high:
        with faults.collect():
            limit.refuse(
                f"the lower limit {low} of joint {quoted(joint.name)} is not below its upper limit "
                f"{high}",
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
                f"a limit of {values} does not let the joint {quoted(joint.name)} move",
                " and ".join(unusable),
            )
    return UrdfLimits(low, high, velocity, effort)
