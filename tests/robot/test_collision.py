"""Clearance of postures and paths, against closed forms and against testing every posture
separately.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simbridge import load_robot
from simbridge.robot import Joint, Link, Robot, Shape
from simbridge.robot.collision import MARGIN, CollisionModel, collision_model
from simbridge.robot.kinematics import tool_path
from simbridge.robot.obstacles import CollisionScene
from tests.properties import few_examples, variants
from tests.refusals import refuses

ARMS = ("ur10", "ur10e")
LENGTH = 1.0
RADIUS = 0.05
BODY = pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3))


def joint(name, placement, kind="revolute", low=-np.inf, high=np.inf):
    return Joint(name, kind, placement, low, high, 1.0, 10.0)


def arm(joints, shapes, home, base_shapes=()):
    links = tuple(
        Link(f"link {i}", pin.SE3.Identity(), BODY, tuple(of)) for i, of in enumerate(shapes)
    )
    return Robot(
        "test",
        "",
        "",
        0.01,
        tuple(joints),
        links,
        tuple(base_shapes),
        pin.SE3.Identity(),
        np.array(home, float),
    )


def rod(kind="capsule", radius=RADIUS, **others):
    return Shape(kind, (0.0, 0.0, 0.0), (LENGTH, 0.0, 0.0), radius, **others)


def shifted(x=0.0, y=0.0, z=0.0):
    return pin.SE3(np.eye(3), np.array([x, y, z]))


def planar(n, height=1.0, home=None, shapes=None):
    """n rods end to end that turn about vertical axes at one height."""
    placements = [shifted(z=height)] + [shifted(x=LENGTH)] * (n - 1)
    joints = [joint(f"joint {i}", placement) for i, placement in enumerate(placements)]
    return arm(joints, shapes or [[rod()]] * n, np.zeros(n) if home is None else home)


def upright(n, height=1.0, kind="capsule"):
    """n rods end to end that turn about horizontal axes, all in one upright plane."""
    lift = pin.SE3(pin.utils.rotate("x", np.pi / 2), np.array([0.0, 0.0, height]))
    joints = [joint(f"joint {i}", lift if i == 0 else shifted(x=LENGTH)) for i in range(n)]
    return arm(joints, [[rod(kind)]] * n, np.zeros(n))


def knees(q):
    """The points (n + 1, 2) at which the rods of a plane arm meet."""
    angles = np.cumsum(q)
    steps = LENGTH * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])


def segment_distance(a, b, c, d):
    """Between two segments of a plane: zero where they cross, else from the end of one to the
    other.
    """

    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    def from_point(p, q, r):
        along = np.clip((p - q) @ (r - q) / ((r - q) @ (r - q)), 0.0, 1.0)
        return np.linalg.norm(p - q - along * (r - q))

    if side(a, b, c) * side(a, b, d) < 0.0 and side(c, d, a) * side(c, d, b) < 0.0:
        return 0.0
    return min(from_point(a, c, d), from_point(b, c, d), from_point(c, a, b), from_point(d, a, b))


angles = st.floats(-3.0, 3.0, allow_nan=False)


@given(angles, angles, angles)
def test_capsules_are_separated_by_axes_and_radii(a, b, c):
    points = knees([a, b, c])
    axes = segment_distance(*points[0:2], *points[2:4])

    clearance = CollisionModel(planar(3), CollisionScene(floor=None)).clearance(np.array([a, b, c]))

    assert clearance.bodies == ("link 0", "link 2")

    if axes > 2.0 * RADIUS + 1e-3:
        assert clearance.distance == pytest.approx(axes - 2.0 * RADIUS, abs=1e-6)
    else:
        assert clearance.distance <= 1e-3 + 1e-6


@given(angles, angles)
def test_a_capsules_height_is_its_lower_ends(a, b):
    robot = upright(2)
    lower = 1.0 + min(knees([a, b])[1:, 1])

    clearance = CollisionModel(robot).clearance(np.array([a, b]))

    assert clearance.bodies == ("link 1", "the floor")
    assert clearance.distance == pytest.approx(lower - RADIUS, abs=1e-9)


@given(angles, angles)
def test_a_cylinders_height_is_its_lower_rims(a, b):
    lower = 1.0 + min(knees([a, b])[1:, 1]) - RADIUS * abs(np.cos(a + b))

    clearance = CollisionModel(upright(2, kind="cylinder")).clearance(np.array([a, b]))

    assert clearance.distance == pytest.approx(lower, abs=1e-9)


@pytest.mark.parametrize("floor", [-0.5, 0.0, 0.7])
def test_the_floor_is_at_the_given_height(floor):
    clearance = CollisionModel(planar(2, height=1.0), CollisionScene(floor=floor)).clearance(
        np.zeros(2)
    )

    assert clearance.distance == pytest.approx(1.0 - RADIUS - floor)


def test_without_a_floor_no_posture_is_too_low():
    model = CollisionModel(planar(2, height=-5.0), CollisionScene(floor=None))

    assert model.pairs == 0
    assert model.clearance(np.zeros(2)) is None


def test_base_and_first_link_may_enter_the_floor():
    stand = Shape("cylinder", (0.0, 0.0, -0.1), (0.0, 0.0, 0.1), 0.1)

    robot = arm([joint("turn", shifted())], [[rod()]], [0.0], base_shapes=[stand])

    assert CollisionModel(robot).pairs == 0


def test_neighbouring_links_are_not_tested_against_each_other():
    assert CollisionModel(planar(2), CollisionScene(floor=None)).pairs == 0
    assert CollisionModel(planar(3), CollisionScene(floor=None)).pairs == 1
    assert CollisionModel(planar(4), CollisionScene(floor=None)).pairs == 3


def test_shapes_of_one_link_are_not_paired():
    robot = planar(1, shapes=[[rod(), rod()]])

    assert CollisionModel(robot, CollisionScene(floor=None)).pairs == 0


def test_a_drawn_shape_is_not_tested():
    robot = planar(3, shapes=[[rod()], [rod()], [rod(radius=9.0, solid=False)]])

    model = CollisionModel(robot)

    assert model.pairs == 1
    assert model.clearance(np.zeros(3)).bodies == ("link 1", "the floor")


def test_a_pair_that_touches_at_home_is_left_out():
    folded = [0.0, 2.5, 2.5]

    assert (
        CollisionModel(planar(3), CollisionScene(floor=None)).clearance(np.array(folded)).distance
        < 0.0
    )

    model = CollisionModel(planar(3, home=folded), CollisionScene(floor=None))

    assert model.pairs == 0
    assert model.check(np.array([folded, [0.0, 0.0, 0.0]]), 0.01) is None


def test_the_floor_is_tested_with_home_in_it():
    model = CollisionModel(planar(2, height=0.0))

    with refuses("floor"):
        model.check(np.zeros((1, 2)), 0.01)


def test_an_arm_without_shapes_has_nothing_to_test():
    model = CollisionModel(planar(4, shapes=[[], [], [], []]))

    assert model.pairs == 0
    assert model.clearance(np.zeros(4)) is None
    assert model.check(np.zeros((10, 4)), 0.01) is None


def test_the_error_names_sample_link_and_clearance():
    robot = upright(2)
    path = np.stack([np.linspace(0.0, -1.5, 151), np.zeros(151)], axis=1)
    # The tip is 2 sin(q) below the shoulder: with radius and margin, it may go down to 0.945 m.
    first = int(np.ceil(np.arcsin((1.0 - RADIUS - MARGIN) / 2.0) / 0.01))

    with refuses("floor") as caught:
        CollisionModel(robot).check(path, 0.002)

    error = caught.value
    clearance = 1.0 - RADIUS - 2.0 * np.sin(0.01 * first)

    assert error.sample == first
    assert error.time == pytest.approx(0.002 * first)
    assert error.bodies == ("link 1", "the floor")
    assert error.value == pytest.approx(clearance, abs=1e-9)
    assert error.limit == 0.0
    for words in (
        f"sample {first} ({0.002 * first:.3f} s)",
        "link 1",
        f"{abs(clearance) * 1e3:.0f} mm",
        "--floor HEIGHT",
    ):
        assert words in str(error)


def test_the_error_names_both_links_that_would_touch():
    robot = planar(3)
    path = np.stack([np.zeros(200), np.full(200, 2.2), np.linspace(0.0, 2.0, 200)], axis=1)
    distances = [segment_distance(*knees(q)[0:2], *knees(q)[2:4]) - 2.0 * RADIUS for q in path]
    first = int(np.argmax(np.array(distances) < MARGIN))

    assert first > 0

    with refuses("self") as caught:
        CollisionModel(robot).check(path, 0.01)

    assert caught.value.sample == first
    assert caught.value.bodies == ("link 0", "link 2")
    assert caught.value.value == pytest.approx(distances[first], abs=1e-6)
    for words in (f"sample {first} ({0.01 * first:.3f} s)", "link 0", "link 2", "mm"):
        assert words in str(caught.value)


def test_a_posture_that_is_no_number_is_refused():
    path = np.zeros((50, 3))
    path[20, 1] = np.nan

    with refuses("floor", "self") as caught:
        CollisionModel(planar(3)).check(path, 0.01)

    assert caught.value.sample == 20


@pytest.mark.parametrize("name", ARMS)
def test_structural_distances_are_not_reported(name):
    robot = load_robot(name)
    model = CollisionModel(robot)

    # The wrist's first and last link are 19 or 24 mm apart in every posture.
    nearest = model.check(robot.home[None], 0.01)

    assert model.clearance(robot.home).bodies == ("base_link", "upper_arm_link")
    assert nearest.bodies != ("base_link", "upper_arm_link")
    assert nearest.distance > model.clearance(robot.home).distance


def test_links_that_can_touch_are_reported():
    model = CollisionModel(planar(3), CollisionScene(floor=None))
    folded = np.array([[0.0, 1.5, 1.5]])

    assert model.check(folded, 0.01).bodies == ("link 0", "link 2")


def assert_exact(model, path):
    """A path is refused exactly if one of its postures, tested separately, is."""
    distances = np.array([model.clearance(q).distance for q in path])
    # Distances are iterated to a micrometre.
    assume(np.abs(distances - MARGIN).min() > 1e-5)
    if distances.min() > MARGIN:
        assert model.check(path, 0.002).distance >= distances.min() - 1e-5
    else:
        with refuses("floor", "self") as caught:
            model.check(path, 0.002)
        assert caught.value.sample == int(np.argmax(distances < MARGIN))


def wandering(rng, start, samples, step):
    """A smooth joint path (samples, n) from `start`, whose waypoints are drawn anywhere near."""
    ways = start + np.concatenate(
        [np.zeros((1, len(start))), np.cumsum(rng.normal(0.0, step, (3, len(start))), axis=0)]
    )
    return np.stack(
        [np.interp(np.linspace(0, 3, samples), range(4), way) for way in ways.T], axis=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", variants(ARMS, "ur10"))
@few_examples(8, soak=300)
@given(
    seed=st.integers(0, 2**32 - 1),
    step=st.sampled_from([0.1, 0.5, 1.5]),
    samples=st.integers(1, 120),
)
def test_a_path_is_refused_at_its_first_collision(name, seed, step, samples):
    robot = load_robot(name)

    path = wandering(np.random.default_rng(seed), robot.home, samples, step)

    assert_exact(CollisionModel(robot), path)


def any_arm(rng, n):
    """Random joints, a third of them unlimited slides, with a random shape on every link."""
    joints = [
        joint(
            f"joint {i}",
            pin.SE3(pin.exp3(rng.uniform(-2, 2, 3)), rng.uniform(-0.5, 0.5, 3)),
            "prismatic" if rng.random() < 0.33 else "revolute",
        )
        for i in range(n)
    ]
    shapes = [
        [
            Shape(
                str(rng.choice(["capsule", "cylinder"])),
                *map(tuple, rng.uniform(-0.3, 0.3, (2, 3))),
                rng.uniform(0.01, 0.1),
            )
        ]
        for _ in range(n)
    ]
    base = [Shape("capsule", (0.0, 0.0, 0.0), (0.0, 0.0, 0.3), 0.1)]
    return arm(joints, shapes, rng.uniform(-1.0, 1.0, n), base)


@few_examples(20)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 6))
def test_unlimited_joints_are_checked_exactly(seed, n):
    rng = np.random.default_rng(seed)
    robot = any_arm(rng, n)
    model = CollisionModel(robot, CollisionScene(floor=-1.0))
    if model.pairs:
        assert_exact(model, wandering(rng, robot.home, 100, 0.5))


@few_examples(20)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 6))
def test_pairs_approach_within_their_bound(seed, n):
    """The bound by which postures are skipped, for the clearance of every pair."""
    rng = np.random.default_rng(seed)
    robot = any_arm(rng, n)
    model = CollisionModel(robot, CollisionScene(floor=-1.0))
    before = robot.home
    after = robot.home + rng.normal(0.0, 0.3, n)
    bound = model._levers(np.abs([before, after]).max(axis=0)) @ np.abs(after - before)

    change = np.abs(model.distances(after) - model.distances(before))

    assert np.all(change <= bound + 1e-5)


def test_a_rotation_is_bounded_with_the_slide():
    """A rod 20 m out on a slide sweeps past the base's post within a hundredth of a radian."""
    post = Shape("cylinder", (0.0, 20.0, 0.0), (0.0, 20.0, 2.0), 0.05)
    out = pin.SE3(pin.utils.rotate("y", np.pi / 2), np.zeros(3))
    tip = Shape("capsule", (0.0, 0.0, 0.0), (0.0, 0.0, 0.1), 0.02)
    robot = arm(
        [joint("turn", shifted(z=1.0)), joint("slide", out, "prismatic")],
        [[], [tip]],
        [0.0, 1.0],
        base_shapes=[post],
    )
    path = np.stack([np.linspace(0.0, np.pi, 20001), np.full(20001, 20.0)], axis=1)
    # Tip and post are two circles 20 m away.
    first = int(np.argmax(40.0 * np.sin((np.pi / 2 - path[:, 0]) / 2) < 0.05 + 0.02 + MARGIN))

    with refuses("self") as caught:
        CollisionModel(robot).check(path, 0.002)

    assert caught.value.sample == first
    assert caught.value.bodies == ("base_link", "link 1")


