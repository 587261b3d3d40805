"""The process that reads meshes and makes their convex hulls.

It does so by libraries that a hostile file can crash. A request and an answer are a line of JSON,
followed by the bytes of a file or of arrays.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import numpy as np

from simbridge.files.reading_process import serve

# An array of numbers in COLLADA with an entry that is not a number.
_NAN = re.compile(rb"<(?:\w+:)?float_array[^>]*>[^<]*(?<![^\s>])[+-]?nan\b", re.IGNORECASE)


def answer(request: bytes) -> bytes:
    """Read a mesh, or make a convex hull, as the field "task" says."""
    head, _, data = request.partition(b"\n")
    fields = json.loads(head)
    if fields["task"] == "hull":
        return _answer_hull(data)
    return _answer_mesh(fields["kind"], data)


def _answer_mesh(kind: str, data: bytes) -> bytes:
    """Answer with the vertices (V, 3), m, and triangles (F, 3) of a file.

    For a file that has none, answer with a reason.

    Args:
        kind: Suffix of the file, without the dot.
        data: Content of the file.
    """
    # Half a second, which a hull does not need.
    import trimesh  # noqa: PLC0415

    if kind not in trimesh.available_formats():
        return _refusal(f"meshes are read from files such as .stl, .obj and .dae, not from .{kind}")
    if kind == "dae" and _NAN.search(data):
        # pycollada would read zeros in their place.
        return _refusal("it has vertices that are not finite")

    logging.getLogger("trimesh").setLevel(logging.CRITICAL)
    stream = trimesh.util.wrap_as_stream(data)
    scene = trimesh.load_scene(stream, file_type=kind, process=False, skip_materials=True)
    mesh = scene.to_mesh()
    if mesh.units:
        # COLLADA states its unit; the others have none, and are in m unless the URDF scales them.
        mesh.convert_units("meters")
    mesh.merge_vertices(merge_tex=True, merge_norm=True)

    vertices = np.ascontiguousarray(mesh.vertices, dtype=np.float64)
    triangles = np.ascontiguousarray(mesh.faces, dtype=np.int32)
    if not len(triangles):
        return _refusal("it has no triangles")
    head: dict[str, Any] = {"vertices": len(vertices), "triangles": len(triangles)}
    return json.dumps(head).encode() + b"\n" + vertices.tobytes() + triangles.tobytes()


def _answer_hull(data: bytes) -> bytes:
    """Answer with the corners (K, 3) of the convex hull of points (V, 3)."""
    # Libraries that a mesh without a hull does not need.
    from simbridge.robot.hulls import coal_hull, convex_hull  # noqa: PLC0415

    corners = convex_hull(np.frombuffer(data, dtype=np.float64).reshape(-1, 3))
    # Collision checks make the hull of the corners again: what fails there fails here.
    coal_hull(corners)
    return json.dumps({"corners": len(corners)}).encode() + b"\n" + corners.tobytes()


def _refusal(reason: str) -> bytes:
    """Return the answer about a file that is not a mesh."""
    return json.dumps({"reason": reason}).encode() + b"\n"


if __name__ == "__main__":
    serve(answer)
