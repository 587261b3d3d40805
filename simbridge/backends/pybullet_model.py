"""An arm as PyBullet loads it: a URDF with the mass at its tool, and the meshes that are drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.errors import InvalidParameter
from simbridge.robot.arm_drawing import draw_arm
from simbridge.robot.parts import Mesh
from simbridge.robot.robot import Robot


def add_tool_mass(robot: Robot, mass: float) -> Robot:
    """Return the arm with a mass at the TCP, kg, in addition to its payload.

    Raises:
        InvalidParameter: It is no mass.
    """
    if not (np.isfinite(mass) and mass >= 0.0):
        raise InvalidParameter("unmodelled payload", mass, "a mass in kg, not negative")
    if mass == 0.0:
        return robot

    last = robot.links[-1]
    tcp_in_last_link = (robot.tool0 * robot.tcp).translation
    inertia = last.inertia + pin.Inertia(mass, tcp_in_last_link, np.zeros((3, 3)))
    return replace(robot, links=(*robot.links[:-1], replace(last, inertia=inertia)))


def remove_meshes(robot: Robot) -> Robot:
    """Return the arm without its meshes."""
    links = tuple(replace(link, meshes=()) for link in robot.links)
    return replace(robot, base_meshes=(), links=links)


def write_meshes(robot: Robot, directory: Path) -> Robot:
    """Return the arm with its meshes as they are drawn, each written to an OBJ file.

    Args:
        robot: The arm.
        directory: Where the files are written.
    """
    # Those of the base, and of each link.
    meshes: list[list[Mesh]] = [[] for _ in range(robot.n + 1)]
    for number, drawn in enumerate(draw_arm(robot).meshes):
        file = directory / f"mesh{number}.obj"
        lines = [f"v {x} {y} {z}" for x, y, z in drawn.vertices.tolist()]
        # OBJ counts vertices from 1.
        lines += [f"f {a} {b} {c}" for a, b, c in (drawn.triangles + 1).tolist()]
        file.write_text("\n".join([*lines, ""]))

        frame = robot.links[drawn.body - 1].placement if drawn.body else pin.SE3.Identity()
        mesh = Mesh(file, (1.0, 1.0, 1.0), frame.inverse(), color=drawn.color)
        meshes[drawn.body].append(mesh)

    links = []
    for link, link_meshes in zip(robot.links, meshes[1:], strict=True):
        links.append(replace(link, meshes=tuple(link_meshes)))
    return replace(robot, base_meshes=tuple(meshes[0]), links=tuple(links))
