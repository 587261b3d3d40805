"""Iterations and runs of scenarios, which the pages play in place of the live arm; simulation only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import viser

from simbridge.browser.iterate import Iterate, IterateSettings, iterated, iterations_csv, slow_in_slow_out
from simbridge.browser.live_arm import Refused, dexterity_at, out_of_reach
from simbridge.browser.recording import Played, keep, load, record, repeated
from simbridge.browser.scene import Follower, Trail
from simbridge.browser.setup import StudioSetup
from simbridge.browser.view import Curve, Sample, Shown, figures_of, joints_of, shares_of_limits
from simbridge.errors import InvalidParameter
from simbridge.robot.pose import Array
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
        iterating: The settings of iterations that differ from their defaults.
        player: What is played; None while the live arm is shown.
        downloads: Files for the driving page.
    """

    def __init__(self, workspace: Workspace, scenario: str, folder: Path, beside: Beside) -> None:
        self._workspace, self.scenario, self._folder, self._beside = workspace, scenario, folder, beside
        self._count, self.iterating = 0, dict[str, Any]()
        self._iterates: list[Iterate] = []
        self.player: Player | None = None
        self.downloads: list[tuple[str, str]] = []

    def show_in(self, server: viser.ViserServer, follower: Follower) -> None:
        """Draw with a follower in a server's scene."""
        self._trail, self._follower = Trail(server), follower

    def begin_anew(self, follower: Follower) -> None:
        """Draw with another follower; an iteration is shown no more."""
        self._trail.remove()
        self._follower = follower
        if self.player is not None and self.player.run is None:
            self.player = None

    @property
    def curves(self) -> tuple[Curve | None, Curve | None]:
        """The errors of what is played, and of the run before."""
        return (None, None) if self.player is None else self.player.curves

    def _refuse_on_controllers(self) -> None:
        if self._workspace.controlled is not None:
            raise Refused("On a controller the studio only follows the goal; `simbridge run` runs a scenario.")

    def change(self, name: str, value: Any) -> None:
        """Change a setting of iterations; None stands for the default.

        Raises:
            InvalidParameter: The value makes no sense.
        """
        changed = {key: old for key, old in self.iterating.items() if key != name}
        changed |= {} if value is None else {name: value}
        _ = IterateSettings(**changed)
        self.iterating = changed

    def on_iterate(self, animated: bool) -> None:
        self._refuse_on_controllers()
        workspace = self._workspace
        arm, goal = workspace.arm, workspace.goal
        if (left := out_of_reach(arm.robot, goal.translation)) > 0.0:
            raise InvalidParameter("goal", f"{millimetres(left)} mm out of reach", "within the arm's reach")
        setup, q, settings = workspace.setup, workspace.start_q, IterateSettings(**self.iterating)
        workspace.shown.iterations = "Iterating ..."
        self._beside("iterated", (animated, settings), lambda: iterated(setup, q, goal, settings))

    def on_iterated(self, value: tuple[tuple[bool, IterateSettings], Any]) -> None:
        (animated, settings), (self._iterates, words) = value
        self._workspace.shown.iterations = words
        count = len(self._iterates)
        pauses = slow_in_slow_out(count) if settings.slow_in_slow_out == "on" else np.ones(count)
        self.player = Player.of_iterates(self._iterates, settings.frame_time * pauses * animated)

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
            self.player.describe(self._workspace.shown, self._workspace.arm.solver.task)
        return self.player is not None


