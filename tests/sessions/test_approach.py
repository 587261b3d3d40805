"""Towards singularities and obstacles the arm comes to rest; away from them it is free.

The numbers in the causes are compared with a collision model and a Jacobian of the test's own.
"""

from __future__ import annotations

import functools

import coal
import numpy as np
import pinocchio as pin
import pytest

from simbridge.robot import load_robot
from simbridge.robot.collision import MARGIN, CollisionModel
from simbridge.robot.obstacles import Box, CollisionScene
from simbridge.servo.law import ServojLaw
from simbridge.sessions.approach import SINGULAR_FLOOR
from tests.properties import variants
from tests.sessions.trial import (
    count_cause_changes,
    engage_motion,
    repeat_input,
    run,
    run_there_and_back,
)

# They look at the same few motions.
pytestmark = pytest.mark.shares_setup
ROBOT = load_robot("ur10")
AGAIN = CollisionModel(ROBOT)
# To the wall behind which the tool must not go.
WALL = CollisionScene(boxes=(Box("wall", (1.0, 0.16, 0.3), (0.02, 1.0, 0.6)),))


def sigma(q):
    """Return the smallest singular value of the TCP's Jacobian."""
    data = ROBOT.model.createData()
    frame = ROBOT.model.getFrameId("tcp")
    jacobian = pin.computeFrameJacobian(
        ROBOT.model, data, q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    )
    return float(np.linalg.svd(jacobian, compute_uv=False)[-1])


def clearance(trace, model=AGAIN):
    """Return the smallest distance in each step (T,), m."""
    return np.array([model.distances(q).min() for q in trace.setpoints])


def count_turns(trace, begin, end):
    """Return how often the joint that moves most turns round, beyond a creep of 1 mrad/s."""
    velocity = trace.velocity[trace.index_at(begin) : trace.index_at(end)]
    joint = velocity[:, np.argmax(np.abs(velocity).sum(axis=0))]
    signs = np.sign(joint[np.abs(joint) > 1e-3])
    return int((np.diff(signs) != 0).sum())


CASES = {
    "elbow": (([0.3, 0, 0.1, 0, 0, 0], 2.5), {}, "singularity"),
    "floor": (([0, 0, -0.3, 0, 0, 0], 2.5), {}, "obstacle"),
    "wall": (([0.2, 0, 0, 0, 0, 0], 2.5), {"scene": WALL}, "obstacle"),
    "itself": (
        ([0, 0, 1.0, 0, 0, 0], 2.5),
        {"kind": "jog", "start": [0, -1.9, 1.9, -2.2, -1.57, 0]},
        "obstacle",
    ),
}


@functools.cache
def run_case(name):
    """Return the trace of a case."""
    motion, facts, _ = CASES[name]
    return run_there_and_back(ROBOT, *motion, **facts)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_arm_comes_to_rest_and_is_free_to_leave(case):
    (asked, end), facts, name = CASES[case]
    trace = run_case(case)
    rest = trace.index_at(end - 0.1)

    assert np.abs(trace.velocity[rest]).max() < 0.02

    causes = {cause for cause, _ in trace.cause_names(rest)}

    assert causes == {name}

    # Away at full speed as soon as the acceleration allows.
    speed = trace.twist_speed if facts.get("kind") != "jog" else np.abs(trace.velocity[1:, 2])
    wanted = np.linalg.norm(asked[:3]) if name != "singularity" or case == "elbow" else 0.0

    assert speed[trace.index_at(end + 0.6) :].min() >= 0.97 * wanted
    assert count_turns(trace, 0.3, end) == 0
    assert count_cause_changes(trace, 0.3, end) <= 2
    assert not trace.cause_names(-1)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["floor", "wall", "itself"])