def test_postures_that_cannot_touch_are_skipped(monkeypatch):
    """Sixteen seconds of a gentle motion at 500 Hz cost a hundred distance queries, not eight
    thousand.
    """
    robot = load_robot("ur10e")
    model = CollisionModel(robot)
    phase = np.linspace(0.0, 4.0 * np.pi, 8000)
    path = robot.home + 0.25 * np.sin(phase)[:, None] * np.array([1.0, -0.5, 0.8, 0.3, 0.4, 1.0])
    calls = []
    measure = pin.computeDistances
    monkeypatch.setattr(pin, "computeDistances", lambda *given: (calls.append(1), measure(*given)))

    model.check(path, 0.002)

    assert 1 <= len(calls) < 200


@pytest.mark.parametrize("name", ARMS)
def test_ur_arms_are_clear_in_usual_postures(name):
    robot = load_robot(name)
    model = CollisionModel(robot)
    right = np.pi / 2

    for q in (
        robot.home,
        [0.0, -right, 0.0, -right, 0.0, 0.0],  # straight up
        [0.0, -right, right, -right, -right, 0.0],  # an L, tool down
        [right, -2.0, 1.8, -1.3, -right, 0.5],
        [0.0, -right, -right, -right, right, 0.0],  # elbow the other way, tool down
        [0.0, -0.8, 0.4, -1.2, -right, 1.0],  # stretched out
        [0.0, -right, 2.6, -2.6, -right, 0.0],  # folded
    ):
        assert model.clearance(np.array(q, dtype=float)).distance > MARGIN


