"""The studio with a controller, which is emulated: what its own record says of the arm.

A CB3 controller takes a setpoint every 8 ms, an e-Series controller every 2: a slow computer keeps
up with the former.
"""

from __future__ import annotations

import time
from unittest.mock import MagicMock

import numpy as np
import pytest

from simbridge.browser.events import NO_PAGE, PageEvent
from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.planning.options import Options
from simbridge.robot.kinematics import tool_frame
from simbridge.sessions.record import read_events, read_inputs
from tests.controllers import never_moved, realtime_options, schedule_all_threads, tick
from tests.patience import PATIENCE
from tests.ports import free_port

pytestmark = pytest.mark.usefixtures("short_pages")

# After the last change of the setpoints: the servo law's targets trail them, s.
SETTLING_S = 0.3


@pytest.fixture(autouse=True)
def in_real_time():
    """Neither a hand nor the studio's loop may wait for other processes.

    A hand that is not heard for 0.2 s has let go.
    """
    yield
    schedule_all_threads(realtime=False)


class Page:
    """A driving page: sends events to the studio and waits for what it shows."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.workspace = studio.workspace

    def send(self, name, value=None, *, page=NO_PAGE):
        """Send an event."""
        self.studio._events.put(PageEvent(page, name, value))

    def wait_for(self, condition):
        """Wait until the view fulfils a condition; returns what it returned."""
        end = time.monotonic() + PATIENCE
        while True:
            result = condition(self.workspace.view)
            if result:
                return result
            assert time.monotonic() < end, self.workspace.view
            time.sleep(0.02)

    def wait_for_state(self, state):
        """Wait until the engaged session is in a state."""

        def is_reached(view):
            # An idle session gets there only by a new engagement.
            assert view.state != "idle", view
            return view.state == state

        self.wait_for(is_reached)

    def engage(self):
        self.send("engage")
        self.wait_for(lambda view: view.state == "engaged")
        schedule_all_threads(realtime=True)

    def hold_go(self, seconds):
        for _ in range(round(seconds / 0.05)):
            self.send("hold go")
            time.sleep(0.05)

    def type_goal(self, *shift):
        """Shift the goal, m."""
        goal = self.workspace.goal.translation + np.array(shift)
        self.send("goal", goal)
        self.wait_for(lambda _: np.allclose(self.workspace.goal.translation, goal))

    def drag(self, phase, position, rotation):
        self.send("drag", (phase, np.concatenate([position, rotation])))

    @property
    def tool(self):
        """The position of the TCP (3,), m."""
        arm = self.workspace.arm
        return tool_frame(arm.robot, arm.q).translation

    @property
    def goal(self):
        """The position of the goal (3,), m."""
        return self.workspace.goal.translation

    @property
    def rotation(self):
        """The rotation of the target (4,), w x y z."""
        return self.workspace.arm.snapshot().target[[6, 3, 4, 5]]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Open studios, and close them at the end; returns the page that drives."""
    monkeypatch.chdir(tmp_path)
    studios = []

    def open_page(controller, robot="ur10", backend="ursim"):
        options = Options(host=controller.host, **realtime_options())
        setup = StudioSetup.from_options(robot, "forward-dynamics", options, backend)
        studios.append(Studio(setup, port=free_port()).serve_in_background())
        return Page(studios[-1])

    yield open_page
    for studio in studios:
        studio.close()


def travel(controller, since):
    """Return the largest range of a joint target since a tick, rad."""
    return float(np.ptp(controller.record(after=since).target_q, axis=0).max())


@pytest.mark.soak
def test_the_arm_moves_only_while_go_is_held(cb3, opened, tmp_path):
    page = opened(cb3)
    begin = tick(cb3)

    # Before it is engaged, and then without “Go”.
    page.type_goal(0.0, 0.2, 0.0)
    page.hold_go(0.3)
    page.engage()
    page.type_goal(0.0, 0.5, 0.0)
    goal = page.goal
    time.sleep(0.5)
    assert travel(cb3, begin) < 1e-3

    page.hold_go(0.2)
    page.send("release")
    page.wait_for_state("holding")
    time.sleep(SETTLING_S)
    stopped = tick(cb3)
    time.sleep(0.5)
    assert travel(cb3, begin) > 0.02
    assert travel(cb3, stopped) < 1e-4
    assert np.linalg.norm(page.tool - goal) > 0.1

    page.studio.close()
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "report.html").is_file()
    halts = [event["facts"] for event in read_events(run) if event.get("note") == "halt"]
    assert {"cause": "released"} in halts


