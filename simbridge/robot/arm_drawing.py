"""An arm as views draw it: its shapes as plain values, and its meshes, simplified."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.robot.hulls import coal_hull
from simbridge.robot.mesh_files import (
    Triangles,
    place_vertices,
    points_fault,
    read_mesh,
    reading_meshes,
)
from simbridge.robot.parts import Mesh, Shape
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Triangles with which an arm is drawn; meshes that have more together are simplified.
MAX_TRIANGLES = 20_000
# A simplified mesh keeps at least this many triangles: those of a box.
MIN_TRIANGLES = 12


@dataclass(frozen=True, eq=False)
class DrawnMesh:
    """A mesh as views draw it.

    Attributes:
        body: 0 for the base, i for the body that follows joint i.
        vertices: Vertices (V, 3), m, in base_link or in the frame of the body's joint.
        triangles: Indices (F, 3) of the vertices of each triangle.
        color: Red, green, blue in 0..1.
    """

    body: int
    vertices: NDArray[np.float32]
    triangles: Triangles
    color: tuple[float, float, float]


class ArmDrawing(NamedTuple):
    """The meshes of an arm, simplified where they have many triangles.

    Attributes:
        meshes: The meshes that are drawn.
        triangles: Number of triangles in the files.
    """

    meshes: Sequence[DrawnMesh] = ()
    triangles: int = 0

    @property
    def simplification_note(self) -> str:
        """A sentence with the numbers of triangles if the meshes are simplified; else ""."""
        drawn = sum(len(mesh.triangles) for mesh in self.meshes)
        if drawn == self.triangles:
            return ""
        return f"The meshes of the arm are simplified: {drawn:,} of {self.triangles:,} triangles."

    def as_arrays(self) -> dict[str, Any]:
        """Return the drawing as named arrays, for a file; `from_arrays` reads them back."""
        arrays: dict[str, Any] = {"triangles": self.triangles, "count": len(self.meshes)}
        for k, mesh in enumerate(self.meshes):
            arrays |= {f"{name}_{k}": value for name, value in vars(mesh).items()}
        return arrays

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any]) -> ArmDrawing:
        """Return the drawing that named arrays hold.

        Raises:
            KeyError: An array is missing.
            ValueError: An array is not what it should be.
        """
        meshes = []
        for k in range(int(arrays["count"])):
            values = [arrays[f"{field.name}_{k}"] for field in fields(DrawnMesh)]
            body, vertices, triangles, color = values

            # Each triangle has three vertices that exist, each vertex three coordinates.
            has_vertices = triangles.min(initial=0) >= 0
            has_vertices = has_vertices and triangles.max(initial=0) < len(vertices)
            if vertices.shape[1:] != (3,) or triangles.shape[1:] != (3,) or not has_vertices:
                raise ValueError(f"mesh {k} is not a valid mesh")

            meshes.append(DrawnMesh(int(body), vertices, triangles, tuple(color.tolist())))
        return ArmDrawing(meshes, int(arrays["triangles"]))


def describe_shapes(robot: Robot) -> dict[str, Any]:
    """Return the shapes of base_link and of every link by the link's name.

    They are plain values, in m, in the frame of the link's joint.
    """
    shapes = {"base_link": _shape_values(robot.base_shapes, pin.SE3.Identity())}
    for link in robot.links:
        shapes[link.name] = _shape_values(link.shapes, link.placement)
    return shapes


def _shape_values(shapes: Sequence[Shape], frame: pin.SE3) -> list[dict[str, Any]]:
    """Return the shapes of a link that are drawn, placed by the link's frame in its joint's."""
    values = []
    for shape in shapes:
        if shape.drawn:
            start = frame.act(np.array(shape.start))
            end = frame.act(np.array(shape.end))
            values.append(
                {
                    "kind": shape.kind,
                    "start": start.round(9).tolist(),
                    "end": end.round(9).tolist(),
                    "radius": shape.radius,
                    "color": list(shape.color),
                }
            )
    return values


def draw_arm(robot: Robot) -> ArmDrawing:
    """Return the meshes of an arm, with at most about MAX_TRIANGLES together.

    Of a file that is gone, its hull is drawn.
    """
    # Each body's meshes, with the frame of its link in that of its joint.
    bodies = [(robot.base_meshes, pin.SE3.Identity())]
    bodies += [(link.meshes, link.placement) for link in robot.links]
    meshes = []
    with reading_meshes():
        for body, (body_meshes, frame) in enumerate(bodies):
            for mesh in body_meshes:
                if not mesh.drawn:
                    continue
                drawn_mesh = _read_drawn_mesh(body, mesh, frame)
                if drawn_mesh is not None:
                    meshes.append(drawn_mesh)

    total = sum(len(mesh.triangles) for mesh in meshes)
    if total <= MAX_TRIANGLES:
        return ArmDrawing(meshes, total)
    return ArmDrawing([_simplify(mesh, total) for mesh in meshes], total)


def _simplify(mesh: DrawnMesh, total: int) -> DrawnMesh:
    """Return a mesh with the part of MAX_TRIANGLES that it has of all triangles."""
    import fast_simplification  # noqa: PLC0415 (only for large meshes)

    count = max(MIN_TRIANGLES, len(mesh.triangles) * MAX_TRIANGLES // total)
    vertices, triangles = fast_simplification.simplify(
        mesh.vertices, mesh.triangles, target_count=count
    )
    return replace(mesh, vertices=vertices, triangles=np.asarray(triangles, dtype=np.int32))


def _read_drawn_mesh(body: int, mesh: Mesh, frame: pin.SE3) -> DrawnMesh | None:
    """Read the triangles of a mesh for drawing.

    The file was read with the arm, but may have changed or gone since: then the convex hull, which
    is kept for collision checks, is drawn in its place.

    Args:
        body: Index of the body that the mesh belongs to.
        mesh: The file, and how it is placed in its link.
        frame: The link's frame in that of the body.

    Returns:
        The mesh in its body's frame; None, with a warning, where there is neither file nor hull.
    """
    try:
        vertices, triangles = read_mesh(mesh.file)
        vertices = place_vertices(vertices, mesh.scale, frame * mesh.placement)
        reason = points_fault(vertices)
        if reason is not None:
            raise InputFileError(mesh.file, reason)
    except InputFileError as error:
        if mesh.hull is None:
            warnings.warn(f"A mesh could not be drawn: {error}.", stacklevel=2)
            return None
        vertices, triangles = _hull_triangles(mesh.hull, frame)
    return DrawnMesh(body, vertices.astype(np.float32), triangles, mesh.color)


def _hull_triangles(points: Array, frame: pin.SE3) -> tuple[Array, Triangles]:
    """Return the surface of a convex hull.

    Args:
        points: Corners of the hull in the link's frame, m; see `Mesh.hull`.
        frame: The link's frame in that of the body.

    Returns:
        Vertices (V, 3) in the body's frame, m, and triangles (T, 3) of their indices.
    """
    hull = coal_hull(points)
    vertices = place_vertices(np.array(hull.points()), (1.0, 1.0, 1.0), frame)
    triangles = []
    for index in range(hull.num_polygons):
        # Every polygon of coal's hulls is a triangle: three indices of vertices.
        triangle = hull.polygons(index)
        triangles.append([triangle[0], triangle[1], triangle[2]])
    return vertices, np.array(triangles, np.int32)