@pytest.mark.parametrize("name", ARMS)
def test_every_pair_of_ur_links_is_tested(name):
    robot = load_robot(name)
    bodies = [
        sum(s.solid for s in robot.base_shapes),
        *(sum(s.solid for s in link.shapes) for link in robot.links),
    ]

    assert all(bodies)

    expected = sum(bodies[i] * bodies[j] for i in range(7) for j in range(i + 2, 7)) + sum(
        bodies[2:]
    )

    assert CollisionModel(robot).pairs == expected


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize(
    ("posture", "bodies"),
    [
        ([0.0, -np.pi / 2, 3.0, 0.0, np.pi / 2, 0.0], ("upper_arm_link", "wrist_2_link")),
        ([0.0, 0.6, 0.0, 0.0, 0.0, 0.0], ("wrist_2_link", "the floor")),
    ],
    ids=["folded upon itself", "reaching down"],
)
def test_touching_postures_are_refused(name, posture, bodies):
    clearance = CollisionModel(load_robot(name)).clearance(np.array(posture))

    assert clearance.distance < 0.0
    assert clearance.bodies == bodies


def test_a_custom_home_disables_no_pair():
    folded = [0.0, -0.5, 2.9, 0.0, 0.0, 0.0]
    default = CollisionModel(load_robot("ur10"))

    customised = CollisionModel(load_robot("ur10", home=folded))

    assert default.clearance(np.array(folded)).distance < MARGIN
    assert customised.pairs == default.pairs

    with refuses("self"):
        customised.check(np.array([folded]), 0.008)


