"""What the page plays in place of the live arm: a run of a scenario, or the postures of an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simbridge.browser.iterate import Iterate
from simbridge.browser.recording import Played
from simbridge.browser.scene import Follower, Trail
from simbridge.browser.setup import StudioSetup
from simbridge.browser.view import Curve, Sample, Shown, figures_of, joints_of, shares_of_limits
from simbridge.robot.pose import Array
from simbridge.text import millimetres


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
    postures: Sequence[Array] = ()
    now: float = 0.0
    paused: bool = False
    _shown_frame: int = -1

    @staticmethod
    def of_run(run: Played, scenario: str, older: Played | None) -> Player:
        """A run of a scenario, at its own speed."""
        return Player(run.times, run=run, older=older, scenario=scenario)

    @staticmethod
    def of_postures(postures: Sequence[Array], iterates: Sequence[Iterate], pauses: Array) -> Player:
        """The postures of an iteration, each for so long, s."""
        return Player(np.concatenate([[0.0], np.cumsum(pauses)[:-1]]), iterates=iterates, postures=postures)

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
            trail.show(list(self.postures[: k + 1]))

    def _sample(self, run: Played, k: int) -> Sample:
        return Sample(
            time=float(run.times[k]), q=run.q[k], qd=run.qd[k], solution=run.solution[k],
            target=np.concatenate([run.reference[k], [0.0, 0.0, 0.0, 1.0]]), errors=tuple(run.errors[k].tolist()),
            distance=float(run.tracking[k]), angle=0.0, causes=(),
        )  # fmt: skip

    def describe(self, shown: Shown) -> None:
        """Describe its present frame."""
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
            f"{self.scenario}: {sample.time:.2f} of {self.duration:.2f} s, {millimetres(sample.distance)} mm."
        )
        shown.playing = f"Tracking error of the whole run, RMS: {millimetres(rms)} mm.{before}"
        shown.figures = figures_of(sample)
        shown.joints = joints_of(run.setup.arm, sample)


def _shares(run: Played) -> tuple[Array, Array]:
    return shares_of_limits(run.setup.arm, run.q, run.qd)
