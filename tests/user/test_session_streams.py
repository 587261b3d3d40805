"""Random streams of inputs to a live session.

Whatever is given, and whenever, the arm keeps its limits and the session goes on.

On a simulated controller and clock; tests/soak/live.py does the same on an emulated controller.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simbridge.recording.run_directory import RunDirectory
from simbridge.robot import load_robot
from simbridge.robot.collision import CollisionModel
from simbridge.servo.law import ServojLaw
from simbridge.sessions import setup as live_setup
from tests.properties import few_examples
from tests.running.virtual_controller import virtual_session
from tests.sessions.input_streams import input_stream, play
from tests.sessions.live_judgement import arm_violations, good_joints, setpoint_violations

ROBOT = load_robot("ur10e")
LAW = ServojLaw(ROBOT.period)
COLLISIONS = CollisionModel(ROBOT)
# How late the loop's waits end: how often, and by how much at most, s.
LATE = ((0.0, 0.0), (0.2, 0.0015), (0.1, 0.003), (0.02, 0.008), (0.01, 0.025), (0.005, 0.06))
AT_REST = ("idle", "engaged", "holding")
SLIDER = st.dictionaries(st.integers(50, 700), st.sampled_from([0.0, 0.1, 0.5, 1.0]), max_size=3)


@pytest.fixture(autouse=True)
def without_reports(monkeypatch):
    """A page takes longer than a stream."""
    monkeypatch.setattr(live_setup, "finish_session", lambda *_: None)


def settled(session):
    """Wait until the arm rests.

    The longest chunk takes 4.3 s, the longest timeout half a second.
    """
    for _ in range(60):
        session.wait(0.1)
        if session.status.state in AT_REST:
            return
    raise AssertionError(session.status)


@pytest.mark.soak
@few_examples(4)
@given(
    seed=st.integers(0, 10**6),
    late=st.sampled_from(LATE),
    slider=SLIDER,
    freeze=st.sampled_from([{}, {}, {300: 0.02}, {400: 0.05, 500: 0.004}]),
)
def test_any_stream_keeps_the_arms_limits(tmp_path_factory, seed, late, slider, freeze):
    out = tmp_path_factory.mktemp("stream") / "run"
    stream = input_stream(seed, ROBOT, 1.0)
    chance = random.Random(seed)
    disturbed = True
    changes = {tick: {"target_speed_fraction": share} for tick, share in slider.items()}
    session, controller = virtual_session(
        out,
        ROBOT,
        lateness=lambda: (
            chance.uniform(0.0, late[1]) if disturbed and chance.random() < late[0] else 0.0
        ),
        faults={"changes": changes | {750: {"target_speed_fraction": 1.0}}, "freezes": freeze},
    )
    with session:
        session.engage()
        session.wait(0.01)
        begin = session._now

        def wait(until):
            if (periods := round((begin + until - session._now) / session.period)) > 0:
                session.wait(periods * session.period)

        wrong = play(stream, session, wait)
        disturbed = False
        settled(session)
        session.disengage()
        session.wait(0.1)
        assert session.status.state == "idle"
        session.engage()
        session.wait(0.01)
        assert session.status.state == "engaged"
        there = good_joints(ROBOT, COLLISIONS, session.state.command)
        for _ in range(25):
            session.joints(there)
            session.wait(0.04)
        assert np.abs(session.state.command - there).max() < 1e-3, session.status
        wrong += arm_violations(ROBOT, controller.targets, controller.setpoints, LAW)[0]
    log = RunDirectory.open(out).log()
    number = np.round(log.plan_time / session.period)
    wrong += setpoint_violations(ROBOT, log.setpoint, log.live["rate"], number, session.period)

    assert not wrong, stream.parts
