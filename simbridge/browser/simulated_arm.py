"""A simulated arm that follows the goal on the studio's clock."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

from simbridge.browser.setup import TARGET_RATE, StudioSetup
from simbridge.browser.studio_arm import MAX_JUMP, StudioArm
from simbridge.errors import SimbridgeError
from simbridge.robot.pose import Array
from simbridge.sessions.options import SIMULATED
from simbridge.sessions.phases import LivePhase
from simbridge.sessions.setup import live

# A target is stale after so many intervals between two, and not before this, s.
STALE_INTERVALS = 3.0
MIN_TIMEOUT_S = 0.5

# If nothing changes by more than this, rad and m, for this time, s, the clock stands.
MAX_CHANGE_AT_REST = 1e-7
TIME_TO_REST_S = 0.3


class SimulatedStudioArm(StudioArm):
    """A simulated arm. A context manager, to be used from one thread.

    Args:
        setup: The settings that it is made from.
        out: The run directory of its session.
        start: Joint positions (n,), rad, at which it begins; home by default.
    """

    def __init__(self, setup: StudioSetup, out: Path, start: Array | None = None) -> None:
        options = setup.options
        rate = setup.values.get("sample_rate", TARGET_RATE)
        solver = setup.make_solver(setup.arm)
        session = live(
            setup.engine,
            robot=setup.bare_arm,
            solver=solver,
            out=out,
            realtime=False,
            start=start,
            report=False,
            hold="zero-order" if options.hold == "zero-order" else "continue",
            timeout=max(MIN_TIMEOUT_S, STALE_INTERVALS / rate),
            max_jump=MAX_JUMP,
            lead=options.feedforward == "on",
            **{name: getattr(options, name) for name in SIMULATED},
        )
        super().__init__(setup, session, solver)

        # How often the goal becomes the session's target, s.
        self._interval = 1.0 / rate
        # Standard deviations of the target's noise along and about each axis, m and rad.
        self._noise = setup.values.get("sample_noise", (0.0, 0.0))
        self._random = np.random.default_rng(0)
        # When the next target is due, s.
        self._due = 0.0
        # Time that was asked for and made no whole period yet, s.
        self._remainder = 0.0
        # How long nothing has changed, s, and the setpoint and posture (2 n,) then, rad.
        self._unchanged = 0.0
        self._before: Array | None = None
        # The goal that became a target last.
        self._sent: pin.SE3 | None = None

    def __enter__(self) -> SimulatedStudioArm:
        self._session.__enter__()
        try:
            self._engage()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.end()

    def end(self) -> None:
        """End its session."""
        self._session.__exit__(None, None, None)

    @property
    def resting(self) -> bool:
        """True if nothing has changed for a while: the clock stands still then."""
        is_still = self._unchanged > TIME_TO_REST_S
        return is_still and self._sent == self.goal and not any(self._noise)

    def advance(self, seconds: float) -> None:
        """Move the clock by whole periods; what remains of the time counts the next time.

        Args:
            seconds: Time by which the clock moves on, s.
        """
        if self.resting:
            self._remainder = 0.0
            return

        self._remainder += seconds
        period = self._session.period
        count = int(self._remainder / period + 1e-9)
        self._remainder -= count * period
        for _ in range(count):
            if self.goal is not None and self.time >= self._due:
                self._send_target(self.goal)
            self._advance_period()

    def _engage(self) -> None:
        """Let targets move the arm."""
        self._session.engage()
        self._advance_period()

    def _send_target(self, goal: pin.SE3) -> None:
        """Make a goal, with its noise, the session's target."""
        self._due = max(self._due + self._interval, self.time)
        target = self._add_noise(goal)
        self._sent = goal
        try:
            if self.state == "idle":
                self._engage()
            self._session.pose(target)
        except SimbridgeError as error:
            self.error = str(error)

    def _add_noise(self, goal: pin.SE3) -> pin.SE3:
        """Return a goal, shifted and turned at random; the goal itself without noise."""
        distance, angle = self._noise
        if not distance and not angle:
            return goal
        shift = self._random.normal(0.0, 1.0, 3)
        turn = self._random.normal(0.0, 1.0, 3)
        rotation = goal.rotation @ pin.exp3(angle * turn)
        return pin.SE3(rotation, goal.translation + distance * shift)

    def _advance_period(self) -> None:
        """Move the clock by one period, and see what has changed."""
        period = self._session.period
        try:
            self._session.wait(period)
        except SimbridgeError as error:
            self.error = str(error)
        self.time += period

        stop = self._session.status.error
        if stop is not None:
            self.error = str(stop)
        newest = self._session.newest
        if newest is None:
            return

        now = np.concatenate([newest.setpoint, self.q])
        if self._before is None or np.abs(now - self._before).max() > MAX_CHANGE_AT_REST:
            self._unchanged = 0.0
        else:
            self._unchanged += period
        self._before = now
        if newest.phase is LivePhase.TRACKING and stop is None:
            self.error = ""
