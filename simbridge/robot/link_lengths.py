"""Another length for each link of a planar arm: its links become rods of the same thickness, longer or shorter."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from simbridge.errors import InvalidParameter
from simbridge.robot.toml_format import LinkTable, RobotFile, ShapeTable, Vector


def with_lengths(data: RobotFile, lengths: Sequence[float]) -> RobotFile:
    """The file's arm with links of these lengths (n,), m.

    A link that is s times as long has its shapes and its centre of mass stretched by s along it and s times the mass. A
    rod's moment about its axis is m r^2 / 2 and grows by s; of that about an axis across, m r^2 / 4 + m l^2 / 12, the
    part with the length grows by s^3.

    Raises:
        InvalidParameter: The arm is not planar with its links along x, or these are not one positive number a link.
    """
    kinematics = data.kinematics
    if any(kinematics.alpha) or any(kinematics.d) or not all(a > 0.0 for a in kinematics.a):
        raise InvalidParameter("link lengths", list(lengths), f"left out: {data.title} is not a planar arm")
    if len(lengths) != len(kinematics.a) or not all(np.isfinite(length) and length > 0.0 for length in lengths):
        needed = f"{len(kinematics.a)} positive numbers in m, one a link"
        raise InvalidParameter("link lengths", list(lengths), needed)
    new = [float(length) for length in lengths]
    links = [_stretched(link, length / a) for link, length, a in zip(data.links, new, kinematics.a, strict=True)]
    return msgspec.structs.replace(data, kinematics=msgspec.structs.replace(kinematics, a=new), links=links)


def _stretched(link: LinkTable, s: float) -> LinkTable:
    about = link.inertia
    inertia = msgspec.structs.replace(
        about,
        ixx=about.ixx * s,
        ixy=about.ixy * s**2,
        ixz=about.ixz * s**2,
        iyy=_across(about.iyy, about.ixx, s),
        iyz=about.iyz * s,
        izz=_across(about.izz, about.ixx, s),
    )
    return msgspec.structs.replace(
        link,
        mass=link.mass * s,
        center_of_mass=_along_x(link.center_of_mass, s),
        inertia=inertia,
        shapes=[_stretched_shape(shape, s) for shape in link.shapes],
    )


def _across(moment: float, along: float, s: float) -> float:
    return (moment - 0.5 * along) * s**3 + 0.5 * along * s


def _stretched_shape(shape: ShapeTable, s: float) -> ShapeTable:
    return msgspec.structs.replace(shape, start=_along_x(shape.start, s), end=_along_x(shape.end, s))


def _along_x(point: Vector, s: float) -> Vector:
    return (point[0] * s, point[1], point[2])
