"""The studio without a browser: what events do to the arm, whatever they ask for."""

from __future__ import annotations

import shlex
import time
from unittest.mock import MagicMock

import numpy as np
import pytest

from simbridge.browser.events import PageEvent
from simbridge.browser.offers import EventRefused
from simbridge.browser.played_run import PlayedRun
from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.planning.options import Options
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell
from simbridge.robot.kinematics import tool_frame
from tests.ports import free_port


class Events:
    """A studio whose loop is turned by hand: each event is followed until nothing is left to do beside the loop."""

    def __init__(self, studio: Studio) -> None:
        self.studio, self.workspace = studio, studio.workspace

    def until(self, reached, *event):
        if event:
            self.studio._events.put(PageEvent(-1, *event))
        end = time.monotonic() + 60.0
        while not (found := reached()):
            assert time.monotonic() < end, self.workspace.view
            self.studio._take_events(0.05)
        return found

    def __call__(self, name, value=None):
        self.studio._events.put(PageEvent(-1, name, value))
        self.studio._take_events(0.0)
        self.until(lambda: self.workspace.arm.setup is self.workspace.setup)
        self.workspace.advance(0.1)
        self.workspace.draw()
        self.workspace.describe()
        return self.workspace.view


@pytest.fixture
def opened():
    made = []

    def one(robot="ur10", solver="damped-least-squares", options=None):
        studio = Studio(
            StudioSetup.from_options(robot, solver, options or Options()), port=free_port()
        ).__enter__()
        made.append(studio)
        return Events(studio)

    yield one
    for studio in made:
        studio.__exit__(None, None, None)


def test_each_control_of_the_arm_takes_another_value_and_the_arm_goes_on(opened):
    events = opened()
    for name, value in (
        ("period", 4.0), ("sample_rate", 20.0), ("hold", "zero-order"), ("sample_noise", "1 0.1"),
        ("servo_gain", 500.0), ("servo_lookahead", 50.0), ("feedforward", "on"), ("payload", 2.0),
        ("unmodelled_payload", 1.0), ("speed_scale", 0.5),
    ):  # fmt: skip
        assert events("change", (name, value)).problem == {}
        assert name in events.workspace.arm.setup.values
        before = events.workspace.arm.time
        events.workspace.advance(0.1)
        assert events.workspace.arm.time > before
    assert events.workspace.arm.robot.payload == 2.0


def test_a_value_that_the_session_refuses_is_said_at_its_control_and_the_arm_goes_on(opened):
    events = opened()
    before = events.workspace.arm
    assert "multiple of the physics step" in events("change", ("period", 3.3)).problem["period"]
    assert events.workspace.arm is before and not events.workspace.setup.values
    events("goal", events.workspace.goal.translation + np.array([0.0, 0.05, 0.0]))
    while not events.workspace.resting:
        events.workspace.advance(0.1)
    assert np.allclose(
        tool_frame(before.robot, before.q).translation, events.workspace.goal.translation, atol=1e-4
    )
    assert events("change", ("period", 4.0)).problem == {}


@pytest.mark.parametrize("event", [
    ("goal", (np.nan, 0.0, 0.0)), ("goal", (1e160, 0.0, 0.0)), ("goal", (1.0,)), ("drag", ("update", np.zeros(3))),
    ("change", ("nothing", 1.0)), ("solver", "none"), ("load", "nowhere"), ("unheard of", None), ("iterate", None),
    ("speed", 200.0), ("start", (9.0, 9.0, 9.0)),
])  # fmt: skip
def test_whatever_an_event_asks_for_the_studio_goes_on(opened, event):
    events = opened("planar3r")
    problem = events.until(lambda: events.workspace.view.problem, *event)
    assert all(problem.values())
    events.workspace.advance(0.1)
    assert events.workspace.arm.snapshot() is not None


@pytest.mark.parametrize("event", ["start", "clicked start"])
def test_a_start_out_of_reach_gives_a_sentence_with_the_distance_until_something_else_is_done(
    opened, event
):
    events = opened("planar3r")
    before = events.workspace.arm.q
    words = events(event, (1.7, 0.0, 0.0)).problem[event]
    assert "200 mm out of reach" in words and np.allclose(events.workspace.arm.q, before, atol=1e-6)
    assert not events("speed", 100).problem


def test_a_goal_out_of_reach_gives_a_sentence_with_the_distance_once(opened):
    events = opened("planar3r")
    for _ in range(30):
        events("clicked goal", (1.7, 0.0, 0.0))
    assert events.workspace.view.sentence.count("200 mm") == 1
    events.studio._events.put(PageEvent(-1, "iterate", True))
    assert "200 mm out of reach" in events.until(lambda: events.workspace.view.problem)["iterate"]


