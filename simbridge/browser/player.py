"""A motion with a clock, which the pages play in place of the live arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simbridge.browser.curve import Curve
from simbridge.browser.drawn_arm import DrawnArm
from simbridge.browser.iterate import Iterate
from simbridge.browser.played_run import PlayedRun
from simbridge.browser.view import PageView
from simbridge.robot.pose import Array
from simbridge.text import millimetres


@dataclass
class Player:
    """Plays a run of a scenario at its own speed, or the postures of an iteration.

    Attributes:
        times: When each frame is shown (K,), s.
        run: Run of a scenario; None for an iteration.
        older: The run before it, over which its errors are shown.
        scenario: Name of the scenario that is played.
        iterates: Iterates of a solver; empty for a run.
        now: Present instant on its clock, s.
        paused: Whether the clock stands.
    """

    times: Array
    run: PlayedRun | None = None
    older: PlayedRun | None = None
    scenario: str = ""
    iterates: Sequence[Iterate] = ()
    now: float = 0.0
    paused: bool = False
    # The frame of an iteration that was drawn last.
    _drawn: int = -1

    @property
    def duration(self) -> float:
        """Length of the motion, s."""
        return float(self.times[-1])

    @property
    def frame(self) -> int:
        """The number of the frame that is shown."""
        return max(0, int(np.searchsorted(self.times, self.now, side="right")) - 1)

    @property
    def progress(self) -> float:
        """Fraction of the motion that was shown, 0 to 1."""
        return self.now / self.duration if self.duration > 0.0 else 1.0

    def advance(self, seconds: float) -> None:
        """Move the clock on, unless it stands."""
        if not self.paused:
            self.now = min(self.now + seconds, self.duration)

    def resume(self) -> None:
        """Let the clock go on, at the end from the beginning."""
        if self.now >= self.duration:
            self.now = 0.0
        self.paused = False

    def scrub(self, percent: float) -> None:
        """Stand at a part of the motion, 0 to 100 %."""
        self.now = min(max(percent / 100.0, 0.0), 1.0) * self.duration
        self.paused = True

    @cached_property
    def curves(self) -> tuple[Curve | None, Curve | None]:
        """The errors of the run, and of the one before; None if there is none."""
        curve = None if self.run is None else self.run.curve
        older_curve = None if self.older is None else self.older.curve
        return curve, older_curve

    def draw(self, arm: DrawnArm) -> None:
        """Show its present frame."""
        frame = self.frame
        if self.run is not None:
            arm.show(self.run.snapshot(frame))
        elif frame != self._drawn:
            self._drawn = frame
            q = self.iterates[frame].q
            arm.pose(q, q)
            arm.draw_postures([item.points for item in self.iterates[: frame + 1]])

    def describe(self, view: PageView, task: str) -> None:
        """Describe its present frame.

        Args:
            view: Takes the sentences and the figures.
            task: The part of the target that the solver is to attain.
        """
        if self.run is None:
            item = self.iterates[self.frame]
            remaining = f"{millimetres(item.distance)} mm remaining"
            effort = f"{1e3 * item.duration:.2f} ms"
            view.sentence = f"Iteration {item.number}: {remaining}, after {effort}."
            return

        snapshot = self.run.snapshot(self.frame)
        instant = f"{self.scenario}, {snapshot.time:.2f} of {self.duration:.2f} s"
        view.sentence = f"{instant}: {millimetres(snapshot.distance)} mm from the path."

        view.playing = f"Tracking error of the whole run, RMS: {millimetres(self.run.rms)} mm."
        if self.older is not None:
            view.playing += f" Previous run: {millimetres(self.older.rms)} mm."
        view.describe(self.run.setup.arm, task, snapshot)
