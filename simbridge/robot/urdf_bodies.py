"""The bodies of an arm from a URDF: masses, shapes and meshes of its links.

What is attached to a link off the chain is part of the link's body. A box becomes the capsule that
encloses it, a mesh its convex hull.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError
from simbridge.robot.file_faults import FileFaults
from simbridge.robot.inertia import inertia_tensor, unusual_inertia
from simbridge.robot.mesh_files import mesh_hull, place_vertices, read_mesh
from simbridge.robot.packages import Packages
from simbridge.robot.parts import (
    COLOR,
    Link,
    Mesh,
    Shape,
    ShapeKind,
)
from simbridge.robot.pose import Array
from simbridge.robot.urdf_tree import Tree, read_origin
from simbridge.robot.xml_element import Element
from simbridge.text import join_words

# Red, green, blue, 0 to 1.
Color = tuple[float, float, float]


class _RoundShape(NamedTuple):
    """A capsule or cylinder around its own centre.

    Attributes:
        kind: Kind of the shape.
        half_axis: Vector from the shape's centre to an end of its axis (3,), m.
        radius: Radius, m.
    """

    kind: ShapeKind
    half_axis: Array
    radius: float


class BodyReader:
    """Reads mass, shapes and meshes of links, with all that is attached to them off the chain.

    Args:
        tree: The links and joints.
        packages: Finds the files of meshes.
        moving: The movable joints of the chain, behind which the arm's next link begins.
        faults: Collects everything that is wrong.
    """

    def __init__(
        self, tree: Tree, packages: Packages, moving: list[Element], faults: FileFaults
    ) -> None:
        self._tree = tree
        self._packages = packages
        self._moving = moving
        self._faults = faults
        # The message about each mesh that could not be read, by the reference to it.
        self._missing_meshes: dict[str, str] = {}
        # What is unusual about the inertia of a link, by the link's name.
        self._inertia_faults: dict[str, str] = {}
        self._colors = _named_colors(tree.robot, faults)

    def notes(self) -> Iterator[str]:
        """Say which inertia is unusual, and which meshes could not be read, each in a sentence."""
        for fault in dict.fromkeys(self._inertia_faults.values()):
            links = [link for link, why in self._inertia_faults.items() if why == fault]
            yield f"{join_words(links)}: {fault}. The inertia is used as it is."

        for reason in dict.fromkeys(self._missing_meshes.values()):
            meshes = [mesh for mesh, why in self._missing_meshes.items() if why == reason]
            subject = f"The mesh {meshes[0]} is"
            if len(meshes) > 1:
                subject = f"The mesh {meshes[0]} and {len(meshes) - 1} more are"
            yield f"{subject} neither drawn nor part of collision checks: {reason}"

    def read_body(self, name: str) -> Link:
        """Read a link and all that is attached to it, in its own frame."""
        inertia = pin.Inertia.Zero()
        parts: list[Shape | Mesh] = []
        for element, placement in self._tree.attached_links(name, self._moving):
            inertia += placement.act(self._read_inertia(element))

            # What takes part in collision checks is <collision>, what is drawn <visual>; where a
            # link has only one of them, that stands for both.
            collisions = element.find_all("collision")
            solid_parts = self._read_parts(collisions, placement, solid=True)
            is_solid_by_visuals = not solid_parts
            visuals = element.find_all("visual")
            drawn_parts = self._read_parts(visuals, placement, solid=is_solid_by_visuals)
            is_drawn_by_collisions = not drawn_parts
            parts += drawn_parts
            parts += [replace(part, drawn=is_drawn_by_collisions) for part in solid_parts]

        shapes = tuple(part for part in parts if isinstance(part, Shape))
        meshes = tuple(part for part in parts if isinstance(part, Mesh))
        return Link(name, pin.SE3.Identity(), inertia, shapes, meshes)

    def _read_inertia(self, link: Element) -> pin.Inertia:
        """Read the inertia of one link in its frame; zero without an <inertial>."""
        inertial = link.find("inertial")
        if inertial is None:
            return pin.Inertia.Zero()

        # Some body stands for one that cannot be read: the file is refused.
        mass = self._faults.attempt(1.0, _read_mass, inertial)
        tensor = self._faults.attempt(np.eye(3), self._read_tensor, inertial)
        fault = unusual_inertia(mass, tensor)
        if fault:
            self._inertia_faults[link.name] = fault

        # The moments are given in the axes of <origin>.
        centre = read_origin(inertial, self._faults)
        inertia = pin.Inertia(mass, centre.translation, np.zeros((3, 3)))
        # The constructor refuses a moment that is negative.
        inertia.inertia = centre.rotation @ tensor @ centre.rotation.T
        return inertia

    def _read_tensor(self, inertial: Element) -> Array:
        """Read the six moments of an <inertial> as a tensor (3, 3), kg m^2."""
        moments = inertial.require("inertia")
        attempt = self._faults.attempt
        xx, yy, zz = (attempt(1.0, moments.number, name) for name in ("ixx", "iyy", "izz"))
        xy, xz, yz = (attempt(0.0, moments.number, name) for name in ("ixy", "ixz", "iyz"))
        return inertia_tensor(xx=xx, xy=xy, xz=xz, yy=yy, yz=yz, zz=zz)

    def _read_parts(
        self, elements: Iterator[Element], placement: pin.SE3, *, solid: bool
    ) -> list[Shape | Mesh]:
        """Read the shapes and meshes of <visual> or <collision> elements.

        Args:
            elements: The elements.
            placement: Placement of the elements' link in the frame of the body.
            solid: Whether they take part in collision checks.
        """
        parts: list[Shape | Mesh] = []
        for element in elements:
            frame = placement * read_origin(element, self._faults)
            color = self._faults.attempt(COLOR, self._find_color, element)
            required = element.tag == "collision"
            for shape in self._faults.attempt([], _shapes_in, element):
                with self._faults.collect():
                    if shape.tag == "mesh":
                        parts += self._read_mesh(
                            shape, frame, solid=solid, required=required, color=color
                        )
                    else:
                        round_shape = _read_shape(shape, self._faults)
                        parts.append(_place_shape(round_shape, frame, color, solid=solid))
        return parts

    def _find_color(self, element: Element) -> Color:
        """Find the colour of a <visual>: its own, or that of the material that it names."""
        material = element.find("material")
        if material is None:
            return COLOR
        if material.find("color"):
            return _read_color(material)
        return self._colors.get(material.attributes.get("name", ""), COLOR)

    def _read_mesh(
        self, element: Element, frame: pin.SE3, *, solid: bool, required: bool, color: Color
    ) -> Iterator[Mesh]:
        """Read a mesh, with its hull if it is solid.

        A file that holds no mesh is refused where it is required, and noted elsewhere. A mesh of
        which there is no hull is refused.

        Args:
            element: The <mesh>.
            frame: Frame of the mesh in that of the body.
            solid: Whether it takes part in collision checks.
            required: Whether it is in a <collision>.
            color: Colour in which the mesh is drawn.

        Yields:
            The mesh; nothing, but a note, for a file that is missing.
        """
        scale = self._faults.attempt((1.0, 1.0, 1.0), _read_scale, element)
        reference = element.text("filename")

        file = self._packages.mesh(reference)
        if file is None:
            self._missing_meshes.setdefault(reference, self._describe_missing(reference))
            return
        if not solid:
            # It is read when it is drawn.
            yield Mesh(file, scale, frame, None, color)
            return

        try:
            vertices, _ = read_mesh(file)
        except InputFileError as error:
            if required:
                element.refuse(_mesh_fault(reference, error))
            self._missing_meshes.setdefault(reference, f"{error}.")
            return
        try:
            hull = mesh_hull(file, place_vertices(vertices, scale, frame))
        except InputFileError as error:
            element.refuse(_mesh_fault(reference, error))
        yield Mesh(file, scale, frame, hull, color)

    def _describe_missing(self, reference: str) -> str:
        """Return the message about a mesh whose file is not found."""
        package = reference.partition("://")[2].partition("/")[0]
        directory = self._packages.named.get(package)
        if directory:
            return f"file not found in {directory}, the directory given with --package."
        if package:
            return (
                f"file not found; give the directory of its package with --package {package}=DIR."
            )
        return "file not found."


def _read_mass(inertial: Element) -> float:
    """Read the mass of an <inertial>, kg."""
    element = inertial.require("mass")
    mass = element.number("value")
    if mass < 0.0:
        element.refuse(f"a mass of {mass} kg", "value")
    return mass


def _shapes_in(element: Element) -> list[Element]:
    """Return the shapes and meshes of a <visual> or <collision>; refuse one without any."""
    geometry = element.require("geometry")
    if not geometry.children:
        geometry.refuse("it contains no shape")
    return geometry.children


def _read_scale(mesh: Element) -> tuple[float, float, float]:
    """Read the scale of a <mesh> along x, y and z."""
    x, y, z = (float(factor) for factor in mesh.numbers("scale", 3, (1.0, 1.0, 1.0)))
    if 0.0 in {x, y, z}:
        mesh.refuse("a scale of zero leaves nothing of the mesh", "scale")
    return x, y, z


def _mesh_fault(reference: str, error: InputFileError) -> str:
    """Return the message about a mesh that cannot be read, or has no hull."""
    return f"the mesh {reference} cannot take part in collision checks: {error.reason}"


def _named_colors(robot: Element, faults: FileFaults) -> dict[str, Color]:
    """Return the colours of all materials with a name: the file's, then those in its visuals.

    Args:
        robot: The element <robot>.
        faults: Collects colours that cannot be read.
    """
    materials = list(robot.find_all("material"))
    for link in robot.find_all("link"):
        for visual in link.find_all("visual"):
            materials += visual.find_all("material")

    colors: dict[str, Color] = {}
    for material in materials:
        name = material.attributes.get("name")
        if name and material.find("color") is not None:
            with faults.collect():
                colors.setdefault(name, _read_color(material))
    return colors


def _read_color(material: Element) -> Color:
    """Read the colour of a material, without its opacity."""
    rgba = material.require("color").numbers("rgba", 4)
    red, green, blue, _ = np.clip(rgba, 0.0, 1.0).tolist()
    return red, green, blue


def _read_shape(element: Element, faults: FileFaults) -> _RoundShape:
    """Read a sphere, cylinder, capsule or box.

    Args:
        element: The shape.
        faults: Collects lengths that cannot be read.
    """
    if element.tag == "box":
        return _enclose_box(element.numbers("size", 3), element)
    if element.tag not in {"sphere", "cylinder", "capsule"}:
        element.refuse("unknown shape; supported are box, cylinder, capsule, sphere and mesh")

    radius = faults.attempt(1.0, element.positive, "radius")
    if element.tag == "sphere":
        return _RoundShape("capsule", np.zeros(3), radius)
    length = faults.attempt(1.0, element.positive, "length")
    kind: ShapeKind = "cylinder" if element.tag == "cylinder" else "capsule"
    return _RoundShape(kind, np.array([0.0, 0.0, 0.5 * length]), radius)


def _enclose_box(size: Array, box: Element) -> _RoundShape:
    """Return the capsule along a box's longest edges whose ends contain the box's corners.

    Args:
        size: Edges of the box along x, y and z (3,), m.
        box: The <box>, which is refused if an edge is not positive.
    """
    if not np.all(size > 0.0):
        box.refuse(f"these must be positive, not {size.tolist()}", "size")
    longest = int(np.argmax(size))
    half_axis = np.eye(3)[longest] * 0.5 * size[longest]
    radius = float(0.5 * np.hypot(*np.delete(size, longest)))
    return _RoundShape("capsule", half_axis, radius)


def _place_shape(shape: _RoundShape, frame: pin.SE3, color: Color, *, solid: bool) -> Shape:
    """Bring a shape from its own frame into that of the body."""
    start_x, start_y, start_z = (float(v) for v in frame.act(-shape.half_axis))
    end_x, end_y, end_z = (float(v) for v in frame.act(shape.half_axis))
    start = (start_x, start_y, start_z)
    end = (end_x, end_y, end_z)
    return Shape(shape.kind, start, end, shape.radius, color, solid)
