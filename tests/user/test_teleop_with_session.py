"""Devices drive a live session of a simulated arm, on a clock that the test moves."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

from simbridge.sessions.setup import live
from simbridge.teleop.device import NO_STEP, DeviceCommand, Reading
from simbridge.teleop.drive import Driver
from simbridge.teleop.options import TeleopOptions
from tests.teleop.fake_session import ENGAGE, FORWARD, RELEASED, Clock, Script


@pytest.fixture
def drive(tmp_path):
    """Drives an arm by readings, a period each; returns where the tool was after each of them."""

    def call(*readings, **options):
        clock = Clock()
        poses = []
        chosen = TeleopOptions(**options)
        out = tmp_path / "run"
        with live("pybullet", realtime=False, report=False, out=out) as session:

            def advance(_seconds):
                session.wait(session.period)
                clock.now += session.period
                poses.append(session.tool)

            Driver(session, Script(*readings), chosen, clock=clock).run(advance)
            return poses, session.status

    return call


@pytest.mark.parametrize(
    ("frame", "axis"), [("base_link", [1, 0, 0]), ("base", [-1, 0, 0]), ("tool", None)]
)
def test_a_held_button_moves_along_the_axis(drive, frame, axis):
    poses, status = drive(ENGAGE, RELEASED, *[FORWARD] * 50, *[RELEASED] * 60, frame=frame)

    begin = poses[0]
    end = poses[-1]
    moved = end.translation - begin.translation
    expected = begin.rotation[:, 0] if axis is None else np.array(axis)

    # 50 periods of 8 ms at 0.1 m/s, less the ramps.
    assert 0.030 < moved @ expected < 0.045
    assert np.linalg.norm(moved - (moved @ expected) * expected) < 1e-4
    # Its release holds the arm.
    assert status.state == "holding"
    assert np.linalg.norm(poses[-20].translation - end.translation) < 1e-6


def test_key_presses_add_up(drive):
    step = [Reading(steps=(*NO_STEP[:2], 1, *NO_STEP[3:])), *[RELEASED] * 40]
    turn = [Reading(steps=(*NO_STEP[:5], 1)), *[RELEASED] * 40]

    poses, _ = drive(ENGAGE, *step * 3, *turn)

    shift = poses[-1].translation - poses[0].translation

    np.testing.assert_allclose(shift, [0.0, 0.0, 0.015], atol=1e-5)

    rotation = pin.log3(poses[-1].rotation @ poses[0].rotation.T)
    np.testing.assert_allclose(rotation, [0.0, 0.0, math.radians(2.0)], atol=1e-5)


def test_after_a_stop_a_held_button_moves_nothing(drive):
    halt = Reading(axes=FORWARD.axes, held=True, requests=("halt",))

    poses, status = drive(ENGAGE, RELEASED, *[FORWARD] * 30, halt, *[FORWARD] * 60)

    assert status.state == "holding"
    assert np.linalg.norm(poses[-1].translation - poses[-30].translation) < 1e-6


def test_the_session_takes_every_command(drive):
    lifted = (0.0, 0.0, -0.005, 0.0, 0.0, 0.0, 1.0)
    commands = [
        DeviceCommand("twist", (0.0, 0.0, 0.01, 0.0, 0.0, 0.0), frame="base"),
        DeviceCommand("jog", (0.01,) * 6),
        DeviceCommand("pose", lifted, relative=True),
    ]

    poses, _ = drive(
        ENGAGE, *(Reading(commands=(command,)) for command in commands), *[RELEASED] * 100
    )

    # The last: relative to the pose at the engagement, in the axes of the tool, which points down.
    shift = poses[-1].translation - poses[0].translation

    np.testing.assert_allclose(shift, [0.0, 0.0, 0.005], atol=1e-5)
