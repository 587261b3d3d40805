"""Boxes and planes to keep out of, and the tool's own shape: against closed forms and an oracle of
their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simbridge.errors import PlanRefused
from simbridge.planning.approach import plan_approach
from simbridge.robot import Joint, Link, Robot, Shape, load_robot
from simbridge.robot.collision import MARGIN, CollisionModel
from simbridge.robot.kinematics import tool_path
from simbridge.robot.obstacles import Box, Capsule, CollisionScene, Plane
from tests.properties import few_examples
from tests.refusals import refuses

UR10 = load_robot("ur10")
RADIUS = 0.05
BODY = pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))


def flyer(kind="capsule", length=0.6):
    """A rod that slides along x, y and z of base_link, then yaws and pitches about its own start:
    it gets anywhere.
    """
    along_x, along_y = (
        pin.utils.rotate(axis, angle) for axis, angle in (("y", np.pi / 2), ("x", -np.pi / 2))
    )
    axes = [along_x, along_y, np.eye(3), np.eye(3), along_y]
    turns = [before.T @ after for before, after in zip([np.eye(3), *axes], axes, strict=False)]
    placements = [pin.SE3(turn, np.zeros(3)) for turn in turns]
    kinds = ["prismatic", "prismatic", "prismatic", "revolute", "revolute"]
    joints = [
        Joint(f"joint {i}", kind, at, -np.inf, np.inf, 1.0, 10.0)
        for i, (kind, at) in enumerate(zip(kinds, placements, strict=True))
    ]
    links = [Link(f"link {i}", pin.SE3.Identity(), BODY, ()) for i in range(4)]
    rod = Shape(kind, (0.0, 0.0, 0.0), (length, 0.0, 0.0), RADIUS)
    links.append(Link("rod", pin.SE3.Identity(), BODY, (rod,)))
    return Robot(
        "flyer", "", "", 0.01, tuple(joints), tuple(links), (), pin.SE3.Identity(), np.zeros(5)
    )


CAPSULE = flyer()
CYLINDER = flyer("cylinder")


def ends(robot, q, length=0.6):
    """Both ends (2, 3) of the rod's axis, by pinocchio."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    return np.array([data.oMi[5].act(np.array([x, 0.0, 0.0])) for x in (0.0, length)])


def from_box(point, box):
    """Return the distance of a point from a solid box.

    It is how far the point is beyond its faces, seen along its edges.
    """
    local = pin.exp3(np.array(box.rotation)).T @ (point - np.array(box.centre))
    return float(np.linalg.norm(np.maximum(np.abs(local) - 0.5 * np.array(box.size), 0.0)))


def axis_from_box(start, end, box):
    """Return the distance of a segment from a box, m.

    It is convex along the segment, so thirds that are farther can be cut off.
    """
    low = 0.0
    high = 1.0
    for _ in range(120):
        a = low + (high - low) / 3.0
        b = high - (high - low) / 3.0
        if from_box(start + a * (end - start), box) < from_box(start + b * (end - start), box):
            high = b
        else:
            low = a
    return from_box(start + 0.5 * (low + high) * (end - start), box)


vectors = st.tuples(*[st.floats(-1.0, 1.0)] * 3)
sizes = st.tuples(*[st.floats(0.05, 1.0)] * 3)
postures = st.tuples(*[st.floats(-1.0, 1.0)] * 3, *[st.floats(-3.0, 3.0)] * 2).map(np.array)


@few_examples(20)
@given(q=postures, centre=vectors, size=sizes, rotation=vectors)
def test_a_capsules_distance_is_its_axis_less_radius(q, centre, size, rotation):
    box = Box("crate", centre, size, rotation)
    clearance = CollisionModel(CAPSULE, CollisionScene(None, (box,))).clearance(q)

    assert clearance.bodies == ("rod", "the box 'crate'")
    assert clearance.zone == "crate"

    axis = axis_from_box(*ends(CAPSULE, q), box)
    if axis > 1e-3:
        assert clearance.distance == pytest.approx(axis - RADIUS, abs=1e-5)
    else:
        assert clearance.distance <= 1e-3 - RADIUS + 1e-5