def test_a_tool_is_tested_against_floor_and_arm():
    flange = load_robot("ur10")
    q = flange.home
    height = tool_path(flange, q[None])[0, 2]

    long = flange.with_tcp(pin.SE3(np.eye(3), np.array([0.0, 0.0, height + 0.1])))

    assert CollisionModel(flange).clearance(q).distance > MARGIN

    with refuses("floor") as caught:
        CollisionModel(long).check(q[None], 0.008)

    assert caught.value.bodies == ("the tool", "the floor")
    # The rod points straight down: it ends 0.1 m under the floor, and is 1 cm thick.
    assert caught.value.value == pytest.approx(-0.11, abs=1e-3)


def test_turning_the_arm_keeps_link_distances():
    robot = load_robot("ur10e")
    model = CollisionModel(robot)
    q = np.array([0.0, -1.3376, 2.8742, -2.0858, -0.5966, 0.9742])
    turned = [model.distances(q + angle * np.eye(6)[0]) for angle in np.linspace(0.0, 0.1, 200)]

    assert np.ptp(turned, axis=0).max() < 1e-9


def test_equal_arms_share_their_shapes(monkeypatch):
    scene = CollisionScene(floor=-0.31)
    first = collision_model(load_robot("ur10"), scene)
    monkeypatch.setattr(CollisionModel, "_add_arm", None)

    second = collision_model(load_robot("ur10"), scene)

    home = load_robot("ur10").home
    assert (second.distances(home) == first.distances(home)).all()


def test_models_that_share_shapes_compute_independently():
    robot = load_robot("ur10")
    first = collision_model(robot, CollisionScene())
    second = collision_model(robot, CollisionScene())

    second.distances(robot.home + 0.5)

    alone = CollisionModel(robot, CollisionScene())
    assert (first.distances(robot.home) == alone.distances(robot.home)).all()


def test_another_floor_has_other_distances():
    robot = load_robot("ur10")

    low, high = (collision_model(robot, CollisionScene(floor=z)) for z in (-0.5, 0.0))

    assert (low.distances(robot.home) != high.distances(robot.home)).any()


def test_a_shared_model_checks_as_a_new_one():
    robot = load_robot("ur10")
    path = robot.home + np.linspace(0.0, 0.1, 50)[:, None]

    shared = collision_model(robot, CollisionScene()).check(path, 0.008)

    assert shared == CollisionModel(robot, CollisionScene()).check(path, 0.008)
