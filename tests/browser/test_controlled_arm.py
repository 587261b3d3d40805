"""The studio with a controller, which is emulated: what its own record says of the arm."""

from __future__ import annotations

import time
from unittest.mock import MagicMock

import numpy as np
import pytest

from simbridge.browser.events import PageEvent
from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.planning.options import Options
from simbridge.robot.kinematics import tool_frame
from simbridge.sessions.record import read_events, read_inputs
from tests.controllers import never_moved, realtime_options, schedule_all_threads, tick
from tests.ports import free_port

pytestmark = pytest.mark.usefixtures("short_pages")


@pytest.fixture(autouse=True)
def in_real_time():
    """A hand that is not heard for 0.2 s has let go: neither it nor the studio's loop may wait for other processes."""
    yield
    schedule_all_threads(realtime=False)


class Page:
    """What a page that drives does, and what the studio shows."""

    def __init__(self, studio: Studio) -> None:
        self.studio, self.workspace = studio, studio.workspace

    def does(self, name, value=None):
        self.studio._events.put(PageEvent(-1, name, value))

    def shows(self, reached):
        end = time.monotonic() + 20.0
        while not (found := reached(self.workspace.view)):
            assert time.monotonic() < end, self.workspace.view
            time.sleep(0.02)
        return found

    def engages(self):
        self.does("engage")
        self.shows(lambda shown: shown.state == "engaged")
        schedule_all_threads(realtime=True)

    def holds(self, seconds, name="hold go", value=None):
        for _ in range(round(seconds / 0.05)):
            self.does(name, value)
            time.sleep(0.05)

    def tool(self):
        return tool_frame(self.workspace.arm.robot, self.workspace.arm.q).translation

    def types_a_goal(self, *shift):
        goal = self.workspace.goal.translation + np.array(shift)
        self.does("goal", goal)
        self.shows(lambda _: np.allclose(self.workspace.goal.translation, goal))


@pytest.fixture
def opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = []

    def one(controller, backend="ursim"):
        options = Options(host=controller.host, **realtime_options())
        setup = StudioSetup.from_options("ur10e", "forward-dynamics", options, backend)
        made.append(Studio(setup, port=free_port()).serve_in_background())
        return Page(made[-1])

    yield one
    for studio in made:
        studio.close()


# After the last change of the setpoints: the servo law's targets trail them, s.
SETTLED = 0.3


def moved(controller, since):
    return float(np.ptp(controller.record(after=since).target_q, axis=0).max())


@pytest.mark.soak
def test_the_arm_moves_only_after_engage_and_while_go_is_held(e_series, opened, tmp_path):
    page, begin = opened(e_series), tick(e_series)
    page.types_a_goal(0.0, 0.2, 0.0)
    page.holds(0.3)
    page.engages()
    page.types_a_goal(0.0, 0.5, 0.0)
    goal = page.workspace.goal.translation
    time.sleep(0.5)
    assert moved(e_series, begin) < 1e-3
    page.holds(0.2)
    page.does("release")
    page.shows(lambda shown: shown.state == "holding")
    time.sleep(SETTLED)
    stopped = tick(e_series)
    time.sleep(0.5)
    assert moved(e_series, begin) > 0.02 and moved(e_series, stopped) < 1e-4
    assert np.linalg.norm(page.tool() - goal) > 0.1
    page.studio.close()
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").is_file()
    assert any(
        event.get("note") == "halt" and event["facts"] == {"cause": "released"}
        for event in read_events(run)
    )


def test_a_page_that_says_nothing_for_a_fifth_of_a_second_has_let_go_and_must_grasp_again(
    e_series, opened, tmp_path
):
    page = opened(e_series)
    page.engages()
    begin, rotation = tick(e_series), page.workspace.arm.snapshot().target[[6, 3, 4, 5]]

    def drags(phase, metres):
        place = goal + np.array([0.0, metres, 0.0])
        page.does("drag", (phase, np.concatenate([place, rotation])))
        time.sleep(0.02)

    goal = page.workspace.goal.translation
    drags("start", 0.0)
    for step in range(12):
        drags("update", 0.02 * step)
    page.shows(lambda shown: shown.state == "holding")
    assert moved(e_series, begin) > 0.01
    time.sleep(SETTLED)
    stopped = tick(e_series)
    for step in range(12):
        drags("update", -0.02 * step)
    time.sleep(0.3)
    assert moved(e_series, stopped) < 1e-4
    page.studio.close()
    (run,) = (tmp_path / "runs").iterdir()
    last = read_inputs(run)[-1].sent
    braked = next(
        event["at"] for event in read_events(run) if event.get("after") in ("braking", "holding")
    )
    assert braked - last < 0.25


