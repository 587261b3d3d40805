"""Dead band, scale, lock, frame and steps: what a deflection or a key press is worth."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.errors import InvalidParameter, UnknownName
from simbridge.teleop.options import AXES, TeleopOptions, read_lock

DEFLECTION = st.floats(-1.0, 1.0)
SIX = st.tuples(*[DEFLECTION] * 6)
SIGNS = st.tuples(*[st.integers(-1, 1)] * 6)
FRAMES = st.sampled_from(("base_link", "base", "tool"))
LOCKS = st.sets(st.sampled_from(AXES)).map(tuple)
ANGLES = st.tuples(*[st.floats(-3.0, 3.0)] * 3)


def pose(angles):
    return pin.SE3(pin.exp3(np.array(angles)), np.array([0.5, 0.1, 0.3]))


def difference(a, b):
    """Distance, m, and angle, rad, between two poses."""
    distance = np.linalg.norm(a.translation - b.translation)
    angle = np.linalg.norm(pin.log3(a.rotation @ b.rotation.T))
    return distance, angle


@pytest.mark.slow
@given(axes=SIX, dead_band=st.floats(0.0, 0.9))
def test_at_the_dead_band_nothing_jumps(axes, dead_band):
    shaped = TeleopOptions(dead_band=dead_band).shape(axes)

    for axis, value in zip(axes, shaped, strict=True):
        if abs(axis) <= dead_band:
            assert value == 0.0
        else:
            assert math.copysign(1.0, value) == math.copysign(1.0, axis)
            assert abs(value) <= min(1.0, 10.0 * (abs(axis) - dead_band)) + 1e-9


@given(dead_band=st.floats(0.0, 0.9), speed=st.floats(0.0, 5.0), turn=st.floats(0.0, 10.0))
def test_full_deflection_is_full_speed(dead_band, speed, turn):
    options = TeleopOptions(dead_band=dead_band, translation_speed=speed, rotation_speed=turn)
    np.testing.assert_allclose(
        options.twist((1.0, -1.0, 1.0, -1.0, 1.0, -1.0)), [speed, -speed, speed, -turn, turn, -turn]
    )


@given(axes=SIX, lock=LOCKS)
def test_a_locked_axis_locks_no_other(axes, lock):
    locked = TeleopOptions(lock=lock).twist(axes)
    free = TeleopOptions().twist(axes)

    for name, value, before in zip(AXES, locked, free, strict=True):
        assert value == (0.0 if name in lock else before)


@pytest.mark.slow
@given(steps=SIGNS, angles=ANGLES, frame=FRAMES, lock=LOCKS)
def test_a_step_is_as_long_as_chosen(steps, angles, frame, lock):
    begin = pose(angles)
    distance, angle = difference(
        TeleopOptions(frame=frame, lock=lock).step_pose(begin, steps), begin
    )
    moving = [sign != 0 and axis not in lock for axis, sign in zip(AXES, steps, strict=True)]
    assert distance == pytest.approx(0.005 * math.sqrt(sum(moving[:3])), abs=1e-9)
    assert angle == pytest.approx(math.radians(2.0) * math.sqrt(sum(moving[3:])), abs=1e-7)


@pytest.mark.parametrize(
    ("frame", "moved"),
    [("base_link", [0.005, 0.0, 0.0]), ("base", [-0.005, 0.0, 0.0]), ("tool", [0.0, 0.005, 0.0])],
)
def test_a_step_along_x_is_along_the_x_of_its_frame(frame, moved):
    # The tool's x points along y of base_link.
    begin = pose((0.0, 0.0, math.pi / 2.0))

    stepped = TeleopOptions(frame=frame).step_pose(begin, (1, 0, 0, 0, 0, 0))

    np.testing.assert_allclose(stepped.translation - begin.translation, moved, atol=1e-12)


@pytest.mark.slow
@given(st.lists(SIGNS, min_size=1, max_size=20), FRAMES)
def test_the_goal_stays_within_a_step(many, frame):
    options = TeleopOptions(frame=frame)
    tool = pose((0.3, -0.2, 0.1))
    axes = {"base_link": np.eye(3), "base": np.diag([-1, -1, 1]), "tool": tool.rotation}[frame]
    goal = tool

    for steps in many:
        goal = options.limit_to_step(options.step_pose(goal, steps), tool)
        distances = axes.T @ (goal.translation - tool.translation)
        angles = axes.T @ pin.log3(goal.rotation @ tool.rotation.T)
        assert np.abs(distances).max() <= options.step + 1e-9
        assert np.abs(angles).max() <= options.step_angle + 1e-7


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("x", ("x",)),
        ("rx, ry", ("rx", "ry")),
        ("rotation", ("rx", "ry", "rz")),
        ("translation,rz", ("x", "y", "z", "rz")),
    ],
)
def test_locks_are_axes_or_groups_of_them(text, axes):
    assert read_lock(text) == axes


@pytest.mark.parametrize(
    ("choice", "error"),
    [
        ({"frame": "tcp"}, UnknownName),
        ({"lock": ("q",)}, UnknownName),
        ({"dead_band": 0.95}, InvalidParameter),
        ({"dead_band": math.nan}, InvalidParameter),
        ({"translation_speed": -0.1}, InvalidParameter),
        ({"rotation_speed": math.inf}, InvalidParameter),
        ({"step": 0.2}, InvalidParameter),
        ({"step_angle": 1.0}, InvalidParameter),
        ({"port": 70000}, InvalidParameter),
        ({"dead_man_button": 0}, InvalidParameter),
        ({"listen": "my-computer"}, InvalidParameter),
        ({"listen": "0.0.0.0"}, InvalidParameter),
        ({"listen": "::"}, InvalidParameter),
        ({"token": "short"}, InvalidParameter),
    ],
)
def test_what_cannot_be_is_refused(choice, error):
    with pytest.raises(error):
        TeleopOptions(**choice)


def test_the_goal_stays_on_its_line():
    options = TeleopOptions()
    begin = pose((0.0, 0.0, 0.0))
    aside = pin.SE3(begin.rotation, begin.translation + np.array([0.001, 0.0, 0.0]))

    goal = options.limit_to_step(options.step_pose(begin, (0, 0, 1, 0, 0, 0)), aside)
    np.testing.assert_allclose(goal.translation - begin.translation, [0.0, 0.0, 0.005], atol=1e-12)


def test_the_dead_man_button_does_not_engage_too():
    assert TeleopOptions(dead_man_button=4).choose_buttons(1, 2) == (4, 2)
    with pytest.raises(InvalidParameter, match="different from the dead-man button"):
        TeleopOptions(dead_man_button=2).choose_buttons(1, 2)
