"""A simulated arm that follows the goal, on the studio's clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.browser.live_arm import ANYWHERE, LiveArm
from simbridge.browser.recording import copied
from simbridge.browser.setup import StudioSetup
from simbridge.errors import SimbridgeError
from simbridge.planning.live.options import SIMULATED
from simbridge.planning.live.phase import Phase
from simbridge.robot.load import load_robot
from simbridge.robot.pose import Array
from simbridge.running.live_setup import live

# A target is stale after so many intervals between two, and not before this, s.
_STALE, _SHORTEST = 3.0, 0.5
# Where nothing changes by more than this for this time, the clock stands: rad, m, s.
_STILL, _RESTS = 1e-7, 0.3


class Simulation(LiveArm):
    """A simulated arm that follows a goal. A context manager, to be used from one thread.

    Args:
        setup: What it is made of.
        out: The run directory of its session.
        start: Joint positions (n,), rad, at which it begins; home by default.
    """

    def __init__(self, setup: StudioSetup, out: Path, start: Array | None = None) -> None:
        options, solver = setup.options, setup.build_solver()
        session = live(
            robot=load_robot(setup.robot, lengths=setup.values.get("link_lengths"), **setup.options.links),
            solver=solver,
            out=out,
            realtime=False,
            start=start,
            report=False,
            hold="zero-order" if options.hold == "zero-order" else "continue",
            timeout=max(_SHORTEST, _STALE / setup.target_rate),
            max_jump=ANYWHERE,
            lead=options.feedforward == "on",
            **{name: getattr(options, name) for name in SIMULATED},
        )
        super().__init__(setup, session, solver)
        self._chance = np.random.default_rng(0)
        self._due = self._still = self._left = 0.0
        self._before: Array | None = None
        self._sent: pin.SE3 | None = None

    def __enter__(self) -> Simulation:
        self._session.__enter__()
        try:
            self._engage()
        except BaseException:
            self._session.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()

    def end(self) -> None:
        self._session.__exit__(None, None, None)

    def _engage(self) -> None:
        self._session.engage()
        self._advance(1)

    def keep(self) -> Path:
        """Write the report of its session, which has ended, and keep it in a new directory under runs/: returned.

        Raises:
            OutputError: A file cannot be written.
        """
        self._session.report()
        return copied(self.directory, "studio")

    @property
    def resting(self) -> bool:
        """Whether nothing has changed for a while, so that the clock stands."""
        return self._still > _RESTS and self._sent == self.goal and not any(self.setup.noise)

    def advance(self, seconds: float) -> float:
        """Move the clock by whole periods, s; what is left counts the next time. Returns by how much it moved."""
        if self.resting:
            self._left = 0.0
            return 0.0
        self._left += seconds
        count = int(self._left / self._session.period + 1e-9)
        self._left -= count * self._session.period
        for _ in range(count):
            if self.goal is not None and self.time >= self._due:
                self._give(self.goal)
            self._advance(1)
        return count * self._session.period

    def _give(self, goal: pin.SE3) -> None:
        self._due = max(self._due + 1.0 / self.setup.target_rate, self.time)
        target, (distance, angle) = goal, self.setup.noise
        if distance or angle:
            shift, turn = self._chance.normal(0.0, 1.0, 3), self._chance.normal(0.0, 1.0, 3)
            target = pin.SE3(goal.rotation @ pin.exp3(angle * turn), goal.translation + distance * shift)
        self._sent = goal
        try:
            if self._session.status.state == "idle":
                self._engage()
            self._session.pose(target)
        except SimbridgeError as error:
            self.error = str(error)

    def _advance(self, periods: int) -> None:
        try:
            self._session.advance(periods * self._session.period)
        except SimbridgeError as error:
            self.error = str(error)
        self.time += periods * self._session.period
        if (stopped := self._session.status.error) is not None:
            self.error = str(stopped)
        last = self._session.newest
        if last is None:
            return
        now = np.concatenate([last.setpoint, self.q])
        moved = self._before is None or np.abs(now - self._before).max() > _STILL
        self._before, self._still = now, 0.0 if moved else self._still + periods * self._session.period
        if last.phase is Phase.TRACKING and stopped is None:
            self.error = ""