def test_a_silent_page_must_grasp_again(cb3, opened, tmp_path):
    page = opened(cb3)
    page.engage()
    begin = tick(cb3)
    goal = page.goal
    rotation = page.rotation

    def drag(phase, metres):
        page.drag(phase, goal + np.array([0.0, metres, 0.0]), rotation)
        time.sleep(0.02)

    # Silent for a fifth of a second, the page has let go.
    drag("start", 0.0)
    for step in range(12):
        drag("update", 0.02 * step)
    page.wait_for_state("holding")
    assert travel(cb3, begin) > 0.01

    # It drags on without grasping.
    time.sleep(SETTLING_S)
    stopped = tick(cb3)
    for step in range(12):
        drag("update", -0.02 * step)
    time.sleep(0.3)
    assert travel(cb3, stopped) < 1e-4

    page.studio.close()
    (run,) = (tmp_path / "runs").iterdir()
    last_input = read_inputs(run)[-1].sent
    stops = [
        event["at"] for event in read_events(run) if event.get("after") in ("braking", "holding")
    ]
    assert stops[0] - last_input < 0.25


def test_a_page_that_takes_control_halts(cb3, opened):
    page = opened(cb3)
    studio = page.studio
    studio._pages |= {number: MagicMock() for number in (1, 2)}
    studio.access.open_page(1)
    studio.access.open_page(2)
    page.engage()
    begin = tick(cb3)
    page.type_goal(0.0, 0.5, 0.0)

    # A page that does not drive moves nothing.
    for count in range(1, 5):
        page.send("hold go", page=2)
        time.sleep(0.05)
        # Of several that wait for the loop only the newest would count.
        page.wait_for(lambda view, count=count: view.refused == count)
    assert travel(cb3, begin) < 1e-4

    for _ in range(4):
        page.send("hold go", page=1)
        time.sleep(0.05)
    assert travel(cb3, begin) > 1e-3

    page.send("take control", page=2)
    page.wait_for_state("holding")
    page.wait_for(
        lambda _: any("halted" in str(cause) for cause in page.workspace.arm.snapshot().causes)
    )


def test_an_old_frame_moves_the_goal_from_the_arm(cb3, opened):
    page = opened(cb3)
    page.engage()
    page.type_goal(0.0, 0.5, 0.0)
    drawn = page.goal
    rotation = page.rotation
    page.hold_go(0.15)
    page.send("release")
    page.wait_for_state("holding")
    page.wait_for(lambda _: np.allclose(page.goal, page.tool, atol=1e-3))
    assert np.linalg.norm(drawn - page.tool) > 0.1
    stopped = tick(cb3)

    # The frame is grasped where it was drawn before.
    drags = [("start", 0.0), ("update", 0.0), ("update", 0.005), *[("update", 0.01)] * 10]
    for phase, metres in drags:
        page.drag(phase, drawn + np.array([0.0, metres, 0.0]), rotation)
        time.sleep(0.05)
    page.drag("end", drawn, rotation)
    page.wait_for_state("holding")

    assert 1e-3 < travel(cb3, stopped) < 0.03


@pytest.mark.soak
def test_settings_change_only_at_rest(cb3, opened):
    page = opened(cb3)
    workspace = page.workspace
    page.engage()
    page.type_goal(0.0, 0.3, 0.0)
    page.hold_go(0.3)

    # While the arm moves, settings and a higher speed are refused; a locked setting always is.
    for name, value, control in (
        ("change", ("solver.iterations", 7), "solver.iterations"),
        ("speed", 100, "speed"),
    ):
        page.send("speed", 10)
        page.send("hold go")
        page.wait_for_state("tracking")
        page.send("hold go")
        page.send(name, value)
        problem = page.wait_for(lambda view, control=control: view.problem.get(control))
        assert "at rest" in problem
    page.send("change", ("period", 4.0))
    assert "simulation" in page.wait_for(lambda view: view.problem.get("period"))

    # At rest a setting changes, and the arm moves no more.
    page.send("release")
    page.wait_for_state("holding")
    time.sleep(SETTLING_S)
    stopped = tick(cb3)
    page.send("change", ("solver.iterations", 7))
    page.wait_for(lambda _: workspace.arm.setup.solver_settings.iterations == 7)
    page.hold_go(0.3)
    assert travel(cb3, stopped) < 1e-3

    # Engaged anew, it moves at the speed that was chosen before.
    page.engage()
    page.type_goal(0.0, 0.0, -0.1)
    page.hold_go(0.5)
    assert travel(cb3, stopped) > 0.01
    page.send("hold go")
    page.wait_for(
        lambda _: any(
            "speed_slider 0.10" in str(cause) for cause in workspace.arm.snapshot().causes
        )
    )


def test_a_real_arm_engages_once_confirmed(calibrated, opened, monkeypatch):
    # No answer counts as a no, but not before the test gives up.
    monkeypatch.setattr("simbridge.browser.studio.MAX_ANSWER_S", 2.0 * PATIENCE)
    page = opened(calibrated, "ur10e", "real")
    begin = tick(calibrated)

    page.send("engage")
    assert "serial number" in page.wait_for(lambda view: view.question)
    page.send("answer", False)
    page.wait_for(lambda view: "not confirmed" in view.problem.get("engage", ""))
    page.type_goal(0.0, 0.1, 0.0)
    page.hold_go(0.3)
    assert never_moved(calibrated, begin)

    page.send("engage")
    page.wait_for(lambda view: view.question)
    page.send("answer", True)
    page.wait_for(lambda view: view.state == "engaged" and not view.question)