@few_examples(20)
@given(q=postures, point=vectors, normal=vectors, kind=st.sampled_from(["capsule", "cylinder"]))
def test_a_rods_distance_is_its_lowest_points(q, point, normal, kind):
    assume(np.linalg.norm(normal) > 1e-3)
    robot = CAPSULE if kind == "capsule" else CYLINDER

    clearance = CollisionModel(
        robot, CollisionScene(None, (), (Plane("wall", point, normal),))
    ).clearance(q)

    assert clearance.bodies == ("rod", "the plane 'wall'")
    assert clearance.zone == "wall"

    upwards = np.array(normal) / np.linalg.norm(normal)
    start, end = ends(robot, q)
    along = (end - start) / np.linalg.norm(end - start)
    # A cylinder's rim reaches out less the steeper it stands.
    reach = (
        RADIUS if kind == "capsule" else RADIUS * np.sqrt(max(0.0, 1.0 - (along @ upwards) ** 2))
    )

    lowest = min((start - point) @ upwards, (end - point) @ upwards)

    assert clearance.distance == pytest.approx(lowest - reach, abs=1e-7)


@pytest.mark.parametrize(("aside", "over"), [(0.2, 0.0), (0.0, 0.3), (-0.4, 0.1)])
def test_a_cylinders_distance_is_the_gap(aside, over):
    """The rod lies along x, over the box's whole length; the box ends 0.1 m aside of its middle and
    0.1 m over it.
    """
    box = Box("crate", (0.3, 0.0, 0.0), (0.2, 0.2, 0.2))
    clearance = CollisionModel(CYLINDER, CollisionScene(None, (box,))).clearance(
        np.array([0.0, aside, over, 0.0, 0.0])
    )
    gaps = np.abs([aside, over]) - 0.1

    assert clearance.distance == pytest.approx(
        np.linalg.norm(np.maximum(gaps, 0.0)) - RADIUS, abs=1e-5
    )


def any_obstacles(rng):
    def three(largest):
        return tuple(rng.uniform(-largest, largest, 3).tolist())

    boxes = tuple(
        Box(f"box {i}", three(1.2), tuple(rng.uniform(0.05, 0.5, 3).tolist()), three(2.0))
        for i in range(rng.integers(4))
    )
    planes = tuple(
        Plane(f"plane {i}", tuple((-1.3 * normal).tolist()), tuple(normal.tolist()))
        for i in range(rng.integers(3))
        for normal in [rng.normal(size=3)]
    )
    tool = tuple(
        Capsule(three(0.1), three(0.2), rng.uniform(0.01, 0.06)) for _ in range(rng.integers(3))
    )
    return CollisionScene(-0.5 if rng.random() < 0.5 else None, boxes, planes, tool)


@few_examples(20)
@given(seed=st.integers(0, 2**32 - 1), step=st.sampled_from([0.1, 0.5, 1.5]))
def test_a_path_is_refused_at_its_first_contact(seed, step):
    rng = np.random.default_rng(seed)
    model = CollisionModel(UR10, any_obstacles(rng))
    ways = UR10.home + np.concatenate(
        [np.zeros((1, 6)), np.cumsum(rng.normal(0.0, step, (3, 6)), axis=0)]
    )
    path = np.stack([np.interp(np.linspace(0, 3, 80), range(4), way) for way in ways.T], axis=1)
    distances = np.array([model.clearance(q).distance for q in path])
    # Distances are iterated to a micrometre.
    assume(np.abs(distances - MARGIN).min() > 1e-5)
    if distances.min() > MARGIN:
        assert model.check(path, 0.002).distance >= distances.min() - 1e-5
    else:
        with refuses("floor", "keep-out", "self") as caught:
            model.check(path, 0.002)
        assert caught.value.sample == int(np.argmax(distances < MARGIN))


@few_examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_pair_nears_faster_than_the_joints(seed):
    """The bound by which postures are skipped, on the clearance of every pair by itself."""
    rng = np.random.default_rng(seed)
    model = CollisionModel(UR10, any_obstacles(rng))
    before = UR10.home
    after = UR10.home + rng.normal(0.0, 0.3, 6)
    bound = model._levers(np.abs([before, after]).max(axis=0)) @ np.abs(after - before)
    distances_before = model.distances(before)
    distances_after = model.distances(after)
    # Overlap is measured along one direction of several, so it may jump.
    apart = (distances_before > 0.0) & (distances_after > 0.0)

    assert np.all(np.abs(distances_after - distances_before)[apart] <= bound[apart] + 1e-5)


