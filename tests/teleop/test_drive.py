"""The loop between a device and a session: what moves the arm, what halts it, and what must not move it."""

from __future__ import annotations

import numpy as np
import pytest

from simbridge.errors import ForeignSolverError, Interrupted, SimbridgeError
from simbridge.teleop.device import AT_REST, NO_STEP, DeviceError, Reading
from simbridge.teleop.drive import READING_RATE_HZ, STEP_DURATION_S, Driver
from simbridge.teleop.options import TeleopOptions
from tests.teleop.fake_session import ENGAGE, FORWARD, RELEASED, Clock, FakeSession, Script

STEP = Reading(steps=(1, *NO_STEP[1:]))


def driven(*readings, session=None, **more):
    """The session after these readings."""
    session, clock = session or FakeSession(), Clock()
    Driver(
        session, Script(*readings), more.pop("options", TeleopOptions()), clock=clock, **more
    ).run(clock.sleep)
    return session


def test_nothing_engages_or_moves_by_itself():
    assert driven(RELEASED, FORWARD, STEP).calls == []


def test_a_held_dead_man_button_moves_and_its_release_halts_once():
    session = driven(ENGAGE, RELEASED, FORWARD, FORWARD, RELEASED, RELEASED)
    assert [call[0] for call in session.calls] == ["engage", "twist", "twist", "halt"]
    np.testing.assert_allclose(session.of("twist")[0][1], [0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert session.of("halt") == [("halt", "the dead-man button released")]


def test_without_the_dead_man_button_the_axes_do_nothing():
    assert driven(ENGAGE, Reading(axes=FORWARD.axes), Reading(axes=FORWARD.axes)).motions == []


def test_the_cap_at_rest_with_the_dead_man_button_held_is_a_velocity_of_zero():
    (twist,) = driven(ENGAGE, RELEASED, Reading(axes=AT_REST, held=True)).of("twist")
    assert not twist[1].any()


def test_the_frame_goes_to_the_session():
    session = driven(ENGAGE, RELEASED, FORWARD, options=TeleopOptions(frame="tool"))
    assert session.of("twist")[0][2] == "tool"


@pytest.mark.parametrize("request_", ["engage", "toggle"])
def test_what_was_held_while_the_arm_engaged_must_be_released_first(request_):
    engage = Reading(axes=FORWARD.axes, held=True, steps=STEP.steps, requests=(request_,))
    session = driven(engage, FORWARD, FORWARD, FORWARD)
    assert session.motions == []
    assert len(driven(engage, FORWARD, RELEASED, FORWARD).of("twist")) == 1


def test_what_was_held_while_the_arm_was_stopped_must_be_released_first():
    halt = Reading(axes=FORWARD.axes, held=True, requests=("halt",))
    session = driven(ENGAGE, RELEASED, FORWARD, halt, FORWARD, FORWARD)
    assert [call[0] for call in session.calls] == ["engage", "twist", "halt"]


def test_a_button_toggles_the_engagement():
    toggle = Reading(requests=("toggle",))
    assert [call[0] for call in driven(toggle, RELEASED, toggle, toggle).calls] == [
        "engage",
        "disengage",
        "engage",
    ]


def test_a_session_that_ended_by_itself_is_engaged_anew_only_at_the_device():
    session = FakeSession()
    reported = []
    driver = Driver(
        session,
        Script(ENGAGE, RELEASED, FORWARD, FORWARD, FORWARD),
        TeleopOptions(),
        report=reported.append,
    )
    for _ in range(3):
        driver.tick()
    session.status.state, session.status.error = "idle", SimbridgeError("A protective stop.")
    driver.tick()
    driver.tick()
    assert len(session.of("engage")) == len(session.of("twist")) == 1
    # Once, not with each reading.
    assert reported == ["A protective stop."]


def test_an_engagement_that_fails_is_one_sentence_and_can_be_tried_again():
    reported, session = [], FakeSession(refuses=SimbridgeError("The arm is not powered on."))
    driven(ENGAGE, FORWARD, ENGAGE, session=session, report=reported.append)
    assert reported == ["The arm is not powered on."] * 2
    assert session.motions == []


def test_ctrl_c_while_the_arm_engages_ends():
    with pytest.raises(Interrupted):
        driven(ENGAGE, session=FakeSession(refuses=Interrupted("Interrupted.")))  # type: ignore[arg-type]


def test_a_read_error_in_mid_motion_halts_and_is_one_sentence():
    session = FakeSession()
    with pytest.raises(
        DeviceError, match=r"test device: it stopped answering \(read error\); was it unplugged\?"
    ):
        driven(ENGAGE, RELEASED, FORWARD, OSError("read error"), session=session)
    assert session.calls[-1] == ("halt", "test device lost")


def test_a_step_is_one_pose_one_step_from_the_tool_and_asked_for_until_it_is_old():
    session, clock = FakeSession(follows=False), Clock()
    begin = session.tool.copy()
    count = round(2.0 * STEP_DURATION_S * READING_RATE_HZ)
    Driver(session, Script(ENGAGE, STEP, *[RELEASED] * count), TeleopOptions(), clock=clock).run(
        clock.sleep
    )
    poses = [call[1] for call in session.of("pose")]
    assert len(poses) == pytest.approx(STEP_DURATION_S * READING_RATE_HZ, abs=3)
    for pose in poses:
        np.testing.assert_allclose(
            pose.translation - begin.translation, [0.005, 0.0, 0.0], atol=1e-12
        )


def test_steps_that_the_arm_follows_add_up_and_no_rounding_with_them():
    session = driven(ENGAGE, *[STEP, RELEASED] * 20)
    np.testing.assert_allclose(session.tool.translation, [0.6, 0.1, 0.3], atol=1e-9)


def test_steps_are_not_queued_while_the_arm_cannot_follow():
    session = FakeSession(follows=False)
    begin = session.tool.copy()
    driven(ENGAGE, *[STEP] * 50, session=session)
    assert (
        max(np.linalg.norm(call[1].translation - begin.translation) for call in session.of("pose"))
        <= 0.005 + 1e-12
    )


def test_a_stop_forgets_the_step_that_was_asked_for():
    session = driven(
        ENGAGE,
        STEP,
        Reading(requests=("halt",)),
        RELEASED,
        RELEASED,
        session=FakeSession(follows=False),
    )
    assert [call[0] for call in session.calls] == ["engage", "pose", "halt"]


def test_buttons_are_noted_and_given_to_the_function():
    reported = []
    session = driven(
        Reading(buttons=frozenset("3")),
        Reading(buttons=frozenset("34")),
        RELEASED,
        on_button=lambda *event: reported.append(event),
    )
    assert reported == [("3", True), ("4", True), ("3", False), ("4", False)]
    assert [(call[2]["button"], call[2]["pressed"]) for call in session.of("note")] == reported


def test_a_function_for_buttons_that_fails_halts_and_is_named():
    def grip(_button, _pressed):
        raise ValueError("no gripper")

    session, options = FakeSession(), TeleopOptions(on_button="tools:grip")
    with pytest.raises(
        ForeignSolverError,
        match="The button function tools:grip failed with ValueError: no gripper",
    ):
        driven(
            ENGAGE,
            Reading(buttons=frozenset("3")),
            session=session,
            on_button=grip,
            options=options,
        )
    assert session.calls[-1][0] == "halt"


def test_the_rate_holds_and_lost_time_is_not_made_up():
    clock, times = Clock(), []

    class Slow(Script):
        def read(self):
            times.append(clock.now)
            if len(times) == 3:
                clock.now += 0.5
            return super().read()

    Driver(FakeSession(), Slow(*[RELEASED] * 5), TeleopOptions(), clock=clock).run(clock.sleep)
    assert np.diff(times) == pytest.approx([0.01, 0.01, 0.5, 0.01, 0.01])
