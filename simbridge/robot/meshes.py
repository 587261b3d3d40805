"""Meshes of an arm: read by trimesh, their convex hulls made by coal for collision checks, simplified for views."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.robot.input_file import MIB, read_bytes
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

MAX_MESH = 64 * MIB
"""Largest file of a mesh, bytes."""
MAX_TRIANGLES = 20_000
"""Triangles with which an arm is drawn; meshes that have more together are simplified."""
# A hull is at least so thick, m: a flat one has no inside.
_THICKNESS = 1e-3

Triangles = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class DrawnMesh:
    """A mesh as views draw it.

    Attributes:
        body: 0 for the base, i for what follows joint i.
        vertices: (V, 3), in base_link or in the joint's frame, m.
        triangles: Indices of vertices (F, 3).
        color: Red, green, blue in 0..1.
    """

    body: int
    vertices: NDArray[np.float32]
    triangles: Triangles
    color: tuple[float, float, float]


@lru_cache(maxsize=64)
def read_mesh(file: Path) -> tuple[Array, Triangles]:
    """Vertices (V, 3), m, and triangles (F, 3) of a file.

    Raises:
        InputFileError: It cannot be read, or has no triangles.
    """
    import trimesh  # half a second, and only for arms with meshes

    kind = file.suffix.lower().removeprefix(".")
    if kind not in trimesh.available_formats():
        raise InputFileError(file, f"meshes are read from files such as .stl, .obj and .dae, not from .{kind}")
    data = read_bytes(file, MAX_MESH)
    logging.getLogger("trimesh").setLevel(logging.CRITICAL)
    try:
        scene = trimesh.load_scene(
            trimesh.util.wrap_as_stream(data), file_type=kind, process=False, skip_materials=True
        )
        mesh = scene.to_mesh()
        if mesh.units:
            # COLLADA states its unit; the others have none, and are in m unless the URDF scales them.
            mesh.convert_units("meters")
        mesh.merge_vertices(merge_tex=True, merge_norm=True)
        vertices, triangles = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int32)
    except Exception as error:  # whatever a damaged file brings about in one of the readers
        raise InputFileError(file, f"it cannot be read as a mesh: {type(error).__name__}: {error}") from None
    if not len(triangles) or not np.isfinite(vertices).all():
        raise InputFileError(file, "it has no triangles, or vertices that are not finite")
    return vertices, triangles


def placed(vertices: Array, scale: tuple[float, float, float], placement: pin.SE3) -> Array:
    """Vertices (V, 3) of a file, scaled and placed."""
    return vertices * np.array(scale) @ placement.rotation.T + placement.translation


def convex_hull(vertices: Array) -> Array:
    """The corners (K, 3) of the convex hull of points (V, 3), m."""
    centred = vertices - vertices.mean(axis=0)
    normal = np.linalg.svd(centred, full_matrices=False)[2][-1]
    if np.ptp(centred @ normal) < _THICKNESS:
        half = 0.5 * _THICKNESS * normal
        vertices = np.concatenate([vertices - half, vertices + half])
    return np.array(coal_hull(vertices).points())


def coal_hull(vertices: Array) -> coal.ConvexBase:
    """The convex hull of points (V, 3), not all in one plane, as coal takes it."""
    points = coal.StdVec_Vec3s()
    for vertex in vertices:
        points.append(vertex)
    return coal.Convex.convexHull(points, True, "Qt")


def drawn_meshes(robot: Robot) -> list[DrawnMesh]:
    """All meshes that are drawn, with at most about MAX_TRIANGLES together; of a file that is gone, its hull."""
    meshes = [(0, mesh, pin.SE3.Identity()) for mesh in robot.base_meshes]
    meshes += [(i, mesh, link.placement) for i, link in enumerate(robot.links, 1) for mesh in link.meshes]
    found = []
    for body, mesh, frame in meshes:
        if not mesh.drawn:
            continue
        try:
            vertices, triangles = read_mesh(mesh.file)
            vertices = placed(vertices, mesh.scale, frame * mesh.placement)
        except InputFileError:
            if mesh.hull is None:
                continue
            hull = coal_hull(mesh.hull)
            vertices = placed(np.array(hull.points()), (1.0, 1.0, 1.0), frame)
            triangles = np.array([[hull.polygons(k)[i] for i in range(3)] for k in range(hull.num_polygons)], np.int32)
        found.append(DrawnMesh(body, vertices.astype(np.float32), triangles, mesh.color))
    return _simplified(found)


def triangle_count(robot: Robot) -> int:
    """How many triangles the files of the meshes that are drawn have."""
    every = [mesh for meshes in (robot.base_meshes, *(link.meshes for link in robot.links)) for mesh in meshes]
    return sum(len(read_mesh(mesh.file)[1]) for mesh in every if mesh.drawn)


def _simplified(meshes: list[DrawnMesh]) -> list[DrawnMesh]:
    total = sum(len(mesh.triangles) for mesh in meshes)
    if total <= MAX_TRIANGLES:
        return meshes
    import fast_simplification  # only for large meshes

    reduced = []
    for mesh in meshes:
        wanted = max(12, len(mesh.triangles) * MAX_TRIANGLES // total)
        vertices, triangles = fast_simplification.simplify(mesh.vertices, mesh.triangles, target_count=wanted)
        reduced.append(DrawnMesh(mesh.body, vertices, np.asarray(triangles, dtype=np.int32), mesh.color))
    return reduced
