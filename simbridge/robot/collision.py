"""Clearance of a posture: link against link, and links against the floor and other obstacles.

Links are the capsules, cylinders and convex hulls of the robot's description. A sequence of postures is not tested one
by one: two bodies at a distance d cannot touch until they have moved by d relative to each other.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import coal
import msgspec
import numpy as np
import pinocchio as pin

from simbridge.errors import CollisionKind, PlannedCollision
from simbridge.robot import Vector
from simbridge.robot.hulls import coal_hull
from simbridge.robot.parts import Mesh, Shape
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Height in base_link, m, or no floor.
Floor = float | Literal["none"]


class Box(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A box that the arm must not enter: in base_link its centre, m, and a rotation vector of its edges, rad, of which
    `size` are the full lengths, m."""

    name: str
    centre: Vector
    size: Vector
    rotation: Vector = (0.0, 0.0, 0.0)


class Plane(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plane that the arm must not cross: in base_link any of its points, m, and a normal towards the arm's side."""

    name: str
    point: Vector
    normal: Vector


class Capsule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the tool: everything within a radius, m, of a line, in tool0, m; a sphere if its ends are equal."""

    start: Vector
    end: Vector
    radius: float


@dataclass(frozen=True)
class CollisionScene:
    """What an arm must not touch, and the shape of its tool.

    Attributes:
        floor: Height in base_link of the surface the arm is mounted on, m; None for no floor. The base and the first
            link may reach into it.
        boxes, planes: Checked against every link except the base, which never moves.
        tool: Replaces the thin rod from the flange to the TCP that represents a tool of unknown shape.
    """

    floor: float | None = 0.0
    boxes: tuple[Box, ...] = ()
    planes: tuple[Plane, ...] = ()
    tool: tuple[Capsule, ...] = ()


# Base_link's xy plane as the floor, and nothing else.
BARE_FLOOR = CollisionScene()

TOOL = "the tool"
TOOL_RADIUS = 0.01  # m
FLOOR = "the floor"
# The owner of a body: a link by its index, or one of these three.
_FLOOR_OWNER, _ZONE_OWNER, _BASE_OWNER = -3, -2, -1
# Smallest allowed clearance, m: the shapes follow the true surfaces to about this much.
MARGIN = 0.005
# Of the iterations that find a distance, m. With the default of 1e-6 the distance between two bodies flickers while
# none approaches the other.
_TOLERANCE = 1e-10
# Number of postures compared with the last tested one at once.
_CHUNK = 64


@dataclass(frozen=True)
class Clearance:
    """The nearest two bodies of a posture, by name, and their distance, m; negative when they overlap.

    The second may be the floor, or a box or plane: `zone` is its name, None when it is neither.
    """

    distance: float
    bodies: tuple[str, str]
    zone: str | None = None

    @property
    def description(self) -> str:
        """Such as "link_1 would be 12 mm inside the floor (at least 5 mm are kept)"."""
        depth = f"{abs(self.distance) * 1e3:.0f} mm {'inside' if self.distance < 0.0 else 'from'}"
        return f"{self.bodies[0]} would be {depth} {self.bodies[1]} (at least {MARGIN * 1e3:.0f} mm are kept)"


@dataclass(frozen=True)
class _Body:
    """A solid shape, the floor, or a box or plane (`zone`: its name) to keep out of.

    The owner is the index of its link, or one of the three above. Extent and radius are the largest distances of its
    points from the origin and from the axis of its joint, m.
    """

    name: str
    owner: int
    extent: float = 0.0
    radius: float = 0.0
    zone: str | None = None


class CollisionModel:
    """The solid shapes of an arm, its tool and the obstacles around them.

    Neighbouring links are not tested against each other, nor are links that touch at the home of the robot's file:
    those are meant to touch.
    """

    def __init__(self, robot: Robot, collision_scene: CollisionScene = BARE_FLOOR) -> None:
        self.robot = robot
        self._model, self._data = robot.model, robot.model.createData()
        self._geometry = pin.GeometryModel()
        self._bodies: list[_Body] = []
        self._add_zones(collision_scene)
        self._add_link(
            "base_link", _BASE_OWNER, robot.base_shapes, robot.base_meshes, pin.SE3.Identity()
        )
        for index, link in enumerate(robot.links):
            self._add_link(link.name, index, link.shapes, link.meshes, link.placement)
        # A rod from the flange to the TCP represents a tool of unknown shape.
        tip = tuple(robot.tcp.translation.tolist())
        rod = (Capsule((0.0, 0.0, 0.0), tip, TOOL_RADIUS),) if any(tip) else ()
        tool = tuple(
            Shape("capsule", part.start, part.end, part.radius)
            for part in collision_scene.tool or rod
        )
        self._add_link(TOOL, robot.n - 1, tool, (), robot.tool0)
        self._pairs = self._find_pairs()
        self._create_buffers()
        for request in self._buffers.distanceRequests:
            request.gjk_tolerance = _TOLERANCE

    def _create_buffers(self) -> None:
        self._buffers = self._geometry.createData()
        # Each access to an entry makes a Python object, which takes longer than the distance itself: made once here.
        self._results = list(self._buffers.distanceResults)

    def _add_zones(self, collision_scene: CollisionScene) -> None:
        if collision_scene.floor is not None:
            below = coal.Halfspace(np.array([0.0, 0.0, 1.0]), float(collision_scene.floor))
            self._add(_Body(FLOOR, _FLOOR_OWNER), below)
        for box in collision_scene.boxes:
            at = pin.SE3(pin.exp3(np.array(box.rotation)), np.array(box.centre))
            self._add(
                _Body(f"the box '{box.name}'", _ZONE_OWNER, zone=box.name), coal.Box(*box.size), at
            )
        for plane in collision_scene.planes:
            normal = np.array(plane.normal) / np.linalg.norm(plane.normal)
            behind = coal.Halfspace(normal, float(normal @ np.array(plane.point)))
            self._add(_Body(f"the plane '{plane.name}'", _ZONE_OWNER, zone=plane.name), behind)

    def _add(self, body: _Body, shape: coal.ShapeBase, placement: pin.SE3 | None = None) -> None:
        joint = max(body.owner, _BASE_OWNER) + 1
        at = pin.SE3.Identity() if placement is None else placement
        self._geometry.addGeometryObject(
            pin.GeometryObject(f"{len(self._bodies)}", joint, at, shape)
        )
        self._bodies.append(body)

    def _add_link(
        self,
        name: str,
        owner: int,
        shapes: tuple[Shape, ...],
        meshes: tuple[Mesh, ...],
        frame: pin.SE3,
    ) -> None:
        def body(points: Array, thickness: float) -> _Body:
            extent, radius = (
                float(np.linalg.norm(part, axis=1).max()) for part in (points, points[:, :2])
            )
            return _Body(name, owner, extent + thickness, radius + thickness)

        for shape in shapes:
            if shape.solid:
                middle, length = shape.axis_frame()
                ends = np.array([frame.act(np.array(end)) for end in (shape.start, shape.end)])
                kind = coal.Capsule if shape.kind == "capsule" else coal.Cylinder
                self._add(body(ends, shape.radius), kind(shape.radius, length), frame * middle)
        for mesh in meshes:
            if mesh.hull is not None:
                corners = mesh.hull @ frame.rotation.T + frame.translation
                self._add(body(corners, 0.0), coal_hull(mesh.hull), frame)

    def _find_pairs(self) -> list[tuple[_Body, _Body]]:
        """Add the pairs to test to the geometry; in each, the second body moves relative to the first."""
        for first, second in itertools.combinations(range(len(self._bodies)), 2):
            owner = self._bodies[first].owner
            # The base and the first link may touch the floor; the base never moves.
            if self._bodies[second].owner > {_FLOOR_OWNER: 0, _ZONE_OWNER: _BASE_OWNER}.get(
                owner, owner + 1
            ):
                self._geometry.addCollisionPair(pin.CollisionPair(first, second))
        self._create_buffers()
        at_home = self.distances(
            self.robot.home if self.robot.file_home is None else self.robot.file_home
        )
        found = [(pair.first, pair.second) for pair in self._geometry.collisionPairs]
        self._geometry.removeAllCollisionPairs()
        kept = []
        for (first, second), distance in zip(found, at_home, strict=True):
            one, other = self._bodies[first], self._bodies[second]
            # Not of its tool or of the obstacles.
            parts_of_the_arm = one.owner >= _BASE_OWNER and TOOL not in (one.name, other.name)
            if distance > MARGIN or not parts_of_the_arm:
                self._geometry.addCollisionPair(pin.CollisionPair(first, second))
                kept.append((one, other))
        return kept

    def distances(self, q: Array) -> Array:
        """The distance of every pair (pairs,) at joint positions q (n,), m."""
        pin.computeDistances(self._model, self._data, self._geometry, self._buffers, q)
        return np.array([result.min_distance for result in self._results])

    def _nearest(self, distances: Array) -> Clearance:
        index = int(np.argmin(distances))
        first, second = self._pairs[index]
        if first.owner < _BASE_OWNER:
            first, second = second, first
        return Clearance(float(distances[index]), (first.name, second.name), second.zone)

    @property
    def pairs(self) -> int:
        """Number of tested pairs of shapes; zero for an arm without shapes."""
        return len(self._pairs)

    def names(self, index: int) -> str:
        """What a pair is called: the obstacle, or else both bodies."""
        first, second = self._pairs[index]
        if first.owner < _BASE_OWNER:
            return first.zone or first.name
        return f"{first.name} and {second.name}"

    def clearance(self, q: Array) -> Clearance | None:
        """The nearest pair at joint positions q (n,); None when there is nothing to test."""
        return self._nearest(self.distances(q)) if self.pairs else None

    def check(self, setpoints: Array, period: float) -> Clearance | None:
        """The smallest clearance measured in a sequence of postures (T, n): an upper bound of the smallest in it.

        Raises:
            PlannedCollision: It comes closer than 5 mm to itself, the floor, a box or a plane; names the first sample,
                its time and the bodies.
        """
        if not self.pairs:
            return None
        levers = self._levers(np.abs(setpoints).max(axis=0))
        smallest = Clearance(np.inf, ("", ""))
        sample = 0
        while sample < len(setpoints):
            distances = self.distances(setpoints[sample])
            found = self._nearest(distances)
            if not found.distance >= MARGIN:
                raise _refusal(found, sample, sample * period)
            smallest = min(smallest, found, key=lambda clearance: clearance.distance)
            sample = _first_near(setpoints, sample, levers, distances - MARGIN)
        return smallest

    def _levers(self, farthest: Array) -> Array:
        """Upper bound of the relative motion of a pair's bodies per unit of each joint (pairs, n), m.

        `farthest` is the largest absolute position of each joint (n,): a slide lengthens the lever of those before it.
        """
        prismatic, n = self.robot.prismatic, self.robot.n
        slides = np.where(prismatic, farthest, 0.0)
        # From each joint to the next: the distance, and its part perpendicular to the first one's axis.
        steps = np.linalg.norm(self.robot.placements[:n, :3, 3], axis=1) + slides
        radial = np.linalg.norm(self.robot.placements[:n, :2, 3], axis=1) + slides
        levers = np.zeros((self.pairs, n))
        for row, (first, second) in zip(levers, self._pairs, strict=True):
            last = second.owner
            for joint in range(max(first.owner, _BASE_OWNER) + 1, last + 1):
                if prismatic[joint]:
                    row[joint] = 1.0
                elif joint == last:
                    row[joint] = second.radius
                else:
                    row[joint] = (
                        radial[joint + 1] + steps[joint + 2 : last + 1].sum() + second.extent
                    )
        return levers


def _first_near(setpoints: Array, anchor: int, levers: Array, free: Array) -> int:
    """The first posture after `anchor` in which a pair may have approached by its free distance (pairs,), m."""
    for begin in range(anchor + 1, len(setpoints), _CHUNK):
        moved = np.abs(setpoints[begin : begin + _CHUNK] - setpoints[anchor]) @ levers.T
        near = ~(moved < free).all(axis=1)
        if near.any():
            return begin + int(np.argmax(near))
    return len(setpoints)


def _refusal(found: Clearance, sample: int, time: float) -> PlannedCollision:
    kind: CollisionKind = "self"
    remedy = (
        "Move the trajectory away from the arm's own body, or begin from another posture (--home)."
    )
    bodies = found.bodies
    if found.zone is not None:
        kind, bodies = "keep-out", (bodies[0], found.zone)
        remedy = "Move the trajectory away from it, begin from another posture (--home), or fix the cell file."
    elif bodies[1] == FLOOR:
        kind = "floor"
        remedy = (
            "Raise the trajectory, or set the floor's height with --floor HEIGHT (base_link's plane, 0, by default; "
            "none for no floor)."
        )
    message = (
        f"The plan was refused: at sample {sample} ({time:.3f} s) {found.description}. {remedy}"
    )
    return PlannedCollision(message, kind, bodies, value=found.distance, sample=sample, time=time)
