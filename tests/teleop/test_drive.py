"""The loop between a device and a session: what moves the arm, halts it, or must not move it."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import ForeignSolverError, Interrupted, SimbridgeError
from simbridge.teleop.device import AT_REST, NO_STEP, DeviceError, Reading
from simbridge.teleop.drive import READING_RATE_HZ, STEP_DURATION_S, Driver
from simbridge.teleop.options import TeleopOptions
from tests.teleop.fake_session import ENGAGE, FORWARD, RELEASED, Clock, FakeSession, Script

STEP = Reading(steps=(1, *NO_STEP[1:]))
HALT = Reading(axes=FORWARD.axes, held=True, requests=("halt",))


def drive(*readings, session=None, options=None, **callbacks):
    """Drive a session by readings; returns the session."""
    session = session or FakeSession()
    clock = Clock()
    driver = Driver(
        session, Script(*readings), options or TeleopOptions(), clock=clock, **callbacks
    )
    driver.run(clock.sleep)
    return session


def names(session):
    """The names of the session's calls."""
    return [call[0] for call in session.calls]


def test_nothing_moves_before_it_engages():
    assert drive(RELEASED, FORWARD, STEP).calls == []


def test_a_held_dead_man_button_moves():
    session = drive(ENGAGE, RELEASED, FORWARD, FORWARD)

    assert names(session) == ["engage", "twist", "twist"]
    twist = session.of("twist")[0][1]
    np.testing.assert_allclose(twist, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_its_release_halts_once():
    session = drive(ENGAGE, RELEASED, FORWARD, FORWARD, RELEASED, RELEASED)

    assert names(session) == ["engage", "twist", "twist", "halt"]
    assert session.of("halt") == [("halt", "the dead-man button released")]


def test_axes_alone_move_nothing():
    deflected = Reading(axes=FORWARD.axes)

    assert drive(ENGAGE, deflected, deflected).motions == []


def test_a_cap_at_rest_is_no_velocity():
    session = drive(ENGAGE, RELEASED, Reading(axes=AT_REST, held=True))

    (twist,) = session.of("twist")
    assert not twist[1].any()


def test_the_frame_goes_to_the_session():
    session = drive(ENGAGE, RELEASED, FORWARD, options=TeleopOptions(frame="tool"))

    assert session.of("twist")[0][2] == "tool"


@pytest.mark.parametrize("request_", ["engage", "toggle"])
def test_held_while_engaging_moves_nothing(request_):
    engage = Reading(axes=FORWARD.axes, held=True, steps=STEP.steps, requests=(request_,))

    session = drive(engage, FORWARD, FORWARD, FORWARD)

    assert session.motions == []


@pytest.mark.parametrize("request_", ["engage", "toggle"])
def test_released_after_engaging_it_moves(request_):
    engage = Reading(axes=FORWARD.axes, held=True, steps=STEP.steps, requests=(request_,))

    session = drive(engage, FORWARD, RELEASED, FORWARD)

    assert len(session.of("twist")) == 1


def test_held_after_a_stop_moves_nothing():
    session = drive(ENGAGE, RELEASED, FORWARD, HALT, FORWARD, FORWARD)

    assert names(session) == ["engage", "twist", "halt"]


def test_a_button_toggles_the_engagement():
    toggle = Reading(requests=("toggle",))

    session = drive(toggle, RELEASED, toggle, toggle)

    assert names(session) == ["engage", "disengage", "engage"]


def test_only_the_device_engages_anew():
    session = FakeSession()
    reports = []
    readings = Script(ENGAGE, RELEASED, FORWARD, FORWARD, FORWARD)
    driver = Driver(session, readings, TeleopOptions(), report=reports.append)
    for _ in range(3):
        driver.tick()

    session.status.state = "idle"
    session.status.error = SimbridgeError("A protective stop.")
    driver.tick()
    driver.tick()

    assert len(session.of("engage")) == 1
    assert len(session.of("twist")) == 1
    # Once, not with each reading.
    assert reports == ["A protective stop."]


def test_a_failed_engagement_can_be_repeated():
    reports = []
    session = FakeSession(refuses=SimbridgeError("The arm is not powered on."))

    drive(ENGAGE, FORWARD, ENGAGE, session=session, report=reports.append)

    assert reports == ["The arm is not powered on."] * 2
    assert session.motions == []


def test_ctrl_c_while_engaging_ends():
    session = FakeSession(refuses=Interrupted("Interrupted."))  # type: ignore[arg-type]

    with pytest.raises(Interrupted):
        drive(ENGAGE, session=session)


def test_a_read_error_halts_the_arm():
    session = FakeSession()
    message = r"test device: it stopped responding \(read error\)\. Was it unplugged\?"

    with pytest.raises(DeviceError, match=message):
        drive(ENGAGE, RELEASED, FORWARD, OSError("read error"), session=session)

    assert session.calls[-1] == ("halt", "test device lost")


def test_a_step_is_asked_for_until_it_is_old():
    session = FakeSession(follows=False)
    begin = session.tool.copy()
    count = round(2.0 * STEP_DURATION_S * READING_RATE_HZ)

    drive(ENGAGE, STEP, *[RELEASED] * count, session=session)

    poses = [call[1] for call in session.of("pose")]
    assert len(poses) == pytest.approx(STEP_DURATION_S * READING_RATE_HZ, abs=3)
    for pose in poses:
        shift = pose.translation - begin.translation
        np.testing.assert_allclose(shift, [0.005, 0.0, 0.0], atol=1e-12)


def test_steps_add_up_without_rounding():
    session = drive(ENGAGE, *[STEP, RELEASED] * 20)

    np.testing.assert_allclose(session.tool.translation, [0.6, 0.1, 0.3], atol=1e-9)


def test_steps_are_not_queued():
    session = FakeSession(follows=False)
    begin = session.tool.copy()

    drive(ENGAGE, *[STEP] * 50, session=session)

    poses = [call[1] for call in session.of("pose")]
    distances = [np.linalg.norm(pose.translation - begin.translation) for pose in poses]
    assert max(distances) <= 0.005 + 1e-12


def test_a_stop_forgets_the_step():
    halt = Reading(requests=("halt",))

    session = drive(ENGAGE, STEP, halt, RELEASED, RELEASED, session=FakeSession(follows=False))

    assert names(session) == ["engage", "pose", "halt"]


def test_buttons_are_noted_and_passed_on():
    calls = []
    readings = [Reading(buttons=frozenset("3")), Reading(buttons=frozenset("34")), RELEASED]

    session = drive(*readings, on_button=lambda *event: calls.append(event))

    assert calls == [("3", True), ("4", True), ("3", False), ("4", False)]
    notes = [call[2] for call in session.of("note")]
    assert [(note["button"], note["pressed"]) for note in notes] == calls


def test_a_failing_button_function_halts():
    def grip(_button, _pressed):
        raise ValueError("no gripper")

    session = FakeSession()
    options = TeleopOptions(on_button="tools:grip")
    message = "The button function tools:grip failed with ValueError: no gripper"

    with pytest.raises(ForeignSolverError, match=message):
        drive(
            ENGAGE,
            Reading(buttons=frozenset("3")),
            session=session,
            options=options,
            on_button=grip,
        )

    assert session.calls[-1][0] == "halt"


def test_lost_time_is_not_made_up():
    clock = Clock()
    times = []

    class Slow(Script):
        def read(self):
            times.append(clock.now)
            if len(times) == 3:
                clock.now += 0.5
            return super().read()

    Driver(FakeSession(), Slow(*[RELEASED] * 5), TeleopOptions(), clock=clock).run(clock.sleep)

    assert np.diff(times) == pytest.approx([0.01, 0.01, 0.5, 0.01, 0.01])
