"""An arm as PyBullet loads it: inertias that it accepts, no stops, and meshes to be drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.parts import Mesh
from simbridge.robot.robot import Robot

# Number of the body that stands for the base; those of the links follow.
BASE_BODY = 0
# Scale of a mesh whose file is in m.
UNSCALED = (1.0, 1.0, 1.0)


def make_loadable(robot: Robot) -> Robot:
    """Return the arm with inertia tensors that PyBullet loads, along the same principal axes.

    For a tensor that no body has, PyBullet takes zero and prints a warning into the output. What
    it is to simulate is set after loading.
    """
    links = []
    for link, inertia in zip(robot.links, robot.link_inertias, strict=True):
        low, middle, high = np.linalg.eigvalsh(inertia.inertia)
        missing = high - low - middle
        if missing > 0.0:
            # Twice, against rounding.
            sphere = pin.Inertia(0.0, np.zeros(3), 2.0 * missing * np.eye(3))
            link = replace(link, inertia=link.inertia + sphere)
        links.append(link)
    return replace(robot, links=tuple(links))


def remove_stops(robot: Robot) -> Robot:
    """Return the arm with joints that turn and slide without end.

    PyBullet stops a joint at the limits of its URDF. The plan check keeps every plan within them,
    and an arm that its torques cannot hold moves in the same way in every engine.
    """
    joints = tuple(
        replace(joint, position_min=-np.inf, position_max=np.inf) for joint in robot.joints
    )
    return replace(robot, joints=joints)


def remove_meshes(robot: Robot) -> Robot:
    """Return the arm without its meshes."""
    links = tuple(replace(link, meshes=()) for link in robot.links)
    return replace(robot, base_meshes=(), links=links)


def write_meshes(robot: Robot, directory: Path) -> Robot:
    """Return the arm with its meshes as they are drawn, each written to an OBJ file.

    Args:
        robot: The arm.
        directory: The directory into which the files are written.
    """
    # The meshes of each body: of the base, body 0, and of each link.
    meshes_of_body: list[list[Mesh]] = [[] for _ in range(robot.n + 1)]
    for number, drawn in enumerate(draw_arm(robot).meshes):
        # A file of its vertices and triangles. OBJ counts vertices from 1.
        file = directory / f"mesh{number}.obj"
        lines = [f"v {x} {y} {z}" for x, y, z in drawn.vertices.tolist()]
        lines += [f"f {a} {b} {c}" for a, b, c in (drawn.triangles + 1).tolist()]
        file.write_text("\n".join([*lines, ""]))

        # The vertices are in the frame of the body's joint, and the mesh is placed in the frame of
        # the link, whose placement in the joint's frame is therefore inverted. For the base both
        # frames are base_link.
        placement = pin.SE3.Identity()
        if drawn.body != BASE_BODY:
            link_in_joint = robot.links[drawn.body - 1].placement
            placement = link_in_joint.inverse()
        mesh = Mesh(file, UNSCALED, placement, color=drawn.color)
        meshes_of_body[drawn.body].append(mesh)

    base_meshes, *meshes_of_links = meshes_of_body
    links = []
    for link, link_meshes in zip(robot.links, meshes_of_links, strict=True):
        links.append(replace(link, meshes=tuple(link_meshes)))
    return replace(robot, base_meshes=tuple(base_meshes), links=tuple(links))
