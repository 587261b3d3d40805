"""Clearance of a posture: link against link, and links against the floor and other obstacles.

Links are the capsules, cylinders and convex hulls of the robot's description. A sequence of
postures is not tested one by one: two bodies at a distance d cannot touch until they have moved by
d relative to each other.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass

import coal
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from simbridge.errors import CollisionKind, PlannedCollision
from simbridge.recent import Recent
from simbridge.robot.hulls import coal_hull
from simbridge.robot.obstacles import BARE_FLOOR, Capsule, CollisionScene
from simbridge.robot.parts import Shape
from simbridge.robot.pose import Array
from simbridge.robot.robot import Robot

# Names of bodies that are not links.
TOOL = "the tool"
FLOOR = "the floor"
# Radius of the rod that represents a tool of unknown shape, m.
TOOL_RADIUS = 0.01
# Smallest allowed clearance, m: the shapes follow the true surfaces to about this much.
MARGIN = 0.005
# Precision of the iterations that find a distance, m. With the default of 1e-6 the distance between
# two bodies flickers while none approaches the other.
DISTANCE_TOLERANCE = 1e-10
# Positions of each joint among which links two joints apart are looked for closer than MARGIN.
SAMPLED_POSITIONS = 9
# Distances that change by less than this from posture to posture are constant, m.
CONSTANT_DISTANCE = 1e-4
# Number of postures compared with the last tested one at once.
POSTURES_PER_CHUNK = 64

# Models that are kept for others of an equal arm and equal obstacles.
MAX_MODELS = 64

# The owner of a body is a link, by its index, or one of these three.
FLOOR_OWNER = -3
ZONE_OWNER = -2
BASE_OWNER = -1


@dataclass(frozen=True)
class Clearance:
    """The nearest two bodies of a posture, and their distance.

    Attributes:
        distance: m; negative when they overlap.
        bodies: Names of the two bodies. The second may be the floor, or a box or plane.
        zone: The name of the box or plane; None when it is neither.
    """

    distance: float
    bodies: tuple[str, str]
    zone: str | None = None

    @property
    def description(self) -> str:
        """Such as "link_1 would be 12 mm below the floor (a clearance of 5 mm is required)"."""
        side = "from"
        if self.distance < 0.0:
            side = "below" if self.bodies[1] == FLOOR else "inside"
        depth = f"{abs(self.distance) * 1e3:.0f} mm {side}"
        margin = f"{MARGIN * 1e3:.0f} mm"
        return (
            f"{self.bodies[0]} would be {depth} {self.bodies[1]} (a clearance of {margin} "
            "is required)"
        )


@dataclass(frozen=True)
class _Body:
    """A solid shape, the floor, or a box or plane to keep out of.

    Attributes:
        name: Name of its link or obstacle.
        owner: The index of its link, or one of the three above.
        extent: Largest distance of its points from the origin of its joint, m.
        radius: Largest distance of its points from the axis of its joint, m.
        zone: The name of a box or plane; None for anything else.
    """

    name: str
    owner: int
    extent: float = 0.0
    radius: float = 0.0
    zone: str | None = None


class CollisionModel:
    """The solid shapes of an arm, its tool and the obstacles around them.

    Neighbouring links are not tested against each other, nor are links that touch at the home of
    the robot's file: those are meant to touch.

    Args:
        robot: The arm.
        collision_scene: The obstacles that the arm must not touch, and the shape of its tool.

    Attributes:
        robot: The arm.
    """

    def __init__(self, robot: Robot, collision_scene: CollisionScene = BARE_FLOOR) -> None:
        self.robot = robot
        self._model = robot.model
        # See `find_structural_pairs`; None until they are searched for.
        self._structural: NDArray[np.bool_] | None = None

        # The bodies, each with the geometry of the same index.
        self._geometry = pin.GeometryModel()
        self._bodies: list[_Body] = []
        self._add_obstacles(collision_scene)
        self._add_arm()
        self._add_tool(collision_scene)

        self._select_pairs()
        self._request_precision()

    def with_own_buffers(self) -> CollisionModel:
        """Return a model of the same shapes that computes independently of this one."""
        model = copy.copy(self)
        model._create_buffers()
        model._request_precision()
        return model

    def _request_precision(self) -> None:
        for request in self._buffers.distanceRequests:
            request.gjk_tolerance = DISTANCE_TOLERANCE

    def _create_buffers(self) -> None:
        self._data = self._model.createData()
        self._buffers = self._geometry.createData()
        # Each access to an entry makes a Python object, which takes longer than the distance
        # itself: they are made once, here.
        self._results = list(self._buffers.distanceResults)

    def _add_obstacles(self, collision_scene: CollisionScene) -> None:
        """Add the floor, the boxes and the planes."""
        identity = pin.SE3.Identity()
        if collision_scene.floor is not None:
            below = coal.Halfspace(np.array([0.0, 0.0, 1.0]), float(collision_scene.floor))
            self._add(_Body(FLOOR, FLOOR_OWNER), below, identity)

        for box in collision_scene.boxes:
            placement = pin.SE3(pin.exp3(np.array(box.rotation)), np.array(box.centre))
            body = _Body(f"the box '{box.name}'", ZONE_OWNER, zone=box.name)
            self._add(body, coal.Box(*box.size), placement)

        for plane in collision_scene.planes:
            normal = np.array(plane.normal) / np.linalg.norm(plane.normal)
            behind = coal.Halfspace(normal, float(normal @ np.array(plane.point)))
            body = _Body(f"the plane '{plane.name}'", ZONE_OWNER, zone=plane.name)
            self._add(body, behind, identity)

    def _add_arm(self) -> None:
        """Add the base and the links, with their shapes and the hulls of their meshes."""
        robot = self.robot
        bodies = [("base_link", robot.base_shapes, robot.base_meshes, pin.SE3.Identity())]
        bodies += [(link.name, link.shapes, link.meshes, link.placement) for link in robot.links]
        for owner, (name, shapes, meshes, frame) in enumerate(bodies, BASE_OWNER):
            for shape in shapes:
                if shape.solid:
                    self._add_shape(name, owner, shape=shape, frame=frame)
            for mesh in meshes:
                if mesh.hull is not None:
                    corners = mesh.hull @ frame.rotation.T + frame.translation
                    self._add(_link_body(name, owner, corners), coal_hull(mesh.hull), frame)

    def _add_tool(self, collision_scene: CollisionScene) -> None:
        """Add the tool; a rod from the flange to the TCP represents one of unknown shape."""
        capsules = collision_scene.tool
        if not capsules:
            x, y, z = self.robot.tcp.translation.tolist()
            if any((x, y, z)):
                capsules = (Capsule((0.0, 0.0, 0.0), (x, y, z), TOOL_RADIUS),)
        for capsule in capsules:
            shape = Shape("capsule", capsule.start, capsule.end, capsule.radius)
            self._add_shape(TOOL, self.robot.n - 1, shape=shape, frame=self.robot.tool0)

    def _add_shape(self, name: str, owner: int, *, shape: Shape, frame: pin.SE3) -> None:
        """Add a capsule or cylinder of a link.

        Args:
            name: Name of the link.
            owner: Index of the link, or BASE_OWNER.
            shape: The shape, in the link's frame.
            frame: The link's frame in its joint's.
        """
        middle, length = shape.axis_frame()
        ends = np.array([frame.act(np.array(end)) for end in (shape.start, shape.end)])
        body = _link_body(name, owner, ends, thickness=shape.radius)
        kind = coal.Capsule if shape.kind == "capsule" else coal.Cylinder
        self._add(body, kind(shape.radius, length), frame * middle)

    def _add(self, body: _Body, geometry: coal.ShapeBase, placement: pin.SE3) -> None:
        """Add a body.

        Args:
            body: Name and owner of the body.
            geometry: Shape of the body.
            placement: Placement of the geometry, in the joint's frame or base_link.
        """
        joint = max(body.owner, BASE_OWNER) + 1
        name = f"{len(self._bodies)}"
        self._geometry.addGeometryObject(pin.GeometryObject(name, joint, placement, geometry))
        self._bodies.append(body)

    def _select_pairs(self) -> None:
        """Choose the pairs of bodies whose distance is tested in every posture.

        They are those that can move relative to each other, except parts of the arm that touch at
        its home: these are meant to touch. In each pair the second body moves relative to the
        first.
        """
        # Pairs that move relative to each other, and their distances at home.
        self._set_pairs(self._movable_pairs())
        home = self.robot.home if self.robot.file_home is None else self.robot.file_home
        distances_at_home = self.distances(home)

        tested_pairs = []
        for pair, distance in zip(self._index_pairs, distances_at_home, strict=True):
            bodies = [self._bodies[index] for index in pair]
            # A tool of a cell is not part of the arm: it must not touch anything, even at home.
            are_parts_of_arm = all(
                body.owner >= BASE_OWNER and body.name != TOOL for body in bodies
            )
            touch_at_home = distance <= MARGIN
            if not (are_parts_of_arm and touch_at_home):
                tested_pairs.append(pair)
        self._set_pairs(tested_pairs)

    def _movable_pairs(self) -> list[tuple[int, int]]:
        """Return the indices of the pairs of bodies that can move relative to each other.

        Neighbouring links are left out, because they touch where their joint is.
        """
        pairs = []
        # Bodies are in the order of their owners: floor, boxes and planes, the base, the links.
        for first, second in itertools.combinations(range(len(self._bodies)), 2):
            owner = self._bodies[first].owner
            if owner == FLOOR_OWNER:
                # The base and the first link, whose index is 0, may touch the floor.
                last_untested_owner = 0
            elif owner == ZONE_OWNER:
                # The base never moves relative to a box or plane.
                last_untested_owner = BASE_OWNER
            else:
                last_untested_owner = owner + 1

            if self._bodies[second].owner > last_untested_owner:
                pairs.append((first, second))
        return pairs

    def _set_pairs(self, pairs: list[tuple[int, int]]) -> None:
        """Set the pairs of bodies whose distances are computed, by the indices of the bodies."""
        self._geometry.removeAllCollisionPairs()
        for first, second in pairs:
            self._geometry.addCollisionPair(pin.CollisionPair(first, second))
        self._index_pairs = pairs
        self._pairs = [(self._bodies[first], self._bodies[second]) for first, second in pairs]
        self._create_buffers()

    def find_structural_pairs(self) -> NDArray[np.bool_]:
        """Find the pairs whose distance is given by the shape of the arm, unless they are known.

        Two joints are between such bodies. They are links that no posture brings closer than the
        margin, such as a UR arm's first and last wrist link, or a link and an obstacle whose
        distance is the same in every posture. So their distance tells nothing about a plan.

        Returns:
            Mask of the pairs (pairs,).
        """
        if self._structural is None:
            self._structural = self._compare_sampled_postures()
        return self._structural

    def _compare_sampled_postures(self) -> NDArray[np.bool_]:
        """Return the mask of `find_structural_pairs`, which takes milliseconds."""
        is_structural = np.zeros(len(self._pairs), dtype=bool)
        neighbours = []
        for index, (first, second) in enumerate(self._pairs):
            if second.owner == max(first.owner, BASE_OWNER) + 2:
                neighbours.append(index)

        # Every pair of neighbouring joints takes all combinations of the sampled positions.
        low = np.maximum(self.robot.position_min, -np.pi)
        high = np.minimum(self.robot.position_max, np.pi)
        is_odd = np.arange(self.robot.n) % 2 == 1
        positions = np.linspace(low, high, SAMPLED_POSITIONS)
        samples = []
        for even, odd in itertools.product(positions, positions):
            posture = np.where(is_odd, odd, even)
            pin.updateGeometryPlacements(
                self._model, self._data, self._geometry, self._buffers, posture
            )
            samples.append(
                [
                    pin.computeDistance(self._geometry, self._buffers, index).min_distance
                    for index in neighbours
                ]
            )

        nearest = np.min(samples, axis=0)
        is_constant = np.max(samples, axis=0) - nearest < CONSTANT_DISTANCE
        for index, distance, constant in zip(neighbours, nearest, is_constant, strict=True):
            first, _ = self._pairs[index]
            is_structural[index] = distance > MARGIN if first.owner >= BASE_OWNER else constant
        if is_structural.all():
            # A planar arm of two links has no other distances to report.
            is_structural[:] = False
        return is_structural

    def distances(self, q: Array) -> Array:
        """Return the distance of every pair (pairs,), m, at joint positions q (n,)."""
        pin.computeDistances(self._model, self._data, self._geometry, self._buffers, q)
        return np.array([result.min_distance for result in self._results])

    def _nearest(self, distances: Array) -> Clearance:
        """Return the clearance of the nearest pair, of the distances of all (pairs,), m."""
        index = int(np.argmin(distances))
        body, obstacle = self._pairs[index]
        if body.owner < BASE_OWNER:
            body, obstacle = obstacle, body
        return Clearance(float(distances[index]), (body.name, obstacle.name), obstacle.zone)

    @property
    def pairs(self) -> int:
        """Number of tested pairs of shapes; zero for an arm without shapes."""
        return len(self._pairs)

    def names(self, index: int) -> str:
        """Return what a pair is called: the obstacle, or else both bodies."""
        first, second = self._pairs[index]
        if first.owner < BASE_OWNER:
            return first.zone or first.name
        return f"{first.name} and {second.name}"

    def clearance(self, q: Array) -> Clearance | None:
        """Return the nearest pair at joint positions q (n,); None when there is nothing to test."""
        if not self.pairs:
            return None
        return self._nearest(self.distances(q))

    def check(self, setpoints: Array, period: float) -> Clearance | None:
        """Return the smallest clearance measured in a sequence of postures.

        It is an upper bound of the smallest one in the sequence. Pairs whose distance is given by
        the shape of the arm are left out.

        Args:
            setpoints: Joint positions (T, n), rad or m.
            period: Time from one posture to the next, s.

        Returns:
            The clearance; None when there is nothing to test.

        Raises:
            PlannedCollision: The arm comes closer than 5 mm to itself, the floor, a box or a plane;
                names the first sample, its time and the bodies.
        """
        if not self.pairs:
            return None

        levers = self._levers(np.abs(setpoints).max(axis=0))
        structural = self.find_structural_pairs()
        smallest = Clearance(np.inf, ("", ""))
        sample = 0
        while sample < len(setpoints):
            distances = self.distances(setpoints[sample])
            nearest = self._nearest(distances)
            # Written so that a distance that is NaN is refused, too.
            if not nearest.distance >= MARGIN:
                raise _refusal(nearest, sample, sample * period)
            nearest = self._nearest(np.where(structural, np.inf, distances))
            if nearest.distance < smallest.distance:
                smallest = nearest
            sample = _first_near(setpoints, sample, levers=levers, free=distances - MARGIN)
        return smallest

    def _levers(self, farthest: Array) -> Array:
        """Bound the relative motion of a pair's bodies per unit of each joint from above.

        Args:
            farthest: The largest absolute position of each joint (n,): a slide lengthens the lever
                of those before it.

        Returns:
            The bounds (pairs, n), m.
        """
        prismatic = self.robot.prismatic
        n = self.robot.n
        slides = np.where(prismatic, farthest, 0.0)

        # From each joint to the next: the distance, and its part perpendicular to the first one's
        # axis.
        steps = np.linalg.norm(self.robot.placements[:n, :3, 3], axis=1) + slides
        radial = np.linalg.norm(self.robot.placements[:n, :2, 3], axis=1) + slides

        levers = np.zeros((self.pairs, n))
        for row, (first, second) in zip(levers, self._pairs, strict=True):
            last = second.owner
            for joint in range(max(first.owner, BASE_OWNER) + 1, last + 1):
                if prismatic[joint]:
                    row[joint] = 1.0
                elif joint == last:
                    row[joint] = second.radius
                else:
                    further = steps[joint + 2 : last + 1].sum()
                    row[joint] = radial[joint + 1] + further + second.extent
        return levers


# The last models that `collision_model` has made, by the arm's fingerprint and the obstacles.
_models: Recent[CollisionModel] = Recent(MAX_MODELS)


def collision_model(robot: Robot, collision_scene: CollisionScene) -> CollisionModel:
    """Return a model of an arm and its obstacles, whose shapes and pairs are made once.

    Args:
        robot: The arm.
        collision_scene: What it must not touch, and the shape of its tool.
    """
    key = (robot.fingerprint, collision_scene)
    model = _models.get(key)
    if model is None:
        model = CollisionModel(robot, collision_scene)
        model.find_structural_pairs()
        _models.put(key, model)
    return model.with_own_buffers()


def _link_body(name: str, owner: int, points: Array, thickness: float = 0.0) -> _Body:
    """Return the body of a shape of a link.

    Args:
        name: Name of the link.
        owner: Index of the link, or BASE_OWNER.
        points: The ends or corners (K, 3) of the shape in the joint's frame, m.
        thickness: How far the shape reaches around them, m.
    """
    extent = float(np.linalg.norm(points, axis=1).max())
    radius = float(np.linalg.norm(points[:, :2], axis=1).max())
    return _Body(name, owner, extent + thickness, radius + thickness)


def _first_near(setpoints: Array, sample: int, *, levers: Array, free: Array) -> int:
    """Return the first posture after a sample in which a pair may have become too near.

    Args:
        setpoints: Joint positions (T, n), rad or m.
        sample: Index of the posture whose distances are known.
        levers: Levers of the joints (pairs, n), m: see `_levers`.
        free: Distance by which each pair (pairs,) may approach, m.
    """
    for begin in range(sample + 1, len(setpoints), POSTURES_PER_CHUNK):
        chunk = setpoints[begin : begin + POSTURES_PER_CHUNK]
        motion = np.abs(chunk - setpoints[sample]) @ levers.T
        is_near = ~(motion < free).all(axis=1)
        if is_near.any():
            return begin + int(np.argmax(is_near))
    return len(setpoints)


def _refusal(clearance: Clearance, sample: int, time: float) -> PlannedCollision:
    """Return the error about a clearance that is too small, with its remedy.

    Args:
        clearance: Clearance of the posture.
        sample: Index of the posture in the plan.
        time: Time of the posture since the start of the plan, s.
    """
    kind: CollisionKind
    link, obstacle = clearance.bodies
    if clearance.zone is not None:
        kind = "keep-out"
        obstacle = clearance.zone
        remedy = "Move the trajectory away from it, or correct the cell file."
    elif obstacle == FLOOR:
        kind = "floor"
        remedy = (
            "Raise the trajectory, or set the floor's height with --floor HEIGHT (base_link's "
            "plane, 0, by default; none for no floor)."
        )
    else:
        kind = "self"
        remedy = "Move the trajectory away from the arm's own body."

    instant = f"at sample {sample} ({time:.3f} s)"
    message = f"The plan was refused: {instant} {clearance.description}. {remedy}"
    return PlannedCollision(
        message,
        kind,
        (link, obstacle),
        value=clearance.distance,
        sample=sample,
        time=time,
        remedy=remedy,
    )