@dataclass
class Player:
    """A motion with a clock.

    Attributes:
        times: When each frame is shown (K,), s.
        run: Of a scenario; None for an iteration.
        older: The run before it, over which its errors are shown.
        scenario: Its name.
        iterates: Of an iteration.
        now: On its clock, s.
        paused: Whether the clock stands.
    """

    times: Array
    run: Played | None = None
    older: Played | None = None
    scenario: str = ""
    iterates: Sequence[Iterate] = ()
    now: float = 0.0
    paused: bool = False
    _shown_frame: int = -1

    @staticmethod
    def of_run(run: Played, scenario: str, older: Played | None) -> Player:
        """A run of a scenario, at its own speed."""
        return Player(run.times, run=run, older=older, scenario=scenario)

    @staticmethod
    def of_iterates(iterates: Sequence[Iterate], pauses: Array) -> Player:
        """The postures of an iteration, each for so long, s."""
        return Player(np.concatenate([[0.0], np.cumsum(pauses)[:-1]]), iterates=iterates)

    @property
    def duration(self) -> float:
        """s."""
        return float(self.times[-1])

    @property
    def frame(self) -> int:
        """The number of the frame that is shown."""
        return max(0, int(np.searchsorted(self.times, self.now, side="right")) - 1)

    @property
    def share(self) -> float:
        """How much of it was shown, 0 to 1."""
        return self.now / self.duration if self.duration > 0.0 else 1.0

    def advance(self, seconds: float) -> None:
        """Move the clock on."""
        if not self.paused:
            self.now = min(self.now + seconds, self.duration)

    def scrub(self, share: float) -> None:
        """Go to a share of it and stay there."""
        self.now, self.paused = min(max(share, 0.0), 1.0) * self.duration, True

    def resumed(self, setup: StudioSetup, scenario: str) -> bool:
        """Go on, or begin again, where it is what is asked for; returns whether it is."""
        if self.run is None or self.run.setup is not setup or self.scenario != scenario:
            return False
        self.now = 0.0 if self.now >= self.duration else self.now
        self.paused = False
        return True

    @cached_property
    def curves(self) -> tuple[Curve | None, Curve | None]:
        """The errors of the run, and of the one before; None where there is none."""
        first, second = (
            None if run is None else Curve.of(np.column_stack([run.times, run.tracking, run.errors, *_shares(run)]))
            for run in (self.run, self.older)
        )
        return first, second

    def draw(self, follower: Follower, trail: Trail) -> None:
        """Show its present frame."""
        k = self.frame
        if self.run is not None:
            follower.show(self._sample(self.run, k))
        elif k != self._shown_frame:
            self._shown_frame = k
            follower.pose(self.iterates[k].q, self.iterates[k].q)
            trail.show([one.points for one in self.iterates[: k + 1]])

    def _sample(self, run: Played, k: int) -> Sample:
        return Sample(
            time=float(run.times[k]), q=run.q[k], qd=run.qd[k], solution=run.solution[k],
            target=np.concatenate([run.reference[k], [0.0, 0.0, 0.0, 1.0]]), errors=tuple(run.errors[k].tolist()),
            distance=float(run.tracking[k]), angle=0.0, causes=(),
        )  # fmt: skip

    def describe(self, shown: Shown, task: str) -> None:
        """Describe its present frame, for a solver's task."""
        k = self.frame
        if self.run is None:
            one = self.iterates[k]
            shown.sentence = (
                f"Iteration {one.number}: {millimetres(one.distance)} mm are left, after {1e3 * one.took:.2f} ms."
            )
            return
        run = self.run
        sample = self._sample(run, k)
        rms = float(np.sqrt(np.mean(run.tracking**2)))
        before = ""
        if self.older is not None:
            old = float(np.sqrt(np.mean(self.older.tracking**2)))
            before = f" Before it was {millimetres(old)} mm."
        shown.sentence = (
            f"{self.scenario}, {sample.time:.2f} of {self.duration:.2f} s: "
            f"{millimetres(sample.distance)} mm from the path."
        )
        shown.playing = f"Tracking error of the whole run, RMS: {millimetres(rms)} mm.{before}"
        shown.figures = figures_of(sample, dexterity_at(run.setup.arm, sample.q, task))
        shown.joints = joints_of(run.setup.arm, sample)


def _shares(run: Played) -> tuple[Array, Array]:
    return shares_of_limits(run.setup.arm, run.q, run.qd)
