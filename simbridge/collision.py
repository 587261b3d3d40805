"""Clearance of a posture: link against link, and links against the floor.

Links are the capsules and cylinders of the robot's description. A sequence of postures is not tested one by one: while
two bodies that were d apart have moved less than d against each other, they cannot touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import coal
import numpy as np
import pinocchio as pin

from simbridge.errors import FloorCollision, SelfCollision
from simbridge.robot import Robot, Shape
from simbridge.robot.robot import Array
from simbridge.robot.urdf_writer import axis_frame

FLOOR = "the floor"
_FLOOR_OWNER = -2
# The shapes follow the true surfaces to about this much, m.
MARGIN = 0.005


@dataclass(frozen=True)
class Clearance:
    """The nearest two bodies of a posture.

    Attributes:
        distance: m; negative when they overlap.
        bodies: Their names; the second may be the floor.
    """

    distance: float
    bodies: tuple[str, str]


def _geometry(shape: Shape, frame: pin.SE3) -> tuple[coal.ShapeBase, pin.SE3]:
    middle, length = axis_frame(shape)
    kind = coal.Capsule if shape.kind == "capsule" else coal.Cylinder
    return kind(shape.radius, length), frame * middle


def _extent(shape: Shape, frame: pin.SE3) -> float:
    """The largest distance of a shape's points from the origin of its joint, m."""
    return max(float(np.linalg.norm(frame.act(np.array(end)))) for end in (shape.start, shape.end)) + shape.radius