def test_no_body_comes_nearer_than_the_margin(case):
    (_, end), facts, _ = CASES[case]
    trace = run_case(case)
    model = CollisionModel(ROBOT, facts["scene"]) if "scene" in facts else AGAIN

    assert clearance(trace, model).min() >= MARGIN - 1e-9

    # The number is that of the setpoint before.
    k = trace.index_at(end - 0.1)
    distances = model.distances(trace.setpoints[k - 1])
    cause = trace.steps[k].causes[0]

    assert cause.subject == model.names(int(np.argmin(distances)))
    assert cause.value == pytest.approx(distances.min(), abs=1e-6)
    assert cause.text == f"obstacle {cause.subject} {1e3 * cause.value:.0f} mm"


@pytest.mark.slow
@pytest.mark.parametrize("case", ["elbow", "wrist"])
def test_a_singularity_is_named_and_not_entered(case):
    if case == "elbow":
        trace = run_case("elbow")
    else:
        start = ROBOT.home.copy()
        start[4] = -0.5
        trace = run_there_and_back(ROBOT, [0, 0, 0, 0.3, 0, 0], 2.5, start=start)
    k = next(k for k in range(len(trace.steps)) if trace.steps[k].causes)
    cause = trace.steps[k].causes[0]

    # Wrist 1 and wrist 3 turn about the same axis where wrist 2 is straight.
    assert (cause.kind, cause.subject) == (
        "singularity",
        "elbow_joint" if case == "elbow" else "wrist_1_joint",
    )
    assert cause.value == pytest.approx(sigma(trace.setpoints[k - 1]), abs=1e-9)
    assert min(sigma(q) for q in trace.setpoints[::5]) >= SINGULAR_FLOOR - 1e-6


def test_coal_alone_confirms_the_distance_to_a_wall():
    trace = run_case("wall")
    k = trace.index_at(2.4)
    model = ROBOT.model
    data = model.createData()
    pin.forwardKinematics(model, data, trace.setpoints[k - 1])
    cause = trace.steps[k].causes[0]
    wall = coal.Box(0.02, 1.0, 0.6)
    wall_placement = coal.Transform3s(np.eye(3), np.array([1.0, 0.16, 0.3]))
    nearest = np.inf
    for i, link in enumerate(ROBOT.links):
        for shape in (shape for shape in link.shapes if shape.solid):
            middle, length = shape.axis_frame()
            at = data.oMi[i + 1] * link.placement * middle
            solid = (coal.Capsule if shape.kind == "capsule" else coal.Cylinder)(
                shape.radius, length
            )
            solid_placement = coal.Transform3s(at.rotation, at.translation)
            distance = coal.distance(
                solid,
                solid_placement,
                wall,
                wall_placement,
                coal.DistanceRequest(),
                coal.DistanceResult(),
            )
            nearest = min(nearest, distance)

    assert cause.subject == "wall"
    assert cause.value == pytest.approx(nearest, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tuning",
    variants(
        [(2000.0, 0.03), (100.0, 0.03), (300.0, 0.1), (100.0, 0.2)], (2000.0, 0.03), (100.0, 0.2)
    ),
)
def test_the_arm_stays_clear_at_any_tuning(tuning):
    law = ServojLaw(ROBOT.period, *tuning)
    script = repeat_input("jog", [0, 2.0, 0.5, 0, 0, 0], 0.0, 2.0)
    trace = run(engage_motion(ROBOT, law=law), script, 2.4, robot=ROBOT)
    arm = trace.follow(law)

    assert {name for k in range(len(trace.steps)) for name, _ in trace.cause_names(k)} >= {
        "obstacle"
    }
    assert min(AGAIN.distances(q).min() for q in arm.q) > 0.5 * MARGIN


@pytest.mark.slow
def test_along_the_floor_a_twist_is_free():
    script = repeat_input("twist", [0, 0, -0.3, 0, 0, 0], 0.0, 1.8) + repeat_input(
        "twist", [0, -0.2, 0, 0, 0, 0], 1.8, 2.6
    )
    trace = run(engage_motion(ROBOT), script, 2.6, robot=ROBOT)
    along = slice(trace.index_at(2.2), None)

    assert trace.twist_speed[along] == pytest.approx(0.2, rel=0.02)
    assert clearance(trace)[along].max() < 2 * MARGIN
    assert count_cause_changes(trace, 2.2, 2.6) == 0
