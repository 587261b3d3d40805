"""The kinematics of an arm as a URDF file, for libraries that read an arm only from a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pinocchio as pin

from simbridge.robot.robot import Robot
from simbridge.robot.urdf_writer import MASSLESS

# Mass, kg, and radius, m, of the sphere that stands for each link: some readers refuse a link
# without a mass.
PLACEHOLDER_MASS = 1.0
PLACEHOLDER_RADIUS = 0.1


def kinematic_urdf(robot: Robot, *, masses: bool = True) -> str:
    """Return the joints and frames of an arm as URDF text, without shapes.

    Args:
        robot: The arm.
        masses: Whether its base and frames have inertial data, all zero: PyBullet prints a warning
            where they have none, KDL where the base has any.
    """
    sphere = pin.Inertia.FromSphere(PLACEHOLDER_MASS, PLACEHOLDER_RADIUS)
    links = tuple(replace(link, inertia=sphere, shapes=(), meshes=()) for link in robot.links)
    bare_robot = replace(robot, links=links, base_shapes=(), base_meshes=(), payload=0.0)
    return bare_robot.urdf if masses else bare_robot.urdf.replace(MASSLESS, "")


@contextmanager
def kinematic_urdf_file(robot: Robot, *, masses: bool = True) -> Iterator[str]:
    """Write `kinematic_urdf` to a file that exists within the block, and yield its path."""
    with tempfile.TemporaryDirectory(prefix="simbridge-urdf-") as directory:
        path = Path(directory, "robot.urdf")
        path.write_text(kinematic_urdf(robot, masses=masses), encoding="utf-8")
        yield str(path)
