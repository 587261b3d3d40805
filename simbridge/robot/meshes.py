"""The shapes of an arm as plain values, and its meshes, simplified for views."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.robot.mesh_files import Triangles, placed, points_fault, read_mesh, reading_meshes
from simbridge.robot.parts import Mesh, coal_hull
from simbridge.robot.robot import Robot

# With which an arm is drawn; meshes that have more together are simplified.
MAX_TRIANGLES = 20_000


@dataclass(frozen=True, eq=False)
class DrawnMesh:
    """A mesh as views draw it: vertices (V, 3), m, and the indices (F, 3) of its triangles.

    It is on body 0, the base, in base_link, or on body i, which follows joint i, in that joint's frame.
    """

    body: int
    vertices: NDArray[np.float32]
    triangles: Triangles
    color: tuple[float, float, float]


class Drawing(NamedTuple):
    """The meshes of an arm, simplified where they have many triangles, and how many triangles the files have."""

    meshes: Sequence[DrawnMesh] = ()
    triangles: int = 0

    @property
    def words(self) -> str:
        """How far they are simplified; "" if they are not."""
        shown = sum(len(mesh.triangles) for mesh in self.meshes)
        if shown == self.triangles:
            return ""
        return f"The meshes of the arm are simplified: {shown:,} of {self.triangles:,} triangles."

    def as_arrays(self) -> dict[str, Any]:
        """As named arrays, for a file; `from_arrays` reads them back."""
        arrays: dict[str, Any] = {"triangles": self.triangles, "count": len(self.meshes)}
        for k, mesh in enumerate(self.meshes):
            arrays |= {f"{name}_{k}": value for name, value in vars(mesh).items()}
        return arrays

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any]) -> Drawing:
        """The drawing of such arrays; KeyError or ValueError if they are none."""
        meshes = []
        for k in range(int(arrays["count"])):
            body, vertices, triangles, color = (
                arrays[f"{own.name}_{k}"] for own in fields(DrawnMesh)
            )
            within = triangles.min(initial=0) >= 0 and triangles.max(initial=0) < len(vertices)
            if vertices.shape[1:] != (3,) or triangles.shape[1:] != (3,) or not within:
                raise ValueError(f"mesh {k} is none")
            meshes.append(DrawnMesh(int(body), vertices, triangles, tuple(color.tolist())))
        return Drawing(meshes, int(arrays["triangles"]))


def shapes_of(robot: Robot) -> dict[str, Any]:
    """The arm's appearance: the shapes of base_link and of every link, in m, in the frame of the link's joint."""
    bodies = [("base_link", robot.base_shapes, pin.SE3.Identity())]
    bodies += [(link.name, link.shapes, link.placement) for link in robot.links]
    found: dict[str, Any] = {}
    for name, shapes, placement in bodies:
        found[name] = []
        for shape in (shape for shape in shapes if shape.drawn):
            ends = {
                end: placement.act(np.array(getattr(shape, end))).round(9).tolist()
                for end in ("start", "end")
            }
            found[name].append(
                {"kind": shape.kind, **ends, "radius": shape.radius, "color": list(shape.color)}
            )
    return found


def drawing_of(robot: Robot) -> Drawing:
    """The meshes of an arm, with at most about MAX_TRIANGLES together; of a file that is gone, its hull."""
    meshes = [(0, mesh, pin.SE3.Identity()) for mesh in robot.base_meshes]
    meshes += [
        (i, mesh, link.placement) for i, link in enumerate(robot.links, 1) for mesh in link.meshes
    ]
    with reading_meshes():
        found = [_drawn(body, mesh, frame) for body, mesh, frame in meshes if mesh.drawn]
    whole = [mesh for mesh in found if mesh is not None]
    total = sum(len(mesh.triangles) for mesh in whole)
    if total <= MAX_TRIANGLES:
        return Drawing(whole, total)
    import fast_simplification  # noqa: PLC0415 (only for large meshes)

    reduced = []
    for mesh in whole:
        wanted = max(12, len(mesh.triangles) * MAX_TRIANGLES // total)
        vertices, triangles = fast_simplification.simplify(
            mesh.vertices, mesh.triangles, target_count=wanted
        )
        reduced.append(
            replace(mesh, vertices=vertices, triangles=np.asarray(triangles, dtype=np.int32))
        )
    return Drawing(reduced, total)


def _drawn(body: int, mesh: Mesh, frame: pin.SE3) -> DrawnMesh | None:
    """A mesh in its body's frame; its hull where the file cannot be read any more; None without a hull."""
    try:
        vertices, triangles = read_mesh(mesh.file)
        vertices = placed(vertices, mesh.scale, frame * mesh.placement)
        reason = points_fault(vertices)
        if reason is not None:
            raise InputFileError(mesh.file, reason)
    except InputFileError as error:
        if mesh.hull is None:
            warnings.warn(f"A mesh is not drawn. {error}.", stacklevel=2)
            return None
        hull = coal_hull(mesh.hull)
        vertices = placed(np.array(hull.points()), (1.0, 1.0, 1.0), frame)
        triangles = np.array(
            [[hull.polygons(k)[i] for i in range(3)] for k in range(hull.num_polygons)], np.int32
        )
    return DrawnMesh(body, vertices.astype(np.float32), triangles, mesh.color)
