"""Iterations and runs of scenarios, which the pages play in place of the live arm.

In simulation only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from simbridge.browser.arm_group import ArmGroup
from simbridge.browser.background import RunInBackground
from simbridge.browser.events import RequestRefused
from simbridge.browser.iterate import (
    Iterate,
    IterateSettings,
    iterate_to_end,
    iterations_csv,
    slow_in_slow_out,
)
from simbridge.browser.played_run import PlayedRun, copy_run
from simbridge.browser.player import Player
from simbridge.browser.setup import StudioSetup
from simbridge.browser.snapshot import out_of_reach
from simbridge.browser.view import PageView
from simbridge.errors import InvalidParameter
from simbridge.planning.scenario import is_custom_script
from simbridge.recording.run_directory import RunDirectory
from simbridge.report.repeat_command import repeat_command
from simbridge.robot.pose import Array
from simbridge.text import millimetres


# The workspace makes the playback: to import `StudioWorkspace` here would be a circle.
class PlaybackWorkspace(Protocol):
    """The part of a `StudioWorkspace` that its playback uses."""

    setup: StudioSetup
    start_q: Array
    arms: ArmGroup
    view: PageView
    run_in_background: RunInBackground

    def adopt(self, setup: StudioSetup) -> None:
        """Go on with a setup whose solver is compiled."""

    def fail(self, error: Exception) -> None:
        """Report that something in the background has failed."""


class Playback:
    """Plays runs, comparisons and iterations in the scene, and makes what it plays.

    Args:
        workspace: The goal, the start and the setup.
        scenario: The scenario that *Play* runs.
        folder: Directory of the runs that are not kept.

    Attributes:
        scenario: The scenario that *Play* runs.
        iterating: The settings of iterations that differ from their defaults.
        player: What is played; None while the live arm is shown.
        downloads: Files for the driving page: name and content.
    """

    def __init__(self, workspace: PlaybackWorkspace, scenario: str, folder: Path) -> None:
        self._workspace = workspace
        self.scenario = scenario
        self._folder = folder
        # What the studio was started with: the only script of the user's that it runs.
        self._trusted_script = Path(scenario).resolve()
        # How many runs were made.
        self._run_count = 0
        # Whether a run is being kept.
        self._keeping = False
        self.iterating: dict[str, Any] = {}
        # The iterates of the last iteration.
        self._iterates: list[Iterate] = []
        self.player: Player | None = None
        self.downloads: list[tuple[str, str]] = []

    def change(self, name: str, value: Any) -> None:
        """Change a setting of iterations; None stands for the default.

        Raises:
            InvalidParameter: The value makes no sense.
        """
        iterating = {key: old for key, old in self.iterating.items() if key != name}
        if value is not None:
            iterating[name] = value
        # What makes no sense is refused where settings are made.
        IterateSettings(**iterating)
        self.iterating = iterating

    def iterate(self, animated: bool) -> None:
        """Iterate from the start to the goal, and play the postures one by one, or show the last.

        Raises:
            RequestRefused: The arm is behind a controller.
            InvalidParameter: The goal is out of reach.
        """
        self._refuse_on_controllers()
        workspace = self._workspace
        setup = workspace.setup
        goal = workspace.arms.goal
        start = workspace.start_q
        settings = IterateSettings(**self.iterating)
        excess = out_of_reach(workspace.arms.arm.robot, goal.translation)
        if excess > 0.0:
            distance = f"{millimetres(excess)} mm out of reach"
            raise InvalidParameter("goal", distance, "within the arm's reach")

        def show(result: tuple[list[Iterate], str]) -> None:
            self._iterates, workspace.view.iterations = result
            times = _frame_times(len(self._iterates), settings, animated=animated)
            self.player = Player(times, iterates=self._iterates)

        workspace.view.iterations = "Iterating ..."
        workspace.run_in_background(
            "iterate", lambda: iterate_to_end(setup, start, goal, settings), show
        )

    def save_iterations(self) -> None:
        """Offer the last iteration as a file.

        Raises:
            InvalidParameter: There was none.
        """
        if not self._iterates:
            raise InvalidParameter("iterations", "none", "computed first: press Iterate")
        content = iterations_csv(self._workspace.arms.arm.robot, self._iterates)
        self.downloads.append(("iterations.csv", content))

    def choose_scenario(self, name: str) -> None:
        """Let *Play* run another scenario."""
        self.scenario = name
        self.player = None

    def play(self) -> None:
        """Go on with the run that is played, or make a run of the scenario with the present setup.

        Raises:
            RequestRefused: The arm is behind a controller, or the scenario is a script with which
                the studio was not started.
        """
        self._refuse_on_controllers()
        workspace = self._workspace
        setup = workspace.setup
        scenario = self.scenario
        if self.player is not None and self.player.run is not None:
            has_setup = self.player.run.setup is setup
            if has_setup and self.player.scenario == scenario:
                self.player.resume()
                return
        if is_custom_script(scenario) and not self._is_trusted(scenario):
            raise RequestRefused(
                f"The studio was not started with {scenario}; use simbridge studio "
                f"{scenario} to play it."
            )

        self._run_count += 1
        out = self._folder / f"run{self._run_count}"

        def show(run: PlayedRun) -> None:
            older = None if self.player is None else self.player.run
            self.player = Player(run.times, run, older, scenario)
            workspace.arms.drawing.clear_path()
            workspace.arms.drawing.clear_postures()

        workspace.view.playing = f"Running {scenario} ..."
        workspace.run_in_background("play", lambda: PlayedRun.record(setup, scenario, out), show)

    def load(self, path: str) -> None:
        """Show a kept run with its solver; "" shows none.

        Raises:
            RequestRefused: The arm is behind a controller.
        """
        if not path:
            return
        self._refuse_on_controllers()
        setup = self._workspace.setup

        def show(result: tuple[PlayedRun, str]) -> None:
            run, scenario = result
            self._workspace.adopt(run.setup)
            self.scenario = scenario
            self.player = Player(run.times, run, scenario=scenario)

        self._workspace.run_in_background("load", lambda: PlayedRun.load(Path(path), setup), show)

    def pause(self) -> None:
        """Let the clock of what is played stand, or go on."""
        if self.player is not None:
            self.player.paused = not self.player.paused

    def stop(self) -> None:
        """Show the live arm again."""
        self.player = None
        self._workspace.view.playing = ""
        self._workspace.view.iterations = ""
        self._workspace.arms.drawing.clear_postures()

    def scrub(self, percent: float) -> None:
        """Stand at a part of what is played, 0 to 100 %."""
        if self.player is not None:
            self.player.scrub(percent)

    def keep(self) -> None:
        """Keep the run that is played, or else the session until now, under runs/.

        Raises:
            RequestRefused: A run is being kept already, or the arm is behind a controller.
        """
        if self._keeping:
            raise RequestRefused("A run is already being kept.")

        run = None if self.player is None else self.player.run
        keep = self._begin_another_session() if run is None else run.keep

        def finish(path: Path) -> None:
            self._keeping = False
            self._workspace.view.playing = _describe_kept_run(path)

        def fail(error: Exception) -> None:
            self._keeping = False
            self._workspace.fail(error)

        self._keeping = True
        self._workspace.run_in_background("keep", keep, finish, fail, always=True)

    def _begin_another_session(self) -> Callable[[], Path]:
        """Go on in a new session; return what keeps the one until now.

        Raises:
            RequestRefused: The arm is behind a controller.
        """
        arms = self._workspace.arms
        if arms.controlled is not None:
            raise RequestRefused("Every session on a controller is recorded under runs/ already.")
        ended = arms.begin_another_session(self._workspace.setup)
        return lambda: copy_run(ended.report(), "studio")

    def _refuse_on_controllers(self) -> None:
        if self._workspace.arms.controlled is not None:
            raise RequestRefused(
                "On a controller, the studio only follows the goal; use `simbridge "
                "run` to run a scenario."
            )

    def _is_trusted(self, script: str) -> bool:
        """Return True for the script with which the studio was started.

        A kept run is data, and may name any other.
        """
        return Path(script).resolve() == self._trusted_script


def _frame_times(count: int, settings: IterateSettings, *, animated: bool) -> Array:
    """Return when each iterate is shown (count,), s; all at once where nothing is animated."""
    is_slowed = settings.slow_in_slow_out == "on"
    weights = slow_in_slow_out(count) if is_slowed else np.ones(count)
    durations = settings.frame_time * weights * animated
    return np.concatenate([[0.0], np.cumsum(durations)[:-1]])


def _describe_kept_run(path: Path) -> str:
    """Return where a run was kept, and what repeats it."""
    sentence = f"Kept: {path}. Its page is {path / 'report.html'}."
    command = repeat_command(RunDirectory.open(path).settings(), path)
    if command:
        sentence += f" `{command}` repeats it bit for bit."
    return sentence