def test_the_error_names_link_and_zone():
    """The rod slides along z, its lower side 50 mm under its axis, down into a box that ends at
    height 0.198.
    """
    box = Box("vice", (0.3, 0.0, 0.098), (0.2, 0.2, 0.2))
    path = np.zeros((101, 5))
    path[:, 2] = np.linspace(0.5, 0.0, 101)
    first = int(np.argmax(path[:, 2] - RADIUS - 0.198 < MARGIN))

    with refuses("keep-out") as caught:
        CollisionModel(CAPSULE, CollisionScene(None, (box,))).check(path, 0.008)

    error = caught.value

    assert (error.sample, error.time, error.bodies) == (
        first,
        pytest.approx(0.008 * first),
        ("rod", "vice"),
    )
    assert error.value == pytest.approx(path[first, 2] - RADIUS - 0.198, abs=1e-6)
    assert error.joint is None

    for words in (
        f"sample {first} ({0.008 * first:.3f} s)",
        "rod would be",
        "2 mm from the box 'vice'",
        "a clearance of 5 mm is required",
    ):
        assert words in str(error)

    with refuses("keep-out", match="rod would be 28 mm inside the box 'vice'"):
        CollisionModel(CAPSULE, CollisionScene(None, (box,))).check(path[[0]] * 0.44, 0.008)


def test_the_base_may_touch_boxes():
    shoulder = Box("pillar", (0.0, 0.0, 0.14), (0.3, 0.3, 0.1))
    foot = Box("pedestal", (0.0, 0.0, -0.2), (0.3, 0.3, 0.4))

    with refuses("keep-out") as caught:
        CollisionModel(UR10, CollisionScene(None, (shoulder,))).check(UR10.home[None], 0.008)

    assert caught.value.bodies[0] == "shoulder_link"
    assert (
        CollisionModel(UR10, CollisionScene(0.0, (foot,))).check(UR10.home[None], 0.008).distance
        > MARGIN
    )


def test_a_zone_at_home_is_tested():
    at_home = tuple(tool_path(UR10, UR10.home[None])[0, :3].tolist())

    with refuses("keep-out", match="crate"):
        CollisionModel(UR10, CollisionScene(None, (Box("crate", at_home, (0.1, 0.1, 0.1)),))).check(
            UR10.home[None], 0.008
        )


def test_a_tool_touching_at_home_collides():
    """The last links are its own; the forearm is not."""
    back = CollisionScene(0.0, tool=(Capsule((0.0, 0.0, 0.0), (0.0, 0.0, -0.5), 0.05),))

    with refuses("self", match="the tool"):
        CollisionModel(UR10, back).check(UR10.home[None], 0.008)


def test_the_tools_shape_replaces_the_rod():
    height = tool_path(UR10, UR10.home[None])[0, 2]
    long = UR10.with_tcp(pin.SE3(np.eye(3), np.array([0.0, 0.0, height + 0.1])))
    short = CollisionScene(0.0, tool=(Capsule((0.0, 0.0, 0.0), (0.0, 0.0, 0.1), 0.03),))

    with refuses("floor", match="the tool"):
        CollisionModel(long).check(UR10.home[None], 0.008)

    # At home the tool points straight down.
    clearance = CollisionModel(
        replace(long, links=tuple(replace(link, shapes=()) for link in long.links)), short
    )

    assert clearance.clearance(UR10.home).distance == pytest.approx(height - 0.13, abs=1e-6)


def test_an_approach_keeps_out():
    goal = UR10.home + np.array([1.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    between = tool_path(UR10, 0.5 * (UR10.home + goal)[None])[0, :3]
    post = CollisionScene(0.0, (Box("post", tuple(between.tolist()), (0.1, 0.1, 0.1)),))
    speeds = {"max_joint_speed": 1.0, "max_tool_speed": 1.0}

    assert len(plan_approach(UR10, UR10.home, goal, 0.008, **speeds)) > 10

    with pytest.raises(PlanRefused) as caught:
        plan_approach(UR10, UR10.home, goal, 0.008, collision_scene=post, **speeds)

    assert caught.value.kind == "keep-out"
    assert caught.value.bodies[1] == "post"
