"""Meshes of files, and their convex hulls.

They are read in a child process, and checked before a library in this one sees them.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import InputFileError
from simbridge.files.reading import MIB, read_bytes
from simbridge.files.reading_process import Limits, ReadingFailed, ReadingProcess
from simbridge.robot.pose import Array

# Largest file of a mesh, bytes.
MAX_MESH_BYTES = 64 * MIB
LIMITS = Limits(cpu=60, memory=4096 * MIB, output=1024 * MIB)
# Farthest vertex from the origin of its link, along an axis, m.
MAX_COORDINATE = 1000.0
# Points that extend less are in one point, or on one line, m.
MIN_EXTENT = 1e-6
# The same limit as a fraction of the largest extent.
MIN_RELATIVE_EXTENT = 1e-9

Triangles = NDArray[np.int32]

_process = ReadingProcess("simbridge.robot.mesh_process", LIMITS)
_process_lock = threading.Lock()


@contextlib.contextmanager
def reading_meshes() -> Iterator[None]:
    """Use one process for all meshes that are read within the block, and end it with the block."""
    try:
        yield
    finally:
        with _process_lock:
            _process.close()


@lru_cache(maxsize=64)
def read_mesh(file: Path) -> tuple[Array, Triangles]:
    """Read the vertices (V, 3), m, and triangles (F, 3) of a file.

    Raises:
        InputFileError: It cannot be read, or has no triangles.
    """
    kind = file.suffix.lower().removeprefix(".")
    data = read_bytes(file, MAX_MESH_BYTES)
    fields, content = _ask(file, {"task": "mesh", "kind": kind}, data)
    if "reason" in fields:
        raise InputFileError(file, fields["reason"])

    length = 3 * 8 * fields["vertices"]
    # Copies, since libraries of compiled code take only arrays that can be written.
    vertices = np.frombuffer(content[:length], dtype=np.float64).reshape(-1, 3).copy()
    triangles = np.frombuffer(content[length:], dtype=np.int32).reshape(-1, 3).copy()
    if triangles.min() < 0 or triangles.max() >= len(vertices):
        raise InputFileError(file, "a triangle has a vertex that is not in it")
    return vertices, triangles


def mesh_hull(file: Path, points: Array) -> Array:
    """Return the corners (K, 3) of the convex hull of a mesh's points (V, 3), m.

    See `convex_hull`.

    Raises:
        InputFileError: The points have no hull; names the mesh's file.
    """
    reason = points_fault(points)
    if reason is not None:
        raise InputFileError(file, reason)

    data = np.ascontiguousarray(points, dtype=np.float64).tobytes()
    _, content = _ask(file, {"task": "hull"}, data)
    return np.frombuffer(content, dtype=np.float64).reshape(-1, 3)


def _ask(file: Path, fields: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """Ask the process that reads meshes.

    Args:
        file: The file, for the error.
        fields: Fields of the request's first line.
        data: What follows it.

    Returns:
        The fields and the data of the answer.
    """
    request = json.dumps(fields).encode() + b"\n" + data
    try:
        with _process_lock:
            answer = _process.ask(request)
    except ReadingFailed as error:
        raise InputFileError(file, f"it cannot be read as a mesh: {error}") from None
    head, _, content = answer.partition(b"\n")
    return json.loads(head), content


def points_fault(points: Array) -> str | None:
    """Return the reason, as a clause, why points (V, 3), m, of a mesh cannot be drawn or checked.

    None if they can. Points in one plane are not a fault: they are a thin plate.
    """
    if not np.isfinite(points).all():
        return "it has vertices that are not finite"
    farthest = float(np.abs(points).max())
    if farthest > MAX_COORDINATE:
        return (
            f"a vertex is {farthest:.4g} m from its link's origin, and at most "
            f"{MAX_COORDINATE:g} m are read; a mesh in mm needs "
            'scale="0.001 0.001 0.001"'
        )

    # Extents along the principal axes, the largest first.
    centred = points - points.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    extents = np.ptp(centred @ axes.T, axis=0)
    if len(points) < 3 or extents[0] < MIN_EXTENT:
        return "all of its vertices are in one point"
    if extents[1] < max(MIN_EXTENT, MIN_RELATIVE_EXTENT * extents[0]):
        return "all of its vertices are on one line"
    return None


def place_vertices(vertices: Array, scale: tuple[float, float, float], placement: pin.SE3) -> Array:
    """Return vertices (V, 3) of a file, scaled and placed; what overflows is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return vertices * np.array(scale) @ placement.rotation.T + placement.translation