def test_the_start_can_be_where_a_drag_has_taken_the_arm_and_iterations_halt_there(opened):
    events = opened("planar3r")
    for _ in range(20):
        events("clicked goal", (0.4, 0.7, 0.0))
    events("here")
    start = events.workspace.start
    assert np.allclose(start, (0.4, 0.7, 0.0), atol=1e-3)
    for _ in range(20):
        events("clicked goal", (0.8, -0.3, 0.0))
    events("change", ("iterate.threshold", 5.0))
    player = events.until(lambda: events.workspace.playback.player, "iterate", False)
    assert np.allclose(player.iterates[0].points[-1], start, atol=1e-9)
    assert player.iterates[-1].distance <= 5e-3 < player.iterates[-2].distance
    assert f"{player.iterates[-1].number} iterations" in events.workspace.view.iterations
    assert (
        "must be a positive number"
        in events("change", ("iterate.threshold", -1.0)).problem["iterate.threshold"]
    )


def test_stiffness_draws_a_joint_towards_its_bias_angle(opened):
    def elbow(*changes):
        events = opened("planar3r")
        for change in changes:
            events("change", change)
        for _ in range(20):
            events("clicked goal", (0.9, 0.4, 0.0))
        arm = events.workspace.arm
        assert np.allclose(tool_frame(arm.robot, arm.q).translation, (0.9, 0.4, 0.0), atol=1e-3)
        return arm.q[1]

    assert elbow() > 1.3
    assert elbow(("solver.stiffness", "0 0.4 0"), ("solver.bias", "0 1 0")) == pytest.approx(
        1.0, abs=1e-3
    )


def test_options_of_the_command_line_are_the_values_of_the_controls_and_stand_in_the_command(
    opened, tmp_path
):
    cell = tmp_path / "lab.toml"
    cell.write_text('payload = 1.5\nmounting = "floor"\n')
    given = (
        "--cell",
        cell,
        "--servo-gain",
        "300",
        "--tcp",
        "0",
        "0",
        "0.1",
        "0",
        "0",
        "0",
        "--max-tool-speed",
        "0.5",
    )
    options = Options(
        cell=load_cell(cell),
        servo_gain=300.0,
        tcp=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0),
        max_tool_speed=0.5,
    )
    events = opened(options=options)
    words = shlex.split(events("home").command)
    for word in map(str, given):
        assert word in words
    assert events.workspace.setup.values == {"servo_gain": 300.0}
    control = next(one for one in events.workspace.controls()[1] if one.name == "payload")
    assert control.default == 1.5
    assert events("change", ("servo_gain", None)).problem == {}
    assert "--servo-gain" not in events.workspace.setup.command("circle")


def test_a_slower_speed_holds_through_a_change_of_a_setting(opened):
    events = opened()
    events("speed", 20)
    events("change", ("servo_gain", 500.0))
    events("goal", events.workspace.goal.translation + np.array([0.0, 0.3, 0.0]))
    for _ in range(3):
        events.workspace.advance(0.1)
    assert any("speed_slider 0.20" in cause for cause in events.workspace.arm.snapshot().causes)


def test_a_run_of_another_arm_is_not_loaded(opened, cli, tmp_path, short_pages):
    assert cli("run", "circle", "--robot", "ur5", "--out", tmp_path / "run").status == 0
    events = opened()
    problem = events.until(lambda: events.workspace.view.problem, "load", str(tmp_path / "run"))
    assert "ur5" in problem["load"]


def test_a_run_of_the_same_arm_is_loaded_with_its_solver(opened, cli, tmp_path, short_pages):
    out = tmp_path / "run"
    words = (
        "square_corners",
        "--robot",
        "planar3r",
        "--link-lengths",
        "0.8",
        "0.5",
        "0.2",
        "--solver",
        "pseudoinverse",
    )
    assert cli("run", *words, "--out", out).status == 0
    events = opened("planar3r")
    events.until(lambda: events.workspace.playback.player, "load", str(out))
    assert events.workspace.arm.setup.solver == "pseudoinverse"
    assert events.workspace.arm.setup.values["link_lengths"] == pytest.approx((0.8, 0.5, 0.2))
    events.workspace.draw()


def test_of_two_quick_choices_of_a_second_solver_the_last_counts(opened):
    events = opened()
    for solver in ("jacobian-transpose", "pseudoinverse"):
        events.studio._events.put(PageEvent(-1, "rival", solver))
    events.until(lambda: events.workspace.rival == "pseudoinverse")
    events("rival", "none")
    events.studio._take_events(1.0)
    assert events.workspace.rival == "none"
    events("home")


def test_the_payload_of_a_cell_is_within_its_slider(opened):
    events = opened("ur16e", options=Options(cell=Cell(payload=12.5)))
    control = next(one for one in events.workspace.controls()[1] if one.name == "payload")
    assert control.slider[1] >= control.default == 12.5


def test_the_clock_of_the_studio_keeps_up_with_the_wall_clock_at_a_long_period(opened):
    events = opened()
    events("change", ("period", 16.0))
    arm = events.workspace.arm
    arm.goal = events.workspace.goal
    before = arm.time
    for _ in range(25):
        arm.advance(0.008)
    assert arm.time - before == pytest.approx(0.2, abs=0.016)


