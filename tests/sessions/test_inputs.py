"""Inputs are bounded where they enter: what is malformed or too large is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from simbridge.errors import InvalidParameter, SimbridgeError
from simbridge.sessions.inputs import (
    Input,
    chunk_kind,
    chunk_values,
    jog_values,
    pose_values,
    twist_values,
)
from simbridge.sessions.spaces import POSES

POSE = [0.5, 0.1, 0.3, 0.0, 1.0, 0.0, 0.0]
JOINTS = [0.1] * 6
POSE_ARRAY = np.array(POSE)


class Hostile:
    """An object whose conversion to an array fails in its own way."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __str__(self) -> str:
        raise RuntimeError("no text")


NUMBERS = {
    "nan": np.nan,
    "infinite": np.inf,
    "too large": 1.000001e6,
    "very large": -1e308,
    "an integer beyond a float": 10**400,
    "an integer beyond text": 10**5000,
    "complex": 1j,
    "text": "0.1",
    "none": None,
    "a list": [1.0],
    "hostile": Hostile(),
}


def with_first(values: list[float], first: Any) -> list[Any]:
    """Return values of which the first is another."""
    return [first, *values[1:]]


def nested(depth: int) -> list[Any]:
    """Return a list within lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize(
    "check",
    [
        lambda first: pose_values(with_first(POSE, first)),
        lambda first: twist_values(with_first(JOINTS, first), "base_link"),
        lambda first: jog_values(with_first(JOINTS, first), 6),
        lambda first: chunk_values([0.1], [with_first(POSE, first)], 6),
        lambda first: chunk_values([0.1], [with_first(JOINTS, first)], 6),
        lambda first: chunk_values(with_first([0.1, 0.2], first), [JOINTS] * 2, 6),
    ],
    ids=["pose", "twist", "jog", "poses of a chunk", "joints of a chunk", "times of a chunk"],
)
def test_a_number_that_cannot_be_used_is_refused(check: Any, number: Any) -> None:
    with pytest.raises(InvalidParameter):
        check(number)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        None,
        1.0,
        "fast",
        [],
        [[]],
        nested(100),
        {},
        set(),
        object(),
        Hostile(),
        np.zeros((6, 1)),
        np.zeros(10**6),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(
    "check",
    [
        pose_values,
        lambda values: twist_values(values, "base_link"),
        lambda values: jog_values(values, 6),
        lambda values: chunk_values(values, [JOINTS], 6),
        lambda values: chunk_values([0.1], values, 6),
        lambda values: chunk_values([0.1], [values], 6),
    ],
    ids=["pose", "twist", "jog", "times of a chunk", "targets of a chunk", "row of a chunk"],
)
def test_a_wrong_shape_is_refused(check: Any, values: Any) -> None:
    with pytest.raises(InvalidParameter):
        check(values)


@pytest.mark.parametrize("quaternion", [[0.0] * 4, [1e-200] * 4, [1e200] * 4, [np.nan] * 4])
def test_a_quaternion_without_a_direction_is_refused(quaternion: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        pose_values([0.5, 0.1, 0.3, *quaternion])


def test_a_transform_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        pose_values(pin.SE3(np.eye(3), np.array([np.nan, 0.0, 0.0])))


@pytest.mark.parametrize("frame", ["world", "", None, 3, ["tool"], np.array(["tool", "base"])])
def test_a_frame_that_does_not_exist_is_refused(frame: Any) -> None:
    with pytest.raises(SimbridgeError):
        twist_values([0.0] * 6, frame)


def test_the_largest_numbers_are_taken() -> None:
    assert pose_values([1e6, -1e6, 1e6, *POSE[3:]])[0] == 1e6
    assert twist_values([1e6, -1e6] * 3, "tool")[1] == -1e6
    assert jog_values([1e6, -1e6] * 3, 6)[1] == -1e6


@pytest.mark.parametrize("times", [[-0.1, 0.5], [0.5, 0.1], [0.0], [0.0, np.inf], "soon"])
def test_unordered_stamps_are_refused(times):
    with pytest.raises(InvalidParameter, match="increasing times in s from now"):
        chunk_values(times, [POSE_ARRAY, POSE_ARRAY], 6)


@pytest.mark.parametrize("targets", [None, 3.0, [], [[1.0, 2.0]]])
def test_what_is_no_chunk_is_refused(targets):
    assert chunk_kind(targets, 6) == "follow"
    with pytest.raises(InvalidParameter):
        chunk_values([0.0], targets, 6)


def test_seven_numbers_are_joints_of_seven():
    joints = [np.linspace(0.0, 0.6, 7)]

    assert chunk_kind(joints, 7) == "follow_joints"
    assert chunk_values([0.5], joints, 7)[0, 1:] == pytest.approx(joints[0])

    poses = [pin.XYZQUATToSE3(POSE_ARRAY)]

    assert chunk_kind(poses, 7) == "follow"
    assert POSES.difference(chunk_values([0.5], poses, 7)[0, 1:], POSE_ARRAY) == pytest.approx(
        np.zeros(6), abs=1e-9
    )


@pytest.mark.parametrize("kind", ["follow", "follow_joints"])
def test_a_chunk_survives_the_mailbox(kind):
    item = Input(kind, np.arange(16.0).reshape(2, 8), 3, 2, sent=1.5)
    back = Input.of(item.row())

    assert np.array_equal(back.values, item.values)
    assert back.kind == kind
    assert back.number == 3
    assert back.engagement == 2
    assert back.sent == 1.5


def test_a_chunk_beyond_five_seconds_is_refused():
    with pytest.raises(InvalidParameter, match="at most 5 s"):
        chunk_values([0.5, 3600.0], [POSE_ARRAY, POSE_ARRAY], 6)


@pytest.mark.parametrize(
    "far", [np.array([0.0, 0.2, 0.0, 0, 0, 0, 0]), np.array([0.0, 0.0, -0.3, 0, 0, 0, 0])]
)
def test_a_jump_within_a_chunk_is_refused(far):
    with pytest.raises(InvalidParameter, match="from row 1 to row 2"):
        chunk_values([0.1, 0.2, 0.3], [POSE_ARRAY, POSE_ARRAY, POSE_ARRAY + far], 6, (0.1, 0.5))
    assert len(chunk_values([0.1, 0.2], [POSE_ARRAY, POSE_ARRAY + 0.3 * far], 6, (0.1, 0.5))) == 2
