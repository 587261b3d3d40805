"""Read a serial arm from a user's URDF or xacro file; every error names the element and its line.

The chain runs from the base (base_link, else the root) to the tip (tool0, else the only end). What is off the chain is
fixed where it is at zero, and adds its mass, shapes and meshes to the link that carries it. A box becomes the capsule
that encloses it, a mesh its convex hull.
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
from simbridge.robot.mesh_files import mesh_hull, placed, read_mesh, reading_meshes
from simbridge.robot.packages import Packages
from simbridge.robot.parts import (
    COLOR,
    MAX_JOINTS,
    MAX_SHAPES,
    Joint,
    Link,
    Mesh,
    Shape,
    ShapeKind,
    inertia_fault,
    inertia_tensor,
)
from simbridge.robot.pose import Array, read_only
from simbridge.robot.robot import G, Robot
from simbridge.robot.urdf_tree import Element, Tree, axis_of, child, movable, origin, read_xml
from simbridge.text import listed

# A URDF has no control period: the longest one of UR's arms, overridden by --period.
DEFAULT_PERIOD = 0.008

Color = tuple[float, float, float]


@reading_meshes()
def read_urdf(
    path: Path,
    *,
    base: str | None = None,
    tip: str | None = None,
    packages: Mapping[str, Path] | None = None,
) -> Robot:
    """Read one arm from a URDF or xacro file, whose home is the middle of its joints' ranges (see `with_found_home`).

    Args:
        path: The file; a xacro file needs xacro (MissingPackage).
        base: The link where the arm begins; base_link, else the root, by default.
        tip: The tool's link; tool0, else the only link without children, by default.
        packages: Directories of packages, by name (see `Packages`).

    Raises:
        InputFileError: Names the element and the line at fault, or all of them if there are several.
    """
    places = Packages(path, packages or {})
    top = read_xml(path, places)
    if top.tag != "robot":
        top.refuse("a URDF begins with <robot>")
    tree = Tree(top)
    base, tip, chain = tree.chain(base, tip)
    moving = [joint for joint in chain if movable(joint)]
    if not moving:
        top.refuse(
            f"the chain from {quoted(base)} to {quoted(tip)} has no movable joint; choose others with --base and --tip"
        )
    if len(moving) > MAX_JOINTS:
        top.refuse(f"its chain has {len(moving)} movable joints; at most {MAX_JOINTS} are read")
    bodies = _Bodies(tree, places, moving)
    faults: list[InputFileError] = []
    with _collected(faults):
        at_base = bodies.of(base)
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
            to_z = _frame_along(axis_of(element))
            joints.append(_joint(element, placement * to_z))
        placement = to_z.inverse()
        with _collected(faults):
            body = bodies.of(child(element))
            if body.inertia.mass <= 0.0 or np.linalg.eigvalsh(body.inertia.inertia)[0] <= 0.0:
                tree.links[child(element)].refuse(
                    "a link that moves needs mass and inertia: add <inertial>"
                )
            inertia = placement.act(body.inertia)
            links.append(
                replace(
                    body, name=_name(child(element), tree), placement=placement, inertia=inertia
                )
            )
    _refuse_all(path, faults)
    if (
        len(at_base.shapes) + sum(len(link.shapes) + len(link.meshes) for link in links)
        > MAX_SHAPES
    ):
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
        notes=(*_notes(tree, base, tip, chain, upright), *bodies.notes()),
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
            ", ".join(filter(None, (f"line {fault.line}" if fault.line else "", fault.field)))
            + f": {fault.reason}"
            for fault in faults
        ]
        raise InputFileError(
            path, f"{len(faults)} things are wrong. " + "; ".join(each), line=faults[0].line
        )


def _middle(joint: Joint) -> float:
    low, high = joint.position_min, joint.position_max
    return 0.5 * (low + high) if math.isfinite(low + high) else min(max(0.0, low), high)


def _notes(tree: Tree, base: str, tip: str, chain: list[Element], upright: bool) -> Iterator[str]:
    """What was decided, where a URDF leaves it open."""
    fixed = []
    for joint in tree.joints.values():
        if movable(joint) and joint not in chain:
            unit, leader = "m" if joint.text("type") == "prismatic" else "rad", joint.first("mimic")
            mimics = f" (mimics {leader.text('joint')})" if leader else ""
            fixed.append(f"{joint.text('name')} at {tree.resting_value(joint):g} {unit}{mimics}")
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


def _frame_along(z: Array) -> pin.SE3:
    """A frame whose z axis is a unit vector (3,); its signed permutations of x, y, z are exact."""
    helper = np.array([0.0, 1.0, 0.0]) if abs(z[1]) < 0.9 else np.array([0.0, 0.0, 1.0])
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return pin.SE3(np.stack([x, np.cross(z, x), z], axis=1), np.zeros(3))


def _joint(element: Element, placement: pin.SE3) -> Joint:
    kind, name = element.text("type"), element.text("name")
    if kind not in {"revolute", "continuous", "prismatic"}:
        element.refuse(
            f"a joint of type {quoted(kind)}; known are revolute, continuous, prismatic and fixed",
            "type",
        )
    if (leader := element.first("mimic")) is not None:
        element.refuse(
            f"the joint mimics {quoted(leader.text('joint'))}, and the joints of an arm's chain must move "
            "independently; end the chain before it (--tip), or begin it behind it (--base)",
            "mimic",
        )
    if name in RESERVED:
        element.refuse(f"the name {quoted(name)} is reserved: every arm has it already")
    endless = kind == "continuous"
    limit = element.need(
        "limit", "with velocity and effort" if endless else "with its range, velocity and effort"
    )
    low, high = (-np.inf, np.inf) if endless else (limit.number("lower"), limit.number("upper"))
    if not low < high:
        limit.refuse(
            f"the lower limit {low} of joint {quoted(name)} is not below its upper limit {high}",
            "lower",
        )
    if none := [bound for bound in ("velocity", "effort") if limit.number(bound) <= 0.0]:
        values = " and ".join(f"{limit.number(bound)}" for bound in none)
        limit.refuse(
            f"a limit of {values} does not let the joint {quoted(name)} move", " and ".join(none)
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


class _Bodies:
    """Reads mass, shapes and meshes of links, with all that is attached to them off the chain.

    Behind the joints `moving`, the chain's movable ones, the next link of the arm begins.
    """

    def __init__(self, tree: Tree, packages: Packages, moving: list[Element]) -> None:
        self._tree, self._packages, self._moving = tree, packages, moving
        self._missing: dict[str, str] = {}
        self._odd: dict[str, str] = {}
        visuals = (visual for link in tree.robot.all("link") for visual in link.all("visual"))
        named = (material for visual in visuals for material in visual.all("material"))
        self._colors: dict[str, Color] = {}
        for material in (*tree.robot.all("material"), *named):
            if (name := material.attributes.get("name")) and material.first("color") is not None:
                self._colors.setdefault(name, _color(material))

    def notes(self) -> Iterator[str]:
        """Which meshes could not be read, and which inertia no body has, each in a sentence."""
        if self._odd:
            yield f"{listed(list(self._odd))}: {next(iter(self._odd.values()))}. The inertia is used as it is."
        for reason in dict.fromkeys(self._missing.values()):
            first, *others = (mesh for mesh, why in self._missing.items() if why == reason)
            more = f" and {len(others)} more" if others else ""
            yield f"The mesh {first}{more} is neither drawn nor part of collision checks: {reason}"

    def of(self, name: str) -> Link:
        """A link and all that is attached to it, in its own frame."""
        inertia = pin.Inertia.Zero()
        parts: list[Shape | Mesh] = []
        for element, placement in self._tree.attached(name, self._moving):
            inertia += placement.act(self._inertia(element))
            # What is drawn is <visual>, what takes part in collision checks <collision>; one stands for both.
            solid = list(self._parts(element.all("collision"), placement, solid=True))
            seen = list(self._parts(element.all("visual"), placement, solid=not solid))
            parts += [*seen, *(replace(part, drawn=not seen) for part in solid)]
        shapes = tuple(part for part in parts if isinstance(part, Shape))
        meshes = tuple(part for part in parts if isinstance(part, Mesh))
        return Link(name, pin.SE3.Identity(), inertia, shapes, meshes)

    def _inertia(self, link: Element) -> pin.Inertia:
        inertial = link.first("inertial")
        if inertial is None:
            return pin.Inertia.Zero()
        mass = inertial.need("mass").number("value")
        if mass < 0.0:
            inertial.need("mass").refuse(f"a mass of {mass} kg", "value")
        given = inertial.need("inertia")
        matrix = inertia_tensor(
            *(given.number(f"i{pair}") for pair in ("xx", "xy", "xz", "yy", "yz", "zz"))
        )
        if fault := inertia_fault(matrix):
            low, middle, high = np.linalg.eigvalsh(matrix)
            # Up to here it is one that another program rounded or rotated, and simulators take it, too.
            if low <= 0.0 or high > 1.5 * (low + middle):
                given.refuse(fault)
            self._odd[link.text("name")] = fault
        at = origin(inertial)
        return pin.Inertia(mass, at.translation, at.rotation @ matrix @ at.rotation.T)

    def _parts(
        self, elements: Iterator[Element], placement: pin.SE3, *, solid: bool
    ) -> Iterator[Shape | Mesh]:
        for element in elements:
            at = placement * origin(element)
            geometry = element.need("geometry")
            if not geometry.children:
                geometry.refuse("it contains no shape")
            color, material = COLOR, element.first("material")
            if material is not None:
                known = self._colors.get(material.attributes.get("name", ""), COLOR)
                color = _color(material) if material.first("color") else known
            for shape in geometry.children:
                if shape.tag == "mesh":
                    required = element.tag == "collision"
                    mesh = self._mesh(shape, at, solid=solid, required=required, color=color)
                    if mesh is not None:
                        yield mesh
                    continue
                kind, axis, radius = _measures(shape)
                start, end = (tuple(float(v) for v in at.act(end)) for end in (-axis, axis))
                yield Shape(kind, start, end, radius, color, solid)  # type: ignore[arg-type]

    def _mesh(
        self, element: Element, at: pin.SE3, *, solid: bool, required: bool, color: Color
    ) -> Mesh | None:
        """A mesh, with its hull if it is solid; None, with a note, for a file that is missing.

        A file that holds no mesh is refused where it is required, in <collision>, and noted elsewhere. A mesh of
        which there is no hull is refused.
        """
        reference = element.text("filename")
        x, y, z = (float(factor) for factor in element.numbers("scale", 3, (1.0, 1.0, 1.0)))
        if 0.0 in (x, y, z):
            element.refuse("a scale of zero leaves nothing of the mesh", "scale")
        file = self._packages.mesh(reference)
        if file is None:
            self._missing.setdefault(reference, self._describe_missing(reference))
            return None
        if not solid:
            # It is read when it is drawn.
            return Mesh(file, (x, y, z), at, None, color)

        try:
            vertices, _ = read_mesh(file)
        except InputFileError as error:
            if required:
                element.refuse(
                    f"the mesh {reference} cannot take part in collision checks: {error.reason}"
                )
            self._missing.setdefault(reference, f"{error}.")
            return None
        try:
            hull = mesh_hull(file, placed(vertices, (x, y, z), at))
        except InputFileError as error:
            element.refuse(
                f"the mesh {reference} cannot take part in collision checks: {error.reason}"
            )
        return Mesh(file, (x, y, z), at, hull, color)

    def _describe_missing(self, reference: str) -> str:
        """The message about a mesh whose file is not found."""
        package = reference.partition("://")[2].partition("/")[0]
        directory = self._packages.named.get(package)
        where = f" in {directory}, as --package says" if directory else ""
        advice = (
            f"; say where its package is with --package {package}=DIR"
            if package and not directory
            else ""
        )
        return f"there is no such file{where}{advice}."


def _color(material: Element) -> Color:
    red, green, blue, _ = np.clip(material.need("color").numbers("rgba", 4), 0.0, 1.0).tolist()
    return red, green, blue


def _measures(shape: Element) -> tuple[ShapeKind, Array, float]:
    """Kind, half of the axis and radius."""
    z = np.array([0.0, 0.0, 0.5])
    if shape.tag == "sphere":
        return "capsule", 0.0 * z, shape.positive("radius")
    if shape.tag == "cylinder":
        return "cylinder", z * shape.positive("length"), shape.positive("radius")
    if shape.tag == "capsule":
        return "capsule", z * shape.positive("length"), shape.positive("radius")
    if shape.tag != "box":
        shape.refuse("an unknown shape; known are box, cylinder, capsule, sphere and mesh")
    size = shape.numbers("size", 3)
    if not np.all(size > 0.0):
        shape.refuse(f"these must be positive, not {size.tolist()}", "size")
    longest = int(np.argmax(size))
    return (
        "capsule",
        np.eye(3)[longest] * 0.5 * size[longest],
        float(0.5 * np.hypot(*np.delete(size, longest))),
    )
