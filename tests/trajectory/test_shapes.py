"""The shapes have the documented corners, speeds and instants."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pinocchio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter, InvalidTrajectory
from simbridge.robot import pose
from simbridge.trajectory import (
    TOOL_DOWN,
    MinimumJerk,
    corners,
    pick_and_place,
    square,
    step,
)
from tests.properties import few_examples

DATA = Path(__file__).parents[1] / "data"
CORNERS = [[0.55, -0.036, 0.3], [0.95, -0.036, 0.3], [0.95, 0.364, 0.3], [0.55, 0.364, 0.3]]


def test_tool_down_points_the_tool_at_the_floor() -> None:
    x, y, z, w = TOOL_DOWN

    rotation = pinocchio.Quaternion(w, x, y, z).toRotationMatrix()

    np.testing.assert_allclose(rotation @ [0.0, 0.0, 1.0], [0.0, 0.0, -1.0], atol=1e-15)

    with pytest.raises(ValueError, match="read-only"):
        TOOL_DOWN[0] = 1.0


def test_the_square_is_that_of_the_reference_run() -> None:
    targets = np.array(json.loads((DATA / "square_kp5.json").read_text())["targets"])

    lap = square()

    assert len(lap.times) == len(targets) + 1
    np.testing.assert_allclose(lap.poses[:-1, :3], targets[:, :3], atol=1e-15)
    np.testing.assert_allclose(lap.poses[:-1, 3:], targets[:, 3:], atol=2e-6)
    np.testing.assert_array_equal(lap.times, np.arange(801) / 100.0)


def test_every_lap_meets_every_corner() -> None:
    trajectory = square(laps=3)

    assert len(trajectory.times) == 2401
    for k in range(13):
        np.testing.assert_allclose(trajectory.poses[200 * k, :3], CORNERS[k % 4], atol=1e-16)
        np.testing.assert_array_equal(trajectory.poses[200 * k], trajectory.poses[200 * (k % 4)])


def test_the_square_is_run_at_constant_speed() -> None:
    trajectory = square(speed=0.2, laps=2)

    steps = np.linalg.norm(np.diff(trajectory.poses[:, :3], axis=0), axis=1)

    np.testing.assert_allclose(steps / np.diff(trajectory.times), 0.2, rtol=1e-10)


@few_examples(25)
@given(
    side=st.floats(0.01, 2.0),
    speed=st.floats(0.01, 1.0),
    rate=st.floats(100.0, 1000.0),
    laps=st.integers(1, 2),
)
def test_a_square_keeps_rate_path_and_speed(
    side: float, speed: float, rate: float, laps: int
) -> None:
    trajectory = square(side, (0.0, 0.0, 0.0), speed, rate, laps)
    t = trajectory.times
    points = trajectory.poses[:, :3]

    assert t[-1] == pytest.approx(4 * laps * side / speed, rel=1e-9)
    np.testing.assert_array_equal(t[:-1], np.arange(len(t) - 1) / rate)
    np.testing.assert_allclose(points[-1], [-side / 2, -side / 2, 0.0], atol=1e-12)
    # On the outline, at the distance that follows from the speed.
    np.testing.assert_allclose(np.abs(points).max(axis=1), side / 2, rtol=1e-9)

    along = (speed * t) % (4 * side)
    edge = np.minimum(along // side, 3).astype(int)
    starts = side * np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    directions = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    expected = starts[edge] + (along - edge * side)[:, None] * directions[edge]

    np.testing.assert_allclose(points[:, :2], expected, atol=1e-8)


def test_the_last_sample_may_be_early() -> None:
    trajectory = square(side=0.1, speed=0.3, rate=10.0)

    np.testing.assert_allclose(trajectory.times[-2:], [1.3, 4 / 3], rtol=1e-12)
    np.testing.assert_array_equal(trajectory.poses[-1], trajectory.start)


def test_every_corner_lasts_its_dwell() -> None:
    trajectory = corners(dwell=2.0, laps=2)

    np.testing.assert_array_equal(trajectory.times, 2.0 * np.arange(10))

    held = trajectory.target(np.arange(9) * 2.0 + 1.9, "zero-order")

    np.testing.assert_allclose(
        held[:, :3], list(itertools.islice(itertools.cycle(CORNERS), 9)), atol=1e-16
    )
    np.testing.assert_array_equal(held[:, 3:], np.tile(TOOL_DOWN, (9, 1)))


def test_corners_and_square_agree() -> None:
    np.testing.assert_array_equal(corners().poses[:5], square().poses[::200])

    # Here k speed / (rate side) differs from whole numbers by a rounding error.
    small = square(0.02, (0.0, 0.0, 0.0), speed=0.05, rate=30.0, laps=2)

    np.testing.assert_array_equal(
        corners(0.02, (0.0, 0.0, 0.0), laps=2).poses[:9], small.poses[::12]
    )


START = np.array([0.6, 0.1, 0.4, *TOOL_DOWN])


def test_a_step_holds_both_poses() -> None:
    trajectory = step(START, (-0.25, -0.75, 0.35), at=0.5, duration=4.0)

    np.testing.assert_array_equal(trajectory.times, [0.0, 0.5, 4.0])

    before, after, end = trajectory.target([0.499, 0.5, 4.0], "zero-order")

    np.testing.assert_array_equal(before, START)
    np.testing.assert_allclose(after, [0.35, -0.65, 0.75, *TOOL_DOWN], atol=1e-15)
    np.testing.assert_array_equal(after, end)


def test_a_step_turns_about_base_axes() -> None:
    turn = np.array([0.3, -0.2, 1.0])

    end = pinocchio.XYZQUATToSE3(step(START, (0.0, 0.0, 0.1), turn).poses[-1])

    np.testing.assert_allclose(end.translation, [0.6, 0.1, 0.5], atol=1e-15)
    np.testing.assert_allclose(
        end.rotation, pinocchio.exp3(turn) @ pinocchio.XYZQUATToSE3(START).rotation, atol=1e-15
    )


@pytest.mark.parametrize("value", [0.0, -0.1, math.nan, math.inf])
@pytest.mark.parametrize(
    ("shape", "name"),
    [(square, "side"), (square, "speed"), (square, "rate"), (corners, "side"), (corners, "dwell")],
)
def test_a_parameter_must_be_positive(shape, name: str, value: float) -> None:
    with pytest.raises(InvalidParameter, match=f"{name} must be a positive") as caught:
        shape(**{name: value})

    assert caught.value.name == name
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["at", "duration"])
def test_a_step_needs_positive_instants(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"{name} must be a positive"):
        step(START, (0.0, 0.0, 0.1), **{name: 0.0})


@pytest.mark.parametrize("shape", [square, corners])
@pytest.mark.parametrize("laps", [0, -1, 1.5, math.nan])
def test_laps_are_whole_and_one_or_more(shape, laps: float) -> None:
    with pytest.raises(InvalidParameter, match="an integer"):
        shape(laps=laps)


def test_an_edge_needs_a_sample() -> None:
    with pytest.raises(InvalidParameter, match="at least speed / side = 10 Hz"):
        square(side=0.1, speed=1.0, rate=9.0)


def test_a_step_after_the_end_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"longer than the time of the step, 4 s"):
        step(START, (0.0, 0.0, 0.1), at=4.0, duration=4.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: square(centre=(0.0, 0.0)), "centre.*3 finite numbers"),
        (lambda: corners(centre=(0.0, 0.0, math.nan)), "centre.*3 finite numbers"),
        (lambda: square(orientation=(0.0, 0.0, 1.0)), "orientation.*4 finite numbers"),
        (lambda: step(START[:6], (0.0, 0.0, 0.0)), "start pose.*7 finite numbers"),
        (lambda: step(START, (0.0, 0.0)), "offset.*3 finite numbers"),
        (lambda: step(START, (0.0, 0.0, 0.0), (0.1,)), "rotation vector.*3 finite numbers"),
    ],
)
def test_a_vector_must_be_finite(call, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        call()


@pytest.mark.parametrize("shape", [square, corners])
def test_an_invalid_orientation_is_refused(shape) -> None:
    with pytest.raises(
        InvalidTrajectory, match=f"'{shape.__name__}', sample 0, quaternion.*norm 2"
    ):
        shape(orientation=(0.0, 0.0, 0.0, 2.0))


# Pick and place

PICK = np.array([0.6, -0.2, 0.2, *TOOL_DOWN])
PLACE = np.array([0.6, 0.2, 0.25, *pose.multiply(pose.quaternions([0.0, 0.0, 1.0]), TOOL_DOWN)])
LIFT = 0.1
LAW = MinimumJerk(0.3)


def test_a_cycle_begins_above_the_pick() -> None:
    cycle = pick_and_place(PICK, PLACE, LIFT, LAW, dwell=0.4)

    above = PICK[:3] + np.array([0.0, 0.0, LIFT])

    np.testing.assert_allclose(cycle.poses[[0, -1], :3], [above, above], atol=1e-12)
    assert cycle.poses[:, 2].min() == pytest.approx(0.2)
    assert cycle.poses[:, 2].max() == pytest.approx(0.35)


def test_a_cycle_dwells_at_each_pose() -> None:
    cycle = pick_and_place(PICK, PLACE, LIFT, LAW, dwell=0.4)

    stops = np.flatnonzero(np.diff(cycle.times) > 0.3)

    np.testing.assert_allclose(np.diff(cycle.times)[stops], 0.4, atol=1e-12)
    np.testing.assert_allclose(cycle.poses[stops, :3], [PICK[:3], PLACE[:3]], atol=1e-12)


@pytest.mark.parametrize("end", [PICK, PLACE], ids=["pick", "place"])
def test_a_cycle_never_turns_when_low(end: np.ndarray) -> None:
    cycle = pick_and_place(PICK, PLACE, LIFT, LAW, dwell=0.4)

    is_above_end = np.linalg.norm(cycle.poses[:, :2] - end[:2], axis=1) < 1e-9
    low = cycle.poses[is_above_end & (cycle.poses[:, 2] < end[2] + LIFT - 1e-9)]

    angles = np.linalg.norm(pose.error(low, np.tile(end, (len(low), 1)))[1], axis=1)

    assert len(low) > 20
    assert angles.max() < 1e-9


def test_a_cycle_moves_vertically_when_low() -> None:
    cycle = pick_and_place(PICK, PLACE, LIFT, LAW, dwell=0.4)

    low = cycle.poses[cycle.poses[:, 2] < 0.3 - 1e-9]
    from_pick = np.linalg.norm(low[:, :2] - PICK[:2], axis=1)

    from_place = np.linalg.norm(low[:, :2] - PLACE[:2], axis=1)

    assert np.minimum(from_pick, from_place).max() < 1e-9


@pytest.mark.parametrize(
    ("changed", "name"),
    [({"lift": 0.0}, "lift"), ({"dwell": -1.0}, "dwell"), ({"pick": PICK[:6]}, "pick")],
)
def test_a_cycles_parameter_is_named(changed, name) -> None:
    arguments = {"pick": PICK, "place": PLACE, "lift": LIFT, "law": LAW} | changed

    with pytest.raises(InvalidParameter, match=name):
        pick_and_place(**arguments)
