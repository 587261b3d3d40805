"""The studio without a browser: what events do to the arm, whatever they ask for."""

from __future__ import annotations

import shlex
import shutil
import threading
import time
from unittest.mock import MagicMock

import numpy as np
import pytest

from simbridge.browser.events import NO_PAGE, PageEvent
from simbridge.browser.offers import EventRefused
from simbridge.browser.played_run import PlayedRun
from simbridge.browser.setup import StudioSetup
from simbridge.browser.studio import Studio
from simbridge.planning.options import Options
from simbridge.robot.cell import Cell
from simbridge.robot.cell_file import load_cell
from simbridge.robot.kinematics import tool_frame
from tests.patience import PATIENCE
from tests.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.shares_setup]

LINK_LENGTHS = (0.8, 0.5, 0.2)


class TurnedStudio:
    """A studio whose loop is turned by hand."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.workspace = studio.workspace

    def send(self, name, value=None):
        """Send an event, which waits for the loop."""
        self.studio._events.put(PageEvent(NO_PAGE, name, value))

    def wait_for(self, condition):
        """Take events until a condition holds; returns what it returned."""
        end = time.monotonic() + PATIENCE
        while True:
            result = condition()
            if result:
                return result
            assert time.monotonic() < end, self.workspace.view
            self.studio._take_events(0.05)

    def wait_for_problem(self, name, value=None):
        """Send an event that fails; returns what went wrong, by control."""
        self.send(name, value)
        return self.wait_for(lambda: self.workspace.view.problem)

    def wait_for_setup(self):
        """Take events until the arm has the setup that the pages show."""
        self.wait_for(lambda: self.workspace.arm.setup is self.workspace.setup)

    def do(self, name, value=None):
        """Send an event, and follow it until nothing is left to do; returns what pages show."""
        self.send(name, value)
        self.studio._take_events(0.0)
        self.wait_for_setup()
        self.workspace.advance(0.1)
        self.workspace.draw()
        self.workspace.describe()
        return self.workspace.view

    def settle(self):
        """Let the arm go on until it rests at its goal, at most 10 s."""
        for _ in range(100):
            if self.workspace.resting:
                return
            self.workspace.advance(0.1)
        pytest.fail(f"The arm does not rest: {self.workspace.view}")

    def go_by(self, *shift):
        """Send the arm to a goal that is shifted, m."""
        return self.do("goal", self.workspace.goal.translation + np.array(shift))

    @property
    def arm(self):
        return self.workspace.arm

    @property
    def tool(self):
        """The position of the TCP (3,), m."""
        return tool_frame(self.arm.robot, self.arm.q).translation

    def control(self, name):
        """The control of the arm with a name."""
        return next(item for item in self.workspace.controls()[1] if item.name == name)


@pytest.fixture
def opened():
    """Open studios, and close them at the end."""
    studios = []

    def open_studio(robot="ur10", solver="damped-least-squares", options=None):
        setup = StudioSetup.from_options(robot, solver, options or Options())
        studios.append(Studio(setup, port=free_port()).__enter__())
        return TurnedStudio(studios[-1])

    yield open_studio
    for studio in studios:
        studio.__exit__(None, None, None)


def test_each_control_of_the_arm_takes_a_value(opened):
    studio = opened("planar3r")
    changes = [
        ("period", 4.0),
        ("sample_rate", 20.0),
        ("hold", "zero-order"),
        ("sample_noise", "1 0.1"),
        ("servo_gain", 500.0),
        ("servo_lookahead", 50.0),
        ("feedforward", "on"),
        ("payload", 2.0),
        ("unmodelled_payload", 1.0),
        ("speed_scale", 0.5),
    ]

    for name, value in changes:
        view = studio.do("change", (name, value))
        before = studio.arm.time
        studio.workspace.advance(0.1)

        assert view.problem == {}
        assert name in studio.arm.setup.values
        # The arm goes on.
        assert studio.arm.time > before
    assert studio.arm.robot.payload == 2.0


def test_a_value_that_a_session_refuses_changes_nothing(opened):
    studio = opened("planar3r")
    before = studio.arm

    problem = dict(studio.do("change", ("period", 3.3)).problem)
    studio.go_by(0.0, 0.05, 0.0)
    studio.settle()

    assert "multiple of the physics step" in problem["period"]
    assert studio.arm is before
    assert not studio.workspace.setup.values
    # The arm goes on, and another value is taken.
    assert np.allclose(studio.tool, studio.workspace.goal.translation, atol=1e-4)
    assert studio.do("change", ("period", 4.0)).problem == {}


SENSELESS = [
    ("goal", (np.nan, 0.0, 0.0)),
    ("goal", (1.0,)),
    ("drag", ("update", np.zeros(3))),
    ("change", ("nothing", 1.0)),
    ("solver", "none"),
    ("load", "nowhere"),
    ("unheard of", None),
    ("iterate", None),
    ("speed", 200.0),
    ("start", (9.0, 9.0, 9.0)),
]


@pytest.mark.python_kernels
@pytest.mark.parametrize(
    "events",
    [
        pytest.param(SENSELESS, id="many"),
        pytest.param([("goal", (1e160, 0.0, 0.0))], marks=pytest.mark.soak, id="far away"),
    ],
)
def test_whatever_an_event_asks_for_it_goes_on(opened, events):
    studio = opened("planar3r")

    for event in events:
        problem = dict(studio.wait_for_problem(*event))
        studio.workspace.advance(0.1)

        assert all(problem.values())
        assert studio.arm.snapshot() is not None
        # What was said of this event is taken back.
        assert not studio.do("speed", 100).problem


@pytest.mark.parametrize("event", ["start", "clicked start"])
def test_a_start_out_of_reach_is_a_sentence(opened, event):
    studio = opened("planar3r")
    before = studio.arm.q

    sentence = studio.do(event, (1.7, 0.0, 0.0)).problem[event]
    after = studio.arm.q

    assert "200 mm out of reach" in sentence
    assert np.allclose(after, before, atol=1e-6)
    # It stands until something else is done.
    assert not studio.do("speed", 100).problem


def test_a_goal_out_of_reach_is_said_once(opened):
    studio = opened("planar3r")

    for _ in range(10):
        studio.do("clicked goal", (1.7, 0.0, 0.0))
    sentence = studio.workspace.view.sentence
    problem = studio.wait_for_problem("iterate", True)

    assert sentence.count("200 mm") == 1
    assert "200 mm out of reach" in problem["iterate"]


def test_iterations_begin_where_the_arm_is(opened):
    studio = opened("planar3r")
    studio.do("clicked goal", (0.4, 0.7, 0.0))
    studio.settle()
    studio.do("here")
    start = studio.workspace.start
    studio.do("clicked goal", (0.8, -0.3, 0.0))
    studio.settle()

    studio.do("change", ("iterate.threshold", 5.0))
    studio.send("iterate", False)
    player = studio.wait_for(lambda: studio.workspace.playback.player)

    assert np.allclose(start, (0.4, 0.7, 0.0), atol=1e-3)
    assert np.allclose(player.iterates[0].points[-1], start, atol=1e-9)
    assert player.iterates[-1].distance <= 5e-3 < player.iterates[-2].distance
    assert f"{player.iterates[-1].number} iterations" in studio.workspace.view.iterations


def test_a_threshold_without_sense_is_refused(opened):
    studio = opened("planar3r")

    problem = studio.do("change", ("iterate.threshold", -1.0)).problem

    assert "must be a positive number" in problem["iterate.threshold"]


def test_stiffness_draws_a_joint_to_its_bias(opened):
    def elbow_angle(*changes):
        studio = opened("planar3r")
        for change in changes:
            studio.do("change", change)
        studio.do("clicked goal", (0.9, 0.4, 0.0))
        studio.settle()
        assert np.allclose(studio.tool, (0.9, 0.4, 0.0), atol=1e-3)
        return studio.arm.q[1]

    free = elbow_angle()
    drawn = elbow_angle(("solver.stiffness", "0 0.4 0"), ("solver.bias", "0 1 0"))

    assert free > 1.3
    assert drawn == pytest.approx(1.0, abs=1e-3)


def test_options_stand_in_the_command(opened, tmp_path):
    cell = tmp_path / "lab.toml"
    cell.write_text('payload = 1.5\nmounting = "floor"\n')
    options = Options(
        cell=load_cell(cell),
        servo_gain=300.0,
        tcp=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0),
        max_tool_speed=0.5,
    )
    studio = opened(options=options)

    command = studio.do("home").command

    expected = f"--cell {cell} --servo-gain 300 --tcp 0 0 0.1 0 0 0 --max-tool-speed 0.5"
    assert set(expected.split()) <= set(shlex.split(command))
    assert studio.workspace.setup.values == {"servo_gain": 300.0}
    assert studio.control("payload").default == 1.5


def test_a_reset_option_leaves_the_command(opened):
    studio = opened("planar3r", options=Options(servo_gain=300.0))

    view = studio.do("change", ("servo_gain", None))

    assert view.problem == {}
    assert "--servo-gain" not in studio.workspace.setup.command("circle")


def test_a_slower_speed_holds_through_a_change(opened):
    studio = opened("planar3r")

    studio.do("speed", 20)
    studio.do("change", ("servo_gain", 500.0))
    studio.go_by(0.0, 0.3, 0.0)
    for _ in range(3):
        studio.workspace.advance(0.1)

    assert any("speed_slider 0.20" in str(cause) for cause in studio.arm.snapshot().causes)


@pytest.fixture(scope="module")
def planar_run(run_without_page, tmp_path_factory):
    """The directory of a run of a planar arm, a quarter as long as its scenario."""
    out = tmp_path_factory.mktemp("planar") / "run"
    arm = ("--robot", "planar3r", "--link-lengths", *LINK_LENGTHS, "--solver", "pseudoinverse")
    fast = ("--speed-scale", 4, "--on-limits", "limit")
    assert run_without_page("step", *arm, *fast, "--out", out) == 0
    return out


def test_a_run_of_another_arm_is_not_loaded(opened, planar_run):
    studio = opened("ur10")

    problem = studio.wait_for_problem("load", str(planar_run))

    assert "planar3r" in problem["load"]


def test_a_run_is_loaded_with_its_solver(opened, planar_run):
    studio = opened("planar3r")

    studio.send("load", str(planar_run))
    studio.wait_for(lambda: studio.workspace.playback.player)

    assert studio.arm.setup.solver == "pseudoinverse"
    assert studio.arm.setup.values["link_lengths"] == pytest.approx(LINK_LENGTHS)
    studio.workspace.draw()


@pytest.mark.python_kernels
def test_the_last_choice_of_a_second_solver_counts(opened):
    studio = opened("planar3r")

    studio.send("rival", "jacobian-transpose")
    studio.send("rival", "pseudoinverse")
    studio.wait_for(lambda: studio.workspace.rival == "pseudoinverse")
    studio.do("rival", "none")
    studio.studio._take_events(1.0)

    assert studio.workspace.rival == "none"
    studio.do("home")


def test_the_payload_of_a_cell_is_within_its_slider(opened):
    studio = opened("ur16e", options=Options(cell=Cell(payload=12.5)))

    payload = studio.control("payload")

    assert payload.default == 12.5
    assert payload.slider[1] >= 12.5


def test_the_clock_keeps_up_at_a_long_period(opened):
    studio = opened("planar3r")
    studio.do("change", ("period", 16.0))
    arm = studio.arm
    arm.goal = studio.workspace.goal
    before = arm.time

    for _ in range(25):
        arm.advance(0.008)

    assert arm.time - before == pytest.approx(0.2, abs=0.016)


def test_noise_without_bound_ends_nothing(opened):
    studio = opened("planar3r")
    studio.do("change", ("sample_noise", "1e160 0"))
    studio.workspace.advance(0.2)

    sentence = studio.go_by(0.0, 0.0, 0.0).sentence
    error = studio.arm.error
    studio.do("change", ("sample_noise", None))
    studio.workspace.advance(0.2)

    assert "finite" in sentence or error
    assert studio.go_by(0.0, 0.0, 0.0).problem == {}


def test_thousands_of_changes_make_one_new_arm(opened):
    studio = opened("planar3r")
    sessions = studio.studio._sessions
    for number in range(1000):
        studio.send("change", ("servo_gain", 300.0 + number))
        studio.send("change", ("speed_scale", 0.5 + 1e-3 * number))

    studio.studio._take_events(0.0)
    studio.wait_for_setup()

    values = studio.arm.setup.values
    assert values == {"servo_gain": 1299.0, "speed_scale": pytest.approx(1.499)}
    assert studio.studio._sessions == sessions + 1


def test_only_wanted_changes_are_compiled(opened, monkeypatch):
    studio = opened("planar3r")
    compiled = []
    compile_solver = StudioSetup.compile_solver

    def note_and_compile(setup):
        compiled.append(setup)
        return compile_solver(setup)

    monkeypatch.setattr(StudioSetup, "compile_solver", note_and_compile)
    all_changed = threading.Event()
    studio.studio._work.submit(all_changed.wait, 60.0)

    for number in range(100):
        studio.send("change", ("servo_gain", 300.0 + number))
        studio.studio._take_events(0.0)
    all_changed.set()
    studio.wait_for_setup()

    assert [setup.values["servo_gain"] for setup in compiled] == [399.0]


def test_many_presses_of_play_make_one_run(opened, monkeypatch):
    studio = opened("planar3r")
    recorded = []

    def record(*arguments):
        recorded.append(arguments)
        raise ZeroDivisionError

    monkeypatch.setattr(PlayedRun, "record", record)
    all_pressed = threading.Event()
    studio.studio._work.submit(all_pressed.wait, 60.0)

    for _ in range(50):
        studio.send("play")
        studio.studio._take_events(0.0)
    all_pressed.set()
    studio.wait_for(lambda: studio.workspace.view.problem)

    assert len(recorded) == 1


def test_a_refused_event_is_logged_once(opened, caplog):
    studio = opened("planar3r")
    refusal = EventRefused("scenario", "/tmp/evil.py", "one of 9 choices")
    # The page of which these events are.
    studio.studio.access.driver = NO_PAGE

    for _ in range(10):
        studio.do("refused", refusal)

    assert "/tmp/evil.py" in studio.workspace.view.problem["scenario"]
    assert studio.workspace.playback.scenario == "circle"
    assert len(caplog.records) == 1


def test_a_broken_page_keeps_others_from_nothing(opened, caplog):
    studio = opened("planar3r")
    broken = MagicMock()
    broken.show_values.side_effect = AttributeError("props")
    broken.show.side_effect = AttributeError("props")
    whole = MagicMock()
    studio.studio._pages.update({1: broken, 2: whole})

    studio.do("home")
    studio.studio._show_texts()

    assert whole.show_curves.called
    assert len(caplog.records) == 1
    studio.studio._pages.clear()


def make_run_of(scenario, run, directory):
    """Copy a run so that its settings name a scenario; returns the copy."""
    shutil.copytree(run, directory)
    settings = directory / "settings.toml"
    text = settings.read_text()
    assert 'name = "step"' in text
    settings.write_text(text.replace('name = "step"', f'name = "{scenario}"', 1))
    return directory


@pytest.mark.python_kernels
def test_a_script_that_a_run_names_is_not_run(opened, planar_run, tmp_path):
    proof = tmp_path / "proof"
    script = tmp_path / "holiday.py"
    script.write_text(f"open({str(proof)!r}, 'w')\ndef scenario(robot):\n    raise SystemExit\n")
    run = make_run_of(script, planar_run, tmp_path / "run")
    studio = opened("planar3r")
    studio.send("load", str(run))
    studio.wait_for(lambda: studio.workspace.playback.player)
    loaded = studio.workspace.playback.scenario

    # The loaded run is played; with another setting it would be made anew.
    studio.do("play")
    studio.do("change", ("servo_gain", 500.0))
    problem = studio.wait_for_problem("play")

    assert loaded == str(script)
    assert "not started with" in problem["play"]
    assert not proof.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--solver", "nosuch"), "no solver 'nosuch'"),
        (("nosuch",), "no scenario 'nosuch'"),
        (
            ("--backend", "ursim", "--host", "127.0.0.99"),
            "No connection to the controller at 127.0.0.99",
        ),
    ],
)
def test_what_cannot_be_opened_is_refused(cli, words, message):
    answer = cli("studio", *words, "--no-browser", "--port", free_port())

    assert answer.status == 2
    assert message in answer.message