def test_a_page_that_does_not_drive_moves_nothing_and_one_that_takes_control_halts(
    e_series, opened
):
    page = opened(e_series)
    studio = page.studio
    studio._pages |= {number: MagicMock() for number in (1, 2)}
    studio.access.open_page(1)
    studio.access.open_page(2)

    def does(number, *event):
        studio._events.put(PageEvent(number, *event))
        time.sleep(0.05)

    page.engages()
    begin = tick(e_series)
    page.types_a_goal(0.0, 0.5, 0.0)
    for count in range(1, 5):
        does(2, "hold go")
        # Of several that wait for the loop only the newest would count.
        page.shows(lambda shown, count=count: shown.refused == count)
    assert moved(e_series, begin) < 1e-4
    for _ in range(4):
        does(1, "hold go")
    assert moved(e_series, begin) > 1e-3
    does(2, "take control")
    page.shows(lambda shown: shown.state == "holding")
    assert any("halted" in cause for cause in page.workspace.arm.snapshot().causes)


def test_a_frame_that_is_grasped_where_it_was_drawn_before_moves_the_goal_from_the_arm(
    e_series, opened
):
    page = opened(e_series)
    page.engages()
    page.types_a_goal(0.0, 0.5, 0.0)
    drawn = page.workspace.goal.translation
    rotation = page.workspace.arm.snapshot().target[[6, 3, 4, 5]]
    page.holds(0.15)
    page.does("release")
    page.shows(lambda shown: shown.state == "holding")
    page.shows(lambda _: np.allclose(page.workspace.goal.translation, page.tool(), atol=1e-3))
    assert np.linalg.norm(drawn - page.tool()) > 0.1
    stopped = tick(e_series)
    for phase, metres in (
        ("start", 0.0),
        ("update", 0.0),
        ("update", 0.005),
        *([("update", 0.01)] * 10),
    ):
        page.does("drag", (phase, np.concatenate([drawn + np.array([0.0, metres, 0.0]), rotation])))
        time.sleep(0.05)
    page.does("drag", ("end", np.concatenate([drawn, rotation])))
    page.shows(lambda shown: shown.state == "holding")
    assert 1e-3 < moved(e_series, stopped) < 0.03


@pytest.mark.soak
def test_settings_change_only_at_rest_and_then_the_arm_is_engaged_anew(e_series, opened):
    page = opened(e_series)
    page.engages()
    page.types_a_goal(0.0, 0.3, 0.0)
    page.holds(0.3)
    for wish, name in (
        (("change", ("solver.iterations", 7)), "solver.iterations"),
        (("speed", 100), "speed"),
    ):
        page.does("speed", 10)
        page.does("hold go")
        page.shows(lambda shown: shown.state == "tracking")
        page.does("hold go")
        page.does(*wish)
        assert "at rest" in page.shows(lambda shown, name=name: shown.problem.get(name))
    page.does("change", ("period", 4.0))
    assert "simulation" in page.shows(lambda shown: shown.problem.get("period"))
    page.does("release")
    page.shows(lambda shown: shown.state == "holding")
    time.sleep(SETTLED)
    stopped = tick(e_series)
    page.does("change", ("solver.iterations", 7))
    page.shows(lambda _: page.workspace.arm.setup.solver_settings.iterations == 7)
    page.holds(0.3)
    assert moved(e_series, stopped) < 1e-3
    page.engages()
    page.types_a_goal(0.0, 0.0, -0.1)
    page.holds(0.5)
    assert moved(e_series, stopped) > 0.01
    page.does("hold go")
    page.shows(
        lambda _: any(
            "speed_slider 0.10" in cause for cause in page.workspace.arm.snapshot().causes
        )
    )


def test_a_real_arm_engages_only_once_the_page_confirms_what_was_found(calibrated, opened):
    page, begin = opened(calibrated, "real"), tick(calibrated)
    page.does("engage")
    assert "serial number" in page.shows(lambda shown: shown.question)
    page.does("answer", False)
    page.shows(lambda shown: "not confirmed" in shown.problem.get("engage", ""))
    page.types_a_goal(0.0, 0.1, 0.0)
    page.holds(0.3)
    assert never_moved(calibrated, begin)
    page.does("engage")
    page.shows(lambda shown: shown.question)
    page.does("answer", True)
    page.shows(lambda shown: shown.state == "engaged" and not shown.question)
