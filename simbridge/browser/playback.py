"""Iterations and runs of scenarios, which the pages play in place of the live arm; simulation only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import viser

from simbridge.browser.iterate import Iterate, iterated, iterations_csv, slow_in_slow_out
from simbridge.browser.live_arm import Refused, out_of_reach
from simbridge.browser.player import Player
from simbridge.browser.recording import keep, load, record, repeated
from simbridge.browser.scene import Follower, Trail
from simbridge.browser.view import Curve
from simbridge.errors import InvalidParameter
from simbridge.text import millimetres

if TYPE_CHECKING:  # it makes this
    from simbridge.browser.workspace import Beside, Workspace


class Playback:
    """What is played, and what it is made from.

    Args:
        workspace: The goal, the start and the settings.
        scenario: What *Play* runs.
        folder: For run directories that are not kept.
        beside: See `Beside`.

    Attributes:
        scenario: What *Play* runs.
        player: What is played; None while the live arm is shown.
        downloads: Files for the driving page.
    """

    def __init__(self, workspace: Workspace, scenario: str, folder: Path, beside: Beside) -> None:
        self._workspace, self.scenario, self._folder, self._beside = workspace, scenario, folder, beside
        self._count = 0
        self._iterates: list[Iterate] = []
        self.player: Player | None = None
        self.downloads: list[tuple[str, str]] = []

    def show_in(self, server: viser.ViserServer, follower: Follower) -> None:
        """Draw with a follower in a server's scene."""
        self._trail, self._follower = Trail(server), follower

    def begin_anew(self, follower: Follower) -> None:
        """Draw with another follower; what an iteration has drawn is gone."""
        self._trail.remove()
        self._follower = follower

    @property
    def curves(self) -> tuple[Curve | None, Curve | None]:
        """The errors of what is played, and of the run before."""
        return (None, None) if self.player is None else self.player.curves

    def _refuse_on_controllers(self) -> None:
        if self._workspace.controlled is not None:
            raise Refused("On a controller the studio only follows the goal; `simbridge run` runs a scenario.")

    def on_iterate(self, asked: dict[str, Any]) -> None:
        self._refuse_on_controllers()
        workspace = self._workspace
        arm, goal = workspace.arm, workspace.goal
        if (left := out_of_reach(arm.robot, goal.translation)) > 0.0:
            raise InvalidParameter("goal", f"{millimetres(left)} mm out of reach", "within the arm's reach")
        setup, q = workspace.setup, workspace.start_q
        workspace.shown.iterations = "Iterating ..."
        self._beside("iterated", asked, lambda: iterated(setup, q, goal, asked["threshold"], asked["limit"]))

    def on_iterated(self, value: tuple[dict[str, Any], Any]) -> None:
        asked, result = value
        self._iterates, words = result
        self._workspace.shown.iterations = words
        postures = [one.points for one in self._iterates]
        pauses = asked["pause"] * (slow_in_slow_out(len(postures)) if asked["slow"] else np.ones(len(postures)))
        self.player = Player.of_postures(postures, self._iterates, pauses if asked["animated"] else 0.0 * pauses)

    def on_save_iterations(self, _: None) -> None:
        if not self._iterates:
            raise InvalidParameter("iterations", "none", "made first: press Iterate")
        text = iterations_csv(self._workspace.arm.robot, self._iterates)
        self.downloads.append(("iterations.csv", text))

    def on_scenario(self, name: str) -> None:
        self.scenario = name
        self.player = None

    def on_play(self, _: None) -> None:
        self._refuse_on_controllers()
        setup, scenario = self._workspace.setup, self.scenario
        if self.player is not None and self.player.resumed(setup, scenario):
            return
        self._count += 1
        out = self._folder / f"run{self._count}"
        self._workspace.shown.playing = f"Running {scenario} ..."
        self._beside("recorded", scenario, lambda: record(setup, scenario, out))

    def on_recorded(self, value: tuple[str, Any]) -> None:
        scenario, result = value
        older = None if self.player is None else self.player.run
        self.player = Player.of_run(result, scenario, older)
        self._follower.forget_path()
        self._trail.remove()

    def on_load(self, path: str) -> None:
        """A kept run: its solver, and the run itself to be played."""
        if path:
            self._refuse_on_controllers()
            setup = self._workspace.setup
            self._beside("loaded", None, lambda: load(Path(path), setup))

    def on_loaded(self, value: tuple[None, Any]) -> None:
        played, scenario = value[1]
        self._workspace.adopt(played.setup)
        self.scenario, self.player = scenario, Player.of_run(played, scenario, None)

    def on_pause(self, _: None) -> None:
        if self.player is not None:
            self.player.paused = not self.player.paused

    def on_stop(self, _: None) -> None:
        self.player = None
        self._workspace.shown.playing = self._workspace.shown.iterations = ""
        self._trail.remove()

    def on_scrub(self, percent: float) -> None:
        if self.player is not None:
            self.player.scrub(percent / 100.0)

    def on_keep(self, _: None) -> None:
        if self.player is not None and (run := self.player.run) is not None:
            self._beside("kept", None, lambda: keep(run))
        else:
            self._beside("kept", None, self._workspace.begin_another_session().keep)

    def on_kept(self, value: tuple[None, Path]) -> None:
        self._workspace.shown.playing = repeated(value[1])

    def draw(self) -> bool:
        """Show the present frame in the scene; returns whether there is one."""
        if self.player is not None:
            self.player.draw(self._follower, self._trail)
        return self.player is not None

    def describe(self) -> bool:
        """Describe the present frame; returns whether there is one."""
        if self.player is not None:
            self.player.describe(self._workspace.shown)
        return self.player is not None