def test_noise_without_bound_is_said_and_ends_nothing(opened):
    events = opened()
    events("change", ("sample_noise", "1e160 0"))
    events.workspace.advance(0.2)
    assert (
        "finite" in events("goal", events.workspace.goal.translation).sentence
        or events.workspace.arm.error
    )
    events("change", ("sample_noise", None))
    events.workspace.advance(0.2)
    assert events("goal", events.workspace.goal.translation).problem == {}


def test_thousands_of_changes_make_one_new_arm_for_the_newest_values(opened):
    events = opened("planar3r")
    sessions = events.studio._sessions
    for value in range(1000):
        events.studio._events.put(PageEvent(-1, "change", ("servo_gain", 300.0 + value)))
        events.studio._events.put(PageEvent(-1, "change", ("speed_scale", 0.5 + 1e-3 * value)))

    events.studio._take_events(0.0)
    events.until(lambda: events.workspace.arm.setup is events.workspace.setup)

    assert events.workspace.arm.setup.values == {
        "servo_gain": 1299.0,
        "speed_scale": pytest.approx(1.499),
    }
    assert events.studio._sessions == sessions + 1


def test_changes_that_come_one_by_one_are_compiled_only_while_they_are_wanted(opened, monkeypatch):
    events = opened("planar3r")
    compiled = []
    real_compiled = StudioSetup.compile_solver
    monkeypatch.setattr(
        StudioSetup, "compile_solver", lambda setup: compiled.append(setup) or real_compiled(setup)
    )
    events.studio._work.submit(time.sleep, 0.5)

    for value in range(100):
        events.studio._events.put(PageEvent(-1, "change", ("servo_gain", 300.0 + value)))
        events.studio._take_events(0.0)
    events.until(lambda: events.workspace.arm.setup is events.workspace.setup)

    assert [setup.values["servo_gain"] for setup in compiled] == [399.0]


def test_of_many_presses_of_play_one_run_is_made(opened, monkeypatch):
    events = opened("planar3r")
    recorded = []
    monkeypatch.setattr(PlayedRun, "record", lambda *arguments: recorded.append(arguments) or 1 / 0)
    events.studio._work.submit(time.sleep, 0.5)

    for _ in range(50):
        events.studio._events.put(PageEvent(-1, "play"))
        events.studio._take_events(0.0)
    events.until(lambda: events.workspace.view.problem)

    assert len(recorded) == 1


def test_a_refused_event_is_said_at_its_control_and_logged_once(opened, caplog):
    events = opened("planar3r")
    refusal = EventRefused("scenario", "/tmp/evil.py", "one of 9 choices")
    # The page of which these events are.
    events.studio.access.driver = -1

    for _ in range(100):
        events("refused", refusal)

    assert "/tmp/evil.py" in events.workspace.view.problem["scenario"]
    assert events.workspace.playback.scenario == "circle"
    assert len(caplog.records) == 1


def test_a_page_whose_controls_are_broken_keeps_the_others_from_nothing(opened, caplog):
    events = opened("planar3r")
    broken, whole = MagicMock(), MagicMock()
    broken.show_values.side_effect = broken.show.side_effect = AttributeError("props")
    events.studio._pages.update({1: broken, 2: whole})

    events("home")
    events.studio._show_texts()

    assert whole.show_curves.called
    assert len(caplog.records) == 1
    events.studio._pages.clear()


def loaded_run(scenario, directory, cli):
    """The directory of a run whose settings name a scenario."""
    assert cli("run", "circle", "--robot", "planar3r", "--out", directory).status == 0
    settings = directory / "settings.toml"
    text = settings.read_text()
    assert 'name = "circle"' in text
    settings.write_text(text.replace('name = "circle"', f'name = "{scenario}"', 1))
    return directory


def test_a_script_that_a_kept_run_names_is_not_run(opened, cli, tmp_path, short_pages):
    proof = tmp_path / "proof"
    script = tmp_path / "holiday.py"
    script.write_text(f"open({str(proof)!r}, 'w')\ndef scenario(robot):\n    raise SystemExit\n")
    events = opened("planar3r")
    events.until(
        lambda: events.workspace.playback.player,
        "load",
        str(loaded_run(script, tmp_path / "run", cli)),
    )
    assert events.workspace.playback.scenario == str(script)

    # The loaded run is played; with another setting it would be made anew.
    events("play")
    events("change", ("servo_gain", 500.0))
    problem = events.until(lambda: events.workspace.view.problem, "play")

    assert "not started with" in problem["play"]
    assert not proof.exists()


@pytest.mark.parametrize(("words", "said"), [
    (("--solver", "nosuch"), "no solver 'nosuch'"),
    (("nosuch",), "no scenario 'nosuch'"),
    (("--backend", "ursim", "--host", "127.0.0.99"), "No connection to the controller at 127.0.0.99"),
])  # fmt: skip
def test_what_cannot_be_opened_is_refused_with_a_sentence(cli, words, said):
    answer = cli("studio", *words, "--no-browser", "--port", free_port())
    assert answer.status == 2 and said in answer.message