class CollisionModel:
    """The solid shapes of an arm over a floor.

    Neighbouring links are not tested against each other, nor are pairs that overlap at home: those are built that way.

    Args:
        robot: The arm.
        floor: Height of the floor in base_link, m; None for no floor.
    """

    def __init__(self, robot: Robot, floor: float | None = 0.0) -> None:
        self.robot = robot
        self._geometry = pin.GeometryModel()
        owners = self._add_links()
        if floor is not None:
            plane = coal.Halfspace(np.array([0.0, 0.0, 1.0]), float(floor))
            item = pin.GeometryObject(FLOOR, 0, pin.SE3.Identity(), plane)
            owners.append((self._geometry.addGeometryObject(item), _FLOOR_OWNER))
        self._model, self._data = robot.model, robot.model.createData()
        self._pair([owner for _, owner in sorted(owners)])
        self._buffers = self._geometry.createData()
        self._motion = self._motion_bounds([owner for _, owner in sorted(owners)])

    def _add_links(self) -> list[tuple[int, int]]:
        owners = []
        bodies = [(-1, "base_link", 0, pin.SE3.Identity(), self.robot.base_shapes)]
        bodies += [(i, link.name, i + 1, link.placement, link.shapes) for i, link in enumerate(self.robot.links)]
        for owner, name, joint, frame, shapes in bodies:
            for shape in shapes:
                if shape.solid:
                    geometry, placement = _geometry(shape, frame)
                    item = pin.GeometryObject(f"{name}#{len(owners)}", joint, placement, geometry)
                    owners.append((self._geometry.addGeometryObject(item), owner))
        return owners

    def _pair(self, owners: list[int]) -> None:
        for first, link_a in enumerate(owners):
            for second in range(first + 1, len(owners)):
                link_b = owners[second]
                # The base and the first link stand on the floor.
                if link_a > 0 if link_b == _FLOOR_OWNER else abs(link_a - link_b) > 1:
                    self._geometry.addCollisionPair(pin.CollisionPair(first, second))
        self._buffers = self._geometry.createData()
        self._distances(self.robot.home)
        pairs = [(p.first, p.second) for p in self._geometry.collisionPairs]
        for (first, second), result in zip(pairs, self._buffers.distanceResults, strict=True):
            if result.min_distance <= MARGIN and owners[second] != _FLOOR_OWNER:
                self._geometry.removeCollisionPair(pin.CollisionPair(first, second))

    def _motion_bounds(self, owners: list[int]) -> Array:
        """How far a radian of each joint can at most move a pair's bodies against each other (pairs, n), m."""
        n = self.robot.n
        lengths = np.linalg.norm(self.robot.placements[:, :3, 3], axis=1)
        extents = [max((_extent(s, link.placement) for s in link.shapes), default=0.0) for link in self.robot.links]
        bounds = np.zeros((self.pairs, n))
        for row, pair in zip(bounds, self._geometry.collisionPairs, strict=True):
            a, b = sorted(max(-1, owners[i]) for i in (pair.first, pair.second))
            for joint in range(a + 1, b + 1):
                # A slide moves everything after it by itself; a turn by the distance from its axis.
                turning = lengths[joint + 1 : b + 1].sum() + self._slides(joint, b) + extents[b]
                row[joint] = 1.0 if self.robot.prismatic[joint] else turning
        return bounds

    def _slides(self, first: int, last: int) -> float:
        joints = self.robot.joints[first : last + 1]
        return sum(max(abs(j.position_min), abs(j.position_max)) for j in joints if j.kind == "prismatic")

    def _names(self, index: int) -> tuple[str, str]:
        pair = self._geometry.collisionPairs[index]
        first, second = (self._geometry.geometryObjects[i].name.split("#")[0] for i in (pair.first, pair.second))
        return first, second

    def _distances(self, q: Array) -> None:
        pin.computeDistances(self._model, self._data, self._geometry, self._buffers, q)

    @property
    def pairs(self) -> int:
        """How many pairs of shapes are tested; zero for an arm without shapes."""
        return len(self._geometry.collisionPairs)

    def clearance(self, q: Array) -> Clearance | None:
        """The nearest pair at joint positions q (n,); None when there is nothing to test."""
        if not self.pairs:
            return None
        self._distances(q)
        distances = [result.min_distance for result in self._buffers.distanceResults]
        nearest = int(np.argmin(distances))
        return Clearance(float(distances[nearest]), self._names(nearest))

    def check(self, setpoints: Array, period: float) -> Clearance | None:
        """Refuse a sequence of postures (T, n) that comes closer than 5 mm to the floor or to itself.

        Returns:
            The smallest clearance that was measured on the way (an upper bound of the smallest there is).

        Raises:
            FloorCollision, SelfCollision: Name the first sample, its time and the links.
        """
        smallest = None
        free, anchor = np.full(self.pairs, -1.0), setpoints[0]
        for sample, q in enumerate(setpoints):
            if not (self._motion @ np.abs(q - anchor) >= free).any():
                continue
            found = self.clearance(q)
            if found is None:
                return None
            if found.distance < MARGIN:
                raise _refusal(found, sample, sample * period)
            if smallest is None or found.distance < smallest.distance:
                smallest = found
            anchor, free = q, np.array([result.min_distance for result in self._buffers.distanceResults]) - MARGIN
        return smallest


def _refusal(found: Clearance, sample: int, time: float) -> FloorCollision | SelfCollision:
    first, second = found.bodies
    when = f"at sample {sample} ({time:.3f} s)"
    depth = f"{abs(found.distance) * 1e3:.0f} mm {'inside' if found.distance < 0.0 else 'from'}"
    if second == FLOOR:
        return FloorCollision(
            f"The plan was refused: {when} {first} would be {depth} the floor (5 mm are kept). Raise the trajectory, or "
            "say where the floor is with --floor HEIGHT (base_link's plane, 0, by default; none for no floor).",
            sample=sample,
            time=time,
            clearance=found.distance,
            link=first,
        )
    return SelfCollision(
        f"The plan was refused: {when} {first} would be {depth} {second} (5 mm are kept). Move the trajectory away from "
        "the arm's own body, or begin from another posture (--home).",
        sample=sample,
        time=time,
        distance=found.distance,
        links=found.bodies,
    )
