"""What a URDF attaches to a link: mass, shapes and meshes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pinocchio as pin

from simbridge.errors import InputFileError
from simbridge.robot.meshes import convex_hull, placed, read_mesh
from simbridge.robot.parts import COLOR, Mesh, Shape, ShapeKind, inertia_fault, inertia_tensor
from simbridge.robot.urdf_tree import Element, Tree, origin

if TYPE_CHECKING:
    from simbridge.robot.packages import Packages

Color = tuple[float, float, float]


class Body(NamedTuple):
    """What moves with a link, in the link's frame."""

    inertia: pin.Inertia
    shapes: tuple[Shape, ...]
    meshes: tuple[Mesh, ...]


class Reading:
    """Reads the bodies of one file, and notes which of its meshes it could not.

    Args:
        packages: Where meshes are found.
        robot: The <robot> element.
    """

    def __init__(self, packages: Packages, robot: Element) -> None:
        self._packages = packages
        self._missing: dict[str, str] = {}
        named = (
            material
            for link in robot.all("link")
            for visual in link.all("visual")
            for material in visual.all("material")
        )
        self._colors: dict[str, Color] = {}
        for material in (*robot.all("material"), *named):
            if (name := material.attributes.get("name")) and material.first("color") is not None:
                self._colors.setdefault(name, _color(material))

    @property
    def notes(self) -> list[str]:
        """Which meshes are missing, as sentences."""
        if not self._missing:
            return []
        first, reason = next(iter(self._missing.items()))
        more = f" and {len(self._missing) - 1} more" if len(self._missing) > 1 else ""
        return [f"The mesh {first}{more} is neither drawn nor part of collision checks: {reason}"]

    def body(self, tree: Tree, link: str, moving: list[Element]) -> Body:
        """A link and all that is attached to it off the chain.

        Args:
            tree: Of the file.
            link: Its name.
            moving: The chain's movable joints, behind which the next link of the arm begins.
        """
        inertia = pin.Inertia.Zero()
        parts: list[Shape | Mesh] = []
        for element, placement in tree.attached(link, moving):
            inertia += placement.act(_inertia(element))
            parts += self._parts(element, placement)
        shapes = tuple(part for part in parts if isinstance(part, Shape))
        return Body(inertia, shapes, tuple(part for part in parts if isinstance(part, Mesh)))

    def _parts(self, link: Element, placement: pin.SE3) -> Iterator[Shape | Mesh]:
        """What is drawn is its <visual>, what takes part in collision checks its <collision>; one stands for both."""
        solid = list(self._read(link.all("collision"), placement, solid=True))
        seen = list(self._read(link.all("visual"), placement, solid=not solid))
        yield from seen
        yield from (replace(part, drawn=not seen) for part in solid)

    def _read(self, elements: Iterator[Element], placement: pin.SE3, *, solid: bool) -> Iterator[Shape | Mesh]:
        for element in elements:
            at = placement * origin(element)
            geometry = element.need("geometry")
            if not geometry.children:
                geometry.refuse("it contains no shape")
            color = self._color_of(element)
            for shape in geometry.children:
                if shape.tag == "mesh":
                    if (mesh := self._mesh(shape, at, solid, color)) is not None:
                        yield mesh
                    continue
                kind, axis, radius = _measures(shape)
                start, end = (tuple(float(v) for v in at.act(end)) for end in (-axis, axis))
                yield Shape(kind, start, end, radius, color, solid)  # type: ignore[arg-type]

    def _mesh(self, element: Element, at: pin.SE3, solid: bool, color: Color) -> Mesh | None:
        reference = element.text("filename")
        x, y, z = (float(factor) for factor in element.numbers("scale", 3, (1.0, 1.0, 1.0)))
        file = self._packages.mesh(reference)
        if file is None:
            package = reference.partition("://")[2].partition("/")[0] if "://" in reference else ""
            advice = f"; say where its package is with --package {package}=DIR" if package else ""
            self._missing.setdefault(reference, f"there is no such file{advice}.")
            return None
        try:
            hull = convex_hull(placed(read_mesh(file)[0], (x, y, z), at)) if solid else None
        except InputFileError as error:
            self._missing.setdefault(reference, f"{error}.")
            return None
        return Mesh(file, (x, y, z), at, hull, color)

    def _color_of(self, element: Element) -> Color:
        material = element.first("material")
        if material is None:
            return COLOR
        return (
            _color(material)
            if material.first("color")
            else self._colors.get(material.attributes.get("name", ""), COLOR)
        )


def _color(material: Element) -> Color:
    red, green, blue, _ = np.clip(material.need("color").numbers("rgba", 4), 0.0, 1.0).tolist()
    return red, green, blue


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
